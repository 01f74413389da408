"""Figures of alignment patterns: their numbers are those of the tables, and what is missing has a reason."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, texts, width_of
from made_figure_tables import MEASURES, MODELS, REGIONS, made_material

from lpact.analyses.base import Material
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.analysis import Patterns
from lpact.analyses.patterns.config import EXCLUDED, LABELS
from lpact.analyses.patterns.figures import FIGURES
from lpact.analyses.patterns.figures.common import VERDICTS, models_by_rank
from lpact.analyses.patterns.figures.scores import MOST_MODELS
from lpact.report.figure import Figure, Missing

PICTURES: dict[tuple[int, str], tuple[Material, Element]] = {}


@pytest.fixture(scope="module")
def made() -> Material:
    return made_material()


def changed(material: Material, **frames: pl.DataFrame) -> Material:
    """The material with other tables of the analysis."""
    own = {f"patterns/{name}": frame for name, frame in frames.items()}
    return Material({**material.tables, **own}, material.config)


def with_options(material: Material, **options: Any) -> Material:
    """The material of a study with other options."""
    section = material.config.analyses["patterns"].model_copy(update=options)
    return Material(material.tables, material.config.model_copy(update={"analyses": {"patterns": section}}))


def figure(material: Material, name: str) -> Figure:
    drawn = FIGURES[name](material)
    assert isinstance(drawn, Figure), drawn
    return drawn


def missing(material: Material, name: str) -> str:
    drawn = FIGURES[name](material)
    assert isinstance(drawn, Missing)
    return drawn.reason


def svg(material: Material, name: str) -> Element:
    """The picture; that of one material is drawn once."""
    if (id(material), name) not in PICTURES:
        # With the material, whose address is no other's as long as it exists.
        PICTURES[id(material), name] = material, checked_svg(figure(material, name))
    return PICTURES[id(material), name][1]


def values(material: Material, name: str, pattern: str) -> dict[tuple[Any, ...], float | None]:
    """Values of the marks whose text matches, by the groups of the pattern, without repeats."""
    matches = [(re.match(pattern, own.text), own.value) for own in marks(svg(material, name))]
    kept = [(match.groups(), value) for match, value in matches if match is not None]
    assert len(dict(kept)) == len(kept)
    return dict(kept)


def keyed(rows: pl.DataFrame, value: str, *by: str) -> dict[tuple[Any, ...], float]:
    """A column by measure, region and other columns."""
    return {tuple(key): own for *key, own in rows.select("measure", "region", *by, value).rows()}


AT = r"(\w+), (\w+)"


def test_every_figure_of_the_analysis_is_made(made: Material):
    assert sorted(FIGURES) == sorted(name for names in Patterns.figures.values() for name in names)
    assert list(VERDICTS) == list(LABELS)
    for name in FIGURES:
        assert figure(made, name).name == name
        assert marks(svg(made, name))
        assert width_of(svg(made, name)) <= 1000


def test_ranking_has_means_subjects_and_ceilings_of_every_region_and_their_mean(made: Material):
    ranks, scores = made.table(tables.RANKING.name), made.table(tables.SCORES.name)
    assert values(made, "ranking", AT + r", (\w+): mean ") == keyed(ranks, "mean", "model")
    dots = values(made, "ranking", AT + r", (\w+), subject (\w+): ")
    means = scores.group_by("measure", "model", "target").agg(pl.col("value").mean(), region=pl.lit("mean"))
    every = pl.concat([scores.select(means.columns), means])
    assert dots == pytest.approx(keyed(every, "value", "model", "target"))
    ceilings = made.table(tables.CEILINGS.name).filter(pl.col("ceiling") != "all_including_self")
    found = values(made, "ranking", AT + r", ceiling (\w+): ")
    assert {key: own for key, own in found.items() if key[1] != "mean"} == keyed(ceilings, "mean", "ceiling")
    of_means = [own for key, own in found.items() if key[1:] == ("mean", "pairwise")]
    assert of_means == pytest.approx([0.42] * len(MEASURES))
    cells = values(made, "ranking", AT + r", (\w+): \S+ of pairs of brains, mean")
    of_pairs = ranks.filter(pl.col("region") != "mean")
    assert cells == keyed(of_pairs, "fraction_of_pairwise", "model")
    words = " ".join(texts(svg(made, "ranking")))
    assert "one other brain (paper: lower)" in words
    assert "mean of the other brains (paper: upper, rsatoolbox: lower)" in words


def test_a_missing_ceiling_or_score_is_said(made: Material):
    given, detail = made.table(tables.CEILINGS.name), "units do not correspond"
    loo = pl.col("ceiling") == "leave_one_out_mean"
    empty = [pl.when(loo).then(None).otherwise(name).alias(name) for name in ("mean", "low", "high")]
    ceilings = given.with_columns(empty)
    row = pl.DataFrame({"ceiling": ["leave_one_out_mean"], "detail": [detail]})
    unknown = pl.concat([made.table(tables.CEILING_VALUES.name), row], how="diagonal")
    noise = pl.col("model") == "noise"
    ranks = made.table(tables.RANKING.name).with_columns(
        pl.when(noise).then(None).otherwise(name).alias(name) for name in ("mean", "low", "high", "rank")
    )
    own = changed(made, ceilings=ceilings, ceiling_values=unknown, ranking=ranks)
    assert f"Ceilings are missing: {detail}." in figure(own, "ranking").caption
    assert not values(own, "ranking", AT + ", ceiling leave_one_out_mean")
    assert texts(svg(own, "ranking")).count("no score") == 2 * len(MEASURES) * (1 + len(REGIONS))


def test_equivalence_has_a_bar_per_measure_and_the_counts(made: Material):
    ranks = made.table(tables.RANKING.name)
    either = (pl.col("equivalent") | pl.col("equivalent_in_paper")).any().over("model")
    drawn = ranks.filter(either).with_columns(pl.col("equivalent").cast(pl.Float64))
    found = values(made, "equivalence", r"(\w+), (\w+), (\w+): (?:, )?(?:rank|equivalent)")
    assert {(m, r, who): own for (r, who, m), own in found.items()} == keyed(drawn, "equivalent", "model")
    assert f"{drawn['model'].n_unique()} of {len(MODELS)} models are drawn" in figure(made, "equivalence").caption
    classes = made.table(tables.CLASSES.name)
    counts = values(made, "equivalence", r"(\w+), (\w+): \d+ of \d+ equivalent")
    assert {(m, r): own for (r, m), own in counts.items()} == keyed(classes, "n_equivalent")
    apart = values(made, "equivalence", r"(\w+), (\w+): \d+ of \d+ pairs differ")
    assert {(m, r): own for (r, m), own in apart.items()} == keyed(classes, "n_pairs_apart")


def test_lines_are_patterns_of_brains_the_best_models_and_their_twins(made: Material):
    rows = made.table(tables.PATTERNS.name)
    found = values(made, "pattern_lines", r"(\w+), (\w+) of (\w+) → (\w+): ")
    by_place = {(m, to, who, of): own for (m, who, of, to), own in found.items()}
    assert by_place == keyed(rows, "mean", "source", "source_region")
    alone = with_options(made, untrained={})
    sources = {who for _, who, _, _ in values(alone, "pattern_lines", r"(\w+), (\w+) of (\w+) → (\w+): ")}
    assert sources == {"brains", *MODELS[:4]}
    assert "The best 4 of 5 models" in figure(alone, "pattern_lines").caption


def test_boxes_are_medians_of_pairs_and_excluded_models_have_none(made: Material):
    rows = made.table(tables.SIMILARITIES.name)
    rows = rows.with_columns(model=pl.when(kind="brain").then(pl.lit("brains")).otherwise("source"))
    medians = rows.group_by("measure", "region", "model").agg(pl.col("similarity_without_source").median())
    excluded = made.table(tables.CLAIMS.name).filter(label=EXCLUDED)
    medians = medians.join(excluded, on=["measure", "region", "model"], how="anti")
    found = values(made, "pattern_similarity", AT + r",  ?(\w+): median ")
    assert found == pytest.approx(keyed(medians, "similarity_without_source", "model"))
    words = texts(svg(made, "pattern_similarity"))
    # Behind the words is a halo.
    assert sum("excluded: median score" in own for own in words) == 2 * excluded.height > 0


def test_confusion_has_all_measures_and_the_difference_of_the_first_two(made: Material):
    rows = made.table(tables.CONFUSION.name)
    expected = {(m, r, o): own for (m, r, o), own in keyed(rows, "similarity", "other").items()}
    found = values(made, "confusion", r"([^,]+), (\w+) and (\w+): ")
    difference = {key[1:]: own for key, own in found.items() if key[0] == "rsa − linear_r2"}
    assert {key: own for key, own in found.items() if "−" not in key[0]} == expected
    assert difference == pytest.approx(
        {key[1:]: own - expected["linear_r2", *key[1:]] for key, own in expected.items() if key[0] == "rsa"}
    )
    one = changed(made, confusion=rows.filter(measure="rsa"))
    assert not any("−" in key[0] for key in values(one, "confusion", r"([^,]+), (\w+) and (\w+): "))


def test_structure_has_nulls_and_a_map_or_says_why_not(made: Material):
    rows = made.table(tables.STRUCTURE.name)
    assert values(made, "structure", AT + r": \S+ \(\S+ to \S+ at random") == keyed(rows, "similarity")
    left = {own.value for own in marks(svg(made, "structure")) if ", left: " in own.text}
    assert left == set(rows["similarity"])
    flat = changed(made, places=made.table(tables.PLACES.name).clear())
    assert not [own for own in marks(svg(flat, "structure")) if ", left: " in own.text]
    assert "glass brain" not in figure(flat, "structure").caption
    assert "No map: units have no coordinates" in figure(flat, "structure").caption
    assert "No map" not in figure(made, "structure").caption
    assert "patterns.connectivity is empty" in missing(with_options(made, connectivity=""), "structure")
    assert missing(changed(made, structure=rows.clear()), "structure") == "no dataset has structural connectivity"


def test_regions_are_in_the_order_of_the_study(made: Material):
    for name in FIGURES:
        words = [own for own in texts(svg(made, name)) if own in REGIONS]
        assert list(dict.fromkeys(words)) == list(REGIONS)


def test_many_regions_and_models_stay_small():
    regions = [f"V{i}" for i in range(19)]
    models = [f"a_model_with_a_long_name_{i}" for i in range(30)]
    twins = {models[0]: "first_untrained", models[2]: "third_untrained"}
    large = made_material(twins, regions=regions, models=[*models, *twins.values()])
    left_out = {
        "ranking": f"best {MOST_MODELS} of 32 models",
        "pattern_lines": "best 4 of 30 models",
        "pattern_similarity": "of 32 models are drawn",
        "equivalence": "of 32 models are drawn",
    }
    for name in FIGURES:
        drawn = figure(large, name)
        root = checked_svg(drawn)
        assert left_out.get(name, "") in drawn.caption
        assert width_of(root) <= 1000
        assert float(root.get("height", "nan")) <= 2400
        assert len(marks(root)) < 2500


def test_a_trained_model_and_its_twin_are_drawn_however_many_are_better():
    models = ["untrained", *(f"net{i:02d}" for i in range(12))]
    many = made_material({}, models=models, regions=[f"V{i}" for i in range(19)])
    last = [name for name in models_by_rank(many) if name != "untrained"][-1]
    many = with_options(many, untrained={last: "untrained"})
    drawn = {model for _, _, model in values(many, "pattern_similarity", AT + r",  ?(\w+): median ")}
    assert {last, "untrained", "brains"} < drawn
    assert len(drawn) < len(models)
    assert "untrained twin" in texts(svg(many, "pattern_similarity"))


def test_without_rows_there_are_reasons(made: Material):
    nothing = Material({name: own.clear() for name, own in made.tables.items()}, made.config)
    for name in FIGURES:
        assert missing(nothing, name)
        assert "no table" in missing(Material({}, made.config), name)


def test_names_stay_text(made: Material):
    own = {}
    for name, frame in made.tables.items():
        for key in {
            "dataset",
            "region",
            "source_region",
            "other",
            "model",
            "source",
            "target",
        } & set(frame.columns):
            plain = pl.col(key).is_in(["mean", "brains"])
            frame = frame.with_columns(pl.when(plain).then(key).otherwise(pl.col(key) + EVIL).alias(key))
        own[name] = frame
    evil = Material(own, made.config)
    for name in FIGURES:
        assert {mark.dataset for mark in marks(svg(evil, name))} <= {"d" + EVIL, None}
        assert any(EVIL.strip() in mark.text for mark in marks(svg(evil, name)))
