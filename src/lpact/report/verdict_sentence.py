"""The verdict of a study in one sentence, under both gate profiles, for the head of a report.

`why_sentences` says why, in two to four more. Both are plain text made from tables alone: what shows them escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.config import GatesConfig
from lpact.decide import CALIBRATED, PAPER
from lpact.decide.verdict import FALSE_DISCOVERY_RATE
from lpact.decide.wording import count
from lpact.reasons import FinalLabel, Outcome, Reason
from lpact.report.positive_controls import Finding, findings
from lpact.tables import Table
from lpact.tables.assay_brain import BRAIN_AS_MODEL_SUMMARY, IMPLANT, IMPLANTED, SHAM
from lpact.tables.assay_stimulus import FULL_SUMMARY, LOW_LEVEL_SUMMARY, STANDALONE_SUMMARY
from lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.tables.decisions import DECISIONS, STUDY_OUTCOME

UNDER = {PAPER: "under the point rules", CALIBRATED: "as tests"}
"""Gate profiles in a sentence."""

MOST_NAMED = 3
"""Claims that a sentence names; more are counted by datasets and models."""

_TESTED = "with every gate a test and corrected over claims"
_SUPPORTS = {
    Outcome.A: "the study has an integrated candidate",
    Outcome.B: "the study supports structural evidence, but no integrated claim",
    Outcome.C: "the study supports predictive evidence only",
    Outcome.D: "the study shows no robust predictive or structural alignment under its controls",
    Outcome.I: "the study is inconclusive",
}
_NO_RIVAL = {"none", "not_computed", *(reason.value for reason in Reason)}


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
    head = f"Of {count(n, 'confirmatory claim')}{_uncovered(claims[profiles[0]])}, "
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
        return f" ({count(models, 'model')} on {count(datasets, 'dataset')})"
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
    """What follows, by the stricter profile at hand; the other one's outcome stands beside it where it differs."""
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


def why_sentences(tables: Mapping[str, pl.DataFrame], gates: GatesConfig) -> list[str]:
    """Why the verdict is what it is, in two to four sentences; ``tables`` are those of the run, by name."""
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
    return [*made, _planted(tables), *_brains(tables, gates)]


def _raw(gate_profile: str, claims: pl.DataFrame) -> str:
    """How many have a positive score, and what accounts for them."""
    n, positive = claims.height, claims.filter(pl.col("raw_score") > 0)
    if positive.is_empty():
        return f"No confirmatory claim has a positive mean score ({n} in all)."
    said = f"{positive.height} of {count(n, 'confirmatory claim')} {_have(positive.height)} a positive mean score"
    under = UNDER[gate_profile]
    explained = positive.filter(
        pl.col("first_failed_gate").is_in(["predictive", "severe_control"]),
        ~pl.col("beaten_by").is_in(list(_NO_RIVAL)),
    )
    if explained.is_empty():
        return f"{said}; {under} neither nuisance nor a severe control accounts for any of them."
    counts = explained.group_by("beaten_by").len().sort(-pl.col("len").cast(pl.Int64), "beaten_by")
    most = [f"{_rival(name)} ({number})" for name, number in counts.head(2).iter_rows()]
    often = "always" if counts.height == 1 else "most often"
    return (
        f"{said}; {under} nuisance or a severe control accounts for {explained.height} of them, "
        f"{often} {', then '.join(most)}."
    )


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _rival(name: str) -> str:
    return "nuisance features" if name == "nuisance" else f"the control {_line(name)}"


def _first_failures(claims: Mapping[str, pl.DataFrame]) -> str:
    """The gate at which most claims fail first, profile by profile."""
    failures: dict[str, list[str]] = {}
    for name, rows in claims.items():
        failed = rows.filter(pl.col("first_failed_gate") != "none")
        text = "no claim fails a gate"
        if failed.height:
            counts = failed.group_by("first_failed_gate").len()
            gate, n = counts.sort(-pl.col("len").cast(pl.Int64), "first_failed_gate").row(0)
            verb = "fails" if n == 1 else "fail"
            gate = str(gate).replace("_", "-")
            text = f"{n} of {count(rows.height, 'claim')} {verb} first at the {gate} gate"
        failures.setdefault(text, []).append(UNDER[name])
    said = [f"{text} {' and '.join(under)}" for text, under in failures.items()]
    corrected = sum(
        rows.filter(beaten_by=FALSE_DISCOVERY_RATE, first_failed_gate="none").height
        for rows in claims.values()
    )
    if corrected:
        verb = "passes" if corrected == 1 else "pass"
        said.append(f"{corrected} {verb} every test, but not the correction over claims")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


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


def _planted(tables: Mapping[str, pl.DataFrame]) -> str:
    """Whether a planted signal is found, and its twin without is not."""
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
        return (
            f"A study without any signal passes every gate {where}: these gates cannot be trusted."
        )
    asked = [
        words
        for name, words in UNDER.items()
        if whole.filter(arm=IMPLANTED, gate_profile=name).height
    ]
    missed = [words for words in asked if words not in passes[IMPLANTED]]
    if not asked:
        return "No planted signal could be judged, so that it is not known what the assay could have seen."
    if not missed:
        where = " and ".join(asked)
        return f"The assay can see: a planted signal passes every gate {where}, and its twin without signal does not."
    if passes[IMPLANTED]:
        return (
            f"A planted signal passes every gate {passes[IMPLANTED][0]}, but not {missed[0]}: "
            "there, a negative verdict says little."
        )
    return "A planted signal does not pass every gate with these settings: a negative verdict says little."


def _brains(tables: Mapping[str, pl.DataFrame], gates: GatesConfig) -> list[str]:
    """In how many datasets brains agree, and the stimulus is seen."""
    brain = _by_dataset(tables, gates, BRAIN_AS_MODEL_SUMMARY)
    stimulus = _by_dataset(tables, gates, LOW_LEVEL_SUMMARY, STANDALONE_SUMMARY, FULL_SUMMARY)
    said = []
    if brain:
        said.append(
            f"another brain in the model's place passes the relational rule in {sum(brain.values())} of "
            f"{count(len(brain), 'dataset')} where it could be tried"
        )
    if stimulus:
        said.append(
            f"a response to word onset, word rate or sound is seen in {sum(stimulus.values())} of "
            f"{count(len(stimulus), 'dataset')}"
        )
    text = "; ".join(said)
    return [f"{text[:1].upper()}{text[1:]}."] if said else []


def _by_dataset(
    tables: Mapping[str, pl.DataFrame], gates: GatesConfig, *wanted: Table
) -> dict[str, bool]:
    """Datasets in which a control could be computed: whether it passes anywhere."""
    own = {table.name: tables[table.name] for table in wanted if table.name in tables}
    computed: list[Finding] = [f for f in findings(own, gates) if f.passes is not None]
    made: dict[str, bool] = {}
    for finding in computed:
        made[finding.dataset] = made.get(finding.dataset, False) or bool(finding.passes)
    return made
