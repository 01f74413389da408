"""``lpact claims``: what a run supports and forbids, and a check of a text against it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._output import refuse_existing, write_tables
from lpact.cli._render import console, counted, heading, say, show

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.analyses.lpact.claim_audit import Format, Overclaim

OVERCLAIMS_FOUND = 1
STANDARD_INPUT = "-"
DECISIONS = "decisions/lpact_decision_table"
OUTCOME = "decisions/lpact_study_outcome"
_DEFAULT = "show"


class _WithDefault(TyperGroup):
    """``lpact claims RUN`` is ``lpact claims show RUN``; a run in a folder of a command's name is ``./check``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_WithDefault,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Say what a run supports, or check a text against it.",
)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command(_DEFAULT)
def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder for the tables of statements.")
    ] = None,
    json: _Json = False,
) -> None:
    """Say which statements the verdicts of a run support, and which they forbid.

    For the study as a whole, and for every claim; `lpact claims RUN` is the same.
    """
    import lpact
    from lpact.analyses.lpact.claim_audit import supported_statements
    from lpact.analyses.lpact.tables.decisions import CLAIM_STATEMENTS, STUDY_STATEMENTS

    opened = lpact.open_run(run)
    claims, study = supported_statements(opened.table(DECISIONS), opened.table(OUTCOME))
    if out is not None:
        refuse_existing(out, run)
        write_tables({CLAIM_STATEMENTS.name: claims, STUDY_STATEMENTS.name: study}, out)
    if json:
        import json as encoder

        told = {"study": study.to_dicts(), "claims": claims.to_dicts()}
        typer.echo(encoder.dumps(told, ensure_ascii=False, indent=2))
        return
    shown = console()
    # The point rules first, as everywhere.
    profiles = sorted(study["gate_profile"].unique(), key=lambda name: (name != "paper", name))
    for profile in profiles:
        rows = study.filter(study["gate_profile"] == profile).sort("statement_order")
        own = claims.filter(claims["gate_profile"] == profile)
        _show_profile(shown, profile, rows.to_dicts(), own.to_dicts())
    if out is not None:
        heading(shown, f"Wrote 2 tables to {out}/")
    say(shown)
    say(shown, f"Check a text: {program()} claims check PAPER --run {run}")


def _show_profile(
    out: Console, profile: str, rows: list[dict[str, Any]], claims: list[dict[str, Any]]
) -> None:
    """The statements of the study and the wording that each claim supports, under one gate profile."""
    first = rows[0]
    heading(
        out,
        f"Study, {profile} gates: outcome {first['outcome']}, {counted(first['n_claims'], 'confirmatory claim')}",
    )
    marks = {True: "yes", False: "no"}
    grid = Grid(("supported", "statement", "why"), styles={"yes": "green", "no": "red"})
    for row in rows:
        grid.add(marks[row["allowed"]], row["meaning"], row["reason"])
    show(out, grid)
    heading(out, f"Wording that each claim supports, {profile} gates")
    wordings = Grid(("claim", "verdict", "supported wording"))
    for row in claims:
        if row["statement_order"] == 0:
            name = "/".join(str(row[key]) for key in ("dataset", "model", "layer", "mechanism"))
            wordings.add(name, row["label"], row["wording"])
    show(out, wordings)


@app.command("check")
def check(
    texts: Annotated[
        list[str], typer.Argument(help="Files to check; - reads standard input.", metavar="PAPER")
    ],
    run: Annotated[Path, typer.Option("--run", help="Folder of a finished run.")],
    format: Annotated[
        Literal["markdown", "latex", "text"] | None,
        typer.Option("--format", help="How the text is written; else the file's name tells."),
    ] = None,
    profile: Annotated[
        str, typer.Option("--profile", help="Gate profile whose verdicts count.")
    ] = "paper",
    json: _Json = False,
) -> None:
    """Find sentences that say more than the verdicts of a run support.

    Reads Markdown, LaTeX and plain text. Exit status 0: none found; 1: some found; 2: an error.
    """
    import lpact
    from lpact.analyses.lpact.claim_audit import Verdicts, check_text, format_of, unread_files

    opened = lpact.open_run(run)
    verdicts = Verdicts.of_tables(opened.table(DECISIONS), opened.table(OUTCOME), profile)
    found: list[tuple[str, Overclaim]] = []
    unread: list[tuple[str, int, str]] = []
    for name in texts:
        text = _read(name)
        written: Format = format or format_of(name)
        found += [(name, one) for one in check_text(text, written, verdicts)]
        unread += [(name, line, target) for line, target in unread_files(text, written)]
    if json:
        _print_json(found, unread, profile)
    else:
        _show_found(console(), found, unread, len(texts), profile)
    if found:
        raise typer.Exit(OVERCLAIMS_FOUND)


def _read(name: str) -> str:
    """The text of a file, or of standard input."""
    from lpact.errors import InputError

    try:
        if name == STANDARD_INPUT:
            return typer.get_binary_stream("stdin").read().decode("utf-8-sig")
        return Path(name).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        got = (
            "bytes that are not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        )
        raise InputError(
            "the text cannot be read",
            where="standard input" if name == STANDARD_INPUT else name,
            got=got,
            expected="a text file in UTF-8",
            remedy="check the path, or convert the file",
        ) from None


def _print_json(
    found: list[tuple[str, Overclaim]], unread: list[tuple[str, int, str]], profile: str
) -> None:
    import dataclasses
    import json

    told = {
        "gate_profile": profile,
        "overclaims": [{"file": name, **dataclasses.asdict(one)} for name, one in found],
        "not_followed": [{"file": f, "line": n, "target": target} for f, n, target in unread],
    }
    typer.echo(json.dumps(told, ensure_ascii=False, indent=2))


def _show_found(
    out: Console,
    found: list[tuple[str, Overclaim]],
    unread: list[tuple[str, int, str]],
    n_texts: int,
    profile: str,
) -> None:
    for name, one in found:
        say(out, f"{name}:{one.line}:{one.column}: {one.statement}")
        say(out, one.sentence, indent=4)
        say(out, f"Claims: {one.statement.meaning}", indent=4)
        say(out, f"Why not: {one.reason}", indent=4)
        say(out, f"Supported: {one.wording}", indent=4)
        say(out)
    for name, line, target in unread:
        say(out, f"{name}:{line}: '{target}' is not followed; check that file too.")
    many = counted(len(found), "overclaim") if found else "No overclaim"
    say(out, f"{many} found in {counted(n_texts, 'text')} ({profile} gates).")
