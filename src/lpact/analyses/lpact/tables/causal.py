"""Tables of level 3."""

from __future__ import annotations

from lpact.tables import CONTEXT, CONTEXT_KEY, Column, Table, reason

_METHOD = Column("method", "str", "Stripping method.")
_STRIPPED = Column("stripped", "str", "Mechanism that was stripped from the features.")
_TARGET = Column("target", "str", "Mechanism whose localised units are predicted.")

STRIPPING_FEATURES = Table(
    "causal/causal_stripping_features",
    "One row per context, method and mechanism: what was stripped, and that it was fitted on training rows.",
    (*CONTEXT_KEY, "method", "stripped"),
    (
        *CONTEXT,
        _METHOD,
        _STRIPPED,
        Column(
            "n_features", "int", "Columns before and after: stripping keeps the dimensionality."
        ),
        Column("n_fits", "int", "Training sets on which the strip was fitted anew."),
        Column(
            "fitted_on", "str", "`training_rows`, or `nothing` where the method has no parameters."
        ),
        Column(
            "variance_removed",
            "float",
            "Mean share of feature variance removed on training rows.",
            nullable=True,
        ),
        reason(),
    ),
)

STRIPPING_SCORES = Table(
    "causal/causal_stripping_scores",
    "One row per context, method, stripped and target mechanism, and state: the target's held-out score.",
    (*CONTEXT_KEY, "method", "stripped", "target", "state"),
    (
        *CONTEXT,
        _METHOD,
        _STRIPPED,
        _TARGET,
        Column("state", "str", "`real` or `stripped`."),
        Column(
            "score",
            "float",
            "Mean over the target's units in a fold, then over folds by test size.",
            nullable=True,
        ),
        Column("n_target_units", "int", "Units the localiser picks in each fold."),
        reason(),
    ),
)

STRIPPING_DELTAS = Table(
    "causal/causal_stripping_deltas",
    "One row per context, method, stripped and target mechanism: the held-out drop.",
    (*CONTEXT_KEY, "method", "stripped", "target"),
    (
        *CONTEXT,
        _METHOD,
        _STRIPPED,
        _TARGET,
        Column("matching", "bool", "Whether the target is the stripped mechanism."),
        Column("real_score", "float", "Score of the real features.", nullable=True),
        Column("stripped_score", "float", "Score of the stripped features.", nullable=True),
        Column("drop", "float", "real − stripped.", nullable=True),
        Column("confirmatory", "bool", "Whether the dataset is confirmatory."),
        reason(),
        Column("gate_pass", "bool", "Whether the row passes (matching rows only).", decided=True),
        Column("label", "str", "Row label.", decided=True),
    ),
)

BLOCK_DROPS = Table(
    "causal/causal_block_drops",
    "One row per context, method, stripped and target mechanism with a drop: the drop in every outer block.",
    (*CONTEXT_KEY, "method", "stripped", "target", "beside"),
    (
        *CONTEXT,
        Column("stimulus", "str", "Stimulus that was presented."),
        _METHOD,
        Column(
            "stripped",
            "str",
            "Mechanism that was stripped, or `random_direction`: the mean over random directions of the variance "
            "that the target's mechanism accounts for.",
        ),
        _TARGET,
        Column(
            "beside",
            "str",
            "What the readouts have beside the features: `nothing`, or `nuisance` features, unpenalised.",
        ),
        Column("drops", "list[float]", "real − stripped in each block; null where undefined."),
    ),
)

MISMATCH_CONTROLS = Table(
    "causal/causal_mismatch_controls",
    "One row per context, method, mechanism, kind and draw: a mismatched strip, scored on the mechanism's own target.",
    (*CONTEXT_KEY, "method", "stripped", "kind", "draw"),
    (
        *CONTEXT,
        _METHOD,
        _STRIPPED,
        Column("kind", "str", "`random_direction` or `nonmatching_mechanism`."),
        Column("draw", "int", "Draw number, or index of the other mechanism in the study file."),
        Column("instead", "str", "What was stripped instead."),
        Column("drop", "float", "Drop of the mechanism's own target.", nullable=True),
        reason(),
    ),
)

SPECIFICITY = Table(
    "causal/mechanism_specificity_summary",
    "One row per context, method and mechanism: matching drop against other targets and mismatched strips.",
    (*CONTEXT_KEY, "method", "stripped"),
    (
        *CONTEXT,
        _METHOD,
        _STRIPPED,
        Column("matching_drop", "float", "Drop of the matching target.", nullable=True),
        Column(
            "best_nonmatching_target", "str", "Other target with the largest drop.", nullable=True
        ),
        Column("best_nonmatching_drop", "float", "Its drop.", nullable=True),
        Column("margin", "float", "Matching − best non-matching drop.", nullable=True),
        Column("mismatch_kind", "str", "Mismatch control with the larger drop.", nullable=True),
        Column("mismatch_drop", "float", "Its drop of the matching target.", nullable=True),
        Column("mismatch_margin", "float", "Matching − mismatch drop.", nullable=True),
        Column("n_targets", "int", "Mechanisms with a target."),
        Column("confirmatory", "bool", "Whether the dataset is confirmatory."),
        reason(),
        Column("selective", "bool", "Whether the margin is positive.", decided=True),
        Column("label", "str", "Row label.", decided=True),
    ),
)

DISSOCIATIONS = Table(
    "causal/double_dissociation_tests",
    "One row per context and pair of mechanisms (median drops over methods); diagnostic only.",
    (*CONTEXT_KEY, "mechanism_a", "mechanism_b"),
    (
        *CONTEXT,
        Column("mechanism_a", "str", "First mechanism."),
        Column("mechanism_b", "str", "Second mechanism."),
        Column("drop_aa", "float", "Strip a, target a.", nullable=True),
        Column("drop_ab", "float", "Strip a, target b.", nullable=True),
        Column("drop_ba", "float", "Strip b, target a.", nullable=True),
        Column("drop_bb", "float", "Strip b, target b.", nullable=True),
        reason(),
        Column(
            "double_dissociation",
            "bool",
            "Both matching drops positive and above the crossed ones.",
            decided=True,
        ),
    ),
)

TARGETS = Table(
    "causal/causal_targets",
    "One row per context, mechanism and outer fold: the units that the train-only localiser picked.",
    (*CONTEXT_KEY, "target", "fold"),
    (
        *CONTEXT,
        _TARGET,
        Column("fold", "int", "Outer fold, from 0."),
        Column("units", "list[str]", "Picked units, strongest first."),
        Column(
            "partial_correlations", "list[float]", "Their partial correlations on training rows."
        ),
        Column("n_test", "int", "Test events of the fold."),
    ),
)

TABLES = (
    STRIPPING_FEATURES,
    STRIPPING_SCORES,
    STRIPPING_DELTAS,
    BLOCK_DROPS,
    MISMATCH_CONTROLS,
    SPECIFICITY,
    DISSOCIATIONS,
    TARGETS,
)
