"""Tables of the stimulus media audit: what was heard or seen, what of it is at hand, and what may stand in."""

from __future__ import annotations

from lpact.tables import RECORDING, RECORDING_KEY, Column, Table, reason

_DATASET = Column("dataset", "str", "Dataset name in the study file.")
_TRUE_ENVELOPE = Column(
    "true_envelope", "bool", "Whether an envelope of the sound itself can be had from it."
)

STIMULUS_MEDIA = Table(
    "controls/stimulus_media_mapping",
    "One row per recording and medium: which stimulus media are available, which are missing and why.",
    (*RECORDING_KEY, "media"),
    (
        *RECORDING,
        Column("stimulus", "str", "Stimulus that was presented."),
        Column("media", "str", "`audio_envelope`, `audio`, `video` or another kind."),
        Column("present", "bool", "Whether the source offers it."),
        reason(),
        Column("path", "str", "Path or description; empty when missing."),
        Column("detail", "str", "Why it is missing, in words; empty when present or not known."),
    ),
)

MEDIA_SUMMARY = Table(
    "controls/main_table_stimulus_media_mapping",
    "One row per dataset and medium: for how many recordings and stimuli it is available.",
    ("dataset", "media"),
    (
        _DATASET,
        Column("media", "str", "`audio_envelope`, `audio`, `video` or another kind."),
        Column("n_recordings", "int", "Recordings of the dataset."),
        Column("n_recordings_present", "int", "Recordings whose stimulus has it."),
        Column("n_stimuli", "int", "Stimuli of the dataset."),
        Column("n_stimuli_present", "int", "Stimuli that have it."),
        reason(),
        Column("detail", "str", "Why it is missing, in words; empty when present or not known."),
    ),
)

RELEASE_AUDIT = Table(
    "controls/release_audit",
    "One row per dataset and part of its official layout: released or not, and what of it was read.",
    ("dataset", "part"),
    (
        _DATASET,
        Column("part", "str", "Part of the layout, in words."),
        Column("patterns", "list[str]", "Where it lies in the folder, as alternative globs."),
        Column("needed", "bool", "Whether a study cannot do without it."),
        Column("released", "bool", "Whether the official release holds it."),
        Column("n_files", "int", "Files of this part that the dataset was read from."),
        Column("n_bytes", "int", "Their size.", "bytes"),
        Column("status", "str", "`read`, `not_read` or `not_released`."),
        Column("stand_in", "str", "What may stand in where it is not released; else empty."),
    ),
)

AUDIO_SOURCES = Table(
    "controls/audio_source_audit",
    "One row per dataset and possible source of an acoustic control: how many stimuli have it.",
    ("dataset", "source"),
    (
        _DATASET,
        Column(
            "source",
            "str",
            "`envelope_in_dataset`, `wav_file`, `other_audio_file`, `video_file`, `transcript_columns` or "
            "`word_times`.",
        ),
        Column("n_stimuli", "int", "Stimuli of the dataset."),
        Column("n_stimuli_with", "int", "Stimuli that have this source."),
        _TRUE_ENVELOPE,
        reason(),
        Column("detail", "str", "The first one found, or why there is none."),
    ),
)

ACOUSTIC_PROXIES = Table(
    "controls/acoustic_proxy_alternatives",
    "One row per dataset and way to control for sound: possible or not, and what it may be called.",
    ("dataset", "option"),
    (
        _DATASET,
        Column(
            "option",
            "str",
            "`true_waveform_envelope`, `transcript_derived_proxy`, `speech_activity_boxcar`, `word_onset_control` or "
            "`envelope_of_another_dataset`.",
        ),
        Column("status", "str", "`available`, `available_diagnostic`, `partial` or `blocked`."),
        _TRUE_ENVELOPE,
        Column("diagnostic", "bool", "Whether it can serve as a diagnostic only."),
        reason(),
        Column("label", "str", "What it must be called wherever it is shown."),
        Column("recommended_use", "str", "What it is good for, and what not."),
        Column("detail", "str", "What it would be made from, or why it cannot be."),
    ),
)

TABLES = (STIMULUS_MEDIA, MEDIA_SUMMARY, RELEASE_AUDIT, AUDIO_SOURCES, ACOUSTIC_PROXIES)
