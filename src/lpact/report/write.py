"""Writing a report: figures, page, words and tables into one folder, complete or not at all.

::

    report.html          the page, which needs nothing beside it
    verdicts.md          every verdict in plain words
    methods.md, .tex     a Methods section with this run's parameters
    references.bib       what it cites
    figures/             every figure as SVG, PDF and PNG; dark/ holds dark SVGs
    tables/              every table as CSV and LaTeX
    contents.json        what was written, with checksums
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lpact.analyses.lpact.figures import LATE, SECTIONS, maker
from lpact.analyses.lpact.methods import methods_latex, methods_markdown, methods_text
from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.analyses.lpact.verdict_sentence import verdict_sentence, why_sentences
from lpact.analyses.lpact.verdicts import verdict_pages
from lpact.config import StudyConfig
from lpact.report.aside import Aside
from lpact.report.export_tables import SUFFIXES, export_tables
from lpact.report.figure import Figure, Material, Missing
from lpact.report.folder import REPORT_PAGE, new_folder, refuse_foreign
from lpact.report.page import Drawn, PageParts, TableFile, page_html
from lpact.report.pictures import write_pictures
from lpact.report.references import bibtex, references_for
from lpact.store import RunTables, StoredRun, write_table
from lpact.store.manifest import REPORT_FOLDER
from lpact.tables import Table, find_table

Tell = Callable[[str], None]

_PLACES = [(section, name) for section, names in SECTIONS.items() for name in names]
NAMES = tuple(name for _, name in _PLACES)
"""Every figure, in the order of the page."""


@dataclass(frozen=True)
class WrittenReport:
    """Where a report is, and what is in it."""

    folder: Path
    page: Path
    figures: tuple[str, ...]
    missing: tuple[Missing, ...]
    n_tables: int
    page_bytes: int


def write_report(
    run: StoredRun,
    *,
    config: StudyConfig,
    out: str | Path | None = None,
    more: Mapping[str, pl.DataFrame] | None = None,
    late: Callable[[Tell], Mapping[str, pl.DataFrame]] | None = None,
    with_tables: bool = True,
    workers: int = 0,
    tell: Tell = lambda _: None,
) -> WrittenReport:
    """Write the report of a finished run; nothing is fitted again.

    Parameters
    ----------
    run, config
        The run, and the configuration it was made with.
    out
        Folder of the report; by default ``report/`` in the run. An earlier report there is replaced, and a folder that
        holds anything else is refused.
    more
        Tables that are not the run's own, such as rates of the gates.
    late
        Computes the tables of `lpact.analyses.lpact.robustness`; called while other figures are drawn.
    with_tables
        Whether every table is written as CSV and LaTeX beside the page.
    workers
        Processes that draw and write meanwhile; with more than none, a script must guard its entry point.
    tell
        Called with what is being done, for those who wait.
    """
    folder = run.root / REPORT_FOLDER if out is None else Path(out)
    refuse_foreign(folder)
    with new_folder(folder) as made, Aside(workers) as aside:
        if with_tables:
            aside.do(export_tables, run.root, run.tables(), made / "tables")
        tell("drawing figures")
        tables = RunTables(run)
        material = Material(tables, config, more or {})
        pictures = _draw(material, set(NAMES) - LATE, made, aside)
        if late is not None:
            material = Material(tables, config, {**material.more, **late(tell)})
        tell("drawing figures")
        pictures |= _draw(material, LATE, made, aside)
        files = _write_tables(run, material.more, made / "tables", aside) if with_tables else ()
        tell("drawing figures and writing tables")
        drawn = [_drawn(section, *pictures[name]) for section, name in _PLACES]
        tell("writing the page")
        parts = _page_parts(run, material, drawn, files)
        page = page_html(parts)
        for name, text in {REPORT_PAGE: page, **_words(run, material, parts)}.items():
            (made / name).write_text(text, encoding="utf-8", newline="\n")
    return WrittenReport(
        folder=folder,
        page=folder / REPORT_PAGE,
        figures=tuple(own.figure.name for own in drawn if own.svg),
        missing=tuple(own.figure for own in drawn if isinstance(own.figure, Missing)),
        n_tables=len(files),
        page_bytes=len(page.encode()),
    )


def _draw(
    material: Material, names: Set[str], folder: Path, aside: Aside
) -> dict[str, tuple[Figure | Missing, Future[str] | None]]:
    """Make these figures and have them drawn; a picture may still be under way."""
    made: dict[str, tuple[Figure | Missing, Future[str] | None]] = {}
    for name in (own for own in NAMES if own in names):
        figure = maker(name)(material)
        picture = None
        if isinstance(figure, Figure):
            picture = aside.do(write_pictures, folder / "figures", figure)
        made[name] = figure, picture
    return made


def _drawn(section: str, figure: Figure | Missing, picture: Future[str] | None) -> Drawn:
    return Drawn(section, figure, "" if picture is None else picture.result())


def _write_tables(
    run: StoredRun, more: Mapping[str, pl.DataFrame], folder: Path, aside: Aside
) -> tuple[TableFile, ...]:
    """Add tables that are not the run's own, as Parquet too; return the list of all."""
    added = [find_table(name) for name in sorted(more)]
    for table in added:
        write_table(more[table.name], table, folder)
    aside.do(export_tables, folder, added, folder, ("latex",))
    listed = [_listed(table, run.n_rows(table.name)) for table in run.tables()]
    return (*listed, *(_listed(table, more[table.name].height) for table in added))


def _listed(table: Table, n_rows: int) -> TableFile:
    files = {name: f"tables/{table.name}{suffix}" for name, suffix in SUFFIXES.items()}
    return TableFile(table.name, table.meaning, n_rows, files)


def _page_parts(
    run: StoredRun, material: Material, drawn: list[Drawn], files: tuple[TableFile, ...]
) -> PageParts:
    decisions, outcomes = material.table(DECISIONS.name), material.table(STUDY_OUTCOME.name)
    return PageParts(
        manifest=run.manifest,
        tables=material.tables,
        verdict=verdict_sentence(decisions, outcomes),
        why=why_sentences(
            material.tables, material.config.gates, material.config.assay.implant_snr
        ),
        drawn=drawn,
        methods=methods_text(run.manifest, material.config, material.tables),
        bibtex=bibtex(references_for(run.manifest)),
        table_files=files,
    )


def _words(run: StoredRun, material: Material, parts: PageParts) -> dict[str, str]:
    source = (run.manifest, material.config, material.tables)
    return {
        **verdict_pages(material.tables),
        "methods.md": methods_markdown(*source),
        "methods.tex": methods_latex(*source),
        "references.bib": parts.bibtex,
    }
