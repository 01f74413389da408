"""Tables of level 4."""

from __future__ import annotations

from lpact.tables import (
    CONTEXT,
    CONTEXT_KEY,
    RECORDING,
    RECORDING_KEY,
    Column,
    Table,
    reason,
)

BRAIN_CEILING = Table(
    "ceilings/brain_brain_ceiling",
    "One row per recording, mode, kind, measure and profile similarity: brain–brain reliability, or why there is none.",
    (*RECORDING_KEY, "mode", "kind", "alignment", "profile"),
    (
        *RECORDING,
        Column("mode", "str", "split_half, run_to_run, session_to_session or subject_to_subject."),
        Column(
            "kind",
            "str",
            "`profile` (relational patterns), `response` (responses to the same stimulus, partner by partner) or "
            "`response_to_mean` (responses against the mean of all partners).",
        ),
        Column("alignment", "str", "Alignment measure; `response` for responses."),
        Column("profile", "str", "Profile similarity; `pearson` for responses."),
        Column("valid", "bool", "Whether the mode is possible and the reliability finite."),
        reason(),
        Column(
            "reliability", "float", "Mean over partners of the median over units.", nullable=True
        ),
        Column("reliability_spearman_brown", "float", "2r / (1 + r).", nullable=True),
        Column("n_partners", "int", "Recordings (or halves) it was paired with."),
        Column("n_units_shared", "int", "Fewest units shared with a partner."),
        Column(
            "alone", "bool", "Split half and no other mode is valid: slow drift can inflate it."
        ),
    ),
)

NORMALIZED_SCORES = Table(
    "ceilings/ceiling_normalized_scores",
    "One row per context, unit, measure and profile similarity, against the strictest valid mode.",
    (*CONTEXT_KEY, "unit", "alignment", "profile"),
    (
        *CONTEXT,
        Column("unit", "str", "Brain unit."),
        Column("alignment", "str", "Alignment measure."),
        Column("profile", "str", "Profile similarity."),
        Column("mode", "str", "Strictest valid reliability mode.", nullable=True),
        Column("reliability", "float", "Its reliability for this recording.", nullable=True),
        Column("split_half_alone", "bool", "Only split half is valid: slow drift can inflate it."),
        Column("real_similarity", "float", "Similarity of the real pattern.", nullable=True),
        Column("delta_rel", "float", "real − best control.", nullable=True),
        Column("fraction_of_ceiling", "float", "real similarity / reliability.", nullable=True),
        Column("delta_fraction", "float", "delta_rel / reliability.", nullable=True),
        Column("confirmatory", "bool", "Whether the dataset is confirmatory."),
        reason(),
        Column("gate_pass", "bool", "Whether the row passes.", decided=True),
        Column("label", "str", "Row label.", decided=True),
    ),
)

NORMALIZED_PREDICTIVE = Table(
    "ceilings/ceiling_normalized_predictive",
    "One row per context and reliability mode: the encoding score against response reliability; shown, not gated.",
    (*CONTEXT_KEY, "mode"),
    (
        *CONTEXT,
        Column("mode", "str", "Reliability mode."),
        Column("reliability", "float", "Response reliability.", nullable=True),
        Column("real_score", "float", "Held-out Pearson of the real features.", nullable=True),
        Column("delta_control", "float", "real − best control.", nullable=True),
        Column("fraction_of_ceiling", "float", "real score / reliability.", nullable=True),
        Column("delta_fraction", "float", "delta_control / reliability.", nullable=True),
        reason(),
    ),
)

TABLES = (BRAIN_CEILING, NORMALIZED_SCORES, NORMALIZED_PREDICTIVE)
