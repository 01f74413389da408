"""Tables of level 1."""

from __future__ import annotations

from lpact.tables import CONTEXT, CONTEXT_KEY, Column, Table, reason

_METRIC = Column("metric", "str", "pearson, spearman or r2, on pooled held-out predictions.")
_CONDITION = Column("condition", "str", "`real`, `nuisance`, `nuisance_plus_model` or a control.")
_DRAW = Column("draw", "int", "Draw number of a random control; 0 otherwise.")

PREDICTIVE_SCORES = Table(
    "predictive/predictive_scores",
    "One row per context, condition, draw and metric: held-out score, summarised over units.",
    (*CONTEXT_KEY, "condition", "draw", "metric"),
    (
        *CONTEXT,
        _CONDITION,
        _DRAW,
        _METRIC,
        Column("score_median", "float", "Median over units with a finite score.", nullable=True),
        Column("score_mean", "float", "Mean over units with a finite score.", nullable=True),
        Column("n_units", "int", "Units."),
        Column("n_units_finite", "int", "Units with a finite score."),
        Column("n_train_min", "int", "Fewest training events in an outer fold."),
        Column("n_test_min", "int", "Fewest test events in an outer fold."),
        Column("n_features", "int", "Columns of the feature matrix."),
        reason(),
    ),
)

UNIT_SCORES = Table(
    "predictive/predictive_unit_scores",
    "One row per context, condition, draw and metric: held-out score of every unit, in canonical unit order.",
    (*CONTEXT_KEY, "condition", "draw", "metric"),
    (
        *CONTEXT,
        _CONDITION,
        _DRAW,
        _METRIC,
        Column("unit_order_hash", "str", "Hash of the canonical unit order."),
        Column("scores", "list[float]", "Held-out score of each unit; null where undefined."),
    ),
)

CONTROL_DELTAS = Table(
    "predictive/predictive_control_deltas",
    "One row per context and metric: the real score against nuisance and the best severe control.",
    (*CONTEXT_KEY, "metric"),
    (
        *CONTEXT,
        _METRIC,
        Column("real_score", "float", "Held-out score of the real features.", nullable=True),
        Column(
            "nuisance_score", "float", "Held-out score of the nuisance features.", nullable=True
        ),
        Column("delta_nuisance", "float", "real − nuisance.", nullable=True),
        Column(
            "best_control", "str", "Counted severe control with the highest score.", nullable=True
        ),
        Column(
            "best_control_score",
            "float",
            "Its score (or the mean of the top three).",
            nullable=True,
        ),
        Column("delta_control", "float", "real − best control.", nullable=True),
        Column(
            "nuisance_plus_model_score", "float", "Held-out score of both together.", nullable=True
        ),
        Column("delta_incremental", "float", "nuisance plus model − nuisance.", nullable=True),
        Column("n_controls", "int", "Counted severe controls with a finite score."),
        Column("n_train_min", "int", "Fewest training events in an outer fold."),
        Column("n_test_min", "int", "Fewest test events in an outer fold."),
        Column("confirmatory", "bool", "Whether the dataset is confirmatory."),
        reason(),
        Column("gate_pass", "bool", "Whether the row passes.", decided=True),
        Column("label", "str", "Row label.", decided=True),
    ),
)

CONTROL_NULLS = Table(
    "predictive/predictive_control_nulls",
    "One row per context, metric and control: its mean over draws and the null distribution of its draws.",
    (*CONTEXT_KEY, "metric", "control"),
    (
        *CONTEXT,
        _METRIC,
        Column("control", "str", "Severe control."),
        Column("counted", "bool", "Whether the `paper` gate profile counts it."),
        Column("random", "bool", "Whether its draws are random."),
        Column(
            "surrogate",
            "bool",
            "Whether its draws know nothing of the stimulus, and so are a null distribution.",
        ),
        Column("n_draws", "int", "Draws with a finite score."),
        Column("control_score", "float", "Mean over draws.", nullable=True),
        Column("control_sd", "float", "Standard deviation over draws.", nullable=True),
        Column("delta", "float", "real − control.", nullable=True),
        Column(
            "p_value",
            "float",
            "(1 + #{draws ≥ real}) / (1 + draws); random controls only.",
            nullable=True,
        ),
        Column(
            "q_value",
            "float",
            "Benjamini–Hochberg over the study's rows of this metric.",
            nullable=True,
        ),
        reason(),
    ),
)

BLOCK_SCORES = Table(
    "predictive/predictive_block_scores",
    "One row per context and condition: the held-out score in every outer block, at the primary metric.",
    (*CONTEXT_KEY, "condition"),
    (
        *CONTEXT,
        Column("stimulus", "str", "Stimulus that was presented."),
        Column("condition", "str", "`real`, `nuisance` or a control."),
        _METRIC,
        Column(
            "scores",
            "list[float]",
            "Median over units in each block, mean over draws; null where undefined.",
        ),
    ),
)

SUBJECT_RUN_SUMMARY = Table(
    "predictive/predictive_subject_run_summary",
    "One row per context and metric: both contrasts and the direction that replication counts.",
    (*CONTEXT_KEY, "metric"),
    (
        *CONTEXT,
        _METRIC,
        Column("real_score", "float", "Held-out score of the real features.", nullable=True),
        Column("delta_nuisance", "float", "real − nuisance.", nullable=True),
        Column("delta_control", "float", "real − best control.", nullable=True),
        Column("positive_direction", "bool", "Both deltas are positive.", decided=True),
    ),
)

FAILURE_MODES = Table(
    "predictive/predictive_failure_modes",
    "One row per dataset, model, layer, metric, label and best control: how often rows failed that way.",
    ("dataset", "model", "layer", "metric", "label", "best_control"),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        Column("model", "str", "Model name in the study file."),
        Column("layer", "int", "Layer; 0 is the input embedding."),
        _METRIC,
        Column("label", "str", "Row label."),
        Column("best_control", "str", "Best severe control, or `none`."),
        Column("n_rows", "int", "Rows."),
        Column("mean_delta_nuisance", "float", "Mean real − nuisance.", nullable=True),
        Column("mean_delta_control", "float", "Mean real − best control.", nullable=True),
    ),
)

TABLES = (
    PREDICTIVE_SCORES,
    UNIT_SCORES,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    BLOCK_SCORES,
    SUBJECT_RUN_SUMMARY,
    FAILURE_MODES,
)
