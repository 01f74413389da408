"""Tables of operating characteristics and detectable effects."""

from __future__ import annotations

from lpact.tables import Column, Table

CELL = (
    Column("cell", "str", "Name of the cell: all of its settings."),
    Column("truth", "str", "Known truth that the studies are simulated from."),
    Column("model", "str", "Simulated model that the claims are about."),
    Column("snr", "float", "Factor on every planted component; 0 where nothing is planted."),
    Column("n_events", "int", "Words of a subject-run, met on average."),
    Column("n_subjects", "int", "Subjects; each has one run."),
    Column("n_units", "int", "Brain units of a recording."),
    Column(
        "noise_autocorrelation", "float", "Correlation of the noise with itself one sample later."
    ),
)
_PROFILE = Column(
    "gate_profile", "str", "Gate profile: `paper` point rules, or `calibrated` tests."
)
_GATES = {
    "predictive": "P",
    "severe_control_level1": "S at level 1",
    "severe_control_level2": "S at level 2",
    "severe_control": "S",
    "relational": "R",
    "mechanism_specific": "M",
    "ceiling": "T",
    "replication": "Rep",
    "integrated": "P · R · M · T · S · Rep",
}
_TESTED = (
    "predictive",
    "severe_control",
    "relational",
    "mechanism_specific",
    "ceiling",
    "replication",
)

TRIALS = Table(
    "calibration/trials",
    "One row per simulated study and gate profile: which gates the claim under test passed.",
    ("cell", "trial", "gate_profile"),
    (
        *CELL,
        Column("trial", "int", "Number of the study in its cell."),
        _PROFILE,
        Column(
            "claims",
            "str",
            "Claims that can be integrated: `planted` (the planted mechanism's) or `any`. Gates are those of the "
            "mechanism that is planted, or would be.",
        ),
        Column("n_claims", "int", "Claims of the study."),
        *(
            Column(gate, "bool", f"{what}, of the claim under test.")
            for gate, what in _GATES.items()
        ),
        Column(
            "other_mechanism_specific",
            "bool",
            "Whether any mechanism that is not planted passes M; missing where none is planted.",
            nullable=True,
        ),
        Column(
            "other_integrated",
            "bool",
            "Whether any mechanism that is not planted is integrated; missing where none is planted.",
            nullable=True,
        ),
        Column("n_mechanism_specific", "int", "Claims of the study that pass M."),
        Column("label", "str", "Strongest verdict of the claims under test."),
        Column(
            "alpha",
            "float",
            "Nominal error rate of the profile; none for point rules.",
            nullable=True,
        ),
        *(
            Column(
                f"p_{gate}",
                "float",
                f"Largest p-value of the tests of {_GATES[gate]}; none for point rules.",
                nullable=True,
            )
            for gate in _TESTED
        ),
    ),
)

_RATE = (
    _PROFILE,
    Column("gate", "str", "Gate: a column of the trials."),
    Column(
        "role",
        "str",
        "What the rate is: `false_pass`, `power`, or `open` where the truth makes no promise.",
    ),
    Column("n_studies", "int", "Studies."),
    Column("n_passes", "int", "Studies in which the gate passed."),
    Column("rate", "float", "Share of studies in which the gate passed."),
    Column("low", "float", "Lower end of the Wilson interval, 95 %."),
    Column("high", "float", "Upper end of the Wilson interval, 95 %."),
    Column("alpha", "float", "Nominal error rate; none for point rules.", nullable=True),
)

RATES = Table(
    "calibration/rates",
    "One row per cell, gate profile and gate: how often the gate passed.",
    ("cell", "gate_profile", "gate"),
    (*CELL, *_RATE),
)

TRUTH_RATES = Table(
    "calibration/truth_rates",
    "One row per known truth, gate profile and gate: how often the gate passed, all cells of the truth together.",
    ("truth", "gate_profile", "gate"),
    (
        CELL[1],
        *_RATE,
        Column("n_cells", "int", "Cells."),
        Column("why", "str", "Why the rate has its role."),
    ),
)

BIASES = Table(
    "calibration/biases",
    "One row per point rule and setting: what the rule finds, and what is true.",
    ("bias", "step"),
    (
        Column(
            "bias",
            "str",
            "Which rule: the best of many controls, reliability under drift, or a localiser on few rows.",
        ),
        Column("step", "int", "Place of the value in its series, from 0."),
        Column("setting", "str", "What is varied."),
        Column("value", "float", "Its value."),
        Column("apparent", "float", "Mean of what the rule finds."),
        Column("true", "float", "What an unbiased rule would find."),
        Column("bias_size", "float", "Apparent minus true."),
        Column("standard_error", "float", "Standard error of the bias."),
        Column("n_simulations", "int", "Simulations."),
        Column("meaning", "str", "The row in words."),
    ),
)

TABLES: tuple[Table, ...] = (TRIALS, RATES, TRUTH_RATES, BIASES)
