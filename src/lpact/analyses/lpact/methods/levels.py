"""Methods: what the readout had to beat, patterns, stripping and ceilings, and how numbers became labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.explain.claim_rows import MODES
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
from lpact.analyses.lpact.tables.audit import AUDIO_SOURCES, CONTROL_AVAILABILITY, RELIABILITY_MODES
from lpact.analyses.lpact.tables.decisions import STUDY_OUTCOME
from lpact.analyses.lpact.tables.levels import NORMALIZED_SCORES
from lpact.controls.base import CONTROLS
from lpact.features.mechanisms import MECHANISMS
from lpact.measures import MEASURES
from lpact.report.methods import cite, grouped, meaning
from lpact.report.references import CONTROLS as CONTROL_KEYS
from lpact.report.references import WORD_LISTS, mechanism_keys, parser_keys
from lpact.wording import counted, enumerated, names, one_line, percent, setting, settings, span

Tables = Mapping[str, pl.DataFrame]

MEASURE_KEYS: Mapping[str, tuple[str, ...]] = {
    "rsa": ("kriegeskorte2008",),
    "cka": ("kornblith2019",),
    "cka_debiased": ("kornblith2019", "song2007"),
    "cka_rbf": ("kornblith2019",),
    "cka_rbf_debiased": ("kornblith2019", "song2007"),
}


def nuisance(config: LPactConfig, tables: Tables) -> list[str]:
    """What a model must beat first."""
    parts = [_nuisance(name, config, tables) for name in config.nuisance.include]
    return [
        f"Nuisance features were {enumerated(parts)}. Together they form one predictor, scored by the same readout; "
        "a model's contrast is its score minus that of nuisance."
    ]


def _nuisance(name: str, config: LPactConfig, tables: Tables) -> str:
    chosen = config.nuisance
    shown = one_line(name).replace("_", " ")
    if name == "word_rate":
        return f"{shown} (over {setting(chosen.rate_window_s)} s)"
    if name == "position_in_story":
        return f"{shown} (with {counted(chosen.drift_cosines, 'slow cosine')} per story)"
    if name == "log_frequency" and chosen.language is not None:
        return f"{shown} (list for '{chosen.language}' of wordfreq{cite(*WORD_LISTS)} where words bring none)"
    if name == "acoustic_envelope":
        return f"{shown} ({_envelope(config, tables)})"
    return shown


def _envelope(config: LPactConfig, tables: Tables) -> str:
    """Where the envelope came from, dataset by dataset; what a dataset offers comes before its audio files."""
    chosen = config.nuisance
    settings = f"{setting(chosen.envelope_rate_hz)} Hz, low-pass at {setting(chosen.envelope_lowpass_hz)} Hz"
    audited = tables.get(AUDIO_SOURCES.name)
    if audited is None:
        return f"as the dataset brings it, else from audio files: {settings}"
    texts = {one_line(d.name): _envelope_of(d.name, audited, settings) for d in config.datasets}
    groups = grouped(texts)
    if len(groups) == 1:
        return groups[0][0]
    return "; ".join(f"{enumerated(who)}: {text}" for text, who in groups)


def _envelope_of(dataset: str, audited: pl.DataFrame, settings: str) -> str:
    rows = audited.filter(dataset=dataset).iter_rows(named=True)
    found = {row["source"]: row for row in rows if row["n_stimuli_with"]}
    parts = []
    own = found.get("envelope_in_dataset")
    if own is not None:
        parts.append(f"as the dataset brought it{_of_stimuli(own)}")
    files = found.get("wav_file")
    if files is not None and (own is None or own["n_stimuli_with"] < own["n_stimuli"]):
        parts.append(f"from audio files{_of_stimuli(files)}: {settings}")
    return ", else ".join(parts) or "no source"


def _of_stimuli(row: Mapping[str, Any]) -> str:
    """How many stimuli have a source, where not all do."""
    n, whole = row["n_stimuli_with"], row["n_stimuli"]
    return "" if n == whole else f" for {n} of {whole} stimuli"


def controls(config: LPactConfig, tables: Tables) -> list[str]:
    """Severe controls with their draws."""
    chosen = config.controls
    available = tables.get(CONTROL_AVAILABILITY.name)
    parts = [_control(name, available) for name in chosen.include]
    best = {
        "max": "the best control is the one with the highest score",
        "mean_top_3": "the best control is the mean of the three highest scores",
    }[chosen.best_control_rule]
    sentences = [
        "Severe controls went through the same readout, lags, penalties and measures as the real features: "
        f"{'; '.join(parts)}.",
        f"Random controls had up to {counted(chosen.draws, 'draw')}; their score is the mean over draws, so that more "
        f"draws do not make a control stronger. For every recording {best}.",
    ]
    if available is not None:
        others = available.filter(~pl.col("counted"))["control"].unique().sort().to_list()
        if others:
            sentences.append(
                f"{names(others)} did not enter the best control of the point rules, but entered the tests."
            )
    return sentences


def _control(name: str, available: pl.DataFrame | None) -> str:
    text = meaning(name, CONTROLS) + cite(*CONTROL_KEYS.get(name, ()))
    if available is None:
        return text
    made = available.filter(pl.col("available"), control=name)
    if made.is_empty():
        return f"{text}, not available"
    return f"{text}, {span(made['draws'], 'draw')}"


def relational(config: LPactConfig) -> list[str]:
    """Level 2."""
    chosen = config.relational
    measures = [meaning(m, MEASURES) + cite(*MEASURE_KEYS.get(m, ())) for m in chosen.alignments]
    profiles = [meaning(p, PROFILES) for p in chosen.profiles]
    source = {
        "same_run": "the same run",
        "other_run": "other runs",
        "other_subject": "other subjects",
    }[chosen.brain_patterns_from]
    return [
        "A relational pattern holds the alignment of one representation with every unit"
        f"{cite('hoefling2026')}. Patterns of the model and of each brain unit, the unit's own entry left out, were "
        f"made with {enumerated(measures)} and compared by {enumerated(profiles)}.",
        "The contrast of a unit is the similarity of the real pattern minus that of the best control. Brain patterns "
        f"came from {source}. The reliability of a unit's pattern is the correlation of its patterns in two halves, "
        f"made of {chosen.half_blocks} contiguous blocks. Recordings with fewer than {chosen.min_units} units were "
        f"not used at this level.{_populations(config)}",
    ]


def _populations(config: LPactConfig) -> str:
    chosen = config.relational
    if chosen.region_as == "mean" or all(d.grid.units == "units" for d in config.datasets):
        return ""
    return (
        " Units of this level were regions, each the population of its standardised units, not their mean; regions "
        f"with fewer than {counted(chosen.min_region_units, 'unit')} had no pattern. Held-out scores were averaged "
        "over the units of a region."
    )


def stripping(config: LPactConfig) -> list[str]:
    """Level 3."""
    chosen, source = config.stripping, config.mechanisms
    mechanisms = [meaning(m, MECHANISMS) + cite(*mechanism_keys(m, source.options)) for m in source.include]
    methods = [meaning(m, STRIPPINGS) for m in chosen.methods]
    language = f"the model {one_line(source.model)}" if source.model else "the first model of the study that reads text"
    parser = (
        f"parses by {one_line(source.parser)}{cite(*parser_keys(source.parser))}"
        if source.parser
        else "parses in the words table"
    )
    return [
        f"Candidate mechanisms, one number per event each, were {'; '.join(mechanisms)}. Where the dataset did not "
        f"bring them, they came from {language} and from {parser}.",
        "In every outer fold, a mechanism's target units were those with the largest partial correlation with it "
        f"given the other mechanisms ({percent(chosen.target_fraction)} of units), on training rows alone"
        f"{cite('kriegeskorte2009')}. Each mechanism was stripped from the features in these ways, refitted on "
        f"every training set: {'; '.join(methods)}. Held-out scores were then computed again; the drop is the score "
        "before minus the score after.",
        "A drop counts as specific if it exceeds that of every other mechanism's targets and that of a mismatched "
        "strip of the same target. In every recording the mismatched strip is the harder of two: random directions "
        f"that carry as much feature variance (mean over {counted(chosen.mismatch_draws, 'draw')} for each method and "
        "mechanism), and other mechanisms, stripped in this one's place (largest drop).",
    ]


def ceilings(config: LPactConfig, tables: Tables) -> list[str]:
    """Level 4, with the modes that were possible and those that bound."""
    sentences = [
        f"Scores were compared with brain–brain reliability{cite('feather2025')}: the similarity between a unit's "
        "patterns in two recordings or halves, median over shared units, mean over partners. Of the possible modes the "
        f"strictest bounds the claim, in the order {enumerated(MODES.values(), 'or')}. Split-half reliabilities are "
        f"also given with the Spearman–Brown correction{cite('brown1910', 'spearman1910')}, which no decision uses."
    ]
    modes = tables.get(RELIABILITY_MODES.name)
    bounds = tables.get(NORMALIZED_SCORES.name)
    for dataset in config.datasets:
        said = []
        if modes is not None:
            can = set(modes.filter(pl.col("possible"), dataset=dataset.name)["mode"])
            possible = [words for mode, words in MODES.items() if mode in can]
            said.append(f"possible {enumerated(possible) if possible else 'none'}")
        if bounds is not None:
            own = set(bounds.filter(dataset=dataset.name)["mode"].drop_nulls().unique())
            used = [words for mode, words in MODES.items() if mode in own]
            said.append(f"bounding {enumerated(used) if used else 'none'}")
        if said:
            sentences.append(f"{one_line(dataset.name)}: {'; '.join(said)}.")
    return sentences


def point_rules(config: LPactConfig, tables: Tables) -> list[str]:
    """The six gates as point rules."""
    gates = config.gates
    share = percent(gates.direction_fraction)
    majority = percent(gates.summary_majority)
    scope = {
        "claimed_levels": "A claim of prediction alone needs the severe-control gate at the first level only.",
        "all_levels": "Every label needs the severe-control gate at both levels, a claim of prediction alone included.",
    }[gates.severe_scope]
    made = never_agrees = ""
    outcomes = tables.get(STUDY_OUTCOME.name)
    if outcomes is not None and not outcomes.is_empty():
        row = outcomes.sort("gate_profile", descending=True).row(0, named=True)
        made = (
            f"; the study makes {counted(row['n_claims'], 'claim')}, {row['n_confirmatory_claims']} of them about "
            "confirmatory datasets"
        )
    methods = config.stripping.methods
    if "layer_ablation" in methods:
        never_agrees = (
            " (layer_ablation removes the same features for every mechanism, so it can never agree; it counts among "
            f"the methods all the same: where all are possible, at most {len(methods) - 1} of {len(methods)} can)"
        )
    return [
        f"A claim is a dataset, model, layer and mechanism{made}. It is integrated if it passes six gates, none of "
        "which can make up for another. All differences must be greater than zero, and means are over subject-runs.",
        "Predictive: the mean contrasts with nuisance and with the best control are positive. Severe control: the mean "
        "contrast with every single control that counts is positive, and none of them reaches the model in more than "
        f"{majority} of relational summaries. Relational: in more than {majority} of the summaries (alignment measure "
        f"by profile similarity) the mean contrast is positive and at least {share} of units have a positive contrast "
        f"and a reliability of at least {setting(gates.min_reliability)}.",
        "Mechanism: more than one mechanism has target units, and at least "
        f"{percent(gates.method_majority)} of stripping methods show a positive median drop that exceeds the drops of "
        f"other targets and of the mismatched strip{never_agrees}. Ceiling: mean reliability is at least "
        f"{setting(gates.min_reliability)}, the normalised contrast is positive, and mean and median fraction of the "
        f"ceiling are at least {setting(gates.min_ceiling_fraction)}. Replication: at least "
        f"{counted(gates.min_subject_runs, 'subject-run')}, of which at least {share} have both contrasts positive.",
        scope,
    ]


def tests(config: LPactConfig) -> list[str]:
    """The same gates as tests."""
    gates = config.gates
    return [
        f"The same six questions were also asked as tests at the level {setting(gates.alpha)}. A gate passes if all "
        f"of its tests reject, so that its p-value is the largest of theirs{cite('berger1982')}.",
        "Against controls that know nothing of the stimulus, the real score was ranked among the draws, which "
        "recordings of one stimulus share; beyond the last draw the tail follows from their mean and spread"
        f"{cite('phipson2010', 'winkler2016')}. Against nuisance and all other controls, contrasts in outer blocks "
        f"were tested by sign flips{cite('nichols2002')} and, averaged over the subject-runs of a stimulus, by "
        "Student's t; the larger p-value counts.",
        f"Relational patterns were compared with {counted(config.relational.permutations, 'shuffled unit order')} and "
        "as many random exchanges of units with a rival's pattern. Drops were tested against those of other targets "
        "and of random directions, and again with nuisance features in addition to the stripped ones. The fraction of "
        f"the ceiling was tested with a bootstrap over subject-runs and units, widened for few "
        f"subject-runs{cite('hesterberg2015')}. Replication is the partial conjunction of the subject-runs' own "
        f"p-values{cite('benjamini2008')}.",
        f"Labels were corrected one by one at a false discovery rate of {setting(gates.fdr)}{cite('benjamini1995')}: "
        "those that name a mechanism (mechanism_specific_candidate, integrated_candidate) over the confirmatory "
        "claims, the others (predictive_only, relational_candidate) over the confirmatory layers, since they do not "
        "depend on a mechanism.",
    ]


def positive_controls(config: LPactConfig) -> list[str]:
    """What shows that a negative verdict means something."""
    chosen = config.assay
    if not chosen.enabled:
        return [
            "Positive controls were switched off for this run: it does not show what the assay could have detected."
        ]
    windows = enumerated([f"{setting(a)} to {setting(b)} ms" for a, b in chosen.onset_windows_ms])
    return [
        "Positive controls show what the assay can detect, and change no verdict: a small simulated study with a "
        f"planted signal (signal-to-noise ratio {setting(chosen.implant_snr)}) and a sham without it, through the same "
        "gates; brain–brain reliability; another recording in the model's place, compared with "
        f"{counted(chosen.unit_permutations, 'shuffled unit order')}{cite('mantel1967')}; and patterns in the right "
        "and in shuffled order.",
        f"Responses to word onset and word rate were looked for {windows} after onset, and to the acoustic envelope at "
        f"lags of {settings(chosen.envelope_lags_ms, 'ms')}, with signal and envelope at up to "
        f"{setting(chosen.envelope_rate_hz)} Hz; both were compared with {counted(chosen.shifts, 'circular shift')} of "
        f"the stimulus. The level of these tests is {setting(chosen.alpha)}.",
    ]
