"""The table ``recordings.toml`` of a folder of arrays."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lpact.datasets._files.strict import About, Name, Text, read_toml, validate_toml
from lpact.datasets.base import RecordingId
from lpact.datasets.validate import check_unique
from lpact.errors import InputError, require_known
from lpact.validation import Strict

SERIES_AXES = (("time", "unit"), ("unit", "time"))
EPOCH_AXES = tuple(permutations(("lag", "word", "unit")))
ITEM_AXES = (("item", "unit"), ("unit", "item"))

_OF_SERIES = ("sampling_rate_hz", "sampling_rate_key", "start_s", "word_onsets", "triggers", "bad_spans", "confounds")

Positive = Annotated[float, Field(gt=0.0)]


class StimulusEntry(Strict):
    """One stimulus: its table of words (or of items that are not words), media and transcripts."""

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
    def _consistent(self) -> StimulusEntry:
        if (self.words is None) == (self.items is None):
            raise ValueError("give a table of words, or one of items")
        if (self.sentences == "pauses") != (self.pause_s is not None):
            raise ValueError("give 'pause_s' with sentences = \"pauses\", and only then")
        return self

    @property
    def table(self) -> str:
        """The table of words or items."""
        return self.words or self.items or ""


class RecordingEntry(Strict):
    """One recording: the file of its array, and the meaning of its axes and times."""

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
                'give "time,unit" or "unit,time"; lag, word and unit in any order; or "item,unit" or "unit,item"'
            )
        return ",".join(names)

    @model_validator(mode="after")
    def _consistent(self) -> RecordingEntry:
        if self.word_onsets and self.triggers:
            raise ValueError("'word_onsets' and 'triggers' both time the words; give one")
        epochs = self.axis_names in EPOCH_AXES
        if epochs != (self.lags_ms is not None):
            raise ValueError("give 'lags_ms' with the axes lag, word and unit, and only then")
        given = [name for name in _OF_SERIES if getattr(self, name) is not None]
        if (epochs or self.axis_names in ITEM_AXES) and given:
            raise ValueError(f"epochs have no clock; leave out {', '.join(given)}")
        return self

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Axes in the order of the array; empty if the file defines it."""
        return tuple(self.axes.split(",")) if self.axes else ()

    @property
    def id(self) -> RecordingId:
        """Identity of the recording."""
        return RecordingId(self.subject, self.session, self.run, self.stimulus)

    def path(self, name: str) -> str:
        """Fill in subject, session, run and stimulus, in braces in a file name."""
        for field in ("subject", "session", "run", "stimulus"):
            name = name.replace("{" + field + "}", str(getattr(self, field)))
        return name


class ArraysTable(Strict):
    """The whole table."""

    dataset: About
    stimuli: Annotated[tuple[StimulusEntry, ...], Field(min_length=1)]
    recordings: Annotated[tuple[RecordingEntry, ...], Field(min_length=1)]


def read_table(path: Path) -> ArraysTable:
    """Read ``recordings.toml``; ``[defaults]`` fills in what a recording does not give."""
    values = read_toml(path, InputError)
    recordings, defaults = values.get("recordings"), values.pop("defaults", {})
    for key in defaults:
        where = f"{path}, [defaults]"
        require_known(key, RecordingEntry.model_fields, "key of [[recordings]]", where=where)
    if isinstance(recordings, list) and isinstance(defaults, dict):
        values["recordings"] = [{**defaults, **entry} if isinstance(entry, dict) else entry for entry in recordings]
    table = validate_toml(ArraysTable, values, path, InputError)
    ids = [stimulus.id for stimulus in table.stimuli]
    remedy = "rename or remove one of them"
    check_unique(ids, where=f"{path}, [[stimuli]]", remedy=remedy, error=InputError)
    for recording in table.recordings:
        where = f"{path}, [[recordings]] {recording.id}, key 'stimulus'"
        require_known(recording.stimulus, ids, "stimulus", where=where)
    return table
