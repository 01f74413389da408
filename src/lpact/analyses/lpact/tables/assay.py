"""Tables of the positive controls."""

from __future__ import annotations

from lpact.tables import SHARED

_BRAIN = SHARED.add(
    """
    interpretation  str  The row in one sentence.
    role            str  Role of the dataset after the audit.
    comparison      str  `run_to_run`, `session_to_session` or `subject_to_subject`.
    alignment       str  Alignment measure.
    profile         str  Profile similarity.
    """
)

IMPLANTED, SHAM = "implant", "sham"
"""Arms of the implanted study: with the planted signal, and without it."""

IMPLANT = _BRAIN.table("""
    controls/main_table_synthetic_implant_positive_control
    One row per arm, gate profile and quantity: a small study with a planted signal, and the same without it,
    judged by the gates of the study.
    key: arm gate_profile quantity

    arm             str     `implant` (signal planted) or `sham` (the same study without it).
    gate_profile    str     Gate profile that judged the row.
    quantity        str     What was measured.
    quantity_order  int     Place of the quantity in the chain, from 0.
    gate            str     Gate that the quantity belongs to, or `integrated`.
    value           float?  The number; for `integrated` 1 or 0.
    gate_pass       bool    Whether that gate passes.
    interpretation reason
""")

BRAIN_RELIABILITY = _BRAIN.table("""
    controls/main_table_brain_positive_control
    One row per dataset, reliability mode and kind: do brains agree with brains?
    key: dataset mode kind

    role
    mode                   str     split_half, run_to_run, session_to_session or subject_to_subject.
    kind                   str     `profile`, `response` or `response_to_mean`.
    n_recordings           int     Recordings.
    n_rows                 int     Rows of the reliability table.
    n_valid                int     Rows with a reliability.
    valid_fraction         float?  Valid rows / rows.
    median_reliability     float?  Median over valid rows.
    n_reliable             int     Valid rows at or above `min_reliability`.
    reliable_share         float?  Those rows / valid rows.
    weakest_profile_share  float?  The smallest such share of a profile similarity.
    min_reliability        float   Lowest reliability that can bound a score.
    split_half_alone       bool    Split half, and no other mode of this kind is valid in the dataset: slow drift \
                                   can inflate it.
    gate_pass              bool    Whether `weakest_profile_share` reaches `direction_fraction`.
    interpretation reason
""")

BRAIN_AS_MODEL = _BRAIN.table("""
    controls/brain_as_model_relational_gate
    One row per pair of recordings, unit, measure and profile similarity: a unit's pattern in one recording in a
    model's place.
    key: dataset comparison source target unit alignment profile

    source                  str     Recording whose pattern takes the model's place.
    target                  str     Recording whose pattern it is compared with.
    unit                    str     Brain unit.
    alignment profile
    n_units_shared          int     Units that both recordings have.
    split_half_reliability  float?  Of the unit's pattern; the smaller one of the two recordings.
    similarity              float?  Similarity of the two patterns.
    shuffled_similarity     float?  Mean similarity over shuffled unit orders of the source.
    delta                   float?  similarity − shuffled similarity.
    p_value                 float?  (1 + shuffled orders with at least this similarity) / (1 + shuffled orders).
    n_permutations          int     Shuffled orders with a finite similarity.
    gate_pass               bool    Whether delta > 0 and the pattern is reliable.
    reason
""")

BRAIN_AS_MODEL_SUMMARY = _BRAIN.table("""
    controls/main_table_brain_as_model_relational_positive_control
    One row per dataset, comparison, measure and profile similarity: does a brain in a model's place pass?
    key: dataset comparison alignment profile

    role comparison alignment profile
    n_pairs_possible  int     Pairs of recordings that could be compared.
    n_pairs           int     Pairs that were compared.
    n_rows            int     Unit rows with a contrast.
    n_pass            int     Unit rows that pass.
    pass_share        float?  Those rows / rows.
    mean_similarity   float?  Mean over pairs of the mean over units.
    mean_delta        float?  Mean over pairs of the mean over units.
    median_p_value    float?  Median over unit rows.
    p_value           float?  Of the mean similarity over pairs and units, against whole units in shuffled orders.
    n_orders          int     Shuffled orders behind `p_value`.
    ceiling           float?  Median split-half reliability of the dataset's recordings.
    gate_pass         bool    Whether `p_value` is at most `assay.alpha`, enough rows pass and the mean contrast is \
                              positive.
    interpretation reason
""")

BRAIN_ORACLE = _BRAIN.table("""
    controls/main_table_brain_as_model_oracle_gate
    One row per dataset and comparison: relational pass and ceiling together, over the metric summaries.
    key: dataset comparison

    role comparison
    n_summaries                 int   Pairs of measure and profile similarity with a contrast.
    n_relational_pass           int   Summaries that pass the relational gate.
    n_ceiling_valid             int   Summaries with a ceiling at or above `min_reliability` and a similarity of at \
                                      least `min_ceiling_fraction` of it.
    n_joint_pass                int   Summaries with both.
    predictive_gate_applicable  bool  Always false: no readout is fitted here.
    mechanism_gate_applicable   bool  Always false: a brain has no features to strip.
    gate_pass                   bool  Whether more than `summary_majority` of the summaries have both.
    interpretation reason
""")

PROFILE_ORDER = _BRAIN.table("""
    controls/main_table_profile_order_positive_control
    One row per dataset, measure and profile similarity: does the similarity notice the order of units?
    key: dataset alignment profile

    role alignment profile
    n_recordings       int     Recordings with enough units.
    n_rows             int     Unit patterns compared with themselves.
    median_similarity  float?  In the right order; 1 by definition.
    median_shuffled    float?  In shuffled order.
    median_delta       float?  Right − shuffled, median over rows.
    min_delta          float?  Smallest over rows.
    gate_pass          bool    Whether a shuffled pattern stays below `min_ceiling_fraction` of the right one.
    interpretation reason
""")

_STIMULUS = SHARED.add(
    """
    target          str  `word_onset` or `word_rate`.
    window          str  Window after word onset, or delay on the grid of TRs.
    metric          str  `event_effect` (mean over units, in standard deviations of the signal, without sign) or \
                         `pearson` (held-out, median over units).
    proxy           str  Option of `controls/acoustic_proxy_alternatives`.
    label           str  What it must be called wherever it is shown.
    """,
    units="""
    n_units            int    Units with a score.
    n_units_passing    int    Units with p at most `assay.alpha`, one by one.
    n_units_by_chance  float  Units that would do so by chance.
    """,
    course="""
    stimulus           str          Stimulus that was presented.
    kind               str          How the signal is sampled: `time_series`, `trs` (one sample per TR) or `epochs`.
    source             str          What it was made from; empty if there is no source.
    n_rows             int          Samples that were used, at `rate_hz`.
    rate_hz            float? (Hz)  Rate at which signal and stimulus are compared.
    units
    value              float?       Held-out Pearson correlation, median over units.
    value_mean         float?       The same, mean over units.
    reversed           float?       The same, of the course run backwards.
    shifted_mean       float?       The same, mean over circular shifts.
    shifted_best       float?       The same, of the best circular shift.
    delta              float?       `value` minus the better of `reversed` and `shifted_mean`.
    p                  float?       Share of shifts, the real place counted, that reach the value: (1 + reaching) / \
                                    (1 + shifts).
    best_lag_ms        float? (ms)  Lag at which the course alone is nearest to the signal.
    gate_pass          bool         Whether the row passes; false where it was not computed.
    reason
    detail             str          Why it could not be computed, in words; else empty.
    """,
    summary="""
    n_recordings    int     Recordings of the dataset.
    n_computed      int     Recordings with a result.
    n_passing       int     Recordings that pass.
    median_value    float?  Median of `value` over recordings.
    median_delta    float?  Median of `delta` over recordings.
    p_by_chance     float?  Probability that at least as many recordings pass without any effect.
    gate            str     `pass` (more recordings pass than chance allows, at `assay.alpha`), `no` or \
                            `not_computed`.
    reason
    interpretation  str     The row in words.
    """,
)

LOW_LEVEL = _STIMULUS.table("""
    controls/low_level_neural_positive_control_gate
    One row per recording, target and window: does the signal respond to word onsets and word rate?
    key: recording target window

    kind          str     How the signal is sampled: `time_series`, `trs` (one sample per TR) or `epochs`.
    target window metric
    n_events      int     Words, TRs or epochs that were used.
    units
    value         float?  Score at the real onsets or rates.
    shifted_mean  float?  Mean score over circular shifts.
    shifted_best  float?  Best score of a circular shift.
    delta         float?  `value` minus `shifted_mean`.
    p             float?  Share of shifts, the real place counted, that reach the value: (1 + reaching) / (1 + \
                          shifts).
    gate_pass     bool    Whether the row passes; false where it was not computed.
    reason
""")

LOW_LEVEL_SUMMARY = _STIMULUS.table("""
    controls/main_table_low_level_neural_positive_control_gate
    One row per dataset, target and window: in how many recordings word onsets or word rate are detected.
    key: dataset target window

    metric summary
""")

ENVELOPE_STANDALONE = _STIMULUS.table("""
    controls/acoustic_envelope_standalone_positive_control
    One row per recording: does the signal follow the acoustic envelope, from the first word to the last?
    key: recording

    course
""")

STANDALONE_SUMMARY = _STIMULUS.table("""
    controls/main_table_acoustic_envelope_standalone_positive_control
    One row per dataset: in how many recordings the envelope is detected, from the first word to the last.
    key: dataset

    summary
""")

ENVELOPE_FULL = _STIMULUS.table("""
    controls/acoustic_envelope_full_length_positive_control
    One row per recording: does the signal follow the acoustic envelope, over all of the recording that has sound?
    key: recording

    course
""")

FULL_SUMMARY = _STIMULUS.table("""
    controls/main_table_acoustic_envelope_full_length_positive_control
    One row per dataset: in how many recordings the envelope is detected, over the whole recording.
    key: dataset

    summary
""")

PROXY = _STIMULUS.table("""
    controls/low_level_nuisance_sanity_proxy
    One row per recording and proxy: does the signal follow a proxy of the missing sound? Never an
    acoustic envelope.
    key: recording proxy

    label course
""")

PROXY_SUMMARY = _STIMULUS.table("""
    controls/main_table_low_level_nuisance_sanity_proxy
    One row per dataset and proxy: in how many recordings without sound the proxy is detected. A diagnostic, never an
    acoustic envelope.
    key: dataset proxy

    label summary
""")

BRAIN_TABLES, STIMULUS_TABLES = tuple(_BRAIN.tables), tuple(_STIMULUS.tables)
TABLES = (*BRAIN_TABLES, *STIMULUS_TABLES)
