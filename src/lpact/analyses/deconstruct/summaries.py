"""From scores of units to tables per network and subject, and to verdicts; from tables alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lpact.analyses.deconstruct import tables
from lpact.analyses.deconstruct.config import (
    ACCOUNTED_FOR,
    ADDS,
    NOTHING,
    UNKNOWN,
    DeconstructSection,
)
from lpact.analyses.deconstruct.fits import NONE, TESTS, correlated
from lpact.analyses.deconstruct.jobs import (
    BEYOND_NOTHING,
    BEYOND_SIMPLE,
    BOTH,
    LADDER,
    OASM,
    SIMPLE,
    number,
)
from lpact.analyses.deconstruct.rows import ALL_UNITS, CONTIGUOUS, SHUFFLED
from lpact.codes import Reason
from lpact.features.models import FULL
from lpact.math.columns import mean_of_finite
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray
from lpact.stats import one_sample_p_value, sign_flip_p_value
from lpact.store import frame
from lpact.tables import RECORDING_KEY, Table

Tables = Mapping[str, pl.DataFrame]
Row = dict[str, Any]

FEWEST_SUBJECTS = 3
"""Subjects from which on a gain must also hold over subjects."""


def networks(frames: Tables) -> dict[tuple[Any, ...], dict[str, BoolArray]]:
    """Units of every network by recording: all, and each region where there are several."""
    found: dict[tuple[Any, ...], dict[str, BoolArray]] = {}
    units = frames[tables.UNITS.name].sort(*RECORDING_KEY, "unit_index")
    for key, own in units.group_by(RECORDING_KEY, maintain_order=True):
        regions = own["region"].to_numpy()
        names = dict.fromkeys(regions.tolist())
        members = {ALL_UNITS: np.ones(len(regions), dtype=bool)}
        found[key] = members | ({name: regions == name for name in names} if len(names) > 1 else {})
    return found


def deciding_network(options: DeconstructSection) -> str:
    """The network that verdicts rest on."""
    return options.network or ALL_UNITS


def _each(frames: Tables, rows: pl.DataFrame) -> Iterator[tuple[Row, str, BoolArray]]:
    """Every row with every network of its recording, and the network's units."""
    of_network = networks(frames)
    for row in rows.iter_rows(named=True):
        for network, members in of_network[tuple(row[name] for name in RECORDING_KEY)].items():
            yield row, network, members


def _mean(scores: Iterable[float | None], members: BoolArray, *, clipped: bool = True) -> float:
    """Mean R² over some units; clipped: those below 0 count as 0."""
    values = _numbers(scores)[members]
    return float(mean_of_finite(np.maximum(values, 0.0) if clipped else values))


def _row(table: Table, known: Row, **own: Any) -> Row:
    """A row of a table: what is ``known`` of its columns, and its own."""
    return {name: known[name] for name in table.column_names if name in known} | own


def _reason(value: float | None) -> str:
    return (Reason.OK if value is not None else Reason.UNDEFINED_SCORE).value


def _ladder_scores(frames: Tables) -> pl.DataFrame:
    return frames[tables.SCORES.name].filter(family=LADDER, split=CONTIGUOUS)


def _with_model(rows: pl.DataFrame, frames: Tables) -> pl.DataFrame:
    """The rows with the scores of units of the model alone, ``alone``."""
    own = pl.col("features") == pl.col("model")
    alone = _ladder_scores(frames).filter(own, sub_model=NONE)
    alone = alone.select(*RECORDING_KEY, "model", alone="scores")
    return rows.join(alone, on=[*RECORDING_KEY, "model"], how="left", maintain_order="left")


def ladder(frames: Tables) -> pl.DataFrame:
    """Score of every step, and its share of the model's."""
    steps = _with_model(_ladder_scores(frames).filter(pl.col("step") >= 0), frames)
    made = []
    for row, network, members in _each(frames, steps):
        r2, model = _mean(row["scores"], members), _mean(row["alone"], members)
        share = number(100.0 * r2 / model if model > 0.0 else np.nan)
        made.append(
            _row(
                tables.LADDER,
                row,
                network=network,
                step_name=row["features"],
                n_units=int(members.sum()),
                r2=number(r2),
                r2_raw=number(_mean(row["scores"], members, clipped=False)),
                share_of_model=share,
                reason=_reason(share),
            )
        )
    return frame(tables.LADDER, made)


def omega(model: float, simple: float, both: float) -> float:
    """Ω: share of the model's score that simple features account for, in percent.

    100 (1 − (both − simple) / model), between 0 and 100. ``both`` is at least ``model``: what the model can predict
    alone is not lost by adding features. A model that predicts nothing is wholly accounted for.
    """
    if model <= 0.0:
        return 100.0
    return float(100.0 * (1.0 - np.clip((max(both, model) - simple) / model, 0.0, 1.0)))


def accounted_for(frames: Tables) -> pl.DataFrame:
    """Ω of every recording, network, model and choice of the sub-model."""
    found, key = _ladder_scores(frames), [*RECORDING_KEY, "model", "sub_model"]
    simple = found.filter(features=SIMPLE).select(*key, simple="scores")
    both = found.filter(features=BOTH).join(simple, on=key, how="left", maintain_order="left")
    made = []
    for row, network, members in _each(frames, _with_model(both, frames)):
        model, alone, together = (_mean(row[name], members) for name in ("alone", "simple", "scores"))
        share = number(omega(model, alone, together))
        made.append(
            _row(
                tables.ACCOUNTED,
                row,
                network=network,
                n_units=int(members.sum()),
                model_r2=number(model),
                simple_r2=number(alone),
                both_r2=number(together),
                accounted_for=share,
                own=None if share is None else 100.0 - share,
                reason=_reason(share),
            )
        )
    return frame(tables.ACCOUNTED, made)


def counts(frames: Tables, alpha: float) -> pl.DataFrame:
    """Units of every network that gain, before and after the multiple-testing correction."""
    made = []
    for row, network, members in _each(frames, frames[tables.TESTS.name]):
        for test in TESTS:
            n = {kind: int((_numbers(row[f"{kind}_{test}"])[members] <= alpha).sum()) for kind in "pq"}
            own = {"n_units": int(members.sum()), "n_gaining": n["p"], "n_after_fdr": n["q"]}
            made.append(_row(tables.COUNTS, row, network=network, test=test, **own))
    return frame(tables.COUNTS, made)


def _numbers(values: Iterable[float | None]) -> FloatArray:
    return np.array([np.nan if own is None else own for own in values])


def split_contrast(frames: Tables) -> pl.DataFrame:
    """Layer scores under both splits, mean over subjects, and how they agree."""
    layers, scores = frames[tables.LAYERS.name].filter(context=FULL), frames[tables.SCORES.name]
    by, made = ["dataset", "stimulus", "model"], []
    for place, own in layers.group_by(by, maintain_order=True):
        of_layer = mean_of_subjects(own, "r2", "split", "layer")
        both = of_layer.pivot(on="split", index="layer", values="r2").sort("layer")
        found = {
            kind: _numbers(both[kind].to_list()) if kind in both.columns else np.empty(0)
            for kind in (SHUFFLED, CONTIGUOUS)
        }
        r = None
        if found[SHUFFLED].size == found[CONTIGUOUS].size:
            r = correlated(found[SHUFFLED], found[CONTIGUOUS])
        row: Row = dict(zip(by, place, strict=True))
        oasm = scores.filter(family=OASM, features="OASM", sub_model=NONE, **row)
        for kind, values in found.items():
            best = float(np.nanmax(values)) if np.isfinite(values).any() else np.nan
            row[f"{kind}_r2"] = number(best)
            row[f"oasm_{kind}_r2"] = over_subjects(oasm.filter(split=kind), "r2")
        made.append({**row, "n_layers": both.height, "correlation": r, "reason": _reason(r)})
    return frame(tables.SPLIT_CONTRAST, made)


# --- verdicts ---------------------------------------------------------------------------------------


class Gain(NamedTuple):
    """Gains in R² of a comparison: of every subject, and of every block over subjects; and its p-value."""

    subjects: tuple[str, ...]
    of_subjects: FloatArray
    of_blocks: FloatArray
    p_subjects: float
    p_blocks: float

    @property
    def p_value(self) -> float:
        """Over blocks; with enough subjects the larger of both p-values, so that both must hold."""
        if len(self.subjects) < FEWEST_SUBJECTS:
            return self.p_blocks
        return float(np.fmax(self.p_blocks, self.p_subjects))


def gain_of(tests: pl.DataFrame, seed: int) -> Gain:
    """The gain of one comparison: rows are recordings of one dataset, stimulus and model."""
    long = tests.select("subject", "block", "gain").explode("block", "gain").drop_nulls("gain")
    blocks = mean_of_subjects(long, "gain", "block").sort("block")
    of_blocks = blocks["gain"].to_numpy()
    within = long.group_by("subject", "block", maintain_order=True).agg(pl.col("gain").mean())
    of_subjects = within.group_by("subject", maintain_order=True).agg(pl.col("gain").mean())
    of_subjects = of_subjects.sort("subject")
    values = of_subjects["gain"].to_numpy()
    return Gain(
        tuple(of_subjects["subject"]),
        values,
        of_blocks,
        one_sample_p_value(values),
        sign_flip_p_value(of_blocks, lambda: keyed_rng(seed, "deconstruct gain")),
    )


def gains(tests: pl.DataFrame, place: Mapping[str, Any], sub_model: str, seed: int) -> tuple[Gain, Gain]:
    """Gains of a claim: the model beyond nothing, and beyond simple features."""
    own = tests.filter(family=LADDER, split=CONTIGUOUS, **place)
    nothing = own.filter(comparison=BEYOND_NOTHING)
    simple = own.filter(comparison=BEYOND_SIMPLE, sub_model=sub_model)
    return gain_of(nothing, seed), gain_of(simple, seed)


def mean_of_subjects(found: pl.DataFrame, column: str, *by: str) -> pl.DataFrame:
    """Mean over subjects of the mean over their rows; sums are always in the order of the rows."""
    within = found.group_by(*by, "subject", maintain_order=True).agg(pl.col(column).mean())
    return within.group_by(*by, maintain_order=True).agg(pl.col(column).mean())


def over_subjects(found: pl.DataFrame, column: str) -> float | None:
    """Mean over subjects of the mean over their recordings."""
    value = mean_of_subjects(found.with_columns(all=pl.lit(0)), column, "all")[column].mean()
    return None if value is None else float(value)  # type: ignore[arg-type]


def claims(frames: Tables, options: DeconstructSection, seed: int, words: Callable[[str], str]) -> pl.DataFrame:
    """One verdict per dataset, stimulus and model; ``words`` names the simple features of a dataset."""
    network, accounted = deciding_network(options), frames[tables.ACCOUNTED.name]
    scores, tests = frames[tables.SCORES.name], frames[tables.TESTS.name]
    layers = frames[tables.LAYERS.name].filter(context=FULL)
    made = []
    by = ["dataset", "stimulus", "model"]
    for values in layers.select(by).unique(maintain_order=True).iter_rows():
        place = dict(zip(by, values, strict=True))
        own = accounted.filter(network=network, sub_model=options.sub_model, **place)
        row: Row = {
            **place,
            "sub_model": options.sub_model,
            "optimistic": bool(own["optimistic"].any()),
        }
        row |= {name: over_subjects(own, name) for name in ("model_r2", "simple_r2", "both_r2")}
        alone = scores.filter(sub_model=NONE, features=place["model"], **place)
        chosen = alone.filter(family=LADDER, split=CONTIGUOUS)["chosen"].explode().drop_nulls()
        counted = sorted(chosen.unique().to_list(), key=lambda c: (-(chosen == c).sum(), c))
        oasm = scores.filter(sub_model=NONE, features="OASM", **place)
        row |= {
            "layer": ", ".join(counted[:3]),
            "n_subjects": own["subject"].n_unique(),
            "n_units": int(own.group_by("subject").agg(pl.col("n_units").max())["n_units"].sum()),
            "shuffled_r2": over_subjects(alone.filter(family=OASM, split=SHUFFLED), "r2"),
            "oasm_r2": over_subjects(oasm.filter(family=OASM, split=SHUFFLED), "r2"),
        }
        made.append(row | _verdict(row, tests, place, options, seed, words(place["dataset"])))
    return frame(tables.CLAIMS, made)


def _verdict(
    row: Row,
    tests: pl.DataFrame,
    place: Row,
    options: DeconstructSection,
    seed: int,
    words: str,
) -> Row:
    """Share, p-values, gates, label and reason of a claim; a model that predicts nothing has no share."""
    found: Row = dict.fromkeys(("accounted_for", "own", "p_predicts", "p_own"))
    found |= {"predicts": False, "adds": False, "label": UNKNOWN}
    if row["model_r2"] is None:
        said = "Simple features or scores are missing; the table deconstruct/unavailable says why."
        return {**found, "reason": said}
    nothing, simple = gains(tests, place, options.sub_model, seed)
    least = 0.5 ** len(nothing.of_blocks)
    if least > options.alpha:
        n = len(nothing.of_blocks)
        said = f"With {n} held-out blocks no p-value can be below {least:.3g}: too few for a verdict."
        return {**found, "reason": said}
    predicts, adds = (own.p_value <= options.alpha for own in (nothing, simple))
    found |= {
        "p_predicts": number(nothing.p_value),
        "p_own": number(simple.p_value),
        "predicts": predicts,
        "adds": adds,
        "label": NOTHING if not predicts else ADDS if adds else ACCOUNTED_FOR,
    }
    if predicts:
        share = omega(row["model_r2"], row["simple_r2"], row["both_r2"])
        found |= {"accounted_for": share, "own": 100.0 - share}
    return {**found, "reason": sentence({**row, **found}, found["label"], words)}


def sentence(row: Mapping[str, Any], label: str, words: str) -> str:
    """The verdict in one sentence."""
    if label == NOTHING:
        return (
            f"No evidence that the model predicts held-out responses under contiguous splits "
            f"(R² {row['model_r2']:.3f})."
        )
    said = (
        f"{row['accounted_for']:.0f} % of this model's score is accounted for by {words}; "
        f"{row['own']:.0f} % is its own, under contiguous splits"
    )
    return f"{said}." if label == ADDS else f"{said}, and that may be chance."
