"""From measured tables to verdicts: a pure function of tables and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, Layer, attach, complete, read_measured
from lpact.analyses.lpact.gates.calibrated.evidence import CalibratedEvidence, DrawTables
from lpact.analyses.lpact.gates.claim_tables import (
    ProfileEvidence,
    claim_tables,
    decision_table,
    integrated_table,
)
from lpact.analyses.lpact.gates.claims import (
    Claim,
    Standing,
    list_claims,
    list_layers,
    read_standings,
)
from lpact.analyses.lpact.gates.discoveries import gate_p_value
from lpact.analyses.lpact.gates.evidence import Evidence, LabelledRows, passed_by_layer
from lpact.analyses.lpact.gates.known import Known
from lpact.analyses.lpact.gates.outcome import explained_claims, study_outcome, summarise_decisions
from lpact.analyses.lpact.gates.rows import (
    failure_modes,
    label_ceiling,
    label_predictive,
    label_relational,
    with_direction,
    with_pass_fraction,
)
from lpact.analyses.lpact.gates.stripping_rows import (
    label_dissociations,
    label_specificity,
    label_stripping_deltas,
)
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

PAPER = "paper"
"""Name of the point rules in every decision table."""

CALIBRATED = "calibrated"
"""Name of the tests in every decision table."""

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
        Measured tables by full name; at least those of `NEEDED`, others are not looked at. Columns that an earlier
        decision filled are dropped and made anew, so that deciding a stored run again gives identical frames.
    gates
        Thresholds.
    primary_metric
        Level-1 metric that the gates look at.

    Returns
    -------
    dict
        By full name: every table with decided columns, complete, then the failure modes of level 1 and the tables
        of ``decisions/``. All are sorted by key, whatever the order of the given rows.
    """
    measured = read_all(tables)
    found = gather(measured, gates=gates, primary_metric=primary_metric, known=Known())
    return decide_gathered(measured, found)


def read_all(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The measured columns of all tables that the decision needs, validated and sorted."""
    return {table.name: read_measured(tables, table) for table in NEEDED}


@dataclass(frozen=True)
class Gathered:
    """Labelled rows, and the gates of all claims under both profiles."""

    gates: GatesConfig
    rows: LabelledRows
    claims: list[Claim]
    standings: Mapping[str, Standing]
    paper: Evidence
    calibrated: CalibratedEvidence

    def profiles(self) -> list[tuple[str, ProfileEvidence, bool]]:
        """Name, evidence, and whether labels are corrected over all claims."""
        return [(PAPER, self.paper, False), (CALIBRATED, self.calibrated, True)]

    def promising_layers(self, enough: float) -> set[Layer]:
        """As `lpact.analyses.lpact.gates.screening.promising_layers`, from gates that are evaluated already."""
        paper, tested = self.paper, self.calibrated.layers
        level1 = (Gate.PREDICTIVE, Gate.REPLICATION)
        return {
            layer
            for layer in tested
            if (paper.predictive[layer].passed and paper.replication[layer].passed)
            or not max(gate_p_value(tested[layer][gate]) for gate in level1) > enough
        }

    def without_dataset(self, dataset: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Decision table and study outcome of a study without one dataset.

        What a layer shows depends on its own rows alone, so that no gate is evaluated again. The claims of a study
        name the mechanisms that it strips anywhere, and are corrected together: both are those of the rest.
        """
        layers = [layer for layer in list_layers(self.rows.predictive) if layer[0] != dataset]
        claims = list_claims(layers, self.rows.specificity.filter(pl.col("dataset") != dataset))
        standings = {name: s for name, s in self.standings.items() if name != dataset}
        decisions = {
            name: decision_table(evidence, claims, standings, self.gates, name, corrected=corrected)
            for name, evidence, corrected in self.profiles()
        }
        outcomes = [study_outcome(made, standings, p) for p, made in decisions.items()]
        return pl.concat(decisions.values()), pl.concat(outcomes)


def gather(
    measured: Mapping[str, pl.DataFrame],
    *,
    gates: GatesConfig,
    primary_metric: str,
    known: Known,
    stripped: pl.DataFrame | None = None,
) -> Gathered:
    """Label the rows and evaluate the gates, from what `read_all` returns.

    ``stripped`` is the mechanism specificity of the whole study, where only some layers are looked at: a claim is made
    about every mechanism that is stripped anywhere.
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
    claims = list_claims(layers, rows.specificity if stripped is None else stripped)
    standings = read_standings(measured[EVIDENCE_FEASIBILITY.name], layers)
    paper = Evidence(rows, layers, claims, gates, primary_metric, known)
    calibrated = CalibratedEvidence(
        rows, _test_tables(measured), layers, claims, gates, primary_metric, paper, known
    )
    return Gathered(gates, rows, claims, standings, paper, calibrated)


def decide_gathered(
    measured: Mapping[str, pl.DataFrame], found: Gathered
) -> dict[str, pl.DataFrame]:
    """The tables that `decide` returns, from the gates of all claims."""
    by_profile = {
        name: claim_tables(
            evidence, found.claims, found.standings, found.gates, name, corrected=corrected
        )
        for name, evidence, corrected in found.profiles()
    }
    decisions = _stack([made for made, _ in by_profile.values()], DECISIONS)
    return {
        **_row_tables(measured, found.rows, found.paper),
        DECISIONS.name: decisions,
        GATE_EVIDENCE.name: _stack([e for _, e in by_profile.values()], GATE_EVIDENCE),
        CONTROL_EXPLAINED.name: explained_claims(decisions),
        DECISION_SUMMARY.name: summarise_decisions(decisions),
        STUDY_OUTCOME.name: _stack(
            [study_outcome(d, found.standings, p) for p, (d, _) in by_profile.items()],
            STUDY_OUTCOME,
        ),
    }


def integrated_claims(found: Gathered) -> pl.DataFrame:
    """Which claims pass every gate, before any correction: for those who decide many times and only count."""
    return pl.concat(
        integrated_table(evidence, found.claims, found.standings, found.gates, name, tested=tested)
        for name, evidence, tested in found.profiles()
    )


def _stack(frames: Sequence[pl.DataFrame], table: Table) -> pl.DataFrame:
    return validate(pl.concat(frames), table)


def _test_tables(measured: Mapping[str, pl.DataFrame]) -> DrawTables:
    return DrawTables(
        scores=measured[PREDICTIVE_SCORES.name],
        blocks=measured[BLOCK_SCORES.name],
        relational_nulls=measured[RELATIONAL_NULLS.name],
        block_drops=measured[BLOCK_DROPS.name],
    )


def _row_tables(
    measured: Mapping[str, pl.DataFrame], rows: LabelledRows, evidence: Evidence
) -> dict[str, pl.DataFrame]:
    """Tables of levels 1 to 4 with their decided columns."""
    upstream = attach(
        passed_by_layer(evidence.predictive, "predictive"),
        passed_by_layer(evidence.relational, "relational"),
        LAYER_KEY,
    )
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
