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

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import polars as pl

from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.report.export_tables import SUFFIXES, export_tables
from lpact.report.figure import Figure, Material, Missing
from lpact.report.figures import SECTIONS, maker
from lpact.report.methods import methods_latex, methods_markdown, methods_text
from lpact.report.page import Drawn, PageParts, TableFile, page_html
from lpact.report.references import bibtex, references_for
from lpact.report.render import standalone, to_pdf, to_png, to_svg
from lpact.report.theme import dark
from lpact.report.verdict_sentence import verdict_sentence, why_sentences
from lpact.report.verdicts import verdicts_markdown
from lpact.store import StoredRun, storage_errors, write_table
from lpact.store.manifest import REPORT_FOLDER
from lpact.tables import Table, find_table
from lpact.tables.decisions import DECISIONS, STUDY_OUTCOME

REPORT_PAGE = "report.html"
CONTENTS = "contents.json"
_FROM_THE_RUN = frozenset({"verdicts.md"})
"""Files that a run writes into its report folder by itself."""

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
    tell
        Called with what is being done, for those who wait.
    """
    folder = run.root / REPORT_FOLDER if out is None else Path(out)
    refuse_foreign(folder)
    more = dict(more or {})
    material = Material({t.name: run.table(t.name) for t in run.tables()}, config, more)
    drawn = [*draw(material, tell)]
    with _new_folder(folder) as made:
        tell("writing figures")
        for own in drawn:
            if isinstance(own.figure, Figure):
                _write_figure(own.figure.name, own.svg, made / "figures")
        files = _write_tables(run, more, made / "tables", tell) if with_tables else ()
        tell("writing the page")
        parts = _page_parts(run, material, drawn, files)
        page = page_html(parts)
        texts = {REPORT_PAGE: page, **_words(run, material, parts)}
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8", newline="\n")
        _write_contents(made)
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


def _write_figure(name: str, svg: str, folder: Path) -> None:
    in_dark = folder / "dark"
    in_dark.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text(standalone(svg), encoding="utf-8", newline="\n")
    for place, picture in ((folder, svg), (in_dark, dark(svg))):
        (place / f"{name}.pdf").write_bytes(to_pdf(picture))
        (place / f"{name}.png").write_bytes(to_png(picture))


def _write_tables(
    run: StoredRun, more: Mapping[str, pl.DataFrame], folder: Path, tell: Tell
) -> tuple[TableFile, ...]:
    """Every table as CSV and LaTeX; those that are not the run's own as Parquet too."""
    listed = []
    for table in run.tables():
        tell(f"writing the table {table.name}")
        export_tables(run.root, [table], folder)
        listed.append(_listed(table, run.table(table.name).height))
    for name, frame in sorted(more.items()):
        table = find_table(name)
        tell(f"writing the table {table.name}")
        write_table(frame, table, folder)
        export_tables(folder, [table], folder, formats=("latex",))
        listed.append(_listed(table, frame.height))
    return tuple(listed)


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
    decisions = material.table(DECISIONS.name)
    source = (run.manifest, material.config, material.tables)
    return {
        "verdicts.md": verdicts_markdown(
            decisions.filter(gate_profile="paper"),
            material.table(STUDY_OUTCOME.name),
            decisions.filter(gate_profile="calibrated"),
        ),
        "methods.md": methods_markdown(*source),
        "methods.tex": methods_latex(*source),
        "references.bib": parts.bibtex,
    }


def _write_contents(folder: Path) -> None:
    """What the folder holds, with checksums: a later report knows by it which files it may replace."""
    listed = {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    (folder / CONTENTS).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def report_contents(folder: Path) -> set[str]:
    """Files of a report folder that lpact wrote, by their path in it."""
    try:
        listed = json.loads((folder / CONTENTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        listed = {}
    return {CONTENTS, *_FROM_THE_RUN, *(listed if isinstance(listed, dict) else {})}


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is not new, empty, or an earlier report."""
    if not folder.exists() and not folder.is_symlink():
        return
    refused = {
        "where": str(folder),
        "expected": "a new or empty folder, or an earlier report",
        "remedy": "choose another folder with --out, or move the other files away",
    }
    if folder.is_symlink() or not folder.is_dir():
        raise RunError("the report cannot be put there", got="not a plain folder", **refused)
    own = report_contents(folder)
    found = (p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if not p.is_dir())
    foreign = next((path for path in found if path not in own), None)
    if foreign is not None:
        raise RunError(
            "the folder holds more than a report, and is not replaced", got=foreign, **refused
        )


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A folder that takes the place of ``target`` when the block ends well, and vanishes when it does not."""
    target = Path(os.path.abspath(target))
    made = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    before = target.with_name(f".{target.name}.{uuid.uuid4().hex}.before")
    with storage_errors(target, "the report cannot be written"):
        made.mkdir(parents=True)
        try:
            yield made
            if target.exists():
                target.rename(before)
            try:
                made.rename(target)
            except OSError:
                if before.exists():
                    before.rename(target)
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
            shutil.rmtree(before, ignore_errors=True)
