"""Tables of the robustness analyses."""

from __future__ import annotations

from lpact.tables import SHARED

_VOCABULARY = SHARED.add(
    """
    gate_profile  str  Gate profile that the claims are judged by.
    n_claims      int  Claims.
    n_integrated  int  Claims that pass every gate.
    level         str  Contrast of a level.
    n_gained      int  Claims that pass every gate here and not in the run.
    n_lost        int  Claims that pass every gate in the run and not here.
    """,
    interval="""
    n_rows          int     Rows with a number.
    n_rows_missing  int     Rows without one.
    n_units         int     Aggregation units: subject-runs, or pairs of recordings.
    mean            float?  Mean over units of the mean within each.
    ci_low          float?  Lower 95 % bound: bootstrap over units, expanded percentile.
    ci_high         float?  Upper 95 % bound: bootstrap over units, expanded percentile.
    n_draws         int     Bootstrap draws.
    degenerate      bool    One unit: the interval is a point, a limit of coverage.
    positive_rate   float?  Share of units whose mean is positive.
    n_gate_rows     int     Rows that pass their row rule.
    """,
)

CONVENTIONAL_CONTRAST = _VOCABULARY.table("""
    controls/main_table_conventional_vs_lpact_contrast
    One row per weaker rule and gate profile: what that rule alone would have called positive, and what passes.
    key: analysis gate_profile

    analysis        str  Evidence that the weaker rule looks at.
    gate_profile
    rule            str  The weaker rule.
    counted         str  What `n_positive` and `n_total` count: `rows` or `claims`.
    n_positive      int  How many the weaker rule calls positive.
    n_total         int  How many there are, those without a number included.
    n_lpact_pass    int  How many of them pass; row rules are those of `paper`.
    n_claims
    n_claims_pass   int  Claims that pass the gate of this evidence.
    gate            str  That gate: a column of the decision table.
    interpretation  str  What the two counts say.
""")

UNCERTAINTY = _VOCABULARY.table("""
    controls/main_table_lpact_uncertainty_by_dataset_level
    One row per dataset and level: its contrast with a 95 % bootstrap interval over aggregation units.
    key: dataset level

    unit          str  What is resampled: `subject_run` or `source_target_pair`.
    interval
    best_control  str  Best control of most rows, or `not_applicable`.
    reason
""")

CAUSAL_UNCERTAINTY = _VOCABULARY.table("""
    controls/si_table_causal_uncertainty_by_mechanism
    One row per dataset, stripped mechanism and quantity, with a 95 % bootstrap interval over subject-runs.
    key: dataset mechanism quantity

    mechanism  str  Mechanism that was stripped.
    quantity   str  `drop` (all targets), `matching_drop`, `margin` (over other targets) or `mismatch_margin`.
    interval reason
""")

THRESHOLD_SENSITIVITY = _VOCABULARY.table("""
    controls/main_table_gate_threshold_sensitivity
    One row per threshold or rule, its value and the gate profile: how much passes if it alone is changed.
    key: family rule gate_profile

    family          str   Threshold or rule that is varied, and what is counted.
    rule            str   Its value.
    gate_profile    str   Gate profile; `all` where rows are counted, not claims.
    configured      bool  Whether the run used this value.
    n_pass          int   How many pass.
    n_eligible      int   How many could.
    interpretation  str   What is counted.
""")

CONTROL_ABLATION = _VOCABULARY.table("""
    controls/main_table_control_family_ablation
    One row per choice of controls, stage and gate profile: rows (by the point rules) and claims (by the profile)
    decided again with these controls only.
    key: scenario stage gate_profile

    scenario      str     Which controls are left.
    stage         str     `predictive` or `relational`.
    gate_profile
    rule          str     How the best control is formed.
    n_controls    int     Controls that are left at this stage, uncounted ones included.
    n_rows        int     Rows of the stage, all metrics or summaries.
    n_positive    int     Rows with a positive contrast with the best control left, whatever the profile.
    n_stage_pass  int     Rows that pass their point rule, whatever the profile: the tests judge no rows.
    median_delta  float?  Median contrast with the best control left; level 1 at the primary metric.
    n_claims n_integrated n_gained n_lost reason
""")

LEAVE_DATASET_OUT = _VOCABULARY.table("""
    controls/main_table_leave_one_dataset_out_summary
    One row per omitted dataset and gate profile: the study decided again without it.
    key: omitted gate_profile

    omitted              str        Dataset that is left out.
    gate_profile
    remaining            list[str]  Datasets that are left.
    n_claims             int        Claims that are left.
    n_predictive         int        Claims that pass P.
    n_relational         int        Claims that pass R.
    n_mechanism          int        Claims that pass M.
    n_ceiling            int        Claims that pass T.
    n_severe_control     int        Claims that pass S.
    n_replication        int        Claims that pass Rep.
    n_integrated
    n_control_explained  int        Claims with the verdict `control_explained`.
    outcome              str        Outcome of what is left: A, B, C, D or I.
    outcome_of_run       str        Outcome of the whole study.
""")

LEAVE_SUBJECT_RUN_OUT = _VOCABULARY.table("""
    controls/main_table_leave_one_subject_run_out_summary
    One row per dataset and level: how far the mean contrast moves when one subject-run is left out.
    key: dataset level

    n_units           int     Subject-runs with a number.
    full_mean         float?  Mean over all of them.
    leave_one_min     float?  Smallest mean without one of them.
    leave_one_max     float?  Largest mean without one of them.
    sign_flip         bool    Whether leaving one out turns the sign of the mean.
    positive_rate     float?  Share of them with a positive mean.
    most_influential  str     Subject-run (subject/session/run) whose omission moves the mean most, or empty.
    reason
""")

SUBJECT_RUN_DECISIONS = _VOCABULARY.table("""
    controls/leave_one_subject_run_out_decisions
    One row per subject-run and gate profile: the claims decided again without it.
    key: recording gate_profile

    n_claims n_integrated n_gained n_lost
    n_lost_coverage  int  Of the lost ones, those with too few subject-runs left to replicate.
""")

MODEL_SUMMARY = _VOCABULARY.table("""
    controls/model_inventory_summary
    One row per model: where it enters the decisions, with which controls, and why not elsewhere.
    key: model

    source              str        Registered model source.
    layers              list[int]  Layers that claims are made about.
    datasets            list[str]  Datasets with claims about it.
    datasets_without    list[str]  Datasets of the study without any.
    controls_available  list[str]  Controls computed for it anywhere.
    controls_missing    list[str]  Controls possible for it nowhere.
    n_claims
    included            bool       Whether it enters any decision.
    status              str        The same in words.
    reason
""")

TABLES = tuple(_VOCABULARY.tables)
