"""How well brains agree with themselves and with each other: the score that a perfect model could reach.

Responses are arrays of stimuli × repetitions × units, or subjects × stimuli × units; a missing trial, stimulus or unit
is NaN. Undefined values are counted in ``n_undefined``; a mean over none is NaN.

>>> import numpy as np
>>> from lpact import ceilings, measures, splits
>>> rng = np.random.default_rng(0)
>>> signal = rng.standard_normal((100, 1, 3))
>>> responses = signal + rng.standard_normal((100, 8, 3))         # stimuli × repetitions × units
>>> found = ceilings.split_half(responses, n_draws=20)
>>> found.value.round(1), found.corrected.round(1)               # a half of 4 trials: 0.8; all 8: 0.9
(array([0.8, 0.8, 0.8]), array([0.9, 0.9, 0.9]))
>>> subjects = signal[:, 0] + rng.standard_normal((5, 100, 3))    # subjects × stimuli × units
>>> ceilings.group_mean(subjects).value.round(1)                  # each subject with the mean of the others
array([0.7, 0.6, 0.6])

A model, or another brain, that predicts these responses can be scored without the noise of either:

>>> linear, split = measures.LinearPredictivity(), splits.contiguous(100, 4)
>>> found = ceilings.consistency(signal[:, 0], responses, linear, split, n_halves=5)
>>> found.uncorrected.round(1), found.value.round(1)
(array([1. , 1. , 0.9]), array([1., 1., 1.]))
"""

from lpact.ceilings.between import (
    Aggregate,
    BetweenSubjects,
    aggregate,
    between_subjects,
    pool,
)
from lpact.ceilings.consistency import Consistency, consistencies, consistency
from lpact.ceilings.growth import Extrapolation, Growth, extrapolate, growth, growth_sizes
from lpact.ceilings.reliability import (
    Ceiling,
    PairScores,
    agreement,
    correlation_with_mean,
    group_mean,
    noise_corrected,
    pooled_source,
    random_halves,
    spearman_brown,
    split_half,
    standardised,
    subject_pairs,
    trial_noise,
)

__all__ = [
    "Aggregate",
    "BetweenSubjects",
    "Ceiling",
    "Consistency",
    "Extrapolation",
    "Growth",
    "PairScores",
    "aggregate",
    "agreement",
    "between_subjects",
    "consistencies",
    "consistency",
    "correlation_with_mean",
    "extrapolate",
    "group_mean",
    "growth",
    "growth_sizes",
    "noise_corrected",
    "pool",
    "pooled_source",
    "random_halves",
    "spearman_brown",
    "split_half",
    "standardised",
    "subject_pairs",
    "trial_noise",
]
