"""What positive controls say beside a verdict: of the gates, and of the recordings."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.lpact.assays.lines import findings
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.wording import count
from lpact.analyses.lpact.tables.assay_brain import BRAIN_AS_MODEL_SUMMARY, IMPLANT, IMPLANTED, SHAM
from lpact.analyses.lpact.tables.assay_stimulus import (
    FULL_SUMMARY,
    LOW_LEVEL_SUMMARY,
    STANDALONE_SUMMARY,
)
from lpact.codes import Reason
from lpact.tables import Table

UNDER = {PAPER: "under the point rules", CALIBRATED: "as tests"}
"""Gate profiles in a sentence."""


def planted_sentence(tables: Mapping[str, pl.DataFrame], snr: float | None) -> str:
    """Whether a signal planted in a simulated study is found, and its twin without is not."""
    implant = tables.get(IMPLANT.name)
    if implant is None or implant.is_empty():
        return "Positive controls were not computed, so that it is not known what the assay could have seen."
    whole = implant.filter(quantity="integrated", reason=Reason.OK.value)
    passes = {
        arm: [
            UNDER[name]
            for name in (PAPER, CALIBRATED)
            if whole.filter("gate_pass", arm=arm, gate_profile=name).height
        ]
        for arm in (IMPLANTED, SHAM)
    }
    if passes[SHAM]:
        where = " and ".join(passes[SHAM])
        return f"A small simulated study without any signal passes every gate {where}: these gates cannot be trusted."
    asked = [
        words
        for name, words in UNDER.items()
        if whole.filter(arm=IMPLANTED, gate_profile=name).height
    ]
    missed = [words for words in asked if words not in passes[IMPLANTED]]
    if not asked:
        return "No planted signal could be judged, so that it is not known what the assay could have seen."
    ratio = "" if snr is None else f" (signal-to-noise ratio {snr:g})"
    planted = f"In a small simulated study that is not this one{ratio}, a planted signal"
    if not missed:
        where = " and ".join(asked)
        return (
            f"{planted} passes every gate {where}, and its twin without signal does not: these gates can say yes, "
            "which says nothing of how often they would on these recordings."
        )
    if passes[IMPLANTED]:
        return (
            f"{planted} passes every gate {passes[IMPLANTED][0]}, but not {missed[0]}: "
            "there, a negative verdict says little."
        )
    return (
        f"{planted} does not pass every gate with these settings: a negative verdict says little."
    )


def recording_sentences(tables: Mapping[str, pl.DataFrame], gates: GatesConfig) -> list[str]:
    """In how many datasets a brain passes for a model, and the stimulus is seen, by at least one of several tests."""
    brain = _by_dataset(tables, gates, BRAIN_AS_MODEL_SUMMARY)
    stimulus = _by_dataset(tables, gates, LOW_LEVEL_SUMMARY, STANDALONE_SUMMARY, FULL_SUMMARY)
    said = []
    if brain:
        said.append(
            f"another brain in the model's place passes the relational rule in {_share(brain)} where it could be "
            f"tried ({_at_least_one(brain, 'comparison')})"
        )
    if stimulus:
        said.append(
            f"a response to word onset, word rate or sound is seen in {_share(stimulus)} "
            f"({_at_least_one(stimulus, 'test')})"
        )
    text = "; ".join(said)
    return [f"{text[:1].upper()}{text[1:]}."] if said else []


def _share(found: Mapping[str, list[bool]]) -> str:
    return f"{sum(any(passes) for passes in found.values())} of {count(len(found), 'dataset')}"


def _at_least_one(found: Mapping[str, list[bool]], noun: str) -> str:
    """By how many tests a dataset counts: one that passes is enough, and nothing is corrected for their number."""
    sizes = sorted({len(passes) for passes in found.values()})
    if sizes == [1]:
        return f"by 1 {noun} in each"
    tried = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"by at least one of {tried} {noun}s in each, not corrected for their number"


def _by_dataset(
    tables: Mapping[str, pl.DataFrame], gates: GatesConfig, *wanted: Table
) -> dict[str, list[bool]]:
    """Datasets in which a control could be computed: which of its tests pass."""
    own = {table.name: tables[table.name] for table in wanted if table.name in tables}
    made: dict[str, list[bool]] = {}
    for finding in findings(own, gates):
        if finding.passes is not None:
            made.setdefault(finding.dataset, []).append(finding.passes)
    return made
