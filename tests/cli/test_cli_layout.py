"""Tables and texts as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_study import Lpact, TinyRun

from lpact.cli._layout import GAP, NARROWEST, Grid, wrap
from lpact.cli._machine import program
from lpact.cli._render import broken, counted, duration, memory, number

WORDS = st.text(alphabet="ab_/-, \n", max_size=80)


@given(text=WORDS, width=st.integers(1, 30))
def test_wrap_loses_nothing_and_fits(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_wrap_breaks_where_a_reader_would() -> None:
    assert wrap("random_matched_autocorr", 15) == ["random_matched_", "autocorr"]
    assert wrap("the best control random_matched_dim", 30) == [
        "the best control",
        "random_matched_dim",
    ]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]


@given(
    rows=st.lists(st.tuples(WORDS, WORDS, st.integers().map(str)), max_size=5),
    width=st.integers(3 * NARROWEST + 2 * GAP, 100),
)
def test_grid_fits_its_width_and_keeps_every_cell(
    rows: list[tuple[str, str, str]], width: int
) -> None:
    grid = Grid(("one", "two", "n"), right=frozenset({"n"}))
    for row in rows:
        grid.add(*row)
    lines = [line.plain for line in grid.lines(width)]
    assert all(len(line) <= width for line in lines)
    assert all(line == line.rstrip() for line in lines)
    printed = "".join("".join(lines).split())
    assert sorted(printed) == sorted("onetwon" + "".join("".join("".join(r).split()) for r in rows))


def test_grid_aligns_texts_left_and_numbers_right() -> None:
    grid = Grid(("name", "n"), right=frozenset({"n"}))
    grid.add("long name", 1)
    grid.add("x", 12345)
    assert [line.plain for line in grid.lines(None, indent=2)] == [
        "  name           n",
        "  long name      1",
        "  x          12345",
    ]
    assert grid.natural_width() == len("long name") + GAP + len("12345")


def test_grid_refuses_a_row_of_another_length() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Grid(("a", "b")).add("only one")


def test_lines_in_pipes_are_never_broken() -> None:
    text = "word " * 100
    assert broken(text, None, 4) == [f"    {text}".rstrip()]
    assert max(len(line) for line in broken(text, 40, 4, 3)) <= 40
    assert broken("aaaa bbbb cccc dddd eeee ffff", 25, 1, 2) == [
        " aaaa bbbb cccc dddd",
        "   eeee ffff",
    ]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "less than a second"), (59.6, "60 s"), (150.0, "2 min"), (9000.0, "2.5 h")],
)
def test_durations(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_numbers() -> None:
    assert memory(3 * 2**20) == "3 MiB"
    assert memory(1.5 * 2**30) == "1.5 GiB"
    assert number(0.12345) == "0.123"
    assert number(None) == number(float("nan")) == "–"
    assert counted(1, "claim") == "1 claim"
    assert counted(1200, "claim") == "1,200 claims"


def test_colours_are_for_terminals_and_can_be_switched_off(lpact: Lpact, tiny_run: TinyRun) -> None:
    args = ("explain", tiny_run.folder, "sim/drift/2/surprisal")
    green, red = "\x1b[32m[pass]", "\x1b[31m[fail]"
    coloured = lpact(*args, FORCE_COLOR="1", TERM="xterm").stdout
    assert green in coloured
    assert red in coloured
    assert "\x1b[3" not in lpact(*args, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm").stdout
    assert "\x1b" not in lpact(*args).stdout


def test_lines_to_copy_call_lpact_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
