"""The decision of a run with altered tables or thresholds, compared with the run's own decision.

Gates are those of `lpact.analyses.lpact.gates`. Only what can have changed is decided again: a claim that fails a gate
which the change does not touch is not integrated before or after it, so its layer is skipped, as is a layer without any
number at some level. Multiple-testing correction covers all claims of the study, with the stored p-values. A claim is
not tested further once a p-value is above the false discovery rate: how far above changes no other claim (Benjamini &
Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.analysis import LPact
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates import NEEDED
from lpact.analyses.lpact.gates.decision import decide_gathered, gather, read_all
from lpact.analyses.lpact.gates.keys import LAYER_KEY, Layer
from lpact.analyses.lpact.tables import levels
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel, Reason
from lpact.stats import benjamini_hochberg
from lpact.tables import Table

Tables = Mapping[str, pl.DataFrame]
Counts = dict[str, dict[str, int]]
"""By gate profile: claims, integrated ones, and those that a change gains and loses."""

GATES = tuple(LPact.claims.gates.values())
"""Columns of the gates in the decision table."""
DECIDED: tuple[Table, ...] = (
    levels.CONTROL_DELTAS,
    levels.PROFILE_DELTAS,
    levels.STRIPPING_DELTAS,
    levels.SPECIFICITY,
    levels.DISSOCIATIONS,
    levels.NORMALIZED_SCORES,
    DECISIONS,
)
"""Tables of a decision that are read: rows of all levels with their labels, and the claims."""
_NOT_IN_GATES = (levels.STRIPPING_DELTAS, levels.DISSOCIATIONS)
"""Tables whose rows are labelled by the decision, and that no gate reads."""
_LEVELS = (
    levels.CONTROL_DELTAS,
    levels.PROFILE_DELTAS,
    levels.SPECIFICITY,
    levels.NORMALIZED_SCORES,
)


@dataclass
class DecidedRun:
    """Tables of a run in ``tables``, those with decided columns in ``base``, and thresholds of its decision."""

    tables: Tables
    base: Tables
    gates: GatesConfig
    primary_metric: str

    @property
    def decisions(self) -> pl.DataFrame:
        """The decision table of the run."""
        return self.base[DECISIONS.name]

    @property
    def profiles(self) -> list[str]:
        """Gate profiles, sorted."""
        return self.decisions["gate_profile"].unique().sort().to_list()

    @property
    def datasets(self) -> list[str]:
        """Datasets with claims, sorted."""
        return self.decisions["dataset"].unique().sort().to_list()


class Decider(DecidedRun):
    """Decides a run's tables again; ``base`` is the decision with nothing altered."""

    def __init__(
        self,
        tables: Tables,
        gates: GatesConfig,
        primary_metric: str,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        tell("deciding the run")
        measured = read_all(tables)
        self._found = gather(measured, gates=gates, primary_metric=primary_metric)
        base = decide_gathered(self._found)
        super().__init__({**tables, **measured}, base, gates, primary_metric)
        self.tell = tell
        self._claims = StudyClaims(self.decisions)
        self._opened: dict[tuple[frozenset[str], str | None], tuple[pl.DataFrame, Tables]] = {}

    def without_dataset(self, dataset: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Decisions and outcomes without one dataset; layers of the others do not change."""
        return self._found.without_dataset(dataset)

    def unchanged(self) -> Counts:
        """Counts of the run itself."""
        return self._claims.counts((), (), None, self.gates.fdr)

    def counts(
        self,
        touched: Iterable[str],
        *,
        gates: GatesConfig | None = None,
        change: Callable[[Tables], Tables] | None = None,
        dataset: str | None = None,
    ) -> Counts:
        """Counts with other thresholds (``gates``), or with tables altered by ``change``.

        ``touched`` are columns of the gates whose result may change; ``dataset`` is the only one affected. ``change``
        must work on the tables of any set of layers.
        """
        gates = gates or self.gates
        changed = frozenset(touched)
        layers, tables = self._open(changed, dataset)
        if not layers.height or (change is None and gates == self.gates):
            return self.unchanged()
        if change is not None:
            tables = {**tables, **change(tables)}
        found = gather(
            tables,
            gates=gates,
            primary_metric=self.primary_metric,
            stripped=tables[levels.SPECIFICITY.name],
            stop_above=gates.fdr,
        )
        present = tables[levels.CONTROL_DELTAS.name].select(LAYER_KEY).unique().rows()
        return self._claims.counts(layers.rows(), present, found.integrated(), gates.fdr)

    def _open(self, touched: frozenset[str], dataset: str | None) -> tuple[pl.DataFrame, Tables]:
        """Layers with rows at every level and a claim that passes every untouched gate; and their tables."""
        if (touched, dataset) not in self._opened:
            claims = self.decisions
            # A claim that one gate stops has a p-value above alpha, and cannot be found at an fdr up to it.
            if self.gates.fdr <= self.gates.alpha:
                closed = [gate for gate in GATES if gate not in touched]
                claims = claims.filter(pl.all_horizontal(pl.lit(True), *closed))
            if dataset is not None:
                claims = claims.filter(dataset=dataset)
            layers = claims.select(LAYER_KEY).unique(maintain_order=True)
            for table in _LEVELS:
                measured = self.tables[table.name].filter(pl.col("reason") == Reason.OK.value)
                layers = layers.join(measured, on=LAYER_KEY, how="semi", maintain_order="left")
            read = {t.name: self.tables[t.name] for t in NEEDED if t not in _NOT_IN_GATES}
            for name, whole in read.items():
                if set(LAYER_KEY) <= set(whole.columns):
                    read[name] = whole.join(layers, LAYER_KEY, how="semi", maintain_order="left")
            self._opened[touched, dataset] = layers, read
        return self._opened[touched, dataset]


class StudyClaims:
    """The claims of a decided run."""

    def __init__(self, decisions: pl.DataFrame) -> None:
        keys = decisions.select(DECISIONS.key).rows()
        self._place = {key: place for place, key in enumerate(keys)}
        self._rows_of: dict[Layer, list[int]] = {}
        for place, key in enumerate(keys):
            self._rows_of.setdefault(key[:3], []).append(place)
        self._passed = decisions.select(pl.all_horizontal(*GATES)).to_series().to_numpy()
        self._p = decisions["p_value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        self._before = decisions["integrated"].to_numpy()
        label = decisions["label"] == FinalLabel.INSUFFICIENT_COVERAGE.value
        self._uncovered = label.to_numpy()
        profile = decisions["gate_profile"]
        self._of = {name: (profile == name).to_numpy() for name in profile.unique().sort()}

    def counts(
        self,
        layers: Iterable[Layer],
        present: Iterable[Layer],
        decided: pl.DataFrame | None,
        fdr: float,
    ) -> Counts:
        """Counts after a change that may touch ``layers``; those ``present`` still have rows, the others make no claim.

        ``decided`` are claims decided again (`Gathered.integrated`); other claims of ``present`` layers fail.
        """
        passed, p, uncovered = self._passed.copy(), self._p.copy(), self._uncovered.copy()
        here = np.ones(len(passed), dtype=bool)
        for layer in layers:
            here[self._rows_of[layer]] = False
        for layer in present:
            rows = self._rows_of[layer]
            here[rows] = True
            passed[rows] = False
            p[rows] = np.where(np.isnan(p[rows]), np.nan, 1.0)
        for *key, passes, lacks, p_value in decided.iter_rows() if decided is not None else ():
            # Layers that strip nothing on their own name no mechanism; the study does.
            place = self._place.get(tuple(key))
            if place is not None:
                passed[place], uncovered[place] = passes, lacks
                p[place] = np.nan if p_value is None else p_value
        counts = {}
        for profile, mine in self._of.items():
            claimed = mine & here
            now = np.zeros_like(passed)
            now[claimed] = passed[claimed] & ~(benjamini_hochberg(p[claimed]) > fdr)
            lost = mine & self._before & ~now
            counts[profile] = {
                "n_claims": int(claimed.sum()),
                "n_integrated": int(now.sum()),
                "n_gained": int((mine & ~self._before & now).sum()),
                "n_lost": int(lost.sum()),
                "n_lost_coverage": int((lost & (uncovered | ~here)).sum()),
            }
        return counts
