"""Which evidence levels a dataset can carry, from sizes and annotations alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lpact.config import AuditConfig, ControlsConfig, ReadoutConfig, RelationalConfig, Role
from lpact.config import StrippingConfig as Stripping
from lpact.controls.base import CONTROLS, ControlInputs
from lpact.datasets.base import RecordingId, Stimulus
from lpact.features.mechanisms import MECHANISMS, MechanismInputs, mechanism_matrix
from lpact.features.parsing.parse import read_parse
from lpact.grid.words import story_codes
from lpact.levels.audit_record import RecordingSummary
from lpact.levels.audit_rows import mode_rows
from lpact.math.types import IntArray
from lpact.reasons import Reason

NO_USABLE = "no recording is usable at level 1"


@dataclass(frozen=True)
class Level:
    """One thing that a study may want of the dataset: possible or not, and why or how."""

    what: str
    possible: bool
    detail: str


@dataclass(frozen=True)
class StimulusFacts:
    """What the words of a stimulus allow: mechanisms that need no model, and controls by their reason."""

    mechanisms: tuple[str, ...]
    lacking: Mapping[str, str]
    controls: Mapping[str, str]
    """Control that needs no model → empty where it is possible, else why it is not."""


class Look(Protocol):
    """What is known of a recording."""

    @property
    def id(self) -> RecordingId:
        """Subject, session, run and stimulus."""
        ...

    @property
    def unit_ids(self) -> tuple[str, ...]:
        """Units."""
        ...

    @property
    def n_events(self) -> int:
        """Rows of the grid."""
        ...

    @property
    def reason(self) -> Reason:
        """Why it is of no use at level 1, or ok."""
        ...


def words_facts(stimulus: Stimulus) -> StimulusFacts:
    """Look at a checked stimulus; raises `StimulusError` where its annotations are broken."""
    parse = read_parse(stimulus, None)
    names = Stripping().mechanisms
    _, available, _ = mechanism_matrix(names, MechanismInputs(stimulus, parse=parse))
    lacking = {n: _needs(n) for n in names if n not in available}
    return StimulusFacts(available, lacking, _controls(stimulus))


def _needs(mechanism: str) -> str:
    if MECHANISMS.get(mechanism).reads_language:
        return "a language model"
    return "a parser (mechanisms.parser)"


def _controls(stimulus: Stimulus) -> dict[str, str]:
    """Controls that are made from features alone: what sentences and stories allow."""
    n_words = stimulus.words.height
    sentence: IntArray = stimulus.words["sentence_id"].to_numpy()
    # Features of any model are at least as slow as noise, so that what noise does not allow is not possible.
    noise = np.random.default_rng(0).standard_normal((n_words, 2))
    inputs = ControlInputs(noise, sentence, story_codes(stimulus.words), 1, {}, lambda *_: noise)
    found = {}
    for name in ControlsConfig().include:
        control = CONTROLS.build(name)
        missing = control.unavailable(inputs) if n_words else None
        of_the_model = control.contexts() or (
            missing is not None and missing.reason is Reason.NO_OTHER_LAYER
        )
        if not of_the_model:
            why = "" if n_words else "no words"
            found[name] = why if missing is None else missing.detail or _lowered(missing.reason)
    return found


def supported(
    recordings: Sequence[Look], facts: Mapping[str, StimulusFacts], role: Role
) -> tuple[Level, ...]:
    """What the dataset can carry, level by level."""
    usable = [r for r in recordings if r.reason is Reason.OK]
    return (
        _predictive(recordings, usable),
        _relational(usable),
        _mechanisms(usable, facts),
        _reliability(usable),
        _control_level(facts),
        _confirmatory(usable, role),
    )


def _predictive(recordings: Sequence[Look], usable: Sequence[Look]) -> Level:
    what = "level 1, predictive"
    if not recordings:
        return Level(what, False, "no recording with words")
    detail = (
        f"{len(usable)} of {len(recordings)} recordings have enough events for "
        f"{ReadoutConfig().folds} folds"
    )
    if lacking := [r for r in recordings if r.reason is not Reason.OK]:
        first = lacking[0]
        detail += f"; {first.id} does not: {first.reason.value} ({first.n_events} events)"
    return Level(what, bool(usable), detail)


def _relational(usable: Sequence[Look]) -> Level:
    if not usable:
        return Level("level 2, relational", False, NO_USABLE)
    minimum = RelationalConfig().min_units
    enough = [r for r in usable if len(r.unit_ids) >= minimum]
    largest = max(len(r.unit_ids) for r in usable)
    return Level(
        "level 2, relational",
        bool(enough),
        f"{len(enough)} of {len(usable)} usable recordings have {minimum} units or more (relational.min_units); "
        f"the largest has {largest}",
    )


def _mechanisms(usable: Sequence[Look], facts: Mapping[str, StimulusFacts]) -> Level:
    names = Stripping().mechanisms
    every = list(facts.values())
    if not every:
        return Level("level 3, mechanisms", False, "no stimulus with words")
    given = [n for n in names if all(n in f.mechanisms for f in every)]
    needs: dict[str, list[str]] = {}
    for name in names:
        if name not in given:
            why = next(f.lacking[name] for f in every if name in f.lacking)
            needs.setdefault(why, []).append(name)
    parts = [f"in the dataset: {', '.join(given) or 'none'}"]
    parts += [f"with {what}: {', '.join(own)}" for what, own in needs.items()]
    if not usable:
        parts.insert(0, NO_USABLE)
    return Level("level 3, mechanisms", bool(usable), "; ".join(parts))


def _reliability(usable: Sequence[Look]) -> Level:
    if not usable:
        return Level("level 4, reliability", False, NO_USABLE)
    summaries = [RecordingSummary(r.id, r.unit_ids, r.n_events, 1, 1, ()) for r in usable]
    rows = mode_rows("", summaries, RelationalConfig().min_units)
    parts = [
        f"{row['mode']}: {row['n_recordings']} recordings"
        if row["possible"]
        else f"{row['mode']}: no, {_lowered(row['reason'])}"
        for row in rows
    ]
    return Level("level 4, reliability", any(r["possible"] for r in rows), "; ".join(parts))


def _control_level(facts: Mapping[str, StimulusFacts]) -> Level:
    every = list(facts.values())
    if not every:
        return Level("severe controls", False, "no stimulus with words")
    impossible = {n: why for f in every for n, why in f.controls.items() if why}
    possible = [n for n in every[0].controls if n not in impossible]
    detail = f"without a model: {', '.join(possible) or 'none'}"
    for name, why in impossible.items():
        detail += f"; {name}: no, {why}"
    needed = AuditConfig().required_controls
    return Level("severe controls", not set(needed) & set(impossible), detail)


def _confirmatory(usable: Sequence[Look], role: Role) -> Level:
    least = AuditConfig()
    covered = [r for r in usable if len(r.unit_ids) >= least.min_brain_units]
    enough = len(covered) >= least.min_subject_runs
    detail = (
        f"role by default: {role}; {len(covered)} subject-runs with {least.min_brain_units} units or more, "
        f"{least.min_subject_runs} needed"
    )
    if role != "primary":
        detail += "; only primary is confirmatory"
    return Level("confirmatory", enough and role == "primary", detail)


def _lowered(reason: object) -> str:
    """A reason's explanation inside a sentence."""
    text = reason.explanation if isinstance(reason, Reason) else str(reason)
    return (text[:1].lower() + text[1:]).rstrip(".")
