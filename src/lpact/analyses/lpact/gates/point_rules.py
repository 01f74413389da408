"""The paper profile: point rules. Every gate reads one row of `summaries`.

Means run over units within a subject-run first, then over subject-runs; a *summary* is an alignment × profile pair.

P    mean delta_nuisance > 0 and mean delta_control > 0                                       (primary metric)
Rep  at least min_subject_runs with a level-1 contrast; both deltas positive in direction_fraction of them
S    level 1: mean of real − control > 0 for every counted control; level 2: no counted control reaches the real
     similarity in more than summary_majority of the summaries
R    more than summary_majority of the summaries pass: direction_fraction of their unit rows have a positive
     delta_rel on a reliable pattern in the same unit order, and the mean of delta_rel is positive
M    method_majority of the applicable stripping methods agree: medians over subject-runs of the matching drop, of its
     margin over other targets and of its margin over the mismatch control are all positive
T    mean reliability ≥ min_reliability, mean delta_fraction > 0, and fraction_of_ceiling ≥ min_ceiling_fraction in the
     mean and in the median summary. The median keeps a few summaries from deciding: the cosine of two positive
     patterns is large whatever their shape. Fractions count only where the row's own reliability reaches the
     minimum, since dividing by a reliability near zero makes any fraction large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.criteria import PAPER, Bound, GateEvidence, GateProfile, mean_over, rivalry
from lpact.analyses.lpact.gates.criteria import CriterionName as Name
from lpact.analyses.lpact.gates.keys import Claim, Layer, Row
from lpact.analyses.lpact.gates.labels import MIN_TARGETS
from lpact.analyses.lpact.gates.summaries import (
    most_reaching_controls,
    strongest_controls,
    summarise_ceiling,
    summarise_mechanisms,
    summarise_predictive,
    summarise_relational,
    why_nothing,
)
from lpact.analyses.lpact.gates.verdict import NO_MECHANISM, RawEvidence
from lpact.analyses.lpact.tables import levels
from lpact.codes import Gate, Reason, RowLabel
from lpact.wording import counted, number, percent

NUISANCE = "nuisance"
NOT_COMPUTED = str(RowLabel.NOT_COMPUTED)


class Summaries:
    """What every level of a study shows, by layer or claim."""

    def __init__(self, rows: Mapping[str, pl.DataFrame], gates: GatesConfig, primary_metric: str) -> None:
        relational = rows[levels.PROFILE_DELTAS.name]
        summary = rows[levels.RELATIONAL_SUMMARY.name]
        self.predictive = summarise_predictive(rows[levels.CONTROL_DELTAS.name], primary_metric)
        self.relational = summarise_relational(relational, summary, gates)
        self.mechanisms = summarise_mechanisms(rows[levels.SPECIFICITY.name])
        self.ceiling = summarise_ceiling(rows[levels.NORMALIZED_SCORES.name])
        self.strongest = strongest_controls(rows[levels.CONTROL_NULLS.name], primary_metric)
        self.reaching = most_reaching_controls(rows[levels.PROFILE_SCORES.name], relational)

    def raw(self, claim: Claim) -> RawEvidence:
        """Return what one claim shows without any control."""
        nothing: Row = {}
        predictive = self.predictive.get(claim[:3], nothing)
        relational = self.relational.get(claim[:3], nothing)
        return RawEvidence(
            n_subject_runs=predictive.get("n", 0),
            score=predictive.get("raw_score"),
            delta_nuisance=predictive.get("delta_nuisance"),
            similarity=relational.get("raw_similarity"),
            drop=self.mechanisms.get(claim, nothing).get("raw_drop"),
            fraction_of_ceiling=self.ceiling.get(claim[:3], nothing).get("fraction_of_ceiling"),
            lacks_units=relational.get("lacks_units", False),
        )


def paper_profile(
    found: Summaries, layers: Sequence[Layer], claims: Sequence[Claim], gates: GatesConfig
) -> GateProfile:
    """Every gate by its point rule; all but the mechanism gate are evaluated once per layer."""
    by_layer = {}
    for layer in layers:
        predictive, relational = found.predictive.get(layer), found.relational.get(layer)
        controls = (found.strongest.get(layer), found.reaching.get(layer))
        made = (
            predictive_gate(predictive),
            severe_gate(*controls, why_nothing(relational), gates),
            relational_gate(relational, gates),
            ceiling_gate(found.ceiling.get(layer), relational, gates),
            replication_gate(predictive, gates),
        )
        by_layer[layer] = {evidence.gate: evidence for evidence in made}
    mechanisms = {c: mechanism_gate(found.mechanisms.get(c), c[-1], gates) for c in claims}
    return GateProfile(PAPER, False, by_layer, mechanisms)


def predictive_gate(row: Row | None) -> GateEvidence:
    """Gate P."""
    bounds: tuple[Bound, ...] = (
        (Name.MEAN_DELTA_NUISANCE, ">", 0.0),
        (Name.MEAN_DELTA_CONTROL, ">", 0.0),
    )
    if row is None or row["n"] == 0:
        why = str((row or {}).get("reason") or NOT_COMPUTED)
        sentence = f"No subject-run has a finite level-1 contrast ({why})."
        return GateEvidence.empty(Gate.PREDICTIVE, bounds, sentence, why)
    n, over = row["n"], mean_over(row["n"], row["n_missing"])
    control = row["best_control"] or "unnamed"
    found = []
    for delta, score, who, words in (
        ("delta_nuisance", "nuisance_score", NUISANCE, NUISANCE),
        (
            "delta_control",
            "best_control_score",
            control,
            f"the best severe control (most often {control})",
        ),
    ):
        said = rivalry(row["real_score"], words, row[score], row[delta])
        found.append((row[delta], n, who, f"{said} {over}.", who))
    return GateEvidence.of(Gate.PREDICTIVE, bounds, found)


def replication_gate(row: Row | None, gates: GatesConfig) -> GateEvidence:
    """Gate Rep, from the level-1 summary."""
    n, n_positive = (row["n"], row["n_positive"]) if row else (0, 0)
    subject_runs, verb = counted(n, "subject-run"), "has" if n == 1 else "have"
    enough = f"{subject_runs} {verb} a finite level-1 contrast; {gates.min_subject_runs} are needed."
    positive = (
        f"Both contrasts are positive in {n_positive} of {subject_runs}; "
        f"{percent(gates.direction_fraction)} are needed."
    )
    return GateEvidence.of(
        Gate.REPLICATION,
        (
            (Name.N_SUBJECT_RUNS, ">=", float(gates.min_subject_runs)),
            (Name.POSITIVE_DIRECTION, ">=", gates.direction_fraction),
        ),
        (
            (float(n), n, "", enough, subject_runs),
            (n_positive / n if n else None, n, "", positive, f"{n_positive} of {subject_runs}"),
        ),
    )


def severe_gate(strongest: Row | None, reaching: Row | None, why_missing: str, gates: GatesConfig) -> GateEvidence:
    """Gate S, from the strongest control of levels 1 and 2; ``why_missing``: why level 2 has nothing to compare."""
    bounds: tuple[Bound, ...] = (
        (Name.SMALLEST_CONTROL_DELTA, ">", 0.0),
        (Name.SUMMARIES_NOT_REACHED, ">=", 1 - gates.summary_majority),
    )
    if strongest is None:
        sentence = "No counted severe control has a finite level-1 score."
        level1 = (None, 0, "", sentence, NOT_COMPUTED)
    else:
        delta, n, control = strongest["delta"], strongest["n"], strongest["control"]
        score = strongest["control_score"]
        sentence = (
            f"{rivalry(score + delta, control, score, delta)}, the smallest of {strongest['n_controls']} "
            f"counted controls {mean_over(n)}."
        )
        level1 = (delta, n, control, sentence, control or NOT_COMPUTED)
    if reaching is None:
        sentence = f"No counted severe control can be compared at level 2 ({why_missing})."
        level2 = (None, 0, "", sentence, why_missing)
    else:
        n, control = reaching["n_summaries"], reaching["condition"]
        sentence = (
            f"The strongest control, {control}, reaches the model's profile similarity in "
            f"{reaching['n_reached']} of {n} relational summaries (mean advantage of the model "
            f"{number(reaching['advantage'])}); at most {percent(gates.summary_majority)} are allowed."
        )
        level2 = (1 - reaching["share"], n, control, sentence, control or why_missing)
    return GateEvidence.of(Gate.SEVERE_CONTROL, bounds, (level1, level2))


def relational_gate(row: Row | None, gates: GatesConfig) -> GateEvidence:
    """Gate R."""
    bounds: tuple[Bound, ...] = (
        (Name.SUMMARIES_PASSING, ">", gates.summary_majority),
        (Name.TYPICAL_PASS_SHARE, ">=", gates.direction_fraction),
        (Name.TYPICAL_DELTA_REL, ">", 0.0),
    )
    if row is None or not row["n_rows"]:
        why = why_nothing(row)
        sentence = f"No unit row has a finite relational contrast ({why})."
        return GateEvidence.empty(Gate.RELATIONAL, bounds, sentence, why)
    n, n_rows, blame = row["n_summaries"], row["n_rows"], row["cause"] or ""
    control, delta = row["best_control"] or "", row["typical_delta"]
    passing = (
        f"{row['n_passing']} of {n} relational summaries pass ({counted(n_rows, 'unit row')}); "
        f"more than {percent(gates.summary_majority)} must."
    )
    share = (
        f"In the median summary {percent(row['typical_share'])} of unit rows pass; "
        f"a summary needs {percent(gates.direction_fraction)}."
    )
    shown = "no comparable contrast" if delta is None else number(delta)
    contrast = f"Mean contrast of the median summary: {shown}."
    found = (
        (row["n_passing"] / n, n, control, passing, blame),
        (row["typical_share"], n_rows, "", share, blame),
        (delta, n_rows, control, contrast, blame),
    )
    return GateEvidence.of(Gate.RELATIONAL, bounds, found)


def mechanism_gate(row: Row | None, mechanism: str, gates: GatesConfig) -> GateEvidence:
    """Gate M."""
    targets = GateEvidence.of(Gate.MECHANISM, [(Name.N_TARGETS, ">=", float(MIN_TARGETS))], [_targets(row, mechanism)])
    bounds: tuple[Bound, ...] = (
        (Name.METHODS_AGREEING, ">=", gates.method_majority),
        (Name.TYPICAL_DROP, ">", 0.0),
        (Name.TYPICAL_MARGIN, ">", 0.0),
        (Name.TYPICAL_MISMATCH_MARGIN, ">", 0.0),
    )
    if row is None or not row["n_methods"]:
        why = targets.criteria[0].beaten_by
        if row is not None and targets.passed:
            why = str(row["reason"] or NOT_COMPUTED)
        sentence = f"No stripping method has finite drops and margins for {mechanism} ({why})."
        rest = GateEvidence.empty(Gate.MECHANISM, bounds, sentence, why)
    else:
        kind, rival = row["mismatch_kind"] or "", row["best_nonmatching_target"] or ""
        n, blame = row["n_methods"], row["cause"] or ""
        agreeing = (
            f"{row['n_agreeing']} of {n} stripping methods show a selective drop for {mechanism}; "
            f"{percent(gates.method_majority)} must."
        )
        typical = (
            (row["median_drop"], "", "matching drop"),
            (row["median_margin"], rival, f"margin over {rival}"),
            (row["median_mismatch_margin"], kind, f"margin over a {kind} strip"),
        )
        found = [(row["n_agreeing"] / n, n, rival, agreeing, blame)]
        for value, against, words in typical:
            sentence = f"Median over methods of the {words}: {number(value)}."
            found.append((value, n, against, sentence, blame))
        rest = GateEvidence.of(Gate.MECHANISM, bounds, found)
    return GateEvidence(Gate.MECHANISM, (*targets.criteria, *rest.criteria))


def _targets(row: Row | None, mechanism: str) -> tuple[float | None, int, str, str, str]:
    if row is None:
        who = "No mechanism was" if mechanism == NO_MECHANISM else f"{mechanism} was not"
        sentence = f"{who} stripped here."
        return None, 0, "", sentence[:1].upper() + sentence[1:], NOT_COMPUTED
    blame, detail = str(RowLabel.INSUFFICIENT_TARGETS), ""
    if row["n_targets"] < MIN_TARGETS and row["target_reason"]:
        blame = str(row["target_reason"])
        detail = f" ({mechanism}: {blame})"
    sentence = f"{counted(row['n_targets'], 'mechanism')} with target units; {MIN_TARGETS} are needed{detail}."
    return float(row["n_targets"]), row["n_rows"], "", sentence, blame


def ceiling_gate(row: Row | None, relational: Row | None, gates: GatesConfig) -> GateEvidence:
    """Gate T; ``relational`` names the control behind a contrast that is not positive."""
    least, fraction = gates.min_reliability, gates.min_ceiling_fraction
    bounds: tuple[Bound, ...] = (
        (Name.MEAN_RELIABILITY, ">=", least),
        (Name.MEAN_DELTA_FRACTION, ">", 0.0),
        (Name.MEAN_FRACTION_OF_CEILING, ">=", fraction),
        (Name.MEDIAN_FRACTION_OF_CEILING, ">=", fraction),
    )
    if row is None or row["reliability"] is None:
        why = NOT_COMPUTED if row is None else str(row["reason"] or Reason.NO_VALID_CEILING)
        sentence = f"No subject-run has a brain–brain reliability ({why})."
        return GateEvidence.empty(Gate.CEILING, bounds, sentence, why)
    mode, n_reliability = row["mode"] or "", row["n_reliability"]
    alone = "; only split half is valid, which slow drift can inflate"
    sentence = (
        f"Brain–brain reliability is {number(row['reliability'])}, {mode} {mean_over(n_reliability)}; "
        f"{number(least)} is needed{alone if row['split_half_alone'] else ''}."
    )
    found = [(row["reliability"], n_reliability, mode, sentence, mode)]
    n, delta = row["n_fraction"], row["delta_fraction"]
    if delta is None:
        why = str(row["reason"] or RowLabel.INSUFFICIENT_BRAIN_CEILING)
        sentence = f"No row has both a sufficient reliability and a contrast ({why})."
        found += [(None, 0, "", sentence, why)] * 3
        return GateEvidence.of(Gate.CEILING, bounds, found)
    control, over = (relational["best_control"] if relational else None) or "", mean_over(n)
    contrast = f"Contrast with the best control: {number(delta)} of the ceiling {over}."
    reaches = (
        f"The model reaches {number(row['fraction_of_ceiling'])} of the {mode} ceiling {over}; "
        f"{number(fraction)} is needed."
    )
    typical = (
        f"In the median relational summary it reaches {number(row['median_fraction'])} of the ceiling; "
        f"{number(fraction)} is needed."
    )
    found += [
        (delta, n, control, contrast, control or mode),
        (row["fraction_of_ceiling"], n, mode, reaches, mode),
        (row["median_fraction"], n, mode, typical, mode),
    ]
    return GateEvidence.of(Gate.CEILING, bounds, found)
