"""All positive controls of one recording that use its stimulus, in one pass over its signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from lpact.analyses.lpact.assays.courses import (
    BOXCAR,
    ONSETS,
    PROXIES,
    TRANSCRIPT,
    Course,
    envelope_course,
    proxy_course,
)
from lpact.analyses.lpact.assays.envelope import Follower, meeting_rate
from lpact.analyses.lpact.assays.low_level import (
    HAEMODYNAMIC_S,
    MIN_SHIFT_S,
    Scores,
    WordWindows,
    grid_rate_scores,
    lags_within,
    series_rate_scores,
)
from lpact.analyses.lpact.assays.signal import (
    EPOCHS,
    SERIES,
    OpenRecording,
    autocorrelation_s,
    open_recording,
    resampled,
    usable_columns,
)
from lpact.analyses.lpact.assays.stimulus_rows import (
    ONSET,
    RATE,
    Absent,
    Place,
    followed_row,
    low_level_row,
)
from lpact.analyses.lpact.levels.media import PROXY_LABELS, media_of
from lpact.analyses.lpact.tables.assay import (
    ENVELOPE_FULL,
    ENVELOPE_STANDALONE,
    LOW_LEVEL,
    PROXY,
)
from lpact.codes import Reason
from lpact.datasets.base import AbsentMedium, Dataset, Stimulus
from lpact.features.acoustics import envelope_source
from lpact.inputs.prepare import Prepared
from lpact.store import frame

_MADE_FROM = {BOXCAR: "word_times", ONSETS: "word_times", TRANSCRIPT: "transcript_columns"}


def run_recording(
    place: Place, dataset: Dataset, prepared: Callable[[], Prepared]
) -> dict[str, pl.DataFrame]:
    """Return the tables of a usable recording; ``prepared`` is asked for only where the event grid is needed."""
    stimulus = dataset.stimulus(place.id.stimulus)
    opened = open_recording(dataset, place.id, place.entry)
    if place.kind == EPOCHS:
        return _tables(place, stimulus, _grid_scores(place, prepared()), {})
    fading_s = autocorrelation_s(opened)
    followers = _followers(place, opened, stimulus, fading_s)
    windows = None
    if place.kind == SERIES:
        assay, rng = place.config.assay, place.rng("onsets")
        windows = WordWindows(opened, stimulus, assay.onset_windows_ms, assay.shifts, fading_s, rng)
    active = [f for f in followers.values() if isinstance(f, Follower)]
    ratio = meeting_rate(opened, place.config)
    for _, columns in usable_columns(opened):
        if windows is not None:
            windows.add(columns)
        slow = resampled(columns, ratio) if active else columns
        for follower in active:
            follower.add(slow)
    if windows is not None:
        return _tables(place, stimulus, _series_scores(place, stimulus, windows), followers)
    return _tables(place, stimulus, _grid_scores(place, prepared()), followers)


def unused_recording(place: Place, reason: Reason) -> dict[str, pl.DataFrame]:
    """Return the tables of a recording that the audit does not use: every row says why."""
    scores = {(target, w): reason for target, named in place.windows.items() for w in named}
    absent = Absent(reason, "")
    names = (ENVELOPE_STANDALONE.name, ENVELOPE_FULL.name, *PROXIES)
    return _tables(place, None, scores, dict.fromkeys(names, absent))


_Followers = Mapping[str, Follower | Absent]
_LowLevel = Mapping[tuple[str, str], Scores | Reason]


def _series_scores(place: Place, stimulus: Stimulus, windows: WordWindows) -> _LowLevel:
    scores: dict[tuple[str, str], Scores | Reason] = {}
    for number, name in enumerate(place.windows[ONSET]):
        if not windows.n_units:
            scores[ONSET, name] = scores[RATE, name] = Reason.TOO_MANY_BAD_UNITS
            continue
        scores[ONSET, name] = windows.onset_scores(number)
        scores[RATE, name] = series_rate_scores(
            windows, number, stimulus, place.config, place.rng("rate")
        )
    return scores


def _grid_scores(place: Place, prepared: Prepared) -> _LowLevel:
    """Word rate on the event grid; onsets cannot be shifted there."""
    config, responses = place.config, prepared.grid.responses
    epochs = place.kind == EPOCHS
    why = Reason.NOT_CONTINUOUS if epochs else Reason.WINDOW_NOT_HELD
    scores: dict[tuple[str, str], Scores | Reason] = {
        (ONSET, name): why for name in place.windows[ONSET]
    }
    for number, name in enumerate(place.windows[RATE]):
        layers = [number]
        if epochs:
            layers = lags_within(prepared.grid.lags_ms, config.assay.onset_windows_ms[number])
        if not layers:
            scores[RATE, name] = Reason.WINDOW_NOT_HELD
            continue
        scores[RATE, name] = grid_rate_scores(
            prepared,
            responses[layers].mean(axis=0),
            MIN_SHIFT_S if epochs else HAEMODYNAMIC_S,
            config,
            place.rng("rate"),
        )
    return scores


def _followers(
    place: Place, opened: OpenRecording, stimulus: Stimulus, fading_s: float
) -> dict[str, Follower | Absent]:
    """What the signal is compared with: the envelope where there is sound, proxies where there is none."""

    def follow(course: Course | AbsentMedium, *, words_only: bool) -> Follower | Absent:
        if isinstance(course, AbsentMedium):
            return Absent(course.reason, course.detail)
        return Follower(
            opened,
            stimulus,
            course,
            config=place.config,
            entry=place.entry,
            words_only=words_only,
            autocorrelation_s=fading_s,
            rng=place.rng("envelope"),
        )

    sound = envelope_course(stimulus, place.config.nuisance)
    made = {
        ENVELOPE_STANDALONE.name: follow(sound, words_only=True),
        ENVELOPE_FULL.name: follow(sound, words_only=False),
    }
    for proxy in PROXIES:
        if isinstance(sound, AbsentMedium):
            made[proxy] = follow(proxy_course(stimulus, proxy), words_only=True)
        else:
            made[proxy] = Absent(Reason.SOUND_AT_HAND, envelope_source(stimulus))
    return made


def _tables(
    place: Place, stimulus: Stimulus | None, scores: _LowLevel, followers: _Followers
) -> dict[str, pl.DataFrame]:
    if not followers:
        followers = _epoch_followers(place, stimulus)
    source = "" if stimulus is None else envelope_source(stimulus)
    made_from = {} if stimulus is None else media_of(stimulus).sources
    low = [low_level_row(place, target, w, s) for (target, w), s in scores.items()]
    proxies = [
        place.key
        | {"proxy": proxy, "label": PROXY_LABELS[proxy]}
        | followed_row(place, followers[proxy], made_from.get(_MADE_FROM[proxy], ""))
        for proxy in PROXIES
    ]
    tables = {LOW_LEVEL.name: frame(LOW_LEVEL, low), PROXY.name: frame(PROXY, proxies)}
    for table in (ENVELOPE_STANDALONE, ENVELOPE_FULL):
        row = place.key | followed_row(place, followers[table.name], source)
        tables[table.name] = frame(table, [row])
    return tables


def _epoch_followers(place: Place, stimulus: Stimulus | None) -> dict[str, Follower | Absent]:
    """Epochs have no signal between words to follow; a stimulus without sound says so first."""
    assert stimulus is not None
    epochs = Absent(Reason.NOT_CONTINUOUS, "")
    sound = envelope_course(stimulus, place.config.nuisance)
    made: dict[str, Follower | Absent] = dict.fromkeys(
        (ENVELOPE_STANDALONE.name, ENVELOPE_FULL.name, *PROXIES), epochs
    )
    if isinstance(sound, AbsentMedium):
        absent = Absent(sound.reason, sound.detail)
        made |= {ENVELOPE_STANDALONE.name: absent, ENVELOPE_FULL.name: absent}
    else:
        there = Absent(Reason.SOUND_AT_HAND, envelope_source(stimulus))
        made |= dict.fromkeys(PROXIES, there)
    return made
