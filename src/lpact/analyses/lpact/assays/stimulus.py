"""Positive controls that use the stimulus: all tables of one recording in one pass, and their summaries by dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.assays import envelope, low_level, signal
from lpact.analyses.lpact.assays.brain_as_model import most_frequent_reason
from lpact.analyses.lpact.assays.envelope import PROXIES, TimeCourse, TimeCourseScorer
from lpact.analyses.lpact.assays.low_level import WordWindows, window_name
from lpact.analyses.lpact.assays.scores import Scores, passes_by_chance, reachable_level, shift_p
from lpact.analyses.lpact.assays.signal import EPOCHS, SERIES, TRS, OpenRecording
from lpact.analyses.lpact.config import AssayConfig, LPactConfig
from lpact.analyses.lpact.plan.media import PROXY_LABELS
from lpact.analyses.lpact.tables import assay as assay_tables
from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import AbsentMedium, Dataset, RecordingId, Stimulus
from lpact.features.acoustics import envelope_source
from lpact.inputs.media import media_of
from lpact.inputs.prepare import Prepared
from lpact.math.seeding import keyed_rng
from lpact.store import concat, frame
from lpact.tables import Table

Row = dict[str, object]
ONSET, RATE = "word_onset", "word_rate"
METRICS = {ONSET: "event_effect", RATE: "pearson"}
ENVELOPES = (assay_tables.ENVELOPE_STANDALONE, assay_tables.ENVELOPE_FULL)
_MADE_FROM = dict(zip(PROXIES, ("word_times", "transcript_columns", "word_times"), strict=True))


@dataclass(frozen=True)
class Place:
    """A recording in the study: the key of its rows and of its random draws."""

    config: LPactConfig
    entry: DatasetConfig
    id: RecordingId
    kind: str

    @property
    def key(self) -> dict[str, str]:
        """Recording columns of every table."""
        return self.id.key(self.entry.name)

    def rng(self, *what: str) -> np.random.Generator:
        """The generator of some draws for this recording."""
        return keyed_rng(self.config.seed, "assay", *what, *self.key.values())

    @property
    def windows(self) -> dict[str, tuple[str, ...]]:
        """Names of the windows of each target."""
        after = tuple(map(window_name, self.config.assay.onset_windows_ms))
        delays = tuple(f"delay {lag_ms:g} ms" for lag_ms in self.entry.grid.lags_ms)
        return {ONSET: after, RATE: delays if self.kind == TRS else after}


_TimeCourses = Mapping[str, TimeCourseScorer | AbsentMedium]
_LowLevel = Mapping[tuple[str, str], Scores | Reason]


def run_recording(place: Place, dataset: Dataset, prepared: Callable[[], Prepared]) -> dict[str, pl.DataFrame]:
    """Tables of a usable recording; ``prepared`` is called only if the event grid is needed."""
    stimulus = dataset.stimulus(place.id.stimulus)
    opened = signal.open_recording(dataset, place.id, place.entry)
    fading_s = 0.0 if place.kind == EPOCHS else signal.autocorrelation_s(opened)
    scorers = _time_courses(place, opened, stimulus, fading_s)
    windows = None
    if place.kind == SERIES:
        assay, rng = place.config.assay, place.rng("onsets")
        windows = WordWindows(opened, stimulus, assay.onset_windows_ms, assay.shifts, fading_s, rng)
    active = [f for f in scorers.values() if isinstance(f, TimeCourseScorer)]
    for _, columns in () if place.kind == EPOCHS else signal.usable_columns(opened):
        if windows is not None:
            windows.add(columns)
        if active:
            slow = signal.resampled(columns, envelope.rate_ratio(opened, place.config))
        for scorer in active:
            scorer.add(slow)
    if windows is not None:
        return _tables(place, stimulus, _series_scores(place, stimulus, windows), scorers)
    return _tables(place, stimulus, _grid_scores(place, prepared()), scorers)


def unused_recording(place: Place, reason: Reason) -> dict[str, pl.DataFrame]:
    """Tables of a recording that the audit does not use: every row has the reason."""
    scores = {(target, w): reason for target, named in place.windows.items() for w in named}
    names = (*(table.name for table in ENVELOPES), *PROXIES)
    return _tables(place, None, scores, dict.fromkeys(names, AbsentMedium(reason, "")))


def _series_scores(place: Place, stimulus: Stimulus, windows: WordWindows) -> _LowLevel:
    scores: dict[tuple[str, str], Scores | Reason] = {}
    for number, name in enumerate(place.windows[ONSET]):
        if not windows.n_units:
            scores[ONSET, name] = scores[RATE, name] = Reason.TOO_MANY_BAD_UNITS
            continue
        scores[ONSET, name] = windows.onset_scores(number)
        own = (windows, number, stimulus, place.config, place.rng("rate"))
        scores[RATE, name] = low_level.series_rate_scores(*own)
    return scores


def _grid_scores(place: Place, prepared: Prepared) -> _LowLevel:
    """Word rate on the event grid; onsets cannot be shifted there."""
    config, grid = place.config, prepared.grid
    epochs = place.kind == EPOCHS
    why = Reason.NOT_CONTINUOUS if epochs else Reason.NO_SAMPLES_IN_WINDOW
    scores: dict[tuple[str, str], Scores | Reason] = {(ONSET, name): why for name in place.windows[ONSET]}
    for number, name in enumerate(place.windows[RATE]):
        lags = [number]
        if epochs:
            first_ms, stop_ms = config.assay.onset_windows_ms[number]
            lags = [i for i, lag_ms in enumerate(grid.lags_ms) if first_ms <= lag_ms < stop_ms]
        scores[RATE, name] = Reason.NO_SAMPLES_IN_WINDOW
        if lags:
            responses = grid.responses[lags].mean(axis=0)
            response_s = low_level.MIN_SHIFT_S if epochs else low_level.HAEMODYNAMIC_S
            own = (prepared, responses, response_s, config, place.rng("rate"))
            scores[RATE, name] = low_level.grid_rate_scores(*own)
    return scores


def _time_courses(
    place: Place, opened: OpenRecording, stimulus: Stimulus, fading_s: float
) -> dict[str, TimeCourseScorer | AbsentMedium]:
    """What the signal is compared with: the envelope if there is sound, else proxies; epochs with neither."""
    epochs = AbsentMedium(Reason.NOT_CONTINUOUS, "") if place.kind == EPOCHS else None

    def scorer_of(course: TimeCourse | AbsentMedium, *, words_only: bool) -> TimeCourseScorer | AbsentMedium:
        if isinstance(course, AbsentMedium):
            return course
        return epochs or TimeCourseScorer(
            opened,
            stimulus,
            course,
            config=place.config,
            entry=place.entry,
            words_only=words_only,
            autocorrelation_s=fading_s,
            rng=place.rng("envelope"),
        )

    sound = envelope.envelope_time_course(stimulus, place.config.nuisance)
    made = {
        assay_tables.ENVELOPE_STANDALONE.name: scorer_of(sound, words_only=True),
        assay_tables.ENVELOPE_FULL.name: scorer_of(sound, words_only=False),
    }
    for proxy in PROXIES:
        if not isinstance(sound, AbsentMedium):
            made[proxy] = AbsentMedium(Reason.SOUND_AVAILABLE, envelope_source(stimulus))
        else:
            made[proxy] = epochs or scorer_of(envelope.proxy_time_course(stimulus, proxy), words_only=True)
    return made


def _tables(
    place: Place, stimulus: Stimulus | None, scores: _LowLevel, scorers: _TimeCourses
) -> dict[str, pl.DataFrame]:
    source = "" if stimulus is None else envelope_source(stimulus)
    made_from = {} if stimulus is None else media_of(stimulus).sources
    low = [_low_level_row(place, target, w, s) for (target, w), s in scores.items()]
    proxies = [
        {"proxy": proxy, "label": PROXY_LABELS[proxy]}
        | _time_course_row(place, scorers[proxy], made_from.get(_MADE_FROM[proxy], ""))
        for proxy in PROXIES
    ]
    return {
        assay_tables.LOW_LEVEL.name: frame(assay_tables.LOW_LEVEL, low),
        assay_tables.PROXY.name: frame(assay_tables.PROXY, proxies),
        **{table.name: frame(table, [_time_course_row(place, scorers[table.name], source)]) for table in ENVELOPES},
    }


def _low_level_row(place: Place, target: str, window: str, scores: Scores | Reason) -> Row:
    row: Row = {
        **place.key,
        "kind": place.kind,
        "target": target,
        "window": window,
        "metric": METRICS[target],
    }
    known, n_events = None, 0
    reason = scores if isinstance(scores, Reason) else Reason.UNDEFINED_SCORE
    if isinstance(scores, Scores) and scores.defined.any():
        known, n_events, reason = scores, scores.n_events, Reason.OK
    numbers = _numbers(place.config.assay, known)
    return row | numbers | {"n_events": n_events, "reason": reason}


def _time_course_row(place: Place, scorer: TimeCourseScorer | AbsentMedium, source: str) -> Row:
    """Columns that envelope and proxies share; ``source`` says what the course was made from."""
    assay = place.config.assay
    row: Row = {
        **place.key,
        "stimulus": place.id.stimulus,
        "kind": place.kind,
        "source": source,
        "n_rows": 0,
        **dict.fromkeys(("rate_hz", "value_mean", "reversed", "best_lag_ms")),
        **_numbers(assay, None),
    }
    if isinstance(scorer, AbsentMedium):
        return row | {"source": "", "reason": scorer.reason, "detail": scorer.detail}
    scored = scorer.result()
    row |= {"n_rows": scorer.n_rows, "rate_hz": scorer.rate_hz}
    if isinstance(scored, Reason):
        return row | {"reason": scored, "detail": scored.explanation}
    scores, reversed_scores, best_lag_ms = scored
    backwards = float(np.median(reversed_scores[scores.defined]))
    return row | {
        **_numbers(assay, scores, at_least=backwards),
        "value_mean": float(scores.real[scores.defined].mean()),
        "reversed": backwards,
        "best_lag_ms": best_lag_ms,
        "reason": Reason.OK,
        "detail": "",
    }


def _numbers(assay: AssayConfig, scores: Scores | None, at_least: float = -np.inf) -> Row:
    """Pooled score with its shifts, and units that pass; a course must also beat its reversal, ``at_least``."""
    if scores is None:
        missing = dict.fromkeys(("value", "shifted_mean", "shifted_best", "delta", "p"))
        counts = {"n_units": 0, "n_units_passing": 0, "n_units_by_chance": 0.0}
        return {**counts, **missing, "gate_pass": False}
    value, shifted = scores.pooled()
    n_units, mean = int(scores.defined.sum()), float(shifted.mean())
    p = float(shift_p(np.array([value]), shifted[:, None])[0])
    delta = value - max(at_least, mean)
    return {
        "n_units": n_units,
        "n_units_passing": int((scores.unit_p() <= assay.alpha).sum()),
        "n_units_by_chance": n_units * reachable_level(assay.alpha, assay.shifts),
        "value": value,
        "shifted_mean": mean,
        "shifted_best": float(shifted.max()),
        "delta": delta,
        "p": p,
        "gate_pass": delta > 0 and p <= assay.alpha,
    }


def summarise_recordings(frames: Mapping[str, pl.DataFrame], config: LPactConfig) -> dict[str, pl.DataFrame]:
    """Tables of recordings in canonical order, and in how many of them each control is seen."""
    tables = {
        table.name: concat(table, [frames[table.name]] if table.name in frames else [])
        for table in (assay_tables.LOW_LEVEL, *ENVELOPES, assay_tables.PROXY)
    }
    seen = {
        ONSET: "a response to word onsets",
        RATE: "a response to word rate",
        assay_tables.STANDALONE_SUMMARY.name: "the acoustic envelope, from the first word to the last",
        assay_tables.FULL_SUMMARY.name: "the acoustic envelope, over the whole recording",
    }
    windows: list[Row] = [
        {"target": target, "window": window_name(window), "metric": METRICS[target]}
        for target in (ONSET, RATE)
        for window in config.assay.onset_windows_ms
    ]
    proxies: list[Row] = [{"proxy": proxy, "label": PROXY_LABELS[proxy]} for proxy in PROXIES]
    summaries: tuple[tuple[Table, Table, list[Row]], ...] = (
        (assay_tables.LOW_LEVEL_SUMMARY, assay_tables.LOW_LEVEL, windows),
        (assay_tables.STANDALONE_SUMMARY, assay_tables.ENVELOPE_STANDALONE, [{}]),
        (assay_tables.FULL_SUMMARY, assay_tables.ENVELOPE_FULL, [{}]),
        (assay_tables.PROXY_SUMMARY, assay_tables.PROXY, proxies),
    )
    for summary, table, expected in summaries:
        made: list[Row] = []
        for entry in config.datasets:
            own = tables[table.name].filter(dataset=entry.name)
            for named, group in _groups(own, expected):
                what = str(named.get("target") or named.get("label") or summary.name)
                counts = _counts(group, config.assay, seen.get(what, what))
                made.append({"dataset": entry.name, **named, **counts})
        tables[summary.name] = concat(summary, [frame(summary, made)])
    return tables


def _groups(own: pl.DataFrame, expected: Sequence[Row]) -> Iterable[tuple[Row, pl.DataFrame]]:
    """Rows by what they are about; for a dataset without recordings, the ``expected`` groups, empty."""
    columns = list(expected[0])
    if not own.height or not columns:
        return [(row, own) for row in expected]
    groups = own.group_by(columns, maintain_order=True)
    return [(dict(zip(columns, key, strict=True)), group) for key, group in groups]


def _counts(group: pl.DataFrame, assay: AssayConfig, seen: str) -> Row:
    computed = group.filter(reason=Reason.OK.value)
    n, n_passing = computed.height, int(computed["gate_pass"].sum())
    reason = Reason.OK if n else most_frequent_reason(group["reason"])
    chance = passes_by_chance(n_passing, n, reachable_level(assay.alpha, assay.shifts))
    passes = n > 0 and chance <= assay.alpha
    of = f"{n_passing} of {n} recordings"
    if n < group.height:
        of += f" ({group.height - n} not computed)"
    sentence = f"Not shown, {of} pass, which chance allows: {seen}."
    if passes:
        sentence = f"Seen in {of}, more than chance allows: {seen}."
    if not n:
        sentence = f"Not computed: {reason.explanation[0].lower()}{reason.explanation[1:]}"
    return {
        "n_recordings": group.height,
        "n_computed": n,
        "n_passing": n_passing,
        "median_value": computed["value"].median(),
        "median_delta": computed["delta"].median(),
        "p_by_chance": chance if n else None,
        "gate": ("pass" if passes else "no") if n else "not_computed",
        "reason": reason,
        "interpretation": sentence,
    }
