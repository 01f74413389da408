"""Writing a report: figures, page, words and tables into one folder, complete or not at all.

::

    report.html          the page, which needs nothing beside it
    verdicts.md          every verdict in plain words
    methods.md, .tex     a Methods section with this run's parameters
    references.bib       what it cites
    figures/             every figure as SVG, PDF and PNG; dark/ holds the dark ones
    tables/              every table as CSV and LaTeX
    contents.json        what was written, with checksums
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lpact.config import StudyConfig
from lpact.report.aside import Aside
from lpact.report.export_tables import SUFFIXES, export_tables
from lpact.report.figure import Figure, Material, Missing
from lpact.report.figures import SECTIONS, maker
from lpact.report.folder import REPORT_PAGE, new_folder, refuse_foreign
from lpact.report.methods import methods_latex, methods_markdown, methods_text
from lpact.report.page import Drawn, PageParts, TableFile, page_html
from lpact.report.pictures import write_pictures
from lpact.report.references import bibtex, references_for
from lpact.report.render import to_svg
from lpact.report.verdict_sentence import verdict_sentence, why_sentences
from lpact.report.verdicts import verdict_pages
from lpact.store import StoredRun, write_table
from lpact.store.manifest import REPORT_FOLDER
from lpact.tables import Table, find_table
from lpact.tables.decisions import DECISIONS, STUDY_OUTCOME

Tell = Callable[[str], None]


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
        Tables that are not the run's own: those of `lpact.robustness`, and rates of the gates.
    with_tables
        Whether every table is written as CSV and LaTeX beside the page.
    workers
        Processes that write pictures and tables meanwhile; with more than none, a script must guard its entry point.
    tell
        Called with what is being done, for those who wait.
    """
    folder = run.root / REPORT_FOLDER if out is None else Path(out)
    refuse_foreign(folder)
    more = dict(more or {})
    with new_folder(folder) as made, Aside(workers) as aside:
        files = _write_tables(run, more, made / "tables", aside, tell) if with_tables else ()
        material = Material({t.name: run.table(t.name) for t in run.tables()}, config, more)
        drawn = []
        for own in draw(material, tell):
            drawn.append(own)
            if own.svg:
                aside.do(write_pictures, made / "figures", own.figure.name, own.svg)
        tell("writing the page")
        parts = _page_parts(run, material, drawn, files)
        page = page_html(parts)
        for name, text in {REPORT_PAGE: page, **_words(run, material, parts)}.items():
            (made / name).write_text(text, encoding="utf-8", newline="\n")
        tell("waiting for pictures and tables")
    return WrittenReport(
        folder=folder,
        page=folder / REPORT_PAGE,
        figures=tuple(own.figure.name for own in drawn if own.svg),
        missing=tuple(own.figure for own in drawn if isinstance(own.figure, Missing)),
        n_tables=len(files),
        page_bytes=len(page.encode()),
    )


def draw(material: Material, tell: Tell = lambda _: None) -> Iterator[Drawn]:
    """Every figure of the page with its picture, in order."""
    for section, names in SECTIONS.items():
        for name in names:
            tell(f"drawing {name.replace('_', ' ')}")
            figure = maker(name)(material)
            yield Drawn(section, figure, to_svg(figure) if isinstance(figure, Figure) else "")


def _write_tables(
    run: StoredRun, more: Mapping[str, pl.DataFrame], folder: Path, aside: Aside, tell: Tell
) -> tuple[TableFile, ...]:
    """Every table as CSV and LaTeX; those that are not the run's own as Parquet too."""
    tell("writing tables")
    aside.do(export_tables, run.root, run.tables(), folder)
    added = [find_table(name) for name in sorted(more)]
    for table in added:
        write_table(more[table.name], table, folder)
    aside.do(export_tables, folder, added, folder, ("latex",))
    listed = [_listed(table, run.table(table.name).height) for table in run.tables()]
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
        why=why_sentences(material.tables, material.config.gates),
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
