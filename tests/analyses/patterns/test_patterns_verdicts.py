"""Verdicts: planted truths give their label, and what is missing gives a row with the reason."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from made_tables import Made, finished, peculiar, shared

from lpact.analyses.patterns.analysis import Patterns
from lpact.analyses.patterns.config import LABELS
from lpact.analyses.patterns.verdicts import label_of
from lpact.stats import compare_with_subjects, pair_means

RNG = np.random.default_rng


def claims(made: Made, **options) -> pl.DataFrame:
    return finished(made.tables(), **options)["patterns/claims"]


def labels(found: pl.DataFrame, model: str) -> set[str]:
    return set(found.filter(model=model)["label"])


def planted(n_subjects: int = 8, seed: int = 0) -> Made:
    """A typical brain, a weaker one, good and bad scores without the pattern, and no score."""
    made = Made(peculiar(6), n_subjects, sd=0.02, seed=seed)
    made.add_brain("twin", typical=True).add_brain("weaker", shift=-0.2, typical=True)
    size = (n_subjects, 6)
    made.add("strong", {0: 0.95 + 0.05 * made.rng.normal(size=size)})
    made.add("weak", {0: 0.3 + 0.05 * made.rng.normal(size=size)})
    return made.add("none", {0: -0.1 + 0.02 * made.rng.normal(size=size)})


def test_planted_truths_have_their_labels():
    made = planted()
    del made.models["strong"]
    found = claims(made)
    assert labels(found, "twin") == {"aligned"}
    assert labels(found, "weaker") == {"pattern_only"}
    assert labels(found, "weak") == {"neither"}
    assert labels(found, "none") == {"excluded"}
    with_strong = claims(planted())
    assert labels(with_strong, "strong") == {"score_only"}
    assert labels(with_strong, "twin") == {"pattern_only"}
    assert with_strong["model"].n_unique() == 5


def test_numbers_of_a_claim_are_those_of_other_tables():
    made = planted()
    tables = finished(made.tables())
    found = tables["patterns/claims"].filter(model="weaker", region="r02").row(0, named=True)
    similar = tables["patterns/similarities"].filter(region="r02")
    brains = np.full((8, 8), np.nan)
    other = brains.copy()
    for row in similar.filter(kind="brain").iter_rows(named=True):
        at = made.subjects.index(row["source"]), made.subjects.index(row["target"])
        brains[at], other[at] = row["similarity_without_source"], row["other_regions"]
    model = similar.filter(source="weaker")
    values = model["similarity_without_source"].to_numpy()
    bound = 0.2 * np.nanmean(brains - other)
    test = compare_with_subjects(brains, values, symmetric=False, bound=bound)
    by_z = compare_with_subjects(np.arctanh(brains), np.arctanh(values), symmetric=False, bound=1.0)
    expected = {
        "gap": values.mean() - np.nanmean(brains), "gap_low": test.low, "gap_high": test.high,
        "p_value": by_z.p_value, "bound": bound, "similarity": values.mean(),
        "similarity_of_brains": np.nanmean(brains),
        "similarity_in_paper": model["similarity"].median(), "other_regions": np.nanmean(other),
        "share": (values.mean() - np.nanmean(other)) / np.nanmean(brains - other),
        "pattern_p": float(pair_means(brains).p_value), "distinct_p": float(pair_means(brains - other).p_value),
        "n_subjects": 8,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    score = made.models["weaker"][2][:, 2]
    turing = compare_with_subjects(made.brains[2, :, :, 2], score, symmetric=False, bound=1.0)
    assert (found["turing_p"], found["turing_gap"]) == pytest.approx((turing.p_value, turing.gap))
    assert (found["score"], found["median_score"]) == pytest.approx((score.mean(), np.median(score)))
    assert found["layer"] == 2


def test_scores_of_measures_without_a_direction_are_compared_as_such():
    made = Made(peculiar(4), 20, measure="rsa")
    made.brains = (made.brains + np.transpose(made.brains, (3, 2, 1, 0))) / 2
    made.add_brain("twin")
    found = claims(made).row(0, named=True)
    score = made.models["twin"][0][:, 0]
    turing = compare_with_subjects(made.brains[0, :, :, 0], score, symmetric=True, bound=1.0)
    assert turing.test == "exact"
    assert (found["turing_p"], found["turing_gap"]) == pytest.approx((turing.p_value, turing.gap))


def test_patterns_that_all_regions_share_are_nobodys():
    made = Made(shared(6), 6).add_brain("twin")
    found = claims(made)
    assert labels(found, "twin") == {"no_pattern"}
    assert found["reproduced"].all()
    assert not found["distinct"].any()
    noise = Made(np.full((6, 6), 0.3), 6, sd_subject=0.0).add_brain("twin")
    found = claims(noise)
    assert labels(found, "twin") == {"no_pattern"}
    assert found["reproduced"].sum() <= 1


def test_what_all_regions_share_is_not_equivalent_to_the_regions_pattern():
    """The mean pattern of all regions is closer to that of a region than those of other regions are: a share of .4."""
    made = Made(shared(12) + 0.1 * RNG(1).normal(size=(12, 12)), 8, sd=0.01)
    made.add("common", {0: made.pattern.mean(axis=0) + 0.01 * made.rng.normal(size=(8, 12))})
    found = claims(made)
    assert found["similarity"].min() > 0.3
    assert found["distinct"].all()
    assert 0.2 < found["share"].mean() < 0.6
    assert not found["as_similar"].any()


@pytest.mark.parametrize("n_subjects", [2, 3])
def test_few_subjects_reject_nothing(n_subjects):
    found = claims(planted(n_subjects))
    assert set(found["label"]) == {"cannot_reject"}
    assert set(found["n_subjects"]) == {n_subjects}
    assert found["reason"].str.contains(f"With {n_subjects} subjects").all()
    assert found["score"].null_count() == 0


def test_four_subjects_are_enough():
    assert "cannot_reject" not in set(claims(planted(4))["label"])


def test_two_regions_have_no_pattern_and_say_so():
    found = claims(Made(peculiar(2), 5).add_brain("twin"))
    assert set(found["label"]) == {"not_computed"}
    assert found["reason"].str.contains("patterns of 2 regions").all()
    assert found["similarity"].null_count() == found.height
    assert found["score"].null_count() == 0


def test_a_model_without_scores_has_a_row_with_the_reason():
    made = Made(peculiar(4), 5).add_brain("twin").add("constant", {0: np.full((5, 4), np.nan)})
    missing = {i: np.full((5, 4), np.nan) for i in range(2)}
    made.add("unchosen", {i: RNG(i).uniform(size=(5, 4)) for i in range(2)}, missing)
    found = claims(made)
    for model in ("constant", "unchosen"):
        assert labels(found, model) == {"not_computed"}
        rows = found.filter(model=model)
        assert rows["reason"].str.contains("has no score").all()
        assert rows["score"].null_count() == rows["rank"].null_count() == 4
    assert found.filter(model="unchosen")["layer"].null_count() == 4
    assert "not_computed" not in labels(found, "twin")


def test_a_target_without_scores_is_left_out_of_the_test():
    made = planted()
    made.brains[:, :, 3] = np.nan
    for of in made.models.values():
        for layer in of.values():
            layer[3] = np.nan
    found = claims(made)
    assert set(found["n_subjects"]) == {7}
    assert labels(found, "twin") == {"pattern_only"}
    assert not found.filter(model="weak")["not_rejected"].any()


def test_an_undefined_entry_of_a_pattern_is_left_out():
    made = planted()
    made.models["twin"][0][2, 4] = np.nan
    found = claims(made)
    assert labels(found, "twin") <= {"aligned", "pattern_only"}
    row = found.filter(model="twin", region="r00").row(0, named=True)
    assert row["n_subjects"] == 8


def test_every_combination_of_gates_has_one_label():
    numbers = dict.fromkeys(("similarity", "similarity_of_brains", "other_regions", "gap"), 0.5)
    numbers |= {"n_subjects": 9, "rank": 1, "noise": 1.0}
    names = ("positive", "reproduced", "distinct", "not_rejected", "as_similar", "equivalent")
    made: dict[str, int] = {}
    for values in itertools.product([False, True], repeat=6):
        gates = dict(zip(names, values, strict=True))
        label = label_of(numbers | gates)
        made[label] = made.get(label, 0) + 1
        if all(values):
            assert label == "aligned"
    assert made == {
        "aligned": 1, "pattern_only": 1, "inconclusive": 2, "score_only": 2, "neither": 2, "no_pattern": 24,
        "excluded": 32,
    }  # fmt: skip
    assert label_of(numbers | dict.fromkeys(names, True) | {"n_subjects": 3}) == "cannot_reject"
    rejected = dict.fromkeys(names, True) | {"not_rejected": False}
    assert label_of(numbers | rejected | {"noise": None}) == "inconclusive"
    for name in ("rank", "similarity", "similarity_of_brains", "other_regions", "gap"):
        assert label_of(numbers | dict.fromkeys(names, True) | {name: None}) == "not_computed"


def test_a_model_without_noise_is_not_called_different_for_having_none():
    tables = planted().tables(noise=None)
    found = finished(tables)["patterns/claims"]
    assert found["noise"].null_count() == found.height
    rejected = found.filter(~found["not_rejected"], model="strong")
    assert rejected.height > 0
    assert set(rejected["label"]) == {"inconclusive"}
    assert rejected["reason"].str.contains("is not shown to relate .* the model had no noise, but brains do").all()
    assert not claims(planted())["reason"].str.contains("no noise").any()


def test_sentences_say_what_the_label_says():
    found = pl.concat([claims(planted()), claims(Made(shared(6), 6).add_brain("twin"))])
    said = {
        "pattern_only": r"relates to all regions as r0\d does .* has a higher score\.$",
        "score_only": r"does not relate to all regions .* less similar .* its score is the highest\.$",
        "neither": r"does not relate to all regions .* has a higher score\.$",
        "excluded": r"does not predict r0\d by linear_r2: its median score is −0\.",
        "no_pattern": r"not shown to be closer to each other .* nothing to reproduce\.$",
    }
    assert set(found["label"]) == set(said)
    for label, reason in found.select("label", "reason").iter_rows():
        assert pl.Series([reason]).str.contains(said[label]).all(), reason
    assert set(Patterns.claims.labels) == set(LABELS)


def test_one_more_brain_is_seldom_rejected():
    """Nominally 0.05, two-sided; rates are in docs/explanation/alignment-patterns.md."""
    p: list[float] = []
    for seed in range(8):
        made = Made(peculiar(6, seed=seed), 10, sd_subject=0.06, seed=seed)
        for i in range(3):
            made.add_brain(f"twin{i}")
        p += claims(made, n_bootstrap=100)["p_value"].to_list()
    assert len(p) == 8 * 18
    assert 0.0 < np.mean(np.array(p) <= 0.05) < 0.14
    assert 0.3 < np.mean(p) < 0.7
