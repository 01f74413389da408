"""Tables of error rates and power, and of the effects that a design can detect."""

from __future__ import annotations

from lpact.tables import SHARED

_VOCABULARY = SHARED.add(
    """
    gate          str     Gate; `integrated` is all of them.
    target_power  float   Power that a detectable effect is detected with.
    ceiling       float?  Largest score that a perfect model could expect.
    sentence      str     The row in plain words.
    """,
    cell="""
    cell                   str    Name of the cell: all of its settings.
    truth                  str    Known truth that the studies are simulated from.
    model                  str    Simulated model that the claims are about.
    snr                    float  Factor on every planted component; 0 where nothing is planted.
    n_events               int    Words of a subject-run, on average.
    n_subjects             int    Subjects; each has one run.
    n_units                int    Brain units of a recording.
    noise_autocorrelation  float  Correlation of the noise with itself one sample later.
    """,
    rates="""
    gate_profile  str     Gate profile: `paper` point rules, or `calibrated` tests.
    gate          str     Gate: a column of the trials.
    role          str     What the rate is: `false_pass`, `power`, or `open` where the truth makes no promise.
    n_studies     int     Studies.
    n_passes      int     Studies in which the gate passed.
    rate          float   Share of studies in which the gate passed.
    low           float   Lower end of the Wilson interval, 95 %.
    high          float   Upper end of the Wilson interval, 95 %.
    alpha         float?  Nominal error rate; none for point rules.
    """,
)

CELL = _VOCABULARY.columns("cell")

TRIALS = _VOCABULARY.table("""
    calibration/trials
    One row per simulated study and gate profile: which gates the claim under test passed.
    key: cell trial gate_profile

    cell
    trial                     int     Number of the study in its cell.
    gate_profile              str     Gate profile: `paper` point rules, or `calibrated` tests.
    claims                    str     Claims that can be integrated: `planted` (the planted mechanism's) or `any`. \
                                      Gates are those of the mechanism that is planted, or would be.
    n_claims                  int     Claims of the study.
    predictive                bool    P, of the claim under test.
    severe_control_level1     bool    S at level 1, of the claim under test.
    severe_control_level2     bool    S at level 2, of the claim under test.
    severe_control            bool    S, of the claim under test.
    relational                bool    R, of the claim under test.
    mechanism_specific        bool    M, of the claim under test.
    ceiling                   bool    T, of the claim under test.
    replication               bool    Rep, of the claim under test.
    integrated                bool    P · R · M · T · S · Rep, of the claim under test.
    other_mechanism_specific  bool?   Whether any mechanism that is not planted passes M; missing where none is \
                                      planted.
    other_integrated          bool?   Whether any mechanism that is not planted is integrated; missing where none \
                                      is planted.
    n_mechanism_specific      int     Claims of the study that pass M.
    label                     str     Strongest verdict of the claims under test.
    alpha                     float?  Nominal error rate of the profile; none for point rules.
    p_predictive              float?  Largest p-value of the tests of P; none for point rules.
    p_severe_control          float?  Largest p-value of the tests of S; none for point rules.
    p_relational              float?  Largest p-value of the tests of R; none for point rules.
    p_mechanism_specific      float?  Largest p-value of the tests of M; none for point rules.
    p_ceiling                 float?  Largest p-value of the tests of T; none for point rules.
    p_replication             float?  Largest p-value of the tests of Rep; none for point rules.
""")

RATES = _VOCABULARY.table("""
    calibration/rates
    One row per cell, gate profile and gate: how often the gate passed.
    key: cell gate_profile gate

    cell rates
""")

TRUTH_RATES = _VOCABULARY.table("""
    calibration/truth_rates
    One row per known truth, gate profile and gate: how often the gate passed, all cells of the truth together.
    key: truth gate_profile gate

    truth    str  Known truth that the studies are simulated from.
    rates
    n_cells  int  Cells.
    why      str  Why the rate has its role.
""")

BIASES = _VOCABULARY.table("""
    calibration/biases
    One row per point rule and setting: what the rule finds, and what is true.
    key: bias step

    bias            str    Which rule: the best of many controls, reliability under drift, or a localiser on few \
                           rows.
    step            int    Place of the value in its series, from 0.
    setting         str    What is varied.
    value           float  Its value.
    apparent        float  Mean of what the rule finds.
    true            float  What an unbiased rule would find.
    bias_size       float  Apparent minus true.
    standard_error  float  Standard error of the bias.
    n_simulations   int    Simulations.
    meaning         str    The row in words.
""")

STUDY_DESIGN = _VOCABULARY.table("""
    controls/study_design
    One row per dataset and model: sizes and autocorrelation, and the independent events and units they are worth.
    key: dataset model

    layer                     int?    First claimed layer, whose features were measured.
    role                      str     Role after the audit.
    confirmatory              bool    Whether rows of this dataset can pass a gate.
    n_subjects                int     Usable subjects.
    n_subject_runs            int     Usable subject-runs.
    n_measured                int     Subject-runs whose autocorrelation was measured.
    n_events                  float?  Events of a subject-run, median.
    n_units                   float?  Brain units of a subject-run, median.
    n_folds                   int?    Outer folds, fewest.
    n_lags                    int?    Candidate lags, most.
    n_rivals                  int     Counted severe controls that are possible, and nuisance.
    response_autocorrelation  float?  Correlation of a unit's response with the one to the next event: median over \
                                      units and subject-runs.
    feature_autocorrelation   float?  The same of the feature columns; null if there are no features, and then \
                                      the responses are used instead.
    variance_inflation        float?  1 + 2 Σ_k (N_k / n) ρ_x(k) ρ_y(k), median over subject-runs.
    n_effective_events        float?  Events over variance inflation, median over subject-runs.
    n_effective_units         float?  Independent units that the units are worth, median over subject-runs.
    n_effective_subject_runs  float?  Independent subject-runs that those of the same stimulus are worth, by how \
                                      far their responses agree.
    ceiling_mode              str?    Reliability mode of the ceiling.
    ceiling                   float?  Largest score that a perfect model could expect: √ of the response reliability.
    reason
""")

MINIMUM_DETECTABLE_EFFECT = _VOCABULARY.table("""
    controls/minimum_detectable_effect
    One row per dataset, gate profile, gate and method: the smallest effect that the design detects with the target
    power.
    key: dataset gate_profile gate method

    gate_profile         str     Gate profile: `paper` point rules, or `calibrated` tests.
    gate
    method               str     `closed_form` (from sizes and autocorrelation), `observed_spread` (from a run's \
                                 own spread over subject-runs) or `simulated` (studies of this design through all \
                                 stages).
    target_power
    alpha                float?  Largest p-value that passes; null for a point rule.
    score                float?  Held-out score at the smallest detectable effect.
    score_low            float?  The same at the lower end of the interval of `snr`; simulated studies only.
    delta                float?  Smallest detectable mean contrast with the better of nuisance and best severe \
                                 control.
    fraction_of_ceiling  float?  Mean fraction of the brain–brain ceiling at that effect, as gate `ceiling` reads it.
    snr                  float?  Signal-to-noise ratio at the target power.
    snr_low              float?  Lower end of its 95 % interval.
    snr_high             float?  Upper end of its 95 % interval.
    snr_half             float?  Signal-to-noise ratio at a power of one half.
    n_trials             int     Simulated studies.
    n_passed             int     How many of them passed the gate.
    simulated_size       str     Sizes of simulated studies, compared with the design: `same`, `smaller`, `larger` or \
                                 `mixed`; `same` for other methods.
    enough_trials        bool    False where too few studies were simulated to exclude the target power at the \
                                 strongest effect, or a smallest effect below the ceiling.
    ceiling
    attainable           bool?   Whether `score` is below `ceiling`: an effect above it cannot exist.
    reason sentence
""")

LAYER_DETECTABILITY = _VOCABULARY.table("""
    controls/layer_detectability
    One row per dataset, model, layer, gate profile and gate of a run: what was observed and what could have been
    found. Gates beyond level 1 have rows where studies of the design were simulated.
    key: dataset model layer gate_profile gate

    gate_profile      str     Gate profile: `paper` point rules, or `calibrated` tests.
    gate
    verdict           str     `found`, `could_have_found`, `could_not_have_found` or `not_known`.
    n_subject_runs    int     Subject-runs with a finite level-1 contrast.
    score             float?  Observed mean held-out score.
    delta             float?  Observed mean contrast with the best rival.
    rival             str     The best rival: `nuisance` or the most frequent best control.
    detectable_score  float?  Score that would have been needed.
    detectable_delta  float?  Contrast that would have been needed.
    method            str     Method behind the two, as in `minimum_detectable_effect`.
    ceiling target_power reason sentence
""")

TABLES = tuple(_VOCABULARY.tables)
