"""What the tables of the positive controls say, one line each: what passes where, and what is not available."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.wording import number, words
from lpact.analyses.lpact.tables.assay import (
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    BRAIN_RELIABILITY,
    FULL_SUMMARY,
    IMPLANT,
    IMPLANTED,
    LOW_LEVEL_SUMMARY,
    PROFILE_ORDER,
    PROXY_SUMMARY,
    STANDALONE_SUMMARY,
)
from lpact.codes import Reason
from lpact.tables import Table

SIMULATED = "(simulated)"
"""Stands in a dataset's place for the implanted study."""

_STIMULUS_CONTROLS = {
    LOW_LEVEL_SUMMARY: "word onset and word rate",
    STANDALONE_SUMMARY: "acoustic envelope, from the first word to the last",
    FULL_SUMMARY: "acoustic envelope, whole recording",
    PROXY_SUMMARY: "proxies where the sound is missing",
}

_WHOLE = "acoustic envelope"
"""What the lines of a table with one row per dataset are about."""


@dataclass(frozen=True)
class Finding:
    """One line: whether a control passes (None: not available), and whether it should.

    ``number`` is what its detail rests on, in few letters: a count, or a median; empty where there is none.
    """

    control: str
    dataset: str
    what: str
    passes: bool | None
    detail: str
    reason: str = Reason.OK.value
    expected: bool = True
    number: str = ""

    @property
    def result(self) -> str:
        """The outcome in words."""
        if self.passes is None:
            return "not available"
        return "passes" if self.passes else "does not pass"


def findings(tables: Mapping[str, pl.DataFrame], gates: GatesConfig) -> list[Finding]:
    """Every finding of the tables that are there, control by control."""
    readers: tuple[tuple[Table, Callable[[pl.DataFrame, GatesConfig], list[Finding]]], ...] = (
        (IMPLANT, _implant),
        (BRAIN_RELIABILITY, _reliability),
        (BRAIN_AS_MODEL_SUMMARY, _brain_as_model),
        (BRAIN_ORACLE, _oracle),
        (PROFILE_ORDER, _order),
    )
    found = [
        finding
        for table, read in readers
        if table.name in tables
        for finding in read(tables[table.name], gates)
    ]
    for table, control in _STIMULUS_CONTROLS.items():
        if table.name in tables:
            found += _stimulus(control, table, tables[table.name])
    return found


def _implant(table: pl.DataFrame, gates: GatesConfig) -> list[Finding]:  # noqa: ARG001
    return [
        Finding(
            "implanted signal",
            SIMULATED,
            f"{row['arm']}, gate profile {row['gate_profile']}",
            _passes(row),
            row["interpretation"] if _passes(row) is not None else _explained(row["reason"]),
            row["reason"],
            expected=row["arm"] == IMPLANTED,
        )
        for row in table.filter(quantity="integrated").iter_rows(named=True)
    ]


def _passes(row: Mapping[str, Any]) -> bool | None:
    return bool(row["gate_pass"]) if row["reason"] == Reason.OK.value else None


def _reliability(table: pl.DataFrame, gates: GatesConfig) -> list[Finding]:  # noqa: ARG001
    return [
        Finding(
            "brain–brain reliability",
            row["dataset"],
            f"{words(row['mode'])}, {words(row['kind'])}",
            _passes(row),
            _reliability_detail(row),
            row["reason"],
            number=f"median {row['median_reliability']:.3f}" if _passes(row) is not None else "",
        )
        for row in table.iter_rows(named=True)
    ]


def _reliability_detail(row: Mapping[str, Any]) -> str:
    if row["reason"] != Reason.OK.value:
        return _explained(row["reason"])
    alone = "; stands alone, slow drift can inflate it" if row["split_half_alone"] else ""
    return (
        f"median {number(row['median_reliability'])}; {row['n_reliable']} of {row['n_valid']} rows "
        f"reach {number(row['min_reliability'])}{alone}"
    )


def _explained(code: str) -> str:
    return next((r.explanation for r in Reason if r.value == code), code)


def _brain_as_model(table: pl.DataFrame, gates: GatesConfig) -> list[Finding]:
    made = []
    for (dataset, comparison), part in table.group_by("dataset", "comparison", maintain_order=True):
        key = ("brain as model", str(dataset), words(str(comparison)))
        done = _computed(part)
        if done is None:
            made.append(_not_available(key, part))
            continue
        n_pass = done.filter("gate_pass").height
        share = f"{n_pass} of {done.height}"
        detail = (
            f"{share} summaries; {done['n_pass'].sum()} of {done['n_rows'].sum()} unit rows; "
            f"mean delta {number(_mean(done['mean_delta']))}; median p {number(_median(done['p_value']))}"
        )
        passes = n_pass / done.height > gates.summary_majority
        made.append(Finding(*key, passes, detail, number=share))
    return made


def _computed(part: pl.DataFrame) -> pl.DataFrame | None:
    """The rows with a result; none where there is not one."""
    done = part.filter(pl.col("reason") == Reason.OK.value)
    return None if done.is_empty() else done


def _not_available(key: tuple[str, str, str], part: pl.DataFrame) -> Finding:
    code = str(part["reason"][0])
    return Finding(*key, None, _explained(code), code)


def _mean(values: pl.Series) -> float | None:
    mean = values.mean()
    return mean if isinstance(mean, float) else None


def _median(values: pl.Series) -> float | None:
    median = values.median()
    return median if isinstance(median, float) else None


def _oracle(table: pl.DataFrame, gates: GatesConfig) -> list[Finding]:  # noqa: ARG001
    made = []
    for row in table.iter_rows(named=True):
        share, known = f"{row['n_joint_pass']} of {row['n_summaries']}", _passes(row) is not None
        made.append(
            Finding(
                "brain as model, with ceiling",
                row["dataset"],
                words(row["comparison"]),
                _passes(row),
                f"{share} summaries pass both" if known else _explained(row["reason"]),
                row["reason"],
                number=share if known else "",
            )
        )
    return made


def _order(table: pl.DataFrame, gates: GatesConfig) -> list[Finding]:  # noqa: ARG001
    made = []
    for (dataset, profile), part in table.group_by("dataset", "profile", maintain_order=True):
        key = ("profile order", str(dataset), str(profile))
        done = _computed(part)
        if done is None:
            made.append(_not_available(key, part))
            continue
        n_pass = done.filter("gate_pass").height
        share = f"{n_pass} of {done.height}"
        detail = (
            f"{share} measures; right minus shuffled order {number(_mean(done['median_delta']))}"
        )
        made.append(Finding(*key, n_pass == done.height, detail, number=share))
    return made


def _stimulus(control: str, table: Table, frame: pl.DataFrame) -> list[Finding]:
    """A summary by dataset: its key says what, its interpretation why."""
    made = []
    for row in frame.iter_rows(named=True):
        what = ", ".join(words(str(row[key])) for key in table.key if key != "dataset")
        what = what or _WHOLE
        passes = {"pass": True, "no": False}.get(row["gate"])
        share = "" if passes is None else f"{row['n_passing']} of {row['n_computed']}"
        detail = row["interpretation"]
        made.append(
            Finding(control, row["dataset"], what, passes, detail, row["reason"], number=share)
        )
    return made
