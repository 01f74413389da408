"""Results of a finished run, in words: shared by ``lpact run``, ``lpact demo`` and ``lpact decide``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import VERDICT_STYLES, counted, heading, memory, number, say, show, whole

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from lpact.study import Run

DECISIONS = "decisions/lpact_decision_table"
_VERDICT = ("label", "first_failed_gate", "beaten_by")
_PROFILES = {"paper": "point rules", "calibrated": "every gate a test"}


def show_verdicts(out: Console, decisions: pl.DataFrame) -> None:
    """One block a dataset; mechanisms of a layer with the same verdict share a line."""
    for (dataset, role), claims in decisions.group_by("dataset", "role", maintain_order=True):
        heading(out, f"{dataset} ({role})")
        grid = Grid(
            ("model", "layer", "raw score", "mechanisms", "verdict", "failed gate", "beaten by"),
            right=frozenset({"layer", "raw score"}),
            styles=VERDICT_STYLES,
        )
        layers = claims.group_by("model", "layer", maintain_order=True)
        for (model, layer), rows in layers:
            for line in _verdict_lines(list(rows.iter_rows(named=True))):
                grid.add(model, layer, *line)
        show(out, grid)


def _verdict_lines(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Cells from the raw score on, one line for each verdict that a layer got."""
    grouped: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[column] for column in _VERDICT), []).append(row)
    lines = []
    for verdict, own in sorted(grouped.items(), key=lambda item: len(item[1])):
        names = [row["mechanism"] for row in own]
        told = names[0] if len(names) == 1 else f"{len(names)} of {len(rows)}"
        failed = tuple("" if cell == "none" else cell for cell in verdict[1:])
        lines.append((number(own[0]["raw_score"]), told, verdict[0], *failed))
    return lines


def show_verdict_counts(out: Console, decisions: pl.DataFrame) -> None:
    """How many claims of each dataset got which verdict, under each gate profile; ``decisions`` holds both."""
    heading(out, "Verdicts: claims by gate profile")
    profiles = decisions["gate_profile"].unique().sort(descending=True).to_list()
    grid = Grid(
        ("dataset", "role", "verdict", *profiles),
        right=frozenset(profiles),
        styles=VERDICT_STYLES,
    )
    place = ("dataset", "role", "label")
    counts = decisions.group_by(*place, "gate_profile").len()
    by_place = {row[:-1]: row[-1] for row in counts.iter_rows()}
    for row in decisions.select(place).unique(maintain_order=True).sort("dataset").iter_rows():
        grid.add(*row, *(by_place.get((*row, profile), 0) for profile in profiles))
    show(out, grid)


def show_outcome(out: Console, run: Run) -> None:
    """The outcome of the study and what it means, under the point rules and with every gate a test."""
    for row in sorted(
        run.table("decisions/lpact_study_outcome").iter_rows(named=True),
        key=lambda row: row["gate_profile"] != "paper",
    ):
        heading(out, f"Outcome {row['outcome']} ({_PROFILES[row['gate_profile']]})")
        say(out, row["meaning"], indent=2)


def show_positive_controls(out: Console, run: Run) -> None:
    """Whether the assay could have said yes: one line a positive control."""
    from lpact.analyses.lpact.assays.lines import findings

    heading(out, "Can the assay see? Positive controls")
    if not run.config.assay.enabled:
        say(out, "Switched off ([assay] enabled = false).", indent=2)
        return
    tables = {table.name: run.table(table.name) for table in run.tables()}
    grid = Grid(("control", "as expected", "not available"), right=frozenset({"not available"}))
    by_control: dict[str, list[bool | None]] = {}
    for found in findings(tables, run.config.gates):
        fits = None if found.passes is None else found.passes == found.expected
        by_control.setdefault(found.control, []).append(fits)
    for control, results in by_control.items():
        known = [result for result in results if result is not None]
        shown = f"{sum(known)} of {len(known)}" if known else "–"
        grid.add(control, shown, results.count(None))
    show(out, grid)
    folder = shlex.quote(str(run.root))
    say(out, f"What passes where, and why not: {program()} assay {folder}", indent=2)


def show_row_counts(out: Console, run: Run) -> None:
    """Rows of every table."""
    heading(out, "Tables")
    grid = Grid(("table", "rows"), right=frozenset({"rows"}))
    total = 0
    for table in run.tables():
        n = run.n_rows(table.name)
        total += n
        grid.add(table.name, whole(n))
    show(out, grid)
    say(out, f"{counted(len(grid.rows), 'table')}, {counted(total, 'row')}", indent=2)


def show_places(out: Console, run: Run) -> None:
    """Where everything is, and what to type next."""
    from lpact.report import REPORT_PAGE
    from lpact.store.manifest import REPORT_FOLDER

    heading(out, "Where everything is")
    folder = shlex.quote(str(run.root))
    places = Grid(("what", "where"))
    places.add("run", f"{run.root}/")
    places.add("verdicts", f"{run.root}/{DECISIONS}.csv")
    page = run.root / REPORT_FOLDER / REPORT_PAGE
    places.add("report", str(page) if page.is_file() else f"{program()} report {folder}")
    places.add("manifest", f"{run.root}/manifest.json")
    places.add("time, memory", f"{program()} status {folder}{_most_memory(run)}")
    claim = most_telling_claim(run.decisions)
    if claim is not None:
        places.add("why", f"{program()} explain {folder} {claim}")
    places.add("tables", f"{program()} tables {folder}")
    places.add("look around", f"{program()} explore {folder}")
    # Without the header: the first column says it all.
    for line in places.lines(None, indent=2)[1:]:
        out.print(line, soft_wrap=True)


def _most_memory(run: Run) -> str:
    """The most memory of a process, from the run's log."""
    from lpact.run.journal.log import LOG_NAME
    from lpact.run.journal.summary import summarise_log

    if not (run.root / LOG_NAME).is_file():
        return ""
    stages = summarise_log(run.root / LOG_NAME).stages
    most = {name: max(s.peak_bytes, s.own_peak_bytes) for name, s in stages.items()}
    if not most:
        return ""
    largest = max(most, key=most.__getitem__)
    return f"  (at most {memory(most[largest])} a process, in the stage '{largest}')"


def most_telling_claim(decisions: pl.DataFrame) -> str | None:
    """The claim with the strongest verdict, to show how a claim is asked about."""
    from lpact.codes import FinalLabel
    from lpact.tables import CLAIM_KEY

    order = [label.value for label in FinalLabel]
    candidates = order[order.index("integrated_candidate") :]
    rows = list(decisions.iter_rows(named=True))
    ranked = sorted(
        rows,
        key=lambda row: (
            candidates.index(row["label"]) if row["label"] in candidates else len(order)
        ),
    )
    return "/".join(str(ranked[0][key]) for key in CLAIM_KEY) if ranked else None
