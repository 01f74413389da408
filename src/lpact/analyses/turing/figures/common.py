"""What figures share: which places and models are drawn, how verdicts look, and agreement per subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.turing import tables
from lpact.analyses.turing.config import (
    ABOVE,
    ALL,
    BELOW,
    CANNOT_REJECT,
    CONVERGES,
    INCONCLUSIVE,
    NO_AGREEMENT,
    UNKNOWN,
    options_of,
)
from lpact.analyses.turing.explain import in_order
from lpact.analyses.turing.jobs import BRAIN, MODEL, POOLED, TRIALS
from lpact.analyses.turing.summaries import PLACE, tested_kind
from lpact.report import panels
from lpact.report.panels import CROSS, DASH, Look
from lpact.wording import counted, listed, short

VERDICTS = {
    CONVERGES: Look("circle", "pass", "pass", 70),
    ABOVE: Look("triangle-up", "other", "other", 70),
    INCONCLUSIVE: Look("circle", "paper", "pass", 70),
    BELOW: Look("triangle-down", "fail", "fail", 70),
    CANNOT_REJECT: Look("diamond", "paper", "control", 70),
    NO_AGREEMENT: Look(CROSS, None, "muted", 50),
    UNKNOWN: Look(DASH, None, "muted", 50),
}
"""Symbols of verdicts: below, within (filled if shown to be equivalent), above, and not tested."""
OF_BRAINS = [BRAIN, POOLED]
MOST_PLACES, MOST_MODELS, MOST_LANES = 6, 16, 48
"""Places and models that are drawn, and models over all places."""


@dataclass(frozen=True)
class Shown:
    """What is drawn: claims of every place, by its name, and what is left to the tables."""

    claims: pl.DataFrame
    names: Mapping[tuple[Any, ...], str]
    note: str

    @property
    def places(self) -> list[tuple[str, pl.DataFrame]]:
        """Name and claims of every place; models are in the order of the study."""
        parts = self.claims.partition_by(PLACE, maintain_order=True)
        return [(self.names[own.select(PLACE).row(0)], own) for own in parts]

    def rows(self, table: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
        """Rows of the places that are drawn."""
        drawn = table.join(self.claims.select(PLACE).unique(), on=PLACE, how="semi")
        return drawn.partition_by(PLACE, as_dict=True, maintain_order=True)


def shown(material: Material, most: int = MOST_PLACES) -> Shown:
    """The claims to draw: of many time points the one of the most reliable responses, and the first models."""
    claims = in_order(material)
    every = claims.select(PLACE).unique().height
    claims, note = some_models(claims)
    most = max(1, min(most, MOST_LANES // max(1, claims["model"].n_unique())))
    names = names_of(claims)
    if every > most:
        series = ["dataset", "region", "measure"]
        scores = material.table(tables.SCORES.name).filter(pl.col("kind").is_in(OF_BRAINS))
        how = {"descending": True, "nulls_last": True, "maintain_order": True}
        ranked = claims.join(scores, on=PLACE, how="left").sort("noise_ceiling", "between", **how)
        best = ranked.unique(series, keep="first", maintain_order=True).select(PLACE)
        main = claims.join(best, on=PLACE, how="semi", maintain_order="left")
        rest = ranked.join(best, on=PLACE, how="anti", maintain_order="left")
        rank = {name: i for i, name in enumerate(options_of(material.config).measures)}
        at = pl.col("measure").replace_strict(rank, default=len(rank), return_dtype=pl.Int64)
        main = main.sort(at, maintain_order=True)
        kept = pl.concat([main.select(PLACE), rest.select(PLACE)])
        kept = kept.unique(maintain_order=True).head(most)
        claims = claims.join(kept, on=PLACE, how="semi", maintain_order="left")
        note += (
            f" {counted(most, 'place')} of {every} are drawn: for every measure, the time with the most reliable "
            "responses first; the tables have all."
        )
    return Shown(claims, names, note.strip())


def some_models(claims: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The claims of the first models, and a sentence about the others."""
    models = claims["model"].unique(maintain_order=True).to_list()
    if len(models) <= MOST_MODELS:
        return claims, ""
    words = f"The first {MOST_MODELS} of {len(models)} models are drawn; the tables have all."
    return claims.filter(pl.col("model").is_in(models[:MOST_MODELS])), words


def names_of(rows: pl.DataFrame, by: Iterable[str] = PLACE) -> dict[tuple[Any, ...], str]:
    """Names of places: what differs between them, and the measure."""
    differing = [
        key for key in by if key == "measure" or rows[key].n_unique() > 1 or (key == "region" and ALL not in rows[key])
    ]
    keys = rows.select(list(by)).unique(maintain_order=True).iter_rows(named=True)
    return {tuple(own.values()): " · ".join(short(own[key], 24) for key in differing) for own in keys}


def chance_note(material: Material) -> str:
    """That tests compare something else than what is drawn, and by which measures."""
    own = material.table(tables.PAIRS.name).filter(pl.col("chance") != 0.0)["measure"]
    measures = listed(own.unique(maintain_order=True).to_list())
    return f"By {measures}, tests compare agreement above chance, which is not drawn." if measures else ""


def nothing(material: Material) -> str:
    """Why there is no claim."""
    details = material.table(tables.UNAVAILABLE.name)["detail"].unique(maintain_order=True)
    return f"nothing could be compared: {listed(details.to_list(), 3, '; ') or 'no claims'}"


def brain_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Values of brains at a place: of every pair, or of every subject with all others pooled."""
    return pairs.filter(pl.col("kind").is_in(OF_BRAINS)).drop_nulls("value")


def of_subjects(pairs: pl.DataFrame) -> pl.DataFrame:
    """Agreement of every subject with other brains at a place: the mean over sources."""
    rows = pairs.filter(pl.col("kind").is_in(OF_BRAINS)).select("kind", "source", "target", "value")
    # Measures without a direction have one row per pair.
    back = rows.filter(kind=BRAIN).select("kind", source="target", target="source", value="value")
    both = pl.concat([rows, back]).unique(["source", "target"], keep="first", maintain_order=True)
    found = both.drop_nulls("value").group_by(pl.col("target").alias("subject"), maintain_order=True)
    return found.agg(pl.col("value").mean())


def tested(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of models as they were tested: with simulated trials if there are some."""
    rows = rows.filter(pl.col("kind").is_in([MODEL, TRIALS]))
    return rows.filter(kind=tested_kind(rows))


def tested_of_places(rows: pl.DataFrame) -> pl.DataFrame:
    """The same for many places."""
    rows = rows.filter(pl.col("kind").is_in([MODEL, TRIALS]))
    return rows.filter((pl.col("kind") == TRIALS) | ~(pl.col("kind") == TRIALS).any().over(PLACE))


def verdict_key(labels: Iterable[str]) -> list[tuple[str, Look]]:
    """Entries of a key for the verdicts that occur."""
    return panels.entries(VERDICTS, labels)


def recoloured(look: Look, role: str) -> Look:
    """A symbol in another colour; a hollow one stays hollow."""
    return replace(look, fill=look.fill if look.fill in (None, "paper") else role, edge=role)
