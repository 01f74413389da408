"""Features that cannot be had are values with a reason, never gaps."""

from __future__ import annotations

from dataclasses import dataclass

from lpact.reasons import Reason


@dataclass(frozen=True)
class Missing:
    """Why a nuisance feature or mechanism cannot be computed for a stimulus."""

    reason: Reason
    detail: str
