"""What is shown while something runs: bars on terminals, lines elsewhere."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime

import pytest
from rich.console import Console

from lpact.run.progress import (
    Estimate,
    _Lines,
    clock_time,
    plain,
    reporter,
    time_left,
)

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def paper() -> io.StringIO:
    return io.StringIO()


def lines_of(paper: io.StringIO, clock: Clock) -> _Lines:
    return _Lines(Console(file=paper, width=40), clock)


def test_plain_lines_are_few_and_say_all(paper: io.StringIO, clock: Clock) -> None:
    told = lines_of(paper, clock)
    told.overall(Estimate(0.25, 30.0))
    told.stage("levels 1 to 3", 100)
    for _ in range(100):
        clock.now += 0.2
        told.advance()
    lines = paper.getvalue().splitlines()
    assert len(lines) == 5, lines  # the start, every five seconds, and the end
    assert lines[0].startswith("levels 1 to 3: 0/100 (0 s); overall 25 %, about 30 s left, ends ")
    assert lines[1].startswith("levels 1 to 3: 25/100 (5 s, about 15 s left); overall 25 %, ")
    assert lines[-1].startswith("levels 1 to 3: 100/100 (20 s); overall 25 %")


def test_without_an_overall_estimate_there_is_only_the_stage(paper: io.StringIO, clock: Clock) -> None:
    told = lines_of(paper, clock)
    told.stage("recordings", 2)
    clock.now += 6.0
    told.advance()
    assert paper.getvalue() == "recordings: 0/2 (0 s)\nrecordings: 1/2 (6 s, about 6 s left)\n"


def test_resumed_steps_do_not_make_a_stage_look_fast(paper: io.StringIO, clock: Clock) -> None:
    told = lines_of(paper, clock)
    told.stage("levels 1 to 3", 100)
    told.resumed(90)
    clock.now += 6.0
    told.advance()
    assert paper.getvalue().splitlines()[-1] == "levels 1 to 3: 91/100 (6 s, about 54 s left)"


def test_a_long_wait_is_told_once_a_minute(paper: io.StringIO, clock: Clock) -> None:
    told = lines_of(paper, clock)
    told.stage("ceilings", 1)
    for _ in range(3600):
        clock.now += 1.0
        told.overall(Estimate(0.5, 60.0))
    assert len(paper.getvalue().splitlines()) == 61


def test_days_are_not_told_every_five_seconds(paper: io.StringIO, clock: Clock) -> None:
    told = lines_of(paper, clock)
    told.stage("levels 1 to 3", 10**6)
    for _ in range(86400):
        clock.now += 1.0
        told.advance()
    assert 1440 <= len(paper.getvalue().splitlines()) < 1700


@pytest.mark.parametrize("terminal", [False, True])
def test_names_stay_text(paper: io.StringIO, terminal: bool) -> None:
    console = Console(file=paper, force_terminal=terminal, width=200)
    with reporter(show=True, console=console) as told:
        told.stage("sub[red]-01[/red] :smile: \x1b]0;title\x07", 1)
        told.advance()
    assert "sub[red]-01[/red] :smile: \\x1b]0;title\\x07" in ESCAPES.sub("", paper.getvalue())
    assert "\x1b]0" not in paper.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_one_bar_for_all_and_one_for_the_stage(paper: io.StringIO, width: int) -> None:
    console = Console(file=paper, force_terminal=True, width=width)
    with reporter(show=True, console=console) as told:
        told.overall(Estimate(0.0, 7200.0))
        told.stage("brain patterns", 2)
        told.resumed(1)
        told.advance()
        told.stage("levels 1 to 3", 40)
        told.advance(10)
        told.overall(Estimate(0.429, 7500.0))
    screen = ESCAPES.sub("", paper.getvalue()).splitlines()
    assert any(line.startswith("brain patterns: 2 in 0 s") for line in screen)
    overall, stage = screen[-2:]
    assert re.search(r"overall +━.* 42 % .*about 2\.1 h left, ends .*\d\d:\d\d", overall), overall
    assert re.search(r"levels 1 to 3 +━.* 10/40 ", stage), stage
    assert max(len(line.rstrip()) for line in screen[-2:]) <= width


def test_bars_without_an_overall_one_stay(paper: io.StringIO) -> None:
    console = Console(file=paper, force_terminal=True, width=100)
    with reporter(show=True, console=console) as told:
        for name in ("first.zip", "second.zip"):
            told.stage(name, 10)
            told.advance(10)
    last = ESCAPES.sub("", paper.getvalue()).splitlines()[-2:]
    assert last[0].lstrip().startswith("first.zip")
    assert last[1].startswith("second.zip")


def test_an_unknown_total_is_not_made_up(paper: io.StringIO) -> None:
    console = Console(file=paper, force_terminal=True, width=100)
    with reporter(show=True, console=console) as told:
        told.stage("file", 0)
        told.advance(3)
    assert re.search(r"file .* 3 ", ESCAPES.sub("", paper.getvalue()))


def test_silence(paper: io.StringIO) -> None:
    with reporter(show=False, console=Console(file=paper)) as told:
        told.stage("a", 1)
        told.advance()
    assert paper.getvalue() == ""


def test_the_end_has_a_date_where_it_is_not_today() -> None:
    now = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
    assert clock_time(600.0, now) == "22:40"
    assert clock_time(7200.0, now) == "2026-03-02 00:30"
    assert clock_time(1e30, now) == "in years"


def test_time_left_in_units_to_act_on() -> None:
    assert [time_left(s) for s in (5.4, 119.0, 600.0, 86400.0)] == [
        "about 5 s left",
        "about 119 s left",
        "about 10 min left",
        "about 24.0 h left",
    ]


def test_plain_spells_out_what_a_terminal_would_obey() -> None:
    assert plain("a\x1b[31m\n\u202eb\ud800é") == "a\\x1b[31m\\n\\u202eb\\ud800é"
