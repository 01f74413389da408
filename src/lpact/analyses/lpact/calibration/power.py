"""Could this design have found it? The smallest detectable effect of a study, before and after running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from lpact.analyses.lpact.calibration.cells import Effort
from lpact.analyses.lpact.calibration.power_design import (
    SAME,
    Ceiling,
    DatasetDesign,
    matched_design,
    read_design,
)
from lpact.analyses.lpact.calibration.power_rows import (
    Row,
    check_same_study,
    closed_rows,
    design_frame,
    layer_frame,
    run_ceilings,
    run_claims,
    simulated_rows,
    spread_rows,
)
from lpact.analyses.lpact.calibration.power_simulate import (
    RATIOS,
    TRIALS,
    Simulated,
    simulate,
    trial_jobs,
)
from lpact.analyses.lpact.calibration.study import Forecast
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.tables.calibration import (
    LAYER_DETECTABILITY,
    MINIMUM_DETECTABLE_EFFECT,
    STUDY_DESIGN,
)
from lpact.config import RunConfig
from lpact.errors import ConfigError, RunError
from lpact.inputs.workspace import Workspace
from lpact.run.progress import Reporter
from lpact.store import StoredRun, empty, frame, validate
from lpact.tables import Table

FOLDER = "lpact-power"
"""Finished simulated studies are kept in this folder, beside the study file."""


@dataclass(frozen=True)
class Settings:
    """Settings of a power analysis; without ``effort``, that of the study, at most that of the calibration."""

    target: float = 0.8
    quick: bool = False
    trials: int = TRIALS
    ratios: Sequence[float] = RATIOS
    workers: int = 1
    kept: Path | None = None
    effort: Effort | None = None

    def check(self) -> None:
        """Raise `ConfigError` for a target power that is none."""
        if not 0.0 < self.target < 1.0:
            raise ConfigError(
                "the target power is no share of studies",
                where="option '--target'",
                got=self.target,
                expected="a number between 0 and 1, both excluded",
                remedy="write for example --target 0.8",
            )


@dataclass(frozen=True)
class PowerReport:
    """The answer: tables by name, and in what simulated studies differ from the design, by dataset."""

    tables: Mapping[str, pl.DataFrame]
    caps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after_run: bool = False
    n_claims: int | None = None
    """Confirmatory claims that integrated power is corrected over; None where nothing was simulated."""
    largest_p: float | None = None

    def table(self, table: Table) -> pl.DataFrame:
        """One of the tables."""
        return self.tables[table.name]


def assess(
    config: LPactConfig,
    run_config: RunConfig,
    settings: Settings,
    *,
    run: StoredRun | None = None,
    reporter: Reporter | None = None,
    show_forecast: Callable[[Forecast], None] | None = None,
) -> PowerReport:
    """Smallest detectable effects of a study; with its ``run``, layer by layer.

    ``show_forecast`` is called with the cost of simulated studies, from one that is timed, before the others start.
    """
    settings.check()
    if run is not None:
        check_same_study(run, config.model_dump(mode="json"))
    reporter = reporter or Reporter()
    designs = read_design(Workspace(config.study(), run_config), reporter)
    ceilings = {d.name: d.ceiling for d in designs} if run is None else run_ceilings(run)
    effects: list[Row] = []
    caps: dict[str, tuple[str, ...]] = {}
    simulated: dict[str, Simulated] = {}
    sizes: dict[str, str] = {}
    n_claims = planned_claims(designs, config) if run is None else run_claims(run)
    largest_p = config.gates.fdr / max(1, n_claims)
    for design in designs:
        if settings.quick or not design.confirmatory or design.limiting is None:
            continue
        matched = matched_design(design, config, settings.effort)
        caps[design.name], sizes[design.name] = matched.caps, matched.size
        simulated[design.name] = simulate(
            trial_jobs(matched, trials=settings.trials, ratios=settings.ratios),
            config=config,
            run=run_config,
            workers=settings.workers,
            kept=settings.kept,
            reporter=reporter,
            name=design.name,
            show_forecast=show_forecast,
            largest_p=largest_p,
        )
    for design in designs:
        own = (config.gates, settings.target, ceilings.get(design.name))
        effects += closed_rows(design, *own)
        if not settings.quick:
            effects += simulated_rows(
                design, simulated.get(design.name), *own, sizes.get(design.name, SAME)
            )
    tables = {STUDY_DESIGN.name: validate(design_frame(designs, ceilings), STUDY_DESIGN)}
    report = _report(config, settings, effects, tables, caps, run, ceilings)
    return replace(report, n_claims=n_claims, largest_p=largest_p) if simulated else report


def planned_claims(designs: Sequence[DatasetDesign], config: LPactConfig) -> int:
    """Confirmatory claims that a study will make: every dataset, model, layer and mechanism."""
    layers = {model.name: len(model.layers) for model in config.models}
    n_layers = sum(
        layers[model.model]
        for design in designs
        if design.confirmatory
        for model in design.models
        if model.layer is not None
    )
    return n_layers * len(config.mechanisms.include)


def assess_run(run: StoredRun, config: LPactConfig, settings: Settings) -> PowerReport:
    """Level 1 of a run without its sources, from the spread over subject-runs."""
    settings.check()
    tables = {STUDY_DESIGN.name: empty(STUDY_DESIGN)}
    return _report(config, settings, [], tables, {}, run, run_ceilings(run))


def _report(
    config: LPactConfig,
    settings: Settings,
    effects: list[Row],
    tables: dict[str, pl.DataFrame],
    caps: Mapping[str, tuple[str, ...]],
    run: StoredRun | None,
    ceilings: Mapping[str, Ceiling | None],
) -> PowerReport:
    layers = empty(LAYER_DETECTABILITY)
    if run is not None:
        metric = config.readout.primary_metric
        effects = effects + spread_rows(run, metric, config.gates, settings.target, ceilings)
        layers = layer_frame(run, metric, effects, settings.target)
        if layers.is_empty():
            raise RunError(
                "the run has no layer whose power could be show_forecast",
                where=str(run.root),
                got="a decision table without rows",
                expected="at least one claim",
                remedy="`lpact audit` says why no claim could be made",
            )
    tables[MINIMUM_DETECTABLE_EFFECT.name] = validate(
        frame(MINIMUM_DETECTABLE_EFFECT, effects), MINIMUM_DETECTABLE_EFFECT
    )
    tables[LAYER_DETECTABILITY.name] = validate(layers, LAYER_DETECTABILITY)
    return PowerReport(tables, caps, run is not None)
