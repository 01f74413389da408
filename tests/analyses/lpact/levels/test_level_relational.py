from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, spearmanr

from lpact.analyses.lpact.levels import relational
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.readouts import fit_layer, fit_nuisance
from lpact.analyses.lpact.levels.relational import BrainPatterns
from lpact.codes import Reason
from lpact.measures import MEASURES


@pytest.fixture(scope="module")
def bench(make_bench):
    return make_bench(options={"truths": ["lexical", "relational"]})


@pytest.fixture(scope="module")
def brain_tables(bench):
    return relational.measure_brain_patterns(config=bench.config, prepared=bench.prepared)


def readout_of(bench):
    return fit_layer(bench.layer(), fit_nuisance(bench.config, bench.prepared)).pearson


@pytest.fixture(scope="module")
def readout(bench):
    return readout_of(bench)


def patterns_of(bench, brain_tables):
    table = brain_tables["relational/brain_alignment_patterns"]
    brain = BrainPatterns.read(table)
    assert brain.order_hash == bench.prepared.grid.units.order_hash()
    return brain


@pytest.fixture(scope="module")
def tables(bench, brain_tables, readout):
    return relational.measure_relational(bench.layer(), patterns_of(bench, brain_tables), readout)


def _can_be_an_alignment(measure):
    """Fitted and behavioural measures are refused by L-PACT."""
    return not measure.behavioural and (measure.from_readout or not measure.needs_fit)


def test_same_measure_for_units_and_models(bench):
    """Row i of the brain matrix is the measure applied to unit i as if it were a model."""
    responses = relational.LaggedResponses.of(bench.prepared)
    own = [name for name in MEASURES.names() if _can_be_an_alignment(MEASURES.get(name))]
    assert {"linear", "rsa", "mutual_knn"} <= set(own)
    every = {"alignments": own}
    config = bench.config.model_copy(update={"relational": bench.config.relational.model_copy(update=every)})
    for name, measure in relational.build_measures(config, bench.prepared).items():
        matrix = responses.patterns(measure)
        for unit in (0, 4):
            column = responses.reference[:, [unit]]
            row = (
                measure.cross_validate(column, responses.lagged, responses.split).value
                if measure.from_readout
                else measure.to_units(column, responses.reference)
            )
            others = np.arange(len(row)) != unit
            np.testing.assert_allclose(matrix[unit, others], row[others], atol=1e-10, err_msg=name)
            assert np.isnan(matrix[unit, unit])


def test_deltas_follow_their_definition(bench, brain_tables, tables):
    patterns = patterns_of(bench, brain_tables)
    model = tables["relational/model_alignment_patterns"]
    deltas = tables["relational/profile_similarity_deltas"]
    counted = set(bench.config.controls.include) - {"untrained_model_fresh", "static_embedding"}
    similarity = {"pearson": pearsonr, "spearman": spearmanr}
    unit_ids = bench.prepared.grid.units.ids
    for alignment in bench.config.relational.alignments:
        rows = model.filter(alignment=alignment)
        for profile, function in similarity.items():
            for i in (0, 7):
                keep = np.arange(len(unit_ids)) != i
                by_condition: dict[str, list[float]] = {}
                for row in rows.iter_rows(named=True):
                    pattern = np.array(row["pattern"], dtype=float)[keep]
                    value = function(patterns.matrices[alignment][i, keep], pattern).statistic
                    by_condition.setdefault(row["condition"], []).append(value)
                mean = {name: np.mean(values) for name, values in by_condition.items()}
                best = max(counted, key=lambda name: mean[name])
                got = deltas.filter(unit=unit_ids[i], alignment=alignment, profile=profile)
                assert got["real_similarity"][0] == pytest.approx(mean["real"], abs=1e-10)
                assert got["best_control"][0] == best
                assert got["delta_rel"][0] == pytest.approx(mean["real"] - mean[best], abs=1e-10)


def test_split_half_reliability_is_that_of_the_two_halves(brain_tables):
    halves = brain_tables["relational/brain_half_patterns"]
    patterns = brain_tables["relational/brain_alignment_patterns"]
    row = patterns.filter(alignment="cka").row(2, named=True)
    first, second = (
        halves.filter(alignment="cka", half=half, unit=row["unit"])["pattern"][0].drop_nulls() for half in (0, 1)
    )
    expected = pearsonr(first.to_numpy(), second.to_numpy()).statistic
    assert row["split_half_reliability"] == pytest.approx(expected, abs=1e-10)
    assert row["pattern"][row["unit_index"]] is None


def test_halves_are_patterns_of_disjoint_blocks_of_events(bench, brain_tables):
    """The two halves, recomputed from the events they should be made of."""
    n_blocks = bench.config.relational.half_blocks
    blocks = np.array_split(np.arange(bench.prepared.n_events), n_blocks)
    halves = brain_tables["relational/brain_half_patterns"].filter(alignment="cka")
    for half in (0, 1):
        events = np.concatenate(blocks[half::2])
        expected = np.corrcoef(bench.prepared.reference[events].T) ** 2
        for row in halves.filter(half=half).iter_rows(named=True):
            unit = bench.prepared.grid.units.ids.index(row["unit"])
            got = np.array(row["pattern"], dtype=float)
            others = np.arange(len(got)) != unit
            np.testing.assert_allclose(got[others], expected[unit, others], atol=1e-10)


def test_linear_patterns_are_the_scores_of_level_one(tables, readout):
    rows = tables["relational/model_alignment_patterns"].filter(alignment="linear")
    for row in rows.iter_rows(named=True):
        np.testing.assert_array_equal(row["pattern"], readout[row["condition"], row["draw"]])


def test_planted_pattern_is_found(tables):
    deltas = tables["relational/profile_similarity_deltas"].filter(profile="pearson")
    assert deltas["delta_rel"].mean() > 0
    assert deltas["real_similarity"].mean() > 0.4


def test_too_few_units_is_a_reason_not_a_failure(make_bench):
    bench = make_bench(options={"n_units": 6, "n_mechanism_units": 2})
    brain = relational.measure_brain_patterns(config=bench.config, prepared=bench.prepared)
    tables = relational.measure_relational(bench.layer(), patterns_of(bench, brain), readout_of(bench))
    assert set(tables["relational/profile_similarity_deltas"]["reason"]) == {Reason.TOO_FEW_UNITS}


def test_no_partner_pattern_is_a_reason(bench, readout):
    tables = relational.measure_relational(bench.layer(), Reason.NO_PARTNER_PATTERN, readout)
    deltas = tables["relational/profile_similarity_deltas"]
    assert set(deltas["reason"]) == {Reason.NO_PARTNER_PATTERN}
    assert deltas["delta_rel"].is_null().all()
    # The patterns themselves do not need a partner.
    assert (
        tables["relational/model_alignment_patterns"]["pattern"].list.eval(pl.element().is_null()).list.any().sum() == 0
    )


def test_pairwise_similarity_compares_unit_by_unit():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 6, 6))
    got = PROFILES.build("pearson").compare_pairs(a, b)
    keep = [j for j in range(6) if j != 3]
    assert got[3] == pytest.approx(pearsonr(a[3, keep], b[3, keep]).statistic)
