"""Tables of the Turing test."""

from __future__ import annotations

from lpact.tables import SHARED

_WORDS = SHARED.add(
    """
    region       str          Region of the units, or `all`.
    time         str          Lag of the responses, with its unit.
    lag_ms       float (ms)   Lag of the responses.
    measure      str          Measure of alignment.
    kind         str          Source: `brain`, `pooled` (all other brains), `model` (without noise) or `model_trials` \
                              (with simulated trials).
    source       str          Subject or model that is compared with the target; `others` if pooled.
    target       str          Subject that the source is compared with.
    value        float?       Agreement, corrected for noise where `corrected`; median over units.
    chance       float?       Uncorrected agreement where stimuli do not match; 0 where that is so by construction.
    above_chance  float?      (value − chance) / (1 − chance), corrected as the value is, which tests compare.
    corrected    bool         Whether the value is corrected for noise.
    detail       str          Why the value is missing or not corrected; empty otherwise.
    by_unit      list[float]  Value of every unit (one, for measures of populations); null where undefined.
    n_units      int          Units of the target.
    n_undefined  int          Values that are undefined, over units, halves and folds.
    n_values     int          Values in all, over units, halves and folds.
    layers       list[int]    Layer used in every fold.
    optimistic   bool         Whether something was chosen by test scores, or folds are random.
    """,
    place="dataset region time measure",
)

SUBJECTS = _WORDS.table("""
    turing/subjects
    One row per dataset and subject: its stimuli, trials and units.
    key: dataset subject

    n_recordings   int  Recordings that were read.
    n_stimuli      int  Stimuli with a response.
    n_shared       int  Stimuli with responses of all subjects, which are compared.
    n_repetitions  int  Most trials of a shared stimulus.
    fewest_trials  int  Fewest trials of a shared stimulus.
    n_missing      int  Missing values among shared stimuli and trials, over units and lags.
    n_units        int  Units.
    n_left_out     int  Units without a response to some shared stimulus; they are no source, and as targets undefined.
    reason
""")

REGIONS = _WORDS.table("""
    turing/regions
    One row per dataset, region and subject: how many units it has.
    key: dataset region subject

    n_units
""")

SPLITS = _WORDS.table("""
    turing/splits
    One row per dataset and measure: which stimuli it is fitted and scored on.
    key: dataset measure

    made_by        str   How stimuli were shared among folds; `all` if there are none.
    n_folds        int   Folds.
    n_stimuli      int   Stimuli.
    smallest_train int   Stimuli of the smallest training set; 0 without folds.
    smallest_test  int   Stimuli of the smallest test set.
    nearest        int?  Smallest distance between a training and a test stimulus; null if there is none.
    reason
""")

UNAVAILABLE = _WORDS.table("""
    turing/unavailable
    One row per dataset and item that its sources do not allow.
    key: dataset item

    item    str  Subject, region, model or measure.
    detail
    reason
""")

PAIRS = _WORDS.table("""
    turing/pairs
    One row per place, source, layer and target: how well the source agrees with the target.
    key: place kind source layer target

    lag_ms kind source
    layer        int          Layer of a model; −1 for brains.
    target value chance above_chance
    uncorrected  float?       The same without noise correction.
    reliability_source  float?  Reliability of the source's side that the noise correction used, median over units.
    reliability_target  float?  Reliability of the target that the noise correction used, median over units.
    corrected n_units
    n_source_units  int       Units, or columns, of the source that were used.
    n_undefined n_values
    n_stimuli    int          Stimuli that were compared.
    n_stimuli_left_out  int   Stimuli left out of the comparison or of the reliabilities, because trials are missing.
    n_source_left_out   int   Units of the source left out, because a response is missing.
    by_unit
    by_fold      list[float]  Value of every fold and unit, folds first; empty for brains.
    training     list[float]  Uncorrected agreement on the training stimuli of every fold; empty without a choice.
    detail reason
""")

MODEL_PAIRS = _WORDS.table("""
    turing/model_pairs
    One row per place, kind, model and target: agreement at the layers that were chosen.
    key: place kind model target

    lag_ms kind target value above_chance by_unit layers optimistic n_undefined n_values reason
""")

SCORES = _WORDS.table("""
    turing/scores
    One row per place and source: the score of brains, and that of every model.
    key: place kind source

    lag_ms kind source
    score          float?  Mean over sources for every unit of every target, then median over units; for measures of \
                           populations, mean over sources for every target, then median over targets.
    sem            float?  Standard error of the mean over the same units or targets.
    n              int     Units or targets.
    mean_of_pairs  float?  Mean over targets and sources of the median over units.
    above_chance
    noise_ceiling  float?  Mean over subjects of the square root of their reliability (0 where it is negative): the \
                           largest uncorrected score to expect.
    corrected
    n_undefined
    n_values
    reason
""")

GROWTH = _WORDS.table("""
    turing/growth
    One row per place, quantity and size: brain–brain agreement with fewer units, stimuli or repetitions.
    key: place over size

    lag_ms
    over       str          What was subsampled: `units`, `stimuli` or `repetitions`.
    size       int          How many were used.
    value      float?       Mean over targets.
    by_target  list[float]  Value of every target, mean over sources and draws.
    corrected detail reason
""")

GROWTH_FITS = _WORDS.table("""
    turing/growth_fits
    One row per place and quantity: does brain–brain agreement still grow?
    key: place over

    lag_ms
    over           str     What was subsampled.
    value          float?  Agreement with all data.
    per_doubling   float?  Gain per doubling, by a straight line over the logarithm of the size.
    at_infinity    float?  Agreement with infinitely many, by a curve that saturates.
    low            float?  Lower end of the 95 % interval of it, over targets.
    high           float?  Upper end.
    reaches_one_at float?  Size at which the straight line reaches 1; null where it does not rise.
    verdict        str     `levelled_off`, `growing` or `unclear`.
    reason
""")

INSTANCES = _WORDS.table("""
    turing/instances
    One row per place and group of instances: do instances of a model vary as brains do?
    key: place group

    lag_ms
    group          str          Name of the group in `turing.instances`.
    of_instances   list[float]  Mean agreement (above chance) of every instance with brains.
    of_brains      list[float]  Mean agreement of every brain with the other brains.
    sd_instances   float?       Standard deviation over instances.
    sd_brains      float?       Standard deviation over brains.
    p_spread       float?       Two-sided permutation test of equal spread (mean absolute deviations).
    p_mean         float?       Two-sided permutation test of equal means.
    smallest_p     float        Smallest p-value that these permutations can give.
    reason
""")

CLAIMS = _WORDS.table("""
    turing/claims
    One row per place and model: is it as close to brains as they are to each other?
    key: place model

    lag_ms
    score          float?  Score of the model, as it was tested.
    score_without_noise  float?  Score of the model's noise-free activity, as in the literature.
    between        float?  Score of brains.
    fraction_of_between  float?  Score of the model as a fraction of that of brains, both above chance, if brains agree.
    position       str     `below`, `within` or `above` the brains; empty if not computed.
    saturated      bool    Whether some model converges or is above the brains at this place.
    gap            float?  Mean agreement of the model with brains, minus that of brains with each other.
    gap_low        float?  Lower end of its confidence interval (level 1 − alpha).
    gap_high       float?  Upper end.
    p_value        float?  P-value that the model is one more brain, two-sided.
    test           str     `exact`, `approximate`, `paired` (pooled sources) or `none`.
    smallest_p     float?  Smallest p-value that the test can give with these subjects.
    bound          float?  Gap that still counts as equivalent.
    equivalence_p  float?  P-value that the gap is outside the bound (two one-sided tests).
    power          float?  Probability of detecting a gap of the size of the bound.
    detectable_gap float?  Gap that is noticed with a probability of 0.8.
    agreement_p    float?  P-value that brains do not agree with each other.
    n_subjects     int     Subjects that were compared.
    n_left_out     int     Subjects left out because a value of theirs is undefined.
    subject_share float?  Share of variance between pairs that is due to subjects.
    rank_sum_p     float?  Rank-sum test of model–brain against brain–brain values, as in the paper.
    rank_sum_false_alarms  float?  How often it rejects one more brain, for so many subjects and this share.
    ks_p           float?  Kolmogorov–Smirnov test of the same, as in the paper.
    ks_false_alarms  float?  How often it rejects one more brain.
    converges_in_paper  bool  Whether the rank-sum test does not reject.
    layers optimistic corrected n_undefined n_values
    agrees         bool    Gate A: brains agree with each other.
    could_reject   bool    Gate T: a test could tell a model from a brain.
    not_rejected   bool    Gate N: the test does not.
    comparable     bool    Gate C: no more columns than a typical brain has units, or agreement has levelled off.
    equivalent     bool    Gate E: the gap is within the bound.
    label          str     The verdict.
    reason         str     The verdict in one sentence.
""")

TABLES = tuple(_WORDS.tables)
