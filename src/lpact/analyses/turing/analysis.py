"""The Turing test as an analysis of the engine. Numerics are imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from lpact.analyses.base import Analysis, Audit, Frames, Keys, Material, Rows, Stage, StageWork
from lpact.analyses.explanation import Block, ClaimTable, Conclusion, Explanation, MethodsPart
from lpact.analyses.turing import tables as own
from lpact.analyses.turing.config import GATES, LABELS, TuringSection, options_of
from lpact.config import StudyConfig
from lpact.errors import ConfigError, InputError
from lpact.inputs.workspace import Workspace
from lpact.registry import Registry
from lpact.store import Manifest
from lpact.validation import Section

if TYPE_CHECKING:
    from lpact.analyses.turing.claims import Verdicts


class Turing(Analysis):
    """Is the model as close to a brain as brains are to each other?"""

    name = "turing"
    summary = "is the model as close to a brain as brains are to each other?"
    Options = TuringSection
    tables = own.TABLES
    claims = ClaimTable(
        table=own.CLAIMS,
        key=("dataset", "region", "time", "measure", "model"),
        labels=LABELS,
        gates={
            "A": "agrees",
            "T": "could_reject",
            "C": "comparable",
            "N": "not_rejected",
            "E": "equivalent",
        },
        gate_meanings=GATES,
        score="score",
        details=("between", "fraction_of_between", "position", "p_value"),
    )
    keeps_missing = True
    registered: ClassVar[Mapping[str, tuple[str, ...]]] = {
        table.name: table.column_names for table in (own.SUBJECTS, own.REGIONS, own.SPLITS, own.UNAVAILABLE)
    }  # fmt: skip
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "verdict": ("brains_and_models",),
        "why": ("subject_dots", "time_courses"),
        "how sure": ("gaps", "growth"),
    }
    kinds: ClassVar[Mapping[str, tuple[str, str]]] = {"measures": ("lpact.measures:MEASURES", "measures")}
    size_options = ("turing.n_halves", "turing.growth_draws", "turing.measures")
    task_modules = ("lpact.analyses.turing.jobs",)
    starter: ClassVar[Mapping[str, Any]] = {"lags_ms": (100.0,), "n_halves": 4, "growth_draws": 2}
    starter_study: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {
        "datasets": (
            {
                "name": "brains",
                "reader": "simulated_brains",
                "role": "primary",
                "options": {"n_subjects": 4, "n_stimuli": 120, "n_units": 24, "n_latents": 12, "n_seen": 10},
            },
        ),
        "models": ({"name": "sixth_brain", "layers": (1,)}, {"name": "half_brain", "layers": (1,)}),
    }  # fmt: skip

    def plugins(self, study: StudyConfig) -> Iterable[tuple[Registry[Any], str]]:
        """The measures."""
        from lpact.measures import MEASURES

        return ((MEASURES, name) for name in options_of(study).measures)

    def resolve(self, study: StudyConfig) -> Section:
        """The options of all measures spelt out; raises `ConfigError` for those that do not exist."""
        from lpact.measures import MEASURES
        from lpact.run.audit import spell_out

        options = options_of(study)
        resolved = spell_out(options, MEASURES, options.measures, where="turing.measures")
        for name in options.measures:
            measure = MEASURES.get(name)
            if options.source == "pooled" and measure.behavioural:
                raise ConfigError(
                    f"answers of several subjects cannot be pooled for the measure '{name}'",
                    where="option 'turing.source'",
                    got="pooled",
                    expected="pairs",
                    remedy='set turing.source = "pairs", or leave the measure out',
                )
            if options.source_units and measure.behavioural:
                raise ConfigError(
                    f"answers cannot be subsampled for the measure '{name}', which compares all alternatives",
                    where="option 'turing.source_units'",
                    got=options.source_units,
                    expected="0",
                    remedy="set turing.source_units = 0, or leave the measure out",
                )
            if options.test == "exact" and not measure.symmetric:
                raise ConfigError(
                    f"the exact test needs a symmetric measure, which '{name}' is not",
                    where="option 'turing.test'",
                    got="exact",
                    expected="auto or approximate",
                    remedy='set turing.test = "auto", or leave the measure out',
                )
        return resolved

    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        """Find shared stimuli, regions and folds, and say which comparisons are impossible."""
        from lpact.analyses.turing.plan import audit_study

        return audit_study(workspace, problems, advance)

    def stages(self, study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
        """Brains against brains, models against brains, and growth."""
        from lpact.analyses.turing.plan import stages

        return stages(study, audit, keys)

    def work(self, study: StudyConfig, audit: Audit) -> Mapping[str, StageWork]:
        """Work of all stages, from sizes alone."""
        from lpact.analyses.turing.plan import work

        return work(study, audit)

    def derive(
        self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]
    ) -> Mapping[str, Callable[[], pl.DataFrame]]:
        """Agreement at the chosen layers, scores, growth and instances."""
        from lpact.analyses.turing import summaries

        options = options_of(study)

        @cache
        def models() -> pl.DataFrame:
            return summaries.model_pairs(tables[own.PAIRS.name], options)

        return {
            own.MODEL_PAIRS.name: models,
            own.SCORES.name: lambda: summaries.scores(tables[own.PAIRS.name], models()),
            own.GROWTH_FITS.name: lambda: summaries.growth_fits(tables[own.GROWTH.name]),
            own.INSTANCES.name: lambda: summaries.instances(tables[own.PAIRS.name], models(), options, study.seed),
        }

    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        """One verdict per dataset, region, time point, measure and model."""
        from lpact.analyses.turing import summaries

        return {own.CLAIMS.name: summaries.claims(tables, options_of(study))}

    def conclude(self, material: Material) -> Conclusion:
        """One sentence per model."""
        from lpact.analyses.turing.explain import conclusion

        return conclusion(material)

    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
        """Scores, tests and gates of one claim."""
        from lpact.analyses.turing.explain import explain_claim

        return explain_claim(config, rows, claim)

    def verdicts(self, material: Material, profile: str) -> Verdicts:
        """What may be said of models that converge, or are above or below the brains."""
        from lpact.analyses.turing.claims import Verdicts

        return Verdicts.of_table(material.table(own.CLAIMS.name))

    def result_blocks(self, material: Material) -> list[Block]:
        """Verdicts with their numbers, the tests of the paper, and the limits of the method."""
        from lpact.analyses.turing.explain import result_blocks

        return result_blocks(material)

    def unavailable(self, material: Material) -> list[tuple[str, str, str]]:
        """Subjects, regions, models and measures that the sources do not offer."""
        return material.table(own.UNAVAILABLE.name).select("item", "dataset", "detail").rows()

    def figure(self, name: str, material: Material) -> Any:
        """One of the figures of ``figures``."""
        from lpact.analyses.turing.figures import FIGURES

        return FIGURES[name](material)

    def methods(self, manifest: Manifest, material: Material) -> list[MethodsPart]:
        """Measures, noise correction and tests."""
        from lpact.analyses.turing.explain import methods_parts

        return methods_parts(material.config, material.table(own.PAIRS.name))
