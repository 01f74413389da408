"""Tables of level 2."""

from __future__ import annotations

from lpact.tables import (
    CONTEXT,
    CONTEXT_KEY,
    RECORDING,
    RECORDING_KEY,
    Column,
    Table,
    reason,
)

_ALIGNMENT = Column("alignment", "str", "Alignment measure.")
_PROFILE = Column("profile", "str", "Profile similarity.")
_UNIT = Column("unit", "str", "Brain unit.")
_HASH = Column("unit_order_hash", "str", "Hash of the canonical unit order.")

BRAIN_UNIT_INDEX = Table(
    "relational/brain_unit_index",
    "One row per recording and unit: its place in the canonical order.",
    (*RECORDING_KEY, "unit"),
    (
        *RECORDING,
        _UNIT,
        Column("unit_index", "int", "Place in the canonical order, from 0."),
        Column("region", "str", "Region label."),
        Column("x_mm", "float", "Coordinate.", "mm", nullable=True),
        Column("y_mm", "float", "Coordinate.", "mm", nullable=True),
        Column("z_mm", "float", "Coordinate.", "mm", nullable=True),
        Column(
            "coordinate_frame",
            "str",
            "Frame of the coordinates, such as `MNI152NLin2009cAsym` or `head`; empty where not known.",
        ),
        _HASH,
    ),
)

BRAIN_PATTERNS = Table(
    "relational/brain_alignment_patterns",
    "One row per recording, measure and unit: the unit's relations to all units, and how reliable they are.",
    (*RECORDING_KEY, "alignment", "unit"),
    (
        *RECORDING,
        _ALIGNMENT,
        _UNIT,
        Column("unit_index", "int", "Place in the canonical order, from 0."),
        _HASH,
        Column("pattern", "list[float]", "Alignment with every unit; null at the unit itself."),
        Column(
            "split_half_reliability",
            "float",
            "Correlation of the two halves' patterns.",
            nullable=True,
        ),
        reason(),
    ),
)

HALF_PATTERNS = Table(
    "relational/brain_half_patterns",
    "One row per recording, measure, half and unit: the patterns of the split halves.",
    (*RECORDING_KEY, "alignment", "half", "unit"),
    (
        *RECORDING,
        _ALIGNMENT,
        Column("half", "int", "0 or 1: contiguous blocks dealt alternately."),
        _UNIT,
        _HASH,
        Column("pattern", "list[float]", "Alignment with every unit; null at the unit itself."),
    ),
)

MODEL_PATTERNS = Table(
    "relational/model_alignment_patterns",
    "One row per context, measure, condition and draw: the model's alignment with every unit.",
    (*CONTEXT_KEY, "alignment", "condition", "draw"),
    (
        *CONTEXT,
        _ALIGNMENT,
        Column("condition", "str", "`real`, `nuisance` or a control."),
        Column("draw", "int", "Draw number of a random control; 0 otherwise."),
        _HASH,
        Column("pattern", "list[float]", "Alignment with every unit, in canonical unit order."),
    ),
)

PROFILE_SCORES = Table(
    "relational/profile_similarity_scores",
    "One row per context, unit, measure, profile similarity and condition (mean over draws).",
    (*CONTEXT_KEY, "unit", "alignment", "profile", "condition"),
    (
        *CONTEXT,
        _UNIT,
        _ALIGNMENT,
        _PROFILE,
        Column("condition", "str", "`real`, `nuisance` or a control."),
        Column("counted", "bool", "Whether the `paper` gate profile counts it (true for `real`)."),
        Column(
            "similarity",
            "float",
            "Similarity of the model's and the unit's pattern.",
            nullable=True,
        ),
        Column("n_draws", "int", "Draws with a finite similarity."),
    ),
)

PROFILE_DELTAS = Table(
    "relational/profile_similarity_deltas",
    "One row per context, unit, measure and profile similarity: the real pattern against the best control's.",
    (*CONTEXT_KEY, "unit", "alignment", "profile"),
    (
        *CONTEXT,
        _UNIT,
        _ALIGNMENT,
        _PROFILE,
        Column("brain_patterns_from", "str", "same_run, other_run or other_subject."),
        Column("model_unit_order_hash", "str", "Unit order of the model pattern."),
        Column("brain_unit_order_hash", "str", "Unit order of the brain pattern."),
        Column(
            "split_half_reliability",
            "float",
            "Reliability of the unit's own pattern.",
            nullable=True,
        ),
        Column("real_similarity", "float", "Similarity of the real pattern.", nullable=True),
        Column(
            "best_control", "str", "Counted control with the highest similarity.", nullable=True
        ),
        Column(
            "best_control_similarity",
            "float",
            "Its similarity (or the mean of the top three).",
            nullable=True,
        ),
        Column("delta_rel", "float", "real − best control.", nullable=True),
        Column("confirmatory", "bool", "Whether the dataset is confirmatory."),
        reason(),
        Column("gate_pass", "bool", "Whether the row passes.", decided=True),
        Column("label", "str", "Row label.", decided=True),
    ),
)

RELATIONAL_NULLS = Table(
    "relational/relational_null_draws",
    "One row per context, measure, profile similarity, test and rival: the relational statistic, and its draws.",
    (*CONTEXT_KEY, "alignment", "profile", "test", "against"),
    (
        *CONTEXT,
        _ALIGNMENT,
        _PROFILE,
        Column(
            "test",
            "str",
            "`surrogate`: draws of a surrogate control. `unit_order`: the real pattern in shuffled unit orders. "
            "`swap`: real and rival pattern exchanged at random units.",
        ),
        Column("against", "str", "Control, `nuisance`, or `unit_order`."),
        Column(
            "observed",
            "float",
            "Mean similarity over units times the pattern's spread; for `swap`, real − rival.",
            nullable=True,
        ),
        Column("draws", "list[float]", "The same in every draw; null where undefined."),
        Column(
            "advantage",
            "float",
            "Mean over units of the real similarity less the mean over draws (for `swap`, the rival's).",
            nullable=True,
        ),
        reason(),
    ),
)

RELATIONAL_SUMMARY = Table(
    "relational/relational_subject_run_summary",
    "One row per context, measure and profile similarity, over units.",
    (*CONTEXT_KEY, "alignment", "profile"),
    (
        *CONTEXT,
        _ALIGNMENT,
        _PROFILE,
        Column("n_units", "int", "Unit rows."),
        Column("mean_real_similarity", "float", "Mean over units.", nullable=True),
        Column("mean_delta_rel", "float", "Mean over units.", nullable=True),
        Column(
            "pass_fraction", "float", "Share of unit rows that pass.", nullable=True, decided=True
        ),
        reason(),
    ),
)

TABLES = (
    BRAIN_UNIT_INDEX,
    BRAIN_PATTERNS,
    HALF_PATTERNS,
    MODEL_PATTERNS,
    PROFILE_SCORES,
    PROFILE_DELTAS,
    RELATIONAL_NULLS,
    RELATIONAL_SUMMARY,
)
