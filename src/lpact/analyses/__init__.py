"""Analyses: each asks one question of a study. `lpact.analyses.base` is what they share."""

DEFAULT = "lpact"
"""The analysis of a study that names none."""

BUILT_IN = {
    "lpact": "lpact.analysis:LPact",
    "deconstruct": "deconstruct.analysis:Deconstruct",
    "turing": "turing.analysis:Turing",
    "patterns": "patterns.analysis:Patterns",
}

COMMANDS = {
    "lpact": {
        "assay": "lpact.analyses.lpact.cli.assay:command",
        "decide": "lpact.analyses.lpact.cli.decide:command",
        "robustness": "lpact.analyses.lpact.cli.robustness:command",
        "power": "lpact.analyses.lpact.cli.power:command",
        "calibrate": "lpact.analyses.lpact.cli.calibrate:command",
    },
    "deconstruct": {},
    "turing": {},
    "patterns": {},
}
"""Commands of the built-in analyses, listed here so that `lpact --help` imports none of them."""
