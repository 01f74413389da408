"""The statements that a text can make about a study, from the weakest to those that no gate licenses."""

from __future__ import annotations

from enum import StrEnum

from lpact.codes import FinalLabel, Gate

LEVEL_1 = "severe_control_level1"
"""Column of the decision table: S at level 1, all that a claim about prediction asks of S."""


class Statement(StrEnum):
    """A kind of statement: ``meaning`` in words, ``gates`` that it needs; ``never`` if no gate can license it."""

    meaning: str
    gates: tuple[str, ...]
    never: bool

    def __new__(
        cls, code: str, meaning: str, gates: tuple[str, ...] = (), never: bool = False
    ) -> Statement:
        """Make a member from its code and what belongs to it."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        member.gates = gates
        member.never = never
        return member

    CORRESPONDENCE = (
        "correspondence",
        "The model's features are associated with the brain responses; controls are not asked.",
    )
    PREDICTION = (
        "prediction_beyond_controls",
        "The model predicts brain responses beyond nuisance and severe controls.",
        (Gate.PREDICTIVE, LEVEL_1, Gate.REPLICATION),
    )
    RELATIONAL = (
        "relational_alignment",
        "The model reproduces the relations among brain units better than its controls do.",
        (Gate.PREDICTIVE, Gate.SEVERE_CONTROL, Gate.RELATIONAL, Gate.REPLICATION),
    )
    MECHANISM = (
        "mechanism_specific",
        "The prediction of the matching targets depends on the named mechanism in the model's features.",
        (
            Gate.PREDICTIVE,
            Gate.SEVERE_CONTROL,
            Gate.RELATIONAL,
            Gate.MECHANISM,
            Gate.REPLICATION,
        ),
    )
    CEILING = (
        "reliability_bounded",
        "The model reaches a fraction of the brain–brain ceiling that its controls do not reach.",
        (
            Gate.PREDICTIVE,
            Gate.SEVERE_CONTROL,
            Gate.RELATIONAL,
            Gate.CEILING,
            Gate.REPLICATION,
        ),
    )
    ALIGNMENT = ("alignment", "The model is aligned with the brain.", tuple(Gate))
    NOT_SHOWN = (
        "not_shown",
        "Alignment is not shown in this study, under its gates and controls.",
    )
    BRAIN_LIKE = ("brain_like", "The model is brain-like or human-like.", (), True)
    EQUIVALENCE = (
        "equivalence",
        "Model and brain share a mechanism or code, or do the same; or one reproduces the other.",
        (),
        True,
    )
    EXPLANATION = (
        "explanation",
        "The model explains how the brain does it, or is a theory of it.",
        (),
        True,
    )
    HOMOLOGY = ("homology", "Parts of model and brain are homologous.", (), True)
    CAUSATION = (
        "biological_causation",
        "Something in the brain causes, or depends on, what was found in the model.",
        (),
        True,
    )
    UNIVERSAL = (
        "universal",
        "A positive statement about all models, brains or languages, or one said to be proven.",
        (),
        True,
    )
    UNIVERSAL_NEGATIVE = (
        "universal_negative",
        "Language models in general are not aligned with brains, or have nothing to do with them.",
        (),
        True,
    )


NEEDED_LABELS: dict[Statement, tuple[FinalLabel, ...]] = {
    Statement.PREDICTION: (
        FinalLabel.PREDICTIVE_ONLY,
        FinalLabel.RELATIONAL_CANDIDATE,
        FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
        FinalLabel.INTEGRATED_CANDIDATE,
    ),
    Statement.RELATIONAL: (
        FinalLabel.RELATIONAL_CANDIDATE,
        FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
        FinalLabel.INTEGRATED_CANDIDATE,
    ),
    Statement.MECHANISM: (
        FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
        FinalLabel.INTEGRATED_CANDIDATE,
    ),
    Statement.ALIGNMENT: (FinalLabel.INTEGRATED_CANDIDATE,),
}
"""Verdicts that carry a statement. The ceiling is asked of its own gate, since a relational candidate can pass it."""

SILENT = (FinalLabel.DIAGNOSTIC_ONLY, FinalLabel.INSUFFICIENT_COVERAGE)
"""Verdicts that support neither a positive nor a negative."""

STRENGTH: tuple[FinalLabel, ...] = (
    FinalLabel.DIAGNOSTIC_ONLY,
    FinalLabel.INSUFFICIENT_COVERAGE,
    FinalLabel.NULL,
    FinalLabel.INSUFFICIENT_BRAIN_CEILING,
    FinalLabel.CONTROL_EXPLAINED,
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.INTEGRATED_CANDIDATE,
)
"""Verdicts from the one that supports least to the one that supports most."""
