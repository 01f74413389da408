"""Curves: agreement over time points, and over the amount of data."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.turing import tables
from lpact.analyses.turing.config import options_of
from lpact.analyses.turing.explain import in_order
from lpact.analyses.turing.figures import common
from lpact.analyses.turing.figures.common import VERDICTS
from lpact.analyses.turing.summaries import GROWING, PLACE
from lpact.report import panels, theme
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BOX, LINE, Look
from lpact.wording import counted, fixed, listed, short, spoken

SERIES = ["dataset", "region", "measure"]
OTHERS = "line"
MOST_PANELS, MOST_GROWTH, MOST_SYMBOLS = 8, 4, 24
WIDTH, HEIGHT, GROWTH_WIDTH = 370, 170, 230


@figure(
    "time_courses",
    "When is a model as close to brains as they are to each other?",
    tables.CLAIMS,
    tables.SCORES,
    tables.PAIRS,
)
def time_courses(material: Material) -> Drawing | str:
    """Agreement over lags, of models and of brains."""
    claims, note = common.some_models(in_order(material))
    if claims["lag_ms"].n_unique() < 2:
        return f"there is only one time point, {claims['time'][0]}" if claims.height else common.nothing(material)
    scores = material.table(tables.SCORES.name).drop_nulls("mean_of_pairs")
    rows = claims.select(*PLACE, "lag_ms", "model", "label", "fraction_of_between")
    values = common.tested_of_places(scores).select(*PLACE, "score", "mean_of_pairs", model="source")
    rows = rows.join(values, on=[*PLACE, "model"], maintain_order="left")
    pairs = material.table(tables.PAIRS.name).select(*PLACE, "kind", "source", "target", "value")
    brains = scores.filter(pl.col("source") == "brains", pl.col("kind").is_in(common.OF_BRAINS))
    brains = brains.join(_ranges(pairs), on=PLACE).join(claims.select(*PLACE).unique(), on=PLACE)
    brains = brains.sort("lag_ms")
    names = common.names_of(claims, SERIES)
    found = [name for name in names if brains.join(_key(name), on=SERIES, how="semi").height]
    if not found:
        return "no time point has a score"
    closest = rows.group_by("model", maintain_order=True).agg(pl.col("fraction_of_between").mean())
    closest = closest.sort("fraction_of_between", descending=True, nulls_last=True, maintain_order=True)
    coloured = set(closest["model"].head(len(theme.SERIES)))
    models = [own for own in rows["model"].unique(maintain_order=True) if own in coloured]
    roles = dict(zip(models, theme.SERIES, strict=False))
    made, said = [], []
    for name in found[:MOST_PANELS]:
        own, of_brains = (part.join(_key(name), on=SERIES, how="semi", maintain_order="left")
                          for part in (rows, brains))  # fmt: skip
        made.append(_course(names[name], own, of_brains, roles))
        best = of_brains.row(int(of_brains["mean_of_pairs"].arg_max() or 0), named=True)
        of_models = own.filter(time=best["time"]).select("mean_of_pairs", "model").iter_rows()
        parts = listed([f"{fixed(value)} of {model}" for value, model in of_models])
        agree = f"brains agree most at {best['time']} ({fixed(best['mean_of_pairs'])})"
        said.append(f"{names[name]}: {agree}; {parts}.")
    n_grey, n_left = rows["model"].n_unique() - len(roles), len(found) - len(made)
    key = panels.key(
        ("brains", Look(LINE, None, "brain", 120)),
        ("range over subjects", Look(BOX, "ramp1", "ramp1", 180)),
        *((short(model, 30), Look(LINE, None, role, 120)) for model, role in roles.items()),
        *([("other models", Look(LINE, None, OTHERS, 120))] if n_grey else []),
        *((words, common.recoloured(look, "ink")) for words, look in common.verdict_key(rows["label"])),
    )  # fmt: skip
    caption = {
        "Mean agreement over pairs, which the test compares: brains with each other, with the range over subjects, and "
        "models with brains. Symbols are verdicts.": True,
        note: True,
        common.chance_note(material): True,
        f"Symbols are at {MOST_SYMBOLS} time points at most.": rows["lag_ms"].n_unique() > MOST_SYMBOLS,
        f"{counted(n_grey, 'model')} without a name agree less with brains on average.": n_grey,
        f"Left out for lack of space: {counted(n_left, 'panel')}.": n_left,
    }
    return panels.stacked(key, panels.grid(made, 2)), caption, listed(said, MOST_PANELS, " ")


def _key(values: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame([values], schema=dict.fromkeys(SERIES, pl.String), orient="row")


def _ranges(pairs: pl.DataFrame) -> pl.DataFrame:
    """Smallest and largest agreement of a subject with other brains, at every place."""
    made = []
    for own in pairs.partition_by(PLACE, maintain_order=True):
        values = common.of_subjects(own)["value"]
        ends = {"low": values.min(), "high": values.max(), "n": values.len()}
        made.append(dict(zip(PLACE, own.select(PLACE).row(0), strict=True)) | ends)
    kinds = {
        **dict.fromkeys(PLACE, pl.String),
        "low": pl.Float64,
        "high": pl.Float64,
        "n": pl.Int64,
    }
    return pl.DataFrame(made, schema=kinds)


def _course(name: str, rows: pl.DataFrame, brains: pl.DataFrame, roles: dict[str, str]) -> alt.LayerChart:
    where = "{dataset}, {region}, {time}, {measure}"
    text = f"{where}, brains: {{mean_of_pairs}}, subjects {{low}} to {{high}}; score {{score}}"
    brains = with_marks(brains, text, "mean_of_pairs")
    text = f"{where}, {{model}}: {{mean_of_pairs}}; score {{score}}; {{label}}"
    rows = with_marks(rows, text, "mean_of_pairs")
    lags = rows["lag_ms"].unique().sort().to_list()
    ticks = lags[:: -(-len(lags) // 8)]
    x = panels.axis("lag_ms", "lag (ms)", (lags[0], lags[-1]), ticks=ticks, fmt=".6~g")
    x["scale"]["padding"] = 8
    reach = panels.domain(rows["mean_of_pairs"], brains["low"], brains["high"])
    y = panels.axis("mean_of_pairs", "agreement", reach)
    drawn = []
    order = [model for model in rows["model"].unique(maintain_order=True) if model not in roles]
    others: Spec = {"color": OTHERS, "strokeWidth": 1}
    drawn = [panels.layer(rows.filter(model=model).drop("mark"), "line", others, x=x, y=y) for model in order]
    symbols = lags[:: -(-len(lags) // MOST_SYMBOLS)]
    for model, role in roles.items():
        own = rows.filter(model=model)
        marked = own.filter(pl.col("lag_ms").is_in(symbols))
        looks = [replace(common.recoloured(VERDICTS[label], role), size=34) for label in marked["label"]]
        path: Spec = {"color": role, "strokeWidth": 1.8}
        drawn += [
            panels.layer(own.drop("mark"), "line", path, x=x, y=y),
            panels.points(marked, x, y, looks),
        ]
    of_brains = brains.filter(pl.col("lag_ms").is_in(symbols))
    return panels.overlay(
        panels.layer(brains.drop("mark"), "area", {"fill": "ramp1", "opacity": 0.8},
                     x=x, y={**y, "field": "low"}, y2="high"),
        panels.reference(0, "y"),
        panels.layer(brains.drop("mark"), "line", {"color": "brain", "strokeWidth": 2.5}, x=x, y=y),
        panels.points(of_brains, x, y, Look("square", "brain", "brain", 26)),
        *drawn,
        width=WIDTH,
        height=HEIGHT,
        title=panels.panel_title(name, WIDTH),
    )  # fmt: skip


@figure(
    "growth",
    "Would brains agree more with more data?",
    tables.CLAIMS,
    tables.SCORES,
    tables.GROWTH,
    tables.GROWTH_FITS,
)
def growth(material: Material) -> Drawing | str:
    """Brain–brain agreement against units, stimuli and repetitions, with its limit."""
    options = options_of(material.config)
    if not options.growth:
        return "growth was not computed (turing.growth is empty)"
    rows = material.table(tables.GROWTH.name).rename({"size": "amount"})
    if rows.is_empty() and material.table(tables.CLAIMS.name).height:
        return "none of turing.growth can be varied"
    if rows["value"].is_null().all():
        details = [own for own in rows["detail"].unique(maintain_order=True) if own]
        return f"no size has a value: {listed(details, 3, '; ')}" if details else common.nothing(material)
    found = common.shown(material, MOST_GROWTH)
    curves, fits = found.rows(rows), found.rows(material.table(tables.GROWTH_FITS.name))
    made, said, cut = [], [], False
    fitted = any(own["at_infinity"].is_not_null().any() for own in fits.values())
    for name, claims in found.places:
        at = claims.select(PLACE).row(0)
        if at not in curves:
            continue
        n_growing = fits[at].filter(verdict=GROWING)["over"].to_list()
        said.append(f"{name}: {'still grows with ' + listed(n_growing) if n_growing else 'no growth shown'}.")
        ends, beyond = _ends(curves[at], fits[at])
        cut |= beyond
        drawn = [
            _growth(own, fits[at].filter(over=own["over"][0]), ends, "" if i else name)
            for i, own in enumerate(_in_order(curves[at], options.growth))
        ]
        made.append(panels.side_by_side(*drawn, spacing=44))
    key = panels.key(
        ("a subject as target", Look("circle", "ink", "ink", 14, 0.6)),
        ("mean over targets", Look("circle", "brain", "brain", 34)),
        *([("fitted limit, with its 95 % interval", Look("diamond", "winner", "winner", 60))] if fitted else []),
    )
    caption = {
        "Brain–brain agreement with fewer units, stimuli or repetitions (log axis), mean over random "
        "draws. Growing: the bound would be higher with more data.": True,
        "At ∞: the limit of a saturating curve, with its interval over targets.": fitted,
        found.note: True,
        "Triangles and open ends are outside the panel.": cut,
    }
    return panels.stacked(key, panels.grid(made, 1)), caption, " ".join(said)


def _in_order(rows: pl.DataFrame, order: tuple[str, ...]) -> list[pl.DataFrame]:
    parts = (rows.filter(over=over).sort("amount") for over in order)
    return [own for own in parts if own.height]


def _ends(rows: pl.DataFrame, fits: pl.DataFrame) -> tuple[tuple[float, float], bool]:
    """Ends of the vertical axis of a place, and whether a limit is outside: they reach half more than the data."""
    values = rows["by_target"].explode().drop_nulls()
    low, high = panels.domain(values)
    low, high = low - 0.25 * (high - low) * (low < 0), high + 0.5 * (high - low)
    limits = pl.concat([fits[column].drop_nulls() for column in ("at_infinity", "low", "high")])
    kept = limits.filter((limits >= low) & (limits <= high))
    return panels.domain(values, kept), kept.len() < limits.len()


def _growth(rows: pl.DataFrame, fits: pl.DataFrame, ends: tuple[float, float], name: str) -> alt.LayerChart:
    """One quantity; the first panel of a place has its ``name``."""
    where = "{dataset}, {region}, {time}, {measure}"
    over, sizes = rows["over"][0], rows["amount"].to_list()
    means = with_marks(rows, f"{where}, {{amount}} {{over}}: {{value}}", "value").drop_nulls("value")
    each = rows.select(*PLACE, "over", "amount", "by_target").with_columns(
        target=pl.int_ranges(1, pl.col("by_target").list.len() + 1, dtype=pl.Int64)
    )
    each = each.explode("by_target", "target").drop_nulls("by_target")
    each = with_marks(each, f"{where}, {{amount}} {{over}}, target {{target}}: {{by_target}}", "by_target")
    text = f"{where}, limit of {{over}}: {{at_infinity}} ({{low}} to {{high}}); {{verdict}}"
    limit = with_marks(fits, text, "at_infinity").drop_nulls("at_infinity")
    shapes = ["triangle-up" if v > ends[1] else "triangle-down" if v < ends[0] else "diamond"
              for v in limit["at_infinity"]]  # fmt: skip
    limit = limit.with_columns(pl.col("at_infinity", "low", "high").clip(*ends))
    row = fits.row(0, named=True) if fits.height else dict.fromkeys(fits.columns)
    rate = row["per_doubling"]
    words = f"{fixed(rate, sign=True)} per doubling" if rate is not None else "too few values for a fit"
    verdict = spoken(row["verdict"] or "no fit")
    ticks = [sizes[0]] + [b for a, b in pairwise(sizes) if b >= 1.6 * a]
    x = panels.axis("amount", over, (sizes[0], sizes[-1]), ticks=ticks, fmt="d")
    x["scale"] |= {"type": "log", "padding": 8}
    y = panels.axis("value", "agreement" if name else None, ends, labels=bool(name))
    at = {"value": GROWTH_WIDTH + 16}
    return panels.overlay(
        panels.reference(0, "y"),
        panels.layer(means.drop("mark"), "line", {"color": "brain", "strokeWidth": 1.8}, x=x, y=y),
        panels.points(means, x, y, Look("circle", "brain", "brain", 34)),
        panels.dots(each, x, {**y, "field": "by_target"}, "ink", size=14, opacity=0.6),
        panels.intervals(limit.drop("mark"), "y", at, y, "winner"),
        panels.points(limit, at, {**y, "field": "at_infinity"}, [Look(own, "winner", "winner", 60) for own in shapes]),
        panels.heading("∞" if limit.height else "", GROWTH_WIDTH + 16, y=131, align="center", ink="ink"),
        panels.heading(name, y=-46, fontSize=12, ink="ink", fontWeight="bold"),
        panels.heading(f"{over}: {verdict}", y=-24, fontSize=11, ink="ink", fontWeight="bold"),
        panels.heading(words, y=-10),
        width=GROWTH_WIDTH,
        height=120,
    )  # fmt: skip
