"""Ridge readouts with scikit-learn's interface: ``fit``, ``predict`` and ``score``, for pipelines and searches.

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

from lpact.estimators._ridge import BandedRidge, NestedRidge

__all__ = ["BandedRidge", "NestedRidge"]
