"""Run the code of one documentation page: ``python run_page.py PAGE`` in an empty folder.

Blocks run in order. Python blocks share one namespace; shell blocks run in the same folder. A block after
``<!-- not run: reason -->`` is left out, and so are shell blocks that call ``make``. Commands that need nothing of a
shell run in this process, by the entry point of the command line: a new process for each would import everything again.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OF_A_SHELL = re.compile(r"[|&;<>()$`*?~]")
NOT_RUN = re.compile(r"<!-- not run: \S[^>]*-->\s*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, first line, and whether the page says not to run it."""

    language: str
    text: str
    line: int
    excused: bool

    @property
    def commands(self) -> list[str]:
        """Shell commands, continued lines joined, comments left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]

    @property
    def runs(self) -> bool:
        """Whether the block is code that must run here."""
        if self.excused or self.language not in ("python", "bash"):
            return False
        return self.language == "python" or not any(c.startswith("make") for c in self.commands)


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block of a page."""
    for match in FENCE.finditer(text):
        before = text[: match.start()]
        excused = NOT_RUN.search(before) is not None
        yield Block(match[1], match[2], before.count("\n") + 2, excused)


def run_page(page: Path) -> int:
    """Run all blocks of a page; returns how many."""
    namespace: dict[str, object] = {"__name__": "__page__"}
    n_run = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        if not block.runs:
            continue
        n_run += 1
        if block.language == "python":
            source = "\n" * (block.line - 1) + block.text
            # The page decides on its own future imports, not this file.
            exec(compile(source, str(page), "exec", dont_inherit=True), namespace)
            continue
        for command in block.commands:
            if not command.startswith("lpact "):
                raise SystemExit(f"{page}:{block.line}: only lpact and make are run, not: {command}")
            status = run_command(command)
            if status != 0:
                raise SystemExit(f"{page}:{block.line}: exit {status} from: {command}")
    return n_run


def run_command(command: str) -> int:
    """Run an ``lpact`` command as it is typed; returns its exit status."""
    words = shlex.split(command, comments=True)
    if OF_A_SHELL.search("".join(words)):
        script = f"{Path(sys.executable).parent}/{command}"
        return subprocess.run(["bash", "-c", script], check=False).returncode
    from lpact.cli import main

    sys.argv = words
    try:
        main()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    return 0


if __name__ == "__main__":
    print(f"{run_page(Path(sys.argv[1]))} blocks")
