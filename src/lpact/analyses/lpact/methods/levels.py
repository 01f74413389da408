"""Methods: what the readout had to beat, relational patterns, stripping and ceilings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods.words import (
    CEILING,
    CONTROLS,
    LOCALISER,
    MEASURE_KEYS,
    MEASURES,
    MECHANISMS,
    MODES,
    PATTERNS,
    PROFILES,
    SPLIT_HALF,
    STRIPPINGS,
    Tables,
)
from lpact.analyses.lpact.tables.audit import AUDIO_SOURCES, CONTROL_AVAILABILITY, RELIABILITY_MODES
from lpact.analyses.lpact.tables.levels import NORMALIZED_SCORES
from lpact.report.methods import (
    amount,
    cite,
    grouped,
    listed,
    meaning,
    number,
    percent,
    plain,
    spread,
)
from lpact.report.references import CONTROLS as CONTROL_KEYS
from lpact.report.references import WORD_LISTS, mechanism_keys, parser_keys


def nuisance(config: LPactConfig, tables: Tables) -> list[str]:
    """What a model must beat first."""
    parts = [_nuisance(name, config, tables) for name in config.nuisance.include]
    return [
        f"Nuisance features were {listed(parts)}. Together they form one predictor, scored by the same readout; "
        "a model's contrast is its score minus that of nuisance."
    ]


def _nuisance(name: str, config: LPactConfig, tables: Tables) -> str:
    chosen = config.nuisance
    shown = plain(name).replace("_", " ")
    if name == "word_rate":
        return f"{shown} (over {number(chosen.rate_window_s)} s)"
    if name == "position_in_story":
        return f"{shown} (with {amount(chosen.drift_cosines, 'slow cosine')} per story)"
    if name == "log_frequency" and chosen.language is not None:
        return f"{shown} (list for '{chosen.language}' of wordfreq{cite(*WORD_LISTS)} where words bring none)"
    if name == "acoustic_envelope":
        return f"{shown} ({_envelope(config, tables)})"
    return shown


def _envelope(config: LPactConfig, tables: Tables) -> str:
    """Where the envelope came from, dataset by dataset; what a dataset brings goes before its audio files."""
    chosen = config.nuisance
    settings = (
        f"{number(chosen.envelope_rate_hz)} Hz, low-pass at {number(chosen.envelope_lowpass_hz)} Hz"
    )
    audited = tables.get(AUDIO_SOURCES.name)
    if audited is None:
        return f"as the dataset brings it, else from audio files: {settings}"
    texts = {plain(d.name): _envelope_of(d.name, audited, settings) for d in config.datasets}
    groups = grouped(texts)
    if len(groups) == 1:
        return groups[0][0]
    return "; ".join(f"{listed(who)}: {text}" for text, who in groups)


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
        f"Random controls had up to {amount(chosen.draws, 'draw')}; their score is the mean over draws, so that more "
        f"draws do not make a control stronger. For every recording {best}.",
    ]
    if available is not None:
        aside = available.filter(~pl.col("counted"))["control"].unique().sort().to_list()
        if aside:
            sentences.append(
                f"{listed([plain(name) for name in aside])} did not enter the best control of the point rules, but "
                "entered the tests."
            )
    return sentences


def _control(name: str, available: pl.DataFrame | None) -> str:
    text = meaning(name, CONTROLS) + cite(*CONTROL_KEYS.get(name, ()))
    if available is None:
        return text
    made = available.filter(pl.col("available"), control=name)
    if made.is_empty():
        return f"{text}, not available"
    return f"{text}, {spread(made['draws'], 'draw')}"


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
        f"{cite(*PATTERNS)}. Patterns of the model and of each brain unit, the unit's own entry left out, were "
        f"made with {listed(measures)} and compared by {listed(profiles)}.",
        "The contrast of a unit is the similarity of the real pattern minus that of the best control. Brain patterns "
        f"came from {source}. The reliability of a unit's pattern is the correlation of its patterns in two halves, "
        f"made of {chosen.half_blocks} contiguous blocks. Recordings with fewer than {chosen.min_units} units were "
        "not used at this level.",
    ]


def stripping(config: LPactConfig) -> list[str]:
    """Level 3."""
    chosen, source = config.stripping, config.mechanisms
    mechanisms = [
        meaning(m, _mechanism_words(config)) + cite(*mechanism_keys(m, source.options))
        for m in source.include
    ]
    methods = [meaning(m, STRIPPINGS) for m in chosen.methods]
    language = (
        f"the model {plain(source.model)}"
        if source.model
        else "the first model of the study that reads text"
    )
    parser = (
        f"parses by {plain(source.parser)}{cite(*parser_keys(source.parser))}"
        if source.parser
        else "parses in the words table"
    )
    return [
        f"Candidate mechanisms, one number per event each, were {listed(mechanisms)}. Where the dataset did not bring "
        f"them, they came from {language} and from {parser}.",
        "In every outer fold, a mechanism's target units were those with the largest partial correlation with it "
        f"given the other mechanisms ({percent(chosen.target_fraction)} of units), on training rows alone"
        f"{cite(*LOCALISER)}. Each mechanism was stripped from the features in these ways, fitted anew on every "
        f"training set: {'; '.join(methods)}. Held-out scores were then computed again; the drop is the score before "
        "minus the score after.",
        "A drop counts as specific if it exceeds that of every other mechanism's targets and that of a mismatched "
        "strip of the same target. In every recording the mismatched strip is the harder of two: random directions "
        f"that carry as much feature variance (mean over {amount(chosen.mismatch_draws, 'draw')} for each method and "
        "mechanism), and other mechanisms, stripped in this one's place (largest drop).",
    ]


def _mechanism_words(config: LPactConfig) -> dict[str, str]:
    changed = config.mechanisms.options.get("context_update", {}).get("of") == "prediction"
    return dict(MECHANISMS) | (
        {"context_update": "change of the model's prediction"} if changed else {}
    )


def ceilings(config: LPactConfig, tables: Tables) -> list[str]:
    """Level 4, with the modes that were possible and those that bound."""
    sentences = [
        f"Scores were compared with brain–brain reliability{cite(*CEILING)}: the similarity between a unit's patterns "
        "in two recordings or halves, median over shared units, mean over partners. Of the possible modes the "
        f"strictest bounds the claim, in the order {listed(list(MODES.values()), 'or')}. Split-half reliabilities are "
        f"also given with the Spearman–Brown correction{cite(*SPLIT_HALF)}, which no decision uses."
    ]
    modes = tables.get(RELIABILITY_MODES.name)
    bounds = tables.get(NORMALIZED_SCORES.name)
    for dataset in config.datasets:
        said = []
        if modes is not None:
            can = set(modes.filter(pl.col("possible"), dataset=dataset.name)["mode"])
            possible = [words for mode, words in MODES.items() if mode in can]
            said.append(f"possible {listed(possible) if possible else 'none'}")
        if bounds is not None:
            own = set(bounds.filter(dataset=dataset.name)["mode"].drop_nulls().unique())
            used = [words for mode, words in MODES.items() if mode in own]
            said.append(f"bounding {listed(used) if used else 'none'}")
        if said:
            sentences.append(f"{plain(dataset.name)}: {'; '.join(said)}.")
    return sentences
