"""Results of a finished run, for any analysis: shared by ``lpact run``, ``lpact demo`` and ``lpact status``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lpact.cli._options import program
from lpact.cli._terminal import heading, label_styles, say, show_blocks, show_table
from lpact.wording import fixed

if TYPE_CHECKING:
    import polars as pl

    from lpact.analyses.base import Analysis
    from lpact.analyses.explanation import ClaimTable
    from lpact.study import Run


def show_results(run: Run, *, every_claim: bool = False) -> None:
    """Print what each analysis of a run found: claims by label, the conclusion, and its own blocks."""
    for name, analysis in run.analyses.items():
        claims = run.table(analysis.claims.table.name)
        if every_claim:
            _show_claims(analysis, run.claims(name))
        else:
            show_claim_counts(analysis, claims)
        if claims.is_empty():
            say("No claim could be made; `lpact audit` with the study file says why.", indent=2)
        conclusion = run.conclusion(name)
        heading(f"Conclusion ({name})")
        for sentence in (conclusion.headline, *conclusion.why):
            say(sentence, indent=2)
        for outcome in conclusion.outcomes:
            rules = analysis.claims.profiles.get(outcome.profile, "")
            heading(f"Outcome {outcome.code}" + (f" ({rules})" if rules else ""))
            say(outcome.meaning, indent=2)
        show_blocks(analysis.result_blocks(run.material))


def show_claim_counts(analysis: Analysis, claims: pl.DataFrame) -> None:
    """Print how many claims got which label, under each gate profile; ``claims`` has the rows of all profiles."""
    import polars as pl

    about = analysis.claims
    group = about.key[:1]
    profiles = tuple(about.profiles) or ("claims",)
    if not about.profiles:
        claims = claims.with_columns(gate_profile=pl.lit("claims"))
    counts = {row[:-1]: row[-1] for row in claims.group_by(*group, "label", "gate_profile").len().rows()}
    rows = [
        (place, label, *n)
        for (place,) in claims.select(group).unique(maintain_order=True).iter_rows()
        for label in about.labels
        if any(n := [counts.get((place, label, profile), 0) for profile in profiles])
    ]
    heading(f"Claims by label ({analysis.name})")
    show_table((*group, "label", *profiles), rows, styles=label_styles(about.labels))


def _show_claims(analysis: Analysis, claims: pl.DataFrame) -> None:
    """Print the claims of one profile; those that differ in the last column of their key alone share a line."""
    about = analysis.claims
    *place, last = about.key
    score = ("score",) if about.score else ()
    groups = claims.group_by(place, maintain_order=True) if place else [((), claims)]
    rows = [
        (*values, *line)
        for values, own in groups
        for line in _shared_lines(about, list(own.iter_rows(named=True)), last)
    ]
    heading(f"Claims ({analysis.name})")
    columns = (*place, *score, last, "label", "first failed gate")
    show_table(columns, rows, right=score, styles=label_styles(about.labels))
    for letter, meaning in about.gate_meanings.items():
        say(f"{letter}: {meaning}", indent=2)


def _shared_lines(about: ClaimTable, rows: list[dict[str, Any]], last: str) -> Iterator[tuple[str, ...]]:
    """Cells from the score on, one line for each label that the claims of a group got."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        failed = next((letter for letter, column in about.gates.items() if not row[column]), "")
        grouped.setdefault((row["label"], failed), []).append(row)
    for (label, failed), own in sorted(grouped.items(), key=lambda item: len(item[1])):
        names = str(own[0][last]) if len(own) == 1 else f"{len(own)} of {len(rows)}"
        score = (fixed(own[0][about.score]),) if about.score else ()
        yield (*score, names, label, failed)


def show_places(run: Run) -> None:
    """Print where the results are, and the next commands."""
    from lpact.report.folder import REPORT_PAGE
    from lpact.store.manifest import REPORT_FOLDER

    heading("Where everything is")
    folder = shlex.quote(str(run.root))
    page = run.root / REPORT_FOLDER / REPORT_PAGE
    places = [
        ("run", f"{run.root}/"),
        *(("claims", f"{run.root}/{a.claims.table.name}.csv") for a in run.analyses.values()),
        ("report", str(page) if page.is_file() else f"{program()} report {folder}"),
        ("manifest", f"{run.root}/manifest.json"),
        ("time, memory", f"{program()} status {folder}"),
    ]
    for name, analysis in run.analyses.items():
        order = list(analysis.claims.labels)
        claims = run.claims(name).iter_rows(named=True)
        strongest = min(claims, key=lambda row: order.index(row["label"]), default=None)
        if strongest is not None:
            claim = "/".join(str(strongest[key]) for key in analysis.claims.key)
            option = f" --analysis {name}" if len(run.analyses) > 1 else ""
            places.append(("why", f"{program()} explain {folder} {claim}{option}"))
    places += [(what, f"{program()} {what} {folder}") for what in ("tables", "explore")]
    show_table(("what", "where"), places, header=False, wrap=False)
