"""Deconstruct as an analysis of the engine. Numerics are imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import polars as pl

from lpact.analyses.base import Analysis, Audit, Frames, Keys, Material, Rows, Stage, StageWork
from lpact.analyses.deconstruct import tables as own
from lpact.analyses.deconstruct.config import LABELS, DeconstructSection, models_of, options_of
from lpact.analyses.explanation import Block, ClaimTable, Conclusion, Explanation, MethodsPart
from lpact.config import StudyConfig
from lpact.errors import ConfigError, InputError
from lpact.inputs.workspace import Workspace
from lpact.store import Manifest
from lpact.validation import Section


class Deconstruct(Analysis):
    """What simple features explain a model's score, and what is left for the model?"""

    name = "deconstruct"
    summary = "what simple features explain a brain score, and what is the model's own?"
    Options = DeconstructSection
    tables = own.TABLES
    claims = ClaimTable(
        table=own.CLAIMS,
        key=("dataset", "stimulus", "model"),
        labels=LABELS,
        gates={"P": "predicts", "O": "adds"},
        gate_meanings={
            "P": "The model predicts held-out responses better than their mean.",
            "O": "Adding the model to simple features predicts better than these alone.",
        },
        score="model_r2",
        details=("accounted_for", "own", "layer"),
    )
    registered: ClassVar[Mapping[str, tuple[str, ...]]] = {
        own.SPLITS.name: ("dataset", "subject", "session", "run", "split", "stimulus", "n_folds"),
        own.UNAVAILABLE.name: own.UNAVAILABLE.column_names,
    }
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "verdict": ("accounted_for", "ladder"),
        "why": (
            "layers_by_split",
            "oasm",
            "sub_models",
            "unit_histogram",
            "untrained",
            "networks",
            "deconstructed_units",
        ),
    }
    size_options = ("deconstruct.draws", "deconstruct.oasm_sigmas")
    task_modules = ("lpact.analyses.deconstruct.jobs",)
    starter: ClassVar[Mapping[str, Any]] = {
        "ladder": (("SP", "SL"), ("vectors",)),
        "category": "category",
        "oasm_sigmas": (0.6, 1.4, 2.2, 3.0),
        "draws": 10,
    }
    starter_study: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {
        "datasets": (
            {
                "name": "passages",
                "reader": "simulated_passages",
                "role": "primary",
                "grid": {"events": "sentences", "lags_ms": (0.0,), "pooling": "sum"},
                "options": {"n_subjects": 3, "n_units": 10, "n_categories": 12},
            },
        ),
        "models": (
            {"name": "planted", "layers": (0, 4)},
            {"name": "vectors", "layers": (0,)},
        ),
    }

    def resolve(self, study: StudyConfig) -> Section:
        """The options; raises `ConfigError` for feature spaces and models that do not exist."""
        from lpact.analyses.deconstruct.spaces import check_spaces

        options = options_of(study)
        check_spaces(options, [model.name for model in study.models])
        if not models_of(study):
            raise ConfigError(
                "there is no model to deconstruct",
                where="option 'models'",
                got="no model, or only models that are steps of the ladder",
                expected="a model whose score is deconstructed",
                remedy="add one, or name it in deconstruct.scored_models",
            )
        return options

    def contexts(self, study: StudyConfig) -> set[str]:
        """Features of untrained models, where they are compared."""
        return {"untrained"} if options_of(study).untrained else set()

    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        """Group recordings by their events, prove the splits, and say which comparisons are impossible."""
        from lpact.analyses.deconstruct.plan import audit_study

        return audit_study(workspace, problems, advance)

    def stages(self, study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
        """Layers and OASM widths, then subsets of feature spaces."""
        from lpact.analyses.deconstruct.plan import stages

        return stages(study, audit, keys)

    def work(self, study: StudyConfig, audit: Audit) -> Mapping[str, StageWork]:
        """Work of both stages, from sizes alone."""
        from lpact.analyses.deconstruct.plan import work

        return work(study, audit)

    def derive(
        self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]
    ) -> Mapping[str, Callable[[], pl.DataFrame]]:
        """Scores per network, shares, counts of units, and the contrast of the splits."""
        from lpact.analyses.deconstruct import summaries

        alpha = options_of(study).alpha
        return {
            own.LADDER.name: lambda: summaries.ladder(tables),
            own.ACCOUNTED.name: lambda: summaries.accounted_for(tables),
            own.COUNTS.name: lambda: summaries.counts(tables, alpha),
            own.SPLIT_CONTRAST.name: lambda: summaries.split_contrast(tables),
        }

    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        """One verdict per dataset, stimulus and model."""
        from lpact.analyses.deconstruct import summaries
        from lpact.analyses.deconstruct.explain import simple_words

        words = partial(simple_words, study)
        made = summaries.claims(tables, options_of(study), study.seed, words)
        return {own.CLAIMS.name: made}

    def conclude(self, material: Material) -> Conclusion:
        """The verdicts in one sentence."""
        from lpact.analyses.deconstruct.explain import conclusion

        return conclusion(material)

    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
        """Scores, shares and both gates of one claim."""
        from lpact.analyses.deconstruct.explain import explain_claim

        return explain_claim(config, rows, claim)

    def result_blocks(self, material: Material) -> list[Block]:
        """The ladder, and scores under shuffled splits."""
        from lpact.analyses.deconstruct.explain import result_blocks

        return result_blocks(material)

    def unavailable(self, material: Material) -> list[tuple[str, str, str]]:
        """Feature spaces and comparisons that the sources do not offer."""
        found = material.table(own.UNAVAILABLE.name)
        items = found.select("item", "dataset", "detail").unique(maintain_order=True)
        return items.rows()

    def figure(self, name: str, material: Material) -> Any:
        """One of the figures of ``figures``."""
        from lpact.analyses.deconstruct.figures import FIGURES

        return FIGURES[name](material)

    def methods(self, manifest: Manifest, material: Material) -> list[MethodsPart]:
        """Splits, feature spaces, banded ridge, choices of sub-models and tests."""
        from lpact.analyses.deconstruct.explain import methods_parts

        return methods_parts(material.config)
