"""From measured tables to verdicts: a pure function of tables and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.calibrated.tests import calibrated_profile
from lpact.analyses.lpact.gates.criteria import ClaimEvidence, Criterion, CriterionName, GateProfile
from lpact.analyses.lpact.gates.keys import Claim, read_measured
from lpact.analyses.lpact.gates.labels import (
    failure_modes,
    label_ceiling,
    label_dissociations,
    label_predictive,
    label_relational,
    label_specificity,
    label_stripping_deltas,
    with_direction,
    with_pass_fraction,
)
from lpact.analyses.lpact.gates.point_rules import Summaries, paper_profile
from lpact.analyses.lpact.gates.verdict import (
    RUNGS,
    Case,
    Discoveries,
    RawEvidence,
    Standing,
    discover,
    list_claims,
    list_layers,
    read_standings,
    rung_p_values,
)
from lpact.analyses.lpact.tables import levels
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import (
    CONTROL_EXPLAINED,
    DECISION_SUMMARY,
    DECISIONS,
    GATE_EVIDENCE,
    STUDY_OUTCOME,
)
from lpact.codes import FinalLabel, Gate, Outcome
from lpact.errors import TableError, require_known
from lpact.store import polars_schema, validate
from lpact.tables import Table
from lpact.wording import counted

NEEDED: tuple[Table, ...] = (
    EVIDENCE_FEASIBILITY,
    levels.CONTROL_DELTAS,
    levels.CONTROL_NULLS,
    levels.PREDICTIVE_SCORES,
    levels.BLOCK_SCORES,
    levels.SUBJECT_RUN_SUMMARY,
    levels.PROFILE_SCORES,
    levels.PROFILE_DELTAS,
    levels.RELATIONAL_NULLS,
    levels.RELATIONAL_SUMMARY,
    levels.STRIPPING_DELTAS,
    levels.BLOCK_DROPS,
    levels.SPECIFICITY,
    levels.DISSOCIATIONS,
    levels.NORMALIZED_SCORES,
)
"""Measured tables that the decision reads."""


def decide(tables: Mapping[str, pl.DataFrame], *, gates: GatesConfig, primary_metric: str) -> dict[str, pl.DataFrame]:
    """Label every row by the point rules, and judge every claim under both gate profiles.

    Parameters
    ----------
    tables
        Measured tables by full name; at least those of `NEEDED`, others are ignored. Columns of an earlier decision are
        dropped and recomputed, so that deciding a stored run gives identical frames.
    gates
        Thresholds.
    primary_metric
        Level-1 metric of the gates.

    Returns
    -------
    dict
        By full name: every table with decided columns, complete, then the failure modes of level 1 and the tables
        of ``decisions/``. All are sorted by key.
    """
    return decide_gathered(gather(read_all(tables), gates=gates, primary_metric=primary_metric))


def read_all(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The measured columns of all tables that the decision needs, validated and sorted."""
    return {table.name: read_measured(tables, table) for table in NEEDED}


@dataclass(frozen=True)
class Gathered:
    """Labelled rows, the gates of all claims under both profiles, and what claims show without controls."""

    rows: Mapping[str, pl.DataFrame]
    profiles: tuple[GateProfile, GateProfile]
    gates: GatesConfig
    claims: Sequence[Claim]
    raw: Mapping[Claim, RawEvidence]
    standings: Mapping[str, Standing]

    def case(self, claim: Claim, evidence: ClaimEvidence) -> Case:
        """One claim with its gates."""
        return Case(evidence, self.standings[claim[0]], self.raw[claim], self.gates)

    def without_dataset(self, dataset: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Decision table and study outcome of a study without one dataset.

        The gates of a layer depend on its own rows alone and are not evaluated again. Claims name the mechanisms that
        the study strips anywhere and are corrected together; both are those of the remaining datasets.
        """
        layers = [layer for layer in list_layers(self.rows[levels.CONTROL_DELTAS.name]) if layer[0] != dataset]
        specificity = self.rows[levels.SPECIFICITY.name].filter(pl.col("dataset") != dataset)
        standings = {name: s for name, s in self.standings.items() if name != dataset}
        left = replace(self, claims=list_claims(layers, specificity), standings=standings)
        return left.decisions()

    def decisions(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Decision table and study outcome under both profiles."""
        decided = {profile.name: decision_table(profile, self) for profile in self.profiles}
        outcomes = [study_outcome(own, self.standings, name) for name, own in decided.items()]
        return pl.concat(decided.values()), pl.concat(outcomes)

    def integrated(self) -> pl.DataFrame:
        """Which claims pass every gate, before multiple-testing correction."""
        return pl.concat(integrated_table(profile, self) for profile in self.profiles)


def gather(
    measured: Mapping[str, pl.DataFrame],
    *,
    gates: GatesConfig,
    primary_metric: str,
    stripped: pl.DataFrame | None = None,
    stop_above: float = 1.0,
) -> Gathered:
    """Label the rows and evaluate the gates, from what `read_all` returns.

    ``stripped`` is the mechanism specificity of the whole study, where ``measured`` has only some layers: a claim is
    made about every mechanism that is stripped anywhere. A layer or claim with a p-value above ``stop_above`` is not
    tested further, and what is not tested does not pass: enough to know which claims are integrated.
    """
    scored = measured[levels.CONTROL_DELTAS.name]["metric"].unique().sort()
    if stripped is None and len(scored):
        where = f"table '{levels.CONTROL_DELTAS.name}', column 'metric'"
        require_known(primary_metric, scored, "level-1 metric", where=where, error=TableError)
    deltas, profile_deltas = levels.CONTROL_DELTAS.name, levels.PROFILE_DELTAS.name
    normalized = levels.NORMALIZED_SCORES.name
    rows = {
        **measured,
        deltas: label_predictive(measured[deltas]),
        profile_deltas: label_relational(measured[profile_deltas], gates),
        normalized: label_ceiling(measured[normalized], gates),
    }
    layers = list_layers(rows[deltas])
    names = list_claims(layers, rows[levels.SPECIFICITY.name] if stripped is None else stripped)
    standings = read_standings(measured[EVIDENCE_FEASIBILITY.name], layers)
    found = Summaries(rows, gates, primary_metric)
    paper = paper_profile(found, layers, names, gates)
    calibrated = calibrated_profile(rows, paper, found, gates, primary_metric, stop_above)
    raw = {claim: found.raw(claim) for claim in names}
    return Gathered(rows, (paper, calibrated), gates, names, raw, standings)


def decide_gathered(found: Gathered) -> dict[str, pl.DataFrame]:
    """The tables that `decide` returns, from the gates of all claims."""
    decisions, outcomes = found.decisions()
    decisions = validate(decisions, DECISIONS)
    evidence = [evidence_table(profile, found) for profile in found.profiles]
    return {
        **_row_tables(found.rows, found.profiles[0]),
        DECISIONS.name: decisions,
        GATE_EVIDENCE.name: validate(pl.concat(evidence), GATE_EVIDENCE),
        CONTROL_EXPLAINED.name: explained_claims(decisions),
        DECISION_SUMMARY.name: summarise_decisions(decisions),
        STUDY_OUTCOME.name: validate(outcomes, STUDY_OUTCOME),
    }


def _row_tables(rows: Mapping[str, pl.DataFrame], paper: GateProfile) -> dict[str, pl.DataFrame]:
    """Tables of levels 1 to 4 with their decided columns."""
    columns = {"predictive": pl.Boolean, "relational": pl.Boolean}
    schema = {"dataset": pl.String, "model": pl.String, "layer": pl.Int64, **columns}
    passed = [
        (*layer, gates[Gate.PREDICTIVE].passed, gates[Gate.RELATIONAL].passed) for layer, gates in paper.layers.items()
    ]
    upstream = pl.DataFrame(passed, schema=schema, orient="row")
    predictive, relational = rows[levels.CONTROL_DELTAS.name], rows[levels.PROFILE_DELTAS.name]
    specificity = label_specificity(rows[levels.SPECIFICITY.name], upstream)
    drops = label_stripping_deltas(rows[levels.STRIPPING_DELTAS.name], specificity, upstream)
    labelled = {
        levels.CONTROL_DELTAS: predictive,
        levels.SUBJECT_RUN_SUMMARY: with_direction(rows[levels.SUBJECT_RUN_SUMMARY.name]),
        levels.FAILURE_MODES: failure_modes(predictive),
        levels.PROFILE_DELTAS: relational,
        levels.RELATIONAL_SUMMARY: with_pass_fraction(rows[levels.RELATIONAL_SUMMARY.name], relational),
        levels.STRIPPING_DELTAS: drops,
        levels.SPECIFICITY: specificity,
        levels.DISSOCIATIONS: label_dissociations(rows[levels.DISSOCIATIONS.name]),
        levels.NORMALIZED_SCORES: rows[levels.NORMALIZED_SCORES.name],
    }
    return {table.name: frame.select(table.column_names) for table, frame in labelled.items()}


def decision_table(profile: GateProfile, found: Gathered) -> pl.DataFrame:
    """One row per claim, in the order of the claims."""
    evidence = {claim: profile.of(claim) for claim in found.claims}
    corrected: Mapping[Claim, Discoveries] = {}
    if profile.corrected:
        corrected = discover(evidence, found.standings, found.claims, found.gates)
    rows = []
    for claim, own in evidence.items():
        row = _decision_row(found.case(claim, own), corrected.get(claim, Discoveries()))
        rows.append((*claim, profile.name, *row))
    return pl.DataFrame(rows, schema=polars_schema(DECISIONS), orient="row")


def _decision_row(case: Case, discoveries: Discoveries) -> tuple[Any, ...]:
    """The columns after the key, in their declared order. No gate of a diagnostic dataset is passed."""
    evidence, standing = case.evidence, case.standing
    passed = (
        evidence[Gate.PREDICTIVE].passed,
        evidence[Gate.RELATIONAL].passed,
        evidence[Gate.MECHANISM].passed,
        evidence[Gate.CEILING].passed,
        evidence.severe_level1.passed,
        evidence.severe_level2.passed,
        evidence[Gate.SEVERE_CONTROL].passed,
        evidence[Gate.REPLICATION].passed,
        evidence.passed and FinalLabel.INTEGRATED_CANDIDATE in discoveries.allowed,
    )
    return (
        standing.role,
        case.raw.n_subject_runs,
        case.raw.score,
        case.raw_positive,
        *(standing.confirmatory and gate for gate in passed),
        discoveries.p_value,
        discoveries.q_value,
        *case.verdict(discoveries),
    )


def evidence_table(profile: GateProfile, found: Gathered) -> pl.DataFrame:
    """One row per claim, gate and criterion.

    The first criterion of every gate is the dataset's standing, so that a gate passes exactly if all decisive rows do.
    """
    order = {gate: place for place, gate in enumerate(Gate)}
    rows = []
    for claim in found.claims:
        standing = found.standings[claim[0]]
        name, value = CriterionName.CONFIRMATORY, float(standing.confirmatory)
        said = (standing.role, standing.sentence, standing.why_not)
        confirmatory = Criterion(name, ">=", 1.0, value, 1, *said)
        for gate in profile.of(claim).gates.values():
            for place, c in enumerate((confirmatory, *gate.criteria)):
                key = (*claim, profile.name, gate.gate.value, order[gate.gate], c.name.value, place)
                numbers = (c.value, c.relation, c.threshold, c.passed, c.n)
                rows.append((*key, *numbers, c.compared_with, c.sentence))
    table = pl.DataFrame(rows, schema=polars_schema(GATE_EVIDENCE), orient="row")
    return validate(table, GATE_EVIDENCE)


def integrated_table(profile: GateProfile, found: Gathered) -> pl.DataFrame:
    """Which claims pass every gate before multiple-testing correction, without the words of the decision table.

    ``uncovered``: the label is `insufficient_coverage`. ``p_value`` as in the decision table, where the profile has
    tests.
    """
    rows = []
    for claim in found.claims:
        evidence, standing = profile.of(claim), found.standings[claim[0]]
        label = found.case(claim, evidence).label(frozenset(RUNGS))
        p = None
        if profile.corrected and standing.confirmatory:
            p = rung_p_values(evidence, found.gates)[FinalLabel.INTEGRATED_CANDIDATE]
        passed = standing.confirmatory and evidence.passed
        rows.append((*claim, profile.name, passed, label is FinalLabel.INSUFFICIENT_COVERAGE, p))
    declared = polars_schema(DECISIONS)
    schema = {name: declared[name] for name in DECISIONS.key}
    schema |= {"passed": pl.Boolean(), "uncovered": pl.Boolean(), "p_value": pl.Float64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def explained_claims(decisions: pl.DataFrame) -> pl.DataFrame:
    """Claims with a raw positive that nuisance, a control or an unmet gate accounts for."""
    explained = decisions.filter(pl.col("label") == FinalLabel.CONTROL_EXPLAINED.value)
    return validate(explained.select(CONTROL_EXPLAINED.column_names), CONTROL_EXPLAINED)


def summarise_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Count claims and passed gates by dataset and verdict."""
    gates = ("predictive", "relational", "ceiling", "severe_control", "replication")
    columns = {"mechanism": "mechanism_specific", **{gate: gate for gate in gates}}
    summary = decisions.group_by(DECISION_SUMMARY.key, maintain_order=True).agg(
        n_claims=pl.len().cast(pl.Int64),
        **{f"n_{name}": pl.col(gate).sum().cast(pl.Int64) for name, gate in columns.items()},
    )
    return validate(summary, DECISION_SUMMARY)


def study_outcome(decisions: pl.DataFrame, standings: Mapping[str, Standing], gate_profile: str) -> pl.DataFrame:
    """Outcome A, B, C or D over the claims of confirmatory datasets with a complete chain; I if there is none."""
    trusted = [name for name, s in standings.items() if s.confirmatory and s.chain_complete]
    claims = decisions.filter(pl.col("dataset").is_in(trusted))
    n_by_label: dict[str, int] = dict(claims["label"].value_counts().iter_rows())
    steps = (
        (Outcome.A, (FinalLabel.INTEGRATED_CANDIDATE,)),
        (Outcome.B, (FinalLabel.RELATIONAL_CANDIDATE, FinalLabel.MECHANISM_SPECIFIC_CANDIDATE)),
        (Outcome.C, (FinalLabel.PREDICTIVE_ONLY,)),
    )
    outcome = Outcome.I
    if claims.height:
        reached = (o for o, labels in steps if any(n_by_label.get(v.value) for v in labels))
        outcome = next(reached, Outcome.D)
    meaning = outcome.explanation
    # Lack of coverage is no evidence of absence.
    if n_uncovered := n_by_label.get(FinalLabel.INSUFFICIENT_COVERAGE.value, 0):
        of = counted(claims.height, "confirmatory claim")
        meaning = f"{meaning.rstrip('.')} ({n_uncovered} of {of} lack coverage)."
    confirmatory = [name for name, s in standings.items() if s.confirmatory]
    row = {
        "gate_profile": gate_profile,
        "outcome": outcome.value,
        "meaning": meaning,
        "n_claims": decisions.height,
        "n_confirmatory_claims": decisions.filter(pl.col("dataset").is_in(confirmatory)).height,
        "n_integrated": n_by_label.get(FinalLabel.INTEGRATED_CANDIDATE.value, 0),
    }
    return validate(pl.DataFrame([row]), STUDY_OUTCOME)
