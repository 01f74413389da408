"""Level 3: does removing a mechanism from the features cost its own target units, and them most?

    drop(k → t) = s_real(t) − s_stripped_k(t)

Targets are found by a functional localiser on the training rows of every outer fold; strips are refitted on every
training set, inner and outer; scores are held out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import itemgetter

import numpy as np
import polars as pl

from lpact.analyses.lpact.levels.readouts import NUISANCE, LayerInputs, layer_ridge, minus, nullable
from lpact.analyses.lpact.levels.stripped_design import RandomDirection, StrippedDesign
from lpact.analyses.lpact.levels.stripping_methods import (
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
    build_strippings,
)
from lpact.analyses.lpact.tables import levels
from lpact.codes import Reason
from lpact.inputs.prepare import Prepared, compute_settings, ridge_grid
from lpact.math.ridge import FittedFeatures, Readout, nested_ridge
from lpact.math.scores import partial_correlations
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.store import frame
from lpact.tables import Table

RANDOM_DIRECTION = "random_direction"
NOTHING = "nothing"
NONMATCHING = "nonmatching_mechanism"

Row = dict[str, object]


@dataclass(frozen=True)
class Targets:
    """Units of every mechanism in every outer fold.

    ``units`` holds indices [F, n_picked] by mechanism, ``partial`` their partial correlations; ``missing`` says why a
    mechanism has no target: in some fold it does not vary on the training rows, the others account for it, or too few
    units vary.
    """

    units: Mapping[str, IntArray]
    partial: Mapping[str, FloatArray]
    missing: Mapping[str, Reason]

    def fold_means(self, target: str, fold_scores: FloatArray) -> FloatArray:
        """Mean over the target's units within each fold, [F]."""
        means: FloatArray = np.take_along_axis(fold_scores, self.units[target], axis=1).mean(axis=1)
        return means


def localise(prepared: Prepared, real: Readout, target_fraction: float) -> Targets:
    """Pick each mechanism's target units from training rows, in every outer fold, at the lags chosen there.

    They have the largest partial correlations with it given the other mechanisms: the largest over the delays of a
    finite impulse response, all mechanisms being taken at the same one.
    """
    names = list(prepared.mechanisms)
    by_name = [prepared.scalars(name) for name in names]
    scalars = [np.column_stack(at_delay) for at_delay in zip(*(s.T for s in by_name), strict=True)]
    n_picked = max(1, round(target_fraction * real.lag.shape[1]))
    by_fold = [_partial(prepared, real, scalars, fold) for fold in range(real.folds.n_blocks)]
    correlations = np.stack(by_fold, axis=1)  # [n_mechanisms, F, n_units]
    units, partial, missing = {}, {}, {}
    for name, own, found in zip(names, by_name, correlations, strict=True):
        finite = np.isfinite(found)
        if (finite.sum(axis=1) < n_picked).any():
            missing[name] = _why_missing(own, finite, real)
            continue
        strength = np.where(finite, np.abs(found), -1.0)
        units[name] = np.argsort(-strength, axis=1, kind="stable")[:, :n_picked]
        partial[name] = np.take_along_axis(found, units[name], axis=1)
    return Targets(units, partial, missing)


def _why_missing(scalars: FloatArray, finite: BoolArray, real: Readout) -> Reason:
    """Why a mechanism [n_events, n_delays] has too few ``finite`` partial correlations [F, n_units]."""
    trains = [scalars[real.folds.train_rows(fold)] for fold in range(real.folds.n_blocks)]
    if any((train.max(axis=0) == train.min(axis=0)).all() for train in trains):
        return Reason.MECHANISM_CONSTANT
    return Reason.TOO_FEW_UNITS if finite.any(axis=1).all() else Reason.COLLINEAR_MECHANISMS


def _partial(prepared: Prepared, real: Readout, scalars: Sequence[FloatArray], fold: int) -> FloatArray:
    """Partial correlations on training rows of one fold, [n_mechanisms, n_units]: the largest over the delays."""
    train = real.folds.train_rows(fold)
    lags = real.lag[fold]
    responses = prepared.grid.responses[lags, :, np.arange(len(lags))].T[train]
    by_delay = np.stack([partial_correlations(responses, m[train]) for m in scalars])
    size = np.where(np.isfinite(by_delay), np.abs(by_delay), -1.0)
    strongest: FloatArray = np.take_along_axis(by_delay, size.argmax(axis=0)[None], axis=0)[0]
    return strongest


def measure_stripping(layer: LayerInputs, real: Readout) -> dict[str, pl.DataFrame]:
    """Strip every mechanism by every method from one layer, and score every target; ``real`` is level 1's readout."""
    own = _Layer(layer, real)
    for name, method in build_strippings(layer.config).items():
        _Method(own, name, method).measure()
    own.add_dissociations()
    own.add_targets()
    return {table.name: frame(table.measured(), rows) for table, rows in own.rows.items()}


class _Layer:
    """The stripping analysis of one layer; every fit is made once.

    ``k`` is the mechanism that is stripped, ``t`` the mechanism whose target units are scored.
    """

    def __init__(self, layer: LayerInputs, real: Readout) -> None:
        config, prepared = layer.config, layer.prepared
        self.layer, self.config, self.prepared, self.folds = layer, config, prepared, prepared.folds
        made = (table for table in levels.TABLES if table.name.startswith("causal/"))
        self.rows: dict[Table, list[Row]] = {table: [] for table in made}
        model = layer.model
        self.inputs = StripInputs(layer.features, layer.layer, model.offered, model.load)
        self.delays = self.inputs.at_delays(prepared.grid.n_delays)
        self.metric = config.readout.primary_metric
        self.ridge = layer_ridge(config, prepared, metrics=(self.metric,))
        self.mechanisms = config.mechanisms.include
        self.real_folds = real.fold_scores(self.metric)
        self.targets = Targets({}, {}, {})
        if prepared.mechanisms:
            self.targets = localise(prepared, real, config.stripping.target_fraction)
        self.real = {t: self.score(t, self.real_folds) for t in self.mechanisms}

    def score(self, target: str, fold_scores: FloatArray) -> float | None:
        """Mean over the target's units within a fold, then over folds by test size; None where undefined."""
        if target not in self.targets.units:
            return None
        means, sizes = self.targets.fold_means(target, fold_scores), self.folds.test_sizes()
        value = float(np.average(means, weights=sizes))
        return value if math.isfinite(value) else None

    @cached_property
    def real_with_nuisance(self) -> FloatArray:
        """Fold scores of the real features together with nuisance features."""
        return self.fold_scores_with_nuisance(self.inputs.features)

    def fold_scores_with_nuisance(self, design: FloatArray | FittedFeatures) -> FloatArray:
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

    def add_dissociations(self) -> None:
        """Median drops over methods, for every pair of mechanisms."""
        by_pair: dict[tuple[object, object], list[float]] = {}
        for row in self.rows[levels.STRIPPING_DELTAS]:
            if isinstance(drop := row["drop"], float):
                by_pair.setdefault((row["stripped"], row["target"]), []).append(drop)
        median = {pair: float(np.median(values)) for pair, values in by_pair.items()}
        for a, b in combinations(self.mechanisms, 2):
            pair = (("a", a), ("b", b))
            drops = {f"drop_{x}{y}": median.get((k, t)) for x, k in pair for y, t in pair}
            reason = Reason.UNDEFINED_SCORE if None in drops.values() else Reason.OK
            row = {**self.layer.key, "mechanism_a": a, "mechanism_b": b, **drops, "reason": reason}
            self.rows[levels.DISSOCIATIONS].append(row)

    def add_targets(self) -> None:
        """Target units of every mechanism in every fold."""
        ids, n_test = self.prepared.grid.units.ids, self.folds.test_sizes()
        self.rows[levels.TARGETS] = [
            {
                **self.layer.key,
                "target": t,
                "fold": fold,
                "units": [ids[u] for u in units],
                "partial_correlations": nullable(self.targets.partial[t][fold]),
                "n_test": int(n_test[fold]),
            }
            for t, by_fold in self.targets.units.items()
            for fold, units in enumerate(by_fold)
        ]


class _Method:
    """One stripping method on a layer: every mechanism stripped, every target scored."""

    def __init__(self, own: _Layer, name: str, method: StrippingMethod) -> None:
        self.own, self.name, self.method = own, name, method
        self.reasons: dict[str, Reason] = {}
        self.drops: dict[tuple[str, str], float | None] = {}

    def _add(self, table: Table, k: str, **columns: object) -> None:
        row = {**self.own.layer.key, "method": self.name, "stripped": k, **columns}
        self.own.rows[table].append(row)

    def measure(self) -> None:
        """Add the method's rows to all tables."""
        shared: tuple[FloatArray | Reason, FloatArray | None] | None = None
        for k in self.own.mechanisms:
            stripped, with_nuisance = self._unusable(k) or shared or self._fit(k)
            if not self.method.uses_mechanism and not isinstance(stripped, Reason):
                shared = (stripped, with_nuisance)
            self._add_strip(k, stripped, with_nuisance)
        for k in self.own.mechanisms:
            random, others = self._random_drops(k), self._other_drops(k)
            self._add_specificity(k, random, others)

    def _design(self, k: str) -> StrippedDesign:
        return StrippedDesign(self.method, self.own.delays, self.own.prepared.scalars(k))

    def _unusable(self, k: str) -> tuple[Reason, None] | None:
        if (why := self.method.unavailable(self.own.inputs)) is not None:
            return why.reason, None
        return None if k in self.own.prepared.mechanisms else (Reason.MECHANISM_NOT_OFFERED, None)

    def _fit(self, k: str) -> tuple[FloatArray | Reason, FloatArray | None]:
        """Fold scores of the stripped features, alone and with nuisance features, or why there are none."""
        own, design = self.own, self._design(k)
        try:
            stripped = own.ridge.fit(design).fold_scores(own.metric)
        except DegenerateStrip:
            return Reason.DEGENERATE_DIRECTION, None
        try:
            with_nuisance = own.fold_scores_with_nuisance(design) if own.enough_for_nuisance else None
        except DegenerateStrip:
            with_nuisance = None
        return stripped, with_nuisance

    def _add_strip(self, k: str, stripped: FloatArray | Reason, with_nuisance: FloatArray | None) -> None:
        """Rows about the strip of one mechanism: features, scores and drops of every target."""
        own = self.own
        reason = stripped if isinstance(stripped, Reason) else Reason.OK
        self.reasons[k] = reason
        self._add_features(k, reason)
        for t in own.targets.units:
            if with_nuisance is not None:
                self._add_block(k, t, own.real_with_nuisance - with_nuisance, NUISANCE)
        for t in own.mechanisms:
            score = None if isinstance(stripped, Reason) else own.score(t, stripped)
            drop = self.drops[k, t] = minus(own.real[t], score)
            if drop is not None and not isinstance(stripped, Reason):
                self._add_block(k, t, own.real_folds - stripped)
            n_units = own.targets.units[t].shape[1] if t in own.targets.units else 0
            states = (("real", own.real[t], Reason.OK), ("stripped", score, reason))
            for state, value, why in states:
                columns = {"target": t, "state": state, "score": value, "n_target_units": n_units}
                missing = own.reason(value, t, why)
                self._add(levels.STRIPPING_SCORES, k, **columns, reason=missing)
            self._add(
                levels.STRIPPING_DELTAS,
                k,
                target=t,
                matching=k == t,
                real_score=own.real[t],
                stripped_score=score,
                drop=drop,
                confirmatory=own.layer.confirmatory,
                reason=own.reason(drop, t, reason),
            )

    def _add_block(self, k: str, t: str, drops: FloatArray, beside: str = NOTHING) -> None:
        """Drops of a target in every outer block, from those of units in every fold."""
        means = nullable(self.own.targets.fold_means(t, drops))
        place = {"stimulus": self.own.prepared.id.stimulus, "target": t, "beside": beside}
        self._add(levels.BLOCK_DROPS, k, **place, drops=means)

    def _add_features(self, k: str, reason: Reason) -> None:
        """How features were stripped, and the share of their variance that differs, on training rows of outer folds."""
        own, folds, z = self.own, self.own.folds, self.own.inputs.features
        fitted = self.method.fitted(own.inputs)
        n_fits = folds.n_blocks * (folds.n_blocks + 1) // 2 if fitted else 0
        shares = []
        for block in range(folds.n_blocks if reason is Reason.OK else 0):
            train = folds.train_rows(block)
            stripped = self._design(k)(train)
            total = z[train].var(axis=0).sum()
            if total > 0:
                shares.append((z - stripped)[train].var(axis=0).sum() / total)
        self._add(
            levels.STRIPPING_FEATURES,
            k,
            n_features=z.shape[1],
            n_fits=n_fits if reason is Reason.OK else 0,
            fitted_on="training_rows" if fitted else "nothing",
            variance_removed=float(np.mean(shares)) if len(shares) == folds.n_blocks else None,
            reason=reason,
        )

    def _random_drops(self, k: str) -> list[float]:
        """Drops where random directions of equal variance are stripped instead; their mean is added by block."""
        if self.reasons[k] is not Reason.OK or not self.method.uses_mechanism:
            return []
        own, found = self.own, []
        scored: list[FloatArray] = []
        scalars = own.prepared.scalars(k)
        for draw in range(own.config.stripping.mismatch_draws):
            rng = keyed_rng(own.config.seed, "mismatch", *own.layer.place, self.name, k, draw)
            drawn = RandomDirection.draw(len(scalars), len(own.delays), rng)
            drop, failed = None, Reason.DEGENERATE_DIRECTION
            try:
                design = StrippedDesign(self.method, own.delays, scalars, drawn)
                scored.append(own.ridge.fit(design).fold_scores(own.metric))
                drop, failed = minus(own.real[k], own.score(k, scored[-1])), Reason.UNDEFINED_SCORE
            except DegenerateStrip:
                pass
            self._add_mismatch(k, RANDOM_DIRECTION, draw, RANDOM_DIRECTION, drop, failed)
            found += [] if drop is None else [drop]
        if scored and k in own.targets.units:
            self._add_block(RANDOM_DIRECTION, k, own.real_folds - np.mean(scored, axis=0))
        return found

    def _other_drops(self, k: str) -> list[float]:
        """Drops of this target where other mechanisms are stripped instead; they are known already."""
        found = []
        for draw, other in enumerate(self.own.mechanisms):
            if other != k and Reason.OK is self.reasons[k] is self.reasons[other]:
                drop = self.drops[other, k]
                self._add_mismatch(k, NONMATCHING, draw, other, drop, Reason.UNDEFINED_SCORE)
                found += [] if drop is None else [drop]
        return found

    def _add_mismatch(self, k: str, kind: str, draw: int, instead: str, drop: float | None, failed: Reason) -> None:
        place = {"kind": kind, "draw": draw, "instead": instead}
        reason = failed if drop is None else Reason.OK
        self._add(levels.MISMATCH_CONTROLS, k, **place, drop=drop, reason=reason)

    def _add_specificity(self, k: str, random: Sequence[float], others: Sequence[float]) -> None:
        """The matching drop against other targets, and against the harder mismatch.

        Mismatches are random directions (mean) and other mechanisms (largest).
        """
        own, matching = self.own, self.drops[k, k]
        targets = {t: d for t in own.mechanisms if t != k and (d := self.drops[k, t]) is not None}
        best, best_drop = max(targets.items(), key=itemgetter(1), default=(None, None))
        mismatches = [(float(np.mean(random)), RANDOM_DIRECTION)] if random else []
        mismatches += [(max(others), NONMATCHING)] if others else []
        mismatch, kind = max(mismatches, key=itemgetter(0), default=(None, None))
        self._add(
            levels.SPECIFICITY,
            k,
            matching_drop=matching,
            best_nonmatching_target=best,
            best_nonmatching_drop=best_drop,
            margin=minus(matching, best_drop),
            mismatch_kind=kind,
            mismatch_drop=mismatch,
            mismatch_margin=minus(matching, mismatch),
            n_targets=len(own.targets.units),
            confirmatory=own.layer.confirmatory,
            reason=own.reason(matching, k, self.reasons[k]),
        )
