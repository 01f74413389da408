"""Results of a finished run, for any analysis: shared by ``lpact run``, ``lpact demo`` and ``lpact status``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import (
    counted,
    heading,
    label_styles,
    memory,
    number,
    say,
    show,
    show_blocks,
    whole,
)

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from lpact.analyses.base import Analysis
    from lpact.analyses.explanation import ClaimTable
    from lpact.study import Run


def show_results(out: Console, run: Run, *, every_claim: bool = False) -> None:
    """Print what each analysis of a run found: claims by label, the conclusion, and its own blocks."""
    for name, analysis in run.analyses.items():
        claims = run.table(analysis.claims.table.name)
        if every_claim:
            show_claims(out, analysis, run.claims(name))
        else:
            show_claim_counts(out, analysis, claims)
        if claims.is_empty():
            say(
                out, "No claim could be made; `lpact audit` with the study file says why.", indent=2
            )
        conclusion = run.conclusion(name)
        heading(out, f"Conclusion ({name})")
        say(out, conclusion.headline, indent=2)
        for reason in conclusion.why:
            say(out, reason, indent=2)
        for outcome in conclusion.outcomes:
            rules = analysis.claims.profiles.get(outcome.profile, "")
            heading(out, f"Outcome {outcome.code}" + (f" ({rules})" if rules else ""))
            say(out, outcome.meaning, indent=2)
        show_blocks(out, analysis.result_blocks(run.material))


def show_claim_counts(out: Console, analysis: Analysis, claims: pl.DataFrame) -> None:
    """Print how many claims got which label, under each gate profile; ``claims`` has the rows of all profiles."""
    import polars as pl

    about = analysis.claims
    group = about.key[:1]
    profiles = tuple(about.profiles) or ("claims",)
    if not about.profiles:
        claims = claims.with_columns(gate_profile=pl.lit("claims"))
    counted_rows = claims.group_by(*group, "label", "gate_profile").len().iter_rows()
    counts = {tuple(row[:-1]): row[-1] for row in counted_rows}
    heading(out, f"Claims by label ({analysis.name})")
    styles = label_styles(about.labels)
    grid = Grid((*group, "label", *profiles), right=frozenset(profiles), styles=styles)
    for (place,) in claims.select(group).unique(maintain_order=True).iter_rows():
        for label in about.labels:
            n = [counts.get((place, label, profile), 0) for profile in profiles]
            if any(n):
                grid.add(place, label, *map(whole, n))
    show(out, grid)


def show_claims(out: Console, analysis: Analysis, claims: pl.DataFrame) -> None:
    """Print the claims of one profile; those that differ in the last column of their key alone share a line."""
    about = analysis.claims
    *place, last = about.key
    heading(out, f"Claims ({analysis.name})")
    score = (about.score,) if about.score else ()
    columns = (*place, *(("score",) if score else ()), last, "label", "first failed gate")
    numbers = {"score", *(c.name for c in about.table.columns if c.dtype in ("int", "float"))}
    right = frozenset(numbers & set(columns))
    grid = Grid(columns, right=right, styles=label_styles(about.labels))
    groups = claims.group_by(place, maintain_order=True) if place else [((), claims)]
    for values, rows in groups:
        for line in _shared_lines(about, list(rows.iter_rows(named=True)), last):
            grid.add(*values, *line)
    show(out, grid)
    for letter, meaning in about.gate_meanings.items():
        say(out, f"{letter}: {meaning}", indent=2)


def _shared_lines(
    about: ClaimTable, rows: list[dict[str, Any]], last: str
) -> Iterator[tuple[str, ...]]:
    """Cells from the score on, one line for each label that the claims of a group got."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        failed = next((letter for letter, column in about.gates.items() if not row[column]), "")
        grouped.setdefault((row["label"], failed), []).append(row)
    for (label, failed), own in sorted(grouped.items(), key=lambda item: len(item[1])):
        names = str(own[0][last]) if len(own) == 1 else f"{len(own)} of {len(rows)}"
        score = (number(own[0][about.score]),) if about.score else ()
        yield (*score, names, label, failed)


def show_row_counts(out: Console, run: Run) -> None:
    """Print the number of rows of every table."""
    heading(out, "Tables")
    counts = {table.name: run.n_rows(table.name) for table in run.tables()}
    grid = Grid(("table", "rows"), right=frozenset({"rows"}))
    for name, n in counts.items():
        grid.add(name, whole(n))
    show(out, grid)
    total = counted(sum(counts.values()), "row")
    say(out, f"{counted(len(counts), 'table')}, {total}", indent=2)


def show_places(out: Console, run: Run) -> None:
    """Print where everything is, and what to type next."""
    from lpact.report import REPORT_PAGE
    from lpact.store.manifest import REPORT_FOLDER

    heading(out, "Where everything is")
    folder = shlex.quote(str(run.root))
    places = Grid(("what", "where"), header=False)
    places.add("run", f"{run.root}/")
    for analysis in run.analyses.values():
        places.add("claims", f"{run.root}/{analysis.claims.table.name}.csv")
    page = run.root / REPORT_FOLDER / REPORT_PAGE
    places.add("report", str(page) if page.is_file() else f"{program()} report {folder}")
    places.add("manifest", f"{run.root}/manifest.json")
    places.add("time, memory", f"{program()} status {folder}{_most_memory(run)}")
    for name, analysis in run.analyses.items():
        claim = strongest_claim(analysis, run.claims(name))
        if claim is not None:
            option = f" --analysis {name}" if len(run.analyses) > 1 else ""
            places.add("why", f"{program()} explain {folder} {claim}{option}")
    places.add("tables", f"{program()} tables {folder}")
    places.add("browse", f"{program()} explore {folder}")
    # Lines to copy are never broken.
    places.print(out, None, indent=2)


def _most_memory(run: Run) -> str:
    """The largest memory of a process, from the run's log."""
    from lpact.run.status import LOG_NAME, summarise_log

    if not (run.root / LOG_NAME).is_file():
        return ""
    stages = summarise_log(run.root / LOG_NAME).stages
    most = {name: max(s.peak_bytes, s.own_peak_bytes) for name, s in stages.items()}
    if not most:
        return ""
    largest = max(most, key=most.__getitem__)
    return f"  (at most {memory(most[largest])} per process, in the stage '{largest}')"


def strongest_claim(analysis: Analysis, claims: pl.DataFrame) -> str | None:
    """Id of a claim with the strongest label, as an example for `lpact explain`."""
    order = list(analysis.claims.labels)
    rows = sorted(claims.iter_rows(named=True), key=lambda row: order.index(row["label"]))
    return "/".join(str(rows[0][key]) for key in analysis.claims.key) if rows else None
