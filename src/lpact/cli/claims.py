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
    from lpact.claim_audit import Format, Overclaim, Verdicts
    from lpact.study import Run

OVERCLAIMS_FOUND = 1
STANDARD_INPUT = "-"
_DEFAULT = "show"
Which = Annotated[
    str | None,
    typer.Option("--analysis", help="Analysis of the run; default: the first with statements."),
]


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
    out: Annotated[Path | None, typer.Option("--out", help="New folder for the tables of statements.")] = None,
    analysis: Which = None,
    as_json: Json = False,
) -> None:
    """Say which statements the verdicts of a run support, and which they forbid.

    For the study as a whole, and for every claim; `lpact claims RUN` is the same.
    """
    import lpact
    from lpact.claim_audit import tabulate
    from lpact.errors import RunError

    opened = lpact.open_run(run)
    found = _verdicts(opened, analysis)
    claims, study = tabulate(found)
    if out is not None:
        names = found[0].tables
        if names is None:
            raise RunError(
                "the analysis declares no tables of statements",
                where="option --out",
                got=str(out),
                expected="an analysis with such tables",
                remedy="use --json, which prints them",
            )
        refuse_existing(out, run)
        write_tables({names[0].name: claims, names[1].name: study}, out)
    if as_json:
        print_json({"study": study.to_dicts(), "claims": claims.to_dicts()})
        return
    for own in found:
        _show(own)
    if out is not None:
        heading(f"Wrote 2 tables to {out}/")
    say(f"\nCheck a text: {program()} claims check PAPER --run {run}")


def _verdicts(run: Run, analysis: str | None, profile: str | None = None) -> list[Verdicts]:
    """Verdicts of an analysis, or of the first that has any: under one profile, or under all of the run."""
    from lpact.errors import RunError

    for chosen in [run.analysis(analysis)] if analysis else run.analyses.values():
        profiles = [profile] if profile else list(chosen.claims.profiles) or [""]
        found = [own for name in profiles if (own := chosen.verdicts(run.material, name))]
        if found:
            return found
    raise RunError(
        "no statement depends on the verdicts of this analysis",
        where=str(run.root),
        got=analysis or ", ".join(run.analyses),
        expected="an analysis whose verdicts support statements",
        remedy="`lpact explain` says what it found",
    )


def _show(found: Verdicts) -> None:
    """The statements of the study and the wording that each claim supports, under one gate profile."""
    rules = f", {found.profile} gates" if found.profile else ""
    heading(f"Study{rules}: {found.summary}")
    show_table(
        ("supported", "statement", "why"),
        [(row["allowed"], row["meaning"], row["reason"]) for row in found.of_study()],
    )
    heading(f"Wording that each claim supports{rules}")
    wordings = [("/".join(map(str, v.claim or ())), v.label, v.wording) for v in found.claims]
    show_table(("claim", "verdict", "supported wording"), wordings)


@app.command("check")
def check(
    texts: Annotated[list[str], typer.Argument(help="Files to check; - reads standard input.", metavar="PAPER")],
    run: Annotated[Path, typer.Option("--run", help="Folder of a finished run.")],
    format: Annotated[
        Literal["markdown", "latex", "text"] | None,
        typer.Option("--format", help="Markup of the text; default: inferred from the file name."),
    ] = None,
    analysis: Which = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="Gate profile; default: the analysis' first.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find sentences that say more than the verdicts of a run support.

    Reads Markdown, LaTeX and plain text. Exit status 0: none found; 1: some found; 2: an error.
    """
    import lpact
    from lpact.claim_audit import check_text, format_of, unread_files

    verdicts = _verdicts(lpact.open_run(run), analysis, profile)[0]
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
                "gate_profile": verdicts.profile,
                "overclaims": [{"file": name, **asdict(one)} for name, one in found],
                "not_followed": [{"file": f, "line": n, "target": t} for f, n, t in unread],
            }
        )
    else:
        _show_found(found, unread, len(texts), verdicts.profile)
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
        got = "bytes that are not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
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
    rules = f" ({profile} gates)" if profile else ""
    say(f"{many} found in {counted(n_texts, 'text')}{rules}.")
