"""What the sources of a study allow, its tasks, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lpact.analyses.base import Audit, Keys, Stage, StageWork
from lpact.analyses.deconstruct import tables
from lpact.analyses.deconstruct.config import models_of, options_of
from lpact.analyses.deconstruct.fits import SUB_MODELS
from lpact.analyses.deconstruct.jobs import (
    LADDER,
    OASM,
    UNTRAINED,
    LayerJob,
    Place,
    SubsetsJob,
    WidthsJob,
    also_read,
)
from lpact.analyses.deconstruct.rows import (
    CONTIGUOUS,
    SHUFFLED,
    blocks_of,
    contiguous_split,
    events_of,
    same_rows,
    split_of,
)
from lpact.analyses.deconstruct.spaces import ladder_of, why_not
from lpact.codes import Reason
from lpact.config import StudyConfig
from lpact.datasets.base import RecordingId
from lpact.errors import ConfigError, InputError, did_you_mean
from lpact.features.models import FULL
from lpact.inputs.prepare import Inspection, Prepared
from lpact.inputs.workspace import Workspace
from lpact.store import frame
from lpact.wording import listed

Row = dict[str, object]

LAYERS, SUBSETS = "layers", "subsets"
EIGH = 14.0
"""Operations of a decomposition of [n, n], in n³ of a matrix product."""


@dataclass(frozen=True)
class PlacePlan:
    """What can be computed for recordings with the same events."""

    place: Place
    ladder: tuple[tuple[str, ...], ...]
    """Steps of the ladder; empty where a feature space is missing."""
    also_read: tuple[str, ...]
    layers: Mapping[str, tuple[int, ...]]
    draws: Mapping[str, int]
    """Layers, and draws of the untrained copy, of every model."""
    n_rows: int
    n_units: int
    n_folds: int

    def n_layers(self, n_splits: int) -> int:
        """Layers that are scored alone, over splits and draws."""
        return sum(len(own) * (n_splits + self.draws.get(m, 0)) for m, own in self.layers.items())

    def families(self, study: StudyConfig) -> list[tuple[str, int, int]]:
        """Family, number of its elements, and how often it is fitted, for one model after the other."""
        made = []
        for model in self.layers:
            if self.ladder:
                made.append((LADDER, len(self.ladder) + 1, 1))
                made.append((UNTRAINED, len(self.ladder[0]) + 1, self.draws.get(model, 0)))
            if options_of(study).oasm:
                made.append((OASM, 2, len(splits_of(study))))
        return made


def splits_of(study: StudyConfig) -> tuple[str, ...]:
    """Kinds of splits that layers are scored under."""
    return (CONTIGUOUS, SHUFFLED) if options_of(study).shuffled else (CONTIGUOUS,)


def audit_study(workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
    """Group recordings by their events; every row of the audit's tables is about one recording."""
    study = workspace.config
    splits: list[Row] = []
    units: list[Row] = []
    unavailable: list[Row] = []
    plans: list[PlacePlan] = []
    for entry in study.datasets:
        same: dict[tuple[object, ...], list[tuple[RecordingId, int]]] = {}
        found: dict[tuple[object, ...], PlacePlan] = {}
        for recording in workspace.dataset(entry.name).recording_ids():
            try:
                inspection = workspace.inspection(entry.name, recording)
                if (prepared := inspection.prepared) is None:
                    unavailable.append(_excluded(entry.name, inspection))
                else:
                    key = same_rows(prepared)
                    same.setdefault(key, []).append((recording, len(prepared.grid.units.ids)))
                    missing = _missing(workspace, prepared)
                    splits += _split_rows(study, prepared)
                    units += _unit_rows(prepared)
                    unavailable += missing
                    if key not in found:
                        _check_features(workspace, prepared, missing)
                        found[key] = _plan(workspace, prepared, missing)
            except InputError as error:
                if str(error) not in map(str, problems):
                    problems.append(error)
            advance()
        for key, own in same.items():
            if key in found:
                place = Place(entry.name, tuple(recording for recording, _ in own))
                n_units = sum(n for _, n in own)
                plans.append(replace(found[key], place=place, n_units=n_units))
    _check_network(study, [str(row["region"]) for row in units])
    found_tables = (
        (tables.SPLITS, splits),
        (tables.UNITS, units),
        (tables.UNAVAILABLE, unavailable),
    )
    made = {table.name: frame(table, rows) for table, rows in found_tables}
    claims = dict.fromkeys(
        f"{p.place.dataset}/{r.stimulus}/{model}" for p in plans for model in p.layers for r in p.place.recordings[:1]
    )
    impossible = tuple(dict.fromkeys(str(row["detail"]) for row in unavailable))
    sizes = {name: own.height for name, own in made.items()} | _sizes(study, plans)
    sizes[tables.CLAIMS.name] = len(claims)
    return Audit(made, tuple(claims), sizes, impossible=impossible, detail=plans)


def _plan(workspace: Workspace, prepared: Prepared, missing: Sequence[Row]) -> PlacePlan:
    study, events = workspace.config, events_of(workspace.config, prepared.dataset)
    options, lacking = options_of(study), {str(row["item"]) for row in missing}
    ladder = ladder_of(options, events)
    layers, draws = {}, {}
    for model in models_of(study):
        entry = next(m for m in study.models if m.name == model)
        offered = workspace.model(model, prepared)
        if model in lacking:
            continue
        for layer in entry.layers:
            offered.require_layer(layer)
        layers[model] = entry.layers
        if options.untrained:
            draws[model] = min(offered.offered.get((k, UNTRAINED), 0) for k in entry.layers)
    if any(space in lacking for step in ladder for space in step):
        ladder = ()
    return PlacePlan(
        Place(prepared.dataset, ()),
        ladder,
        also_read(ladder, workspace),
        layers,
        draws,
        prepared.n_events,
        0,
        len(contiguous_split(prepared, study, events)),
    )


def _missing(workspace: Workspace, prepared: Prepared) -> list[Row]:
    """Feature spaces, models and untrained copies that a recording's sources do not offer."""
    study, events = workspace.config, events_of(workspace.config, prepared.dataset)
    options, where = options_of(study), prepared.stimulus.where
    found: list[Row] = []

    def add(item: str, reason: Reason, detail: str) -> None:
        key = prepared.id.key(prepared.dataset)
        found.append({**key, "item": item, "detail": detail, "reason": reason.value})

    for space in (space for step in ladder_of(options, events) for space in step):
        if (why := why_not(space, prepared, workspace)) is not None:
            add(space, why.reason, why.detail)
    for model in models_of(study):
        offered = workspace.model(model, prepared)
        if not offered.layers:
            detail = f"model '{model}' offers no features of stimulus '{prepared.stimulus.id}' ({where})"
            add(model, Reason.CONTEXT_NOT_OFFERED, detail)
        elif options.untrained and not any(c == UNTRAINED for _, c in offered.offered):
            add(
                f"{model}, untrained",
                Reason.CONTEXT_NOT_OFFERED,
                f"model '{model}' offers no untrained features of stimulus '{prepared.stimulus.id}' ({where})",
            )
    return found


def _check_features(workspace: Workspace, prepared: Prepared, missing: Sequence[Row]) -> None:
    """Raise `FeatureError` for features that exist and would not load."""
    ladder = ladder_of(options_of(workspace.config), events_of(workspace.config, prepared.dataset))
    lacking = {str(row["item"]) for row in missing}
    for name in dict.fromkeys([*models_of(workspace.config), *also_read(ladder, workspace)]):
        model = workspace.model(name, prepared)
        if name not in lacking and model.ready((FULL,)):
            model.check()


def _check_network(study: StudyConfig, regions: Sequence[str]) -> None:
    """Raise `ConfigError` where no unit is in the deciding network."""
    network = options_of(study).network
    if network and regions and network not in regions:
        raise ConfigError(
            f"no unit is in the network '{network}'",
            where="option 'deconstruct.network'",
            got=network,
            expected=f"a region of the units: {listed(sorted({*regions}))}",
            remedy=did_you_mean(network, {*regions}),
        )


def _excluded(dataset: str, inspection: Inspection) -> Row:
    """A recording that cannot be used, and why."""
    why = [f for f in inspection.findings if f.reason is inspection.reason]
    detail = "; ".join(f"found {f.found}, expected {f.expected}" for f in why[-1:])
    key = inspection.id.key(dataset)
    return {**key, "item": "recording", "detail": detail, "reason": inspection.reason.value}


def _split_rows(study: StudyConfig, prepared: Prepared) -> list[Row]:
    events = events_of(study, prepared.dataset)
    n_groups = len({*blocks_of(prepared, options_of(study), events)})
    made: list[Row] = []
    for kind in splits_of(study):
        split = split_of(prepared, study, events, kind)
        proof = split.check()
        made.append(
            {
                **prepared.id.key(prepared.dataset),
                "stimulus": prepared.id.stimulus,
                "split": kind,
                "made_by": split.kind,
                "n_folds": proof.n_folds,
                "n_rows": proof.n_rows,
                "n_groups": n_groups,
                "smallest_test": proof.smallest_test,
                "nearest": proof.nearest,
                "fold": split.fold.tolist(),
            }
        )
    return made


def _unit_rows(prepared: Prepared) -> list[Row]:
    units = prepared.grid.units
    places = units.coordinates_mm
    if places is None:
        places = np.full((len(units.ids), 3), np.nan)
    made: list[Row] = []
    for i, (unit, region, xyz) in enumerate(zip(units.ids, units.regions, places, strict=True)):
        mm = xyz.tolist() if np.isfinite(xyz).all() else [None] * 3
        made.append(
            {
                **prepared.id.key(prepared.dataset),
                "unit_index": i,
                "unit": unit,
                "region": region,
                **dict(zip(("x_mm", "y_mm", "z_mm"), mm, strict=True)),
                "coordinate_frame": units.coordinate_frame,
            }
        )
    return made


# --- tasks ------------------------------------------------------------------------------------------


def stages(study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
    """Layers and OASM widths, then the subsets that choose among them."""
    options, plans = options_of(study), audit.detail
    first: list[LayerJob | WidthsJob] = []
    for plan in plans:
        for kind in splits_of(study):
            first += [
                LayerJob(plan.place, kind, model, FULL, 0, layer)
                for model, layers in plan.layers.items()
                for layer in layers
            ]
            if options.oasm:
                first.append(WidthsJob(plan.place, kind))
        first += [
            LayerJob(plan.place, CONTIGUOUS, model, UNTRAINED, draw, layer)
            for model, n_draws in plan.draws.items()
            for draw in range(n_draws)
            for layer in plan.layers[model]
        ]
    first_tasks = keys.tasks(first)
    layers: dict[tuple[object, ...], list[str]] = {}
    widths: dict[tuple[object, ...], str] = {}
    for job, task in zip(first, first_tasks, strict=True):
        if isinstance(job, LayerJob):
            place = (job.place, job.split, job.model, job.context, job.draw)
            layers.setdefault(place, []).append(task.key)
        else:
            widths[job.place, job.split] = task.key

    def subsets(plan: PlacePlan, kind: str, family: str, model: str, draw: int = 0) -> SubsetsJob:
        context = UNTRAINED if family == UNTRAINED else FULL
        ladder = {LADDER: plan.ladder, UNTRAINED: plan.ladder[:1], OASM: ()}[family]
        own = (widths[plan.place, kind],) if family == OASM else ()
        read = () if family == OASM else plan.also_read
        chosen_from = tuple(layers[plan.place, kind, model, context, draw])
        return SubsetsJob(plan.place, kind, family, model, draw, ladder, chosen_from, own, read)

    second = []
    for plan in plans:
        for model in plan.layers:
            if plan.ladder:
                second.append(subsets(plan, CONTIGUOUS, LADDER, model))
                n_draws = plan.draws.get(model, 0)
                second += [subsets(plan, CONTIGUOUS, UNTRAINED, model, d) for d in range(n_draws)]
            if options.oasm:
                second += [subsets(plan, kind, OASM, model) for kind in splits_of(study)]
    return [Stage(LAYERS, first_tasks), Stage(SUBSETS, keys.tasks(second))]


# --- sizes ------------------------------------------------------------------------------------------


def _n_scores(n_elements: int) -> int:
    """Rows of scores of one recording and family: plain subsets, and pools under every choice of the sub-model."""
    n_subsets = int(2**n_elements) - 1
    return n_subsets + (len(SUB_MODELS) - 1) * n_elements + len(SUB_MODELS) * 2


def _sizes(study: StudyConfig, plans: Sequence[PlacePlan]) -> dict[str, int]:
    """Rows of the tables that tasks write."""
    options, n_splits = options_of(study), len(splits_of(study))
    sizes = dict.fromkeys((t.name for t in (tables.LAYERS, tables.SIGMAS, tables.SCORES, tables.TESTS)), 0)
    for plan in plans:
        n = len(plan.place.recordings)
        sizes[tables.LAYERS.name] += n * plan.n_layers(n_splits)
        sizes[tables.SIGMAS.name] += n * n_splits * len(options.oasm_sigmas) * options.oasm
        for _, n_elements, times in plan.families(study):
            sizes[tables.SCORES.name] += n * times * _n_scores(n_elements)
            sizes[tables.TESTS.name] += n * times * (len(SUB_MODELS) + 1)
    return sizes


def work(study: StudyConfig, audit: Audit) -> dict[str, StageWork]:
    """Operations of both stages: candidates × training sets × (decomposition + validation scores)."""
    options = options_of(study)
    operations, longest, peak = {LAYERS: 0.0, SUBSETS: 0.0}, {LAYERS: 0.0, SUBSETS: 0.0}, 0
    for plan in audit.detail:
        n, n_pairs = plan.n_rows, plan.n_folds * (plan.n_folds - 1) / 2
        validated = 4.0 * len(options.alphas) * n * (n / plan.n_folds) * plan.n_units
        one = n_pairs * (EIGH * n**3 + validated)
        n_splits = len(splits_of(study))
        n_widths = len(options.oasm_sigmas) if options.oasm else 0
        operations[LAYERS] += one * (plan.n_layers(n_splits) + n_splits * n_widths)
        longest[LAYERS] = max(longest[LAYERS], one * max(1, n_widths))
        for family, n_elements, times in plan.families(study):
            searched = min(options.draws, options.patience)
            spaces = sum(map(len, plan.ladder)) + 1 if family == LADDER else n_elements
            own = one * (2**spaces - 1 + (2**n_elements - 1 - n_elements) * searched)
            operations[SUBSETS] += own * times
            longest[SUBSETS] = max(longest[SUBSETS], own if times else 0.0)
        n_sets, n_bands = n_pairs + plan.n_folds, sum(map(len, plan.ladder)) + 1
        arrays = 8.0 * n * (n_sets * n_bands * n + 8 * plan.n_units)
        peak = max(peak, int(min(arrays, study.readout.memory_gib * 2**30)))
    return {name: StageWork(operations[name], longest[name], peak) for name in (LAYERS, SUBSETS)}
