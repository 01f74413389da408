"""Ceilings, ranks, patterns, diagnostics and structure against loops, SciPy and planted truths."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from made_tables import Made, finished, peculiar, shared
from scipy import stats

from lpact.analyses.patterns import tables
from lpact.analyses.patterns.summaries import follows_targets
from lpact.math.seeding import keyed_rng
from lpact.stats import best_p_values, pair_means
from lpact.store.frames import empty

RNG = np.random.default_rng
DERIVED = (
    tables.SCORES, tables.CEILINGS, tables.RANKING, tables.CLASSES, tables.PATTERNS, tables.SIMILARITIES,
    tables.CONFUSION, tables.DIAGNOSTICS, tables.STRUCTURE, tables.CLAIMS,
)  # fmt: skip


def networks(made: Made, means) -> Made:
    """Models with one layer and these means in all regions; subjects' effects are larger than what models differ by."""
    size = (len(made.subjects), len(made.regions))
    effects = made.rng.normal(size=size)
    for i, mean in enumerate(means):
        made.add(f"m{i}", {0: mean + effects + 0.1 * made.rng.normal(size=size)})
    return made


def rows(found, table, **at) -> pl.DataFrame:
    return found[table.name].filter(**at)


# --- ceilings -------------------------------------------------------------------------------------


def test_ceilings_are_means_with_intervals_over_subjects():
    made = Made(peculiar(3), 6)
    found = finished(made.tables())
    names = ("in_paper", "in_rsatoolbox")
    for ceiling, called in (
        ("leave_one_out_mean", ("upper", "lower")),
        ("pairwise", ("lower", "")),
        ("all_including_self", ("", "upper")),
    ):
        for row in rows(found, tables.CEILINGS, ceiling=ceiling).iter_rows(named=True):
            r = made.regions.index(row["region"])
            assert tuple(row[name] for name in names) == called
            if ceiling == "pairwise":
                means = pair_means(made.brains[r, :, :, r])
                mean, error, n_values = float(means.mean), float(means.error), 30
            else:
                values = 0.5 + made.of_targets[:, r]
                mean, error, n_values = values.mean(), stats.sem(values), 6
            assert (row["n_subjects"], row["n_values"]) == (6, n_values)
            assert row["mean"] == pytest.approx(mean)
            assert (row["low"], row["high"]) == pytest.approx(stats.t.interval(0.95, 5, mean, error))


def test_drawn_pairs_have_so_many_sources_of_every_target_the_same_for_all_measures():
    made = Made(peculiar(3), 6)
    (row,) = rows(
        finished(made.tables(), pairs_per_target=2), tables.CEILINGS, ceiling="pairwise", region="r01"
    ).iter_rows(named=True)  # fmt: skip
    assert (row["n_values"], row["n_subjects"]) == (12, 6)
    own = made.brains[1, :, :, 1]
    means = [
        np.mean([own[list(sources), t] for t, sources in enumerate(chosen)])
        for chosen in itertools.product(*[list(itertools.combinations(sorted({*range(6)} - {t}), 2)) for t in range(2)])
    ]
    assert len(means) == 100  # of two targets alone; with all six there are a million choices
    every = finished(made.tables(), pairs_per_target=5)
    assert every["patterns/ceilings"].equals(finished(made.tables())["patterns/ceilings"])


def test_a_ceiling_that_cannot_be_made_says_why():
    made = Made(peculiar(3), 4).tables()
    name = tables.CEILING_VALUES.name
    made[name] = made[name].with_columns(value=pl.lit(None, pl.Float64), reason=pl.lit("units_not_comparable"))
    found = rows(finished(made), tables.CEILINGS).filter(pl.col("ceiling") != "pairwise")
    assert found["mean"].null_count() == found.height == 6
    assert set(found["reason"]) == {"units_not_comparable"}
    assert set(found["n_subjects"]) == {0}


# --- ranks ----------------------------------------------------------------------------------------


def test_ranks_fractions_and_equivalence_of_models():
    made = networks(Made(peculiar(3), 8), [0.0, 0.3, 0.28])
    found = finished(made.tables(), n_bootstrap=400)
    values = np.stack([made.models[f"m{i}"][0] for i in range(3)])  # [model, subject, region]
    for region in (*made.regions, "mean"):
        scored = values.mean(axis=2) if region == "mean" else values[:, :, made.regions.index(region)]
        own = rows(found, tables.RANKING, region=region)
        mean = scored.mean(axis=1)
        assert own["model"].to_list() == ["m0", "m1", "m2"]
        assert own["mean"].to_list() == pytest.approx(mean.tolist())
        assert own["median"].to_list() == pytest.approx(np.median(scored, axis=1).tolist())
        assert own["rank"].to_list() == (stats.rankdata(-mean)).tolist()
        assert set(own["best"]) == {f"m{mean.argmax()}"}
        rng = keyed_rng(3, "patterns best", "brains", "linear_r2", region)
        drawn = rng.multinomial(8, np.full(8, 1 / 8), 400)
        lowest = np.quantile(drawn @ scored[mean.argmax()] / 8, 0.025)
        assert own["equivalent_in_paper"].to_list() == (mean >= lowest).tolist()
        p = best_p_values(scored)
        assert own["best_p"].to_list() == p.tolist()
        assert own["equivalent"].to_list() == (p > 0.05).tolist()
        # Subjects vary more than models: the paper's criterion keeps a model that paired differences exclude.
        assert own["equivalent_in_paper"].all()
        assert own["equivalent"].to_list()[0] is False
        pairwise = rows(found, tables.CEILINGS, ceiling="pairwise")["mean"].to_numpy()
        ceiling = pairwise.mean() if region == "mean" else pairwise[made.regions.index(region)]
        assert own["fraction_of_pairwise"].to_list() == pytest.approx((mean / ceiling).tolist())


def test_pairs_of_models_that_are_told_apart():
    made = networks(Made(peculiar(3), 8), [0.0, 0.05, 0.1, 0.3, 0.32])
    found = finished(made.tables())
    for r, region in enumerate(made.regions):
        (row,) = rows(found, tables.CLASSES, region=region).iter_rows(named=True)
        scored = [made.models[f"m{i}"][0][:, r] for i in range(5)]
        p = [stats.ttest_rel(a, b).pvalue for a, b in itertools.combinations(scored, 2)]
        assert (row["n_models"], row["n_pairs"]) == (5, 10)
        assert row["n_pairs_apart"] == (stats.false_discovery_control(p) <= 0.05).sum()
        assert 0 < row["n_pairs_apart"] < 10
        own = rows(found, tables.RANKING, region=region)
        assert row["n_equivalent"] == own["equivalent"].sum()
        assert row["n_equivalent_in_paper"] == own["equivalent_in_paper"].sum()


def test_a_model_without_a_score_in_some_subject_is_not_ranked_and_a_target_without_scores_is_left_out():
    made = networks(Made(peculiar(3), 6), [0.0, 0.5, 1.0])
    made.models["m2"][0][1, 0] = np.nan
    for name in made.models:
        made.models[name][0][3, 1] = np.nan
    found = finished(made.tables())
    first = rows(found, tables.RANKING, region="r00")
    assert first["rank"].to_list() == [2, 1, None]
    assert first["reason"].to_list() == ["ok", "ok", "undefined_score"]
    assert first["n_subjects"].to_list() == [6, 6, 5]
    assert first["mean"].null_count() == 0
    assert set(first["best"]) == {"m1"}
    second = rows(found, tables.RANKING, region="r01")
    assert second["rank"].to_list() == [3, 2, 1]
    assert second["n_subjects"].to_list() == [5, 5, 5]
    assert rows(found, tables.CLASSES)["n_models"].to_list() == [2, 2, 3, 3]  # mean, r00, r01, r02


# --- patterns -------------------------------------------------------------------------------------


def test_mean_patterns_of_brains_and_models():
    made = Made(peculiar(4), 5).add_brain("twin")
    found = finished(made.tables())
    for row in rows(found, tables.PATTERNS).iter_rows(named=True):
        a, b = made.regions.index(row["source_region"]), made.regions.index(row["region"])
        if row["kind"] == "brain":
            expected = np.nanmean(made.brains[a, :, :, b])
            assert (row["source"], row["layer"]) == ("brains", None)
        else:
            expected = made.models["twin"][a][:, b].mean()
            assert row["layer"] == a
        assert row["mean"] == pytest.approx(expected)
        assert row["low"] < row["mean"] < row["high"]


def test_confusion_and_diagnostics_follow_the_planted_patterns():
    own = finished(Made(peculiar(6), 6).tables())
    alike = finished(Made(shared(6), 6).tables(reliability=shared(6)[0].tolist()))
    for found, low, high in ((own, -1.0, 0.7), (alike, 0.9, 1.0)):
        off = rows(found, tables.CONFUSION).filter(pl.col("region") != pl.col("other"))
        assert low <= off["similarity"].mean() <= high
        diagonal = rows(found, tables.CONFUSION).filter(pl.col("region") == pl.col("other"))
        assert diagonal["similarity"].to_list() == pytest.approx([1.0] * 6)
        for row in rows(found, tables.DIAGNOSTICS).iter_rows(named=True):
            expected = off.filter(region=row["region"])["similarity"].mean()
            assert row["other_regions"] == pytest.approx(expected)
    assert set(rows(own, tables.DIAGNOSTICS)["predictability"]) == {"pairwise"}
    assert set(rows(alike, tables.DIAGNOSTICS)["predictability"]) == {"reliability"}
    assert all(map(follows_targets, rows(alike, tables.DIAGNOSTICS).iter_rows(named=True)))
    assert not any(map(follows_targets, rows(own, tables.DIAGNOSTICS).iter_rows(named=True)))
    assert not follows_targets({"other_regions": None, "targets": 0.9})


def test_patterns_that_are_alike_for_another_reason_do_not_follow_targets():
    found = finished(Made(shared(6), 6).tables(reliability=RNG(9).uniform(size=6).tolist()))
    assert not any(map(follows_targets, rows(found, tables.DIAGNOSTICS).iter_rows(named=True)))


# --- structure ------------------------------------------------------------------------------------


def connected(made: Made, more: int, like: np.ndarray | None = None) -> dict:
    """A symmetric matrix of the analysed and more regions; the former as ``like``, if given."""
    names = [*made.regions, *(f"x{i:02d}" for i in range(more))]
    rng = RNG(5)
    return {
        (a, b): float(like[i, j]) if like is not None and b in made.regions else float(rng.uniform())
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if j > i and (like is None or b not in made.regions or a in made.regions)
    }


def test_structure_is_found_where_patterns_follow_it_without_the_region_itself():
    pattern = peculiar(8, seed=2)
    pattern = (pattern + pattern.T) / 2
    made = Made(pattern, 6, sd=0.01)
    found = rows(finished(made.tables(weights=connected(made, 10, pattern))), tables.STRUCTURE)
    means = np.nanmean(made.brains, axis=(1, 2))
    for row in found.iter_rows(named=True):
        r = made.regions.index(row["region"])
        rest = np.delete(np.arange(8), r)
        expected = np.corrcoef(means[r, rest], pattern[r, rest])[0, 1]
        assert row["similarity"] == pytest.approx(expected)
        assert (row["n_regions"], row["n_drawn_from"], row["n_draws"]) == (7, 17, 200)
        assert row["p_higher"] == pytest.approx(1 / 201)
        assert row["significant"]
        assert row["outside_in_paper"]
    assert found["q_higher"].to_list() == pytest.approx(stats.false_discovery_control(found["p_higher"]).tolist())
    assert found["q_two_sided"].to_list() == pytest.approx([2 / 201] * 8)


def test_random_structure_is_seldom_significant_and_never_after_correction_alone():
    """P-values are uniform: the draws are exchangeable with a row of a random matrix."""
    p = []
    for seed in range(12):
        made = Made(peculiar(8, seed=seed), 4, seed=seed)
        weights = {pair: float(RNG([seed, i]).uniform()) for i, pair in enumerate(connected(made, 12))}  # fmt: skip
        found = rows(finished(made.tables(weights=weights)), tables.STRUCTURE)
        p += found["p_higher"].to_list()
        assert (found["q_higher"] >= found["p_higher"]).all()
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_connections_that_do_not_vary_leave_structure_undefined():
    made = Made(peculiar(4), 4)
    weights = dict.fromkeys(connected(made, 3), 0.0)
    found = rows(finished(made.tables(weights=weights)), tables.STRUCTURE)
    assert found["similarity"].null_count() == 4
    assert set(found["reason"]) == {"undefined_score"}
    assert not found["significant"].any()
    assert set(found["n_draws"]) == {0}


# --- the tables -----------------------------------------------------------------------------------


def test_the_order_of_rows_does_not_matter():
    made = networks(Made(peculiar(4), 5), [0.0, 0.1]).add_brain("twin")
    weights = connected(made, 4)
    first = made.tables(weights=weights)
    mixed = {n: own.sample(fraction=1.0, shuffle=True, seed=2) for n, own in first.items()}
    once, again = finished(first), finished(mixed)
    for table in DERIVED:
        assert once[table.name].equals(again[table.name]), table.name
        assert once[table.name].height


def test_several_datasets_and_measures_do_not_mix():
    parts = [
        networks(Made(peculiar(3 + i), 4 + i, seed=i, dataset=d, measure=m), [0.0, 1.0]).tables()
        for i, (d, m) in enumerate((("a", "linear_r2"), ("b", "linear_r2"), ("b", "rsa")))
        if (d, m) != ("b", "rsa")
    ]
    both = {name: pl.concat([part[name] for part in parts]) for name in parts[0]}
    together, alone = finished(both), [finished(part) for part in parts]
    for table in DERIVED:
        expected = pl.concat([own[table.name] for own in alone])
        assert together[table.name].equals(expected), table.name


def test_tables_without_rows_give_tables_without_rows():
    found = finished({table.name: empty(table) for table in tables.TABLES})
    assert all(found[table.name].height == 0 for table in DERIVED)


@pytest.mark.parametrize("left", [tables.BRAIN_PAIRS, tables.LAYERS])
def test_one_kind_of_task_alone_gives_what_it_can(left):
    made = networks(Made(peculiar(3), 4), [0.0, 1.0]).tables()
    other = tables.LAYERS if left is tables.BRAIN_PAIRS else tables.BRAIN_PAIRS
    found = finished(made | {other.name: empty(other)})
    if left is tables.LAYERS:
        assert set(found["patterns/claims"]["label"]) == {"not_computed"}
        assert found["patterns/ranking"]["rank"].null_count() == 0
    else:
        assert found["patterns/claims"].height == 0
        assert rows(found, tables.SIMILARITIES)["similarity"].null_count() == 0
