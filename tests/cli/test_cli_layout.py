"""Tables and texts as they are printed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from lpact.analyses.explanation import Block
from lpact.cli._options import program
from lpact.cli._terminal import (
    GAP,
    broken,
    drawing_on,
    print_json,
    say,
    show_blocks,
    show_table,
    table_width,
)
from tiny_study import Lpact, TinyRun

WORDS = st.text(alphabet="ab_/-, \n", max_size=80)
HEADERS = ("one", "two", "n")
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Busy machines are slow at drawing the first example."""


def printed(make: Callable[[], None], width: int | None = None) -> list[str]:
    """Lines that are printed on a terminal of this width, or into a file."""
    file = io.StringIO()
    terminal = width is not None
    out = Console(file=file, width=width, force_terminal=terminal, markup=False, highlight=False, emoji=False)
    with drawing_on(out):
        make()
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).split("\n")[:-1]


@UNHURRIED
@given(rows=st.lists(st.tuples(WORDS, WORDS, st.integers().map(str)), max_size=5))
def test_a_table_keeps_every_cell_whole_in_a_file(rows: list[tuple[str, str, str]]) -> None:
    lines = printed(lambda: show_table(HEADERS, rows, right=("n",), indent=0))
    assert all(line == line.rstrip() for line in lines)
    text = "".join("".join(lines).split())
    assert sorted(text) == sorted("onetwon" + "".join("".join("".join(r).split()) for r in rows))


@UNHURRIED
@given(
    rows=st.lists(st.tuples(WORDS, WORDS, st.integers(0, 9999).map(str)), max_size=5),
    width=st.integers(30, 100),
)
def test_a_table_fits_a_terminal_and_keeps_every_cell(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = printed(lambda: show_table(HEADERS, rows, right=("n",)), width)
    assert all(len(line) <= width for line in lines)
    text = "".join("".join(lines).split())
    assert sorted(text) == sorted("onetwon" + "".join("".join("".join(r).split()) for r in rows))


def test_texts_are_aligned_left_and_numbers_right() -> None:
    columns, rows = ("name", "n"), [("long [b]name", 1), ("x", 12345)]
    assert printed(lambda: show_table(columns, rows)) == [
        "  name               n",
        "  long [b]name       1",
        "  x             12,345",
    ]
    assert table_width(columns, rows) == len("long [b]name") + GAP + len("12,345")


def test_blocks_are_title_lines_and_table() -> None:
    block = Block("Title", ("a line", "  indented"), ("a", "n"), (("x", "1"),), frozenset({"n"}))
    assert printed(lambda: show_blocks([block, Block("Empty")])) == [
        "",
        "Title",
        "  a line",
        "    indented",
        "  a  n",
        "  x  1",
        "",
        "Empty",
    ]


def test_markup_in_texts_is_not_interpreted() -> None:
    assert printed(lambda: say("[red]sub-01[/red] :smile:")) == ["[red]sub-01[/red] :smile:"]


def test_lines_in_pipes_are_never_broken() -> None:
    text = "word " * 100
    assert broken(text, None, 4) == [f"    {text}".rstrip()]
    assert max(len(line) for line in broken(text, 40, 4, 3)) <= 40
    assert broken("aaaa bbbb cccc dddd eeee ffff", 25, 1, 2) == [
        " aaaa bbbb cccc dddd eeee",
        "   ffff",
    ]


def test_colours_are_for_terminals_and_can_be_switched_off(lpact: Lpact, tiny_run: TinyRun) -> None:
    args = ("explain", tiny_run.folder, "sim/drift/2/surprisal")
    green, red = "\x1b[32m[pass]", "\x1b[31m[fail]"
    coloured = lpact(*args, FORCE_COLOR="1", TERM="xterm").stdout
    assert green in coloured
    assert red in coloured
    assert "\x1b[3" not in lpact(*args, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm").stdout
    assert "\x1b" not in lpact(*args).stdout


def test_lines_to_copy_call_lpact_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "my env" / "lpact"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == f"'{script}'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "lpact"
    monkeypatch.setattr("sys.argv", ["pytest"])
    assert program() == "lpact"


HOSTILE = "u\x1b]0;title\x07\x1b[2J\x9b31m\u202e"
"""A name that would change a terminal's title, clear it, colour it, and turn its text around."""


def test_names_cannot_steer_a_terminal() -> None:
    block = Block(HOSTILE, lines=[HOSTILE], columns=(HOSTILE,), rows=[(HOSTILE,)])
    lines = printed(lambda: (say(HOSTILE), show_blocks([block])))
    assert sum("\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\u202e" in line for line in lines) == 5
    assert all(c.isprintable() for line in lines for c in line)


@pytest.mark.parametrize(
    "command",
    [
        ("tables", "{run}", HOSTILE),
        ("explain", "{run}", HOSTILE),
        ("report", HOSTILE),
        ("plan", HOSTILE),
        ("--debug", "plan", HOSTILE),
    ],
)
def test_errors_cannot_steer_a_terminal(lpact: Lpact, tiny_run: TinyRun, command: tuple[str, ...]) -> None:
    result = lpact(*(part.replace("{run}", str(tiny_run.folder)) for part in command))
    assert result.exit_code == 2
    assert "\\x1b]0;title\\x07" in result.stderr
    assert all(c.isprintable() for line in result.output.split("\n") for c in line)


def test_json_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({HOSTILE: "é"})
    text = capsys.readouterr().out
    assert text.isascii()
    assert json.loads(text) == {HOSTILE: "é"}
