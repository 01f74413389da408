"""Errors that say what is wrong, where, and what to do about it.

::

    LPactError
    ├── ConfigError          the study file
    ├── InputError           a dataset's files or arrays
    │   ├── RecordingError   one recording
    │   ├── StimulusError    one stimulus: words, audio, mechanisms
    │   ├── FeatureError     one model's features
    │   └── SplitError       train and test rows
    ├── StudyInputError      several of the above, collected by the source audit
    ├── RegistryError        an unknown, duplicate or broken plugin
    ├── TableError           a table that does not match its declaration
    ├── FetchError           a download that cannot be made or trusted
    └── RunError             a run directory that cannot be written or read
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Self

from lpact.wording import listed

MOST_LISTED = 12
"""Names that a remedy lists when none is near."""


class LPactError(Exception):
    """Base of every error that lpact raises on purpose.

    Parameters
    ----------
    what
        One sentence: what is wrong.
    where
        File, table, field or plugin that it is about.
    got, expected
        What was found and what should have been there.
    remedy
        What the user can do now.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        got: object | None = None,
        expected: object | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what, self.where, self.got = what, where, got
        self.expected, self.remedy = expected, remedy
        lines = [what]
        for label, value in zip(("where", "found", "expected", "remedy"), self._details().values(), strict=True):
            if value is not None:
                aligned = str(value).replace("\n", "\n" + " " * 12)
                lines.append(f"  {label + ':':<10}{aligned}")
        super().__init__("\n".join(lines))

    def _details(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("where", "got", "expected", "remedy")}

    def at(self, where: str) -> Self:
        """The same error about another place."""
        return type(self)(self.what, **{**self._details(), "where": where})

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are sent between processes, and pickle does not know about keyword arguments.
        return partial(type(self), self.what, **self._details()), ()


class ConfigError(LPactError):
    """The study file is not valid."""


class InputError(LPactError):
    """A dataset's files or arrays are not usable as they are."""


class RecordingError(InputError):
    """One recording is malformed."""


class StimulusError(InputError):
    """One stimulus (words, audio, mechanisms) is malformed."""


class FeatureError(InputError):
    """One model's features are missing or do not fit the words."""


class SplitError(InputError):
    """Rows cannot be split into training and test rows as requested."""


class RegistryError(LPactError):
    """A plugin is unknown, registered twice, or cannot be imported."""


class TableError(LPactError):
    """A table does not match its declaration."""


class RunError(LPactError):
    """A run directory cannot be written, read or trusted."""


class FetchError(LPactError):
    """A download cannot be made, completed or trusted."""


class StudyInputError(LPactError):
    """Every input problem that the source audit met, in one error."""

    def __init__(self, problems: Sequence[InputError]) -> None:
        self.problems = tuple(problems)
        listing = "\n\n".join(f"[{i}] {p}" for i, p in enumerate(self.problems, start=1))
        super().__init__(f"{len(self.problems)} input problem(s) must be fixed before the study can run:\n\n{listing}")

    def __reduce__(self) -> tuple[object, ...]:
        return (StudyInputError, (list(self.problems),))


def require_known(
    name: str, known: Iterable[str], noun: str, *, where: str, error: type[LPactError] = InputError
) -> None:
    """Raise ``error`` unless ``name`` is among the known ones; ``noun`` is the kind of thing it should name."""
    known = list(known)
    if name not in known:
        raise error(
            f"there is no {noun} '{name}'",
            where=where,
            got=f"'{name}'",
            expected=f"one of {listed(known, MOST_LISTED)}" if known else None,
            remedy=did_you_mean(name, known),
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a remedy that names the nearest known name, or all of them."""
    known = sorted(known)
    near = [own for own in known if own.casefold() == name.casefold()]
    near = near or difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    if not known:
        return "none is known"
    return f"use one of: {listed(known, MOST_LISTED)}"
