"""Tables of operating characteristics and detectable effects."""

from __future__ import annotations

from lpact.tables._declare import Table

TABLES: tuple[Table, ...] = ()
