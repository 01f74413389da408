"""L-PACT as an analysis of the engine. Numerics are imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from lpact.analyses import COMMANDS
from lpact.analyses.base import Analysis, Audit, Frames, Keys, Material, Rows, Stage, StageWork
from lpact.analyses.explanation import Block, ClaimTable, Conclusion, DatasetReport, Explanation, MethodsPart
from lpact.analyses.lpact.config import LPactConfig, LPactSection
from lpact.analyses.lpact.tables import assay, audit, calibration, decisions, levels, robustness
from lpact.codes import FinalLabel, Gate
from lpact.config import StudyConfig
from lpact.errors import ConfigError, InputError
from lpact.inputs.check import DatasetCheck
from lpact.inputs.workspace import Workspace
from lpact.registry import Registry
from lpact.store import Manifest
from lpact.tables import CLAIM_KEY, Table

if TYPE_CHECKING:
    from lpact.analyses.lpact.claims import Verdicts

GATES = {
    "P": ("predictive", Gate.PREDICTIVE),
    "S": ("severe_control", Gate.SEVERE_CONTROL),
    "R": ("relational", Gate.RELATIONAL),
    "M": ("mechanism_specific", Gate.MECHANISM),
    "T": ("ceiling", Gate.CEILING),
    "Rep": ("replication", Gate.REPLICATION),
}
"""Column of the decision table and gate, by letter, in the order of the chain."""
LABELS = (
    FinalLabel.INTEGRATED_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.CONTROL_EXPLAINED,
    FinalLabel.NULL,
    FinalLabel.INSUFFICIENT_BRAIN_CEILING,
    FinalLabel.INSUFFICIENT_COVERAGE,
    FinalLabel.DIAGNOSTIC_ONLY,
)
"""Labels from the strongest to none, then those of claims that could not be judged."""


REGISTERED = {
    audit.EVIDENCE_FEASIBILITY: "reader configured_role role confirmatory role_reason role_detail",
    audit.UNIT_INVENTORY: "stimulus used reason n_units n_units_used unit_order_hash n_words "
    "n_events n_events_excluded",
    audit.CONTROL_AVAILABILITY: "available reason draws counted",
}
"""Columns of the audit that a preregistration compares, in addition to the keys."""


class LPact(Analysis):
    """Is a brain score more than a prediction score?"""

    name = "lpact"
    summary = "L-PACT: is a brain score more than a prediction score?"
    Options = LPactSection
    tables = (*audit.TABLES, *levels.TABLES, *decisions.TABLES, *assay.TABLES)
    other_tables = (*decisions.STATEMENT_TABLES, *robustness.TABLES, *calibration.TABLES)
    claims = ClaimTable(
        table=decisions.DECISIONS,
        key=CLAIM_KEY,
        labels={label.value: label.explanation for label in LABELS},
        profiles={"paper": "point rules of the paper", "calibrated": "every gate is a test"},
        gates={letter: column for letter, (column, _) in GATES.items()},
        gate_meanings={letter: gate.explanation for letter, (_, gate) in GATES.items()},
        score="raw_score",
        details=("first_failed_gate", "beaten_by"),
        evidence=decisions.GATE_EVIDENCE,
    )
    uses = frozenset({"readout", "nuisance", "controls", "mechanisms"})
    registered: ClassVar[Mapping[str, tuple[str, ...]]] = {
        table.name: (*table.key, *columns.split()) for table, columns in REGISTERED.items()
    }
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "verdict": ("framework", "decision_matrix"),
        "why": (
            "conventional",
            "layer_scores",
            "control_winners",
            "relational_profiles",
            "profile_heatmaps",
            "stripping_matrix",
            "dissociations",
            "ceilings",
            "unit_maps",
        ),
        "how sure": ("assay_sensitivity", "uncertainty", "sensitivity", "false_passes", "power"),
        "how it was made": ("source_audit",),
    }
    commands = COMMANDS["lpact"]
    kinds: ClassVar[Mapping[str, tuple[str, str]]] = {
        "measures": ("lpact.measures:MEASURES", "relational.alignments"),
        "profiles": (
            "lpact.analyses.lpact.levels.profiles.similarity:PROFILES",
            "relational.profiles",
        ),
        "strippings": (
            "lpact.analyses.lpact.levels.stripping_methods:STRIPPINGS",
            "stripping.methods",
        ),
    }
    size_options = ("controls.draws", "lpact.stripping.mismatch_draws")
    task_modules = (
        "lpact.analyses.lpact.jobs",
        "lpact.analyses.lpact.assays.jobs",
        "scipy.signal",
    )
    starter: ClassVar[Mapping[str, Any]] = {"stripping": {"mismatch_draws": 1}}

    def plugins(self, study: StudyConfig) -> Iterable[tuple[Registry[Any], str]]:
        """Alignment measures, profile similarities and stripping methods."""
        from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
        from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
        from lpact.measures import MEASURES

        config = LPactConfig.of(study)
        yield from ((MEASURES, name) for name in config.relational.alignments)
        yield from ((PROFILES, name) for name in config.relational.profiles)
        yield from ((STRIPPINGS, name) for name in config.stripping.methods)

    def resolve(self, study: StudyConfig) -> LPactSection:
        """All options of measures and stripping methods, with defaults; unknown names are errors."""
        from lpact.analyses.lpact.levels.populations import check_populations
        from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
        from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
        from lpact.controls.base import CONTROLS
        from lpact.measures import MEASURES
        from lpact.run.audit import spell_out

        config = LPactConfig.of(study)
        needed = {"models": study.models, "mechanisms.include": study.mechanisms.include}
        for option, listed in needed.items():
            if not listed:
                raise ConfigError(
                    f"L-PACT needs at least 1 in '{option}'",
                    where=f"option '{option}'",
                    got=0,
                    expected="1 or more",
                    remedy="add one, or leave the table [lpact] out and name another analysis",
                )
        for name in config.audit.required_controls:
            CONTROLS.get(name, where="lpact.audit.required_controls")
        relational, stripping = config.relational, config.stripping
        where, methods = "lpact.relational.alignments", "lpact.stripping.methods"
        for name in relational.profiles:
            PROFILES.get(name, where="lpact.relational.profiles")
        for name in relational.alignments:
            measure = MEASURES.get(name, where=where)
            if measure.behavioural or (measure.needs_fit and not measure.from_readout):
                raise ConfigError(
                    f"L-PACT cannot align units by the measure '{name}'",
                    where=where,
                    got="a measure of behaviour" if measure.behavioural else "a fitted measure",
                    expected="'linear', or a measure of representations that is not fitted",
                    remedy="choose another of `lpact list measures`; [turing] takes all of them",
                )
        if relational.region_as == "population":
            check_populations(config)
        options = {
            "relational": spell_out(relational, MEASURES, relational.alignments, where=where),
            "stripping": spell_out(stripping, STRIPPINGS, stripping.methods, where=methods),
        }
        own = study.analyses["lpact"]
        assert isinstance(own, LPactSection)
        return own.model_copy(update=options)

    def contexts(self, study: StudyConfig) -> set[str]:
        """Contexts that controls and stripping methods load."""
        from lpact.analyses.lpact.plan.audit import wanted_contexts

        return set(wanted_contexts(LPactConfig.of(study)))

    def run_tables(self, study: StudyConfig) -> tuple[Table, ...]:
        """All tables, without the positive controls' where these are switched off."""
        if LPactConfig.of(study).assay.enabled:
            return self.tables
        return tuple(table for table in self.tables if table not in assay.TABLES)

    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        """Audit every dataset: the evidence chain, roles, controls, reliability modes, media."""
        from lpact.analyses.lpact.plan.audit import audit_datasets, frames
        from lpact.analyses.lpact.plan.sizes import AT_MOST, count_study

        config = LPactConfig.of(workspace.config)
        datasets = audit_datasets(config, workspace, problems, advance)
        if problems:
            return Audit()
        made = Audit(tables=frames(list(datasets.values())), detail=datasets)
        rows, claims = count_study(config, made)
        return replace(made, claims=claims, rows=rows, at_most=AT_MOST)

    def stages(self, study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
        """Brain patterns, levels 1 to 3, ceilings, positive controls."""
        from lpact.analyses.lpact.plan.stages import stages

        return stages(LPactConfig.of(study), audit, keys)

    def work(self, study: StudyConfig, audit: Audit) -> Mapping[str, StageWork]:
        """Work of all stages, from sizes alone."""
        from lpact.analyses.lpact.plan.sizes import work

        return work(LPactConfig.of(study), audit)

    def list_bytes(self, study: StudyConfig, audit: Audit) -> int:
        """Bytes of patterns and other lists."""
        from lpact.analyses.lpact.plan.sizes import list_bytes

        return list_bytes(LPactConfig.of(study), audit)

    def derive(
        self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]
    ) -> Mapping[str, Callable[[], pl.DataFrame]]:
        """Corrected p-values, ceiling-normalised scores, and summaries of the positive controls."""
        from lpact.analyses.lpact.assays.jobs import derived_tables
        from lpact.analyses.lpact.levels import ceiling
        from lpact.analyses.lpact.levels.predictive import with_q_values

        config = LPactConfig.of(study)
        reliability = levels.BRAIN_CEILING.name
        made: dict[str, Callable[[], pl.DataFrame]] = {
            levels.CONTROL_NULLS.name: lambda: with_q_values(tables[levels.CONTROL_NULLS.name]),
            levels.NORMALIZED_SCORES.name: lambda: ceiling.normalize_relational(
                tables[reliability], tables[levels.PROFILE_DELTAS.name]
            ),
            levels.NORMALIZED_PREDICTIVE.name: lambda: ceiling.normalize_predictive(
                tables[reliability], tables[levels.CONTROL_DELTAS.name]
            ),
        }
        return made | (derived_tables(config, tables) if config.assay.enabled else {})

    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        """Gates, labels and the outcome under both profiles."""
        from lpact.analyses.lpact.gates import NEEDED, decide

        config = LPactConfig.of(study)
        needed = {table.name: tables[table.name] for table in NEEDED}
        decided = decide(needed, gates=config.gates, primary_metric=config.readout.primary_metric)
        return needed | decided

    def conclude(self, material: Material) -> Conclusion:
        """The verdict in one sentence, and why."""
        from lpact.analyses.lpact.conclusion import conclusion

        return conclusion(material)

    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
        """The chain of evidence of one claim."""
        from lpact.analyses.lpact.explain import explain_claim

        return explain_claim(LPactConfig.of(config), rows, claim, profile)

    def verdicts(self, material: Material, profile: str) -> Verdicts:
        """The statements that every gate supports."""
        from lpact.analyses.lpact.claims import Verdicts

        outcome = material.table(decisions.STUDY_OUTCOME.name)
        return Verdicts.of_tables(material.table(decisions.DECISIONS.name), outcome, profile)

    def outline(self, study: StudyConfig) -> list[Block]:
        """Levels, gates, rows and claims of a study without data."""
        from lpact.analyses.lpact.terminal_blocks import outline_blocks

        return outline_blocks(LPactConfig.of(study))

    def audit_blocks(self, audit: Audit, *, full: bool = False) -> list[Block]:
        """The evidence chain of every dataset, and what its sources lack."""
        from lpact.analyses.lpact.terminal_blocks import audit_blocks

        return audit_blocks(audit, full=full)

    def result_blocks(self, material: Material) -> list[Block]:
        """The positive controls."""
        from lpact.analyses.lpact.terminal_blocks import result_blocks

        return result_blocks(material)

    def unavailable(self, material: Material) -> list[tuple[str, str, str]]:
        """Roles, controls, nuisance features, mechanisms and reliability modes that the sources do not offer."""
        from lpact.analyses.lpact.terminal_blocks import unavailable

        return unavailable(material.tables)

    def figure(self, name: str, material: Material) -> Any:
        """One of the figures of ``figures``."""
        from lpact.analyses.lpact.figures import maker

        return maker(name)(material)

    def methods(self, manifest: Manifest, material: Material) -> list[MethodsPart]:
        """From recordings to the decision, part by part."""
        from lpact.analyses.lpact.methods import methods_parts

        del manifest
        return methods_parts(LPactConfig.of(material.config), material.tables)

    def extra_tables(self, material: Material, tell: Callable[[str], None]) -> Frames:
        """Error rates of the gates, and what the verdicts depend on."""
        from lpact.analyses.lpact.calibration.output import load_reference
        from lpact.analyses.lpact.robustness import tables_for_report

        reference = load_reference()
        return {
            calibration.RATES.name: reference.rates,
            calibration.TRUTH_RATES.name: reference.truth_rates,
            **tables_for_report(LPactConfig.of(material.config), material.tables, tell),
        }

    def check(self, study: StudyConfig, rows: Rows) -> Iterable[str]:
        """Whether all tables agree on the order of units and have no draw too many."""
        from lpact.analyses.lpact.consistency import draw_faults, unit_order_faults

        config = LPactConfig.of(study)
        draws = draw_faults(config.controls.draws, config.relational.permutations, rows)
        return chain(unit_order_faults(rows), draws)

    @classmethod
    def check_dataset(cls, check: DatasetCheck) -> DatasetReport:
        """Which evidence levels the dataset supports."""
        from lpact.analyses.lpact.plan.dataset_support import DatasetSupport

        return DatasetSupport(check).report()
