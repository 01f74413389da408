"""Tables of the claim audit."""

from __future__ import annotations

from lpact.tables._declare import Table

TABLES: tuple[Table, ...] = ()
