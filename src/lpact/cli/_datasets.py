"""What ``lpact datasets fetch`` shows, as text and as JSON."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from lpact.cli._layout import Grid
from lpact.cli._render import counted, file_size, heading, say, show

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.datasets.catalogue import Download
    from lpact.datasets.fetch import Command, FetchPlan

MAX_SHOWN = 20


def source_lines(download: Download) -> list[tuple[str, str]]:
    """Where a dataset comes from, as (label, text)."""
    lines = [
        (
            "source",
            f"{download.identifier} ({download.homepage})"
            if download.identifier
            else download.homepage,
        ),
        ("version", download.version),
        ("size", download.size),
        ("licence", download.licence),
        ("cite", download.citation),
    ]
    return [(label, text) for label, text in lines if text]


def show_plan(out: Console, plan: FetchPlan) -> None:
    """Print what a download is, and what it takes."""
    say(out, f"{plan.name} → {plan.folder}")
    for label, text in source_lines(plan.download):
        say(out, f"{label + ':':<9}{text}", indent=2)
    if plan.download.include and not plan.by_hand:
        say(out, f"{'parts:':<9}{', '.join(plan.download.include)}", indent=2)
    if plan.download.steps:
        heading(out, "What you must do yourself" if not plan.by_hand else "How to get it")
        for number, step in enumerate(plan.download.steps, start=1):
            say(out, f"{number}. {step}", indent=2)
    if plan.commands:
        heading(out, "Commands that would run")
        for command in plan.commands:
            # Commands to copy are never broken.
            out.print(f"  {command_text(command)}", soft_wrap=True, markup=False, highlight=False)
    if plan.lacking:
        say(out, f"not installed; install it first: {plan.lacking}", indent=2)
    if plan.files:
        _show_files(out, plan)
    if plan.by_hand and not plan.download.steps:
        heading(out, "How to get it")
        say(out, f"by hand, from {plan.download.homepage}", indent=2)


def _show_files(out: Console, plan: FetchPlan) -> None:
    left = plan.n_bytes_left
    known = "size not published" if left is None else f"{file_size(left)} to download"
    heading(out, f"{counted(len(plan.files), 'file')} by HTTPS, {known}")
    grid = Grid(("file", "size", "checksum", "from"), right=frozenset({"size"}))
    for file in plan.files[:MAX_SHOWN]:
        size = "" if file.n_bytes is None else file_size(file.n_bytes)
        grid.add(file.path, size, "published" if file.sha256 else "none", file.url)
    show(out, grid)
    if len(plan.files) > MAX_SHOWN:
        say(out, f"… and {len(plan.files) - MAX_SHOWN} more", indent=2)


def command_text(command: Command) -> str:
    """A command to copy. Files that it finds are written as globs, which the shell expands inside ``cd``."""
    if not command.globs:
        return shlex.join(command.arguments)
    program, _, folder, *rest = command.arguments
    globs = [glob.removesuffix("**/*").removesuffix("/**") or "." for glob in command.globs]
    return f"(cd {shlex.quote(folder)} && {shlex.join([program, *rest])} {' '.join(globs)})"


def plan_json(plan: FetchPlan) -> str:
    """The same as JSON."""
    download = plan.download
    values = {
        "dataset": plan.name,
        "to": str(plan.folder),
        "method": download.method,
        "identifier": download.identifier,
        "version": download.version,
        "size": download.size,
        "licence": download.licence,
        "homepage": download.homepage,
        "citation": download.citation,
        "include": list(download.include),
        "steps": list(download.steps),
        "commands": [
            {"arguments": list(c.arguments), "globs": list(c.globs)} for c in plan.commands
        ],
        "files": [vars(file) for file in plan.files],
        "n_bytes_left": plan.n_bytes_left if plan.files else None,
        "lacking": plan.lacking,
    }
    return json.dumps(values, indent=2, ensure_ascii=False)
