"""Level 3: does removing a mechanism from the features cost its own target units, and them most?

    drop(k → t) = s_real(t) − s_stripped_k(t)

Targets are found by a functional localiser on the training rows of every outer fold; strips are fitted anew on every
training set, inner and outer; scores are held out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    StrippingMethod,
    build_strippings,
    strip_delays,
)
from lpact.analyses.lpact.levels.stripped_design import StrippedDesign
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

RANDOM_DIRECTION = "random_direction"
NOTHING = "nothing"
NONMATCHING = "nonmatching_mechanism"

Row = dict[str, object]


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
    """One context's stripping analysis; every fit is made once."""

    def __init__(
        self,
        config: LPactConfig,
        prepared: Prepared,
        model: ModelOnGrid,
        layer: int,
        confirmatory: bool,
        real: Readout,
    ) -> None:
        self.config = config
        self.prepared = prepared
        self.confirmatory = confirmatory
        self.key: dict[str, str | int] = {**prepared.key, "model": model.model, "layer": layer}
        self.context = (model.model, layer)
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
        self.targets = (
            localise(prepared, real, config.stripping.target_fraction)
            if prepared.mechanisms
            else Targets({}, {}, {})
        )
        self.real = {t: self._target_score(t, self.real_folds) for t in self.mechanisms}

    def _target_score(self, target: str, fold_scores: FloatArray) -> float | None:
        return self.targets.score(target, fold_scores, self.sizes)

    def _fold_scores(self, design: FittedFeatures) -> FloatArray:
        return self.ridge.fit(design).fold_scores(self.metric)

    def tables(self) -> dict[str, pl.DataFrame]:
        features: list[Row] = []
        scores: list[Row] = []
        deltas: list[Row] = []
        mismatch: list[Row] = []
        specificity: list[Row] = []
        blocks: list[Row] = []
        for name, method in build_strippings(self.config).items():
            drops: dict[tuple[str, str], float | None] = {}
            reasons: dict[str, Reason] = {}
            stripped_scores: dict[tuple[str, str], float | None] = {}
            shared: FloatArray | None = None
            for k in self.mechanisms:
                result = self._strip(method, k, shared)
                blocks += self._rows_beside_nuisance(name, method, k, result)
                if not method.uses_mechanism and not isinstance(result, Reason):
                    shared = result
                reasons[k] = result if isinstance(result, Reason) else Reason.OK
                for t in self.mechanisms:
                    value = None if isinstance(result, Reason) else self._target_score(t, result)
                    stripped_scores[k, t] = value
                    drops[k, t] = _minus(self.real[t], value)
                    if drops[k, t] is not None and not isinstance(result, Reason):
                        blocks.append(self._block_row(name, k, t, result))
                features.append(self._feature_row(name, method, k, reasons[k]))
            scores += self._score_rows(name, reasons, stripped_scores)
            deltas += self._delta_rows(name, reasons, stripped_scores, drops)
            random_rows: list[Row] = []
            for k in self.mechanisms:
                rows, by_block = self._random_rows(name, method, k, reasons[k])
                random_rows += rows
                blocks += by_block
            nonmatching = self._nonmatching_rows(name, drops, reasons)
            mismatch += random_rows + nonmatching
            specificity += self._specificity_rows(name, drops, reasons, random_rows, nonmatching)
        return {
            STRIPPING_FEATURES.name: frame(STRIPPING_FEATURES, features),
            STRIPPING_SCORES.name: frame(STRIPPING_SCORES, scores),
            BLOCK_DROPS.name: frame(BLOCK_DROPS, blocks),
            STRIPPING_DELTAS.name: frame(STRIPPING_DELTAS.measured(), deltas),
            MISMATCH_CONTROLS.name: frame(MISMATCH_CONTROLS, mismatch),
            SPECIFICITY.name: frame(SPECIFICITY.measured(), specificity),
            DISSOCIATIONS.name: frame(DISSOCIATIONS.measured(), self._dissociation_rows(deltas)),
            TARGETS.name: frame(TARGETS, self._target_rows()),
        }

    def _strip(
        self, method: StrippingMethod, mechanism: str, shared: FloatArray | None
    ) -> FloatArray | Reason:
        """Fold scores of the stripped features, or why there are none."""
        if (why := method.unavailable(self.inputs)) is not None:
            return why.reason
        if mechanism not in self.prepared.mechanisms:
            return Reason.MECHANISM_NOT_OFFERED
        if shared is not None:
            return shared
        scalars = self.prepared.scalars(mechanism)
        try:
            return self._fold_scores(StrippedDesign(method, self.delays, scalars))
        except DegenerateStrip:
            return Reason.DEGENERATE_DIRECTION

    def _block_row(
        self, name: str, k: str, t: str, stripped: FloatArray, beside: str = NOTHING
    ) -> Row:
        """Drops of a target in every outer block; ``stripped`` holds fold scores of units."""
        real = self.real_folds if beside == NOTHING else self.real_beside_nuisance
        drops = self.targets.fold_means(t, real - stripped)
        shown = [float(d) if math.isfinite(d) else None for d in drops]
        row = {"method": name, "stripped": k, "target": t, "beside": beside, "drops": shown}
        return {**self.key, "stimulus": self.prepared.id.stimulus, **row}

    @cached_property
    def real_beside_nuisance(self) -> FloatArray:
        """Fold scores of the real features with nuisance features beside them."""
        return self._fold_scores_beside_nuisance(self.inputs.features)

    def _fold_scores_beside_nuisance(self, design: FloatArray | FittedFeatures) -> FloatArray:
        """Fold scores where nuisance features, unpenalised, take first what is theirs."""
        readout = nested_ridge(
            design,
            self.prepared.grid.responses,
            self.prepared.folds,
            ridge_grid(self.config.readout, self.prepared),
            unpenalised=self.prepared.nuisance,
            metrics=(self.metric,),
            compute=compute_settings(self.config.readout),
        )
        return readout.fold_scores(self.metric)

    def _rows_beside_nuisance(
        self, name: str, method: StrippingMethod, k: str, result: FloatArray | Reason
    ) -> list[Row]:
        """Drops by block of every target, beside nuisance: what a mechanism shares with nuisance is no drop."""
        if isinstance(result, Reason) or not self._enough_for_nuisance():
            return []
        design = StrippedDesign(method, self.delays, self.prepared.scalars(k))
        try:
            stripped = self._fold_scores_beside_nuisance(design)
        except DegenerateStrip:
            return []
        return [self._block_row(name, k, t, stripped, NUISANCE) for t in self.targets.units]

    def _enough_for_nuisance(self) -> bool:
        """Whether there are nuisance features, and rows enough to fit them unpenalised in every training set."""
        folds, n_columns = self.prepared.folds, self.prepared.nuisance.shape[1]
        pairs = combinations(range(folds.n_blocks), 2)
        fewest = min(len(folds.train_rows(a, b)) for a, b in pairs)
        return 0 < int(n_columns) < fewest // 2

    def _feature_row(self, name: str, method: StrippingMethod, k: str, reason: Reason) -> Row:
        folds = self.prepared.folds
        n_sets = folds.n_blocks * (folds.n_blocks - 1) // 2 + folds.n_blocks
        ok = reason is Reason.OK
        return {
            **self.key,
            "method": name,
            "stripped": k,
            "n_features": self.inputs.features.shape[1],
            "n_fits": n_sets if ok and method.fitted(self.inputs) else 0,
            "fitted_on": "training_rows" if method.fitted(self.inputs) else "nothing",
            "variance_removed": self._variance_removed(method, k) if ok else None,
            "reason": reason,
        }

    def _variance_removed(self, method: StrippingMethod, k: str) -> float | None:
        """Share of feature variance that differs after the strip, on training rows, mean over outer folds."""
        shares = []
        z = self.inputs.features
        for block in range(self.prepared.folds.n_blocks):
            train = self.prepared.folds.train_rows(block)
            stripped = strip_delays(method, self.delays, self.prepared.scalars(k), train)
            removed = (z - stripped)[train]
            total = z[train].var(axis=0).sum()
            if not total > 0:
                return None
            shares.append(removed.var(axis=0).sum() / total)
        return float(np.mean(shares))

    def _score_rows(
        self,
        name: str,
        reasons: Mapping[str, Reason],
        stripped: Mapping[tuple[str, str], float | None],
    ) -> list[Row]:
        rows = []
        for (k, t), value in stripped.items():
            n_units = self.targets.units[t].shape[1] if t in self.targets.units else 0
            for state, score in (("real", self.real[t]), ("stripped", value)):
                reason = self._reason(score, t, reasons[k] if state == "stripped" else Reason.OK)
                rows.append(
                    {
                        **self.key,
                        "method": name,
                        "stripped": k,
                        "target": t,
                        "state": state,
                        "score": score,
                        "n_target_units": n_units,
                        "reason": reason,
                    }
                )
        return rows

    def _reason(self, value: float | None, target: str, reason: Reason) -> Reason:
        if value is not None:
            return Reason.OK
        if reason is not Reason.OK:
            return reason
        if target in self.targets.units:
            return Reason.UNDEFINED_SCORE
        return self.targets.missing.get(target, Reason.MECHANISM_NOT_OFFERED)

    def _delta_rows(
        self,
        name: str,
        reasons: Mapping[str, Reason],
        stripped: Mapping[tuple[str, str], float | None],
        drops: Mapping[tuple[str, str], float | None],
    ) -> list[Row]:
        return [
            {
                **self.key,
                "method": name,
                "stripped": k,
                "target": t,
                "matching": k == t,
                "real_score": self.real[t],
                "stripped_score": stripped[k, t],
                "drop": drop,
                "confirmatory": self.confirmatory,
                "reason": self._reason(drop, t, reasons[k]),
            }
            for (k, t), drop in drops.items()
        ]

    def _random_rows(
        self, name: str, method: StrippingMethod, k: str, reason: Reason
    ) -> tuple[list[Row], list[Row]]:
        """Random directions of equal variance, stripped instead: every draw, and their mean by block."""
        if reason is not Reason.OK or not method.uses_mechanism:
            return [], []
        rows: list[Row] = []
        scored: list[FloatArray] = []
        scalars, n_delays = self.prepared.scalars(k), len(self.delays)
        for draw in range(self.config.stripping.mismatch_draws):
            place = (self.prepared.dataset, self.prepared.id.stimulus, *self.context)
            rng = keyed_rng(self.config.seed, "mismatch", *place, name, k, draw)
            drawn = RandomDirection.draw_delays(len(scalars), n_delays, rng)
            try:
                fold_scores = self._fold_scores(StrippedDesign(method, self.delays, scalars, drawn))
                drop = _minus(self.real[k], self._target_score(k, fold_scores))
                failed = Reason.UNDEFINED_SCORE
                scored.append(fold_scores)
            except DegenerateStrip:
                drop, failed = None, Reason.DEGENERATE_DIRECTION
            rows.append(
                self._mismatch_row(name, k, RANDOM_DIRECTION, draw, RANDOM_DIRECTION, drop, failed)
            )
        if not scored or k not in self.targets.units:
            return rows, []
        mean = np.mean(scored, axis=0)
        return rows, [self._block_row(name, RANDOM_DIRECTION, k, mean)]

    def _nonmatching_rows(
        self,
        name: str,
        drops: Mapping[tuple[str, str], float | None],
        reasons: Mapping[str, Reason],
    ) -> list[Row]:
        """Other mechanisms, stripped instead; their drops of this target are known already."""
        return [
            self._mismatch_row(
                name, k, NONMATCHING, self.mechanisms.index(other), other, drops[other, k]
            )
            for k in self.mechanisms
            for other in self.mechanisms
            if other != k and Reason.OK is reasons[k] is reasons[other]
        ]

    def _mismatch_row(
        self,
        name: str,
        k: str,
        kind: str,
        draw: int,
        instead: str,
        drop: float | None,
        failed: Reason = Reason.UNDEFINED_SCORE,
    ) -> Row:
        return {
            **self.key,
            "method": name,
            "stripped": k,
            "kind": kind,
            "draw": draw,
            "instead": instead,
            "drop": drop,
            "reason": Reason.OK if drop is not None else failed,
        }

    def _specificity_rows(
        self,
        name: str,
        drops: Mapping[tuple[str, str], float | None],
        reasons: Mapping[str, Reason],
        random_rows: list[Row],
        nonmatching: list[Row],
    ) -> list[Row]:
        rows: list[Row] = []
        for k in self.mechanisms:
            matching = drops[k, k]
            others = {t: d for t in self.mechanisms if t != k and (d := drops[k, t]) is not None}
            best_target = max(others, key=lambda t: others[t]) if others else None
            best_drop = others[best_target] if best_target is not None else None
            kind, mismatch = self._mismatch(k, random_rows, nonmatching)
            rows.append(
                {
                    **self.key,
                    "method": name,
                    "stripped": k,
                    "matching_drop": matching,
                    "best_nonmatching_target": best_target,
                    "best_nonmatching_drop": best_drop,
                    "margin": _minus(matching, best_drop),
                    "mismatch_kind": kind,
                    "mismatch_drop": mismatch,
                    "mismatch_margin": _minus(matching, mismatch),
                    "n_targets": len(self.targets.units),
                    "confirmatory": self.confirmatory,
                    "reason": self._reason(matching, k, reasons[k]),
                }
            )
        return rows

    def _mismatch(
        self, k: str, random_rows: list[Row], nonmatching: list[Row]
    ) -> tuple[str | None, float | None]:
        """The harder of the two mismatches: random directions (mean) and other mechanisms (largest)."""

        def drops(rows: list[Row]) -> list[float]:
            return [d for r in rows if r["stripped"] == k and isinstance(d := r["drop"], float)]

        candidates = {}
        if values := drops(random_rows):
            candidates[RANDOM_DIRECTION] = float(np.mean(values))
        if values := drops(nonmatching):
            candidates[NONMATCHING] = max(values)
        if not candidates:
            return None, None
        kind = max(candidates, key=lambda name: candidates[name])
        return kind, candidates[kind]

    def _dissociation_rows(self, deltas: list[Row]) -> list[Row]:
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
            complete = all(d is not None for d in drops.values())
            reason = Reason.OK if complete else Reason.UNDEFINED_SCORE
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
                "partial_correlations": [
                    float(r) if math.isfinite(r) else None for r in self.targets.partial[t][fold]
                ],
                "n_test": int(self.sizes[fold]),
            }
            for t, by_fold in self.targets.units.items()
            for fold, units in enumerate(by_fold)
        ]


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
