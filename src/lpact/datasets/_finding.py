"""What the audit writes down instead of raising."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lpact.codes import Reason


@dataclass(frozen=True)
class Finding:
    """Something that the audit left out (``excluded``) or kept with a ``note``.

    ``field`` is the unit, column or file that the finding is about.
    """

    field: str
    reason: Reason
    severity: Literal["excluded", "note"]
    where: str
    found: str
    expected: str
    remedy: str
