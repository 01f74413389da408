"""Tables of the robustness analyses."""

from __future__ import annotations

from lpact.tables import RECORDING, RECORDING_KEY, Column, Table, reason

_DATASET = Column("dataset", "str", "Dataset name in the study file.")
_GATE_PROFILE = Column("gate_profile", "str", "Gate profile that the claims are judged by.")
_N_CLAIMS = Column("n_claims", "int", "Claims.")
_N_INTEGRATED = Column("n_integrated", "int", "Claims that pass every gate.")
_N_GAINED = Column("n_gained", "int", "Claims that pass every gate here and not in the run.")
_N_LOST = Column("n_lost", "int", "Claims that pass every gate in the run and not here.")
_INTERVAL = (
    Column("n_rows", "int", "Rows with a number."),
    Column("n_rows_missing", "int", "Rows without one."),
    Column("n_units", "int", "Aggregation units: subject-runs, or pairs of recordings."),
    Column("mean", "float", "Mean over units of the mean within each.", nullable=True),
    Column(
        "ci_low",
        "float",
        "Lower 95 % bound: bootstrap over units, expanded percentile.",
        nullable=True,
    ),
    Column(
        "ci_high",
        "float",
        "Upper 95 % bound: bootstrap over units, expanded percentile.",
        nullable=True,
    ),
    Column("n_draws", "int", "Bootstrap draws."),
    Column("degenerate", "bool", "One unit: the interval is a point, a limit of coverage."),
    Column("positive_rate", "float", "Share of units whose mean is positive.", nullable=True),
    Column("n_gate_rows", "int", "Rows that pass their row rule."),
)

CONVENTIONAL_CONTRAST = Table(
    "controls/main_table_conventional_vs_lpact_contrast",
    "One row per weaker rule and gate profile: what that rule alone would have called positive, and what passes.",
    ("analysis", "gate_profile"),
    (
        Column("analysis", "str", "Evidence that the weaker rule looks at."),
        _GATE_PROFILE,
        Column("rule", "str", "The weaker rule."),
        Column("counted", "str", "What `n_positive` and `n_total` count: `rows` or `claims`."),
        Column("n_positive", "int", "How many the weaker rule calls positive."),
        Column("n_total", "int", "How many there are, those without a number included."),
        Column("n_lpact_pass", "int", "How many of them pass; row rules are those of `paper`."),
        _N_CLAIMS,
        Column("n_claims_pass", "int", "Claims that pass the gate of this evidence."),
        Column("gate", "str", "That gate: a column of the decision table."),
        Column("interpretation", "str", "What the two counts say."),
    ),
)

UNCERTAINTY = Table(
    "controls/main_table_lpact_uncertainty_by_dataset_level",
    "One row per dataset and level: its contrast with a 95 % bootstrap interval over aggregation units.",
    ("dataset", "level"),
    (
        _DATASET,
        Column("level", "str", "Contrast of a level."),
        Column("unit", "str", "What is resampled: `subject_run` or `source_target_pair`."),
        *_INTERVAL,
        Column("best_control", "str", "Best control of most rows, or `not_applicable`."),
        reason(),
    ),
)

CAUSAL_UNCERTAINTY = Table(
    "controls/si_table_causal_uncertainty_by_mechanism",
    "One row per dataset, stripped mechanism and quantity, with a 95 % bootstrap interval over subject-runs.",
    ("dataset", "mechanism", "quantity"),
    (
        _DATASET,
        Column("mechanism", "str", "Mechanism that was stripped."),
        Column(
            "quantity",
            "str",
            "`drop` (all targets), `matching_drop`, `margin` (over other targets) or `mismatch_margin`.",
        ),
        *_INTERVAL,
        reason(),
    ),
)

THRESHOLD_SENSITIVITY = Table(
    "controls/main_table_gate_threshold_sensitivity",
    "One row per threshold or rule, its value and the gate profile: how much passes if it alone is changed.",
    ("family", "rule", "gate_profile"),
    (
        Column("family", "str", "Threshold or rule that is varied, and what is counted."),
        Column("rule", "str", "Its value."),
        Column("gate_profile", "str", "Gate profile; `all` where rows are counted, not claims."),
        Column("configured", "bool", "Whether the run used this value."),
        Column("n_pass", "int", "How many pass."),
        Column("n_eligible", "int", "How many could."),
        Column("interpretation", "str", "What is counted."),
    ),
)

CONTROL_ABLATION = Table(
    "controls/main_table_control_family_ablation",
    "One row per choice of controls, stage and gate profile: rows (by the point rules) and claims (by the profile) "
    "decided again with these controls only.",
    ("scenario", "stage", "gate_profile"),
    (
        Column("scenario", "str", "Which controls are left."),
        Column("stage", "str", "`predictive` or `relational`."),
        _GATE_PROFILE,
        Column("rule", "str", "How the best control is formed."),
        Column(
            "n_controls", "int", "Controls that are left at this stage, uncounted ones included."
        ),
        Column("n_rows", "int", "Rows of the stage, all metrics or summaries."),
        Column(
            "n_positive",
            "int",
            "Rows with a positive contrast with the best control left, whatever the profile.",
        ),
        Column(
            "n_stage_pass",
            "int",
            "Rows that pass their point rule, whatever the profile: the tests judge no rows.",
        ),
        Column(
            "median_delta",
            "float",
            "Median contrast with the best control left; level 1 at the primary metric.",
            nullable=True,
        ),
        _N_CLAIMS,
        _N_INTEGRATED,
        _N_GAINED,
        _N_LOST,
        reason(),
    ),
)

LEAVE_DATASET_OUT = Table(
    "controls/main_table_leave_one_dataset_out_summary",
    "One row per omitted dataset and gate profile: the study decided again without it.",
    ("omitted", "gate_profile"),
    (
        Column("omitted", "str", "Dataset that is left out."),
        _GATE_PROFILE,
        Column("remaining", "list[str]", "Datasets that are left."),
        Column("n_claims", "int", "Claims that are left."),
        Column("n_predictive", "int", "Claims that pass P."),
        Column("n_relational", "int", "Claims that pass R."),
        Column("n_mechanism", "int", "Claims that pass M."),
        Column("n_ceiling", "int", "Claims that pass T."),
        Column("n_severe_control", "int", "Claims that pass S."),
        Column("n_replication", "int", "Claims that pass Rep."),
        _N_INTEGRATED,
        Column("n_control_explained", "int", "Claims with the verdict `control_explained`."),
        Column("outcome", "str", "Outcome of what is left: A, B, C, D or I."),
        Column("outcome_of_run", "str", "Outcome of the whole study."),
    ),
)

LEAVE_SUBJECT_RUN_OUT = Table(
    "controls/main_table_leave_one_subject_run_out_summary",
    "One row per dataset and level: how far the mean contrast moves when one subject-run is left out.",
    ("dataset", "level"),
    (
        _DATASET,
        Column("level", "str", "Contrast of a level."),
        Column("n_units", "int", "Subject-runs with a number."),
        Column("full_mean", "float", "Mean over all of them.", nullable=True),
        Column("leave_one_min", "float", "Smallest mean without one of them.", nullable=True),
        Column("leave_one_max", "float", "Largest mean without one of them.", nullable=True),
        Column("sign_flip", "bool", "Whether leaving one out turns the sign of the mean."),
        Column("positive_rate", "float", "Share of them with a positive mean.", nullable=True),
        Column(
            "most_influential",
            "str",
            "Subject-run (subject/session/run) whose omission moves the mean most, or empty.",
        ),
        reason(),
    ),
)

SUBJECT_RUN_DECISIONS = Table(
    "controls/leave_one_subject_run_out_decisions",
    "One row per subject-run and gate profile: the claims decided again without it.",
    (*RECORDING_KEY, "gate_profile"),
    (
        *RECORDING,
        _GATE_PROFILE,
        _N_CLAIMS,
        _N_INTEGRATED,
        _N_GAINED,
        _N_LOST,
        Column(
            "n_lost_coverage",
            "int",
            "Of the lost ones, those with too few subject-runs left to replicate.",
        ),
    ),
)

MODEL_SUMMARY = Table(
    "controls/model_inventory_summary",
    "One row per model: where it enters the decisions, with which controls, and why not elsewhere.",
    ("model",),
    (
        Column("model", "str", "Model name in the study file."),
        Column("source", "str", "Registered model source."),
        Column("layers", "list[int]", "Layers that claims are made about."),
        Column("datasets", "list[str]", "Datasets with claims about it."),
        Column("datasets_without", "list[str]", "Datasets of the study without any."),
        Column("controls_available", "list[str]", "Controls computed for it anywhere."),
        Column("controls_missing", "list[str]", "Controls possible for it nowhere."),
        _N_CLAIMS,
        Column("included", "bool", "Whether it enters any decision."),
        Column("status", "str", "The same in words."),
        reason(),
    ),
)

TABLES: tuple[Table, ...] = (
    CONVENTIONAL_CONTRAST,
    UNCERTAINTY,
    CAUSAL_UNCERTAINTY,
    THRESHOLD_SENSITIVITY,
    CONTROL_ABLATION,
    LEAVE_DATASET_OUT,
    LEAVE_SUBJECT_RUN_OUT,
    SUBJECT_RUN_DECISIONS,
    MODEL_SUMMARY,
)
