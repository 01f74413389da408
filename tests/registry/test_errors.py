"""Errors say what, where, found, expected and remedy, and survive a trip to another process."""

from __future__ import annotations

import copy
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from lpact import errors
from lpact.errors import (
    FeatureError,
    InputError,
    LPactError,
    RecordingError,
    StudyInputError,
    did_you_mean,
)

FULL = {
    "where": "words.tsv, row 3",
    "got": "-1.0 s",
    "expected": "a time ≥ 0 s",
    "remedy": "mend the onset",
}


def subclasses(kind: type[LPactError]) -> set[type[LPactError]]:
    """Every class of `lpact.errors` below ``kind``; other modules may have their own."""
    below = set(kind.__subclasses__()).union(*(subclasses(k) for k in kind.__subclasses__()))
    return {own for own in below if own.__module__ == errors.__name__}


PLAIN = sorted(subclasses(LPactError) - {StudyInputError}, key=lambda kind: kind.__name__)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = {line.split("── ")[1].split()[0] for line in (errors.__doc__ or "").splitlines() if "── " in line}
    assert drawn == {kind.__name__ for kind in subclasses(LPactError)}


@pytest.mark.parametrize("kind", PLAIN)
def test_the_message_holds_every_part(kind: type[LPactError]) -> None:
    error = kind("the onset is negative", **FULL)
    assert str(error).splitlines() == [
        "the onset is negative",
        "  where:    words.tsv, row 3",
        "  found:    -1.0 s",
        "  expected: a time ≥ 0 s",
        "  remedy:   mend the onset",
    ]


def test_parts_that_are_not_given_are_not_shown() -> None:
    assert str(LPactError("nothing else is known")) == "nothing else is known"


def test_a_falsy_value_is_shown() -> None:
    assert "found:    0" in str(LPactError("too few", got=0))


def test_input_errors_can_be_caught_together() -> None:
    assert issubclass(RecordingError, InputError)
    assert issubclass(FeatureError, InputError)
    assert not issubclass(StudyInputError, InputError)


@pytest.mark.parametrize("kind", PLAIN)
def test_copies_are_equal(kind: type[LPactError]) -> None:
    error = kind("the onset is negative", **FULL)
    twin = copy.deepcopy(error)
    assert type(twin) is kind
    assert vars(twin) == vars(error)
    assert str(twin) == str(error)


def test_several_problems_are_all_told() -> None:
    problems = [RecordingError("first", **FULL), FeatureError("second", remedy="try again")]
    error = StudyInputError(problems)
    message = str(error)
    assert "2 input problem(s)" in message
    assert message.index("[1] first") < message.index("[2] second")
    assert "try again" in message
    twin = copy.deepcopy(error)
    assert [str(p) for p in twin.problems] == [str(p) for p in problems]
    assert [type(p) for p in twin.problems] == [RecordingError, FeatureError]


def fail(several: bool) -> None:
    """Raise in a worker process."""
    problem = RecordingError("the onset is negative", **FULL)
    raise StudyInputError([problem, problem]) if several else problem


def test_errors_cross_process_borders_whole() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        one, many = pool.submit(fail, False).exception(), pool.submit(fail, True).exception()
    assert isinstance(one, RecordingError)
    assert (one.where, one.got, one.expected, one.remedy) == tuple(FULL.values())
    assert isinstance(many, StudyInputError)
    assert [p.where for p in many.problems] == [FULL["where"]] * 2


@pytest.mark.parametrize(
    ("name", "known", "remedy"),
    [
        ("circular_shft", ["circular_shift", "static"], "did you mean 'circular_shift'?"),
        ("zzz", ["b", "a"], "use one of: a, b"),
        ("zzz", [], "none is known"),
        ("a", ["a"], "did you mean 'a'?"),
        ("V2", ["V1", "v2"], "did you mean 'v2'?"),
    ],
)
def test_did_you_mean(name: str, known: list[str], remedy: str) -> None:
    assert did_you_mean(name, known) == remedy
    assert did_you_mean(name, iter(reversed(known))) == remedy
