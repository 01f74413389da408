"""Source audit: what evidence each dataset can give, before any evidence is computed.

    chain_complete(d) = B · W · F · S · R · K

(brain series, word grid, features, severe controls, reliability, coverage). A role is configured; the audit can only
lower it, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig, RelationalConfig
from lpact.analyses.lpact.levels.pairing import MISSING_PARTNER, MODES, comparable, paired
from lpact.analyses.lpact.levels.populations import n_populations
from lpact.analyses.lpact.levels.readouts import LayerInputs, build_controls
from lpact.analyses.lpact.levels.stripping_methods import StripInputs, build_strippings
from lpact.analyses.lpact.plan.media import MediaAudit, Row, release_rows
from lpact.analyses.lpact.tables import audit as tables
from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import DATASETS, Dataset, Finding, RecordingId, role_of
from lpact.errors import FeatureError, InputError, did_you_mean
from lpact.features.mechanisms import Missing, mechanism_correlations
from lpact.features.models import FULL, STATIC, ModelSource
from lpact.inputs.prepare import Inspection, ModelOnGrid, Prepared
from lpact.inputs.workspace import Workspace
from lpact.store import frame
from lpact.tables import Table


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
    region_sizes: tuple[int, ...] = ()
    """Units of every region, where units are means over regions."""

    def n_compared(self, relational: RelationalConfig) -> int:
        """Units that level 2 can compare; where regions are populations, those with enough units."""
        if relational.region_as == "mean" or not self.region_sizes:
            return len(self.unit_ids)
        return n_populations(relational, self.region_sizes)

    @classmethod
    def of(cls, prepared: Prepared) -> RecordingSummary:
        """Sizes of a prepared recording."""
        grid, mechanisms = prepared.grid, (*prepared.mechanisms, *prepared.pending)
        sizes = (prepared.n_events, len(grid.lags_ms), prepared.folds.n_blocks)
        units = (grid.units.comparable, prepared.region_sizes)
        return cls(prepared.id, grid.units.ids, *sizes, mechanisms, *units)


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


def audit_datasets(
    config: LPactConfig,
    workspace: Workspace,
    problems: list[InputError],
    advance: Callable[[], None],
) -> dict[str, DatasetAudit]:
    """Audit every dataset of a study; what must be fixed is appended to ``problems``."""
    audits = {}
    for entry in config.datasets:
        inspections = _inspections(workspace, entry.name, problems, advance)
        dataset = workspace.dataset(entry.name)
        audits[entry.name] = audit_dataset(config, entry, dataset, inspections, workspace.sources, problems)
    if not problems:
        problems += _unknown_models(config, list(audits.values()))
    return audits


def _inspections(
    workspace: Workspace, name: str, problems: list[InputError], advance: Callable[[], None]
) -> Iterator[Inspection]:
    """Inspect one recording after another; a problem of one does not hide those of the next."""
    for recording in workspace.dataset(name).recording_ids():
        with _noted(problems):
            yield workspace.inspection(name, recording)
        advance()


@contextmanager
def _noted(problems: list[InputError]) -> Iterator[None]:
    """Note a problem once: recordings that share a stimulus share its problems."""
    try:
        yield
    except InputError as error:
        if str(error) not in map(str, problems):
            problems.append(error)


def _unknown_models(config: LPactConfig, audits: list[DatasetAudit]) -> list[InputError]:
    """Models without features in any dataset that could have them: most likely a misspelt name."""
    if not any(a.recordings for a in audits):
        return []
    known = {name for a in audits for name in a.models_offered}
    return [
        FeatureError(
            f"no dataset has features of the model '{model.name}'",
            where=f"[[models]] '{model.name}'",
            got="none",
            expected="features for at least one usable recording",
            remedy=f"remove the model, or add its features; {did_you_mean(model.name, known)}",
        )
        for model in config.models
        if not any(model.name in a.models() for a in audits)
    ]


def audit_dataset(
    config: LPactConfig,
    entry: DatasetConfig,
    dataset: Dataset,
    inspections: Iterable[Inspection],
    sources: Mapping[str, ModelSource],
    problems: list[InputError],
) -> DatasetAudit:
    """Audit one dataset, one recording at a time: no data are kept.

    Features that do not fit and missing layers are appended to ``problems``, once each.
    """
    name = entry.name
    audit = DatasetAudit(entry, MediaAudit(name))
    missing: list[Mapping[tuple[str, str], Missing]] = []
    done: set[tuple[str, ...]] = set()  # Recordings share stimuli.
    everywhere = RecordingId("(all)", "(all)", "(all)", "")
    audit.add(tables.FINDINGS, [finding_row(name, everywhere, f) for f in dataset.findings])
    for inspection in inspections:
        audit.add(tables.UNIT_INVENTORY, [inventory_row(name, inspection)])
        notes = [finding_row(name, inspection.id, f) for f in inspection.findings]
        audit.add(tables.FINDINGS, notes)
        prepared, stimulus_id = inspection.prepared, inspection.id.stimulus
        if prepared is None:
            audit.media.add(inspection.id, partial(dataset.stimulus, stimulus_id))
            continue
        stimulus = prepared.stimulus
        audit.media.add(inspection.id, partial(lambda own: own, stimulus))
        audit.recordings.append(RecordingSummary.of(prepared))
        if stimulus.features is not None:
            audit.models_offered |= {key.model for key in stimulus.features.keys()}  # noqa: SIM118
        with _noted(problems):
            audit.contexts += context_offers(config, prepared, sources, done)
        missing.append(inspection.missing)
        if ("rows", stimulus.id) not in done:
            done.add(("rows", stimulus.id))
            audit.add(tables.MECHANISM_CORRELATIONS, correlation_rows(name, prepared))
            found = (f for m in config.models for f in sources[m.name].findings(m.name, stimulus))
            audit.add(tables.FINDINGS, [finding_row(name, prepared.id, f) for f in found])
    audit.add(tables.FINDINGS, missing_unit_rows(name, audit.recordings))
    audit.add(tables.CONTROL_AVAILABILITY, control_rows(config, name, audit.contexts))
    audit.add(tables.INGREDIENT_AVAILABILITY, ingredient_rows(config, name, missing))
    modes = mode_rows(name, audit.recordings, config.relational)
    audit.add(tables.RELIABILITY_MODES, modes)
    for other in dataset.stimulus_ids():  # A dataset of text alone has no others.
        with _noted(problems):
            audit.media.add_stimulus(other, partial(dataset.stimulus, other))
    layout = DATASETS.get(entry.reader).layout
    audit.add(tables.RELEASE_AUDIT, release_rows(name, layout, dataset.source_files()))
    audit.add(tables.STIMULUS_MEDIA, audit.media.mapping())
    audit.add(tables.MEDIA_SUMMARY, audit.media.summary())
    audit.add(tables.AUDIO_SOURCES, audit.media.sources())
    audit.add(tables.MODEL_INVENTORY, model_rows(config, name, audit.contexts))
    n_inspected = len(audit.rows(tables.UNIT_INVENTORY))
    chain = feasibility(config, audit, dataset, n_inspected - len(audit.recordings))
    audit.confirmatory = bool(chain["confirmatory"])
    audit.add(tables.EVIDENCE_FEASIBILITY, [chain])
    return audit


def frames(audits: Sequence[DatasetAudit]) -> dict[str, pl.DataFrame]:
    """The audit's tables over all datasets."""
    sounding = [a.config.name for a in audits if a.media.has_true_envelope]
    for audit in audits:
        elsewhere = [name for name in sounding if name != audit.config.name]
        audit.tables[tables.ACOUSTIC_PROXIES.name] = audit.media.proxies(elsewhere)
    return {table.name: frame(table, [row for audit in audits for row in audit.rows(table)]) for table in tables.TABLES}


def context_offers(
    config: LPactConfig,
    prepared: Prepared,
    sources: Mapping[str, ModelSource],
    done: set[tuple[str, ...]],
) -> list[ContextOffer]:
    """Contexts of one recording; ``done`` collects models and stimuli whose feature sets have been checked."""
    offers = []
    for entry in config.models:
        model = ModelOnGrid(entry.name, sources[entry.name], prepared)
        if not model.layers:
            continue
        ready = model.ready(wanted_contexts(config))
        place = ("features", entry.name, prepared.stimulus.id)
        if ready and place not in done:
            model.check()
            done.add(place)
        offered = (model.layers, tuple(sorted({context for _, context in model.offered})))
        for layer in entry.layers:
            model.require_layer(layer)
            inputs = LayerInputs(config, prepared, model, layer)
            possible = (_available if ready else _expected)(inputs)
            width = model.load(layer).shape[1] if ready else model.width(layer)
            key = (prepared.id, entry.name, layer)
            offers.append(ContextOffer(*key, width, *possible, *offered))
    return offers


Possible = tuple[dict[str, int], dict[str, tuple[Reason, str]], tuple[str, ...]]
"""Draws of the available controls, reasons for the others, and the available stripping methods."""


def _available(layer: LayerInputs) -> Possible:
    """What existing features allow."""
    inputs, config = layer.for_controls, layer.config
    draws, unavailable = {}, {}
    for name, control in build_controls(config).items():
        if (missing := control.unavailable(inputs)) is not None:
            unavailable[name] = (missing.reason, missing.detail)
        else:
            draws[name] = control.n_draws(inputs, config.controls.draws)
    strip = StripInputs(inputs.features, layer.layer, inputs.offered, layer.model.load)
    methods = build_strippings(config)
    return draws, unavailable, tuple(n for n, m in methods.items() if not m.unavailable(strip))


def _expected(layer: LayerInputs) -> Possible:
    """What features that are still to be extracted should allow; the audit is repeated when they exist."""
    config, offered = layer.config, layer.model.offered
    draws, unavailable = {}, {}
    for name, control in build_controls(config).items():
        contexts = control.contexts()
        lacking = [c for c in contexts if not any((k, c) in offered for k in (layer.layer, 0))]
        if lacking:
            detail = f"no features in context '{lacking[0]}'"
            unavailable[name] = (Reason.CONTEXT_NOT_OFFERED, detail)
        else:
            on_offer = [offered.get((layer.layer, c), 1) for c in contexts]
            draws[name] = min([config.controls.draws, *on_offer]) if control.random else 1
    possible = (
        name
        for name, method in build_strippings(config).items()
        if all((layer.layer, c) in offered for c in method.contexts())
    )
    return draws, unavailable, tuple(possible)


def wanted_contexts(config: LPactConfig) -> tuple[str, ...]:
    """Contexts of features that the study's controls, stripping methods and mechanisms load."""
    controls = (control.contexts() for control in build_controls(config).values())
    methods = (method.contexts() for method in build_strippings(config).values())
    return tuple(sorted({FULL, STATIC}.union(*controls, *methods)))


def feasibility(config: LPactConfig, audit: DatasetAudit, dataset: Dataset, n_excluded: int) -> Row:
    """Close the evidence chain, and lower the role where a link is missing."""
    minimum = config.audit
    recordings, contexts = audit.recordings, audit.contexts
    rows = audit.rows(tables.CONTROL_AVAILABILITY)
    lacking = {row["control"] for row in rows if not row["available"]}
    possible = {row["control"] for row in rows} - lacking
    missing_controls = [name for name in minimum.required_controls if name not in possible]
    largest = max((len(r.unit_ids) for r in recordings), default=0)
    n_covered = sum(len(r.unit_ids) >= minimum.min_brain_units for r in recordings)
    required = "required severe controls are not possible or not included"
    if missing_controls:
        required += f" ({', '.join(missing_controls)})"
    covering = f"{n_covered} subject-runs with enough units, {minimum.min_subject_runs} needed"
    has_words = any(row["n_words"] != 0 for row in audit.rows(tables.UNIT_INVENTORY))
    reliable = any(row["possible"] for row in audit.rows(tables.RELIABILITY_MODES))
    enough = n_covered >= minimum.min_subject_runs
    links = {
        "has_brain": (bool(recordings), "no usable neural data"),
        "has_words": (has_words, "no word grid"),
        "has_features": (bool(contexts), "no model features"),
        "has_controls": (bool(contexts) and not missing_controls, required),
        "has_reliability": (reliable, "no reliability mode is possible"),
        "has_coverage": (enough, f"too little coverage ({covering})"),
    }
    complete = all(present for present, _ in links.values())
    configured = role_of(audit.config)
    role = configured if complete or configured != "primary" else "diagnostic"
    reason = Reason.OK if complete else Reason.CHAIN_INCOMPLETE
    if configured != "primary":
        reason = Reason.ROLE_NOT_CONFIRMATORY
    why = [] if configured == "primary" else [f"configured as {configured}"]
    why += [text for present, text in links.values() if not present]
    with_features = {c.recording for c in contexts}
    featured = [r for r in recordings if r.id in with_features]
    mechanisms = [r for r in audit.rows(tables.INGREDIENT_AVAILABILITY) if r["kind"] == "mechanism"]
    return {
        "dataset": audit.config.name,
        "reader": audit.config.reader,
        "configured_role": configured,
        "role": role,
        "confirmatory": role == "primary",
        "role_reason": reason,
        "role_detail": "; ".join(why),
        "n_subjects": len({r.id.subject for r in recordings}),
        "n_runs": len({(r.id.session, r.id.run) for r in recordings}),
        "n_stimuli": len({r.id.stimulus for r in recordings}),
        "n_subject_runs": len(recordings),
        "n_subject_runs_excluded": n_excluded,
        "n_brain_units": largest,
        "n_models": len(audit.models()),
        "n_mechanisms": sum(row["available"] is True for row in mechanisms),
        **{flag: present for flag, (present, _) in links.items()},
        "chain_complete": complete,
        "n_relational_runs": sum(r.n_compared(config.relational) >= config.relational.min_units for r in featured),
        "n_stripping_runs": sum(len(r.mechanisms) >= 2 for r in featured),
        "source": dataset.info.source,
        "version": dataset.info.version,
        "licence": dataset.info.licence,
    }


COLLINEAR = 0.95
"""Correlation of two mechanisms above which stripping cannot tell them apart."""


def inventory_row(dataset: str, inspection: Inspection) -> Row:
    """One recording: sizes, and whether it is used."""
    prepared = inspection.prepared
    return {
        **inspection.id.key(dataset),
        "stimulus": inspection.id.stimulus,
        "used": prepared is not None,
        "reason": inspection.reason,
        "n_samples": inspection.n_samples,
        "sampling_rate_hz": inspection.sampling_rate_hz,
        "n_units": inspection.n_units,
        "n_units_used": 0 if prepared is None else len(prepared.grid.units.ids),
        "unit_order_hash": "none" if prepared is None else prepared.grid.units.order_hash(),
        "n_words": inspection.n_words,
        "n_events": inspection.n_events,
        "n_events_excluded": inspection.n_events_excluded,
        "n_stories": 0 if prepared is None else len(np.unique(prepared.grid.story)),
        "n_sentences": 0 if prepared is None else len(np.unique(prepared.grid.sentence)),
    }


def finding_row(dataset: str, recording: RecordingId, finding: Finding) -> Row:
    """One finding about a recording."""
    return {**recording.key(dataset), **asdict(finding)}


def missing_unit_rows(dataset: str, recordings: Sequence[RecordingSummary]) -> list[Row]:
    """Units that a subject has in one run and lacks in another."""
    rows = []
    for own in recordings:
        siblings = [r for r in recordings if r.id.subject == own.id.subject]
        seen = {unit: r.id for r in siblings for unit in r.unit_ids if unit not in own.unit_ids}
        for unit, where in seen.items():
            finding = Finding(
                f"unit '{unit}'",
                Reason.UNIT_MISSING_IN_RUN,
                "note",
                str(own.id),
                f"absent or excluded here, present in {where}",
                "the same units in every run of a subject",
                "runs are compared over the units they share; add the unit, or drop it everywhere",
            )
            rows.append(finding_row(dataset, own.id, finding))
    return rows


def control_rows(config: LPactConfig, dataset: str, contexts: Sequence[ContextOffer]) -> list[Row]:
    """One row per model, layer and control: available where every recording can have it."""
    rows: list[Row] = []
    for model, layer in dict.fromkeys((c.model, c.layer) for c in contexts):
        own = [c for c in contexts if (c.model, c.layer) == (model, layer)]
        for name, control in build_controls(config).items():
            failing = [c for c in own if name in c.unavailable]
            reason, detail = failing[0].unavailable[name] if failing else (Reason.OK, "")
            if failing and len(failing) < len(own):
                detail = f"in {len(failing)} of {len(own)} recordings: {detail}"
            rows.append(
                {
                    "dataset": dataset,
                    "model": model,
                    "layer": layer,
                    "control": name,
                    "available": not failing,
                    "reason": reason,
                    "detail": detail,
                    "draws": max((c.draws.get(name, 0) for c in own), default=0),
                    "counted": control.counted,
                }
            )
    return rows


def ingredient_rows(
    config: LPactConfig, dataset: str, missing: Sequence[Mapping[tuple[str, str], Missing]]
) -> list[Row]:
    """One row per nuisance feature and mechanism; ``missing`` has one entry per usable recording."""
    wanted = [("nuisance", n) for n in config.nuisance.include]
    wanted += [("mechanism", n) for n in config.mechanisms.include]
    rows: list[Row] = []
    for kind, name in wanted:
        lacking = [m[kind, name] for m in missing if (kind, name) in m]
        reason = Reason.OK if missing else Reason.DATASET_HAS_NO_RECORDING
        rows.append(
            {
                "dataset": dataset,
                "kind": kind,
                "name": name,
                "available": bool(missing) and not lacking,
                "reason": lacking[0].reason if lacking else reason,
                "detail": lacking[0].detail if lacking else "",
            }
        )
    return rows


def mode_rows(dataset: str, recordings: Sequence[RecordingSummary], relational: RelationalConfig) -> list[Row]:
    """Every reliability mode: how many recordings can be paired, or why none can."""
    rows: list[Row] = []
    min_units = relational.min_units
    large = [r for r in recordings if r.n_compared(relational) >= min_units]
    for mode in MODES:
        same = [(a, b) for a, b in product(large, repeat=2) if paired(mode, a.id, b.id) and comparable(a, b)]
        n = len({a.id for a, b in same if len(set(a.unit_ids) & set(b.unit_ids)) >= min_units})
        reason = Reason.OK
        if not any(paired(mode, a.id, b.id) for a, b in product(recordings, repeat=2)):
            reason = MISSING_PARTNER[mode]
        elif not large:
            reason = Reason.TOO_FEW_UNITS
        elif not same:
            reason = Reason.UNITS_NOT_COMPARABLE
        elif not n:
            reason = Reason.TOO_FEW_SHARED_UNITS
        key = {"dataset": dataset, "mode": mode}
        rows.append({**key, "possible": bool(n), "n_recordings": n, "reason": reason})
    return rows


def correlation_rows(dataset: str, prepared: Prepared) -> list[Row]:
    """Pairwise correlations of the mechanisms over events."""
    if len(prepared.mechanisms) < 2:
        return []
    scalars = np.column_stack(list(prepared.mechanisms.values()))
    return [
        {
            "dataset": dataset,
            "stimulus": prepared.stimulus.id,
            "mechanism_a": a,
            "mechanism_b": b,
            "pearson": r,
            "reason": Reason.COLLINEAR_MECHANISMS if abs(r) > COLLINEAR else Reason.OK,
        }
        for a, b, r in mechanism_correlations(scalars, tuple(prepared.mechanisms))
    ]


def model_rows(config: LPactConfig, dataset: str, contexts: Sequence[ContextOffer]) -> list[Row]:
    """Every model of the study: what it offers for this dataset."""
    rows: list[Row] = []
    for model in config.models:
        own = [c for c in contexts if c.model == model.name]
        width = {c.layer: c.n_features for c in own}
        rows.append(
            {
                "model": model.name,
                "dataset": dataset,
                "source": model.source,
                "layers_offered": list(own[0].layers_offered) if own else [],
                "layers_claimed": list(model.layers),
                "contexts_offered": list(own[0].contexts_offered) if own else [],
                "n_features": [width.get(layer, 0) for layer in model.layers],
                "included": bool(own),
                "reason": Reason.OK if own else Reason.MODEL_OFFERS_NOTHING,
            }
        )
    return rows
