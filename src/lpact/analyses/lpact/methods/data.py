"""Methods: what was recorded, how it was prepared, and where features come from."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods.words import (
    amount,
    cite,
    grouped,
    listed,
    number,
    numbers,
    percent,
    plain,
    spread,
)
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY, MODEL_INVENTORY, UNIT_INVENTORY
from lpact.config import DatasetConfig, GridConfig, LanguageModelConfig, PreprocessConfig
from lpact.report.references import READERS, filter_keys, source_keys

Tables = Mapping[str, pl.DataFrame]

_POOLING = {"mean": "mean", "sum": "sum", "first": "first", "last": "last"}


def rows(tables: Tables, name: str, **where: object) -> pl.DataFrame | None:
    """Rows of a table that the study has, or None where it has none."""
    frame = tables.get(name)
    return None if frame is None else frame.filter(**where)


def datasets(config: LPactConfig, tables: Tables) -> list[str]:
    """One sentence a dataset, with what the source audit found."""
    sentences = [_dataset(dataset, tables) for dataset in config.datasets]
    audit = config.audit
    required = listed([plain(name) for name in audit.required_controls]) or "none"
    sentences.append(
        f"A dataset could support confirmatory claims if its role was primary and its evidence chain complete: "
        f"at least {amount(audit.min_subject_runs, 'usable subject-run')} with at least "
        f"{amount(audit.min_brain_units, 'usable unit')}, words, model features, a reliability estimate, and the "
        f"required controls ({required}). A recording with more than {percent(audit.max_bad_units)} unusable "
        "units was left out whole."
    )
    sentences.append(
        "Subject-runs (one run of one subject) are the replicates of the point rules: all else is averaged within them "
        "first, but for the share of units with a positive relational contrast, which pools the units of all. Of the "
        "tests, those of replication and of the fraction of the ceiling sample subject-runs (the latter units within "
        "them, too). Those against nuisance and other rivals, and those of drops, take outer blocks of the recordings "
        "as the sample, those of relational patterns against shuffled orders and rivals take units, and those against "
        "surrogate controls rank a mean over subject-runs among draws."
    )
    return sentences


def _dataset(dataset: DatasetConfig, tables: Tables) -> str:
    keys = READERS.get(dataset.reader, ())
    name = f"{plain(dataset.name)} (reader {plain(dataset.reader)}{cite(*keys)})"
    audited = rows(tables, EVIDENCE_FEASIBILITY.name, dataset=dataset.name)
    recordings = rows(tables, UNIT_INVENTORY.name, dataset=dataset.name)
    role = plain(dataset.role) if dataset.role else "the reader's own"
    if audited is None or audited.is_empty() or recordings is None:
        return f"{name}: role {role}; the tables at hand do not say what was recorded."
    row = audited.row(0, named=True)
    now = plain(row["role"])
    asked = plain(row["configured_role"])
    role = f"role {now}" if now == asked else f"role {now} (configured as {asked})"
    if row["role_detail"] and not row["confirmatory"]:
        role += f", not confirmatory: {plain(row['role_detail'])}"
    used = recordings.filter("used")
    left_out = row["n_subject_runs_excluded"]
    n_events = int(used["n_events_excluded"].sum())
    return (
        f"{name}: {role}; {amount(row['n_subjects'], 'subject')}, "
        f"{amount(row['n_subject_runs'], 'recording')} of {_stimuli(row['n_stimuli'])}"
        + (f" ({left_out} more left out)" if left_out else "")
        + f"; {spread(used['n_units_used'], 'unit')}, {spread(used['n_words'], 'word')} and "
        f"{spread(used['n_events'], 'event')} a recording"
        + (f" ({n_events} events left out in all)" if n_events else "")
        + _sampling(used)
        + f"; source: {plain(row['source']) or 'not named'}, version {plain(row['version']) or 'not named'}, licence "
        f"{plain(row['licence']) or 'not named'}."
    )


def _stimuli(n: int) -> str:
    return "1 stimulus" if n == 1 else f"{n} stimuli"


def _sampling(used: pl.DataFrame) -> str:
    rates = used["sampling_rate_hz"].drop_nulls().unique().sort()
    return f"; sampled at {numbers(rates.to_list(), 'Hz')}" if len(rates) else ""


def preparation(config: LPactConfig) -> list[str]:
    """What was done to recordings; datasets that share it share a sentence."""
    texts = {plain(d.name): _preprocessing(d.preprocess) for d in config.datasets}
    return [f"{listed(who)}: {text}" for text, who in grouped(texts)]


def _preprocessing(steps: PreprocessConfig) -> str:
    done = []
    if steps.channels:
        done.append(f"channels kept: {listed([plain(c) for c in steps.channels])}")
    if steps.drop_channels:
        done.append(f"channels left out: {listed([plain(c) for c in steps.drop_channels])}")
    if steps.regions:
        done.append(f"regions kept: {listed([plain(r) for r in steps.regions])}")
    if steps.notch_hz:
        done.append(f"notch filters at {numbers(steps.notch_hz, 'Hz')}")
    if steps.reference != "none":
        done.append(f"{steps.reference} reference")
    if steps.highpass_hz is not None:
        done.append(f"high-pass at {number(steps.highpass_hz)} Hz")
    if steps.lowpass_hz is not None:
        done.append(f"low-pass at {number(steps.lowpass_hz)} Hz")
    if steps.envelope == "hilbert":
        done.append("amplitude of the analytic signal")
    if steps.envelope == "high_gamma":
        edges = numbers(steps.envelope_bands_hz, "Hz")
        done.append(f"mean amplitude of bands with edges at {edges}, each divided by its own mean")
    if steps.resample_hz is not None:
        done.append(f"resampled to {number(steps.resample_hz)} Hz")
    if steps.detrend:
        done.append("a straight line taken out of each recording")
    if steps.highpass_s is not None:
        done.append(f"periods longer than {number(steps.highpass_s)} s taken out with cosines")
    if steps.confounds:
        done.append(f"confounds regressed out: {listed([plain(c) for c in steps.confounds])}")
    if steps.zscore:
        done.append("units scaled to mean 0 and standard deviation 1")
    text = (
        "; ".join(done)
        if done
        else "recordings were taken as they are, without further preprocessing"
    )
    lost = "the unit" if steps.missing == "drop_units" else "the events whose windows touched them"
    text += f". Samples that are not finite cost {lost}."
    if steps.artefact_threshold is not None:
        text += (
            f" Values beyond {number(steps.artefact_threshold)} (in units of the signal) counted as artefacts; "
            f"an event with artefacts in more than {percent(steps.artefact_units)} of units was left out."
        )
    return text


def events(config: LPactConfig, tables: Tables) -> list[str]:
    """What an event is and when its response is taken; datasets that share it share a sentence."""
    texts = {plain(d.name): _grid(d.grid, epoched=_epoched(d, tables)) for d in config.datasets}
    return [f"{listed(who)}: {text}" for text, who in grouped(texts)]


def _epoched(dataset: DatasetConfig, tables: Tables) -> bool:
    """Whether recordings bring one response an event and lag, hence lags of their own."""
    used = rows(tables, UNIT_INVENTORY.name, dataset=dataset.name, used=True)
    return (
        used is not None
        and used.height > 0
        and used["sampling_rate_hz"].null_count() == used.height
    )


def _grid(grid: GridConfig, *, epoched: bool) -> str:
    one = {"words": "word", "sentences": "sentence", "trs": "volume"}[grid.events]
    text = f"one event a {one}; "
    if epoched:
        text += "recordings came with one response an event, at lags of their own"
    elif grid.events == "words":
        text += (
            f"the response is the mean over a window of {number(grid.window_ms)} ms that begins "
            f"{numbers(grid.lags_ms, 'ms')} after word onset"
        )
    elif grid.events == "sentences":
        text += (
            f"the response is the mean from the first word's onset to the last word's offset, "
            f"{numbers(grid.lags_ms, 'ms')} later"
        )
    else:
        text += f"the response is the volume {numbers(grid.lags_ms, 'ms')} later"
    if not epoched and len(grid.lags_ms) > 1:
        text += " (candidate lags, chosen on training rows)"
    text += _features_of_events(grid)
    if grid.reference_lag_ms is not None:
        text += f"; measures without a readout use the lag of {number(grid.reference_lag_ms)} ms"
    else:
        text += "; measures without a readout use the middle lag"
    of = (
        "means over regions"
        if grid.units == "regions"
        else "electrodes, sensors or voxels as the dataset has them"
    )
    return f"{text}; brain units are {of}."


def _features_of_events(grid: GridConfig) -> str:
    if grid.events == "words":
        return ""
    if grid.tr_features == "hrf":
        response = {"spm": "SPM's", "glover": "Glover's"}[grid.hrf]
        return (
            f"; features of words were convolved with {response} haemodynamic response"
            f"{cite(*filter_keys(grid.model_dump()))} and sampled at the volumes"
        )
    if grid.tr_features == "lanczos":
        text = (
            f"; features of words were resampled to the volumes with a Lanczos filter of "
            f"{amount(grid.lanczos_lobes, 'lobe')} and a cut-off of {number(grid.lanczos_cutoff)} / TR"
            f"{cite(*filter_keys(grid.model_dump()))}"
        )
        if grid.fir_ms:
            text += f", with delays of {numbers(grid.fir_ms, 'ms')} side by side"
        return text
    return f"; features of an event are the {_POOLING[grid.pooling]} over its words"


def models(config: LPactConfig, tables: Tables) -> list[str]:
    """One sentence a model."""
    return [_model(model, tables) for model in config.models]


def _model(model: LanguageModelConfig, tables: Tables) -> str:
    noun = "layer" if len(model.layers) == 1 else "layers"
    text = (
        f"{plain(model.name)} (source {plain(model.source)}{cite(*source_keys(model.source))}): "
        f"{noun} {numbers(model.layers)}"
    )
    offered = rows(tables, MODEL_INVENTORY.name, model=model.name, included=True)
    if offered is not None and offered.height:
        text += f" of {spread(offered['n_features'].explode(), 'column')}"
    return text + "."
