"""Tables of positive controls that use brains and implanted signals."""

from __future__ import annotations

from lpact.tables import Column, Table, reason

_DATASET = Column("dataset", "str", "Dataset name in the study file.")
_ROLE = Column("role", "str", "Role of the dataset after the audit.")
_ALIGNMENT = Column("alignment", "str", "Alignment measure.")
_PROFILE = Column("profile", "str", "Profile similarity.")
_COMPARISON = Column(
    "comparison", "str", "`run_to_run`, `session_to_session` or `subject_to_subject`."
)
_INTERPRETATION = Column("interpretation", "str", "The row in one sentence.")

IMPLANTED, SHAM = "implant", "sham"
"""Arms of the implanted study: with the signal planted, and its twin without."""

IMPLANT = Table(
    "controls/main_table_synthetic_implant_positive_control",
    "One row per arm, gate profile and quantity: a small study with planted signal, and its twin without, through the "
    "study's own gates.",
    ("arm", "gate_profile", "quantity"),
    (
        Column("arm", "str", "`implant` (signal planted) or `sham` (the same study without it)."),
        Column("gate_profile", "str", "Gate profile that judged the row."),
        Column("quantity", "str", "What was measured."),
        Column("quantity_order", "int", "Place of the quantity in the chain, from 0."),
        Column("gate", "str", "Gate that the quantity belongs to, or `integrated`."),
        Column("value", "float", "The number; for `integrated` 1 or 0.", nullable=True),
        Column("gate_pass", "bool", "Whether that gate passes."),
        _INTERPRETATION,
        reason(),
    ),
)

BRAIN_RELIABILITY = Table(
    "controls/main_table_brain_positive_control",
    "One row per dataset, reliability mode and kind: do brains agree with brains?",
    ("dataset", "mode", "kind"),
    (
        _DATASET,
        _ROLE,
        Column("mode", "str", "split_half, run_to_run, session_to_session or subject_to_subject."),
        Column("kind", "str", "`profile`, `response` or `response_to_mean`."),
        Column("n_recordings", "int", "Recordings."),
        Column("n_rows", "int", "Rows of the reliability table."),
        Column("n_valid", "int", "Rows with a reliability."),
        Column("valid_fraction", "float", "Valid rows / rows.", nullable=True),
        Column("median_reliability", "float", "Median over valid rows.", nullable=True),
        Column("n_reliable", "int", "Valid rows at or above `min_reliability`."),
        Column("reliable_share", "float", "Those rows / valid rows.", nullable=True),
        Column(
            "weakest_profile_share",
            "float",
            "The smallest such share of a profile similarity.",
            nullable=True,
        ),
        Column("min_reliability", "float", "Lowest reliability that can bound a score."),
        Column(
            "split_half_alone",
            "bool",
            "Split half, and no other mode of this kind is valid in the dataset: slow drift can inflate it.",
        ),
        Column(
            "gate_pass", "bool", "Whether `weakest_profile_share` reaches `direction_fraction`."
        ),
        _INTERPRETATION,
        reason(),
    ),
)

BRAIN_AS_MODEL = Table(
    "controls/brain_as_model_relational_gate",
    "One row per pair of recordings, unit, measure and profile similarity: a unit's pattern in one recording in a "
    "model's place.",
    (
        "dataset",
        "comparison",
        "source",
        "target",
        "unit",
        "alignment",
        "profile",
    ),
    (
        _DATASET,
        _COMPARISON,
        Column("source", "str", "Recording whose pattern takes the model's place."),
        Column("target", "str", "Recording whose pattern it is compared with."),
        Column("unit", "str", "Brain unit."),
        _ALIGNMENT,
        _PROFILE,
        Column("n_units_shared", "int", "Units that both recordings have."),
        Column(
            "split_half_reliability",
            "float",
            "Of the unit's pattern; the smaller one of the two recordings.",
            nullable=True,
        ),
        Column("similarity", "float", "Similarity of the two patterns.", nullable=True),
        Column(
            "shuffled_similarity",
            "float",
            "Mean similarity over shuffled unit orders of the source.",
            nullable=True,
        ),
        Column("delta", "float", "similarity − shuffled similarity.", nullable=True),
        Column(
            "p_value",
            "float",
            "(1 + shuffled orders with at least this similarity) / (1 + shuffled orders).",
            nullable=True,
        ),
        Column("n_permutations", "int", "Shuffled orders with a finite similarity."),
        Column("gate_pass", "bool", "Whether delta > 0 and the pattern is reliable."),
        reason(),
    ),
)

BRAIN_AS_MODEL_SUMMARY = Table(
    "controls/main_table_brain_as_model_relational_positive_control",
    "One row per dataset, comparison, measure and profile similarity: does a brain in a model's place pass?",
    ("dataset", "comparison", "alignment", "profile"),
    (
        _DATASET,
        _ROLE,
        _COMPARISON,
        _ALIGNMENT,
        _PROFILE,
        Column("n_pairs_possible", "int", "Pairs of recordings that could be compared."),
        Column("n_pairs", "int", "Pairs that were compared."),
        Column("n_rows", "int", "Unit rows with a contrast."),
        Column("n_pass", "int", "Unit rows that pass."),
        Column("pass_share", "float", "Those rows / rows.", nullable=True),
        Column(
            "mean_similarity", "float", "Mean over pairs of the mean over units.", nullable=True
        ),
        Column("mean_delta", "float", "Mean over pairs of the mean over units.", nullable=True),
        Column("median_p_value", "float", "Median over unit rows.", nullable=True),
        Column(
            "p_value",
            "float",
            "Of the mean similarity over pairs and units, against whole units in shuffled orders.",
            nullable=True,
        ),
        Column("n_orders", "int", "Shuffled orders behind `p_value`."),
        Column(
            "ceiling",
            "float",
            "Median split-half reliability of the dataset's recordings.",
            nullable=True,
        ),
        Column(
            "gate_pass",
            "bool",
            "Whether `p_value` is at most `assay.alpha`, enough rows pass and the mean contrast is positive.",
        ),
        _INTERPRETATION,
        reason(),
    ),
)

BRAIN_ORACLE = Table(
    "controls/main_table_brain_as_model_oracle_gate",
    "One row per dataset and comparison: relational pass and ceiling together, over the metric summaries.",
    ("dataset", "comparison"),
    (
        _DATASET,
        _ROLE,
        _COMPARISON,
        Column("n_summaries", "int", "Pairs of measure and profile similarity with a contrast."),
        Column("n_relational_pass", "int", "Summaries that pass the relational gate."),
        Column(
            "n_ceiling_valid",
            "int",
            "Summaries with a ceiling at or above `min_reliability` and a similarity of at least "
            "`min_ceiling_fraction` of it.",
        ),
        Column("n_joint_pass", "int", "Summaries with both."),
        Column("predictive_gate_applicable", "bool", "Always false: no readout is fitted here."),
        Column(
            "mechanism_gate_applicable", "bool", "Always false: a brain has no features to strip."
        ),
        Column(
            "gate_pass", "bool", "Whether more than `summary_majority` of the summaries have both."
        ),
        _INTERPRETATION,
        reason(),
    ),
)

PROFILE_ORDER = Table(
    "controls/main_table_profile_order_positive_control",
    "One row per dataset, measure and profile similarity: does the similarity notice the order of units?",
    ("dataset", "alignment", "profile"),
    (
        _DATASET,
        _ROLE,
        _ALIGNMENT,
        _PROFILE,
        Column("n_recordings", "int", "Recordings with enough units."),
        Column("n_rows", "int", "Unit patterns compared with themselves."),
        Column("median_similarity", "float", "In the right order; 1 by definition.", nullable=True),
        Column("median_shuffled", "float", "In shuffled order.", nullable=True),
        Column("median_delta", "float", "Right − shuffled, median over rows.", nullable=True),
        Column("min_delta", "float", "Smallest over rows.", nullable=True),
        Column(
            "gate_pass",
            "bool",
            "Whether a shuffled pattern stays below `min_ceiling_fraction` of the right one.",
        ),
        _INTERPRETATION,
        reason(),
    ),
)

TABLES = (
    IMPLANT,
    BRAIN_RELIABILITY,
    BRAIN_AS_MODEL,
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    PROFILE_ORDER,
)
