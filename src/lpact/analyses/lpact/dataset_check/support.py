"""Which evidence levels a dataset can carry, from sizes and annotations alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpact.analyses.lpact.config import AuditConfig, RelationalConfig
from lpact.analyses.lpact.dataset_check.chain import Link
from lpact.analyses.lpact.dataset_check.looks import NO_USABLE, Look, StimulusFacts, usable_of
from lpact.analyses.lpact.dataset_check.reliable import pattern_modes, response_modes
from lpact.codes import Reason
from lpact.config import MechanismsConfig, ReadoutConfig, Role
from lpact.datasets.base import Stimulus
from lpact.features.mechanisms import MECHANISMS, MechanismInputs, mechanism_matrix
from lpact.features.parsing.parse import read_parse

UNITS_UNSEEN = "units were not looked at (--deep does)"


@dataclass(frozen=True)
class Level:
    """One thing that a study may want of the dataset: possible or not, and why or how."""

    what: str
    possible: bool
    detail: str


def words_facts(stimulus: Stimulus) -> StimulusFacts:
    """Look at a checked stimulus; raises `StimulusError` where its annotations are broken."""
    parse = read_parse(stimulus, None)
    names = MechanismsConfig().include
    _, available, _ = mechanism_matrix(names, MechanismInputs(stimulus, parse=parse))
    lacking = {n: _needs(n) for n in names if n not in available}
    offer = stimulus.features
    models = () if offer is None else tuple(dict.fromkeys(k.model for k in offer.keys()))  # noqa: SIM118
    return StimulusFacts(available, lacking, models)


def _needs(mechanism: str) -> str:
    if MECHANISMS.get(mechanism).reads_language:
        return "a language model"
    return "a parser (mechanisms.parser)"


def supported(
    recordings: Sequence[Look],
    facts: Mapping[str, StimulusFacts],
    chain: Sequence[Link],
    role: Role,
    *,
    deep: bool,
    unread: str = "",
) -> tuple[Level, ...]:
    """What the dataset can carry, level by level; ``unread`` says why words were not looked at."""
    usable = usable_of(recordings)
    unseen = "" if deep or not usable else f"; {UNITS_UNSEEN}"
    return (
        _predictive(recordings, usable, unseen, unread),
        _relational(usable, unseen),
        _mechanisms(usable, facts, unread),
        _reliability(usable),
        _control_level(usable),
        _confirmatory(chain, role, unseen),
    )


def _predictive(
    recordings: Sequence[Look], usable: Sequence[Look], unseen: str, unread: str
) -> Level:
    what = "level 1, predictive"
    if not recordings:
        return Level(what, False, unread or "no recording with words")
    detail = (
        f"{len(usable)} of {len(recordings)} recordings have enough events for "
        f"{ReadoutConfig().folds} folds"
    )
    if lacking := [r for r in recordings if r.reason is not Reason.OK]:
        first = lacking[0]
        detail += f"; {first.id} does not: {first.reason.value} ({first.n_events} events)"
    return Level(what, bool(usable), detail + unseen)


def _relational(usable: Sequence[Look], unseen: str) -> Level:
    if not usable:
        return Level("level 2, relational", False, NO_USABLE)
    minimum = RelationalConfig().min_units
    enough = [r for r in usable if len(r.unit_ids) >= minimum]
    largest = max(len(r.unit_ids) for r in usable)
    return Level(
        "level 2, relational",
        bool(enough),
        f"{len(enough)} of {len(usable)} usable recordings have {minimum} units or more (relational.min_units); "
        f"the largest has {largest}{unseen}",
    )


def _mechanisms(usable: Sequence[Look], facts: Mapping[str, StimulusFacts], unread: str) -> Level:
    names = MechanismsConfig().include
    every = list(facts.values())
    if not every:
        return Level("level 3, mechanisms", False, unread or "no stimulus with words")
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
    """Patterns can be compared between different stimuli, responses cannot."""
    if not usable:
        return Level("level 4, reliability", False, NO_USABLE)
    patterns, responses = pattern_modes(usable), response_modes(usable)
    detail = (
        f"patterns: {', '.join(map(str, patterns))}; "
        f"responses to the same stimulus: {', '.join(map(str, responses))}"
    )
    return Level("level 4, reliability", any(m.n_recordings for m in patterns), detail)


def _control_level(usable: Sequence[Look]) -> Level:
    if not usable:
        return Level("severe controls", False, NO_USABLE)
    impossible = {n: why for r in usable for n, why in r.events.controls.items() if why}
    possible = [n for n in usable[0].events.controls if n not in impossible]
    detail = f"with features alone: {', '.join(possible) or 'none'}"
    for name, why in impossible.items():
        detail += f"; {name}: no, {why}"
    needed = AuditConfig().required_controls
    return Level("severe controls", not set(needed) & set(impossible), detail)


def _confirmatory(chain: Sequence[Link], role: Role, unseen: str) -> Level:
    """The chain of the source audit, B · W · F · S · R · K, and the role."""
    missing = [link for link in chain if link.there is False]
    detail = f"role by default: {role}"
    if role != "primary":
        detail += "; only primary is confirmatory"
    detail += "; " + ", ".join(f"{link.letter}: {link.word}" for link in chain)
    detail += "".join(f"; missing: {x.letter}, {x.what} ({x.detail})" for x in missing)
    return Level("confirmatory", not missing and role == "primary", detail + unseen)
