"""The table of a folder of arrays: what ``recordings.toml`` may hold."""

from __future__ import annotations

import tomllib
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from lpact.datasets._files.strict import read_text
from lpact.datasets.base import RecordingId
from lpact.errors import ConfigError, InputError, did_you_mean
from lpact.validation import Strict, validate_model

SERIES_AXES = (("time", "unit"), ("unit", "time"))
EPOCH_AXES = tuple(permutations(("lag", "word", "unit")))
ITEM_AXES = (("item", "unit"), ("unit", "item"))

_OF_SERIES = (
    "sampling_rate_hz",
    "sampling_rate_key",
    "start_s",
    "word_onsets",
    "triggers",
    "bad_spans",
    "confounds",
)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0.0)]


class About(Strict):
    """Provenance of the dataset."""

    source: Text
    version: Text
    licence: Text


class StimulusEntry(Strict):
    """One stimulus: its table of words (or of items that are not words), and what else there is of it."""

    id: Name
    words: Text | None = None
    items: Text | None = None
    columns: dict[str, Text] = Field(default_factory=dict)
    times_in: Literal["s", "ms"] = "s"
    sentences: Literal["column", "punctuation", "pauses"] = "column"
    pause_s: Positive | None = None
    mechanisms: tuple[Text, ...] = ()
    audio: Text | None = None
    audio_start_s: float = 0.0
    video: Text | None = None
    transcripts: Text | None = None

    @model_validator(mode="after")
    def _one_table(self) -> StimulusEntry:
        if (self.words is None) == (self.items is None):
            raise ValueError("a stimulus has a table of words, or one of items; give one of them")
        return self

    @property
    def table(self) -> str:
        """The table of words or items."""
        return self.words or self.items or ""

    @model_validator(mode="after")
    def _pauses(self) -> StimulusEntry:
        if (self.sentences == "pauses") != (self.pause_s is not None):
            raise ValueError("'pause_s' goes with sentences = \"pauses\", and with nothing else")
        return self


class RecordingEntry(Strict):
    """One recording: where its array lies, and what its axes and times mean."""

    subject: Name
    session: Name = "1"
    run: Name = "1"
    stimulus: Name
    file: Text
    key: Text | None = None
    axes: str | None = None
    sampling_rate_hz: Positive | None = None
    sampling_rate_key: Text | None = None
    start_s: float | None = None
    lags_ms: tuple[float, ...] | None = None
    physical_unit: str | None = None
    units: Text | None = None
    unit_column: Text = "id"
    coordinates_in: Literal["mm", "um", "m"] | None = None
    coordinate_frame: str = ""
    comparable_units: bool | None = None
    word_onsets: Text | None = None
    triggers: Text | None = None
    trigger_rule: Literal["linear", "nearest", "next"] = "linear"
    max_trigger_gap_s: Positive | None = None
    first_sample: Literal[0, 1] = 0
    bad_spans: Text | None = None
    confounds: Text | None = None

    @field_validator("axes")
    @classmethod
    def _known_axes(cls, axes: str | None) -> str | None:
        if axes is None:
            return None
        names = tuple(part.strip() for part in axes.split(","))
        if names not in (*SERIES_AXES, *EPOCH_AXES, *ITEM_AXES):
            raise ValueError(
                'axes are "time,unit" or "unit,time"; lag, word and unit in their order; or "item,unit" or "unit,item"'
            )
        return ",".join(names)

    @model_validator(mode="after")
    def _one_way_to_tell_time(self) -> RecordingEntry:
        if self.word_onsets and self.triggers:
            raise ValueError("'word_onsets' and 'triggers' both say when words were; give one")
        epochs = self.axis_names in EPOCH_AXES
        if epochs != (self.lags_ms is not None):
            raise ValueError("'lags_ms' goes with axes lag, word and unit, and with nothing else")
        given = [name for name in _OF_SERIES if getattr(self, name) is not None]
        if (epochs or self.axis_names in ITEM_AXES) and given:
            raise ValueError(f"epochs have no clock of their own; leave out {', '.join(given)}")
        return self

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Axes in the order of the array; none where the file says it."""
        return tuple(self.axes.split(",")) if self.axes else ()

    @property
    def id(self) -> RecordingId:
        """Identity of the recording."""
        return RecordingId(self.subject, self.session, self.run, self.stimulus)

    def path(self, name: str) -> str:
        """Fill in subject, session and run where a file name has them in braces."""
        for field in ("subject", "session", "run", "stimulus"):
            name = name.replace("{" + field + "}", str(getattr(self, field)))
        return name


class ArraysTable(Strict):
    """The whole table."""

    dataset: About
    stimuli: Annotated[tuple[StimulusEntry, ...], Field(min_length=1)]
    recordings: Annotated[tuple[RecordingEntry, ...], Field(min_length=1)]


def read_table(path: Path) -> ArraysTable:
    """Read ``recordings.toml``; keys under ``[defaults]`` count for every recording that does not give them."""
    try:
        values = tomllib.loads(read_text(path, InputError))
    except (ValueError, RecursionError) as problem:
        raise InputError(
            "a file is not valid TOML",
            where=str(path),
            got=str(problem),
            expected="TOML 1.0",
            remedy="fix the named line",
        ) from None
    recordings = values.get("recordings")
    if isinstance(recordings, list):
        defaults = _defaults(values.pop("defaults", {}), path)
        values["recordings"] = [
            {**defaults, **entry} if isinstance(entry, dict) else entry for entry in recordings
        ]
    try:
        table = validate_model(ArraysTable, values, where=str(path), what="the table of arrays is")
    except ConfigError as problem:
        raise InputError(
            problem.what,
            where=problem.where,
            expected="keys as in docs/how-to/datasets/arrays.md (entries are counted from 0)",
            remedy="fix the listed keys",
        ) from None
    _check_stimuli(table, path)
    return table


def _defaults(defaults: Any, path: Path) -> dict[str, Any]:
    known = RecordingEntry.model_fields
    keys = defaults if isinstance(defaults, dict) else {"defaults": defaults}
    for key in keys:
        if key not in known:
            raise InputError(
                f"unknown key '{key}'",
                where=f"{path}, [defaults], key '{key}'",
                got=key,
                expected="keys of [[recordings]]: " + ", ".join(known),
                remedy=did_you_mean(key, known),
            )
    return dict(keys)


def _check_stimuli(table: ArraysTable, path: Path) -> None:
    ids = [stimulus.id for stimulus in table.stimuli]
    for stimulus in ids:
        if ids.count(stimulus) > 1:
            raise InputError(
                f"the stimulus '{stimulus}' is listed more than once",
                where=f"{path}, [[stimuli]]",
                got=f"'{stimulus}' {ids.count(stimulus)} times",
                expected="every stimulus once",
                remedy="rename or remove one of them",
            )
    for recording in table.recordings:
        if recording.stimulus not in ids:
            raise InputError(
                "a recording names a stimulus that is not there",
                where=f"{path}, [[recordings]] {recording.id}, key 'stimulus'",
                got=recording.stimulus,
                expected="the id of one of [[stimuli]]",
                remedy=did_you_mean(recording.stimulus, ids),
            )
