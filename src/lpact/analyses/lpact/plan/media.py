"""Stimulus media audit: which recordings have sound, which do not and why, and which proxies exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from lpact.codes import Reason
from lpact.datasets.base import AbsentMedium, RecordingId, SourceFile, Stimulus
from lpact.datasets.catalogue import Expected
from lpact.inputs.media import ACOUSTIC_COLUMNS, ENVELOPE, KINDS, NOT_OFFERED, StimulusMedia, media_of

Row = dict[str, object]

TRUE_SOURCES = ("envelope_in_dataset", "wav_file")
"""Sources that give a true envelope of the sound."""

SOURCES = (*TRUE_SOURCES, "other_audio_file", "video_file", "transcript_columns", "word_times")
_MEDIUM_OF = {"video_file": "video", "other_audio_file": "audio"}
_CONVERT = "holds the sound; write it as a WAV file to use it"


@dataclass(frozen=True)
class _Option:
    """One way to control for sound, from any of its sources."""

    name: str
    sources: tuple[str, ...]
    diagnostic: bool
    label: str
    use: str


_OPTIONS = (
    _Option(
        "true_waveform_envelope",
        TRUE_SOURCES,
        False,
        "acoustic envelope",
        "nuisance feature, and positive control of sound; where it is blocked, only after media that you may use are "
        "added",
    ),
    _Option(
        "transcript_derived_proxy",
        ("transcript_columns",),
        True,
        "transcript-derived low-level proxy, not an acoustic envelope",
        "diagnostic: what the makers of the dataset measured from the sound, one value per word",
    ),
    _Option(
        "speech_activity_boxcar",
        ("word_times",),
        True,
        "speech-activity boxcar from word times, not an acoustic envelope",
        "diagnostic of timing and speech activity, in addition to word-onset controls",
    ),
    _Option(
        "word_onset_control",
        ("word_times",),
        True,
        "word-onset low-level control, not an acoustic envelope",
        "low-level positive control while the sound is not available",
    ),
)

PROXY_LABELS = {option.name: option.label for option in _OPTIONS if option.diagnostic}
"""Name under which a proxy is always shown."""


class MediaAudit:
    """Media of one dataset, recording by recording; no data are kept."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self._stimuli: dict[str, StimulusMedia] = {}
        self._recordings: list[RecordingId] = []

    def add(self, recording: RecordingId, stimulus: Callable[[], Stimulus]) -> None:
        """Add a recording and its stimulus."""
        self._recordings.append(recording)
        self.add_stimulus(recording.stimulus, stimulus)

    def add_stimulus(self, stimulus_id: str, stimulus: Callable[[], Stimulus]) -> None:
        """Add a stimulus, which is read once."""
        if stimulus_id not in self._stimuli:
            self._stimuli[stimulus_id] = media_of(stimulus())

    def mapping(self) -> list[Row]:
        """One row per recording and medium."""
        rows: list[Row] = []
        for recording, kind in product(self._recordings, self._kinds()):
            media = self._stimuli[recording.stimulus]
            present = {"media": kind, "present": kind in media.present}
            row = {"dataset": self.dataset, **asdict(recording), **present, **_missing(media, kind)}
            rows.append(row | {"path": media.present.get(kind, "")})
        return rows

    def summary(self) -> list[Row]:
        """One row per medium."""
        rows: list[Row] = []
        for kind in self._kinds():
            having = {name for name, media in self._stimuli.items() if kind in media.present}
            lacking = [m for name, m in self._stimuli.items() if name not in having]
            why = _missing(lacking[0] if lacking else None, kind)
            if not self._stimuli:
                why = {"reason": Reason.DATASET_HAS_NO_RECORDING, "detail": ""}
            rows.append(
                {
                    "dataset": self.dataset,
                    "media": kind,
                    "n_recordings": len(self._recordings),
                    "n_recordings_present": sum(r.stimulus in having for r in self._recordings),
                    "n_stimuli": len(self._stimuli),
                    "n_stimuli_present": len(having),
                    **why,
                }
            )
        return rows

    def sources(self) -> list[Row]:
        """One row per possible source of an acoustic control."""
        rows: list[Row] = []
        for source in SOURCES:
            found = [m.sources[source] for m in self._stimuli.values() if source in m.sources]
            why = self._why_no_source(source)
            convert = f" {_CONVERT}" if source in _MEDIUM_OF else ""
            rows.append(
                {
                    "dataset": self.dataset,
                    "source": source,
                    "n_stimuli": len(self._stimuli),
                    "n_stimuli_with": len(found),
                    "true_envelope": bool(found) and source in TRUE_SOURCES,
                    "reason": Reason.OK if found else why.reason,
                    "detail": f"{found[0]}{convert}" if found else why.detail,
                }
            )
        return rows

    def proxies(self, elsewhere: Sequence[str]) -> list[Row]:
        """One row per way to control for sound; ``elsewhere`` are other datasets of the study with true envelopes."""
        true = bool(elsewhere)
        other: Row = {
            "dataset": self.dataset,
            "option": "envelope_of_another_dataset",
            "status": "available" if true else "blocked",
            "true_envelope": true,
            "diagnostic": False,
            "reason": Reason.OK if true else Reason.MEDIA_NOT_OFFERED,
            "label": "acoustic envelope, of the named dataset only",
            "recommended_use": "shows that the assay finds sound where there is some; does not replace the sound of "
            "this dataset",
            "detail": ", ".join(elsewhere) or "no other dataset of the study has sound",
        }
        return [*(self._option_row(option) for option in _OPTIONS), other]

    @property
    def has_true_envelope(self) -> bool:
        """Whether some stimulus has an envelope of its sound."""
        return any(source in m.sources for m in self._stimuli.values() for source in TRUE_SOURCES)

    def _kinds(self) -> list[str]:
        others = {k for m in self._stimuli.values() for k in (*m.present, *m.absent)} - set(KINDS)
        return [*KINDS, *sorted(others)]

    def _why_no_source(self, source: str) -> AbsentMedium:
        if source == "word_times":
            return AbsentMedium(Reason.NUISANCE_NOT_OFFERED, "no words")
        if source == "transcript_columns":
            detail = f"no column of {', '.join(ACOUSTIC_COLUMNS)}"
            return AbsentMedium(Reason.NUISANCE_NOT_OFFERED, detail)
        kind = _MEDIUM_OF.get(source, ENVELOPE)
        known = [m.absent[kind] for m in self._stimuli.values() if kind in m.absent]
        return known[0] if known else NOT_OFFERED

    def _option_row(self, option: _Option) -> Row:
        having = [m for m in self._stimuli.values() if any(s in m.sources for s in option.sources)]
        whole = bool(having) and len(having) == len(self._stimuli)
        status = "available_diagnostic" if option.diagnostic else "available"
        if not whole:
            status = "partial" if having else "blocked"
        why = self._why_no_source(option.sources[-1])
        detail = why.detail
        if having:
            made_from = next(having[0].sources[s] for s in option.sources if s in having[0].sources)
            detail = f"{len(having)} of {len(self._stimuli)} stimuli; the first: {made_from}"
        return {
            "dataset": self.dataset,
            "option": option.name,
            "status": status,
            "true_envelope": bool(having) and not option.diagnostic,
            "diagnostic": option.diagnostic and bool(having),
            "reason": Reason.OK if having else why.reason,
            "label": option.label,
            "recommended_use": option.use,
            "detail": detail,
        }


def _missing(media: StimulusMedia | None, kind: str) -> Row:
    if media is None or kind in media.present:
        return {"reason": Reason.OK, "detail": ""}
    why = media.why_not(kind)
    return {"reason": why.reason, "detail": why.detail}


def release_rows(dataset: str, layout: Iterable[Expected], files: Sequence[SourceFile]) -> list[Row]:
    """One row per part of the official layout: released or not, and what of it was read."""
    rows: list[Row] = []
    for part in layout:
        own = [file.n_bytes for file in files if part.holds(file.path)]
        released = not part.boundary
        rows.append(
            {
                "dataset": dataset,
                "part": part.what,
                "patterns": list(part.patterns),
                "needed": part.needed and released,
                "released": released,
                "n_files": len(own),
                "n_bytes": sum(own),
                "status": "read" if own else "not_read" if released else "not_released",
                "stand_in": part.boundary,
            }
        )
    return rows
