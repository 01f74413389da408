"""Results of the positive controls: what passes where, and what is not available."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.tables import assay
from lpact.codes import Reason
from lpact.tables import Table
from lpact.wording import number, spoken

SIMULATED = "(simulated)"
"""In place of a dataset's name for the implanted study."""

_STIMULUS_CONTROLS = {
    assay.LOW_LEVEL_SUMMARY: "word onset and word rate",
    assay.STANDALONE_SUMMARY: "acoustic envelope, from the first word to the last",
    assay.FULL_SUMMARY: "acoustic envelope, whole recording",
    assay.PROXY_SUMMARY: "proxies where the sound is missing",
}


@dataclass(frozen=True)
class ControlResult:
    """Whether a control passes (None: not available), and whether it should; ``number`` is a count or median."""

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


def control_results(tables: Mapping[str, pl.DataFrame], gates: GatesConfig) -> list[ControlResult]:
    """Every result of the given tables, control by control."""
    readers: dict[Table, Callable[[pl.DataFrame], Iterator[ControlResult]]] = {
        assay.IMPLANT: _implant,
        assay.BRAIN_RELIABILITY: _reliability,
        assay.BRAIN_AS_MODEL_SUMMARY: partial(_brain_as_model, majority=gates.summary_majority),
        assay.BRAIN_ORACLE: _oracle,
        assay.PROFILE_ORDER: _order,
        **{table: partial(_stimulus, control, table) for table, control in _STIMULUS_CONTROLS.items()},
    }
    present = ((table, read) for table, read in readers.items() if table.name in tables)
    return [result for table, read in present for result in read(tables[table.name])]


def _of_row(control: str, dataset: str, what: str, row: Mapping[str, Any], detail: str, **more: Any) -> ControlResult:
    """A result of one row; without a result, its reason takes the place of the detail."""
    code = str(row["reason"])
    if code != Reason.OK.value:
        return ControlResult(control, dataset, what, None, Reason(code).explanation, code)
    return ControlResult(control, dataset, what, bool(row["gate_pass"]), detail, code, **more)


def _implant(table: pl.DataFrame) -> Iterator[ControlResult]:
    for row in table.filter(quantity="integrated").iter_rows(named=True):
        what = f"{row['arm']}, gate profile {row['gate_profile']}"
        result = _of_row("implanted signal", SIMULATED, what, row, row["interpretation"])
        yield replace(result, expected=row["arm"] == assay.IMPLANTED)


def _reliability(table: pl.DataFrame) -> Iterator[ControlResult]:
    for row in table.iter_rows(named=True):
        median, what = row["median_reliability"], f"{spoken(row['mode'])}, {spoken(row['kind'])}"
        share = f"{row['n_reliable']} of {row['n_valid']} rows"
        detail = f"median {number(median)}; {share} reach {number(row['min_reliability'])}"
        if row["split_half_alone"]:
            detail += "; the only valid mode, slow drift can inflate it"
        short = "" if median is None else f"median {median:.3f}"
        control = "brain–brain reliability"
        yield _of_row(control, row["dataset"], what, row, detail, number=short)


def _oracle(table: pl.DataFrame) -> Iterator[ControlResult]:
    for row in table.iter_rows(named=True):
        share, what = f"{row['n_joint_pass']} of {row['n_summaries']}", spoken(row["comparison"])
        control, detail = "brain as model, with ceiling", f"{share} summaries pass both"
        yield _of_row(control, row["dataset"], what, row, detail, number=share)


def _brain_as_model(table: pl.DataFrame, majority: float) -> Iterator[ControlResult]:
    for key, done, n_pass, reason in _passing(table, "comparison"):
        share = f"{n_pass} of {done.height}"
        passes = bool(done.height) and n_pass / done.height > majority
        row = {"gate_pass": passes, "reason": reason}
        detail = (
            f"{share} summaries; {done['n_pass'].sum()} of {done['n_rows'].sum()} unit rows; mean delta "
            f"{_number(done['mean_delta'].mean())}; median p {_number(done['p_value'].median())}"
        )
        place = ("brain as model", key[0], spoken(key[1]))
        yield _of_row(*place, row, detail, number=share)


def _order(table: pl.DataFrame) -> Iterator[ControlResult]:
    for key, done, n_pass, reason in _passing(table, "profile"):
        share = f"{n_pass} of {done.height}"
        delta = _number(done["median_delta"].mean())
        row = {"gate_pass": n_pass == done.height, "reason": reason}
        detail = f"{share} measures; right minus shuffled order {delta}"
        yield _of_row("profile order", *key, row, detail, number=share)


def _passing(table: pl.DataFrame, by: str) -> Iterator[tuple[tuple[str, str], pl.DataFrame, int, str]]:
    """Rows with a result of every dataset and value of ``by``, how many pass, and the reason of the first row."""
    for (dataset, value), part in table.group_by("dataset", by, maintain_order=True):
        done = part.filter(reason=Reason.OK.value)
        reason = (done if done.height else part)["reason"][0]
        yield (str(dataset), str(value)), done, done.filter("gate_pass").height, reason


def _number(value: object) -> str:
    return number(value if isinstance(value, float) else None)


def _stimulus(control: str, table: Table, frame: pl.DataFrame) -> Iterator[ControlResult]:
    """A summary by dataset: its key says what, its interpretation why."""
    for row in frame.iter_rows(named=True):
        what = ", ".join(spoken(str(row[key])) for key in table.key if key != "dataset")
        passes = {"pass": True, "no": False}.get(row["gate"])
        share = "" if passes is None else f"{row['n_passing']} of {row['n_computed']}"
        place = (control, row["dataset"], what or "acoustic envelope")
        yield ControlResult(*place, passes, row["interpretation"], row["reason"], number=share)
