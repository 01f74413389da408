"""Tables of positive controls that use brains and implanted signals."""

from __future__ import annotations

from lpact.tables._declare import Table

TABLES: tuple[Table, ...] = ()
