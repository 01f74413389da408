"""Numbers, counts, times and sizes in words."""

from __future__ import annotations

import pytest

from lpact.wording import (
    about,
    cell,
    counted,
    duration,
    enumerated,
    fixed,
    listed,
    names,
    number,
    percent,
    plain,
    setting,
    settings,
    short,
    size,
    span,
)


def test_counts_have_their_noun_in_the_plural() -> None:
    assert counted(1, "claim") == "1 claim"
    assert counted(1200, "claim") == "1,200 claims"
    assert [counted(2, noun) for noun in ("study", "day", "process", "stretch")] == [
        "2 studies",
        "2 days",
        "2 processes",
        "2 stretches",
    ]
    assert counted(0, "stimulus", "stimuli") == "0 stimuli"
    assert [span([3, 3]), span([2, 5, 3])] == ["3", "2 to 5"]
    assert [span([], "row"), span([1], "row"), span([2, 1200], "row")] == [
        "no rows",
        "1 row",
        "2 to 1,200 rows",
    ]


def test_numbers() -> None:
    assert [number(0.12345), number(1234.5), number(0.12345, 4)] == ["0.123", "1.23e+03", "0.1235"]
    assert number(None) == number(float("nan")) == "–"
    assert [number(1e-17, scale=1.0), number(1e-17)] == ["0", "1e-17"]
    assert [setting(10.0), setting(0.05), setting(1e-6)] == ["10", "0.05", "1e-06"]
    assert [fixed(-0.12345), fixed(-0.0001), fixed(0.2, 1, sign=True)] == [
        "−0.123",
        "0.000",
        "+0.2",
    ]
    assert fixed(None) == fixed(float("nan")) == "–"
    assert percent(0.6) == "60 %"
    assert [percent(share, 2) for share in (0.123, 0.994, 0.996, 1.0, 12.5)] == [
        "12 %", "99 %", "100 %", "100 %", "1250 %",
    ]  # fmt: skip


def test_values_of_cells() -> None:
    values = (None, True, False, 1200, 0.123456, [1, 2], list(range(9)), ([0], 9), "text", "a" * 200)
    cells = ["–", "yes", "no", "1,200", "0.1235", "[1, 2]", "[0, 1, 2, 3, … 9 values]", "[0, … 9 values]", "text"]
    assert [cell(value) for value in values] == [*cells, "a" * 159 + "…"]
    assert cell("a" * 200, 1000) == "a" * 200


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "less than a second"), (59.6, "60 s"), (150.0, "2 min"), (9000.0, "2.5 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    assert about(seconds) == (text if seconds < 1 else f"about {text}")


def test_sizes() -> None:
    sizes = (12, 2048, 5 * 2**20, 1.5 * 2**30)
    assert [size(n) for n in sizes] == ["12 B", "2 KiB", "5 MiB", "1.5 GiB"]


def test_lists_and_lines() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefgh"), 3) == "a, b, c and 5 more"
    assert [enumerated("a"), enumerated("ab"), enumerated("abc", "or")] == [
        "a",
        "a and b",
        "a, b or c",
    ]
    assert names(["a\nb", 2]) == "a b and 2"
    assert settings([0.5, 64.0], "Hz") == "0.5 and 64 Hz"
    assert plain("a\x1b[2J\nb") == "a\\x1b[2J\\nb"


def test_the_middle_of_a_long_name_is_left_out() -> None:
    assert short("abcdefghij", 10) == "abcdefghij"
    assert short("abcdefghij", 7) == "abc…hij"
    assert short("two\nlines", 20) == "two lines"
