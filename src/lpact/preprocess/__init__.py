"""From a recording as it was stored to the signal that a study analyses."""

from lpact.preprocess.apply import preprocess

__all__ = ["preprocess"]
