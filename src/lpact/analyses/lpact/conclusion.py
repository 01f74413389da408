"""What L-PACT concludes from a run: the verdict in one sentence, why, and the outcome under each gate profile.

All of it is plain text made from tables alone; surfaces escape it.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.explanation import Conclusion
from lpact.analyses.explanation import Outcome as OutcomeRecord
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.keys import LAYER_KEY
from lpact.analyses.lpact.gates.verdict import FALSE_DISCOVERY_RATE
from lpact.analyses.lpact.tables.assay import IMPLANT, IMPLANTED, SHAM
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.codes import FinalLabel, Gate, Outcome, Reason
from lpact.wording import counted, listed, one_line

Tables = Mapping[str, pl.DataFrame]

UNDER = {PAPER: "under the point rules", CALIBRATED: "as tests"}
"""Gate profiles in a sentence."""
MOST_NAMED = 3
"""Claims that a sentence names; more are counted by datasets and models."""
_TESTED = "with tests at every gate and corrected over claims"
_SUPPORTS = {
    Outcome.A: "the study has an integrated candidate",
    Outcome.C: "the study supports predictive evidence only",
    Outcome.D: "the study shows no robust predictive or structural alignment under its controls",
    Outcome.I: "the study is inconclusive",
}
_NO_RIVAL = [
    *("none", "not_computed", "unnamed", "split_half_reliability", "unit_order"),
    *(reason.value for reason in Reason),
]
"""What a gate can fail by without any rival: reasons, and faults of the recording."""
_OF_LAYERS = [Gate.PREDICTIVE.value, Gate.SEVERE_CONTROL.value, Gate.RELATIONAL.value]
"""Gates before the mechanism gate: all claims of a layer have the same result."""


def conclusion(material: Material) -> Conclusion:
    """The verdict of the study, why, and the outcome under each gate profile."""
    config = LPactConfig.of(material.config)
    outcomes = material.table(STUDY_OUTCOME.name)
    by_profile = {row["gate_profile"]: row for row in outcomes.iter_rows(named=True)}
    return Conclusion(
        analysis="lpact",
        headline=verdict_sentence(material.table(DECISIONS.name), outcomes),
        why=tuple(why_sentences(material.tables, config.assay.implant_snr)),
        outcomes=tuple(
            OutcomeRecord(
                code=row["outcome"],
                meaning=f"{row['meaning']} {row['n_integrated']} of "
                f"{counted(row['n_confirmatory_claims'], 'confirmatory claim')} "
                f"{_verb(row['n_integrated'], 'passes', 'pass')} every gate.",
                profile=name,
            )
            for name in UNDER
            if (row := by_profile.get(name)) is not None
        ),
    )


def _verb(n: int, singular: str, plural: str) -> str:
    return singular if n == 1 else plural


def _confirmatory(decisions: pl.DataFrame, outcomes: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Claims about confirmatory datasets, in the order of their key, by gate profile."""
    own = decisions.filter(pl.col("label") != FinalLabel.DIAGNOSTIC_ONLY.value).sort(DECISIONS.key)
    profiles = set(outcomes["gate_profile"])
    return {name: own.filter(gate_profile=name) for name in UNDER if name in profiles}


def verdict_sentence(decisions: pl.DataFrame, outcomes: pl.DataFrame) -> str:
    """The study's verdict, from the decision table and the outcome table (both with both gate profiles)."""
    found = {row["gate_profile"]: Outcome(row["outcome"]) for row in outcomes.iter_rows(named=True)}
    claims = _confirmatory(decisions, outcomes)
    if decisions.is_empty() or not claims:
        return (
            "The study makes no claim, because no model layer was scored on any dataset; it is inconclusive "
            "(outcome I)."
        )
    first = next(iter(claims.values()))
    if first.is_empty():
        n = decisions.filter(gate_profile=next(iter(claims))).height
        none = f"None of the study's {n} claims is about a confirmatory dataset: they are"
        only = "The study's only claim is not about a confirmatory dataset: it is"
        return f"{_verb(n, only, none)} diagnostic, and the study is inconclusive (outcome I)."
    thin = first.filter(label=FinalLabel.INSUFFICIENT_COVERAGE.value).height
    uncovered = f" ({thin} of which {_verb(thin, 'lacks', 'lack')} coverage)" if thin else ""
    head = f"Of {counted(first.height, 'confirmatory claim')}{uncovered}, "
    return f"{head}{_passing(claims)}, so {_supported(found, claims)}."


def _passing(claims: Tables) -> str:
    """How many pass every gate, profile by profile."""
    passed = {name: rows.filter("integrated") for name, rows in claims.items()}
    if len(passed) == 2 and all(rows.is_empty() for rows in passed.values()):
        return f"none passes every gate, neither {UNDER[PAPER]} nor {_TESTED}"
    name, rows = next(iter(passed.items()))
    n_pass = f"{rows.height or 'none'} {_verb(max(rows.height, 1), 'passes', 'pass')}"
    said = f"{n_pass} every gate {UNDER[PAPER] if name == PAPER else _TESTED}{_which(rows)}"
    if len(passed) == 1:
        return said
    tested = passed[CALIBRATED]
    key = [column for column in DECISIONS.key if column != "gate_profile"]
    if tested.is_empty():
        then = "none does"
    elif rows.select(key).equals(tested.select(key)):
        then = _verb(tested.height, "it does, too", "the same ones do")
    else:
        then = f"{tested.height} {_verb(tested.height, 'does', 'do')}{_which(tested)}"
    return f"{said}; {_TESTED} {then}"


def _which(rows: pl.DataFrame) -> str:
    """Claims by name, or counted where they are many; nothing where there is none."""
    if rows.is_empty():
        return ""
    if rows.height > MOST_NAMED:
        datasets, models = rows["dataset"].n_unique(), rows["model"].n_unique()
        return f" ({counted(models, 'model')} on {counted(datasets, 'dataset')})"
    names = []
    for row in rows.iter_rows(named=True):
        about = "" if row["mechanism"] == "none" else f", {one_line(row['mechanism'])}"
        place = f"{one_line(row['dataset'])}, model {one_line(row['model'])}, layer {row['layer']}"
        names.append(f"{place}{about}")
    return f" ({'; '.join(names)})"


def _supported(found: Mapping[str, Outcome], claims: Tables) -> str:
    """What follows under the stricter profile; the outcome of the other one is added where it differs."""
    last = CALIBRATED if CALIBRATED in found else PAPER
    outcome, own = found[last], claims[last]
    n = own["integrated"].sum()
    if outcome is Outcome.A and n > 1:
        said = f"the study has {n} integrated candidates"
    elif outcome is Outcome.B:
        kinds = {
            FinalLabel.RELATIONAL_CANDIDATE: "relational",
            FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: "mechanism-specific",
        }
        shown = [word for label, word in kinds.items() if label.value in own["label"]]
        said = f"the study supports {' and '.join(shown) or 'structural'} evidence, but no integrated claim"
    elif outcome is Outcome.D and (own["label"] == FinalLabel.INSUFFICIENT_COVERAGE.value).all():
        said = "the study has too little coverage to show any alignment, or its absence"
    else:
        said = _SUPPORTS[outcome]
    point = found.get(PAPER, outcome)
    other = "" if point is outcome else f"; {point.value} {UNDER[PAPER]}"
    return f"{said} (outcome {outcome.value}{other})"


def why_sentences(tables: Tables, implant_snr: float | None = None) -> list[str]:
    """Why the verdict is what it is, in two or three sentences.

    ``tables`` are those of the run, by name; ``implant_snr`` is the signal-to-noise ratio of the planted signal.
    """
    claims = _confirmatory(tables[DECISIONS.name], tables[STUDY_OUTCOME.name])
    if any(rows.height for rows in claims.values()):
        made = [_raw(*next(iter(claims.items()))), _first_failures(claims)]
    else:
        made = [_no_confirmatory(tables)]
    return [*made, _planted(tables, implant_snr)]


def _raw(gate_profile: str, claims: pl.DataFrame) -> str:
    """How many layers have a positive score, and how many of them nuisance or a control explains at level 1.

    A score belongs to a layer: the claims about its mechanisms share it, and count once.
    """
    layers = claims.unique(LAYER_KEY, keep="first", maintain_order=True)
    positive = layers.filter(pl.col("raw_score") > 0)
    n_claims = counted(claims.height, "confirmatory claim")
    of = f"{counted(layers.height, 'layer')} (of a model on a dataset, with {n_claims})"
    if positive.is_empty():
        return f"None of {of} has a positive mean score."
    explained = positive.filter(
        ~(pl.col("predictive") & pl.col("severe_control_level1")),
        pl.col("first_failed_gate").is_in(_OF_LAYERS[:2]),
        ~pl.col("beaten_by").is_in(_NO_RIVAL),
    )
    have = _verb(positive.height, "has", "have")
    said = f"{positive.height} of {of} {have} a positive mean score; {UNDER[gate_profile]} "
    if explained.is_empty():
        return f"{said}none of them fails against nuisance or a severe control at level 1."
    n, ranked = explained.height, _ranked(explained, "beaten_by")
    rivals = [
        f"{'nuisance features' if name == 'nuisance' else f'the control {one_line(name)}'} ({k})"
        for name, k in ranked[:2]
    ]
    # A point rule compares means; a test that does not reject shows nothing.
    point = f"{_verb(n, 'scores', 'score')} no higher than"
    test = f"{_verb(n, 'is', 'are')} not shown to exceed"
    return (
        f"{said}{n} of them {point if gate_profile == PAPER else test} nuisance or a severe control at level 1, "
        f"{_verb(len(ranked), 'always', 'most often')} {', then '.join(rivals)}."
    )


def _ranked(rows: pl.DataFrame, column: str) -> list[tuple[str, int]]:
    """Values of a column and their counts, the commonest first, then by name."""
    counts = rows.group_by(column).len("n")
    return counts.sort("n", column, descending=[True, False]).rows()


def _first_failures(claims: Tables) -> str:
    """Where most layers fail first, and where most claims of the others do, profile by profile."""
    failures: dict[str, list[str]] = {}
    for name, rows in claims.items():
        failures.setdefault(_where_first(rows), []).append(UNDER[name])
    said = [f"{text} {' and '.join(under)}" for text, under in failures.items()]
    corrected = pl.concat(claims.values()).filter(beaten_by=FALSE_DISCOVERY_RATE, first_failed_gate="none")
    if n := corrected.height:
        verb = _verb(n, "passes", "pass")
        said.append(f"{counted(n, 'claim')} {verb} every test, but not the multiple-testing correction over claims")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


def _where_first(claims: pl.DataFrame) -> str:
    """The commonest first failure of layers, then that of claims about layers that pass what all of them share."""
    early = pl.col("first_failed_gate").is_in(_OF_LAYERS)
    layers = claims.filter(early).unique(LAYER_KEY, keep="first", maintain_order=True)
    later = claims.filter(~early)
    about = " about layers that pass P, S and R" if layers.height else ""
    parts = []
    for failed, of in (
        (layers, counted(claims.select(LAYER_KEY).n_unique(), "layer")),
        (
            later.filter(pl.col("first_failed_gate") != "none"),
            counted(later.height, "claim") + about,
        ),
    ):
        for gate, n in _ranked(failed, "first_failed_gate")[:1]:
            verb = _verb(n, "fails", "fail")
            parts.append(f"{n} of {of} {verb} first at the {gate.replace('_', '-')} gate")
    return " and ".join(parts) or "no claim fails a gate"


def _no_confirmatory(tables: Tables) -> str:
    audited = tables.get(EVIDENCE_FEASIBILITY.name)
    if audited is None or audited.is_empty():
        return "No dataset can support confirmatory evidence."
    parts = [
        f"{one_line(row['dataset'])} ({one_line(row['role_detail']) or one_line(row['role_reason'])})"
        for row in audited.filter(~pl.col("confirmatory")).sort("dataset").iter_rows(named=True)
    ]
    if not parts:
        return "No layer of a model was scored on a confirmatory dataset."
    return f"Not confirmatory: {listed(parts, MOST_NAMED, '; ')}."


def _planted(tables: Tables, snr: float | None) -> str:
    """Whether a signal planted in a simulated study is found, and its sham is not."""
    implant = tables.get(IMPLANT.name)
    if implant is None or implant.is_empty():
        return "Positive controls were not computed, so it is not known what the assay could have detected."
    whole = implant.filter(quantity="integrated", reason=Reason.OK.value)

    def profiles(rows: pl.DataFrame, arm: str) -> list[str]:
        named = set(rows.filter(arm=arm)["gate_profile"])
        return [words for name, words in UNDER.items() if name in named]

    passing = whole.filter("gate_pass")
    if sham := profiles(passing, SHAM):
        where = " and ".join(sham)
        return f"A small simulated study without any signal passes every gate {where}: these gates cannot be trusted."
    asked, found = profiles(whole, IMPLANTED), profiles(passing, IMPLANTED)
    if not asked:
        return "No planted signal could be tested, so the sensitivity of the assay is unknown."
    ratio = "" if snr is None else f" (signal-to-noise ratio {snr:g})"
    planted = f"In a separate small simulated study{ratio}, a planted signal"
    missed = [words for words in asked if words not in found]
    if not missed:
        return (
            f"{planted} passes every gate {' and '.join(asked)}, and the sham without signal does not: these gates can "
            "pass, which says nothing about how often they would on these recordings."
        )
    if found:
        return f"{planted} passes every gate {found[0]}, but not {missed[0]}: there, a negative verdict is weak."
    return f"{planted} does not pass every gate with these settings: a negative verdict is weak evidence."
