"""Command line. Nothing heavy is imported before a command runs.

Commands that every analysis shares are listed here. Those of one analysis come from its class (`Analysis.commands`);
each analysis is a verb: ``lpact <analysis> STUDY`` is ``lpact run STUDY --analysis <analysis>``.
"""

from __future__ import annotations

import importlib
import io
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lpact.cli._terminal import complain
from lpact.errors import LPactError, RegistryError, RunError

USAGE_ERROR = 2
INTERRUPTED = 130
SHARED = {
    "demo": "lpact.cli.study:demo",
    "init": "lpact.cli.study:init",
    "plan": "lpact.cli.study:plan",
    "preregister": "lpact.cli.preregister:command",
    "run": "lpact.cli.study:run",
    "status": "lpact.cli.status:command",
    "report": "lpact.cli.read:report",
    "explain": "lpact.cli.read:explain",
    "claims": "lpact.cli.claims:app",
    "explore": "lpact.cli.read:explore",
    "tables": "lpact.cli.read:tables",
    "lock": "lpact.cli.archive:lock",
    "verify": "lpact.cli.archive:verify",
    "export": "lpact.cli.archive:export",
    "diff": "lpact.cli.archive:diff",
    "audit": "lpact.cli.study:audit",
    "datasets": "lpact.cli.datasets:app",
    "features": "lpact.cli.features:command",
    "list": "lpact.cli.list:command",
}
"""Commands that know no analysis by name, and where they are."""
VERB = "lpact.cli.study:run --analysis"
"""Stands for the command that an analysis is."""


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


def _of_analyses() -> Iterator[tuple[str, str]]:
    """Commands of analyses and their verbs, built-in ones first; raises `RegistryError` for a name that is taken.

    Names come from package metadata: only analyses of other packages are imported here.
    """
    from importlib.metadata import entry_points

    from lpact.analyses import BUILT_IN, COMMANDS

    taken = set(SHARED)
    others = sorted(point.name for point in entry_points(group="lpact.analyses"))
    for analysis in dict.fromkeys([*BUILT_IN, *others]):
        if analysis in BUILT_IN:
            own: Mapping[str, str] = COMMANDS[analysis]
        else:
            from lpact.registry import ANALYSES

            own = ANALYSES.get(analysis).commands
        for name, place in {**own, analysis: VERB}.items():
            if name in taken:
                raise RegistryError(
                    f"there are two commands named '{name}'",
                    where=f"analysis '{analysis}'",
                    got=place,
                    expected="a name that no other command has",
                    remedy="rename the command, or uninstall the package of the analysis",
                )
            taken.add(name)
            yield name, place


def _build(name: str, place: str) -> Any:
    """A command from ``"module:function"`` or ``"module:app"``."""
    module, _, attribute = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RegistryError(
            f"the command '{name}' cannot be imported",
            where=place,
            got=f"{type(error).__name__}: {error}",
            expected="a function or a Typer app",
            remedy="fix or uninstall the package that it comes from",
        ) from error
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    return command


def _build_verb(analysis: str) -> Any:
    """``lpact run`` with the option ``--analysis`` set."""
    command = _build(analysis, SHARED["run"])
    run = command.callback
    command.callback = partial(run, analysis=analysis)
    command.params = [param for param in command.params if param.name != "analysis"]
    command.help = command.short_help = f"Run the analysis '{analysis}' of a study alone."
    return command


class _Commands(TyperGroup):
    """Imports a command when it is needed; errors that lpact raises on purpose become messages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Shared commands, those of analyses, and one verb per analysis."""
        del ctx
        names = [*SHARED]  # `list` is a module here
        try:
            names += (name for name, _ in _of_analyses())
        except RegistryError as error:
            complain(f"error: {error}")
        return names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One command, imported now."""
        place = SHARED.get(cmd_name)
        place = place or next((own for name, own in _of_analyses() if name == cmd_name), None)
        if place is None:
            # Typer suggests similar names from here.
            self.commands = dict.fromkeys(self.list_commands(ctx))  # type: ignore[assignment]
            return None
        return _build_verb(cmd_name) if place == VERB else _build(cmd_name, place)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with _termination_interrupts():
                return super().invoke(ctx)
        except (LPactError, MemoryError) as error:
            if ctx.params.get("debug"):
                complain(traceback.format_exc())
            shown = error if isinstance(error, LPactError) else _shortage(error)
            complain(f"error: {shown}")
            raise typer.Exit(USAGE_ERROR) from None
        except KeyboardInterrupt:
            typer.echo("interrupted; run the same command again to continue", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _shortage(error: MemoryError) -> RunError:
    return RunError(
        "memory is short",
        got=str(error) or "nothing left to allocate",
        expected="enough for the study (`lpact plan` says how much)",
        remedy="use fewer --workers, make the study smaller, or use a machine with more memory",
    )


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
def _option_values(
    debug: Annotated[bool, typer.Option("--debug", envvar="LPACT_DEBUG", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """What is a brain score worth? From a study file to one verdict per claim.

    Start with `lpact demo`, or with `lpact init`, `lpact plan` and `lpact run`.
    """


def main() -> None:
    """Entry point of the ``lpact`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows another one in its place.
            stream.reconfigure(errors="replace")
    app(prog_name="lpact")
