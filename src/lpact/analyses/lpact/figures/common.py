"""Names, words and rows that figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, NORMALIZED_PREDICTIVE
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.panels import Look
from lpact.report.wording import short_forms, span
from lpact.tables import RECORDING_KEY

GATES: dict[str, str] = {
    "P": "predictive",
    "S": "severe_control",
    "R": "relational",
    "M": "mechanism_specific",
    "T": "ceiling",
    "Rep": "replication",
}
"""Column of the decision table behind each gate's letter, in the order of the chain."""

GATE_NAMES: dict[str, str] = {
    "P": "predictive",
    "S": "severe controls",
    "R": "relational",
    "M": "mechanism",
    "T": "brain–brain ceiling",
    "Rep": "replication",
}
"""What the letters stand for."""

PROFILES: dict[str, str] = {PAPER: "point rules", CALIBRATED: "statistical tests"}
"""Gate profiles, and what they are called in pictures."""

PROFILE_LOOKS: dict[str, Look] = {
    PAPER: Look("circle", "paper", "ink", 48),
    CALIBRATED: Look("square", "ink", "paper", 60),
}
"""Symbols of the gate profiles."""

LABEL_RANK: dict[str, int] = {label.value: rank for rank, label in enumerate(FinalLabel)}
"""Place of each verdict in the order in which they are tried."""

NOT_CONTROLS = ("real", "nuisance", "nuisance_plus_model")
"""Conditions of level 1 that are not severe controls."""

MODES: dict[str, str] = {
    "subject_to_subject": "subject to subject",
    "session_to_session": "session to session",
    "run_to_run": "run to run",
    "split_half": "split half",
}
"""Reliability modes in words, from the strictest."""

METRICS: dict[str, str] = {"pearson": "Pearson r", "spearman": "Spearman ρ", "r2": "R²"}
"""Metrics of level 1, as axes call them."""

LAYER = ["dataset", "model", "layer"]
"""A layer: what a claim is about before its mechanism is named."""

FEW_LAYERS = 6
"""So many layers are all drawn."""

SUBJECT_RUN = ["subject", "session", "run"]
REAL, NUISANCE = "real", "nuisance"


def names(frame: pl.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, in their order."""
    return [str(own) for own in frame[column].unique(maintain_order=True)]


def metric_name(metric: str) -> str:
    """A metric in words."""
    return METRICS.get(metric, metric)


def mode_names(modes: Sequence[str]) -> str:
    """Modes in words, strictest first."""
    order = list(MODES)
    known = sorted(set(modes), key=lambda m: (order.index(m) if m in order else len(order), m))
    return ", ".join(MODES.get(mode, mode) for mode in known)


def layer_name(row: dict[str, Any]) -> str:
    """A layer in words."""
    return f"{row['dataset']} · {row['model']} · layer {row['layer']}"


def where(row: dict[str, Any]) -> str:
    """A layer at the beginning of a tooltip."""
    return f"{row['dataset']}, {row['model']}, layer {row['layer']}"


def run_name(row: dict[str, Any]) -> str:
    """A subject-run in words."""
    return f"subject {row['subject']}, session {row['session']}, run {row['run']}"


class ShortLayerNames:
    """Names of the layers of a figure in little room: datasets and models are shortened, layers keep their number."""

    def __init__(self, layers: pl.DataFrame) -> None:
        self._datasets = layers["dataset"].unique(maintain_order=True).to_list()
        self._models = layers["model"].unique(maintain_order=True).to_list()

    def of_model(self, model: str, layer: int, letters: int) -> str:
        """Model and layer in at most so many letters."""
        end = f" · layer {layer}"
        return short_forms(self._models, max(4, letters - len(end)))[model] + end

    def lanes(self, rows: pl.DataFrame, letters: int) -> pl.Series:
        """Model and layer of each row, or the model alone where rows have no layer."""
        models = short_forms(self._models, letters)
        made = [
            self.of_model(row["model"], row["layer"], letters)
            if "layer" in row
            else models[row["model"]]
            for row in rows.iter_rows(named=True)
        ]
        return pl.Series("lane", made, dtype=pl.String)

    def in_two_lines(self, row: dict[str, Any], letters: int) -> tuple[str, str]:
        """Dataset, and model with layer, each in at most so many letters."""
        dataset = short_forms(self._datasets, letters)[row["dataset"]]
        return dataset, self.of_model(row["model"], row["layer"], letters)

    def of(self, row: dict[str, Any], letters: int) -> str:
        """Dataset, model and layer in at most so many letters."""
        room = letters - len(f" · layer {row['layer']}") - 3
        long = max(map(len, self._datasets)), max(map(len, self._models))
        kept = max(room // 2, room - long[1])
        dataset = short_forms(self._datasets, min(kept, long[0]))[row["dataset"]]
        return (
            f"{dataset} · {self.of_model(row['model'], row['layer'], letters - len(dataset) - 3)}"
        )


def passes(material: Material, gate: str) -> pl.DataFrame:
    """Which layers pass a gate for any mechanism: one row per layer, one column per gate profile."""
    if not material.has(DECISIONS.name):
        flags = dict.fromkeys((PAPER, CALIBRATED), pl.Boolean)
        return pl.DataFrame(
            schema={"dataset": pl.String, "model": pl.String, "layer": pl.Int64, **flags}
        )
    passed = [
        (pl.col(gate) & (pl.col("gate_profile") == profile)).any().alias(profile)
        for profile in (PAPER, CALIBRATED)
    ]
    decisions = material.table(DECISIONS.name).sort(LAYER)
    return decisions.group_by(LAYER, maintain_order=True).agg(passed)


def passed_under(layer: dict[str, Any]) -> str:
    """Under which gate profiles a gate is passed, in words; ``layer`` has one flag per profile."""
    passed = [profile for profile in PROFILES if layer.get(profile)]
    if len(passed) == len(PROFILES):
        return "both profiles"
    return f"{PROFILES[passed[0]]} only" if passed else "not passed"


def chosen_layers(material: Material, scores: pl.DataFrame, most: int) -> pl.DataFrame:
    """Layers to draw: all if they are few; else those that pass P or M, and the best one of each other dataset.

    ``scores`` has one row per layer; its columns after the layer's rank layers from high to low. At most ``most``
    layers are drawn, every dataset's first one before the second ones. Flags by gate profile say whether P is passed.
    """
    either = pl.col(PAPER) | pl.col(CALIBRATED)
    gates = [passes(material, gate) for gate in ("predictive", "mechanism_specific")]
    layers = scores.join(gates[0], on=LAYER, how="left", maintain_order="left")
    layers = layers.with_columns(pl.col(PAPER, CALIBRATED).fill_null(value=False))
    if layers.height <= FEW_LAYERS:
        return layers.sort(LAYER)
    passing = pl.concat([own.filter(either).select(LAYER) for own in gates]).unique()
    ranks = [name for name in scores.columns if name not in LAYER]
    order = ["dataset", "passed", *ranks, "model", "layer"]
    down = [name == "passed" or name in ranks for name in order]
    ranked = layers.join(
        passing.with_columns(passed=pl.lit(value=True)), on=LAYER, how="left"
    ).with_columns(pl.col("passed").fill_null(value=False))
    ranked = ranked.sort(order, descending=down, nulls_last=True)
    ranked = ranked.with_columns(place=pl.int_range(pl.len()).over("dataset"))
    kept = ranked.filter(pl.col("passed") | (pl.col("place") == 0)).sort("place", "dataset")
    return kept.head(most).drop("passed", "place").sort(LAYER)


def chosen_note(n_shown: int, n_layers: int, most: int, table: str) -> list[str]:
    """What a caption says about layers that are not drawn."""
    if n_shown == n_layers:
        return []
    return [
        f"Drawn are {n_shown} of {n_layers} layers: those that pass P or M under either profile, and the best layer of "
        f"every other dataset (at most {most}); the table {table} has all of them."
    ]


def mechanism_order(material: Material, found: pl.Series) -> list[str]:
    """Mechanisms in the order of the study file, then others of the tables, by name."""
    known = [name for name in material.config.mechanisms.include if (found == name).any()]
    return [*known, *sorted(set(found.to_list()) - set(known))]


def primary_deltas(material: Material) -> pl.DataFrame:
    """Level 1 at the primary metric, sorted by key: one row per subject-run, model and layer."""
    metric = material.config.readout.primary_metric
    table = material.table(CONTROL_DELTAS.name)
    return table.filter(pl.col("metric") == metric).sort([*LAYER, *SUBJECT_RUN])


def strictest(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Of the rows of a group that have a reliability, those of the strictest mode; ``mode`` must be a column."""
    order = {mode: place for place, mode in enumerate(MODES)}
    ranked = rows.drop_nulls("reliability").with_columns(
        _rank=pl.col("mode").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    )
    best = pl.col("_rank") == pl.col("_rank").min().over(list(by))
    return ranked.filter(best).drop("_rank")


def response_reliability(material: Material) -> pl.DataFrame:
    """Response reliability of each recording by its strictest valid mode."""
    key = list(RECORDING_KEY)
    if not material.has(NORMALIZED_PREDICTIVE.name):
        kinds = dict.fromkeys([*key, "mode"], pl.String) | {"reliability": pl.Float64}
        return pl.DataFrame(schema=kinds)
    table = material.table(NORMALIZED_PREDICTIVE.name)
    own = table.select([*key, "mode", "reliability"]).unique(maintain_order=True)
    return strictest(own, key).sort(key)


def largest(numbers: pl.Series) -> float:
    """The largest of some numbers, 0 where there is none."""
    return max((float(own) for own in numbers.drop_nulls()), default=0.0)


def n_subject_runs(rows: pl.DataFrame) -> str:
    """How many subject-runs the panels of a dataset rest on (column ``n_all``), in words."""
    counts = [int(n) for n in rows["n_all"]]
    return f"{span(counts)} subject-run{'' if max(counts) == 1 else 's'}"


def profiles_in(rows: pl.DataFrame) -> list[str]:
    """Gate profiles of some rows, point rules first."""
    return [name for name in PROFILES if name in set(rows["gate_profile"])]


def profile_entries(profiles: Sequence[str]) -> list[tuple[str, Look]]:
    """Gate profiles as entries of a key."""
    return [(PROFILES[name], PROFILE_LOOKS[name]) for name in profiles]


def count_columns(
    rows: pl.DataFrame, column: str, y: Any, profiles: Sequence[str], left: float, *, head: bool
) -> list[alt.Chart]:
    """Numbers beside a panel, one column per gate profile from ``left`` on; those that ``changed`` are bold."""
    made = []
    for place, profile in enumerate(profiles):
        x, own = {"value": left + 44 * place}, rows.filter(gate_profile=profile).drop("mark")
        for changed in (False, True):
            strong = {"ink": "fail", "fontWeight": "bold"} if changed else {}
            part = own.filter(changed=changed)
            made.append(panels.text(part, column, x, y, size=10, align="right", **strong))
        if head:
            at = {"value": left + 44 * place - 4}
            made.append(
                panels.symbols(pl.DataFrame([{}]), PROFILE_LOOKS[profile], at, {"value": -8})
            )
    return made


# -- error rates and power of the gates --------------------------------------------------------------------------------

RATED_GATES: dict[str, str] = {
    **{column: GATE_NAMES[letter] for letter, column in GATES.items()},
    "integrated": "all gates",
    "other_mechanism_specific": "mechanism, others",
    "other_integrated": "all gates, others",
}
"""Gates whose rates are drawn, in the order of the chain; "others" are mechanisms that were not planted."""

REFERENCE = "From reference studies that lpact simulated, not from this study or its design. "
"""How captions of the calibration that ships with lpact begin."""


def rates_of(rates: pl.DataFrame, role: str) -> pl.DataFrame:
    """Rates of one role ("false_pass" or "power") of the drawn gates, with ``gate_name`` and ``place`` in the chain."""
    place = {gate: i for i, gate in enumerate(RATED_GATES)}
    own = rates.filter(pl.col("role") == role, pl.col("gate").is_in(list(RATED_GATES)))
    return own.with_columns(
        gate_name=pl.col("gate").replace_strict(RATED_GATES, return_dtype=pl.String),
        place=pl.col("gate").replace_strict(place, return_dtype=pl.Int64),
    )
