"""``lpact claims``: what a run supports and forbids, and a check of a text against it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from lpact.cli._options import Json, RunFolder, program, refuse_existing, write_tables
from lpact.cli._terminal import heading, print_json, say, show_table
from lpact.wording import counted

if TYPE_CHECKING:
    import polars as pl

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
    help="Show what a run supports, or check a text against it.",
)


@app.command(_DEFAULT)
def command(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder for the tables of statements.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which statements the verdicts of a run support, and which they forbid.

    For the study as a whole, and for every claim; `lpact claims RUN` is the same.
    """
    import lpact
    from lpact.analyses.lpact.claim_audit import supported_statements
    from lpact.analyses.lpact.tables.decisions import CLAIM_STATEMENTS, STUDY_STATEMENTS

    opened = lpact.open_run(run)
    opened.analysis("lpact")
    claims, study = supported_statements(opened.table(DECISIONS), opened.table(OUTCOME))
    if out is not None:
        refuse_existing(out, run)
        write_tables({CLAIM_STATEMENTS.name: claims, STUDY_STATEMENTS.name: study}, out)
    if as_json:
        print_json({"study": study.to_dicts(), "claims": claims.to_dicts()})
        return
    # The point rules first, as everywhere.
    profiles = sorted(study["gate_profile"].unique(), key=lambda name: (name != "paper", name))
    for profile in profiles:
        rows = study.filter(gate_profile=profile).sort("statement_order")
        _show_profile(profile, rows, claims.filter(gate_profile=profile))
    if out is not None:
        heading(f"Wrote 2 tables to {out}/")
    say(f"\nCheck a text: {program()} claims check PAPER --run {run}")


def _show_profile(profile: str, study: pl.DataFrame, claims: pl.DataFrame) -> None:
    """The statements of the study and the wording that each claim supports, under one gate profile."""
    from lpact.tables import CLAIM_KEY

    outcome, n_claims = study.select("outcome", "n_claims").row(0)
    n_claims = counted(n_claims, "confirmatory claim")
    heading(f"Study, {profile} gates: outcome {outcome}, {n_claims}")
    rows = study.select("allowed", "meaning", "reason").iter_rows()
    show_table(("supported", "statement", "why"), rows)
    heading(f"Wording that each claim supports, {profile} gates")
    first = claims.filter(statement_order=0).iter_rows(named=True)
    wordings = [
        ("/".join(str(row[k]) for k in CLAIM_KEY), row["label"], row["wording"]) for row in first
    ]
    show_table(("claim", "verdict", "supported wording"), wordings)


@app.command("check")
def check(
    texts: Annotated[
        list[str], typer.Argument(help="Files to check; - reads standard input.", metavar="PAPER")
    ],
    run: Annotated[Path, typer.Option("--run", help="Folder of a finished run.")],
    format: Annotated[
        Literal["markdown", "latex", "text"] | None,
        typer.Option("--format", help="Markup of the text; default: inferred from the file name."),
    ] = None,
    profile: Annotated[
        str, typer.Option("--profile", help="Gate profile whose verdicts count.")
    ] = "paper",
    as_json: Json = False,
) -> None:
    """Find sentences that say more than the verdicts of a run support.

    Reads Markdown, LaTeX and plain text. Exit status 0: none found; 1: some found; 2: an error.
    """
    import lpact
    from lpact.analyses.lpact.claim_audit import Verdicts, check_text, format_of, unread_files

    opened = lpact.open_run(run)
    opened.analysis("lpact")
    verdicts = Verdicts.of_tables(opened.table(DECISIONS), opened.table(OUTCOME), profile)
    found: list[tuple[str, Overclaim]] = []
    unread: list[tuple[str, int, str]] = []
    for name in texts:
        text = _read(name)
        written: Format = format or format_of(name)
        found += [(name, one) for one in check_text(text, written, verdicts)]
        unread += [(name, line, target) for line, target in unread_files(text, written)]
    if as_json:
        print_json(
            {
                "gate_profile": profile,
                "overclaims": [{"file": name, **asdict(one)} for name, one in found],
                "not_followed": [{"file": f, "line": n, "target": t} for f, n, t in unread],
            }
        )
    else:
        _show_found(found, unread, len(texts), profile)
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


def _show_found(
    found: list[tuple[str, Overclaim]],
    unread: list[tuple[str, int, str]],
    n_texts: int,
    profile: str,
) -> None:
    for name, one in found:
        say(f"{name}:{one.line}:{one.column}: {one.statement}")
        say(one.sentence, indent=4)
        say(f"Claims: {one.statement.meaning}", indent=4)
        say(f"Why not: {one.reason}", indent=4)
        say(f"Supported: {one.wording}\n", indent=4)
    for name, line, target in unread:
        say(f"{name}:{line}: '{target}' is not followed; check that file too.")
    many = counted(len(found), "overclaim") if found else "No overclaim"
    say(f"{many} found in {counted(n_texts, 'text')} ({profile} gates).")
