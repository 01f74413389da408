"""An analysis as small as it can be, to show that every surface works without knowing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import polars as pl

from lpact.analyses.base import Analysis, Audit, Frames, Keys, Material, Rows, Stage
from lpact.analyses.explanation import (
    ClaimTable,
    Conclusion,
    Criterion,
    Explanation,
    Gate,
    MethodsPart,
)
from lpact.config import StudyConfig
from lpact.errors import InputError
from lpact.inputs.workspace import Workspace
from lpact.registry import ANALYSES
from lpact.store import Manifest, frame
from lpact.tables import Column, Table

CLAIMS = Table(
    "toy/name_lengths",
    "One row per dataset.",
    ("dataset",),
    (
        Column("dataset", "str", "Dataset."),
        Column("n_letters", "float", "Letters of its name."),
        Column("long", "bool", "Whether the name is long."),
        Column("label", "str", "Label."),
        Column("reason", "str", "What decided the label."),
    ),
)


class Toy(Analysis):
    """Is the name of a dataset long?"""

    name = "toy"
    summary = "Toy: is the name of a dataset long?"
    tables = (CLAIMS,)
    claims = ClaimTable(
        CLAIMS,
        ("dataset",),
        {"long_name": "The name is long.", "short_name": "The name is short."},
        gates={"L": "long"},
        gate_meanings={"L": "The name has more than 4 letters."},
        score="n_letters",
    )

    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        del problems, advance
        names = tuple(own.name for own in workspace.config.datasets)
        return Audit(claims=names, rows={CLAIMS.name: len(names)})

    def stages(self, study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
        del study, audit, keys
        return []

    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        del tables
        rows = [
            {
                "dataset": own.name,
                "n_letters": float(len(own.name)),
                "long": len(own.name) > 4,
                "label": "long_name" if len(own.name) > 4 else "short_name",
                "reason": f"The name has {len(own.name)} letters.",
            }
            for own in study.datasets
        ]
        return {CLAIMS.name: frame(CLAIMS, rows)}

    def conclude(self, material: Material) -> Conclusion:
        n = int(material.table(CLAIMS.name)["long"].sum())
        return Conclusion(self.name, f"{n} names are long.", ("Letters were counted.",))

    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
        row = rows(CLAIMS.name, **claim).row(0, named=True)
        letters = Criterion("letters", row["reason"], row["n_letters"], ">", 4.0, row["long"], n=1)
        return Explanation(
            self.name,
            claim,
            profile,
            row["label"],
            self.claims.labels[row["label"]],
            row["reason"],
            gates=(Gate("long", "L", self.claims.gate_meanings["L"], row["long"], (letters,)),),
            rows=((CLAIMS.name, claim),),
        )

    def methods(self, manifest: Manifest, material: Material) -> list[MethodsPart]:
        return [MethodsPart("Counting", ("Letters of names were counted.",))]


RECORDINGS = Table(
    "recordings/labels",
    "One row per recording.",
    ("dataset", "run"),
    (
        Column("dataset", "str", "Dataset."),
        Column("run", "str", "Run of the recording; empty where a dataset has one only."),
        Column("label", "str", "Label."),
        Column("reason", "str", "What decided the label."),
    ),
)


class Recordings(Toy):
    """Claims keyed by recording, without score, gates or shared parts."""

    name = "recordings"
    summary = "Recordings: does a recording have a name?"
    tables = (RECORDINGS,)
    claims = ClaimTable(RECORDINGS, RECORDINGS.key, {"named": "It has a name.", "unnamed": "It has no name."})

    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        del workspace, problems, advance
        return Audit(claims=("sim/", "sim/2"), rows={RECORDINGS.name: 2})

    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        del study, tables
        labels = {"": "unnamed", "2": "named"}
        rows = [
            {"dataset": "sim", "run": run, "label": label, "reason": f"Run {run!r}."} for run, label in labels.items()
        ]
        return {RECORDINGS.name: frame(RECORDINGS, rows)}

    def conclude(self, material: Material) -> Conclusion:
        return Conclusion(self.name, f"{material.table(RECORDINGS.name).height} recordings.")

    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
        row = rows(RECORDINGS.name, **claim).row(0, named=True)
        meaning = self.claims.labels[row["label"]]
        return Explanation(
            self.name,
            claim,
            profile,
            row["label"],
            meaning,
            row["reason"],
            rows=((RECORDINGS.name, claim),),
        )


@contextmanager
def toy_registered(analysis: type[Analysis] = Toy) -> Iterator[None]:
    """The toy analysis is there within the block, and gone after it."""
    ANALYSES.register(analysis)
    try:
        yield
    finally:
        del ANALYSES._entries[analysis.name]
