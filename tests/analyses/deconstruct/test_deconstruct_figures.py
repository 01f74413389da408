"""Figures of deconstruct: their numbers are those of the tables, and what is missing has a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import polars as pl
import pytest
from figure_checks import EVIL, DrawnMark, checked_svg, marks, texts, width_of

import lpact
from lpact.analyses.base import Material
from lpact.analyses.deconstruct import tables
from lpact.analyses.deconstruct.analysis import Deconstruct
from lpact.analyses.deconstruct.figures import FIGURES, units
from lpact.report.figure import Figure, Missing

STUDY: dict[str, Any] = {
    "name": "deconstructed",
    "seed": 3,
    "datasets": [
        {
            "name": "passages",
            "reader": "simulated_passages",
            "grid": {"events": "sentences", "lags_ms": [0.0], "pooling": "sum"},
            "options": {
                "n_subjects": 2,
                "n_units": 6,
                "n_categories": 6,
                "passages_per_category": 3,
                "vectors": 0.3,
            },
        }
    ],
    "models": [
        {"name": "planted", "layers": [0, 2, 4]},
        {"name": "vectors", "layers": [0]},
    ],
    "readout": {"min_train_events": 20, "gap_events": 1},
}
OPTIONS: dict[str, Any] = {
    "ladder": [["SP", "SL"]],
    "category": "category",
    "draws": 0,
    "permutations": 19,
    "alphas": [0.5, 8.0, 128.0, 2048.0],
    "oasm_sigmas": [1.4, 2.2],
}
MakeRun = Callable[..., Material]
Key = tuple[Any, ...]
PICTURES: dict[tuple[int, str], tuple[Material, Element]] = {}


@pytest.fixture(scope="module")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Material of a run of the study with other options."""

    def make(**options: Any) -> Material:
        study = lpact.load_study({**STUDY, "deconstruct": OPTIONS | options})
        folder = tmp_path_factory.mktemp("deconstruct") / "run"
        made = study.run(folder, workers=1, progress=False)
        return Material({t.name: made.table(t.name) for t in made.tables()}, made.config)

    return make


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Material:
    return make_run()


@pytest.fixture(scope="module")
def bare(make_run: MakeRun) -> Material:
    """Shuffled splits, OASM and untrained copies are off, and a feature space is not offered."""
    off = dict.fromkeys(("shuffled", "oasm", "untrained"), False)
    return make_run(ladder=[["SP"], ["static:planted"]], **off)


def changed(material: Material, **frames: pl.DataFrame) -> Material:
    """The material with other tables of deconstruct."""
    own = {f"deconstruct/{name}": frame for name, frame in frames.items()}
    return Material({**material.tables, **own}, material.config)


def with_options(material: Material, **options: Any) -> Material:
    section = material.config.analyses["deconstruct"].model_copy(update=options)
    config = material.config.model_copy(update={"analyses": {"deconstruct": section}})
    return Material(material.tables, config)


def figure(material: Material, name: str) -> Figure:
    made = FIGURES[name](material)
    assert isinstance(made, Figure), made
    return made


def svg(material: Material, name: str) -> Element:
    """The picture; that of the run is drawn once."""
    if (id(material), name) not in PICTURES:
        # With the material, whose address is no other's as long as it exists.
        PICTURES[id(material), name] = material, checked_svg(figure(material, name))
    return PICTURES[id(material), name][1]


def drawn(material: Material, name: str) -> list[DrawnMark]:
    return marks(svg(material, name))


def shown(material: Material, name: str) -> list[str]:
    """Texts of the picture, line by line."""
    return list(svg(material, name).itertext())


def read(found: list[DrawnMark], pattern: str) -> dict[Key, float | None]:
    """Values of the marks whose text matches, by the groups of the pattern."""
    matches = [(re.match(pattern, own.text), own.value) for own in found]
    return {match.groups(): value for match, value in matches if match is not None}


def mean(rows: pl.DataFrame, by: list[str], value: str = "r2") -> dict[Key, float]:
    """Mean over subjects of the mean of each."""
    within = rows.group_by({*by, "subject"}).agg(pl.col(value).mean())
    found = within.group_by(by).agg(pl.col(value).mean())
    return {tuple(map(str, key)): own for *key, own in found.iter_rows()}


def each(rows: pl.DataFrame, by: list[str], value: str = "r2") -> dict[Key, float]:
    return mean(rows, [*by, "subject"], value)


def agree(found: Mapping[Key, float | None], expected: Mapping[Key, float]) -> None:
    assert expected
    assert dict(found) == pytest.approx(dict(expected), rel=1e-9, abs=1e-12)


def clipped(scores: Iterable[float | None]) -> float:
    return float(np.mean([max(own, 0.0) for own in scores if own is not None]))


def test_every_figure_of_the_analysis_is_made(run: Material):
    assert list(FIGURES) == [name for names in Deconstruct.figures.values() for name in names]
    for name in FIGURES:
        made = figure(run, name)
        root = svg(run, name)
        assert made.name == name
        assert marks(root)
        assert width_of(root) <= 1000


def test_shares_are_those_of_claims_and_subjects(run: Material):
    found, claims = drawn(run, "accounted_for"), run.table(tables.CLAIMS.name)
    shares = {(row["model"],): row["accounted_for"] for row in claims.iter_rows(named=True)}
    text = r"passages, (\w+): [\d.]+ % "
    agree(
        read(found, text + "accounted for by simple features, from means over 2 subjects"),
        shares,
    )
    agree(read(found, text + "the model's own"), {key: 100 - own for key, own in shares.items()})
    accounted = run.table(tables.ACCOUNTED.name).filter(network="all", sub_model="validation")
    dots = read(found, r"passages, (\w+), subject (\d+): .* accounted for")
    agree(dots, each(accounted, ["model"], "accounted_for"))
    assert len(found) == 2 * 2 + 4
    words = " ".join(shown(run, "accounted_for"))
    assert all(word in words for reason in claims["reason"] for word in reason.split())


def test_the_ladder_has_every_step_and_the_model_alone(run: Material):
    found = drawn(run, "ladder")
    rows = run.table(tables.LADDER.name).filter(network="all", sub_model="validation")
    by = ["model", "step_name"]
    agree(read(found, r"passages, (\w+), ([\w+]+): mean R² [\d.]+ of 2 subj"), mean(rows, by))
    agree(read(found, r"passages, (\w+), ([\w+]+), subject (\d+): R²"), each(rows, by))
    alone = run.table(tables.ACCOUNTED.name).filter(network="all", sub_model="validation")
    rules = read(found, r"passages, (\w+), the model alone: mean R²")
    agree(rules, mean(alone, ["model"], "model_r2"))
    assert {"SP+SL", "+ planted", "+ vectors"} <= set(shown(run, "ladder"))


def test_steps_beyond_the_simple_ones_have_their_own_colour(run: Material):
    words = "more complex features, without the model"
    rows = run.table(tables.LADDER.name)
    more = rows.filter(step=1).with_columns(step=pl.lit(2, pl.Int64), step_name=pl.col("step_name") + "+X")
    own = with_options(changed(run, ladder=pl.concat([rows, more])), simple_steps=1)
    assert words in shown(own, "ladder")
    assert words not in shown(run, "ladder")


def test_layers_under_both_splits(run: Material):
    found, rows = drawn(run, "layers_by_split"), run.table(tables.LAYERS.name)
    rows, by = rows.filter(context="full"), ["model", "split", "layer"]
    agree(read(found, r"passages, (\w+), (\w+), layer (\d+): mean R²"), mean(rows, by))
    dots = read(found, r"passages, (\w+), (\w+), layer (\d+), subject (\d+): R²")
    agree(dots, each(rows, by))
    contrast = run.table(tables.SPLIT_CONTRAST.name).filter(model="planted")
    r = f"{contrast['correlation'][0]:.2f}".replace("-", "−")
    titles = {f"passages · planted, r = {r}", "passages · vectors, no correlation over 1 layer"}
    assert titles <= set(shown(run, "layers_by_split"))


def test_oasm_over_widths_and_against_models(run: Material):
    found, widths = drawn(run, "oasm"), run.table(tables.SIGMAS.name)
    curve = read(found, r"passages, (\w+), width σ of the filter \(events\) ([\d.]+)0: mean R²")
    values = {(split, float(sigma)): own for (split, sigma), own in curve.items()}
    expected = mean(widths, ["split", "sigma"])
    agree(values, {(split, float(sigma)): own for (split, sigma), own in expected.items()})
    scores = run.table(tables.SCORES.name).filter(family="oasm", split="shuffled")
    bars = read(found, r"passages, (\w+), ([\w+]+): mean R²")
    for model in ("planted", "vectors"):
        own = scores.filter(model=model)
        for features, sub_model in (
            (model, "none"),
            ("OASM", "none"),
            (f"OASM+{model}", "validation"),
        ):
            part = own.filter(features=features, sub_model=sub_model)
            assert bars.pop((model, features)) == pytest.approx(mean(part, ["model"])[model,])
    assert bars == {}


def test_without_shuffled_splits_oasm_has_curves_alone(run: Material):
    scores, widths = run.table(tables.SCORES.name), run.table(tables.SIGMAS.name)
    own = changed(run, scores=scores.filter(split="contiguous"), oasm_widths=widths.filter(split="contiguous"))
    own = with_options(own, shuffled=False)
    assert {m.text.split(",")[1] for m in drawn(own, "oasm")} == {" contiguous"}
    assert "no bars: shuffled splits were not computed" in figure(own, "oasm").caption


def test_pairs_of_every_correction(run: Material):
    found, rows = drawn(run, "sub_models"), run.table(tables.ACCOUNTED.name)
    rows = rows.filter(network="all")
    for pool, column in (("simple", "simple_r2"), (r"\+ model", "both_r2")):
        text, by = rf"passages, (\w+), (\w+), {pool}", ["model", "sub_model"]
        agree(read(found, f"{text}: mean R²"), mean(rows, by, column))
        agree(read(found, rf"{text}, subject (\d+): R²"), each(rows, by, column))
    words = shown(run, "sub_models")
    assert words.count("by test score, optimistic") == 2 * 2
    assert words.count("validation (decides)") == 2


def test_untrained_copies_have_every_combination_once(run: Material):
    found, rows = drawn(run, "untrained"), run.table(tables.SCORES.name)
    rows = rows.filter(family="untrained", sub_model="none")
    rows = rows.filter(~pl.col("features").is_in(["simple", "simple+model"]))
    assert rows["draw"].n_unique() == 2
    agree(read(found, r"passages, \w+, ([\w+]+): mean R²"), mean(rows, ["features"]))
    agree(read(found, r"passages, \w+, ([\w+]+), subject (\d+)"), each(rows, ["features"]))
    order = ["SP", "SL", "SP+SL", "planted", "SP+planted", "SL+planted", "SP+SL+planted"]
    assert [own for own in shown(run, "untrained") if own in order] == order
    assert "model 'vectors' offers no untrained features" in figure(run, "untrained").caption


def test_networks_are_means_over_their_units(run: Material):
    found, rows = drawn(run, "networks"), run.table(tables.LAYERS.name).filter(split="contiguous")
    members = {"all": slice(0, 6), "language": slice(0, 3), "visual": slice(3, 6)}
    made = [
        rows.with_columns(line=pl.lit(line), r2=pl.Series([clipped(s[own]) for s in rows["scores"].to_list()]))
        for line, own in members.items()
    ]  # fmt: skip
    by = ["model", "context", "line", "layer"]
    text = r"passages, (\w+), (\w+), (\w+), layer (\d+)"
    agree(read(found, f"{text}: mean R²"), mean(pl.concat(made), by))
    agree(read(found, rf"{text}, subject (\d+)"), each(pl.concat(made), by))
    assert "all units" in shown(run, "networks")


def test_networks_beyond_the_colours_are_named(run: Material):
    regions = run.table(tables.UNITS.name).with_columns(region=pl.format("region {}", pl.col("unit_index")))
    made = figure(changed(run, units=regions), "networks")
    assert re.search(r"For lack of colours these networks are left out: region \d\.", made.caption)


def unit_scores(material: Material, model: str) -> pl.DataFrame:
    rows = material.table(tables.SCORES.name)
    rows = rows.filter(family="ladder", sub_model="validation", model=model)
    lists = {name: rows.filter(features=name)["scores"].explode() for name in ("simple", "simple+model")}
    return pl.DataFrame(lists)


@pytest.mark.parametrize("model", ["planted", "vectors"])
def test_the_histogram_counts_every_unit(run: Material, model: str):
    own = unit_scores(run, model)
    squares = [m for m in drawn(run, "unit_histogram") if m.model == model]
    n_inside = sum(m.value or 0 for m in squares)
    above = own.filter(pl.col("simple+model") > pl.col("simple")).height
    notes = f"{above} of 12 above the diagonal, {12 - n_inside:.0f} outside"
    assert notes in shown(run, "unit_histogram")
    pattern = r".*R² (\S+) to (\S+) before and (\S+) to (\S+) after"
    for square in squares:
        found = re.match(pattern, square.text.replace("−", "-"))
        assert found
        x0, x1, y0, y1 = (float(end) for end in found.groups())
        assert max(x1 - x0, y1 - y0) > 0
    counts = run.table(tables.COUNTS.name).filter(
        network="all", family="ladder", sub_model="validation", model=model, test="signs",
        comparison="model_beyond_simple",
    )  # fmt: skip
    gains = counts.select("n_gaining", "n_after_fdr").sum().row(0)
    assert f"p ≤ 0.05: {gains[0]}; corrected for multiple tests: {gains[1]}" in shown(run, "unit_histogram")


def test_squares_hold_robust_quantiles_and_an_edge_at_zero():
    rng = np.random.default_rng(1)
    x = rng.normal(0.05, 0.1, 4000)
    own = pl.DataFrame({"simple": x, "both": x + rng.normal(0.0, 0.02, 4000)})
    own = own.vstack(pl.DataFrame({"simple": [-90.0], "both": [50.0]}))
    own = own.with_columns(dataset=pl.lit("d"), stimulus=pl.lit("s"), model=pl.lit("m"))
    squares, (low, high) = units._squares(own)
    assert -0.4 < low < 0 < high < 0.6
    edges = pl.concat([squares["x0"], squares["y0"]]).unique()
    assert np.abs(edges.to_numpy()).min() == 0.0
    values = own.select("simple", "both").to_numpy()
    inside = ((values >= low) & (values <= high)).all(axis=1)
    assert squares["n"].sum() == inside.sum()
    row = squares.sort("n").row(-1, named=True)
    x, y = values.T
    held = (x >= row["x0"]) & (x < row["x1"]) & (y >= row["y0"]) & (y < row["y1"])
    assert held.sum() == row["n"]


def test_a_network_that_decides_is_drawn_alone(run: Material):
    own = with_options(run, network="language")
    found = [m for m in drawn(own, "unit_histogram") if m.model == "planted"]
    assert sum(m.value or 0 for m in found) <= 6
    assert "the units of the network language" in figure(own, "unit_histogram").caption
    language = run.table(tables.ACCOUNTED.name).filter(network="language", sub_model="validation")
    dots = read(drawn(own, "accounted_for"), r"passages, (\w+), subject (\d+): .* accounted for")
    agree(dots, each(language, ["model"], "accounted_for"))


def test_maps_show_every_unit_twice(run: Material):
    found = [m for m in drawn(run, "deconstructed_units") if m.model == "planted"]
    own = unit_scores(run, "planted")
    for name, words in (
        ("simple", "simple features"),
        ("simple+model", r"simple features \+ model"),
    ):
        values = [m.value for m in found if re.search(rf", {words}: R²", m.text)]
        # All units are on the left: each is seen from there, from behind and from above.
        expected = sorted(own[name].to_list() * 3)
        assert sorted(values) == pytest.approx(expected)  # type: ignore[type-var]
    assert "Brain frames are seen through the brain" in figure(run, "deconstructed_units").caption


@pytest.mark.parametrize(("frame", "n_views", "n_pairs"), [("head", 1, 1), ("", 3, 2)])
def test_maps_of_other_frames(run: Material, frame: str, n_views: int, n_pairs: int):
    own = changed(run, units=run.table(tables.UNITS.name).with_columns(coordinate_frame=pl.lit(frame)))
    root = svg(own, "deconstructed_units")
    assert len(marks(root)) == 2 * 2 * 12 * n_views
    assert texts(root).count("simple features") == 2 * n_pairs
    assert width_of(root) <= 1000


def test_units_without_places_or_scores(run: Material):
    rows = run.table(tables.UNITS.name)
    first = pl.col("unit_index") == 0
    part = rows.with_columns(x_mm=pl.when(first).then(None).otherwise("x_mm"))
    made = figure(changed(run, units=part), "deconstructed_units")
    assert "4 of 24 units have no coordinates." in made.caption
    nowhere = changed(run, units=rows.with_columns(x_mm=pl.lit(None, pl.Float64)))
    missing = FIGURES["deconstructed_units"](nowhere)
    assert isinstance(missing, Missing)
    assert missing.reason == "none of 24 units has coordinates"
    scores = run.table(tables.SCORES.name)
    some = pl.col("scores").list.eval(pl.when(pl.int_range(pl.len()) > 0).then(pl.element()))
    holes = changed(run, scores=scores.with_columns(some))
    assert "Dashes: R² is undefined." in figure(holes, "deconstructed_units").caption
    assert "of 10 above the diagonal" in " ".join(shown(holes, "unit_histogram"))


def test_what_is_missing_has_a_reason(bare: Material):
    reasons = {name: made.reason for name in FIGURES
               if isinstance(made := FIGURES[name](bare), Missing)}  # fmt: skip
    lacks = "feature space 'static:planted', stimulus 'passages'"
    assert reasons.pop("accounted_for").startswith(f"no claim has a share: {lacks}")
    for name in ("ladder", "sub_models", "unit_histogram", "deconstructed_units"):
        assert reasons.pop(name).startswith(f"no feature space was compared with a model: {lacks}")
    assert reasons == {
        "layers_by_split": "shuffled splits were not computed (deconstruct.shuffled is false)",
        "oasm": "OASM was not fitted (deconstruct.oasm is false)",
        "untrained": "untrained copies are not compared (deconstruct.untrained is false)",
    }
    assert "deconstruct.untrained is false" in figure(bare, "networks").caption


def test_without_rows_there_are_reasons(run: Material):
    nothing = Material({name: own.clear() for name, own in run.tables.items()}, run.config)
    for make in FIGURES.values():
        made = make(nothing)
        assert isinstance(made, Missing)
        assert made.reason
    assert isinstance(FIGURES["ladder"](Material({}, run.config)), Missing)


def test_names_stay_text(run: Material):
    own = {}
    for name, frame in run.tables.items():
        found = [key for key in ("dataset", "region") if key in frame.columns]
        own[name] = frame.with_columns(pl.lit(EVIL).alias(key) for key in found)
    for name in FIGURES:
        assert {m.dataset for m in drawn(Material(own, run.config), name)} == {EVIL}
