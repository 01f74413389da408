"""From measured tables to verdicts: a pure function of tables and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import complete, read_measured
from lpact.analyses.lpact.gates.calibrated.evidence import calibrated_profile
from lpact.analyses.lpact.gates.claim_tables import (
    Claims,
    decision_table,
    evidence_table,
    explained_claims,
    integrated_table,
    study_outcome,
    summarise_decisions,
)
from lpact.analyses.lpact.gates.claims import list_claims, list_layers, read_standings
from lpact.analyses.lpact.gates.criteria import Profile
from lpact.analyses.lpact.gates.point_rules import Summaries, paper_profile
from lpact.analyses.lpact.gates.rows import (
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
from lpact.analyses.lpact.gates.summaries import LabelledRows
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import (
    CONTROL_EXPLAINED,
    DECISION_SUMMARY,
    DECISIONS,
    GATE_EVIDENCE,
    STUDY_OUTCOME,
)
from lpact.analyses.lpact.tables.levels import (
    BLOCK_DROPS,
    BLOCK_SCORES,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    DISSOCIATIONS,
    FAILURE_MODES,
    NORMALIZED_SCORES,
    PREDICTIVE_SCORES,
    PROFILE_DELTAS,
    PROFILE_SCORES,
    RELATIONAL_NULLS,
    RELATIONAL_SUMMARY,
    SPECIFICITY,
    STRIPPING_DELTAS,
    SUBJECT_RUN_SUMMARY,
)
from lpact.codes import Gate
from lpact.errors import TableError, did_you_mean
from lpact.store import validate
from lpact.tables import Table

NEEDED: tuple[Table, ...] = (
    EVIDENCE_FEASIBILITY,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    PREDICTIVE_SCORES,
    BLOCK_SCORES,
    SUBJECT_RUN_SUMMARY,
    PROFILE_SCORES,
    PROFILE_DELTAS,
    RELATIONAL_NULLS,
    RELATIONAL_SUMMARY,
    STRIPPING_DELTAS,
    BLOCK_DROPS,
    SPECIFICITY,
    DISSOCIATIONS,
    NORMALIZED_SCORES,
)
"""Measured tables that the decision reads."""


def decide(
    tables: Mapping[str, pl.DataFrame], *, gates: GatesConfig, primary_metric: str
) -> dict[str, pl.DataFrame]:
    """Label every row by the point rules, and judge every claim under both gate profiles.

    Parameters
    ----------
    tables
        Measured tables by full name; at least those of `NEEDED`, others are ignored. Columns of an earlier decision are
        dropped and made again, so that deciding a stored run gives identical frames.
    gates
        Thresholds.
    primary_metric
        Level-1 metric of the gates.

    Returns
    -------
    dict
        By full name: every table with decided columns, complete, then the failure modes of level 1 and the tables
        of ``decisions/``. All are sorted by key, whatever the order of the given rows.
    """
    measured = read_all(tables)
    return decide_gathered(measured, gather(measured, gates=gates, primary_metric=primary_metric))


def read_all(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The measured columns of all tables that the decision needs, validated and sorted."""
    return {table.name: read_measured(tables, table) for table in NEEDED}


@dataclass(frozen=True)
class Gathered:
    """Labelled rows, and the gates of all claims under both profiles."""

    rows: LabelledRows
    claims: Claims
    profiles: tuple[Profile, Profile]

    def without_dataset(self, dataset: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Decision table and study outcome of a study without one dataset.

        The gates of a layer depend on its own rows alone and are not evaluated again. Claims name the mechanisms that
        the study strips anywhere and are corrected together; both are those of the remaining datasets.
        """
        layers = [layer for layer in list_layers(self.rows.predictive) if layer[0] != dataset]
        names = list_claims(layers, self.rows.specificity.filter(pl.col("dataset") != dataset))
        standings = {name: s for name, s in self.claims.standings.items() if name != dataset}
        claims = replace(self.claims, names=names, standings=standings)
        decisions = [decision_table(profile, claims) for profile in self.profiles]
        outcomes = [
            study_outcome(made, standings, profile.name)
            for made, profile in zip(decisions, self.profiles, strict=True)
        ]
        return pl.concat(decisions), pl.concat(outcomes)

    def integrated(self) -> pl.DataFrame:
        """Which claims pass every gate, before any correction."""
        return pl.concat(integrated_table(profile, self.claims) for profile in self.profiles)


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
    if stripped is None:
        _check_metric(measured[CONTROL_DELTAS.name], primary_metric)
    rows = LabelledRows(
        predictive=label_predictive(measured[CONTROL_DELTAS.name]),
        nulls=measured[CONTROL_NULLS.name],
        similarities=measured[PROFILE_SCORES.name],
        relational=label_relational(measured[PROFILE_DELTAS.name], gates),
        relational_summary=measured[RELATIONAL_SUMMARY.name],
        specificity=measured[SPECIFICITY.name],
        ceiling=label_ceiling(measured[NORMALIZED_SCORES.name], gates),
    )
    layers = list_layers(rows.predictive)
    names = list_claims(layers, rows.specificity if stripped is None else stripped)
    standings = read_standings(measured[EVIDENCE_FEASIBILITY.name], layers)
    found = Summaries(rows, gates, primary_metric)
    paper = paper_profile(found, layers, names, gates)
    calibrated = calibrated_profile(rows, measured, paper, found, gates, primary_metric, stop_above)
    claims = Claims(gates, names, {claim: found.raw(claim) for claim in names}, standings)
    return Gathered(rows, claims, (paper, calibrated))


def decide_gathered(
    measured: Mapping[str, pl.DataFrame], found: Gathered
) -> dict[str, pl.DataFrame]:
    """The tables that `decide` returns, from the gates of all claims."""
    claims = found.claims
    by_profile = {profile.name: decision_table(profile, claims) for profile in found.profiles}
    decisions = validate(pl.concat(by_profile.values()), DECISIONS)
    outcomes = [study_outcome(made, claims.standings, name) for name, made in by_profile.items()]
    evidence = [evidence_table(profile, claims) for profile in found.profiles]
    return {
        **_row_tables(measured, found.rows, found.profiles[0]),
        DECISIONS.name: decisions,
        GATE_EVIDENCE.name: validate(pl.concat(evidence), GATE_EVIDENCE),
        CONTROL_EXPLAINED.name: explained_claims(decisions),
        DECISION_SUMMARY.name: summarise_decisions(decisions),
        STUDY_OUTCOME.name: validate(pl.concat(outcomes), STUDY_OUTCOME),
    }


def _row_tables(
    measured: Mapping[str, pl.DataFrame], rows: LabelledRows, paper: Profile
) -> dict[str, pl.DataFrame]:
    """Tables of levels 1 to 4 with their decided columns."""
    columns = {"predictive": pl.Boolean, "relational": pl.Boolean}
    schema = {"dataset": pl.String, "model": pl.String, "layer": pl.Int64, **columns}
    passed = [
        (*layer, gates[Gate.PREDICTIVE].passed, gates[Gate.RELATIONAL].passed)
        for layer, gates in paper.layers.items()
    ]
    upstream = pl.DataFrame(passed, schema=schema, orient="row")
    specificity = label_specificity(rows.specificity, upstream)
    labelled = {
        CONTROL_DELTAS: rows.predictive,
        SUBJECT_RUN_SUMMARY: with_direction(measured[SUBJECT_RUN_SUMMARY.name]),
        FAILURE_MODES: failure_modes(rows.predictive),
        PROFILE_DELTAS: rows.relational,
        RELATIONAL_SUMMARY: with_pass_fraction(rows.relational_summary, rows.relational),
        STRIPPING_DELTAS: label_stripping_deltas(
            measured[STRIPPING_DELTAS.name], specificity, upstream
        ),
        SPECIFICITY: specificity,
        DISSOCIATIONS: label_dissociations(measured[DISSOCIATIONS.name]),
        NORMALIZED_SCORES: rows.ceiling,
    }
    return {table.name: complete(frame, table) for table, frame in labelled.items()}


def _check_metric(control_deltas: pl.DataFrame, primary_metric: str) -> None:
    known = control_deltas["metric"].unique().sort().to_list()
    if known and primary_metric not in known:
        raise TableError(
            f"no level-1 row holds the primary metric '{primary_metric}'",
            where=f"table '{CONTROL_DELTAS.name}', column 'metric'",
            got=", ".join(known),
            expected=primary_metric,
            remedy=did_you_mean(primary_metric, known),
        )
