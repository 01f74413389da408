"""What the source audit learns of a dataset: sizes and offers, free of data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lpact.analyses.lpact.levels.media import MediaAudit, Row
from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import RecordingId
from lpact.tables import Table

__all__ = ["ContextOffer", "DatasetAudit", "RecordingSummary", "Row"]


@dataclass(frozen=True)
class ContextOffer:
    """What one (recording, model, layer) can be scored under: draws by available control, reasons for the others."""

    recording: RecordingId
    model: str
    layer: int
    n_features: int
    draws: Mapping[str, int]
    unavailable: Mapping[str, tuple[Reason, str]]
    strippings: tuple[str, ...]
    layers_offered: tuple[int, ...]
    contexts_offered: tuple[str, ...]


@dataclass(frozen=True)
class RecordingSummary:
    """Sizes of a usable recording that planning needs."""

    id: RecordingId
    unit_ids: tuple[str, ...]
    n_events: int
    n_lags: int
    n_folds: int
    mechanisms: tuple[str, ...]
    comparable: bool = True


@dataclass
class DatasetAudit:
    """Everything that the audit knows about one dataset; small, and free of data."""

    config: DatasetConfig
    media: MediaAudit
    recordings: list[RecordingSummary] = field(default_factory=list)
    contexts: list[ContextOffer] = field(default_factory=list)
    models_offered: set[str] = field(default_factory=set)
    confirmatory: bool = False
    tables: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        """Append rows to one of the audit's tables."""
        self.tables.setdefault(table.name, []).extend(rows)

    def rows(self, table: Table) -> list[Row]:
        """Rows of one of the audit's tables so far."""
        return self.tables.get(table.name, [])

    def models(self) -> list[str]:
        """Models with features for this dataset, in order of appearance."""
        return list(dict.fromkeys(c.model for c in self.contexts))
