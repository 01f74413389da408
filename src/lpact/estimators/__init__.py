"""Readouts with the manners of scikit-learn: ``fit``, ``predict``, ``score``, in pipelines and searches.

They need scikit-learn: ``pip install 'lpact[sklearn]'``.
"""

try:
    # New in scikit-learn 1.6.
    from sklearn.utils.validation import validate_data as _validate_data  # noqa: F401
except ImportError as error:
    raise ImportError(
        "lpact.estimators needs scikit-learn 1.6 or newer, which is not installed: pip install 'lpact[sklearn]'",
        name="sklearn",
    ) from error

from lpact.estimators.banded_ridge import BandedRidge
from lpact.estimators.nested_ridge import NestedRidge

__all__ = ["BandedRidge", "NestedRidge"]
