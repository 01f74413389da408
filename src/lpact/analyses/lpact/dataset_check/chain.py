"""The source audit's evidence chain, B · W · F · S · R · K, as far as a look at a dataset can close it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpact.analyses.lpact.config import AuditConfig, RelationalConfig
from lpact.analyses.lpact.dataset_check.looks import NO_USABLE, Look, StimulusFacts, usable_of
from lpact.analyses.lpact.dataset_check.reliable import pattern_modes


@dataclass(frozen=True)
class Link:
    """One link: there, missing, or (None) only to be told once a study has a model."""

    letter: str
    what: str
    there: bool | None
    detail: str

    @property
    def word(self) -> str:
        """The link in one word."""
        return "needs a model" if self.there is None else "yes" if self.there else "no"


def evidence_chain(looks: Sequence[Look], facts: Mapping[str, StimulusFacts]) -> tuple[Link, ...]:
    """Return the six links, with the minima of a study that sets none.

    A model's features are a study's choice: without features in the dataset, F is open. A chain with no missing link
    is closed by the audit unless the model has nothing for these words, or is too slow to be rotated in time.
    """
    usable = usable_of(looks)
    least = AuditConfig()
    covered = [r for r in usable if len(r.unit_ids) >= least.min_brain_units]
    coverage = (
        f"{len(covered)} subject-runs with {least.min_brain_units} units or more, "
        f"{least.min_subject_runs} needed"
    )
    with_words = [r for r in looks if r.n_words]
    modes = [row for row in pattern_modes(usable) if row.n_recordings]
    told = ", ".join(row.mode for row in modes) or (
        f"no reliability mode is possible; patterns need {RelationalConfig().min_units} units (relational.min_units)"
        if usable
        else NO_USABLE
    )
    return (
        Link(
            "B",
            "brain series",
            bool(usable),
            f"{len(usable)} usable recordings" if usable else NO_USABLE,
        ),
        Link("W", "word grid", bool(with_words), f"{len(with_words)} recordings with words"),
        _features(usable, facts),
        _controls(usable, least.required_controls),
        Link("R", "reliability", bool(modes), told),
        Link("K", "coverage", len(covered) >= least.min_subject_runs, coverage),
    )


def _features(usable: Sequence[Look], facts: Mapping[str, StimulusFacts]) -> Link:
    known = [facts[r.id.stimulus].models for r in usable if r.id.stimulus in facts]
    models = list(dict.fromkeys(m for own in known for m in own))
    if models:
        return Link("F", "features", True, f"in the dataset: {', '.join(models)}")
    return Link("F", "features", None, "needs a model; the dataset brings no features")


def _controls(usable: Sequence[Look], required: Sequence[str]) -> Link:
    if not usable:
        return Link("S", "severe controls", False, NO_USABLE)
    lacking = {
        name: why
        for look in usable
        for name in required
        if (why := look.events.controls.get(name, ""))
    }
    if lacking:
        told = "; ".join(f"{name}: {why}" for name, why in lacking.items())
        return Link("S", "severe controls", False, told)
    return Link("S", "severe controls", True, f"{', '.join(required)}, as far as events tell")
