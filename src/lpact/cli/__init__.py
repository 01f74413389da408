"""COMMAND LINE: one file a command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import io
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lpact.analyses.lpact.cli import assay, calibrate, claims, decide, robustness
from lpact.analyses.lpact.cli import power as power_command
from lpact.cli import (
    audit,
    datasets,
    demo,
    diff,
    explain,
    explore,
    export,
    features,
    init,
    lock,
    plan,
    preregister,
    report,
    run,
    status,
    tables,
    verify,
)
from lpact.cli import list as list_plugins
from lpact.errors import LPactError

USAGE_ERROR = 2
INTERRUPTED = 130
RESUMED = ("run", "demo", "features", "datasets", "power", "calibrate")


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Handle SIGTERM, by which schedulers end jobs, like Ctrl-C: workers are stopped too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Commands(TyperGroup):
    """Runs a command; errors that lpact raises on purpose become messages."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _termination_interrupts():
                return super().invoke(ctx)
        except LPactError as error:
            if ctx.params.get("debug"):
                typer.echo(traceback.format_exc(), err=True)
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(USAGE_ERROR) from None
        except KeyboardInterrupt:
            again = (
                "; run the same command again to resume"
                if ctx.invoked_subcommand in RESUMED
                else ""
            )
            typer.echo(f"interrupted{again}", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_Commands,
    name="lpact",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import lpact

        typer.echo(f"lpact {lpact.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="LPACT_DEBUG", help="Show tracebacks of errors.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """What is a brain score worth? From a study file to one verdict per claim.

    Start with `lpact demo`, or with `lpact init`, `lpact plan` and `lpact run`.
    """


app.command("demo")(demo.command)
app.command("init")(init.command)
app.command("plan")(plan.command)
app.command("preregister")(preregister.command)
app.command("run")(run.command)
app.command("status")(status.command)
app.command("report")(report.command)
app.command("lock")(lock.command)
app.command("verify")(verify.command)
app.command("export")(export.command)
app.command("diff")(diff.command)
app.add_typer(datasets.app, name="datasets")
app.command("features")(features.command)
app.command("audit")(audit.command)
app.command("assay")(assay.command)
app.command("decide")(decide.command)
app.command("robustness")(robustness.command)
app.command("tables")(tables.command)
app.command("explain")(explain.command)
app.command("explore")(explore.command)
app.command("power")(power_command.command)
app.command("calibrate")(calibrate.command)
app.add_typer(claims.app, name="claims")
app.command("list")(list_plugins.command)


def main() -> None:
    """Entry point of the ``lpact`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows another one in its place.
            stream.reconfigure(errors="replace")
    app(prog_name="lpact")
