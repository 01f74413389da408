"""Statistics for scores of stimuli, blocks, units and subjects: p-values, intervals, multiple tests.

SciPy's functions are used if they exist. The functions here add what SciPy lacks: whole blocks as the unit of
resampling, undefined values that are counted, exact ties.

>>> import numpy as np
>>> from lpact import stats
>>> gains = np.array([0.04, 0.01, 0.03, 0.05, -0.01, 0.02, 0.03, 0.04])  # model − nuisance, one per held-out block
>>> stats.sign_flip_p_value(gains, np.random.default_rng(0))
0.01171875
>>> low, high = stats.bootstrap_interval(gains, np.random.default_rng(0))
>>> bool(low < gains.mean() < high)
True
>>> stats.benjamini_hochberg(np.array([0.01, np.nan, 0.04, 0.03]))
array([0.03,  nan, 0.04, 0.04])
"""

from lpact.stats.best import best_bootstrap_p_values, best_p_values, paired_t
from lpact.stats.effective_sample import (
    ar1_variance_inflation,
    autocorrelation,
    effective_units,
    expected_maximum,
    median_penalty,
    pair_counts,
    segment_lengths,
    variance_inflation,
)
from lpact.stats.intervals import (
    Bootstrap,
    block_bootstrap,
    bootstrap_interval,
    expanded_tail,
    student_interval,
    wilson_interval,
)
from lpact.stats.randomization import (
    MAX_EXACT,
    benjamini_hochberg,
    block_permutation_p_value,
    bootstrap_p_value,
    draw_p_value,
    equivalence_p_value,
    intersection_union,
    one_sample_p_value,
    partial_conjunction,
    random_signs,
    rank_p_values,
    sign_flip_p_value,
    student_tail,
)
from lpact.stats.subjects import (
    PairMeans,
    SubjectTest,
    compare_with_pooled,
    compare_with_subjects,
    pair_means,
    subject_test_rates,
)

__all__ = [
    "MAX_EXACT",
    "Bootstrap",
    "PairMeans",
    "SubjectTest",
    "ar1_variance_inflation",
    "autocorrelation",
    "benjamini_hochberg",
    "best_bootstrap_p_values",
    "best_p_values",
    "block_bootstrap",
    "block_permutation_p_value",
    "bootstrap_interval",
    "bootstrap_p_value",
    "compare_with_pooled",
    "compare_with_subjects",
    "draw_p_value",
    "effective_units",
    "equivalence_p_value",
    "expanded_tail",
    "expected_maximum",
    "intersection_union",
    "median_penalty",
    "one_sample_p_value",
    "pair_counts",
    "pair_means",
    "paired_t",
    "partial_conjunction",
    "random_signs",
    "rank_p_values",
    "segment_lengths",
    "sign_flip_p_value",
    "student_interval",
    "student_tail",
    "subject_test_rates",
    "variance_inflation",
    "wilson_interval",
]
