"""An analysis: is the pattern of mean responses over units the same in both halves of a recording?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from lpact.analyses import explanation as ex
from lpact.analyses.base import Analysis, Audit, Frames, Keys, Material, Rows, Scope, Stage
from lpact.config import Section, StudyConfig
from lpact.datasets.base import RecordingId
from lpact.errors import InputError
from lpact.inputs.workspace import Workspace
from lpact.store import Results, frame
from lpact.tables import SHARED

TABLES = SHARED.add()
HALVES = TABLES.table("""
    steady/halves
    One row per recording: agreement of both halves.
    key: recording
    correlation  float?  Correlation over units of both halves' means.
    reason
""")
CLAIMS = TABLES.table("""
    steady/claims
    One row per dataset: is it steady?
    key: dataset
    correlation  float?  Mean over recordings.
    agrees       bool    Whether the mean reaches the minimum.
    label        str     `steady`, `drifting` or `unknown`.
    reason       str     The verdict in one sentence.
""")
LABELS = {"steady": "The halves agree.", "drifting": "They differ.", "unknown": "Not computed."}


class SteadyOptions(Section):
    """The table ``[steady]``."""

    min_correlation: float = Field(0.5, description="Lowest mean correlation of a steady dataset.")


@dataclass(frozen=True)
class HalvesJob:
    """Agreement of both halves of one recording."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    dataset: str
    recording: RecordingId

    @property
    def name(self) -> str:
        return f"steady/{self.dataset}/{self.recording}"

    @property
    def scope(self) -> Scope:
        return Scope(self.dataset, without=("name", "steady", "controls", "mechanisms", "nuisance"))

    def run(self, workspace: Workspace, results: Results) -> Frames:
        prepared = workspace.prepared(self.dataset, self.recording)
        means = [half.mean(axis=0) for half in np.array_split(prepared.reference, 2)]
        flat = min(np.ptp(mean) for mean in means) == 0
        r = None if flat else float(np.corrcoef(*means)[0, 1])
        reason = "same_mean_in_all_units" if flat else "ok"
        return {HALVES.name: frame(HALVES, [{**prepared.key, "correlation": r, "reason": reason}])}


class Steady(Analysis):
    """Is the pattern of mean responses the same in both halves?"""

    name = "steady"
    summary = "is the pattern over units the same in both halves of a recording?"
    Options = SteadyOptions
    tables = (HALVES, CLAIMS)
    claims = ex.ClaimTable(
        CLAIMS, ("dataset",), LABELS, gates={"H": "agrees"},
        gate_meanings={"H": "Both halves agree."}, score="correlation",
    )  # fmt: skip
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {"why": ("halves",)}

    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        used = []
        for entry in workspace.config.datasets:
            for recording in workspace.dataset(entry.name).recording_ids():
                if workspace.inspection(entry.name, recording).prepared is not None:
                    used.append((entry.name, recording))
                advance()
        claims = tuple(dict.fromkeys(name for name, _ in used))
        rows = {HALVES.name: len(used), CLAIMS.name: len(claims)}
        return Audit(claims=claims, rows=rows, detail=used)

    def stages(self, study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
        return [Stage("halves", keys.tasks([HalvesJob(*found) for found in audit.detail]))]

    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        least = self.options.min_correlation
        means = tables[HALVES.name].group_by("dataset").agg(pl.col("correlation").mean())
        rows = []
        for dataset, r in means.sort("dataset").iter_rows():
            agrees = r is not None and r >= least
            label = "unknown" if r is None else "steady" if agrees else "drifting"
            said = "No correlation." if r is None else f"Mean r is {r:.2f}; {least:g} is needed."
            rows.append(zip(CLAIMS.column_names, (dataset, r, agrees, label, said), strict=True))
        return {CLAIMS.name: frame(CLAIMS, map(dict, rows))}

    def methods(self, manifest: Any, material: Material) -> list[ex.MethodsPart]:
        said = f"Halves that correlate with {self.options.min_correlation:g} or more agree."
        return [ex.MethodsPart("Mean responses in both halves", (said,))]

    def conclude(self, material: Material) -> ex.Conclusion:
        labels = material.table(CLAIMS.name)["label"]
        n = int((labels == "steady").sum())
        said = f"{n} of {len(labels)} datasets are steady."
        outcome = ex.Outcome("S" if n == len(labels) else "D", said)
        return ex.Conclusion(self.name, said, (), (outcome,))

    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> ex.Explanation:
        row = rows(CLAIMS.name, **claim).row(0, named=True)
        found = rows(HALVES.name, **claim)["correlation"]
        values, lost = tuple(found.drop_nulls()), found.null_count()
        shown = ex.Distribution("Recordings", "r", values, (), lost, "recording", gives="mean")
        reason, r, least = row["reason"], row["correlation"], self.options.min_correlation
        criterion = ex.Criterion(
            "mean_correlation", reason, r, ">=", least, row["agrees"], len(values), distributions=(shown,),
        )  # fmt: skip
        gate = ex.Gate("halves", "H", "Both halves agree.", row["agrees"], (criterion,))
        return ex.Explanation(
            self.name, claim, "", row["label"], LABELS[row["label"]], reason,
            gates=(gate,), rows=((HALVES.name, claim),),
        )  # fmt: skip

    def figure(self, name: str, material: Material) -> Any:
        from lpact.report import panels
        from lpact.report.figure import Figure, with_marks

        rows = with_marks(material.table(HALVES.name).drop_nulls(), "{correlation:2}")
        chart = panels.layer(rows, "point", x="correlation", y="dataset")
        return Figure(name, "Agreement of both halves", "One dot per recording.", "Dots.", chart)
