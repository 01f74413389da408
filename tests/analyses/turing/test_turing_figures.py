"""Figures of the Turing test: their numbers are those of the tables, and what is missing has a reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import polars as pl
import pytest
from figure_checks import EVIL, DrawnMark, checked_svg, marks, texts, width_of
from scipy import special

import lpact
from lpact.analyses.base import Material
from lpact.analyses.turing import tables
from lpact.analyses.turing.analysis import Turing
from lpact.analyses.turing.config import LABELS
from lpact.analyses.turing.figures import FIGURES
from lpact.analyses.turing.figures.common import VERDICTS
from lpact.analyses.turing.summaries import PLACE, between_of
from lpact.math.columns import mean_of_finite
from lpact.report.figure import Figure, Missing

N_SUBJECTS, N_TIMES = 4, 2
STUDY: dict[str, Any] = {
    "name": "turing",
    "seed": 3,
    "datasets": [
        {
            "name": "brains",
            "reader": "simulated_brains",
            "options": {
                "n_subjects": N_SUBJECTS,
                "n_stimuli": 60,
                "n_units": 8,
                "n_latents": 6,
                "n_seen": 5,
                "noise": 0.5,
                "lags_ms": [0.0, 100.0],
                "gains": [0.5, 1.0],
            },
        }
    ],
    "models": [{"name": "sixth_brain", "layers": [1]}, {"name": "half_brain", "layers": [1]}],
}
OPTIONS: dict[str, Any] = {
    "n_halves": 2,
    "n_folds": 2,
    "growth_draws": 1,
    "gap_events": 1,
    "alphas": [1.0, 100.0],
}
PICTURES: dict[tuple[int, str], tuple[Material, Element]] = {}


@pytest.fixture(scope="module")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Material]:
    """Material of a run of the study with other options."""

    def make(**options: Any) -> Material:
        study = lpact.load_study({**STUDY, "turing": OPTIONS | options})
        folder = tmp_path_factory.mktemp("turing") / "run"
        made = study.run(folder, workers=1, progress=False)
        return Material({t.name: made.table(t.name) for t in made.tables()}, made.config)

    return make


@pytest.fixture(scope="module")
def run(make_run: Callable[..., Material]) -> Material:
    return make_run()


def changed(material: Material, **frames: pl.DataFrame) -> Material:
    """The material with other tables of the Turing test."""
    own = {f"turing/{name}": frame for name, frame in frames.items()}
    return Material({**material.tables, **own}, material.config)


def figure(material: Material, name: str) -> Figure:
    made = FIGURES[name](material)
    assert isinstance(made, Figure), made
    return made


def missing(material: Material, name: str) -> str:
    made = FIGURES[name](material)
    assert isinstance(made, Missing)
    return made.reason


def svg(material: Material, name: str) -> Element:
    """The picture; that of the run is drawn once."""
    if (id(material), name) not in PICTURES:
        # With the material, whose address is no other's as long as it exists.
        PICTURES[id(material), name] = material, checked_svg(figure(material, name))
    return PICTURES[id(material), name][1]


def values(material: Material, name: str, pattern: str) -> dict[tuple[Any, ...], float | None]:
    """Values of the marks whose text matches, by the groups of the pattern, without repeats."""
    found: list[DrawnMark] = marks(svg(material, name))
    matches = [(re.match(pattern, own.text), own.value) for own in found]
    kept = [(match.groups(), value) for match, value in matches if match is not None]
    made = dict(kept)
    assert len(made) == len(kept)
    return made


def keyed(rows: pl.DataFrame, value: str, *by: str) -> dict[tuple[Any, ...], float]:
    """A column by time, measure and other columns."""
    return {tuple(map(str, key)): own for *key, own in rows.select("time", "measure", *by, value).rows()}


AT = r"brains, all, (\w+), (\w+)"


def test_every_figure_of_the_analysis_is_made(run: Material):
    assert list(FIGURES) == [name for names in Turing.figures.values() for name in names]
    assert list(VERDICTS) == list(LABELS)
    for name in FIGURES:
        assert figure(run, name).name == name
        assert marks(svg(run, name))
        assert width_of(svg(run, name)) <= 1000


def test_bars_scores_pairs_and_ceilings(run: Material):
    name, claims = "brains_and_models", run.table(tables.CLAIMS.name)
    bars = values(run, name, AT + r", (\w+): score .* of brains; ")
    assert bars == pytest.approx(keyed(claims, "score", "model"))
    pairs = run.table(tables.PAIRS.name).filter(kind="brain")
    assert values(run, name, AT + r", (\w+) → (\w+): ") == keyed(pairs, "value", "source", "target")
    brains = run.table(tables.SCORES.name).filter(source="brains")
    assert values(run, name, AT + ", brains: score") == keyed(brains, "score")
    assert brains["corrected"].all()
    assert values(run, name, AT + ": noise ceiling") == dict.fromkeys(keyed(brains, "score"), 1.0)
    words = texts(svg(run, name))
    assert [word for word in words if word in LABELS] == claims.sort(
        "lag_ms", "measure", "model", descending=[False, False, True]
    )["label"].to_list()
    assert any(word.startswith("'half_brain'") for word in words)


def test_dots_of_subjects(run: Material):
    models = run.table(tables.MODEL_PAIRS.name).filter(kind="model_trials")
    dots = values(run, "subject_dots", AT + r", subject (\w+), (\w+): \S+, \S+ with other brains")
    assert dots == keyed(models, "value", "target", "model")
    others = values_of_brains(run)
    expected = {
        (*at, who, model): value for (*at, who), value in others.items() for model in ("sixth_brain", "half_brain")
    }
    found = [own.value for own in marks(svg(run, "subject_dots")) if "other brains: " in own.text]
    assert sorted(found) == pytest.approx(sorted(expected.values()))  # type: ignore[type-var]
    lower = sum(value < expected[key] for key, value in dots.items())  # type: ignore[operator]
    counts = re.findall(r"(\d) of 4 lower", " ".join(texts(svg(run, "subject_dots"))))
    assert sum(map(int, counts)) == lower
    assert len(counts) == 2 * 2 * N_TIMES


def values_of_brains(material: Material) -> dict[tuple[Any, ...], float]:
    """Mean over sources for every target, from the matrix of pairs."""
    made = {}
    for at, rows in material.table(tables.PAIRS.name).group_by(PLACE):
        names, matrix = between_of(rows)
        made |= {(*at[2:], who): own for who, own in zip(names, mean_of_finite(matrix), strict=True)}
    return made


def test_time_courses_are_means_of_pairs(run: Material):
    scores = run.table(tables.SCORES.name)
    brains = values(run, "time_courses", AT + r", brains: \S+, subjects")
    assert brains == keyed(scores.filter(source="brains"), "mean_of_pairs")
    models = values(run, "time_courses", AT + r", (\w+): \S+; score \S+; \w+")
    assert models == keyed(scores.filter(kind="model_trials"), "mean_of_pairs", "source")
    first = run.table(tables.CLAIMS.name).filter(time="0ms")
    assert missing(changed(run, claims=first), "time_courses") == "there is only one time point, 0ms"


def test_gaps_have_intervals_bounds_and_the_tests_of_the_paper(run: Material):
    claims = run.table(tables.CLAIMS.name)
    assert values(run, "gaps", AT + r", (\w+): gap ") == keyed(claims, "gap", "model")
    for test, column in (("rank-sum", "rank_sum_p"), ("KS", "ks_p")):
        found = values(run, "gaps", AT + rf", (\w+), {test} test of the paper")
        assert found == keyed(claims, column, "model")
    nothing = [pl.lit(None, pl.Float64).alias(f"{test}_p") for test in ("rank_sum", "ks")]
    assert "KS" not in texts(svg(changed(run, claims=claims.with_columns(nothing)), "gaps"))
    no_gap = changed(run, claims=claims.with_columns(gap=pl.lit(None, pl.Float64)))
    assert missing(no_gap, "gaps") == "no gap could be tested"


def test_growth_has_every_size_target_and_limit(run: Material):
    rows = run.table(tables.GROWTH.name)
    sizes = values(run, "growth", AT + r", (\d+) (\w+): ")
    assert sizes == keyed(rows.drop_nulls("value"), "value", "size", "over")
    dots = values(run, "growth", AT + r", (\d+) (\w+), target (\d): ")
    each = rows.with_columns(target=pl.int_ranges(1, N_SUBJECTS + 1)).explode("by_target", "target")
    each = each.drop_nulls("by_target")
    assert dots == keyed(each, "by_target", "size", "over", "target")
    fits = run.table(tables.GROWTH_FITS.name)
    limits = values(run, "growth", AT + r", limit of (\w+): ")
    assert limits == keyed(fits.drop_nulls("at_infinity"), "at_infinity", "over")
    verdicts = {f"{row['over']}: {row['verdict']}" for row in fits.iter_rows(named=True)}
    assert verdicts <= set(texts(svg(run, "growth")))
    section = run.config.analyses["turing"].model_copy(update={"growth": ()})
    config = run.config.model_copy(update={"analyses": {"turing": section}})
    assert "turing.growth is empty" in missing(Material(run.tables, config), "growth")


def test_limits_beyond_the_panel_are_marked(run: Material):
    fits = run.table(tables.GROWTH_FITS.name)
    far = fits.with_columns(pl.lit(99.0).alias(name) for name in ("at_infinity", "low", "high"))
    made = changed(run, growth_fits=far)
    assert "Triangles" in figure(made, "growth").caption
    assert set(values(made, "growth", AT + r", limit of (\w+): ").values()) == {99.0}


def test_every_verdict_has_its_symbol_and_word(run: Material):
    claims = run.table(tables.CLAIMS.name)
    labels = pl.Series("label", [list(LABELS)[i % len(LABELS)] for i in range(claims.height)])
    some = pl.int_range(pl.len()) % 7 == 6
    score = pl.when(some).then(None).otherwise("score").alias("score")
    made = changed(run, claims=claims.with_columns(labels, score))
    for name in ("brains_and_models", "time_courses", "gaps"):
        assert {label.replace("_", " ") for label in LABELS} <= set(texts(svg(made, name)))


def many(material: Material, n_models: int, n_places: int) -> Material:
    """Every model and region of a run many times."""
    made = dict(material.tables)
    for name, frame in made.items():
        if "region" in frame.columns and "time" in frame.columns:
            names = pl.lit([f"a region with a long name {i}" for i in range(n_places)])
            frame = frame.with_columns(region=names).explode("region")
            for column in {"model", "source"} & set(frame.columns):
                is_model = pl.col(column) == "half_brain"
                rest, own = frame.filter(~is_model), frame.filter(is_model)
                models = pl.lit([f"a_model_with_a_long_name_{i}" for i in range(n_models)])
                copies = own.with_columns(models.alias(column)).explode(column)
                frame = pl.concat([rest.filter(pl.col(column) != "sixth_brain"), copies])
            made[name] = frame
    return Material(made, material.config)


def test_many_models_and_places_stay_small(run: Material):
    large = many(run, 17, 5)
    for name in FIGURES:
        made, root = figure(large, name), svg(large, name)
        assert width_of(root) <= 1000
        assert float(root.get("height", "nan")) <= 2000
        assert len(marks(root)) < 2000
        assert "16 of 17 models" in made.caption or name == "growth"
        left_out = "2 panels" if name == "time_courses" else "of 20 are drawn"
        assert left_out in made.caption


def test_without_rows_there_are_reasons(run: Material):
    nothing = Material({name: own.clear() for name, own in run.tables.items()}, run.config)
    for name in FIGURES:
        assert missing(nothing, name)
        assert "no table" in missing(Material({}, run.config), name)


def test_the_caption_of_gaps_names_the_interval_of_equivalence(run: Material):
    assert "the 90 % interval, which is narrower, lies within the zone" in figure(run, "gaps").caption
    claims = run.table("turing/claims")
    equivalent = claims["equivalence_p"] <= 0.05
    t = special.stdtrit(claims["n_subjects"].to_numpy() - 1.0, np.array([[0.95], [0.975]]))
    half = (claims["gap_high"] - claims["gap"]).to_numpy() * t[0] / t[1]
    assert equivalent.to_list() == (np.abs(claims["gap"].to_numpy()) + half <= claims["bound"].to_numpy()).tolist()


def test_captions_say_where_tests_compare_agreement_above_chance(run: Material):
    pairs = run.table("turing/pairs")
    chance = pl.when(measure="rsa").then(0.1).otherwise("chance")
    other = changed(run, pairs=pairs.with_columns(chance=chance))
    for name in ("brains_and_models", "subject_dots", "time_courses"):
        assert "above chance" not in figure(run, name).caption
        assert "By rsa, tests compare agreement above chance, which is not drawn." in figure(other, name).caption


def test_names_stay_text(run: Material):
    own = {}
    for name, frame in run.tables.items():
        found = [key for key in ("dataset", "region") if key in frame.columns]
        own[name] = frame.with_columns(pl.lit(EVIL).alias(key) for key in found)
        for key in {"model", "source", "target"} & set(own[name].columns):
            evil = pl.when(pl.col(key) == "brains").then(pl.col(key)).otherwise(pl.col(key) + EVIL)
            own[name] = own[name].with_columns(evil.alias(key))
    for name in FIGURES:
        found = marks(svg(Material(own, run.config), name))
        assert {m.dataset for m in found} == {EVIL}


def test_pooled_and_undefined_values(run: Material):
    pairs = run.table(tables.PAIRS.name)
    first = pl.col("target") == pl.col("target").min()
    holes = pairs.with_columns(value=pl.when(first).then(None).otherwise("value"))
    is_brain = pl.col("kind") == "brain"
    pooled = holes.filter(is_brain).unique([*PLACE, "target"], maintain_order=True)
    pooled = pooled.with_columns(kind=pl.lit("pooled"), source=pl.lit("others"))
    for own, kind in ((holes, "brain"), (pl.concat([holes.filter(~is_brain), pooled]), "pooled")):
        made = changed(run, pairs=own)
        brains = own.filter(kind=kind).drop_nulls("value")
        found = values(made, "brains_and_models", AT + r", (\w+) → (\w+): ")
        assert found == keyed(brains, "value", "source", "target")
        dots = [m.value for m in marks(svg(made, "subject_dots")) if "other brains: " in m.text]
        if kind == "pooled":
            assert sorted(dots) == sorted(brains["value"].to_list() * 2)  # type: ignore[type-var]
