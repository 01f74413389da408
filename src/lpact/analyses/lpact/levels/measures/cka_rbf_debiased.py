"""Debiased centred kernel alignment with Gaussian kernels."""

from __future__ import annotations

from typing import ClassVar

from lpact.analyses.lpact.levels.measures.cka_rbf import RBFCKA


class DebiasedRBFCKA(RBFCKA):
    """`cka_rbf` from unbiased estimators of HSIC: about zero where nothing is shared, and possibly below.

    References: Kornblith et al. (2019), ICML; Song et al. (2007), ICML.
    """

    name = "cka_rbf_debiased"
    summary = "debiased centred kernel alignment with Gaussian kernels"
    debiased: ClassVar[bool] = True
