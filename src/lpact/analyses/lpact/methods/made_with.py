"""Methods: what could not be had, by which software the run was made, and what identifies it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods.data import Tables
from lpact.analyses.lpact.methods.words import MODES, amount, cite, listed, names, options, plain
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    FINDINGS,
    INGREDIENT_AVAILABILITY,
    MODEL_INVENTORY,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.analyses.lpact.tables.media import MEDIA_SUMMARY
from lpact.codes import Reason
from lpact.report.references import FIGURES, FRAMEWORK, PACKAGE, SOFTWARE
from lpact.store import Manifest

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
_WHY = {reason.value: reason.explanation for reason in Reason}


def overview(config: LPactConfig) -> list[str]:
    """What was asked, in two sentences."""
    return [
        f"The study {plain(config.name)} asked whether features of language models align with brain responses to "
        f"language, with L-PACT{cite(*FRAMEWORK)}. Four levels of evidence were measured (held-out prediction, "
        "relational patterns, mechanism stripping, brain–brain ceilings), each against nuisance features and severe "
        "controls."
    ]


def unavailable(tables: Tables) -> list[str]:
    """Everything that the audit could not offer, with its reason; what is the same everywhere is said once."""
    missing = [
        *_missing(tables, CONTROL_AVAILABILITY.name, "available", "control", "Control"),
        *_ingredients(tables),
        *_missing(tables, RELIABILITY_MODES.name, "possible", "mode", "Reliability", MODES),
        *_missing(tables, MODEL_INVENTORY.name, "included", "model", "Model"),
        *_media(tables),
        *_recordings(tables),
        *_findings(tables),
    ]
    audited = (CONTROL_AVAILABILITY, INGREDIENT_AVAILABILITY, RELIABILITY_MODES)
    if not missing and not any(table.name in tables for table in audited):
        return ["The tables at hand do not say what was unavailable."]
    return missing or ["Nothing that the study asked for was unavailable."]


def _ingredients(tables: Tables) -> list[str]:
    made = []
    frame = tables.get(INGREDIENT_AVAILABILITY.name)
    for kind in ("nuisance", "mechanism") if frame is not None else ():
        part = {INGREDIENT_AVAILABILITY.name: frame.filter(kind=kind)} if frame is not None else {}
        what = "Nuisance feature" if kind == "nuisance" else "Mechanism"
        made += _missing(part, INGREDIENT_AVAILABILITY.name, "available", "name", what)
    return made


def _missing(
    tables: Tables,
    table: str,
    there: str,
    column: str,
    what: str,
    words: Mapping[str, str] | None = None,
) -> list[str]:
    frame = tables.get(table)
    if frame is None:
        return []
    gone = (
        frame.filter(~pl.col(there))
        .group_by(column, "reason")
        .agg(pl.col("dataset").unique().sort())
        .sort(column, "reason")
    )
    return [
        f"{what} {(words or {}).get(name, plain(name))} was not available for {names(datasets)}: {_why(reason)}"
        for name, reason, datasets in gone.iter_rows()
    ]


def _why(code: str) -> str:
    said = _WHY.get(code, code)
    return f"{said[:1].lower()}{said[1:]}" if not said[:2].isupper() else said


def _media(tables: Tables) -> list[str]:
    frame = tables.get(MEDIA_SUMMARY.name)
    if frame is None:
        return []
    gone = (
        frame.filter(pl.col("n_stimuli_present") < pl.col("n_stimuli"))
        .group_by("media", "reason")
        .agg(pl.col("dataset").unique().sort())
        .sort("media", "reason")
    )
    return [
        f"Stimulus media of the kind {plain(media).replace('_', ' ')} were missing or incomplete for {names(datasets)}"
        + ("." if reason == Reason.OK.value else f": {_why(reason)}")
        for media, reason, datasets in gone.iter_rows()
    ]


def _recordings(tables: Tables) -> list[str]:
    frame = tables.get(UNIT_INVENTORY.name)
    if frame is None:
        return []
    gone = (
        frame.filter(~pl.col("used")).group_by("dataset", "reason").len().sort("dataset", "reason")
    )
    return [
        f"{amount(n, 'recording')} of {plain(dataset)} left out: {_why(reason)}"
        for dataset, reason, n in gone.iter_rows()
    ]


def _findings(tables: Tables) -> list[str]:
    frame = tables.get(FINDINGS.name)
    if frame is None:
        return []
    gone = (
        frame.filter(severity="excluded")
        .group_by("dataset", "reason")
        .agg(pl.struct("subject", "session", "run").n_unique())
        .sort("dataset", "reason")
    )
    return [
        f"In {plain(dataset)} parts of {amount(n, 'recording')} were left out: {_why(reason)}"
        for dataset, reason, n in gone.iter_rows()
    ]


def software(manifest: Manifest, config: LPactConfig) -> list[str]:
    """Versions, seed and checksums."""
    versions = [
        f"{_PACKAGES.get(name, plain(name))} {plain(version)}{cite(*SOFTWARE.get(name, ()))}"
        for name, version in sorted(
            manifest.versions.items(), key=lambda item: (item[0] != "python", item[0])
        )
    ]
    sentences = [
        f"The analysis was made with lpact {plain(manifest.lpact_version)} (code {plain(manifest.lpact_code)})"
        f"{cite(*PACKAGE)} on {listed(versions)}. Figures are Vega-Lite specifications{cite(*FIGURES)}.",
        f"Every random draw derives from the seed {config.seed} and the key of its row. The configuration has the "
        f"SHA-256 {plain(manifest.config_digest)}; the run was made from "
        f"{amount(len(manifest.inputs), 'source file')} and wrote {amount(len(manifest.outputs), 'table file')}, whose "
        "checksums its manifest lists.",
    ]
    if manifest.plugins:
        sentences.append(f"Packages that extend lpact: {names(manifest.plugins)}.")
    return sentences


def remaining_options(config: LPactConfig) -> list[str]:
    """Options of readers, models and other plugins, in full."""
    parts: list[tuple[str, str, Mapping[str, object]]] = [
        *(("dataset", d.name, d.options) for d in config.datasets),
        *(("model", m.name, m.options) for m in config.models),
        *(("control", name, given) for name, given in sorted(config.controls.options.items())),
        *(("measure", name, given) for name, given in sorted(config.relational.options.items())),
        *(
            ("stripping method", name, given)
            for name, given in sorted(config.stripping.options.items())
        ),
        *(("mechanism", name, given) for name, given in sorted(config.mechanisms.options.items())),
    ]
    return [
        f"{what.capitalize()} {plain(name)}: {options(given)}."
        for what, name, given in parts
        if given
    ]
