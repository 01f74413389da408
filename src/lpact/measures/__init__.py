"""How a representation relates to responses: one protocol for models and brains.

A measure is fitted on training stimuli and scored on held-out ones. The source is a model's features or a brain's
units, the target a population of units. Measures of scope ``"unit"`` give one number per target unit, those of scope
``"population"`` one number. A value that is undefined is NaN, with its reason.

>>> import numpy as np
>>> from lpact import measures, splits
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((200, 5))                                 # stimuli × features
>>> Y = X @ rng.standard_normal((5, 3)) + rng.standard_normal((200, 3))  # stimuli × units
>>> Y[:, 2] = 1.0
>>> score = measures.LinearPredictivity().cross_validate(X, Y, splits.contiguous(200, 4, gap=2))
>>> print(score.value.round(1), *score.reason)
[0.8 0.8 nan]   the target is constant
>>> measures.CKA().score(X, X @ np.linalg.qr(rng.standard_normal((5, 5)))[0]).value.round(6)
np.float64(1.0)

`MEASURES` is the registry: ``measures.MEASURES.build("rsa")``, or ``lpact list measures``. Other packages add
theirs with the entry-point group ``lpact.measures``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lpact.measures.base import MEASURES, Measure, Score

if TYPE_CHECKING:
    from lpact.measures.behaviour import ErrorConsistency, ResponseCorrelation
    from lpact.measures.linear_r2 import LinearR2
    from lpact.measures.mapping import CCA, PLS, PWCCA, SVCCA, Procrustes
    from lpact.measures.matching import OneToOne, PairwiseMatching, SoftMatching
    from lpact.measures.predictivity import LinearPredictivity
    from lpact.measures.similarity import (
        CKA,
        RBFCKA,
        RSA,
        DebiasedCKA,
        DebiasedRBFCKA,
        EventResponse,
        MutualKNN,
        Pearson,
    )

__all__ = [
    "CCA",
    "CKA",
    "MEASURES",
    "PLS",
    "PWCCA",
    "RBFCKA",
    "RSA",
    "SVCCA",
    "DebiasedCKA",
    "DebiasedRBFCKA",
    "ErrorConsistency",
    "EventResponse",
    "LinearPredictivity",
    "LinearR2",
    "Measure",
    "MutualKNN",
    "OneToOne",
    "PairwiseMatching",
    "Pearson",
    "Procrustes",
    "ResponseCorrelation",
    "Score",
    "SoftMatching",
]

BUILT_IN = {
    "cca": "mapping:CCA",
    "cka": "similarity:CKA",
    "cka_debiased": "similarity:DebiasedCKA",
    "cka_rbf": "similarity:RBFCKA",
    "cka_rbf_debiased": "similarity:DebiasedRBFCKA",
    "error_consistency": "behaviour:ErrorConsistency",
    "event_response": "similarity:EventResponse",
    "linear": "predictivity:LinearPredictivity",
    "linear_r2": "linear_r2:LinearR2",
    "mutual_knn": "similarity:MutualKNN",
    "one_to_one": "matching:OneToOne",
    "pairwise_matching": "matching:PairwiseMatching",
    "pearson": "similarity:Pearson",
    "pls": "mapping:PLS",
    "procrustes": "mapping:Procrustes",
    "pwcca": "mapping:PWCCA",
    "response_correlation": "behaviour:ResponseCorrelation",
    "rsa": "similarity:RSA",
    "soft_matching": "matching:SoftMatching",
    "svcca": "mapping:SVCCA",
}


def __getattr__(name: str) -> Any:
    """Import a built-in measure on first use."""
    for registered, place in BUILT_IN.items():
        if place.partition(":")[2] == name:
            return MEASURES.get(registered)
    raise AttributeError(f"module 'lpact.measures' has no attribute '{name}'")
