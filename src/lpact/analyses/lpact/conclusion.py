"""What L-PACT concludes from a run: the verdict in one sentence, why, and the outcome under each gate profile.

All of it is plain text made from tables alone; surfaces escape it.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.explanation import Conclusion
from lpact.analyses.explanation import Outcome as OutcomeRecord
from lpact.analyses.lpact.assays.lines import findings
from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.verdict import FALSE_DISCOVERY_RATE
from lpact.analyses.lpact.tables.assay import (
    BRAIN_AS_MODEL_SUMMARY,
    FULL_SUMMARY,
    IMPLANT,
    IMPLANTED,
    LOW_LEVEL_SUMMARY,
    SHAM,
    STANDALONE_SUMMARY,
)
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.codes import FinalLabel, Gate, Outcome, Reason
from lpact.tables import Table
from lpact.wording import counted

UNDER = {PAPER: "under the point rules", CALIBRATED: "as tests"}
"""Gate profiles in a sentence."""


MOST_NAMED = 3
"""Claims that a sentence names; more are counted by datasets and models."""

_TESTED = "with tests at every gate and corrected over claims"
_SUPPORTS = {
    Outcome.A: "the study has an integrated candidate",
    Outcome.B: "the study supports structural evidence, but no integrated claim",
    Outcome.C: "the study supports predictive evidence only",
    Outcome.D: "the study shows no robust predictive or structural alignment under its controls",
    Outcome.I: "the study is inconclusive",
}
_NO_RIVAL = {
    "none",
    "not_computed",
    "unnamed",
    "split_half_reliability",
    "unit_order",
    *(reason.value for reason in Reason),
}
"""What a gate can fail by without any rival: reasons, and faults of the recording."""
_LAYER = ["dataset", "model", "layer"]
_OF_LAYERS = (Gate.PREDICTIVE, Gate.SEVERE_CONTROL, Gate.RELATIONAL)
"""Gates before the mechanism gate: all claims of a layer have the same result."""


def conclusion(material: Material) -> Conclusion:
    """The verdict of the study, why, and the outcome under each gate profile."""
    config = LPactConfig.of(material.config)
    outcomes = material.table(STUDY_OUTCOME.name)
    by_profile = {row["gate_profile"]: row for row in outcomes.iter_rows(named=True)}
    return Conclusion(
        analysis="lpact",
        headline=verdict_sentence(material.table(DECISIONS.name), outcomes),
        why=tuple(why_sentences(material.tables, config.gates, config.assay.implant_snr)),
        outcomes=tuple(
            OutcomeRecord(
                code=row["outcome"],
                meaning=f"{row['meaning']} {row['n_integrated']} of "
                f"{counted(row['n_confirmatory_claims'], 'confirmatory claim')} "
                f"{'passes' if row['n_integrated'] == 1 else 'pass'} every gate.",
                profile=name,
            )
            for name in (PAPER, CALIBRATED)
            if (row := by_profile.get(name)) is not None
        ),
    )


def verdict_sentence(decisions: pl.DataFrame, outcomes: pl.DataFrame) -> str:
    """The study's verdict, from the decision table and the outcome table (both with both gate profiles)."""
    found = {row["gate_profile"]: Outcome[row["outcome"]] for row in outcomes.iter_rows(named=True)}
    profiles = [name for name in (PAPER, CALIBRATED) if name in found]
    claims = {name: confirmatory(decisions, name) for name in profiles}
    if decisions.is_empty() or not profiles:
        return (
            "The study makes no claim, because no model layer was scored on any dataset; it is inconclusive "
            "(outcome I)."
        )
    n = claims[profiles[0]].height
    if n == 0:
        n_claims = decisions.filter(gate_profile=profiles[0]).height
        none = f"None of the study's {n_claims} claims is about a confirmatory dataset: they are"
        only = "The study's only claim is not about a confirmatory dataset: it is"
        said = only if n_claims == 1 else none
        return f"{said} diagnostic, and the study is inconclusive (outcome I)."
    head = f"Of {counted(n, 'confirmatory claim')}{_uncovered(claims[profiles[0]])}, "
    return f"{head}{_passing(claims)}, so {_supported(found, claims)}."


def confirmatory(decisions: pl.DataFrame, gate_profile: str) -> pl.DataFrame:
    """Claims of one gate profile about confirmatory datasets, in the order of their key."""
    rows = decisions.filter(
        pl.col("label") != FinalLabel.DIAGNOSTIC_ONLY.value, gate_profile=gate_profile
    )
    return rows.sort(*DECISIONS.key)


def _uncovered(claims: pl.DataFrame) -> str:
    n = claims.filter(label=FinalLabel.INSUFFICIENT_COVERAGE.value).height
    return f" ({n} of which {'lacks' if n == 1 else 'lack'} coverage)" if n else ""


def _passing(claims: Mapping[str, pl.DataFrame]) -> str:
    """How many pass every gate, profile by profile."""
    passed = {name: rows.filter("integrated") for name, rows in claims.items()}
    if len(passed) == 1:
        (name, rows) = next(iter(passed.items()))
        where = UNDER[PAPER] if name == PAPER else _TESTED
        return f"{_n_pass(rows)} every gate {where}{_which(rows)}"
    point, tested = passed[PAPER], passed[CALIBRATED]
    if point.is_empty() and tested.is_empty():
        return f"none passes every gate, neither {UNDER[PAPER]} nor {_TESTED}"
    first = f"{_n_pass(point)} every gate {UNDER[PAPER]}{_which(point)}"
    if tested.is_empty():
        return f"{first}; {_TESTED} none does"
    key = [column for column in DECISIONS.key if column != "gate_profile"]
    if point.select(key).equals(tested.select(key)):
        same = "it does, too" if tested.height == 1 else "the same ones do"
        return f"{first}; {_TESTED} {same}"
    verb = "does" if tested.height == 1 else "do"
    return f"{first}; {_TESTED} {tested.height} {verb}{_which(tested)}"


def _n_pass(rows: pl.DataFrame) -> str:
    if rows.is_empty():
        return "none passes"
    return "1 passes" if rows.height == 1 else f"{rows.height} pass"


def _which(rows: pl.DataFrame) -> str:
    """Claims by name, or counted where they are many; nothing where there is none."""
    if rows.is_empty():
        return ""
    if rows.height > MOST_NAMED:
        datasets, models = rows["dataset"].n_unique(), rows["model"].n_unique()
        return f" ({counted(models, 'model')} on {counted(datasets, 'dataset')})"
    return f" ({'; '.join(_claim(row) for row in rows.iter_rows(named=True))})"


def _claim(row: Mapping[str, object]) -> str:
    parts = [_line(row["dataset"]), f"model {_line(row['model'])}", f"layer {row['layer']}"]
    if row["mechanism"] != "none":
        parts.append(_line(row["mechanism"]))
    return ", ".join(parts)


def _line(text: object) -> str:
    """A name from data on one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def _supported(found: Mapping[str, Outcome], claims: Mapping[str, pl.DataFrame]) -> str:
    """What follows under the stricter profile; the outcome of the other one is added where it differs."""
    last = CALIBRATED if CALIBRATED in found else PAPER
    outcome = found[last]
    said = _SUPPORTS[outcome]
    n = claims[last].filter("integrated").height
    if outcome is Outcome.A and n > 1:
        said = f"the study has {n} integrated candidates"
    uncovered = claims[last].filter(label=FinalLabel.INSUFFICIENT_COVERAGE.value).height
    if outcome is Outcome.D and uncovered == claims[last].height:
        said = "the study has too little coverage to show any alignment, or its absence"
    if outcome is Outcome.B:
        said = f"the study supports {_structural(claims[last])} evidence, but no integrated claim"
    beside = found.get(PAPER, outcome)
    letters = f"outcome {outcome.value}"
    if beside is not outcome:
        letters += f"; {beside.value} {UNDER[PAPER]}"
    return f"{said} ({letters})"


def _structural(claims: pl.DataFrame) -> str:
    labels = set(claims["label"])
    kinds = (
        (FinalLabel.RELATIONAL_CANDIDATE, "relational"),
        (FinalLabel.MECHANISM_SPECIFIC_CANDIDATE, "mechanism-specific"),
    )
    return " and ".join(word for label, word in kinds if label.value in labels) or "structural"


def why_sentences(
    tables: Mapping[str, pl.DataFrame], gates: GatesConfig, implant_snr: float | None = None
) -> list[str]:
    """Why the verdict is what it is, in two to four sentences.

    ``tables`` are those of the run, by name; ``implant_snr`` is the signal-to-noise ratio of the planted signal.
    """
    decisions = tables[DECISIONS.name]
    profiles = set(tables[STUDY_OUTCOME.name]["gate_profile"])
    claims = {
        name: confirmatory(decisions, name) for name in (PAPER, CALIBRATED) if name in profiles
    }
    made = []
    if any(rows.height for rows in claims.values()):
        made += [_raw(*next(iter(claims.items()))), _first_failures(claims)]
    else:
        made.append(_no_confirmatory(tables))
    return [*made, planted_sentence(tables, implant_snr), *recording_sentences(tables, gates)]


def _raw(gate_profile: str, claims: pl.DataFrame) -> str:
    """How many layers have a positive score, and which of them nuisance or a control explains at level 1.

    A score belongs to a layer: the claims about its mechanisms share it, and count once.
    """
    layers = claims.unique(_LAYER, keep="first", maintain_order=True)
    positive = layers.filter(pl.col("raw_score") > 0)
    whole = f"{counted(layers.height, 'layer')} ({_about(claims.height)}; a score has no mechanism)"
    if positive.is_empty():
        return f"None of {whole} has a positive mean score."
    said = f"{positive.height} of {whole} {_have(positive.height)} a positive mean score"
    under = UNDER[gate_profile]
    lost = positive.filter(
        ~(pl.col("predictive") & pl.col("severe_control_level1")),
        pl.col("first_failed_gate").is_in([Gate.PREDICTIVE.value, Gate.SEVERE_CONTROL.value]),
        ~pl.col("beaten_by").is_in(list(_NO_RIVAL)),
    )
    explained = lost.filter(label=FinalLabel.CONTROL_EXPLAINED.value)
    n = explained.height
    if not n:
        none = "none of them is control-explained by nuisance or a severe control at level 1"
        return f"{said}; {under} {none}{_otherwise(gate_profile, lost, also='')}."
    counts = explained.group_by("beaten_by").len().sort(-pl.col("len").cast(pl.Int64), "beaten_by")
    most = [f"{_rival(name)} ({number})" for name, number in counts.head(2).iter_rows()]
    often = "always" if counts.height == 1 else "most often"
    others = lost.filter(pl.col("label") != FinalLabel.CONTROL_EXPLAINED.value)
    return (
        f"{said}; {under} {n} of them {_is(n)} control-explained at level 1: {'it' if n == 1 else 'they'} "
        f"{_falls_short(gate_profile, n)}, {often} {', then '.join(most)}{_otherwise(gate_profile, others)}."
    )


def _falls_short(gate_profile: str, n: int) -> str:
    """What losing at level 1 means: a point rule compares means, a test that does not reject shows nothing."""
    fails = {
        PAPER: f"{'scores' if n == 1 else 'score'} no higher than",
        CALIBRATED: f"{_is(n)} not shown to exceed",
    }[gate_profile]
    return f"{fails} nuisance or a severe control"


def _otherwise(gate_profile: str, others: pl.DataFrame, also: str = "also ") -> str:
    """Layers of which the same is true and that have another verdict."""
    n = others.height
    if not n:
        return ""
    verdicts = ", ".join(sorted(set(others["label"])))
    return f"; {n} with another verdict ({verdicts}) {also}{_falls_short(gate_profile, n)}"


def _about(n_claims: int) -> str:
    return f"of a model on a dataset, with {counted(n_claims, 'confirmatory claim')} about them"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _rival(name: str) -> str:
    return "nuisance features" if name == "nuisance" else f"the control {_line(name)}"


def _first_failures(claims: Mapping[str, pl.DataFrame]) -> str:
    """Where most layers fail first, and where most claims of the others do, profile by profile."""
    failures: dict[str, list[str]] = {}
    for name, rows in claims.items():
        failures.setdefault(_where_first(rows), []).append(UNDER[name])
    said = [f"{text} {' and '.join(under)}" for text, under in failures.items()]
    corrected = sum(
        rows.filter(beaten_by=FALSE_DISCOVERY_RATE, first_failed_gate="none").height
        for rows in claims.values()
    )
    if corrected:
        verb = "passes" if corrected == 1 else "pass"
        said.append(
            f"{counted(corrected, 'claim')} {verb} every test, but not the correction over claims"
        )
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


def _where_first(claims: pl.DataFrame) -> str:
    """The commonest first failure of layers, then that of claims about layers that pass what all of them share."""
    early = pl.col("first_failed_gate").is_in([gate.value for gate in _OF_LAYERS])
    layers = claims.filter(early).unique(_LAYER, keep="first", maintain_order=True)
    n_layers = claims.select(_LAYER).n_unique()
    parts = _commonest(layers, f"of {counted(n_layers, 'layer')}")
    later = claims.filter(~early)
    of = f"of {counted(later.height, 'claim')}{' about layers that pass P, S and R' if parts else ''}"
    parts += _commonest(later.filter(pl.col("first_failed_gate") != "none"), of)
    return " and ".join(parts) or "no claim fails a gate"


def _commonest(failed: pl.DataFrame, of: str) -> list[str]:
    if failed.is_empty():
        return []
    counts = failed.group_by("first_failed_gate").len()
    gate, n = counts.sort(-pl.col("len").cast(pl.Int64), "first_failed_gate").row(0)
    verb = "fails" if n == 1 else "fail"
    return [f"{n} {of} {verb} first at the {str(gate).replace('_', '-')} gate"]


def _no_confirmatory(tables: Mapping[str, pl.DataFrame]) -> str:
    audited = tables.get(EVIDENCE_FEASIBILITY.name)
    if audited is None or audited.is_empty():
        return "No dataset can support confirmatory evidence."
    parts = []
    for row in audited.filter(~pl.col("confirmatory")).sort("dataset").iter_rows(named=True):
        detail = _line(row["role_detail"]) or _line(row["role_reason"])
        parts.append(f"{_line(row['dataset'])} ({detail})")
    if not parts:
        return "No layer of a model was scored on a confirmatory dataset."
    named = "; ".join(parts[:MOST_NAMED])
    more = f"; and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
    return f"Not confirmatory: {named}{more}."


# --- positive controls ------------------------------------------------------------------------------


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
    return f"{sum(any(passes) for passes in found.values())} of {counted(len(found), 'dataset')}"


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
