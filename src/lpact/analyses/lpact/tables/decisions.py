"""Tables of the decision, and of the statements that it supports (the claim audit)."""

from __future__ import annotations

from lpact.tables import SHARED

_VOCABULARY = SHARED.add(
    """
    gate_profile  str     Gate profile: `paper` point rules, or `calibrated` tests.
    raw_score     float?  Conventional score: mean real held-out score.
    label         str     Verdict.
    n_claims      int     Claims.
    """
)

DECISIONS = _VOCABULARY.table("""
    decisions/lpact_decision_table
    One row per claim and gate profile: every gate, the verdict and the reason.
    key: claim gate_profile

    role                   str     Role of the dataset after the audit.
    n_subject_runs         int     Subject-runs with a finite level-1 contrast.
    raw_score
    raw_positive           bool    Whether any level shows a raw positive.
    predictive             bool    P.
    relational             bool    R.
    mechanism_specific     bool    M.
    ceiling                bool    T.
    severe_control_level1  bool    S at level 1.
    severe_control_level2  bool    S at level 2.
    severe_control         bool    S at both levels.
    replication            bool    Rep.
    integrated             bool    P · R · M · T · S · Rep; for `calibrated` also after multiple-testing correction.
    p_value                float?  Largest p-value of all gates; `calibrated` and confirmatory claims only.
    q_value                float?  The same, corrected over the study's confirmatory claims (Benjamini–Hochberg).
    label
    first_failed_gate      str     First gate that failed, or `none`.
    beaten_by              str     Nuisance, control, target or bound that the failure names, or `none`.
    reason                 str     The verdict in one sentence.
""")

GATE_EVIDENCE = _VOCABULARY.table("""
    decisions/lpact_gate_evidence
    One row per claim, gate profile, gate and criterion: the number, its threshold and what it was compared with.
    key: claim gate_profile gate criterion

    gate             str     Gate.
    gate_order       int     Place of the gate in the chain, from 0.
    criterion        str     What was measured.
    criterion_order  int     Place of the criterion in its gate, from 0.
    value            float?  The number.
    relation         str     `>`, `>=`, or `<=` for p-values.
    threshold        float   What it is compared with.
    passed           bool    Whether the criterion holds.
    n                int     Rows that the number summarises.
    compared_with    str     The control, target or bound that set it, or empty.
    sentence         str     The criterion in plain words.
""")

CONTROL_EXPLAINED = _VOCABULARY.table("""
    decisions/control_explained_results
    One row per claim that nuisance, a control or an unmet gate explains.
    key: claim gate_profile

    first_failed_gate  str  First gate that failed.
    beaten_by          str  What the failure names.
    raw_score
    reason             str  The verdict in one sentence.
""")

DECISION_SUMMARY = _VOCABULARY.table("""
    decisions/lpact_decision_summary
    One row per dataset, gate profile and verdict: how many claims, and how many pass each gate.
    key: dataset gate_profile label

    n_claims
    n_predictive      int  Claims that pass P.
    n_relational      int  Claims that pass R.
    n_mechanism       int  Claims that pass M.
    n_ceiling         int  Claims that pass T.
    n_severe_control  int  Claims that pass S.
    n_replication     int  Claims that pass Rep.
""")

STUDY_OUTCOME = _VOCABULARY.table("""
    decisions/lpact_study_outcome
    One row per gate profile: the outcome of the study.
    key: gate_profile

    outcome                str  A, B, C, D or I.
    meaning                str  The outcome in one sentence.
    n_claims
    n_confirmatory_claims  int  Claims of confirmatory datasets.
    n_integrated           int  Integrated candidates.
""")


_STATEMENTS = SHARED.add(
    """
    gate_profile  str  Gate profile that the verdict is of.
    """,
    statements="""
    statement        str   What would be said, as a code.
    statement_order  int   Place of the statement, from the weakest, from 0.
    meaning          str   The statement in words.
    allowed          bool  Whether the verdict supports it.
    """,
    grounds="""
    gates_needed  str  Gates that it needs, or `none`, or `never` if no gate can do.
    missing_gate  str  First of these gates that does not pass, or `none`.
    reason        str  Why it is allowed or forbidden.
    wording       str  A sentence that the verdict supports in its place.
    """,
)

CLAIM_STATEMENTS = _STATEMENTS.table("""
    decisions/claim_statements
    One row per claim, gate profile and statement: whether the verdict supports it, why, and what may be said.
    key: claim gate_profile statement

    statements
    label  str  Verdict on the claim.
    grounds
""")

STUDY_STATEMENTS = _STATEMENTS.table("""
    decisions/study_statements
    One row per gate profile and statement: whether any confirmatory claim of the study supports it.
    key: gate_profile statement

    statements
    best_label    str  Strongest verdict of a confirmatory claim.
    outcome       str  Outcome of the study: A, B, C, D or I.
    n_claims      int  Confirmatory claims.
    n_supporting  int  Confirmatory claims whose verdict supports it.
    grounds
""")

TABLES = tuple(_VOCABULARY.tables)
STATEMENT_TABLES = tuple(_STATEMENTS.tables)
