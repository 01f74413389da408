"""What a verification found, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lpact.cli._render import broken, counted, heading, say, width_of

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.archive import Problem, Verification

MOST_SHOWN = 10
"""Problems of one kind that are listed; JSON holds all."""
TITLES = {
    "lock": "The lock",
    "file": "Files",
    "option": "Options of the configuration",
    "input": "Source files that the manifest names",
    "manifest": "The manifest",
    "table": "Rows and columns of tables",
    "units": "Order of units",
    "decision": "Decisions and labels: made again from the tables → stored",
    "registration": "The preregistration: compared again → stored",
    "report": "The report",
    "crate": "The description of the archive",
    "limit": "Not checked, for want of memory or time here",
}


def show_verification(out: Console, found: Verification, *, most: int | None = MOST_SHOWN) -> None:
    """What was checked, what is wrong, and what a reader should know."""
    state = "locked" if found.locked else "not locked"
    say(out, f"{found.path}: {state}")
    if found.digest is not None:
        say(out, f"root digest {found.digest}", indent=2)
    for text in found.checked:
        say(out, text, indent=2)
    show_problems(out, found.problems, most=most)
    if found.notes:
        heading(out, "To know")
        for text in found.notes:
            say(out, text, indent=2)
    heading(out, verdict(found))


def verdict(found: Verification) -> str:
    """The result in one sentence."""
    if found.problems and all(problem.kind == "limit" for problem in found.problems):
        return "Not everything could be checked here; nothing of what was checked differs."
    if found.problems:
        return f"{counted(len(found.problems), 'problem')} found."
    if not found.locked:
        return "Nothing differs, but the run is not locked."
    return "Nothing differs: the run is as it was locked."


def show_problems(out: Console, problems: Sequence[Problem], *, most: int | None) -> None:
    """Problems by kind; of each kind at most ``most``, and how many more there are."""
    for kind, title in TITLES.items():
        own = [problem for problem in problems if problem.kind == kind]
        if not own:
            continue
        heading(out, f"{title} ({len(own)})")
        for problem in own[:most]:
            for line in broken(problem.text, width_of(out), 2, 2):
                out.print(line, soft_wrap=True)
        if most is not None and len(own) > most:
            say(out, f"and {len(own) - most} more; --json names all", indent=2)
