"""Alignment patterns as an analysis of the engine. Numerics are imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from lpact.analyses.base import Analysis, Audit, Frames, Keys, Material, Rows, Stage, StageWork
from lpact.analyses.explanation import Block, ClaimTable, Conclusion, Explanation, MethodsPart
from lpact.analyses.patterns import tables as own
from lpact.analyses.patterns.config import GATES, LABELS, OWN, PatternsSection, options_of
from lpact.config import StudyConfig
from lpact.errors import ConfigError, InputError
from lpact.inputs.workspace import Workspace
from lpact.registry import Registry
from lpact.store import Manifest
from lpact.validation import Section

if TYPE_CHECKING:
    from lpact.analyses.patterns.claims import Verdicts


class Patterns(Analysis):
    """Does a model relate to all regions as a region of the brain does?"""

    name = "patterns"
    summary = "does a model relate to all regions as a region of the brain does?"
    Options = PatternsSection
    tables = own.TABLES
    claims = ClaimTable(
        table=own.CLAIMS,
        key=("dataset", "measure", "region", "model"),
        labels=LABELS,
        gates={
            "V": "positive",
            "R": "reproduced",
            "D": "distinct",
            "N": "not_rejected",
            "E": "as_similar",
            "B": "equivalent",
        },
        gate_meanings=GATES,
        score="score",
        details=("rank", "similarity", "similarity_of_brains", "p_value"),
    )
    keeps_missing = True
    registered: ClassVar[Mapping[str, tuple[str, ...]]] = {
        table.name: table.column_names for table in (own.SUBJECTS, own.REGIONS, own.CONNECTIVITY, own.UNAVAILABLE)
    }
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "verdict": ("ranking",),
        "why": ("pattern_lines", "pattern_similarity", "equivalence"),
        "how sure": ("confusion", "structure"),
    }
    kinds: ClassVar[Mapping[str, tuple[str, str]]] = {"measures": ("lpact.measures:MEASURES", "measures")}
    size_options = ("patterns.measures", "patterns.models", "patterns.regions")
    task_modules = ("lpact.analyses.patterns.jobs",)
    starter: ClassVar[Mapping[str, Any]] = {"measures": ("rsa",), "connectivity": OWN}
    starter_study: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {
        "datasets": (
            {
                "name": "brains",
                "reader": "simulated_regions",
                "role": "primary",
                "options": {"n_regions": 5, "n_units": 20, "n_train": 100, "n_test": 50, "n_train_repetitions": 2,
                            "n_repetitions": 2},
            },
        ),
        "models": ({"name": "one_more_brain", "layers": (0, 2, 4)}, {"name": "all_latents", "layers": (0,)}),
    }  # fmt: skip

    def plugins(self, study: StudyConfig) -> Iterable[tuple[Registry[Any], str]]:
        """The measures."""
        from lpact.measures import MEASURES

        return ((MEASURES, name) for name in options_of(study).measures)

    def resolve(self, study: StudyConfig) -> Section:
        """The options of all measures spelt out; raises `ConfigError` for those that do not exist or do not suit."""
        from lpact.measures import MEASURES, LinearR2
        from lpact.run.audit import spell_out

        options = options_of(study)
        resolved = spell_out(options, MEASURES, options.measures, where="patterns.measures")
        for name in options.measures:
            measure = MEASURES.get(name)
            if measure.behavioural or (measure.scope == "unit" and not measure.needs_fit):
                raise ConfigError(
                    f"the measure '{name}' does not compare populations of units",
                    where="option 'patterns.measures'",
                    got=name,
                    expected="a measure of representations, such as rsa or cka_debiased, or a fitted one",
                    remedy="see `lpact list measures`",
                )
            if MEASURES.build(name, options.options.get(name)).needs_trials:
                raise ConfigError(
                    f"the measure '{name}' needs single trials, and patterns are of means over trials",
                    where=f"option 'patterns.options.{name}'",
                    got=str(options.options[name]),
                    remedy='use dissimilarity = "correlation" or "euclidean", and noise = "none"',
                )
            by_fit = options.layer_folds == 0 and issubclass(measure, LinearR2)
            if measure.needs_fit and options.layer_folds < 2 and not by_fit:
                raise ConfigError(
                    f"layers cannot be chosen with the measure '{name}' and these folds",
                    where="option 'patterns.layer_folds'",
                    got=options.layer_folds,
                    expected="at least 2 (or 0, for the leave-one-out score, with linear_r2)",
                    remedy="set patterns.layer_folds = 5",
                )
        return resolved

    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        """Find shared stimuli, usable units and regions, and say which comparisons are impossible."""
        from lpact.analyses.patterns.plan import audit_study

        return audit_study(workspace, problems, advance)

    def stages(self, study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
        """Brains against brains, and models against brains, without and with noise."""
        from lpact.analyses.patterns.plan import stages

        return stages(study, audit, keys)

    def work(self, study: StudyConfig, audit: Audit) -> Mapping[str, StageWork]:
        """Work of all stages, from sizes alone."""
        from lpact.analyses.patterns.plan import work

        return work(study, audit)

    def derive(
        self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]
    ) -> Mapping[str, Callable[[], pl.DataFrame]]:
        """Scores, ceilings, ranks, patterns and their similarities, and structure."""
        from lpact.analyses.patterns.summaries import derive

        return derive(study, tables)

    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        """One verdict per dataset, measure, region and model."""
        from lpact.analyses.patterns.verdicts import decide

        return decide(study, tables)

    def conclude(self, material: Material) -> Conclusion:
        """Which models reproduce the pattern of which regions."""
        from lpact.analyses.patterns.explain import conclusion

        return conclusion(material)

    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
        """Scores, patterns, tests and gates of one claim."""
        from lpact.analyses.patterns.explain import explain_claim

        return explain_claim(config, rows, claim)

    def verdicts(self, material: Material, profile: str) -> Verdicts:
        """What may be said of models whose patterns are, or are not, those of a region."""
        from lpact.analyses.patterns.claims import Verdicts

        return Verdicts.of_table(material.table(own.CLAIMS.name))

    def result_blocks(self, material: Material) -> list[Block]:
        """Rankings, patterns, structure, and warnings."""
        from lpact.analyses.patterns.explain import result_blocks

        return result_blocks(material)

    def unavailable(self, material: Material) -> list[tuple[str, str, str]]:
        """Subjects, regions, models and measures that the sources do not offer."""
        return material.table(own.UNAVAILABLE.name).select("item", "dataset", "detail").rows()

    def figure(self, name: str, material: Material) -> Any:
        """One of the figures of ``figures``."""
        from lpact.analyses.patterns.figures import FIGURES

        return FIGURES[name](material)

    def methods(self, manifest: Manifest, material: Material) -> list[MethodsPart]:
        """Populations, measures, ceilings, patterns and tests."""
        from lpact.analyses.patterns.explain import methods_parts

        return methods_parts(material.config)
