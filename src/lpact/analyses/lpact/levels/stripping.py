"""Level 3: does removing a mechanism from the features cost its own target units, and them most?

    drop(k → t) = s_real(t) − s_stripped_k(t)

Targets are found by a functional localiser on the training rows of every outer fold; strips are fitted anew on every
training set, inner and outer; scores are held out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.localiser import Targets, localise
from lpact.analyses.lpact.levels.readouts import NUISANCE
from lpact.analyses.lpact.levels.strip import (
    DegenerateStrip,
    RandomDirection,
    StripInputs,
    StrippedDesign,
    StrippingMethod,
    build_strippings,
    strip_delays,
)
from lpact.analyses.lpact.tables.levels import (
    BLOCK_DROPS,
    DISSOCIATIONS,
    MISMATCH_CONTROLS,
    SPECIFICITY,
    STRIPPING_DELTAS,
    STRIPPING_FEATURES,
    STRIPPING_SCORES,
    TARGETS,
)
from lpact.codes import Reason
from lpact.inputs.prepare import ModelOnGrid, Prepared, compute_settings, ridge_grid
from lpact.math.ridge import FittedFeatures, NestedRidge, Readout, nested_ridge
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.store import frame
from lpact.tables import Table

RANDOM_DIRECTION = "random_direction"
NOTHING = "nothing"
NONMATCHING = "nonmatching_mechanism"

Row = dict[str, object]
_TABLES = (
    STRIPPING_FEATURES,
    STRIPPING_SCORES,
    BLOCK_DROPS,
    STRIPPING_DELTAS,
    MISMATCH_CONTROLS,
    SPECIFICITY,
    DISSOCIATIONS,
    TARGETS,
)


def run(
    *,
    config: LPactConfig,
    prepared: Prepared,
    model: ModelOnGrid,
    layer: int,
    confirmatory: bool,
    real: Readout,
) -> dict[str, pl.DataFrame]:
    """Strip every mechanism by every method from one context, and score every target; ``real`` is level 1's readout."""
    return _Context(config, prepared, model, layer, confirmatory, real).tables()


class _Context:
    """One context's stripping analysis; every fit is made once.

    ``k`` is the mechanism that is stripped, ``t`` the mechanism whose target units are scored.
    """

    def __init__(
        self,
        config: LPactConfig,
        prepared: Prepared,
        model: ModelOnGrid,
        layer: int,
        confirmatory: bool,
        real: Readout,
    ) -> None:
        self.config, self.prepared, self.folds = config, prepared, prepared.folds
        self.confirmatory = confirmatory
        self.key: dict[str, str | int] = {**prepared.key, "model": model.model, "layer": layer}
        self.place = (prepared.dataset, prepared.id.stimulus, model.model, layer)
        self.inputs = StripInputs(model.load(layer), layer, model.offered, model.load)
        self.delays = self.inputs.at_delays(prepared.grid.n_delays)
        self.metric = config.readout.primary_metric
        self.ridge = NestedRidge(
            prepared.grid.responses,
            prepared.folds,
            ridge_grid(config.readout, prepared),
            metrics=(self.metric,),
            compute=compute_settings(config.readout),
        )
        self.mechanisms = config.mechanisms.include
        self.sizes = prepared.folds.test_sizes()
        self.real_folds = real.fold_scores(self.metric)
        self.targets = Targets({}, {}, {})
        if prepared.mechanisms:
            self.targets = localise(prepared, real, config.stripping.target_fraction)
        self.real = {t: self.target_score(t, self.real_folds) for t in self.mechanisms}

    def target_score(self, target: str, fold_scores: FloatArray) -> float | None:
        return self.targets.score(target, fold_scores, self.sizes)

    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables of the level."""
        rows: dict[str, list[Row]] = {table.name: [] for table in _TABLES}
        for name, method in build_strippings(self.config).items():
            for table, made in _Method(self, name, method).rows().items():
                rows[table.name] += made
        rows[DISSOCIATIONS.name] = self._dissociation_rows(rows[STRIPPING_DELTAS.name])
        rows[TARGETS.name] = self._target_rows()
        return {table.name: frame(table.measured(), rows[table.name]) for table in _TABLES}

    @cached_property
    def real_beside_nuisance(self) -> FloatArray:
        """Fold scores of the real features with nuisance features beside them."""
        return self.fold_scores_beside_nuisance(self.inputs.features)

    def fold_scores_beside_nuisance(self, design: FloatArray | FittedFeatures) -> FloatArray:
        """Fold scores where unpenalised nuisance features explain what they can first."""
        readout = nested_ridge(
            design,
            self.prepared.grid.responses,
            self.folds,
            ridge_grid(self.config.readout, self.prepared),
            unpenalised=self.prepared.nuisance,
            metrics=(self.metric,),
            compute=compute_settings(self.config.readout),
        )
        return readout.fold_scores(self.metric)

    @cached_property
    def enough_for_nuisance(self) -> bool:
        """Whether there are nuisance features, and rows enough to fit them unpenalised in every training set."""
        n_columns = int(self.prepared.nuisance.shape[1])
        pairs = combinations(range(self.folds.n_blocks), 2)
        return 0 < n_columns < min(len(self.folds.train_rows(a, b)) for a, b in pairs) // 2

    def reason(self, value: float | None, target: str, reason: Reason) -> Reason:
        """Why a number about a target is missing; ``reason`` is that of the strip."""
        if value is not None:
            return Reason.OK
        if reason is not Reason.OK:
            return reason
        if target in self.targets.units:
            return Reason.UNDEFINED_SCORE
        return self.targets.missing.get(target, Reason.MECHANISM_NOT_OFFERED)

    def _dissociation_rows(self, deltas: Sequence[Row]) -> list[Row]:
        """Median drops over methods, for every pair of mechanisms."""
        by_pair: dict[tuple[object, object], list[float]] = {}
        for row in deltas:
            if isinstance(drop := row["drop"], float):
                by_pair.setdefault((row["stripped"], row["target"]), []).append(drop)
        median = {pair: float(np.median(values)) for pair, values in by_pair.items()}
        rows: list[Row] = []
        for a, b in combinations(self.mechanisms, 2):
            drops = {
                f"drop_{x}{y}": median.get((k, t))
                for x, k in (("a", a), ("b", b))
                for y, t in (("a", a), ("b", b))
            }
            reason = Reason.UNDEFINED_SCORE if None in drops.values() else Reason.OK
            rows.append({**self.key, "mechanism_a": a, "mechanism_b": b, **drops, "reason": reason})
        return rows

    def _target_rows(self) -> list[Row]:
        ids = self.prepared.grid.units.ids
        return [
            {
                **self.key,
                "target": t,
                "fold": fold,
                "units": [ids[u] for u in units],
                "partial_correlations": _finite(self.targets.partial[t][fold]),
                "n_test": int(self.sizes[fold]),
            }
            for t, by_fold in self.targets.units.items()
            for fold, units in enumerate(by_fold)
        ]


class _Method:
    """One stripping method in a context: every mechanism stripped, every target scored."""

    def __init__(self, context: _Context, name: str, method: StrippingMethod) -> None:
        self.context, self.name, self.method = context, name, method
        self.blocks: list[Row] = []
        self.reasons: dict[str, Reason] = {}
        self.scores: dict[tuple[str, str], float | None] = {}
        self.drops: dict[tuple[str, str], float | None] = {}
        shared: FloatArray | None = None
        shared_beside: FloatArray | None = None
        for k in context.mechanisms:
            result = self._strip(k, shared)
            stripped = None if isinstance(result, Reason) else result
            self.reasons[k] = result if isinstance(result, Reason) else Reason.OK
            if stripped is not None:
                beside = self._beside_nuisance(k) if shared_beside is None else shared_beside
                if beside is not None:
                    for t in context.targets.units:
                        self._add_block(k, t, beside, NUISANCE)
                if not method.uses_mechanism:
                    shared, shared_beside = stripped, beside
            for t in context.mechanisms:
                value = None if stripped is None else context.target_score(t, stripped)
                self.scores[k, t] = value
                self.drops[k, t] = _minus(context.real[t], value)
                if stripped is not None and self.drops[k, t] is not None:
                    self._add_block(k, t, stripped)

    def rows(self) -> dict[Table, list[Row]]:
        """Rows of all tables by method."""
        random = [row for k in self.context.mechanisms for row in self._random_rows(k)]
        others = self._nonmatching_rows()
        return {
            STRIPPING_FEATURES: [self._feature_row(k) for k in self.context.mechanisms],
            STRIPPING_SCORES: self._score_rows(),
            BLOCK_DROPS: self.blocks,
            STRIPPING_DELTAS: self._delta_rows(),
            MISMATCH_CONTROLS: random + others,
            SPECIFICITY: [
                self._specificity_row(k, random, others) for k in self.context.mechanisms
            ],
        }

    def _row(self, k: str, **columns: object) -> Row:
        return {**self.context.key, "method": self.name, "stripped": k, **columns}

    def _design(self, k: str) -> StrippedDesign:
        return StrippedDesign(self.method, self.context.delays, self.context.prepared.scalars(k))

    def _fold_scores(self, design: FittedFeatures) -> FloatArray:
        return self.context.ridge.fit(design).fold_scores(self.context.metric)

    def _strip(self, k: str, shared: FloatArray | None) -> FloatArray | Reason:
        """Fold scores of the stripped features, or why there are none."""
        if (why := self.method.unavailable(self.context.inputs)) is not None:
            return why.reason
        if k not in self.context.prepared.mechanisms:
            return Reason.MECHANISM_NOT_OFFERED
        if shared is not None:
            return shared
        try:
            return self._fold_scores(self._design(k))
        except DegenerateStrip:
            return Reason.DEGENERATE_DIRECTION

    def _add_block(self, k: str, t: str, stripped: FloatArray, beside: str = NOTHING) -> None:
        """Drops of a target in every outer block; ``stripped`` holds fold scores of units."""
        own = self.context
        real = own.real_folds if beside == NOTHING else own.real_beside_nuisance
        drops = _finite(own.targets.fold_means(t, real - stripped))
        stimulus = own.prepared.id.stimulus
        self.blocks.append(self._row(k, stimulus=stimulus, target=t, beside=beside, drops=drops))

    def _beside_nuisance(self, k: str) -> FloatArray | None:
        """Fold scores of the stripped features beside nuisance: what a mechanism shares with nuisance is no drop."""
        if not self.context.enough_for_nuisance:
            return None
        try:
            return self.context.fold_scores_beside_nuisance(self._design(k))
        except DegenerateStrip:
            return None

    def _feature_row(self, k: str) -> Row:
        n_blocks, inputs = self.context.folds.n_blocks, self.context.inputs
        n_sets = n_blocks * (n_blocks - 1) // 2 + n_blocks
        ok, fitted = self.reasons[k] is Reason.OK, self.method.fitted(inputs)
        return self._row(
            k,
            n_features=inputs.features.shape[1],
            n_fits=n_sets if ok and fitted else 0,
            fitted_on="training_rows" if fitted else "nothing",
            variance_removed=self._variance_removed(k) if ok else None,
            reason=self.reasons[k],
        )

    def _variance_removed(self, k: str) -> float | None:
        """Share of feature variance that differs after the strip, on training rows, mean over outer folds."""
        shares, z, folds = [], self.context.inputs.features, self.context.folds
        scalars = self.context.prepared.scalars(k)
        for block in range(folds.n_blocks):
            train = folds.train_rows(block)
            stripped = strip_delays(self.method, self.context.delays, scalars, train)
            total = z[train].var(axis=0).sum()
            if not total > 0:
                return None
            shares.append((z - stripped)[train].var(axis=0).sum() / total)
        return float(np.mean(shares))

    def _score_rows(self) -> list[Row]:
        rows, own = [], self.context
        for (k, t), value in self.scores.items():
            n_units = own.targets.units[t].shape[1] if t in own.targets.units else 0
            for state, score, why in (
                ("real", own.real[t], Reason.OK),
                ("stripped", value, self.reasons[k]),
            ):
                reason = own.reason(score, t, why)
                numbers = {"score": score, "n_target_units": n_units, "reason": reason}
                rows.append(self._row(k, target=t, state=state, **numbers))
        return rows

    def _delta_rows(self) -> list[Row]:
        return [
            self._row(
                k,
                target=t,
                matching=k == t,
                real_score=self.context.real[t],
                stripped_score=self.scores[k, t],
                drop=drop,
                confirmatory=self.context.confirmatory,
                reason=self.context.reason(drop, t, self.reasons[k]),
            )
            for (k, t), drop in self.drops.items()
        ]

    def _random_rows(self, k: str) -> list[Row]:
        """Random directions of equal variance, stripped instead; their mean is added by block."""
        if self.reasons[k] is not Reason.OK or not self.method.uses_mechanism:
            return []
        own, rows = self.context, []
        scored: list[FloatArray] = []
        scalars = own.prepared.scalars(k)
        for draw in range(own.config.stripping.mismatch_draws):
            rng = keyed_rng(own.config.seed, "mismatch", *own.place, self.name, k, draw)
            drawn = RandomDirection.draw_delays(len(scalars), len(own.delays), rng)
            try:
                design = StrippedDesign(self.method, own.delays, scalars, drawn)
                scored.append(self._fold_scores(design))
                drop = _minus(own.real[k], own.target_score(k, scored[-1]))
                failed = Reason.UNDEFINED_SCORE
            except DegenerateStrip:
                drop, failed = None, Reason.DEGENERATE_DIRECTION
            rows.append(
                self._mismatch_row(k, RANDOM_DIRECTION, draw, RANDOM_DIRECTION, drop, failed)
            )
        if scored and k in own.targets.units:
            self._add_block(RANDOM_DIRECTION, k, np.mean(scored, axis=0))
        return rows

    def _nonmatching_rows(self) -> list[Row]:
        """Other mechanisms, stripped instead; their drops of this target are known already."""
        return [
            self._mismatch_row(k, NONMATCHING, draw, other, self.drops[other, k])
            for k in self.context.mechanisms
            for draw, other in enumerate(self.context.mechanisms)
            if other != k and Reason.OK is self.reasons[k] is self.reasons[other]
        ]

    def _mismatch_row(
        self,
        k: str,
        kind: str,
        draw: int,
        instead: str,
        drop: float | None,
        failed: Reason = Reason.UNDEFINED_SCORE,
    ) -> Row:
        reason = failed if drop is None else Reason.OK
        return self._row(k, kind=kind, draw=draw, instead=instead, drop=drop, reason=reason)

    def _specificity_row(self, k: str, random: Sequence[Row], others: Sequence[Row]) -> Row:
        own, matching = self.context, self.drops[k, k]
        drops = {t: d for t in own.mechanisms if t != k and (d := self.drops[k, t]) is not None}
        best = max(drops, key=lambda t: drops[t]) if drops else None
        best_drop = None if best is None else drops[best]
        kind, mismatch = _hardest_mismatch(k, random, others)
        return self._row(
            k,
            matching_drop=matching,
            best_nonmatching_target=best,
            best_nonmatching_drop=best_drop,
            margin=_minus(matching, best_drop),
            mismatch_kind=kind,
            mismatch_drop=mismatch,
            mismatch_margin=_minus(matching, mismatch),
            n_targets=len(own.targets.units),
            confirmatory=own.confirmatory,
            reason=own.reason(matching, k, self.reasons[k]),
        )


def _hardest_mismatch(
    k: str, random: Sequence[Row], others: Sequence[Row]
) -> tuple[str | None, float | None]:
    """The larger of the two mismatches: random directions (mean) and other mechanisms (largest)."""

    def drops(rows: Sequence[Row]) -> list[float]:
        return [d for r in rows if r["stripped"] == k and isinstance(d := r["drop"], float)]

    candidates: dict[str, float] = {}
    if values := drops(random):
        candidates[RANDOM_DIRECTION] = float(np.mean(values))
    if values := drops(others):
        candidates[NONMATCHING] = max(values)
    if not candidates:
        return None, None
    kind = max(candidates, key=lambda name: candidates[name])
    return kind, candidates[kind]


def _finite(values: FloatArray) -> list[float | None]:
    return [float(v) if math.isfinite(v) else None for v in values]


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
