"""Tables of levels 1 to 4: prediction, relational patterns, stripping, ceilings."""

from __future__ import annotations

from lpact.tables import SHARED

_VOCABULARY = SHARED.add(
    """
    alignment        str          Alignment measure.
    metric           str          pearson, spearman or r2, on pooled held-out predictions.
    unit             str          Brain unit.
    method           str          Stripping method.
    unit_order_hash  str          Hash of the canonical unit order.
    confirmatory     bool         Whether the dataset is confirmatory.
    label            str!         Row label.
    profile          str          Profile similarity.
    stripped         str          Mechanism that was stripped from the features.
    target           str          Mechanism whose localised units are predicted.
    draw             int          Draw number of a random control; 0 otherwise.
    delta_control    float?       real − best control.
    gate_pass        bool!        Whether the row passes.
    condition        str          `real`, `nuisance` or a control.
    n_train_min      int          Fewest training events in an outer fold.
    n_test_min       int          Fewest test events in an outer fold.
    real_score       float?       Held-out score of the real features.
    delta_nuisance   float?       real − nuisance.
    stimulus         str          Stimulus that was presented.
    unit_index       int          Place in the canonical order, from 0.
    pattern          list[float]  Alignment with every unit; null at the unit itself.
    real_similarity  float?       Similarity of the real pattern.
    delta_rel        float?       real − best control.
    """
)

PREDICTIVE_SCORES = _VOCABULARY.table("""
    predictive/predictive_scores
    One row per recording, layer, condition, draw and metric: held-out score, summarised over units.
    key: context condition draw metric

    condition       str     `real`, `nuisance`, `nuisance_plus_model` or a control.
    draw metric
    score_median    float?  Median over units with a finite score.
    score_mean      float?  Mean over units with a finite score.
    n_units         int     Units.
    n_units_finite  int     Units with a finite score.
    n_train_min n_test_min
    n_features      int     Columns of the feature matrix.
    reason
""")

UNIT_SCORES = _VOCABULARY.table("""
    predictive/predictive_unit_scores
    One row per recording, layer, condition, draw and metric: held-out score of every unit, in canonical unit order.
    key: context condition draw metric

    condition  str          `real`, `nuisance`, `nuisance_plus_model` or a control.
    draw metric unit_order_hash
    scores     list[float]  Held-out score of each unit; null where undefined.
""")

CONTROL_DELTAS = _VOCABULARY.table("""
    predictive/predictive_control_deltas
    One row per recording, layer and metric: the real score compared with nuisance and the best severe control.
    key: context metric

    real_score
    nuisance_score             float?  Held-out score of the nuisance features.
    delta_nuisance
    best_control               str?    Counted severe control with the highest score.
    best_control_score         float?  Its score (or the mean of the top three).
    delta_control
    nuisance_plus_model_score  float?  Held-out score of both together.
    delta_incremental          float?  nuisance plus model − nuisance.
    n_controls                 int     Counted severe controls with a finite score.
    n_train_min n_test_min confirmatory reason gate_pass label
""")

CONTROL_NULLS = _VOCABULARY.table("""
    predictive/predictive_control_nulls
    One row per recording, layer, metric and control: its mean over draws and the null distribution of its draws.
    key: context metric control

    control        str     Severe control.
    counted        bool    Whether the `paper` gate profile counts it.
    random         bool    Whether its draws are random.
    surrogate      bool    Whether its draws carry no information about the stimulus: a null distribution.
    n_draws        int     Draws with a finite score.
    control_score  float?  Mean over draws.
    control_sd     float?  Standard deviation over draws.
    delta          float?  real − control.
    p_value        float?  (1 + #{draws ≥ real}) / (1 + draws); random controls only.
    q_value        float?  Benjamini–Hochberg over the study's rows of this metric.
    reason
""")

BLOCK_SCORES = _VOCABULARY.table("""
    predictive/predictive_block_scores
    One row per recording, layer and condition: the held-out score in every outer block, at the primary metric.
    key: context condition

    stimulus condition metric
    scores  list[float]  Median over units in each block, mean over draws; null where undefined.
""")

SUBJECT_RUN_SUMMARY = _VOCABULARY.table("""
    predictive/predictive_subject_run_summary
    One row per recording, layer and metric: both contrasts and the direction that replication counts.
    key: context metric

    real_score delta_nuisance delta_control
    positive_direction  bool!  Both deltas are positive.
""")

FAILURE_MODES = _VOCABULARY.table("""
    predictive/predictive_failure_modes
    One row per dataset, model, layer, metric, label and best control: how often rows failed that way.
    key: dataset model layer metric label best_control

    label                str     Row label.
    best_control         str     Best severe control, or `none`.
    n_rows               int     Rows.
    mean_delta_nuisance  float?  Mean real − nuisance.
    mean_delta_control   float?  Mean real − best control.
""")

BRAIN_UNIT_INDEX = _VOCABULARY.table("""
    relational/brain_unit_index
    One row per recording and unit: its place in the canonical order.
    key: recording unit

    unit_index
    region            str          Region label.
    x_mm              float? (mm)  Coordinate.
    y_mm              float? (mm)  Coordinate.
    z_mm              float? (mm)  Coordinate.
    coordinate_frame  str          Frame of the coordinates, such as `MNI152NLin2009cAsym` or `head`; empty where \
                                   not known.
    unit_order_hash
""")

BRAIN_PATTERNS = _VOCABULARY.table("""
    relational/brain_alignment_patterns
    One row per recording, measure and unit: the unit's relations to all units, and how reliable they are.
    key: recording alignment unit

    unit_index unit_order_hash pattern
    split_half_reliability  float?  Correlation of the two halves' patterns.
    reason
""")

HALF_PATTERNS = _VOCABULARY.table("""
    relational/brain_half_patterns
    One row per recording, measure, half and unit: the patterns of the split halves.
    key: recording alignment half unit

    half  int  0 or 1: contiguous blocks, assigned alternately.
    unit unit_order_hash pattern
""")

MODEL_PATTERNS = _VOCABULARY.table("""
    relational/model_alignment_patterns
    One row per recording, layer, measure, condition and draw: the model's alignment with every unit.
    key: context alignment condition draw

    unit_order_hash
    pattern  list[float]  Alignment with every unit, in canonical unit order.
""")

PROFILE_SCORES = _VOCABULARY.table("""
    relational/profile_similarity_scores
    One row per recording, layer, unit, measure, profile similarity and condition (mean over draws).
    key: context unit alignment profile condition

    counted     bool    Whether the `paper` gate profile counts it (true for `real`).
    similarity  float?  Similarity of the model's and the unit's pattern.
    n_draws     int     Draws with a finite similarity.
""")

PROFILE_DELTAS = _VOCABULARY.table("""
    relational/profile_similarity_deltas
    One row per recording, layer, unit, measure and profile similarity: the real pattern against the best control's.
    key: context unit alignment profile

    brain_patterns_from      str     same_run, other_run or other_subject.
    model_unit_order_hash    str     Unit order of the model pattern.
    brain_unit_order_hash    str     Unit order of the brain pattern.
    split_half_reliability   float?  Reliability of the unit's own pattern.
    real_similarity
    best_control             str?    Counted control with the highest similarity.
    best_control_similarity  float?  Its similarity (or the mean of the top three).
    delta_rel confirmatory reason gate_pass label
""")

RELATIONAL_NULLS = _VOCABULARY.table("""
    relational/relational_null_draws
    One row per recording, layer, measure, profile similarity, test and rival: the relational statistic, and its draws.
    key: context alignment profile test against

    test       str          `surrogate`: draws of a surrogate control. `unit_order`: the real pattern in shuffled \
                            unit orders. `swap`: real and rival pattern exchanged at random units.
    against    str          Control, `nuisance`, or `unit_order`.
    observed   float?       Mean similarity over units times the pattern's spread; for `swap`, real − rival.
    draws      list[float]  The same in every draw; null where undefined.
    advantage  float?       Mean over units of the real similarity less the mean over draws (for `swap`, the \
                            rival's).
    reason
""")

RELATIONAL_SUMMARY = _VOCABULARY.table("""
    relational/relational_subject_run_summary
    One row per recording, layer, measure and profile similarity, over units.
    key: context alignment profile

    n_units               int      Unit rows.
    mean_real_similarity  float?   Mean over units.
    mean_delta_rel        float?   Mean over units.
    pass_fraction         float?!  Share of unit rows that pass.
    reason
""")

STRIPPING_FEATURES = _VOCABULARY.table("""
    causal/causal_stripping_features
    One row per recording, layer, method and mechanism: what was stripped, and that it was fitted on training rows.
    key: context method stripped

    n_features        int     Columns before and after: stripping keeps the dimensionality.
    n_fits            int     Training sets on which the strip was fitted again.
    fitted_on         str     `training_rows`, or `nothing` where the method has no parameters.
    variance_removed  float?  Mean share of feature variance removed on training rows.
    reason
""")

STRIPPING_SCORES = _VOCABULARY.table("""
    causal/causal_stripping_scores
    One row per recording, layer, method, stripped and target mechanism, and state: the target's held-out score.
    key: context method stripped target state

    state           str     `real` or `stripped`.
    score           float?  Mean over the target's units in a fold, then over folds by test size.
    n_target_units  int     Units the localiser picks in each fold.
    reason
""")

STRIPPING_DELTAS = _VOCABULARY.table("""
    causal/causal_stripping_deltas
    One row per recording, layer, method, stripped and target mechanism: the held-out drop.
    key: context method stripped target

    matching        bool    Whether the target is the stripped mechanism.
    real_score      float?  Score of the real features.
    stripped_score  float?  Score of the stripped features.
    drop            float?  real − stripped.
    confirmatory reason
    gate_pass       bool!   Whether the row passes (matching rows only).
    label
""")

BLOCK_DROPS = _VOCABULARY.table("""
    causal/causal_block_drops
    One row per recording, layer, method, stripped and target mechanism with a drop: the drop in every outer block.
    key: context method stripped target beside

    stimulus method
    stripped  str          Mechanism that was stripped, or `random_direction`: the mean over random directions of \
                           the variance that the target's mechanism accounts for.
    target
    beside    str          What the readouts have besides the features: `nothing`, or `nuisance` features, \
                           unpenalised.
    drops     list[float]  real − stripped in each block; null where undefined.
""")

MISMATCH_CONTROLS = _VOCABULARY.table("""
    causal/causal_mismatch_controls
    One row per recording, layer, method, mechanism, kind and draw: a mismatched strip, scored on its own target.
    key: context method stripped kind draw

    kind     str     `random_direction` or `nonmatching_mechanism`.
    draw     int     Draw number, or index of the other mechanism in the study file.
    instead  str     What was stripped instead.
    drop     float?  Drop of the mechanism's own target.
    reason
""")

SPECIFICITY = _VOCABULARY.table("""
    causal/mechanism_specificity_summary
    One row per recording, layer, method and mechanism: matching drop compared with other targets and mismatched strips.
    key: context method stripped

    matching_drop            float?  Drop of the matching target.
    best_nonmatching_target  str?    Other target with the largest drop.
    best_nonmatching_drop    float?  Its drop.
    margin                   float?  Matching − best non-matching drop.
    mismatch_kind            str?    Mismatch control with the larger drop.
    mismatch_drop            float?  Its drop of the matching target.
    mismatch_margin          float?  Matching − mismatch drop.
    n_targets                int     Mechanisms with a target.
    confirmatory reason
    selective                bool!   Whether the margin is positive.
    label
""")

DISSOCIATIONS = _VOCABULARY.table("""
    causal/double_dissociation_tests
    One row per recording, layer and pair of mechanisms (median drops over methods); diagnostic only.
    key: context mechanism_a mechanism_b

    mechanism_a          str     First mechanism.
    mechanism_b          str     Second mechanism.
    drop_aa              float?  Strip a, target a.
    drop_ab              float?  Strip a, target b.
    drop_ba              float?  Strip b, target a.
    drop_bb              float?  Strip b, target b.
    reason
    double_dissociation  bool!   Both matching drops positive and above the crossed ones.
""")

TARGETS = _VOCABULARY.table("""
    causal/causal_targets
    One row per recording, layer, mechanism and outer fold: the units that the train-only localiser picked.
    key: context target fold

    fold                  int          Outer fold, from 0.
    units                 list[str]    Picked units, strongest first.
    partial_correlations  list[float]  Their partial correlations on training rows.
    n_test                int          Test events of the fold.
""")

BRAIN_CEILING = _VOCABULARY.table("""
    ceilings/brain_brain_ceiling
    One row per recording, mode, kind, measure and profile similarity: brain–brain reliability, or why there is none.
    key: recording mode kind alignment profile

    mode                        str     split_half, run_to_run, session_to_session or subject_to_subject.
    kind                        str     `profile` (relational patterns), `response` (responses to the same \
                                        stimulus, partner by partner) or `response_to_mean` (responses against the \
                                        mean of all partners).
    alignment                   str     Alignment measure; `response` for responses.
    profile                     str     Profile similarity; `pearson` for responses.
    valid                       bool    Whether the mode is possible and the reliability finite.
    reason
    reliability                 float?  Mean over partners of the median over units.
    reliability_spearman_brown  float?  2r / (1 + r).
    n_partners                  int     Recordings (or halves) it was paired with.
    n_units_shared              int     Fewest units shared with a partner.
    alone                       bool    Split half and no other mode is valid: slow drift can inflate it.
""")

NORMALIZED_SCORES = _VOCABULARY.table("""
    ceilings/ceiling_normalized_scores
    One row per recording, layer, unit, measure and profile similarity, against the strictest valid mode.
    key: context unit alignment profile

    mode                 str?    Strictest valid reliability mode.
    reliability          float?  Its reliability for this recording.
    split_half_alone     bool    Only split half is valid: slow drift can inflate it.
    real_similarity delta_rel
    fraction_of_ceiling  float?  real similarity / reliability.
    delta_fraction       float?  delta_rel / reliability.
    confirmatory reason gate_pass label
""")

NORMALIZED_PREDICTIVE = _VOCABULARY.table("""
    ceilings/ceiling_normalized_predictive
    One row per recording, layer and reliability mode: the encoding score over response reliability; shown, not gated.
    key: context mode

    mode                 str     Reliability mode.
    reliability          float?  Response reliability.
    real_score           float?  Held-out Pearson of the real features.
    delta_control
    fraction_of_ceiling  float?  real score / reliability.
    delta_fraction       float?  delta_control / reliability.
    reason
""")

TABLES = tuple(_VOCABULARY.tables)
