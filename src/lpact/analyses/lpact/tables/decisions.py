"""Tables of the decision."""

from __future__ import annotations

from lpact.tables import CLAIM, CLAIM_KEY, Column, Table

_PROFILE = Column(
    "gate_profile", "str", "Gate profile: `paper` point rules, or `calibrated` tests."
)

DECISIONS = Table(
    "decisions/lpact_decision_table",
    "One row per claim and gate profile: every gate, the verdict and the reason.",
    (*CLAIM_KEY, "gate_profile"),
    (
        *CLAIM,
        _PROFILE,
        Column("role", "str", "Role of the dataset after the audit."),
        Column("n_subject_runs", "int", "Subject-runs with a finite level-1 contrast."),
        Column(
            "raw_score", "float", "Conventional score: mean real held-out score.", nullable=True
        ),
        Column("raw_positive", "bool", "Whether any level shows a raw positive."),
        Column("predictive", "bool", "P."),
        Column("relational", "bool", "R."),
        Column("mechanism_specific", "bool", "M."),
        Column("ceiling", "bool", "T."),
        Column("severe_control_level1", "bool", "S at level 1."),
        Column("severe_control_level2", "bool", "S at level 2."),
        Column("severe_control", "bool", "S at both levels."),
        Column("replication", "bool", "Rep."),
        Column(
            "integrated",
            "bool",
            "P · R · M · T · S · Rep; for `calibrated` also after correction over claims.",
        ),
        Column(
            "p_value",
            "float",
            "Largest p-value of all gates; `calibrated` and confirmatory claims only.",
            nullable=True,
        ),
        Column(
            "q_value",
            "float",
            "The same, corrected over the study's confirmatory claims (Benjamini–Hochberg).",
            nullable=True,
        ),
        Column("label", "str", "Verdict."),
        Column("first_failed_gate", "str", "First gate that failed, or `none`."),
        Column(
            "beaten_by",
            "str",
            "Nuisance, control, target or bound that the failure names, or `none`.",
        ),
        Column("reason", "str", "The verdict in one sentence."),
    ),
)

GATE_EVIDENCE = Table(
    "decisions/lpact_gate_evidence",
    "One row per claim, gate profile, gate and criterion: the number, its threshold and what it was compared with.",
    (*CLAIM_KEY, "gate_profile", "gate", "criterion"),
    (
        *CLAIM,
        _PROFILE,
        Column("gate", "str", "Gate."),
        Column("gate_order", "int", "Place of the gate in the chain, from 0."),
        Column("criterion", "str", "What was measured."),
        Column("criterion_order", "int", "Place of the criterion in its gate, from 0."),
        Column("value", "float", "The number.", nullable=True),
        Column("relation", "str", "`>`, `>=`, or `<=` for p-values."),
        Column("threshold", "float", "What it is compared with."),
        Column("passed", "bool", "Whether the criterion holds."),
        Column("n", "int", "Rows that the number summarises."),
        Column("compared_with", "str", "The control, target or bound that set it, or empty."),
        Column("sentence", "str", "The criterion in plain words."),
    ),
)

CONTROL_EXPLAINED = Table(
    "decisions/control_explained_results",
    "One row per claim that nuisance, a control or an unmet gate explains.",
    (*CLAIM_KEY, "gate_profile"),
    (
        *CLAIM,
        _PROFILE,
        Column("first_failed_gate", "str", "First gate that failed."),
        Column("beaten_by", "str", "What the failure names."),
        Column(
            "raw_score", "float", "Conventional score: mean real held-out score.", nullable=True
        ),
        Column("reason", "str", "The verdict in one sentence."),
    ),
)

DECISION_SUMMARY = Table(
    "decisions/lpact_decision_summary",
    "One row per dataset, gate profile and verdict: how many claims, and how many pass each gate.",
    ("dataset", "gate_profile", "label"),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        _PROFILE,
        Column("label", "str", "Verdict."),
        Column("n_claims", "int", "Claims."),
        Column("n_predictive", "int", "Claims that pass P."),
        Column("n_relational", "int", "Claims that pass R."),
        Column("n_mechanism", "int", "Claims that pass M."),
        Column("n_ceiling", "int", "Claims that pass T."),
        Column("n_severe_control", "int", "Claims that pass S."),
        Column("n_replication", "int", "Claims that pass Rep."),
    ),
)

STUDY_OUTCOME = Table(
    "decisions/lpact_study_outcome",
    "One row per gate profile: the outcome of the study.",
    ("gate_profile",),
    (
        _PROFILE,
        Column("outcome", "str", "A, B, C, D or I."),
        Column("meaning", "str", "The outcome in one sentence."),
        Column("n_claims", "int", "Claims."),
        Column("n_confirmatory_claims", "int", "Claims of confirmatory datasets."),
        Column("n_integrated", "int", "Integrated candidates."),
    ),
)

TABLES = (DECISIONS, GATE_EVIDENCE, CONTROL_EXPLAINED, DECISION_SUMMARY, STUDY_OUTCOME)
