"""Alignment of one representation with many units at once, and of units with each other.

``*_to_units(phi, units)`` aligns φ [n_events, n_columns] with every unit (column) of units [n_events, n_units] and
returns [n_units]; ``*_between_units(units)`` is the same definition with φ = one unit, for all pairs: [n_units,
n_units], diagonal 1. Columns are standardised first: shifting a column, or scaling it by a positive factor, changes
nothing. Constant columns of φ are left out; a constant unit, or φ without any varying column, gives NaN. Kernels and
RDM patterns of whole representations are computed once and compared many times; their columns are not standardised.
"""

from lpact.math.similarity.cka import (
    LinearKernel,
    cka_between_units,
    cka_to_units,
    linear_alignment,
    linear_kernel,
)
from lpact.math.similarity.cka_rbf import (
    RBFKernel,
    cka_rbf_between_units,
    cka_rbf_to_units,
    rbf_alignment,
    rbf_kernel,
)
from lpact.math.similarity.correlation import (
    event_response_between_units,
    event_response_to_units,
    pearson_between_units,
    pearson_to_units,
)
from lpact.math.similarity.rsa import rdm, rdm_pattern, rsa_between_units, rsa_to_units

__all__ = [
    "LinearKernel",
    "RBFKernel",
    "cka_between_units",
    "cka_rbf_between_units",
    "cka_rbf_to_units",
    "cka_to_units",
    "event_response_between_units",
    "event_response_to_units",
    "linear_alignment",
    "linear_kernel",
    "pearson_between_units",
    "pearson_to_units",
    "rbf_alignment",
    "rbf_kernel",
    "rdm",
    "rdm_pattern",
    "rsa_between_units",
    "rsa_to_units",
]
