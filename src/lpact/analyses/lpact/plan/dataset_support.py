"""Which evidence a dataset can support, before any study: its evidence chain and its levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lpact.analyses.explanation import Block, DatasetReport
from lpact.analyses.lpact.config import AuditConfig, RelationalConfig
from lpact.analyses.lpact.plan.audit import RecordingSummary, mode_rows
from lpact.codes import Reason
from lpact.config import ControlsConfig, MechanismsConfig, ReadoutConfig
from lpact.controls.base import CONTROLS, ControlInputs
from lpact.features.mechanisms import MECHANISMS, MechanismInputs, mechanism_matrix
from lpact.features.parsing import read_parse
from lpact.inputs.check import DatasetCheck, Events
from lpact.wording import counted

NO_USABLE = "no recording is usable at level 1"
UNITS_NOT_CHECKED = "; units were not checked (--deep does)"


class Link(NamedTuple):
    """One link of the evidence chain: there, missing, or (None) unknown until a study has a model."""

    letter: str
    what: str
    there: bool | None
    detail: str


class Level(NamedTuple):
    """One kind of evidence: possible or not, and why or how."""

    what: str
    possible: bool
    detail: str


class DatasetSupport:
    """Evidence chain and levels of a checked dataset, with the minima of a study that sets none."""

    def __init__(self, check: DatasetCheck) -> None:
        self._check = check
        self._usable = check.usable_recordings
        self._unchecked = "" if check.deep or not self._usable else UNITS_NOT_CHECKED
        self._stimuli = [stimulus for stimulus in check.stimuli.values() if stimulus is not None]

    def report(self) -> DatasetReport:
        """What `lpact datasets check` shows and prints as JSON."""
        rows = tuple((v.what, "yes" if v.possible else "no", v.detail) for v in self.levels)
        block = Block("What the dataset supports", (), ("evidence", "possible", "why"), rows)
        values = {
            "chain": [link._asdict() for link in self.chain],
            "levels": [level._asdict() for level in self.levels],
        }
        return DatasetReport((block,), values)

    @cached_property
    def chain(self) -> tuple[Link, ...]:
        """The source audit's evidence chain, B · W · F · S · R · K; F is open where the dataset has no features."""
        usable, least = self._usable, AuditConfig()
        words = [r for r in self._check.recordings if r.n_words]
        heard = [self._check.stimuli[name] for name in dict.fromkeys(r.id.stimulus for r in usable)]
        offers = [s.features for s in heard if s is not None and s.features is not None]
        models = dict.fromkeys(key.model for offer in offers for key in offer.keys())  # noqa: SIM118
        own = f"in the dataset: {', '.join(models)}"
        features = own if models else "needs a model; the dataset has no features"
        required = least.required_controls
        lacking = [f"{c}: {why}" for c, why in self._controls.items() if c in required and why]
        controls = "; ".join(lacking) or f"{', '.join(required)}, as far as events show"
        modes = [mode for mode, found in self._pattern_modes.items() if "no (" not in found]
        minimum = f"{RelationalConfig().min_units} units (relational.min_units)"
        no_mode = f"no reliability mode is possible; patterns need {minimum}"
        covered = [r for r in usable if r.n_units >= least.min_brain_units]
        with_units = f"{len(covered)} subject-runs with {least.min_brain_units} units or more"
        enough = len(covered) >= least.min_subject_runs
        brain, reliability = f"{len(usable)} usable recordings", ", ".join(modes) or no_mode
        if not usable:
            brain = controls = reliability = NO_USABLE
        return (
            Link("B", "brain series", bool(usable), brain),
            Link("W", "word grid", bool(words), f"{len(words)} recordings with words"),
            Link("F", "features", True if models else None, features),
            Link("S", "severe controls", bool(usable) and not lacking, controls),
            Link("R", "reliability", bool(modes), reliability),
            Link("K", "coverage", enough, f"{with_units}, {least.min_subject_runs} needed"),
        )

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """What the dataset can support, level by level."""
        makers: dict[str, Callable[[], tuple[bool, str]]] = {
            "level 1, predictive": self._predictive,
            "level 2, relational": self._relational,
            "level 3, mechanisms": self._mechanisms,
            "level 4, reliability": self._reliability,
            "severe controls": self._severe_controls,
            "confirmatory": self._confirmatory,
        }
        return tuple(Level(what, *make()) for what, make in makers.items())

    @property
    def _unread(self) -> str:
        """Why words could not be read; empty if they could, or if there are none."""
        if self._check.info is None:
            return "not checked: the folder cannot be opened, see what must be fixed"
        if self._check.stimuli and not self._stimuli:
            return "no stimulus can be read, see what must be fixed"
        return ""

    @cached_property
    def _pattern_modes(self) -> dict[str, str]:
        """Recordings with a partner in each reliability mode of patterns, or why none has one."""
        summaries = [
            RecordingSummary(r.id, r.unit_ids, r.n_events, 1, 1, (), comparable=r.comparable) for r in self._usable
        ]
        found = {}
        rows: Sequence[Mapping[str, Any]] = mode_rows("", summaries, RelationalConfig())
        for row in rows:
            n = counted(row["n_recordings"], "recording")
            found[row["mode"]] = n if row["possible"] else f"no ({reason_clause(row['reason'])})"
        return found

    @cached_property
    def _controls(self) -> dict[str, str]:
        """Severe control → why some recording does not allow it, or empty."""
        found: dict[str, str] = {}
        for recording in self._usable:
            for name, why in _possible_controls(recording.events).items():
                found[name] = why or found.get(name, "")
        return found

    def _predictive(self) -> tuple[bool, str]:
        recordings, usable = self._check.recordings, self._usable
        if not recordings:
            return False, self._unread or "no recording with words"
        of = f"{len(usable)} of {len(recordings)} recordings"
        detail = f"{of} have enough events for {ReadoutConfig().folds} folds"
        if first := next((r for r in recordings if r.reason is not Reason.OK), None):
            detail += f"; {first.id} does not: {first.reason.value} ({first.n_events} events)"
        return bool(usable), detail + self._unchecked

    def _relational(self) -> tuple[bool, str]:
        usable, minimum = self._usable, RelationalConfig().min_units
        if not usable:
            return False, NO_USABLE
        enough = [r for r in usable if r.n_units >= minimum]
        return bool(enough), (
            f"{len(enough)} of {len(usable)} usable recordings have {minimum} units or more (relational.min_units); "
            f"the largest has {max(r.n_units for r in usable)}{self._unchecked}"
        )

    def _mechanisms(self) -> tuple[bool, str]:
        names = MechanismsConfig().include
        if not self._stimuli:
            return False, self._unread or "no stimulus with words"
        given = set(names)
        for stimulus in self._stimuli:
            inputs = MechanismInputs(stimulus, parse=read_parse(stimulus, None))
            given &= set(mechanism_matrix(names, inputs)[1])
        needs: dict[str, list[str]] = {}
        for name in names:
            if name not in given:
                reads = MECHANISMS.get(name).reads_language
                what = "a language model" if reads else "a parser (mechanisms.parser)"
                needs.setdefault(what, []).append(name)
        parts = [] if self._usable else [NO_USABLE]
        parts.append(f"in the dataset: {', '.join(n for n in names if n in given) or 'none'}")
        parts += [f"with {what}: {', '.join(own)}" for what, own in needs.items()]
        return bool(self._usable), "; ".join(parts)

    def _reliability(self) -> tuple[bool, str]:
        if not self._usable:
            return False, NO_USABLE
        modes = [f"{mode}: {found}" for mode, found in self._pattern_modes.items()]
        return any(": no (" not in mode for mode in modes), f"patterns: {', '.join(modes)}"

    def _severe_controls(self) -> tuple[bool, str]:
        if not self._usable:
            return False, NO_USABLE
        impossible = {name: why for name, why in self._controls.items() if why}
        possible = [name for name in self._controls if name not in impossible]
        detail = f"with features alone: {', '.join(possible) or 'none'}"
        detail += "".join(f"; {name}: no, {why}" for name, why in impossible.items())
        return not set(AuditConfig().required_controls) & set(impossible), detail

    def _confirmatory(self) -> tuple[bool, str]:
        words = {None: "needs a model", True: "yes", False: "no"}
        role = self._check.role
        missing = [link for link in self.chain if link.there is False]
        detail = f"role by default: {role}"
        if role != "primary":
            detail += "; only primary is confirmatory"
        detail += "; " + ", ".join(f"{link.letter}: {words[link.there]}" for link in self.chain)
        detail += "".join(f"; missing: {x.letter}, {x.what} ({x.detail})" for x in missing)
        return not missing and role == "primary", detail + self._unchecked


def _possible_controls(events: Events) -> Mapping[str, str]:
    """Severe control that needs only a model's features → why it is not possible, or empty."""
    n_events = len(events.first_word)
    # Features of any model are at least as slow as noise: what noise does not allow is not possible.
    noise = np.random.default_rng(0).standard_normal((n_events, 2))
    inputs = ControlInputs(noise, events.sentence, events.story, 1, {}, lambda *_: noise)
    found = {}
    for name in ControlsConfig().include:
        control = CONTROLS.build(name)
        missing = control.unavailable(inputs) if n_events else None
        other_layer = missing is not None and missing.reason is Reason.NO_OTHER_LAYER
        if not control.contexts() and not other_layer:
            why = "" if n_events else "no events"
            found[name] = why if missing is None else missing.detail or reason_clause(missing.reason)
    return found


def reason_clause(reason: Reason) -> str:
    """A reason's explanation inside a sentence."""
    text = reason.explanation
    return (text[:1].lower() + text[1:]).rstrip(".")
