"""Options of the reader of BIDS datasets."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lpact.registry import PluginOptions

EVENTS = "events"
"""Value of the option ``words`` that means rows of events.tsv."""


class BidsOptions(PluginOptions):
    """Options of the reader."""

    datatype: Literal["", "meg", "eeg", "ieeg"] = Field(
        "", description="Kind of recordings; empty if the dataset has only one."
    )
    task: str = Field(
        "",
        description="Task of the recordings (`task-<label>`), without `task-`; empty if the dataset has only one.",
    )
    subjects: tuple[str, ...] = Field((), description="Subjects that are read; empty for all.")
    sessions: tuple[str, ...] = Field((), description="Sessions that are read; empty for all.")
    runs: tuple[str, ...] = Field((), description="Runs that are read; empty for all.")
    acquisition: str = Field("", description="Only recordings with this `acq-<label>`.")
    processing: str = Field("", description="Only recordings with this `proc-<label>`.")
    description: str = Field("", description="Only recordings with this `desc-<label>`.")
    derivative: str = Field(
        "", description="Folder of a derivative below the dataset's, such as `derivatives/prep`."
    )
    channel_types: tuple[Literal["mag", "grad", "eeg", "ecog", "seeg", "dbs"], ...] = Field(
        (), description="Types of channels that are units; empty for all neural ones of the kind."
    )
    space: str = Field("", description="Space of the electrode positions (`space-<label>`).")
    region_column: str = Field(
        "", description="Column of electrodes.tsv with the region; empty to take a known one."
    )
    words: str = Field(
        EVENTS,
        description="`events`: words are rows of events.tsv. Otherwise a TSV or CSV file in the folder with the words "
        "on the clock of the stimulus; `{task}`, `{run}`, `{session}` and `{subject}` stand for a recording's.",
    )
    event_columns: tuple[str, ...] = Field(
        ("trial_type", "value"), description="Columns of events.tsv that say what an event is."
    )
    word_trial_type: str = Field(
        "word", description="What an event is that stands for a word (`words = events`)."
    )
    word_column: str = Field("word", description="Column with the word.")
    onset_column: str = Field("onset", description="Column of the words file with onsets in s.")
    offset_column: str = Field("offset", description="Column of the words file with ends in s.")
    sentence_column: str = Field("", description="Column that numbers or names sentences.")
    story_column: str = Field("", description="Column that names stories.")
    start_event: str = Field(
        "",
        description="Event at which the stimulus' time is 0. Empty: the recording's first sample.",
    )
    sync_event: str = Field(
        "",
        description="Events whose time in the stimulus is known; with a words file, drift between clocks is followed.",
    )
    sync_column: str = Field(
        "stimulus_time", description="Column with the time of a sync event in the stimulus, in s."
    )
    audio: str = Field(
        "", description="Audio file in the folder, on the clock of the stimulus; as for `words`."
    )
