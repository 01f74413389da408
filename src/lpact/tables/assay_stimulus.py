"""Tables of positive controls that use the stimulus: word onsets, word rate, acoustic envelope."""

from __future__ import annotations

from lpact.tables._declare import Table

TABLES: tuple[Table, ...] = ()
