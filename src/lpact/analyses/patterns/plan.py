"""What the sources of a study allow, its tasks, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from lpact.analyses.base import Audit, Keys, Stage, StageWork, Task
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import (
    FEWEST_REGIONS,
    FEWEST_SUBJECTS,
    MEAN,
    OWN,
    PatternsSection,
    models_of,
    options_of,
)
from lpact.analyses.patterns.jobs import (
    BrainJob,
    CeilingJob,
    ModelJob,
    Place,
    ReliabilityJob,
    TrialsJob,
)
from lpact.analyses.patterns.populations import (
    averaged,
    measure_of,
    read_subject,
    split_stimuli,
    usable_units,
)
from lpact.codes import Reason
from lpact.config import StudyConfig
from lpact.datasets.connectivity import Connectivity, read_connectivity
from lpact.errors import ConfigError, InputError, require_known
from lpact.inputs.prepare import Placed, compute_settings
from lpact.inputs.subjects import Lacks, check_models, layers_of, plan_datasets, shared_lags, shared_stimuli
from lpact.inputs.workspace import Workspace
from lpact.math.types import BoolArray, FloatArray
from lpact.responses import Responses
from lpact.splits import contiguous
from lpact.store import frame
from lpact.wording import counted, listed

Row = dict[str, object]
BRAINS, MODELS, TRIALS = "brains", "models", "model trials"
UNKNOWN = "unknown"
"""Region of units whose region is not known."""
CALLS = 4e7
"""Operations in the time of the calls around a comparison, where arrays are small."""
EIGH, PENALTIES = 14.0, 19
"""Operations of a decomposition of [n, n], in n³ of a matrix product; products of [n, n] for leave-one-out errors."""


@dataclass(frozen=True)
class DatasetPlan:
    """What can be computed for a dataset."""

    place: Place
    measures: tuple[str, ...]
    layers: Mapping[str, tuple[int, ...]]
    """Layers of every model."""
    sizes: tuple[int, int, int]
    """Training stimuli, test stimuli, and units of all populations."""
    widths: Mapping[str, int]
    """Columns of the first layer of every model."""
    n_trials: tuple[int, int]
    """Trials of a training and of a test stimulus in a typical subject."""
    noisy: bool
    """Whether models get noise: where brains have repetitions."""


def audit_study(workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
    """Read every subject; find shared stimuli, usable units and regions."""
    study, options = workspace.config, options_of(workspace.config)
    twins = [*options.untrained, *options.untrained.values()]
    check_models(study, {"patterns.models": options.models, "patterns.untrained": twins})
    audited = (
        tables.SUBJECTS,
        tables.REGIONS,
        tables.PLACES,
        tables.CONNECTIVITY,
        tables.UNAVAILABLE,
    )
    rows: dict[str, list[Row]] = {table.name: [] for table in audited}
    plan = partial(_dataset, workspace, rows)
    plans = plan_datasets(workspace, workspace.recordings_of, plan, problems, advance)
    made = {table.name: frame(table, rows[table.name]) for table in audited}
    claims = [
        f"{plan.place.dataset}/{measure}/{region}/{model}"
        for plan in plans
        for measure in plan.measures
        for region in plan.place.regions
        for model in plan.layers
    ]
    impossible = tuple(dict.fromkeys(str(row["detail"]) for row in rows[tables.UNAVAILABLE.name]))
    sizes = {name: own.height for name, own in made.items()} | _sizes(plans)
    return Audit(made, tuple(claims), sizes, frozenset(), impossible, plans)


def _dataset(
    workspace: Workspace,
    rows: dict[str, list[Row]],
    dataset: str,
    found: Mapping[str, list[Placed]],
) -> list[DatasetPlan]:
    """Audit one dataset; its plan, or none where too little is shared."""
    study, options = workspace.config, options_of(workspace.config)

    def lacks(item: str, detail: str, reason: Reason) -> None:
        row: Row = {"dataset": dataset, "item": item, "detail": detail, "reason": reason.value}
        rows[tables.UNAVAILABLE.name].append(row)

    if not found:
        lacks("subjects", f"dataset '{dataset}' has no recording", Reason.DATASET_HAS_NO_RECORDING)
        return []
    lag = _lag(dataset, found, options)
    means: dict[str, Responses] = {}
    trials: dict[str, dict[str, int]] = {}
    known: dict[str, None] = {}
    for who in found:
        own = read_subject(workspace, dataset, who, lag)
        trials[who] = dict(zip(own.stimulus_ids, own.counts().max(axis=1, initial=0), strict=True))
        here = dict.fromkeys(r for r in own.regions or () if r != UNKNOWN)
        known |= here
        means[who] = averaged(own, [r for r in options.regions or here if r in here])
    _check_regions(dataset, options, list(known))
    n_subjects = len(means)
    if n_subjects < 2:
        lacks("subjects", f"dataset '{dataset}' has {counted(n_subjects, 'subject')}; at least 2 are needed, and "
              f"{FEWEST_SUBJECTS} for a verdict", Reason.SINGLE_SUBJECT)  # fmt: skip
        return []
    train, test = split_stimuli(options, dataset, means)
    shared = {*shared_stimuli(list(means.values()))}
    for who, own in means.items():
        about = _subject_row(dataset, found[who], own, trials[who], train, test)
        about["n_own"] = sum(n > 0 for name, n in trials[who].items() if name not in shared)
        rows[tables.SUBJECTS.name].append(about)
    few = {"training stimuli": len(train), "test stimuli": len(test)}
    few = {what: n for what, n in few.items() if n < options.min_stimuli}
    for what, n in few.items():
        lacks(what, f"the subjects of dataset '{dataset}' share {n} {what}; {options.min_stimuli} are needed "
              "(patterns.min_stimuli)", Reason.TOO_FEW_EVENTS)  # fmt: skip
    if few:
        return []
    asked = options.regions or tuple(known)
    regions, units = _regions(options.min_units, dataset, means, asked, train, test, rows, lacks)
    if not regions:
        return []
    _connectivity(workspace, dataset, regions, rows, lacks)
    layers = layers_of(workspace, dataset, found, models_of(study), lacks)
    measures = _measures(study, dataset, layers, len(train), len(test), lacks)
    place = Place(dataset, lag, tuple(means), tuple(regions))
    placed = next(iter(found.values()))[0]
    widths = {name: workspace.model(name, placed).width(own[0]) for name, own in layers.items()}
    n_train, n_test = (
        max(1, round(float(np.median([np.mean([own[name] for name in names]) for own in trials.values()]))))
        for names in (train, test)
    )
    noisy = options.model_trials == "matched" and n_test > 1
    if n_test == 1:
        lacks("repetitions", f"the typical subject of dataset '{dataset}' has one trial of a test stimulus: models "
              "have no noise, but brains do", Reason.NO_REPEATED_MEASURE)  # fmt: skip
    sizes = (len(train), len(test), units)
    return [DatasetPlan(place, measures, layers, sizes, widths, (n_train, n_test), noisy)]


def _lag(dataset: str, found: Mapping[str, list[Placed]], options: PatternsSection) -> float:
    """The lag that was asked for, or else the grid's reference lag if all subjects have it."""
    wanted = () if options.lag_ms is None else (options.lag_ms,)
    lags = shared_lags(dataset, found, wanted, where="option 'patterns.lag_ms'")
    first = next(iter(found.values()))[0].grid
    reference = first.lags_ms[first.reference_lag]
    return reference if not wanted and reference in lags else lags[0]


def _check_regions(dataset: str, options: PatternsSection, known: Sequence[str]) -> None:
    """Raise `ConfigError` for regions that no unit is in, and for one named as the mean over regions is."""
    for name in options.regions:
        require_known(
            name,
            known,
            "region",
            where=f"option 'patterns.regions', dataset '{dataset}'",
            error=ConfigError,
        )
    if MEAN in (options.regions or known):
        raise ConfigError(
            f"a region is named '{MEAN}', which is the name of the mean over regions",
            where=f"dataset '{dataset}'",
            remedy="rename the region in the data, or leave it out of patterns.regions",
        )


def _measures(
    study: StudyConfig,
    dataset: str,
    layers: Mapping[str, Sequence[int]],
    n_train: int,
    n_test: int,
    lacks: Lacks,
) -> tuple[str, ...]:
    """Measures for which there are enough stimuli."""
    options, kept = options_of(study), []
    for name in options.measures:
        measure, detail = measure_of(study, name), ""
        if measure.needs_fit and chooses(layers) and options.layer_folds:
            try:
                contiguous(n_train, options.layer_folds, gap=options.gap_events).check()
            except InputError as error:
                detail = f"{error.what}; {error.remedy}"
        if n_test < measure.fewest_stimuli:
            detail = f"{measure.fewest_stimuli} test stimuli are needed"
        if detail:
            lacks(name, f"dataset '{dataset}', measure '{name}': {detail}", Reason.TOO_FEW_EVENTS)
        else:
            kept.append(name)
    return tuple(kept)


def _subject_row(
    dataset: str,
    found: Sequence[Placed],
    own: Responses,
    trials: Mapping[str, int],
    train: Sequence[str],
    test: Sequence[str],
) -> Row:
    """Stimuli, trials and units of one subject."""
    return {
        "dataset": dataset,
        "subject": own.subject,
        "n_recordings": len(found),
        "n_train": len(train),
        "n_test": len(test),
        "n_repetitions_train": max((trials[name] for name in train), default=0),
        "n_repetitions_test": max((trials[name] for name in test), default=0),
        "n_units": own.n_units,
        "reason": Reason.OK.value,
    }


def _regions(
    fewest: int,
    dataset: str,
    means: Mapping[str, Responses],
    wanted: Sequence[str],
    train: Sequence[str],
    test: Sequence[str],
    rows: dict[str, list[Row]],
    lacks: Lacks,
) -> tuple[list[str], int]:
    """Regions that every subject has with enough usable units, and their units in all."""
    usable: dict[str, BoolArray] = {}
    for who, own in means.items():
        usable[who] = usable_units(own.select(stimuli=[*train, *test]).values[:, 0], len(train))
    comparable = all(own.comparable_units for own in means.values())
    regions, total = [], 0
    for region in wanted:
        names, made = [], []
        for who, own in means.items():
            here = np.array(own.regions) == region if own.n_units else np.zeros(0, dtype=bool)
            names.append(tuple(np.array(own.unit_ids)[here & usable[who]]))
            made.append({"dataset": dataset, "region": region, "subject": who, "n_units": len(names[-1]),
                         "n_left_out": int(here.sum()) - len(names[-1])})  # fmt: skip
        few = [who for who, own in zip(means, names, strict=True) if len(own) < fewest]
        if few:
            detail = f"region '{region}' of dataset '{dataset}' has fewer than {fewest} usable units "
            detail += f"(patterns.min_units) in subject {listed(few)}"
            lacks(region, detail, Reason.TOO_FEW_UNITS)
        else:
            regions.append(region)
            total += sum(map(len, names))
            rows[tables.PLACES.name] += _places(dataset, region, means, usable)
        reason = (Reason.TOO_FEW_UNITS if few else Reason.OK).value
        same = comparable and len(set(names)) == 1
        rows[tables.REGIONS.name] += [own | {"used": not few, "comparable": same, "reason": reason} for own in made]
    if len(regions) < FEWEST_REGIONS:
        detail = f"dataset '{dataset}' has {counted(len(regions), 'region')} that can be compared"
        lacks("patterns", f"{detail}; a pattern needs {FEWEST_REGIONS}", Reason.TOO_FEW_UNITS)
    return regions, total


def _places(dataset: str, region: str, means: Mapping[str, Responses], usable: Mapping[str, BoolArray]) -> list[Row]:
    """Mean place of a region on each side, over the subjects with units there; none without a common frame."""
    frames = {own.coordinate_frame for own in means.values()}
    if len(frames) > 1 or any(own.coordinates_mm is None for own in means.values()):
        return []
    sides: dict[str, list[FloatArray]] = {"left": [], "right": []}
    for who, own in means.items():
        here = own.coordinates_mm[usable[who] & (np.array(own.regions) == region)]  # type: ignore[index]
        right = here[:, 0] > 0
        for side, kept in (("left", ~right), ("right", right)):
            known = here[kept & np.isfinite(here).all(axis=1)]
            sides[side] += [known.mean(axis=0)] if len(known) else []
    return [
        {
            "dataset": dataset,
            "region": region,
            "side": side,
            **dict(zip(("x_mm", "y_mm", "z_mm"), np.mean(found, axis=0).tolist(), strict=True)),
            "coordinate_frame": min(frames),
            "n_subjects": len(found),
        }
        for side, found in sides.items()
        if found
    ]


def _connectivity(
    workspace: Workspace,
    dataset: str,
    regions: Sequence[str],
    rows: dict[str, list[Row]],
    lacks: Lacks,
) -> None:
    """Read structural connectivity, if the study names some; it must have all regions."""
    name = options_of(workspace.config).connectivity
    if not name:
        return
    if name == OWN:
        found = workspace.dataset(dataset).connectivity()
        if found is None:
            detail = f"dataset '{dataset}' comes without structural connectivity"
            lacks("connectivity", detail, Reason.CONNECTIVITY_NOT_OFFERED)
            return
    elif name not in workspace.run.paths:
        raise ConfigError(
            "the file of the connectivity matrix is not given",
            where="option 'patterns.connectivity'",
            got=name,
            expected=f'[run.paths] {name} = "path/to/matrix.csv"',
            remedy="add it to the study file, or leave the option out",
        )
    else:
        found = read_connectivity(Path(workspace.run.paths[name]))
    found.match(regions)
    rows[tables.CONNECTIVITY.name] += _connectivity_rows(dataset, found)


def _connectivity_rows(dataset: str, own: Connectivity) -> list[Row]:
    return [
        {"dataset": dataset, "region": a, "other": b, "weight": float(own.weights[i, j])}
        for i, a in enumerate(own.names)
        for j, b in enumerate(own.names)
        if i != j
    ]


def chooses(layers: Mapping[str, Sequence[int]]) -> bool:
    """Whether some model has several layers."""
    return any(len(own) > 1 for own in layers.values())


# --- tasks ----------------------------------------------------------------------------------------


def stages(study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
    """Brains against brains and their ceilings, models against brains, then models with noise; measure by measure."""
    on_test = options_of(study).layer_choice == "best_on_test"
    brains: list[Task] = []
    models: list[Task] = []
    trials: list[Task] = []
    for plan in audit.detail:
        place = plan.place
        reliabilities = keys.tasks([ReliabilityJob(place, who) for who in place.subjects])
        brains += reliabilities
        for measure in plan.measures:
            brains += keys.tasks([BrainJob(place, measure, who, region) for who, region in place.targets])
            brains += keys.tasks([CeilingJob(place, measure, region) for region in place.regions])
            for model, layers in plan.layers.items():
                several = len(layers) > 1
                scored = keys.tasks([ModelJob(place, measure, model, layer, several) for layer in layers])
                models += scored
                needs = tuple(own.key for own in scored), tuple(own.key for own in reliabilities)
                trials += keys.tasks([
                    TrialsJob(place, measure, model, region, on_test, plan.n_trials, *needs)
                    for region in place.regions if plan.noisy
                ])  # fmt: skip
    return [Stage(BRAINS, brains), Stage(MODELS, models), *([Stage(TRIALS, trials)] if trials else [])]


# --- sizes ----------------------------------------------------------------------------------------


def _sizes(plans: Sequence[DatasetPlan]) -> dict[str, int]:
    """Rows of the tables that tasks write, and of the claims."""
    pairs = ceilings = layers = trials = reliable = claims = 0
    for plan in plans:
        s, r, k = len(plan.place.subjects), len(plan.place.regions), len(plan.measures)
        pairs += k * s * r * (s - 1) * r
        ceilings += 2 * k * r * s
        layers += k * r * s * sum(map(len, plan.layers.values()))
        trials += k * r * r * s * len(plan.layers) * plan.noisy
        reliable += r * s
        claims += k * r * len(plan.layers)
    return {
        tables.BRAIN_PAIRS.name: pairs,
        tables.CEILING_VALUES.name: ceilings,
        tables.LAYERS.name: layers,
        tables.MODEL_TRIALS.name: trials,
        tables.TARGETS.name: reliable,
        tables.CLAIMS.name: claims,
    }


def work(study: StudyConfig, audit: Audit) -> dict[str, StageWork]:
    """Operations of the stages: comparisons, or fits of all populations at once."""
    options, memory = options_of(study), compute_settings(study.readout).memory_bytes
    names = (BRAINS, MODELS, *([TRIALS] if any(plan.noisy for plan in audit.detail) else []))
    total, longest, peak = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0), 0
    for plan in audit.detail:
        n, m, t = plan.sizes
        n_targets = len(plan.place.targets)
        width, values, features = t // n_targets, 8 * (n + m) * t, 0
        for name in plan.measures:
            fitted = measure_of(study, name).needs_fit
            for model, layers in plan.layers.items():
                p, several = plan.widths[model], len(layers) > 1
                folds = options.layer_folds if fitted and several else 0
                once = _fit(n, p, t) if fitted else _compare(m, p, n_targets)
                one = once * (1 + folds) if fitted else _compare(n * several, p, n_targets) + once
                if plan.noisy:
                    total[TRIALS] += len(plan.place.regions) * (once + CALLS)
                    longest[TRIALS] = max(longest[TRIALS], once)
                total[MODELS] += len(layers) * (one + CALLS)
                longest[MODELS] = max(longest[MODELS], one)
                features = max(features, 8 * 3 * (n + m) * p)
            one = _fit(n, width, t) if fitted else _compare(m, width, n_targets)
            total[BRAINS] += n_targets * (one + CALLS)
            longest[BRAINS] = max(longest[BRAINS], one)
            if fitted and not study.readout.on_processor:
                prepared = 0  # on the device
            elif fitted:  # products of the responses of every fold, as far as memory allows
                folds = options.layer_folds * chooses(plan.layers)
                prepared = min(memory, 8 * n_targets * n * n * (1 + folds))
            else:
                prepared = 4 * n_targets * (n * n * chooses(plan.layers) + m * m)
            # While responses are read, they are in memory twice.
            peak = max(peak, 2 * values, values + prepared + features)
    return {name: StageWork(total[name], longest[name], int(peak)) for name in total}  # fmt: skip


def _fit(n: int, p: int, t: int) -> float:
    """Operations of a ridge fit of t units with leave-one-out penalties."""
    small = min(n, p)
    return float(n * p * small + (EIGH + 2 * PENALTIES) * n**3 / 2 + 4.0 * n * n * t)


def _compare(n: int, p: int, n_targets: int) -> float:
    """Operations of one representation of n stimuli, and its comparison with all others."""
    return float(n * n * (p + 4.0 * n_targets))
