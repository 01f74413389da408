"""Methods: how numbers became labels, and what shows that the analysis can detect an effect."""

from __future__ import annotations

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods.words import (
    BOUND,
    CONJUNCTION,
    CORRECTION,
    DRAWS,
    FLIPS,
    INTERSECTION,
    UNIT_ORDERS,
    Tables,
)
from lpact.analyses.lpact.tables.decisions import STUDY_OUTCOME
from lpact.report.methods import amount, cite, listed, number, numbers, percent

LAYER_ABLATION = "layer_ablation"


def point_rules(config: LPactConfig, tables: Tables) -> list[str]:
    """The six gates as point rules."""
    gates = config.gates
    share = percent(gates.direction_fraction)
    majority = percent(gates.summary_majority)
    scope = {
        "claimed_levels": "A claim of prediction alone needs the severe-control gate at the first level only.",
        "all_levels": "Every label needs the severe-control gate at both levels, a claim of prediction alone included.",
    }[gates.severe_scope]
    made = _claims(tables)
    return [
        f"A claim is a dataset, model, layer and mechanism{made}. It is integrated if it passes six gates, none of "
        "which can make up for another. All differences must be greater than zero, and means are over subject-runs.",
        "Predictive: the mean contrasts with nuisance and with the best control are positive. Severe control: the mean "
        "contrast with every single control that counts is positive, and none of them reaches the model in more than "
        f"{majority} of relational summaries. Relational: in more than {majority} of the summaries (alignment measure "
        f"by profile similarity) the mean contrast is positive and at least {share} of units have a positive contrast "
        "and a reliability of at least "
        f"{number(gates.min_reliability)}.",
        "Mechanism: more than one mechanism has target units, and at least "
        f"{percent(gates.method_majority)} of stripping methods show a positive median drop that exceeds the drops of "
        f"other targets and of the mismatched strip{_never_agrees(config)}. Ceiling: mean reliability is at least "
        f"{number(gates.min_reliability)}, the normalised contrast is positive, and mean and median fraction of the "
        f"ceiling are at least {number(gates.min_ceiling_fraction)}. Replication: at least "
        f"{amount(gates.min_subject_runs, 'subject-run')}, of which at least {share} have both contrasts positive.",
        scope,
    ]


def _never_agrees(config: LPactConfig) -> str:
    """A method that takes out the same whatever the mechanism cannot be specific; it has a vote all the same."""
    methods = config.stripping.methods
    if LAYER_ABLATION not in methods:
        return ""
    return (
        f" ({LAYER_ABLATION} takes out the same whatever the mechanism, so that it can never agree; it counts among "
        f"the methods all the same: where all are possible, at most {len(methods) - 1} of {len(methods)} can)"
    )


def _claims(tables: Tables) -> str:
    outcomes = tables.get(STUDY_OUTCOME.name)
    if outcomes is None or outcomes.is_empty():
        return ""
    row = outcomes.sort("gate_profile", descending=True).row(0, named=True)
    return (
        f"; the study makes {amount(row['n_claims'], 'claim')}, {row['n_confirmatory_claims']} of them about "
        "confirmatory datasets"
    )


def tests(config: LPactConfig) -> list[str]:
    """The same gates as tests."""
    gates = config.gates
    return [
        f"The same six questions were also asked as tests at the level {number(gates.alpha)}. A gate passes if all "
        f"of its tests reject, so that its p-value is the largest of theirs{cite(*INTERSECTION)}.",
        "Against controls that know nothing of the stimulus, the real score was ranked among the draws, which "
        "recordings of one stimulus share; beyond the last draw the tail follows from their mean and spread"
        f"{cite(*DRAWS)}. Against nuisance and all other controls, contrasts in outer blocks were tested by sign flips"
        f"{cite(*FLIPS)} and, averaged over the subject-runs of a stimulus, by Student's t; the larger p-value counts.",
        f"Relational patterns were compared with {amount(config.relational.permutations, 'shuffled unit order')} and "
        "as many random exchanges of units with a rival's pattern. Drops were tested against those of other targets "
        "and of random directions, and again with nuisance features beside the stripped ones. The fraction of the "
        f"ceiling was tested with a bootstrap over subject-runs and units, widened for few subject-runs{cite(*BOUND)}. "
        "Replication is the partial conjunction of the subject-runs' own p-values"
        f"{cite(*CONJUNCTION)}.",
        f"Labels were corrected one by one at a false discovery rate of {number(gates.fdr)}{cite(*CORRECTION)}: those "
        "that name a mechanism (mechanism_specific_candidate, integrated_candidate) over the confirmatory claims, the "
        "others (predictive_only, relational_candidate) over the confirmatory layers, since they do not depend on a "
        "mechanism.",
    ]


def positive_controls(config: LPactConfig) -> list[str]:
    """What shows that a negative verdict means something."""
    chosen = config.assay
    if not chosen.enabled:
        return [
            "Positive controls were switched off for this run: it does not show what the assay could have detected."
        ]
    windows = listed([f"{number(a)} to {number(b)} ms" for a, b in chosen.onset_windows_ms])
    return [
        "Positive controls show what the assay can detect, and change no verdict: a small simulated study with a "
        f"planted signal (signal-to-noise ratio {number(chosen.implant_snr)}) and its twin without, through the same "
        "gates; brain–brain reliability; another recording in the model's place, compared with "
        f"{amount(chosen.unit_permutations, 'shuffled unit order')}{cite(*UNIT_ORDERS)}; and patterns in the right and "
        "in shuffled order.",
        f"Responses to word onset and word rate were looked for {windows} after onset, and to the acoustic envelope at "
        f"lags of {numbers(chosen.envelope_lags_ms, 'ms')}, with signal and envelope at up to "
        f"{number(chosen.envelope_rate_hz)} Hz; both were compared with {amount(chosen.shifts, 'circular shift')} of "
        f"the stimulus. The level of these tests is {number(chosen.alpha)}.",
    ]
