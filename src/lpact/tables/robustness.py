"""Tables of the robustness analyses."""

from __future__ import annotations

from lpact.tables._declare import Table

TABLES: tuple[Table, ...] = ()
