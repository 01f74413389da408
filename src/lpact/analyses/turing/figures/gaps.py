"""Forest plot of the gaps between models and brains."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.turing import tables
from lpact.analyses.turing.config import options_of
from lpact.analyses.turing.figures import common
from lpact.analyses.turing.figures.common import VERDICTS
from lpact.analyses.turing.summaries import interval
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, Look
from lpact.wording import MISSING, fixed, p_value, percent, spoken

WIDTH, STEP = 300, 22
COLUMNS = {
    "said": 34,
    "gap_said": 130,
    "p_said": 290,
    "equivalence": 350,
    "rank_sum": 430,
    "ks": 500,
}
"""Columns of text, in pixels to the right of the panel."""
TITLES = ("verdict", "gap (interval)", "p", "p equivalent", "rank-sum", "KS")
TESTS = {"rank_sum": "rank-sum test", "ks": "KS test"}
REJECTED, KEPT = Look("square", "ink", "ink", 34), Look("square", "paper", "ink", 34)


@figure("gaps", "How large is the gap between model and brains?", tables.CLAIMS)
def gaps(material: Material) -> Drawing | str:
    """Every gap with its interval, the bound of equivalence, and all tests."""
    options = options_of(material.config)
    found = common.shown(material)
    if found.claims["gap"].is_null().all():
        return common.nothing(material) if found.claims.is_empty() else "no gap could be tested"
    known = found.claims
    reach = panels.domain(known["gap"], known["gap_low"], known["gap_high"], known["bound"], -known["bound"])
    last = len(found.places) - 1
    made = [
        _forest(name, own, reach, options.alpha, "gap" if i == last else None)
        for i, (name, own) in enumerate(found.places)
    ]
    zone = ("bound of equivalence", Look(BOX, "ramp1", "ramp1", 180))
    tests = (("a test of the paper rejects", REJECTED), ("does not reject", KEPT),
             "number: how often it rejects one more brain")  # fmt: skip
    of_paper = known["rank_sum_p"].is_not_null().any()
    key = panels.key(
        zone,
        *(tests if of_paper else ()),
    )
    level = percent(1 - options.alpha)
    caption = {
        f"Mean agreement of the model with brains minus that of brains with each other, with its {level} interval. "
        f"Shaded: gaps of at most {percent(options.equivalence_bound)} of the agreement of brains. p: the model is one "
        "more brain; p equivalent: the gap is outside the shaded zone, by two one-sided tests. These show equivalence "
        f"where the {percent(1 - 2 * options.alpha)} interval, which is narrower, lies within the zone.": True,
        "Rank-sum and Kolmogorov–Smirnov (KS) tests are those of Feather et al. (2025), at "
        f"{options.alpha:g}; next to them is how often they reject one more brain at 0.05.": of_paper,
        found.note: True,
    }
    said = [f"{name}: " + ", ".join(
        f"{model} {fixed(gap, sign=True)} ({spoken(label)})"
        for model, gap, label in own.select("model", "gap", "label").iter_rows()) + "."
        for name, own in found.places]  # fmt: skip
    return panels.stacked(key, *made, spacing=18), caption, " ".join(said)


def _forest(
    name: str, claims: pl.DataFrame, reach: tuple[float, float], alpha: float, title: str | None
) -> alt.LayerChart:
    rows = claims.with_columns(
        said=pl.Series([spoken(label) for label in claims["label"]]),
        gap_said=pl.Series([_gap(row) for row in claims.iter_rows(named=True)]),
        p_said=pl.Series([p_value(value) for value in claims["p_value"]]),
        equivalence=pl.Series([p_value(value) for value in claims["equivalence_p"]]),
        rank_sum=pl.Series([fixed(value, 2) for value in claims["rank_sum_false_alarms"]]),
        ks=pl.Series([fixed(value, 2) for value in claims["ks_false_alarms"]]),
    )
    where = "{dataset}, {region}, {time}, {measure}, {model}"
    text = (
        f"{where}: gap {{gap:+}} ({{gap_low:+}} to {{gap_high:+}}), bound ±{{bound}}, p = {{p_value}}, "
        "p equivalent = {equivalence_p}, {test} test; {said}"
    )
    rows = with_marks(rows, text, "gap")
    bound = claims["bound"].drop_nulls().head(1)
    zone = pl.DataFrame({"gap": -bound, "high": bound})
    x = panels.axis("gap", title, reach, ticks=6)
    y = panels.lanes("model", rows["model"], limit=150)
    columns = {
        name: (words, {"value": WIDTH + at})
        for (name, at), words in zip(COLUMNS.items(), TITLES, strict=True)
        if name not in TESTS or claims[f"{name}_p"].is_not_null().any()
    }
    tests = []
    for test, words in TESTS.items():
        own = rows.drop_nulls(f"{test}_p").drop("mark")
        own = with_marks(own, f"{where}, {words} of the paper: p = {{{test}_p}}; false alarms {{{test}_false_alarms}}",
                         f"{test}_p")  # fmt: skip
        looks = [REJECTED if p <= alpha else KEPT for p in own[f"{test}_p"]]
        tests.append(panels.points(own, {"value": WIDTH + COLUMNS[test] - 10}, y, looks))
    known = rows.drop_nulls("gap")
    return panels.overlay(
        panels.layer(zone, "rect", {"fill": "ramp1", "opacity": 0.8}, x=x, x2="high"),
        panels.reference(0, "x"),
        panels.intervals(known.drop("mark"), "x", y, x, ends=("gap_low", "gap_high")),
        panels.points(known, x, y, VERDICTS, "label"),
        panels.points(rows.drop("mark"), {"value": WIDTH + 22}, y, VERDICTS, "label"),
        *(panels.text(rows.drop("mark"), column, at, y, size=10) for column, (_, at) in columns.items()),
        *(panels.heading(words, at["value"], y=-13) for words, at in columns.values()),
        *tests,
        width=WIDTH,
        step=STEP,
        title=panels.panel_title(name, WIDTH, offset=8),
    )  # fmt: skip


def _gap(row: dict[str, object]) -> str:
    return f"{fixed(row['gap'], sign=True)} ({interval(row)})" if row["gap"] is not None else MISSING  # type: ignore[arg-type]  # fmt: skip
