"""What cannot be had is a value with a reason, never a gap."""

from __future__ import annotations

from dataclasses import dataclass

from lpact.codes import Reason


@dataclass(frozen=True)
class Missing:
    """Why a nuisance feature, mechanism, control or strip cannot be made here."""

    reason: Reason
    detail: str
