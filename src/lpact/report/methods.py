r"""The Methods section of a run: parts that every study has, and the writing-out of all parts.

Every number is a setting of the run or is in one of its tables. Sentences are put together once, with marks where
citations go (`cite`), and written out as plain text, Markdown (``[@key]``) or LaTeX (``\citep{key}``). Strings from
data stay text in all three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lpact.analyses.base import Analysis, Material
from lpact.analyses.explanation import MethodsPart
from lpact.config import DatasetConfig, GridConfig, LanguageModelConfig, PreprocessConfig, StudyConfig
from lpact.registry import Registry
from lpact.report.latex import latex_prose
from lpact.report.references import (
    CONTIGUOUS,
    FIGURES,
    PACKAGE,
    READERS,
    READOUT,
    SOFTWARE,
    author_and_year,
    filter_keys,
    source_keys,
)
from lpact.store import Manifest
from lpact.wording import counted, enumerated, names, one_line, option_value, percent, setting, settings

OPEN, CLOSE = "\ue000", "\ue001"
"""Around the keys of a citation, until a text is written out; no string from data keeps them."""

METRICS: Mapping[str, str] = {
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
    "r2": "out-of-sample R²",
}
_PACKAGES = {
    "python": "Python",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "polars": "Polars",
    "pyarrow": "PyArrow",
    "torch": "PyTorch",
    "mne": "MNE-Python",
    "mne-bids": "MNE-BIDS",
    "nilearn": "Nilearn",
    "nibabel": "NiBabel",
}
_CITATION = re.compile(f" {OPEN}([^{CLOSE}]*){CLOSE}")
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|#~^$@{}"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})

Parts = Sequence[MethodsPart]


def methods_parts(manifest: Manifest, analyses: Mapping[str, Analysis], material: Material) -> tuple[MethodsPart, ...]:
    """The section in parts: what all analyses share, then each analysis, then software and further options."""
    config = material.config
    uses = frozenset[str]().union(*(analysis.uses for analysis in analyses.values()))
    kept = all(analysis.keeps_missing for analysis in analyses.values())
    shared = {
        "Overview": overview(config, analyses),
        "Datasets": [_dataset(own) for own in config.datasets],
        "Preprocessing": _by_dataset(config, lambda own: _preprocessing(own.preprocess, kept)),
        "Events and responses": _by_dataset(config, lambda own: _grid(own.grid, uses)),
        "Models": [_model(own) for own in config.models],
        "Readout": readout(config) if config.models and "readout" in uses else [],
    }
    own = [
        MethodsPart(f"{name}: {part.title}" if len(analyses) > 1 else part.title, part.sentences)
        for name, analysis in analyses.items()
        for part in analysis.methods(manifest, material)
    ]
    last = {
        "Software and reproducibility": software(manifest, config.seed),
        "Further options": remaining_options(config, uses),
    }
    before, after = (
        [MethodsPart(title, tuple(said)) for title, said in parts.items() if said] for parts in (shared, last)
    )
    return (*before, *own, *after)


# --- writing out -----------------------------------------------------------------------------------


def methods_markdown(parts: Parts) -> str:
    """Markdown with one heading per part and citations as ``[@key; @other]``."""
    return _written(
        parts,
        "### {}\n\n",
        lambda keys: f" [{'; '.join(f'@{key}' for key in keys)}]",
        lambda text: text.translate(_MARKDOWN),
    )


def methods_latex(parts: Parts) -> str:
    r"""LaTeX with one ``\paragraph`` per part and citations as ``\citep{key,other}`` (natbib)."""
    cite = " \\citep{{{}}}".format
    return _written(parts, "\\paragraph{{{}.}} ", lambda keys: cite(",".join(keys)), latex_prose)


def methods_text(parts: Parts) -> str:
    """Plain text with citations as authors and year."""
    return _written(parts, "{}\n", lambda keys: f" ({'; '.join(map(author_and_year, keys))})", str)


def cited_keys(parts: Parts) -> tuple[str, ...]:
    """Keys that the parts cite, in alphabetical order."""
    found = [m for part in parts for s in part.sentences for m in _CITATION.findall(s)]
    return tuple(sorted({key for keys in found for key in keys.split(",")}))


def _written(
    parts: Parts,
    heading: str,
    citation: Callable[[list[str]], str],
    escape: Callable[[str], str],
) -> str:
    def sentence(text: str) -> str:
        pieces = _CITATION.split(text)  # every second one is the keys of a citation
        return "".join(citation(piece.split(",")) if place % 2 else escape(piece) for place, piece in enumerate(pieces))

    paragraphs = [heading.format(escape(part.title)) + " ".join(map(sentence, part.sentences)) for part in parts]
    return "\n\n".join(paragraphs) + "\n"


# --- parts that every study has ---------------------------------------------------------------------


def overview(config: StudyConfig, analyses: Mapping[str, Analysis]) -> list[str]:
    """The study and its analyses."""
    used = enumerated([f"{name} ({one_line(own.summary.rstrip('.'))})" for name, own in analyses.items()])
    return [f"The study {one_line(config.name)} was analysed with {used}."]


def _dataset(dataset: DatasetConfig) -> str:
    keys = READERS.get(dataset.reader, ())
    role = f"role {one_line(dataset.role)}" if dataset.role else "the role that the reader gives it"
    return (
        f"{one_line(dataset.name)} (reader {one_line(dataset.reader)}{cite(*keys)}): {role}; a recording with more "
        f"than {percent(dataset.max_bad_units)} unusable units was left out whole."
    )


def _by_dataset(config: StudyConfig, text: Callable[[DatasetConfig], str]) -> list[str]:
    """One sentence per text; datasets that share it share the sentence."""
    texts = {one_line(own.name): text(own) for own in config.datasets}
    return [f"{enumerated(who)}: {said}" for said, who in grouped(texts)]


def _preprocessing(steps: PreprocessConfig, keeps_missing: bool) -> str:
    edges = settings(steps.envelope_bands_hz, "Hz")
    parts = {
        f"channels kept: {names(steps.channels)}": steps.channels,
        f"channels left out: {names(steps.drop_channels)}": steps.drop_channels,
        f"regions kept: {names(steps.regions)}": steps.regions,
        f"notch filters at {settings(steps.notch_hz, 'Hz')}": steps.notch_hz,
        f"{steps.reference} reference": steps.reference != "none",
        f"high-pass at {setting(steps.highpass_hz or 0)} Hz": steps.highpass_hz is not None,
        f"low-pass at {setting(steps.lowpass_hz or 0)} Hz": steps.lowpass_hz is not None,
        "amplitude of the analytic signal": steps.envelope == "hilbert",
        f"mean amplitude of bands with edges at {edges}, each divided by its own mean": steps.envelope == "high_gamma",
        f"resampled to {setting(steps.resample_hz or 0)} Hz": steps.resample_hz is not None,
        "a straight line taken out of each recording": steps.detrend,
        f"periods longer than {setting(steps.highpass_s or 0)} s taken out with cosines": steps.highpass_s is not None,
        f"confounds regressed out: {names(steps.confounds)}": steps.confounds,
        "units scaled to mean 0 and standard deviation 1": steps.zscore,
    }
    done = "; ".join(step for step, used in parts.items() if used)
    text = done or "recordings were taken as they are, without further preprocessing"
    lost = {
        "drop_units": "cost the unit",
        "drop_events": "cost the events whose windows touched them",
        "keep": "stayed missing",
    }
    text += "."
    if not keeps_missing:
        text += f" Samples that are not finite {lost[steps.missing]}."
    if steps.artefact_threshold is not None:
        text += (
            f" Values beyond {setting(steps.artefact_threshold)} (in units of the signal) counted as artefacts; "
            f"an event with artefacts in more than {percent(steps.artefact_units)} of units was left out."
        )
    return text


def _grid(grid: GridConfig, uses: frozenset[str]) -> str:
    one = {"words": "word", "sentences": "sentence", "trs": "volume"}[grid.events]
    lags = settings(grid.lags_ms, "ms")
    text = (
        f"continuous recordings had one event per {one}; the response is "
        + {
            "words": f"the mean over a window of {setting(grid.window_ms)} ms that begins {lags} after word onset",
            "sentences": f"the mean from the first word's onset to the last word's offset, {lags} later",
            "trs": f"the volume {lags} later",
        }[grid.events]
    )
    if len(grid.lags_ms) > 1 and "readout" in uses:
        text += " (candidate lags, chosen on training rows)"
    text += _features_of_events(grid)
    if "readout" in uses:
        middle = grid.reference_lag_ms is None
        lag = "the middle lag" if middle else f"the lag of {setting(grid.reference_lag_ms or 0)} ms"
        text += f"; measures without a readout use {lag}"
    of = "means over regions" if grid.units == "regions" else "electrodes, sensors or voxels as the dataset has them"
    epochs = "Recordings with one response per event were taken as they are, at their own lags."
    return f"{text}; brain units are {of}. {epochs}"


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
            f"{counted(grid.lanczos_lobes, 'lobe')} and a cut-off of {setting(grid.lanczos_cutoff)} / TR"
            f"{cite(*filter_keys(grid.model_dump()))}"
        )
        if grid.fir_ms:
            text += f", with delays of {settings(grid.fir_ms, 'ms')} side by side"
        return text
    return f"; features of an event are the {grid.pooling} over its words"


def _model(model: LanguageModelConfig) -> str:
    noun = "layer" if len(model.layers) == 1 else "layers"
    return (
        f"{one_line(model.name)} (source {one_line(model.source)}{cite(*source_keys(model.source))}): "
        f"{noun} {settings(model.layers)}."
    )


def readout(config: StudyConfig) -> list[str]:
    """The nested ridge readout."""
    chosen = config.readout
    if chosen.split == "stories":
        blocks = "one outer block per story (leave one story out)"
    else:
        blocks = f"{chosen.folds} contiguous outer blocks"
    scope = {
        "per_unit": "for each unit",
        "per_region": "for all units of a region together",
        "shared": "for all units together",
    }[chosen.selection]
    counts = [setting(k) if k else "all features, without a principal component analysis" for k in chosen.pca]
    if chosen.pca == (0,):
        components = "No principal component analysis was used."
    else:
        components = f"Numbers of principal components to choose from were {enumerated(counts, 'or')}."
    known = {"cpu": "the CPU (NumPy)", "torch": "the CPU (PyTorch)"}
    device = known.get(chosen.device, f"{one_line(chosen.device)} (PyTorch)")
    penalties = settings(chosen.alphas)
    noun = "penalty" if len(chosen.alphas) == 1 else "penalties"
    return [
        f"Responses were predicted from features by ridge regression{cite(*READOUT)} in nested, blocked "
        f"cross-validation with {blocks}{cite(*CONTIGUOUS)}. On both sides of every held-out block "
        f"{counted(chosen.gap_events, 'event')} were left out of training.",
        "Each remaining block served once as validation. Lag, penalty and components were chosen by the mean "
        f"validation {METRICS[chosen.selection_metric]}, {scope}; the ridge {noun} on offer: {penalties}. {components}",
        "Features were centred and scaled, and components fitted, on training rows alone. Predictions of all outer "
        "blocks were pooled and scored around the training mean. The score that decisions look at is the "
        f"{METRICS[chosen.primary_metric]}, summarised over units by its median.",
        f"An outer fold needed at least {chosen.min_train_events} training and {chosen.min_test_events} test events. "
        f"Readouts were computed on {device} in {chosen.precision}, with up to "
        f"{setting(chosen.memory_gib)} GiB of working memory.",
    ]


def software(manifest: Manifest, seed: int) -> list[str]:
    """Versions, seed and checksums."""
    versions = [
        f"{_PACKAGES.get(name, one_line(name))} {one_line(version)}{cite(*SOFTWARE.get(name, ()))}"
        for name, version in sorted(manifest.versions.items(), key=lambda item: (item[0] != "python", item[0]))
    ]
    sentences = [
        f"The analysis was made with lpact {one_line(manifest.lpact_version)} (code {one_line(manifest.lpact_code)})"
        f"{cite(*PACKAGE)} on {enumerated(versions)}. Figures are Vega-Lite specifications{cite(*FIGURES)}.",
        f"Every random draw derives from the seed {seed} and the key of its row. The configuration has the "
        f"SHA-256 {one_line(manifest.config_digest)}; the run was made from "
        f"{counted(len(manifest.inputs), 'source file')} and wrote {counted(len(manifest.outputs), 'table file')}; its "
        "manifest lists their checksums.",
    ]
    if manifest.plugins:
        sentences.append(f"Packages that extend lpact: {names(manifest.plugins)}.")
    return sentences


def remaining_options(config: StudyConfig, uses: frozenset[str]) -> list[str]:
    """Options of the shared plug-ins that analyses use, in full."""
    controls = config.controls.options if "controls" in uses else {}
    mechanisms = config.mechanisms.options if "mechanisms" in uses else {}
    parts: list[tuple[str, str, Mapping[str, object]]] = [
        *(("dataset", own.name, own.options) for own in config.datasets),
        *(("model", own.name, own.options) for own in config.models),
        *(("control", name, given) for name, given in sorted(controls.items())),
        *(("mechanism", name, given) for name, given in sorted(mechanisms.items())),
    ]
    return option_sentences(parts)


def option_sentences(parts: Iterable[tuple[str, str, Mapping[str, object]]]) -> list[str]:
    """One sentence per plug-in that has options: what it is, its name and its options."""
    return [f"{what.capitalize()} {one_line(name)}: {options(given)}." for what, name, given in parts if given]


# --- words ------------------------------------------------------------------------------------------


def cite(*keys: str) -> str:
    """A citation, to be put right behind a word; nothing where there are no keys."""
    return f" {OPEN}{','.join(sorted(set(keys)))}{CLOSE}" if keys else ""


def meaning(name: str, registry: Registry[Any]) -> str:
    """A plug-in's name, and what it is; one that is not installed is its name alone."""
    if name not in registry.names():
        return one_line(name)
    return f"{name} ({registry.get(name).summary})"


def options(values: Mapping[str, object]) -> str:
    """Options of a plug-in, one after the other."""
    return ", ".join(f"{one_line(k)} = {option_value(v)}" for k, v in sorted(values.items()))


def grouped(texts: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Subjects that share a text, in the order of their first: ``(text, subjects)``."""
    groups: dict[str, list[str]] = {}
    for subject, text in texts.items():
        groups.setdefault(text, []).append(subject)
    return list(groups.items())
