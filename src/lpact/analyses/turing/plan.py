"""What the sources of a study allow, its tasks, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lpact.analyses.base import Audit, Keys, Stage, StageWork
from lpact.analyses.turing import tables
from lpact.analyses.turing.brains import (
    Folds,
    folds_of,
    measure_of,
    recordings_of,
)
from lpact.analyses.turing.config import ALL, EACH, Growth, models_of, options_of, time_of
from lpact.analyses.turing.jobs import (
    BRAIN,
    MODEL,
    POOLED,
    TRIALS,
    GrowthJob,
    Place,
    Source,
    SourceJob,
    once,
)
from lpact.codes import Reason
from lpact.config import StudyConfig
from lpact.errors import ConfigError, InputError, SplitError, did_you_mean
from lpact.inputs.prepare import Placed
from lpact.inputs.responses import stack_recordings
from lpact.inputs.subjects import Lacks, check_models, layers_of, plan_datasets, shared_lags, shared_stimuli
from lpact.inputs.workspace import Workspace
from lpact.math.columns import mean_of_finite
from lpact.math.types import IntArray
from lpact.responses import Responses
from lpact.store import frame
from lpact.wording import counted, listed

Row = dict[str, object]

BETWEEN, MODELS, GROWING = "brains", "models", "growth"
FEWEST_SUBJECTS = 2
SOURCES = 8
"""Sources of a job without fits: enough that preparing the targets costs little, and few enough for memory."""
EIGH = 14.0
"""Operations of a decomposition of [n, n], in n³ of a matrix product."""
CALLS = 4e7
"""Operations in the time of the calls around a fit or a comparison, where arrays are small."""


@dataclass(frozen=True)
class DatasetPlan:
    """What can be computed for a dataset."""

    places: tuple[Place, ...]
    layers: Mapping[str, tuple[int, ...]]
    """Layers of every model."""
    trials: bool
    """Whether models get simulated trials: where brains have repetitions."""
    growth: tuple[Growth, ...]
    n_stimuli: int
    n_units: int
    """Stimuli, and units of the largest brain."""


def chooses(study: StudyConfig) -> bool:
    """Whether layers are chosen on training stimuli."""
    tested = models_of(study)
    several = any(len(model.layers) > 1 for model in study.models if model.name in tested)
    return several and options_of(study).layer_choice == "nested"


def audit_study(workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
    """Read every subject, find shared stimuli and regions, and prove the folds."""
    study = workspace.config
    options = options_of(study)
    named = {"turing.models": options.models}
    named |= {f"turing.instances.{name}": own for name, own in options.instances.items()}
    check_models(study, named)
    audited = (tables.SUBJECTS, tables.REGIONS, tables.SPLITS, tables.UNAVAILABLE)
    rows: dict[str, list[Row]] = {table.name: [] for table in audited}
    read, plan = partial(recordings_of, workspace), partial(_dataset, workspace, rows)
    plans = plan_datasets(workspace, read, plan, problems, advance)
    made = {table.name: frame(table, rows[table.name]) for table in audited}
    claims = [
        f"{place.dataset}/{place.region}/{time_of(place.lag_ms)}/{place.measure}/{model}"
        for plan in plans
        for place in plan.places
        for model in plan.layers
    ]
    impossible = tuple(dict.fromkeys(str(row["detail"]) for row in rows[tables.UNAVAILABLE.name]))
    sizes = {name: own.height for name, own in made.items()} | _sizes(study, plans)
    sizes[tables.CLAIMS.name] = len(claims)
    at_most = frozenset({tables.GROWTH.name})
    return Audit(made, tuple(claims), sizes, at_most, impossible, plans)


def _dataset(
    workspace: Workspace,
    rows: dict[str, list[Row]],
    dataset: str,
    found: Mapping[str, list[Placed]],
) -> list[DatasetPlan]:
    """Audit one dataset; its plan, or none where too little is shared."""
    study, options = workspace.config, options_of(workspace.config)
    entry = workspace.entry(dataset)

    def lacks(item: str, detail: str, reason: Reason) -> None:
        row: Row = {"dataset": dataset, "item": item, "detail": detail, "reason": reason.value}
        rows[tables.UNAVAILABLE.name].append(row)

    if not found:
        lacks("subjects", f"dataset '{dataset}' has no recording", Reason.DATASET_HAS_NO_RECORDING)
        return []
    lags = shared_lags(dataset, found, options.lags_ms, where="option 'turing.lags_ms'")
    read = {who: stack_recordings(own, entry, lags[0]) for who, own in found.items()}
    usable = {who: own for who, own in read.items() if len(_units(own))}
    rows[tables.SUBJECTS.name] += _subject_rows(dataset, found, read, list(usable))
    for who in (who for who in read if who not in usable):
        lacks(f"subject {who}", f"subject '{who}' of dataset '{dataset}' has no unit that varies and is finite",
              Reason.TOO_FEW_UNITS)  # fmt: skip
    read = usable
    if len(read) < FEWEST_SUBJECTS:
        lacks("subjects", f"dataset '{dataset}' has {counted(len(read), 'subject')}; at least "
              f"{FEWEST_SUBJECTS} are needed", Reason.SINGLE_SUBJECT)  # fmt: skip
        return []
    shared = shared_stimuli(list(read.values()))
    if len(shared) < options.min_stimuli:
        lacks("stimuli", f"the subjects of dataset '{dataset}' share {counted(len(shared), 'stimulus', 'stimuli')}; "
              f"{options.min_stimuli} are needed (turing.min_stimuli)", Reason.TOO_FEW_EVENTS)  # fmt: skip
        return []
    first = next(iter(read.values())).select(stimuli=shared)
    layers = layers_of(workspace, dataset, found, models_of(study), lacks)
    measures = []
    for name in options.measures:
        measure = measure_of(study, name)
        try:
            folds = folds_of(options, measure, first.groups or (), len(shared), choice=chooses(study))
        except SplitError as error:
            lacks(
                name,
                f"dataset '{dataset}', measure '{name}': {error.what}; {error.remedy}",
                Reason.TOO_FEW_EVENTS,
            )
            continue
        if measure.behavioural:  # what is no behaviour is refused before anything is computed
            for own in read.values():
                measure.prepare(mean_of_finite(own.select(stimuli=shared).values, 1))
        measures.append(name)
        rows[tables.SPLITS.name].append(_split_row(dataset, name, folds, len(shared)))
    regions = _regions(dataset, read, options.regions, lacks)
    for region in regions:
        for who, own in read.items():
            n = own.n_units if region == ALL else (own.regions or ()).count(region)
            row = {"dataset": dataset, "region": region, "subject": who, "n_units": n}
            rows[tables.REGIONS.name].append(row)
    single = [who for who, own in read.items() if _n_trials(own, shared) < 2]
    repeated = not single
    if single:
        which = listed(single) if len(single) < len(read) else "every one"
        lacks("repetitions", f"dataset '{dataset}' has subjects with one trial per stimulus ({which}): no score is "
              "corrected for noise, and only brains have noise", Reason.NO_REPEATED_MEASURE)  # fmt: skip
    trials = repeated and options.model_trials == "matched"
    grows = tuple(over for over in options.growth if repeated or over != "repetitions")
    names = tuple(read)
    places = tuple(
        Place(dataset, region, lag, measure, names) for region in regions for lag in lags for measure in measures
    )
    n_units = max(own.n_units for own in read.values())
    return [DatasetPlan(places, layers, trials, grows, len(shared), n_units)]


def _units(own: Responses) -> IntArray:
    """Units with a response."""
    return np.flatnonzero(np.isfinite(own.values).any(axis=(0, 1)))


def _n_trials(own: Responses, shared: Sequence[str]) -> int:
    """Most trials of a shared stimulus."""
    return int(own.select(stimuli=shared).counts().max(initial=0))


def _subject_rows(
    dataset: str,
    found: Mapping[str, list[Placed]],
    read: Mapping[str, Responses],
    usable: Sequence[str],
) -> list[Row]:
    shared = shared_stimuli([read[who] for who in usable])
    rows: list[Row] = []
    for who, own in read.items():
        kept = own.select(stimuli=shared)
        per_stimulus = kept.counts().max(axis=1, initial=0)
        complete = (kept.counts() > 0).all(axis=0) & bool(shared)
        rows.append(
            {
                "dataset": dataset,
                "subject": who,
                "n_recordings": len(found[who]),
                "n_stimuli": int((own.counts() > 0).any(axis=1).sum()),
                "n_shared": len(shared),
                "n_repetitions": int(per_stimulus.max(initial=0)),
                "fewest_trials": int(per_stimulus.min()) if len(per_stimulus) else 0,
                "n_missing": kept.n_missing,
                "n_units": own.n_units,
                "n_left_out": int((~complete).sum()),
                "reason": (Reason.OK if who in usable else Reason.TOO_FEW_UNITS).value,
            }
        )
    return rows


def _regions(
    dataset: str,
    read: Mapping[str, Responses],
    wanted: Sequence[str],
    lacks: Lacks,
) -> list[str]:
    """Regions that all subjects have, in the order of the options."""
    of_subject = {who: {own.regions[i] for i in _units(own)} if own.regions else set() for who, own in read.items()}
    known = list(dict.fromkeys(r for own in read.values() for r in own.regions or ()))
    found: list[str] = []
    for region in dict.fromkeys(w for name in wanted for w in (known if name == EACH else [name])):
        if region != ALL and region not in known:
            raise ConfigError(
                f"no unit of dataset '{dataset}' is in the region '{region}'",
                where="option 'turing.regions'",
                got=region,
                expected=f"'{ALL}', '{EACH}', or a region of the units: {listed(known)}",
                remedy=did_you_mean(region, known),
            )
        absent = [who for who, own in of_subject.items() if region not in {*own, ALL}]
        if absent:
            detail = f"subject {listed(absent)} of dataset '{dataset}' has no unit in the region '{region}'"
            lacks(region, detail, Reason.TOO_FEW_UNITS)
        else:
            found.append(region)
    return found


def _split_row(dataset: str, measure: str, folds: Folds, n: int) -> Row:
    sizes = [(len(train), len(test)) for train, test in folds.rows] or [(0, n)]
    return {
        "dataset": dataset,
        "measure": measure,
        "made_by": folds.made_by,
        "n_folds": len(sizes),
        "n_stimuli": n,
        "smallest_train": min(train for train, _ in sizes),
        "smallest_test": min(test for _, test in sizes),
        "nearest": folds.nearest,
        "reason": Reason.OK.value,
    }


# --- tasks ----------------------------------------------------------------------------------------


def stages(study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
    """Brains against brains, models against brains, and growth."""
    jobs = _brain_jobs(study, audit.detail)
    brains = keys.tasks(jobs)
    between: dict[Place, list[str]] = {}
    for job, task in zip(jobs, brains, strict=True):
        if _compared_as_for_growth(study, job.place.measure):
            between.setdefault(job.place, []).append(task.key)
    growing = []
    for plan in audit.detail:
        for place in plan.places:
            over = _grows(study, plan, place)
            if place in between:
                known = tuple(between[place])
                growing += [GrowthJob(place, (one,), known) for one in over]
            elif over:
                growing.append(GrowthJob(place, over))
    return [
        Stage(BETWEEN, brains),
        Stage(MODELS, keys.tasks(_model_jobs(study, audit.detail))),
        Stage(GROWING, keys.tasks(growing)),
    ]


def _compared_as_for_growth(study: StudyConfig, name: str) -> bool:
    """Whether brains are compared in pairs, with all units, and without a fit with all stimuli."""
    options = options_of(study)
    alike = measure_of(study, name).needs_fit or not chooses(study)
    return alike and options.source == "pairs" and not options.source_units


def _jobs(study: StudyConfig, place: Place, sources: Sequence[Source], most: int) -> list[SourceJob]:
    """Jobs of at most so many sources that share prepared targets; of one source each, if the measure is fitted."""
    if measure_of(study, place.measure).needs_fit:
        most = 1
    starts = range(0, len(sources), most)
    return [SourceJob(place, tuple(sources[i : i + most]), chooses(study)) for i in starts]


def _brain_jobs(study: StudyConfig, plans: Sequence[DatasetPlan]) -> list[SourceJob]:
    pooled = options_of(study).source == "pooled"
    kind = POOLED if pooled else BRAIN
    jobs = []
    for plan in plans:
        for place in plan.places:
            each_once = once(measure_of(study, place.measure), options_of(study)) and not pooled
            subjects = place.subjects[:-1] if each_once else place.subjects
            sources = [Source(kind, who) for who in subjects]
            most = 1 if pooled else SOURCES if options_of(study).source_units else len(sources)
            jobs += _jobs(study, place, sources, most)
    return jobs


def _model_jobs(study: StudyConfig, plans: Sequence[DatasetPlan]) -> list[SourceJob]:
    jobs = []
    for plan in plans:
        for place in plan.places:
            sources = [
                Source(kind, model, layer)
                for model, layers in plan.layers.items()
                for layer in layers
                for kind in _kinds(study, plan, place)
            ]
            jobs += _jobs(study, place, sources, SOURCES)
    return jobs


def _grows(study: StudyConfig, plan: DatasetPlan, place: Place) -> tuple[Growth, ...]:
    """What agreement may grow with at a place. Columns of answers are alternatives, which all are compared."""
    behaviour = measure_of(study, place.measure).behavioural
    return tuple(over for over in plan.growth if over != "units" or not behaviour)


def _kinds(study: StudyConfig, plan: DatasetPlan, place: Place) -> tuple[str, ...]:
    """Kinds of model sources at a place. Answers are no activity that normal noise could be added to."""
    behaviour = measure_of(study, place.measure).behavioural
    return (MODEL, TRIALS) if plan.trials and not behaviour else (MODEL,)


# --- sizes ----------------------------------------------------------------------------------------


def _sizes(study: StudyConfig, plans: Sequence[DatasetPlan]) -> dict[str, int]:
    """Rows of the tables that tasks write."""
    pairs = growth = 0
    for plan in plans:
        for place in plan.places:
            n = len(place.subjects)
            each_once = once(measure_of(study, place.measure), options_of(study))
            brains = n if options_of(study).source == "pooled" else n * (n - 1) // (1 + each_once)
            layers = sum(map(len, plan.layers.values()))
            pairs += brains + layers * len(_kinds(study, plan, place)) * n
            growth += 4 * len(plan.growth)
    return {tables.PAIRS.name: pairs, tables.GROWTH.name: growth}


def work(study: StudyConfig, audit: Audit) -> dict[str, StageWork]:
    """Operations of the stages: fits (or comparisons) × their cost at the largest brain; and bytes of their arrays."""
    options = options_of(study)
    total = dict.fromkeys((BETWEEN, MODELS, GROWING), 0.0)
    longest, peak = dict(total), 0
    halves = 0 if options.estimator == "none" else 2 * options.n_halves
    for plan in audit.detail:
        n, p = plan.n_stimuli, plan.n_units
        small = min(n, p)
        n_layers = sum(map(len, plan.layers.values()))
        for place in plan.places:
            measure, n_subjects = measure_of(study, place.measure), len(place.subjects)
            draws = options.source_draws if options.source_units else 1
            n_models = n_layers * (1 + plan.trials)
            if measure.needs_fit:  # five validation blocks, and all training stimuli
                fit = 2.0 * n * p * small + EIGH * small**3 + 20.0 * n * p * n_subjects
                one = options.n_folds * 6 * (fit + CALLS)
                all_pairs, noisy = one * n_subjects, 1 + halves
                models = one * n_layers * (2 + plan.trials * noisy)
                largest = {BETWEEN: one * noisy * draws, MODELS: one * noisy}
                prepared = 0
            else:  # targets are prepared once for all sources of a job
                prepare, compare = 2.0 * n * n * p + CALLS, n * n + CALLS / 10
                all_pairs, noisy = n_subjects * (prepare + n_subjects * compare), 1 + halves
                n_jobs = -(-n_models // SOURCES)
                own = n_models * (prepare + n_subjects * compare)
                models = noisy * (n_jobs * n_subjects * prepare + own) * draws
                largest = {BETWEEN: all_pairs * noisy * draws, MODELS: models / max(1, n_jobs)}
                # Both halves of every target, and of one source.
                prepared = 2 * 8 * n * n * (n_subjects + 1)
            total[BETWEEN] += all_pairs * noisy * draws
            total[MODELS] += models
            # For each quantity, an eighth, a quarter and a half of it, each with one half of the trials.
            each = 3 * all_pairs * options.growth_draws * (3 if halves else 1)
            known = _compared_as_for_growth(study, place.measure)
            grown = 0.0 if known or not plan.growth else all_pairs * noisy
            total[GROWING] += grown + len(plan.growth) * each
            largest[GROWING] = each if known else grown + len(plan.growth) * each
            longest = {name: max(longest[name], largest[name]) for name in longest}
            arrays = 8 * n * p * (n_subjects + SOURCES) * max(1, halves)
            peak = max(peak, arrays + prepared)
    return {name: StageWork(total[name], longest[name], int(peak)) for name in total}
