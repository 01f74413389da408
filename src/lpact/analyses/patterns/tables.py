"""Tables of alignment patterns."""

from __future__ import annotations

from lpact.tables import SHARED

_WORDS = SHARED.add(
    """
    measure     str     Measure of alignment.
    region      str     Region of the target.
    source_region  str  Region of the source, or the one for which a model's layer was chosen.
    source      str     Subject or model that predicts, or is compared with, the target.
    target      str     Subject whose region is the target.
    model       str     Model.
    layer       int?    Layer of the model that was chosen for the region; null if none could be.
    value       float?  Score on test stimuli; mean over units for measures with one value per unit.
    clipped     float?  The same with the values of units below 0 set to 0.
    n_units     int     Usable units of the target.
    n_undefined int     Units of the target without a value.
    detail      str     Why the value is missing; empty otherwise.
    noise       float?  Standard deviation of the noise of one trial that the model was given, relative to its signal; \
                        null: the model had no noise.
    kind        str     Kind of source: `brain` or `model`.
    mean        float?  Mean over subjects.
    low         float?  Lower end of its interval (level 1 − alpha).
    high        float?  Upper end.
    best        str     Model with the highest mean score.
    equivalent_in_paper  bool  Whether the mean is within the interval of the best model's mean, as in the paper.
    equivalent  bool    Whether the model could be the best one: no other model has a higher mean by paired t-tests, \
                        corrected for the search.
    n_subjects  int     Subjects.
    """,
    place="dataset measure region",
)

SUBJECTS = _WORDS.table("""
    patterns/subjects
    One row per dataset and subject: its stimuli, trials and units.
    key: dataset subject

    n_recordings   int  Recordings that were read.
    n_train        int  Training stimuli that all subjects share.
    n_test         int  Test stimuli that all subjects share.
    n_own          int  Stimuli with a response that some other subject lacks; they are not used.
    n_repetitions_train  int  Most trials of a training stimulus.
    n_repetitions_test   int  Most trials of a test stimulus.
    n_units        int  Units.
    reason
""")

REGIONS = _WORDS.table("""
    patterns/regions
    One row per dataset, region and subject: its population of units.
    key: dataset region subject

    n_units        int   Usable units: finite for all stimuli, and varying over training stimuli.
    n_left_out     int   Other units.
    used           bool  Whether the region is analysed: every subject has enough usable units.
    comparable     bool  Whether units of the same name are the same place in every subject, and all subjects have the \
                         same usable ones.
    reason
""")

PLACES = _WORDS.table("""
    patterns/places
    One row per dataset, region and side: where its usable units are, if all subjects have coordinates in one frame.
    key: dataset region side

    side              str         `left` (x up to 0) or `right`.
    x_mm              float (mm)  Mean of units, then of subjects.
    y_mm              float (mm)  The same.
    z_mm              float (mm)  The same.
    coordinate_frame  str         Frame of the coordinates.
    n_subjects
""")

CONNECTIVITY = _WORDS.table("""
    patterns/connectivity
    One row per dataset and pair of regions: structural connectivity, as it was read.
    key: dataset region other

    other   str     The other region.
    weight  float   Strength of the connection; equal in both directions.
""")

UNAVAILABLE = _WORDS.table("""
    patterns/unavailable
    One row per dataset and item that its sources do not allow.
    key: dataset item

    item    str  Subject, region, model, measure or ceiling.
    detail
    reason
""")

TARGETS = _WORDS.table("""
    patterns/targets
    One row per dataset, region and subject: how reliable the test responses are.
    key: dataset region target

    reliability  float?  Reliability of the mean of all test trials (split halves, Spearman–Brown), mean over units; \
                         null without repetitions.
    median_reliability  float?  The same, median over units; the noise of models is matched to it.
    n_units n_undefined detail reason
""")

BRAIN_PAIRS = _WORDS.table("""
    patterns/brain_pairs
    One row per measure and pair of regions in two subjects: how well one brain's region predicts another's.
    key: dataset measure source_region source region target

    value clipped n_units n_undefined detail reason
""")

CEILING_VALUES = _WORDS.table("""
    patterns/ceiling_values
    One row per place, kind of mean brain and target: how well a mean of brains predicts a brain.
    key: dataset measure ceiling region target

    ceiling  str  `leave_one_out_mean` (mean of the other subjects) or `all_including_self`.
    made_of  str  What was averaged over subjects: `units`, `representations` (such as RDMs), or empty.
    value clipped n_units n_undefined detail reason
""")

LAYERS = _WORDS.table("""
    patterns/layers
    One row per measure, model, layer, region and subject: scores on training and test stimuli.
    key: dataset measure model layer region target

    layer     int     Layer of the model.
    training  float?  Score on training stimuli, by which the layer is chosen (fitted measures: cross-validated); \
                      null for models with one layer.
    value clipped n_units n_undefined detail reason
""")

MODEL_TRIALS = _WORDS.table("""
    patterns/model_trials
    One row per measure, model, region that it stands for, target region and subject: scores with noise like a brain's.
    key: dataset measure model source_region region target

    layer noise value clipped n_units n_undefined detail reason
""")

SCORES = _WORDS.table("""
    patterns/scores
    One row per place, model and subject: the score at the layer that was chosen for the region, without noise.
    key: dataset measure region model target

    layer value clipped
    optimistic  bool  Whether the layer was chosen by test scores.
    reason
""")

CEILINGS = _WORDS.table("""
    patterns/ceilings
    One row per place and ceiling: how well brains predict a brain.
    key: dataset measure ceiling region

    ceiling  str  `leave_one_out_mean`, `pairwise` or `all_including_self`.
    in_paper       str  What the paper calls it: `upper`, `lower` or empty.
    in_rsatoolbox  str  What rsatoolbox calls it: `lower`, `upper` or empty.
    mean           float?  Mean over target subjects (and their sources).
    low high
    n_subjects
    n_values       int     Values averaged.
    reason
""")

RANKING = _WORDS.table("""
    patterns/ranking
    One row per place and model: score, rank, equivalence to the best. Region `mean`: the mean over regions.
    key: dataset measure region model

    layer mean low high
    median   float?  Median over subjects.
    rank     int?    1 for the highest mean score.
    best equivalent_in_paper equivalent
    best_p   float?  P-value that it is the best model, corrected for the search for a better one.
    best_bootstrap_p  float?  The same by paired resamples of subjects, with the search in every resample.
    fraction_of_pairwise  float?  Mean as a fraction of the ceiling of pairs, if that is above 0.
    fraction_of_mean      float?  Mean as a fraction of the ceiling of the other subjects' mean, if that is above 0.
    n_subjects reason
""")

CLASSES = _WORDS.table("""
    patterns/classes
    One row per place: how many models the measure can tell apart. Region `mean` is the mean over regions.
    key: dataset measure region

    best
    n_models               int  Models with a score.
    n_equivalent_in_paper  int  Models that are equivalent to the best, as in the paper.
    n_equivalent           int  Models that could be the best one.
    n_pairs                int  Pairs of models.
    n_pairs_apart          int  Pairs whose mean scores differ: paired t-tests, false discovery rate alpha.
""")

PATTERNS = _WORDS.table("""
    patterns/patterns
    One row per measure, region, source and target region: mean alignment patterns over subjects (or pairs).
    key: dataset measure source_region kind source region

    source  str  Model, or `brains`.
    layer
    mean low high reason
""")

SIMILARITIES = _WORDS.table("""
    patterns/similarities
    One row per place, source and target: how similar the source's alignment pattern is to that of other brains.
    key: dataset measure region kind source target

    region       str     Region whose pattern is compared.
    layer
    similarity   float?  Correlation with the mean pattern of all pairs of brains without the target, as in the paper.
    similarity_without_source  float?  The same, without pairs of the source either; for models the mean over \
                         every other brain left out. Tests compare these.
    other_regions  float?  Mean of the latter over the patterns of all other regions.
    reason
""")

CONFUSION = _WORDS.table("""
    patterns/confusion
    One row per measure and pair of regions: similarity of the mean patterns of brains.
    key: dataset measure region other

    region      str     Region whose pattern is compared.
    other       str     The other region.
    similarity  float?  Correlation of both patterns.
    reason
""")

DIAGNOSTICS = _WORDS.table("""
    patterns/diagnostics
    One row per place: what the region's alignment pattern depends on.
    key: dataset measure region

    region          str     Region whose pattern is compared.
    own_region      float?  Mean similarity of brains to the pattern of the region.
    other_regions   float?  Mean correlation of the region's pattern with those of all other regions.
    targets         float?  Correlation of the region's pattern with the predictability of the target regions.
    predictability  str     What predictability is: `reliability` of the targets, or, without repetitions, \
                            `pairwise` (the ceiling of pairs).
    reason
""")

STRUCTURE = _WORDS.table("""
    patterns/structure
    One row per place: does the region's alignment pattern follow structural connectivity?
    key: dataset measure region

    region      str     Region whose pattern is compared; it is left out of both patterns.
    similarity  float?  Correlation of the mean pattern of brains with the structural one.
    n_regions   int     Entries of both patterns.
    n_drawn_from  int   Regions of the matrix that random patterns were drawn from.
    n_draws     int     Random structural patterns.
    null_low    float?  2.5 % quantile of their similarity.
    null_high   float?  97.5 % quantile.
    p_higher    float?  One-sided p-value: (1 + random patterns at least as similar) / (1 + draws).
    p_two_sided float?  Two-sided p-value, twice the smaller tail.
    q_higher    float?  `p_higher`, corrected over regions (Benjamini–Hochberg).
    q_two_sided float?  `p_two_sided`, corrected over regions.
    significant bool    Whether `q_higher` is at most alpha.
    outside_in_paper  bool  Whether the similarity is outside the 95 % range, uncorrected, as in the paper.
    reason
""")

CLAIMS = _WORDS.table("""
    patterns/claims
    One row per place and model: does the model relate to all regions as this region of the brain does?
    key: dataset measure region model

    layer noise n_subjects
    score          float?  Mean score over subjects, without noise.
    score_low      float?  Lower end of its interval.
    score_high     float?  Upper end.
    median_score   float?  Median over subjects.
    rank           int?    1 for the highest mean score.
    best equivalent_in_paper equivalent
    best_p         float?  P-value that it is the best model.
    best_bootstrap_p  float?  The same by paired resamples of subjects.
    pairwise       float?  Ceiling of pairs.
    mean_of_others float?  Ceiling of the other subjects' mean.
    turing_p       float?  P-value that the score is that of one more brain, two-sided.
    turing_gap     float?  Score of the model, with noise where it is matched, minus that of brains.
    similarity     float?  Mean similarity of the model's pattern to that of brains.
    similarity_of_brains  float?  Mean similarity of brains' patterns.
    similarity_in_paper   float?  Median over subjects of the similarity as in the paper.
    other_regions  float?  Mean similarity of brains' patterns to those of other regions.
    share          float?  Similarity of the model above that to other regions, as a fraction of that of brains.
    gap            float?  Similarity of the model minus that of brains.
    gap_low        float?  Lower end of its interval (level 1 − alpha).
    gap_high       float?  Upper end.
    p_value        float?  P-value that the model's pattern is one more brain's, two-sided.
    bound          float?  Loss of similarity that still counts as equivalent.
    pattern_p      float?  P-value that brains' patterns are similar at all.
    distinct_p     float?  P-value that they are more similar to the region's pattern than to those of other regions.
    optimistic     bool    Whether the layer was chosen by test scores.
    positive       bool    Gate V: the score is above 0 in the median subject.
    reproduced     bool    Gate R: brains reproduce the region's pattern.
    distinct       bool    Gate D: the pattern is specific to the region.
    not_rejected   bool    Gate N: the model's pattern is not rejected as one more brain's, or more similar.
    as_similar     bool    Gate E: the loss of similarity is within the bound.
    label          str     The verdict.
    reason         str     The verdict in one sentence.
""")

TABLES = tuple(_WORDS.tables)
