"""Tables of positive controls that use the stimulus: word onsets, word rate, acoustic envelope and its proxies."""

from __future__ import annotations

from lpact.tables import RECORDING, RECORDING_KEY, Column, Table, reason

_DATASET = Column("dataset", "str", "Dataset name in the study file.")
_KIND = Column(
    "kind",
    "str",
    "How the signal meets words: `time_series`, `trs` (one sample a TR) or `epochs`.",
)
_TARGET = Column("target", "str", "`word_onset` or `word_rate`.")
_WINDOW = Column("window", "str", "Window after word onset, or delay on the grid of TRs.")
_METRIC = Column(
    "metric",
    "str",
    "`event_effect` (mean over units, in standard deviations of the signal, without sign) or `pearson` (held-out, "
    "median over units).",
)
_UNITS = (
    Column("n_units", "int", "Units with a score."),
    Column("n_units_passing", "int", "Units with p at most `assay.alpha`, one by one."),
    Column("n_units_by_chance", "float", "Units that would do so by chance."),
)
_P = Column(
    "p",
    "float",
    "Share of shifts, the real place counted, that reach the value: (1 + reaching) / (1 + shifts).",
    nullable=True,
)
_GATE = Column("gate_pass", "bool", "Whether the row passes; false where it was not computed.")

LOW_LEVEL = Table(
    "controls/low_level_neural_positive_control_gate",
    "One row per recording, target and window: does the signal know when words begin, and how fast they come?",
    (*RECORDING_KEY, "target", "window"),
    (
        *RECORDING,
        _KIND,
        _TARGET,
        _WINDOW,
        _METRIC,
        Column("n_events", "int", "Words, TRs or epochs that it rests on."),
        *_UNITS,
        Column("value", "float", "Score at the real onsets or rates.", nullable=True),
        Column("shifted_mean", "float", "Mean score over circular shifts.", nullable=True),
        Column("shifted_best", "float", "Best score of a circular shift.", nullable=True),
        Column("delta", "float", "`value` minus `shifted_mean`.", nullable=True),
        _P,
        _GATE,
        reason(),
    ),
)

_FOLLOWED = (
    Column("stimulus", "str", "Stimulus that was presented."),
    _KIND,
    Column("source", "str", "What it was made from; empty where there is nothing."),
    Column("n_rows", "int", "Samples that it rests on, at `rate_hz`."),
    Column("rate_hz", "float", "Rate at which signal and stimulus meet.", "Hz", nullable=True),
    *_UNITS,
    Column("value", "float", "Held-out Pearson correlation, median over units.", nullable=True),
    Column("value_mean", "float", "The same, mean over units.", nullable=True),
    Column("reversed", "float", "The same, of the course run backwards.", nullable=True),
    Column("shifted_mean", "float", "The same, mean over circular shifts.", nullable=True),
    Column("shifted_best", "float", "The same, of the best circular shift.", nullable=True),
    Column(
        "delta",
        "float",
        "`value` minus the better of `reversed` and `shifted_mean`.",
        nullable=True,
    ),
    _P,
    Column(
        "best_lag_ms",
        "float",
        "Lag at which the course alone is nearest to the signal.",
        "ms",
        nullable=True,
    ),
    _GATE,
    reason(),
    Column("detail", "str", "Why it could not be computed, in words; else empty."),
)

ENVELOPE_STANDALONE = Table(
    "controls/acoustic_envelope_standalone_positive_control",
    "One row per recording: does the signal follow the acoustic envelope, from the first word to the last?",
    RECORDING_KEY,
    (*RECORDING, *_FOLLOWED),
)
ENVELOPE_FULL = Table(
    "controls/acoustic_envelope_full_length_positive_control",
    "One row per recording: does the signal follow the acoustic envelope, over all of the recording that has sound?",
    RECORDING_KEY,
    (*RECORDING, *_FOLLOWED),
)
PROXY = Table(
    "controls/low_level_nuisance_sanity_proxy",
    "One row per recording and proxy: does the signal follow what stands in where the sound is missing? Never an "
    "acoustic envelope.",
    (*RECORDING_KEY, "proxy"),
    (
        *RECORDING,
        Column("proxy", "str", "Option of `controls/acoustic_proxy_alternatives`."),
        Column("label", "str", "What it must be called wherever it is shown."),
        *_FOLLOWED,
    ),
)

_SUMMARY = (
    Column("n_recordings", "int", "Recordings of the dataset."),
    Column("n_computed", "int", "Recordings with a result."),
    Column("n_passing", "int", "Recordings that pass."),
    Column("median_value", "float", "Median of `value` over recordings.", nullable=True),
    Column("median_delta", "float", "Median of `delta` over recordings.", nullable=True),
    Column(
        "p_by_chance",
        "float",
        "How likely as many recordings, or more, pass where nothing is there.",
        nullable=True,
    ),
    Column(
        "gate",
        "str",
        "`pass` (more recordings pass than chance allows, at `assay.alpha`), `no` or `not_computed`.",
    ),
    reason(),
    Column("interpretation", "str", "The row in words."),
)

LOW_LEVEL_SUMMARY = Table(
    "controls/main_table_low_level_neural_positive_control_gate",
    "One row per dataset, target and window: in how many recordings word onsets or word rate are seen.",
    ("dataset", "target", "window"),
    (_DATASET, _TARGET, _WINDOW, _METRIC, *_SUMMARY),
)
STANDALONE_SUMMARY = Table(
    "controls/main_table_acoustic_envelope_standalone_positive_control",
    "One row per dataset: in how many recordings the envelope is seen, from the first word to the last.",
    ("dataset",),
    (_DATASET, *_SUMMARY),
)
FULL_SUMMARY = Table(
    "controls/main_table_acoustic_envelope_full_length_positive_control",
    "One row per dataset: in how many recordings the envelope is seen, over the whole recording.",
    ("dataset",),
    (_DATASET, *_SUMMARY),
)
PROXY_SUMMARY = Table(
    "controls/main_table_low_level_nuisance_sanity_proxy",
    "One row per dataset and proxy: in how many recordings without sound the proxy is seen. A diagnostic, never an "
    "acoustic envelope.",
    ("dataset", "proxy"),
    (
        _DATASET,
        Column("proxy", "str", "Option of `controls/acoustic_proxy_alternatives`."),
        Column("label", "str", "What it must be called wherever it is shown."),
        *_SUMMARY,
    ),
)

TABLES: tuple[Table, ...] = (
    LOW_LEVEL,
    LOW_LEVEL_SUMMARY,
    ENVELOPE_STANDALONE,
    STANDALONE_SUMMARY,
    ENVELOPE_FULL,
    FULL_SUMMARY,
    PROXY,
    PROXY_SUMMARY,
)
