"""Level 2 between regions as populations: oracles, and planted studies in which means and populations disagree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, zscore

import lpact
from lpact.analyses.lpact.config import RelationalConfig
from lpact.analyses.lpact.levels import relational
from lpact.analyses.lpact.levels.populations import Populations
from lpact.analyses.lpact.levels.relational import BrainPatterns, LaggedResponses
from lpact.analyses.lpact.plan.audit import RecordingSummary, mode_rows
from lpact.analyses.lpact.plan.stages import BRAINS, LEVELS
from lpact.codes import Reason
from lpact.errors import ConfigError, InputError, LPactError
from lpact.measures import CKA, RSA, DebiasedCKA, LinearPredictivity, Pearson
from lpact.run.conductor import measure_in_memory
from lpact.splits import contiguous

REGIONS = {"lags_ms": [0.0, 100.0], "units": "regions"}
POPULATION = {"region_as": "population", "profiles": ["pearson"]}


@pytest.fixture(scope="module")
def bench(make_bench):
    options = {"n_units": 40, "n_regions": 8, "truths": ["lexical", "relational"]}
    return make_bench(grid=REGIONS, options=options, relational=POPULATION)


def measured(bench):
    brain = relational.measure_brain_patterns(config=bench.config, prepared=bench.prepared)
    patterns = BrainPatterns.read(brain["relational/brain_alignment_patterns"])
    return brain, relational.measure_relational(bench.layer(), patterns, {})


@pytest.fixture(scope="module")
def tables(bench):
    return measured(bench)


# -- numbers -----------------------------------------------------------------------------------------------------------


def plain_rsa(x, y):
    return pearsonr(pdist(zscore(x), "correlation"), pdist(zscore(y), "correlation")).statistic


def plain_debiased_cka(x, y):
    """Song et al. (2007), with kernels whose diagonal is zero."""

    def hsic(k, g):
        n, ones = len(k), np.ones(len(k))
        rest = ones @ k @ ones * (ones @ g @ ones) / ((n - 1) * (n - 2))
        return (np.trace(k @ g) + rest - 2 * ones @ k @ g @ ones / (n - 2)) / (n * (n - 3))

    k, g = (zscore(a) @ zscore(a).T for a in (x, y))
    np.fill_diagonal(k, 0.0)
    np.fill_diagonal(g, 0.0)
    return hsic(k, g) / np.sqrt(hsic(k, k) * hsic(g, g))


def plain_linear(x, lagged, split):
    measure = LinearPredictivity()
    return np.mean([measure.cross_validate(x, lagged[..., [i]], split).value for i in range(lagged.shape[2])])


@pytest.fixture(scope="module")
def responses():
    """Responses [2 lags, 60 events, 12 units] of regions with 5, 4 and 3 units; scales differ."""
    rng = np.random.default_rng(1)
    shared = rng.standard_normal((60, 2))
    lagged = shared @ rng.standard_normal((2, 12)) + rng.standard_normal((2, 60, 12))
    members = tuple(np.array(own) for own in ([0, 3, 5, 7, 9], [1, 2, 4, 11], [6, 8, 10]))
    split = contiguous(60, 3, gap=1)
    return LaggedResponses(lagged * rng.uniform(0.1, 9, 12), 1, split, Populations(members))


def test_patterns_of_populations_are_those_of_plain_loops(responses):
    members, values = responses.populations.members, responses.reference
    plain = {
        RSA(): plain_rsa,
        DebiasedCKA(): plain_debiased_cka,
        LinearPredictivity(): lambda x, columns: plain_linear(x, responses.lagged[..., columns], responses.split),
        Pearson(): lambda x, columns: np.mean([
            abs(pearsonr(leading(zscore(x)), values[:, i]).statistic) for i in columns
        ]),
    }  # fmt: skip
    for measure, value in plain.items():
        matrix = responses.patterns(measure)
        assert np.isnan(np.diag(matrix)).all()
        features = responses.populations.to_regions(measure, values)
        for i, j in ((0, 1), (1, 0), (1, 2), (2, 0)):
            x = values[:, members[i]]
            y = values[:, members[j]] if measure.scope == "population" else members[j]
            assert matrix[i, j] == pytest.approx(value(x, y), abs=1e-9), measure.name
            if not measure.needs_fit:
                assert features(x)[j] == pytest.approx(value(x, y), abs=1e-9)


def leading(z):
    u, s, _ = np.linalg.svd(z, full_matrices=False)
    return u[:, 0] * s[0]


def test_only_debiased_alignment_ignores_how_many_units_a_region_has():
    """Unrelated regions of 4 and of 40 units: the chance value of plain CKA depends on their size."""
    rng = np.random.default_rng(2)
    members = tuple(np.arange(a, b) for a, b in ((0, 4), (4, 8), (8, 48), (48, 88)))
    found: dict[str, list[Any]] = {"cka": [], "cka_debiased": [], "rsa": []}
    for _ in range(20):
        own = LaggedResponses(rng.standard_normal((1, 50, 88)), 0, contiguous(50, 3), Populations(members))
        for measure in (CKA(), DebiasedCKA(), RSA()):
            matrix = own.patterns(measure)
            found[measure.name].append((matrix[0, 1], matrix[2, 3]))
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    assert means["cka"][1] > means["cka"][0] + 0.3
    for name in ("cka_debiased", "rsa"):
        np.testing.assert_allclose(means[name], 0.0, atol=0.05)


def test_regions_of_one_unit_have_the_patterns_of_units(make_bench):
    """With `min_region_units = 1`, level 2 has the numbers that it has between the units themselves."""
    options = {"n_units": 8, "n_regions": 8, "truths": ["lexical", "relational"]}
    alone = make_bench(grid=REGIONS, options=options, relational=POPULATION | {"min_region_units": 1})
    units = make_bench(
        grid={"lags_ms": REGIONS["lags_ms"]},
        options=options,
        relational={"alignments": ["linear", "rsa", "cka_debiased"], "profiles": ["pearson"]},
    )
    own, plain = (
        relational.measure_brain_patterns(config=b.config, prepared=b.prepared)["relational/brain_alignment_patterns"]
        for b in (alone, units)
    )
    for name in ("linear", "rsa", "cka_debiased"):
        a, b = (BrainPatterns.read(t).matrices[name] for t in (own, plain))  # regions are in the order of the units
        np.testing.assert_allclose(a, b, atol=1e-9, err_msg=name)


def test_model_patterns_are_those_of_regions(bench, tables):
    """Geometry by plain loops; linear is the mean of the readout's scores over the units of a region."""
    rows = tables[1]["relational/model_alignment_patterns"].filter(condition="real")
    units, features = bench.prepared.of_units, bench.layer().features
    groups = Populations.of(bench.config.relational, bench.prepared).members
    assert [len(own) for own in groups] == [5] * 8
    plain = {"rsa": plain_rsa, "cka_debiased": plain_debiased_cka}
    for name, value in plain.items():
        got = rows.filter(alignment=name)["pattern"][0].to_list()
        expected = [value(features, units.reference[:, own]) for own in groups]
        np.testing.assert_allclose(got, expected, atol=1e-8, err_msg=name)
    alone = relational.fit_layer(replace(bench.layer(), prepared=units), relational.fit_nuisance(bench.config, units))
    expected = [alone.pearson["real", 0][own].mean() for own in groups]
    got = rows.filter(alignment="linear")["pattern"][0].to_list()
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_units_of_regions_are_those_of_their_means(bench):
    units, means = bench.prepared.of_units.grid, bench.prepared.grid
    for i, region in enumerate(means.units.ids):
        own = [u for u, name in enumerate(units.units.regions) if name == region]
        np.testing.assert_array_equal(units.responses[..., own].mean(axis=-1), means.responses[..., i])


def test_every_control_and_null_goes_through_populations(bench, tables):
    _, made = tables
    patterns = made["relational/model_alignment_patterns"]
    scores = made["relational/profile_similarity_scores"]
    assert set(scores["condition"]) == {"real", "nuisance", *patterns["condition"]}
    assert {"random_matched_dim", "circular_shift"} <= set(patterns["condition"])
    assert patterns["pattern"].list.len().unique().to_list() == [8]
    assert set(made["relational/relational_null_draws"]["test"]) == {
        "surrogate", "unit_order", "swap",
    }  # fmt: skip
    assert set(made["relational/profile_similarity_deltas"]["reason"]) == {"ok"}


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_a_region_with_too_few_units_is_a_row_with_the_reason(make_bench):
    """27 units in 9 regions, of which one loses a unit."""
    bench = make_bench(
        grid=REGIONS,
        options={"n_units": 27, "n_regions": 9},
        relational=POPULATION | {"alignments": ["rsa", "linear"]},
    )
    read = bench.prepared.read_units
    first = read().units
    kept = list(range(1, len(first.ids)))

    def without_one():
        grid = read()
        return replace(grid, responses=grid.responses[..., kept], units=grid.units.take(kept))

    sizes = (2, *[3] * 8)
    bench.prepared = replace(bench.prepared, read_units=without_one, region_sizes=sizes)
    brain, made = measured(bench)
    lacking = pl.col("unit") == first.regions[0]
    for table in (
        brain["relational/brain_alignment_patterns"],
        made["relational/profile_similarity_deltas"],
    ):
        assert set(table.filter(lacking)["reason"]) == {"too_few_units"}
        assert set(table.filter(~lacking)["reason"]) == {"ok"}
    assert made["relational/profile_similarity_deltas"].filter(lacking)["delta_rel"].is_null().all()
    for row in brain["relational/brain_alignment_patterns"].filter(~lacking).iter_rows(named=True):
        assert row["pattern"][0] is None
        assert sum(value is not None for value in row["pattern"]) == 7
    summary = RecordingSummary.of(bench.prepared)
    nine = RelationalConfig(region_as="population", min_units=9)
    assert [
        summary.n_compared(bench.config.relational),
        summary.n_compared(RelationalConfig()),
    ] == [8, 9]
    assert {row["reason"] for row in mode_rows("sim", [summary], nine)} >= {Reason.TOO_FEW_UNITS}
    bench.config = bench.config.model_copy(update={"relational": nine})
    brain, made = measured(bench)
    assert set(made["relational/profile_similarity_deltas"]["reason"]) == {"too_few_units"}
    assert set(brain["relational/brain_alignment_patterns"]["reason"]) == {"too_few_units"}


@pytest.mark.parametrize("min_units", [8, 9])
def test_too_few_regions_with_enough_units_are_too_little_coverage(min_units):
    """26 units in nine regions: one has two."""
    study = lpact.load_study({
        "name": "study",
        "datasets": [{
            "name": "sim",
            "reader": "simulated",
            "grid": {"lags_ms": [0.0], "units": "regions"},
            "options": {"n_subjects": 3, "n_runs": 1, "n_units": 26, "n_regions": 9},
        }],
        "models": [{"name": "integrated", "layers": [2]}],
        "readout": {"folds": 3, "alphas": [10.0]},
        "controls": {"include": ["circular_shift"], "draws": 1},
        "mechanisms": {"include": ["surprisal"]},
        "lpact": {
            "relational": {"region_as": "population", "alignments": ["rsa"], "profiles": ["pearson"],
                           "min_units": min_units},
            "audit": {"required_controls": ["circular_shift"]},
            "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
            "assay": {"enabled": False},
        },
    })  # fmt: skip
    tables = measure_in_memory(study.config, "lpact")
    deltas = tables["relational/profile_similarity_deltas"]
    ceilings = tables["ceilings/brain_brain_ceiling"].filter(kind="profile")
    of_subjects = ceilings.filter(mode="subject_to_subject")
    if min_units == 9:
        assert set(deltas["reason"]) == {"too_few_units"}
        assert set(of_subjects["reason"]) == {"too_few_units"}
        assert not ceilings["valid"].any()
    else:
        assert deltas.group_by("reason").len().sort("reason").rows() == [
            ("ok", 24),
            ("too_few_units", 3),
        ]
        assert of_subjects["valid"].all()
    (row,) = tables["audits/lpact_evidence_feasibility"].iter_rows(named=True)
    assert row["n_relational_runs"] == (3 if min_units == 8 else 0)
    assert row["has_reliability"] == (min_units == 8)


def test_options_that_need_repetitions_are_refused(responses):
    for measure in (
        RSA(dissimilarity="crossnobis"),
        RSA(dissimilarity="euclidean", noise="diagonal"),
    ):
        with pytest.raises(InputError, match="needs repetitions"):
            responses.patterns(measure)


@pytest.mark.parametrize(
    ("units", "alignments", "message"),
    [
        ("units", ["rsa"], "no dataset has regions"),
        ("regions", ["cka"], "use 'cka_debiased'"),
        ("regions", ["mutual_knn", "event_response", "cka_rbf_debiased"], ""),
    ],
)
def test_studies_that_populations_cannot_answer_are_refused(units, alignments, message):
    values = {
        "name": "study",
        "datasets": [{"name": "sim", "reader": "simulated", "grid": {"units": units}}],
        "models": [{"name": "integrated", "layers": [1]}],
        "lpact": {"relational": {"region_as": "population", "alignments": alignments}},
    }
    if not message:
        assert lpact.load_study(values)
        return
    with pytest.raises(ConfigError, match=message):
        lpact.load_study(values)
    relational = RelationalConfig(region_as="population")
    assert relational.alignments == ("linear", "rsa", "cka_debiased")
    assert RelationalConfig().alignments == ("linear", "rsa", "cka")


# -- planted studies ---------------------------------------------------------------------------------------------------

N_EVENTS, N_REGIONS, N_UNITS = 240, 8, 12
GAINS = np.linspace(0.3, 2.0, N_REGIONS)


def zero_mean_weights(rng, n_latents):
    weights = rng.standard_normal((n_latents, N_UNITS))
    return weights - weights.mean(axis=1, keepdims=True)


def planted(kind):
    """Features, and responses of two subjects, [events × 1 × units].

    ``subspace``: regions share the model's three latents, in units whose mean does not have them; region r with gain
    g_r. ``mean``: the mean of every region is a latent of the model plus noise, a small part of units that otherwise
    have six latents of the region's own.
    """
    rng = np.random.default_rng(7)
    latents = rng.standard_normal((N_EVENTS, 3))
    subjects = []
    for subject in ("a", "b"):
        parts = []
        for gain in GAINS:
            noise = rng.standard_normal((N_EVENTS, N_UNITS))
            if kind == "subspace":
                parts.append(gain * latents @ zero_mean_weights(rng, 3) + noise)
            else:
                own = 6.0 * rng.standard_normal((N_EVENTS, 6)) @ zero_mean_weights(rng, 6)
                drive = 0.4 * gain * latents[:, :1] + 0.2 * rng.standard_normal((N_EVENTS, 1))
                parts.append(own + drive + noise - noise.mean(axis=1, keepdims=True))
        regions = [f"r{i}" for i in range(N_REGIONS) for _ in range(N_UNITS)]
        values = np.concatenate(parts, axis=1)[:, None]
        names = ([f"s{i:03d}" for i in range(N_EVENTS)], [f"u{i}" for i in range(len(regions))])
        subjects.append(lpact.Responses(values, *names, regions=regions, subject=subject))
    return latents if kind == "subspace" else latents[:, :1], subjects


def study_of(kind, region_as, **more):
    features, responses = planted(kind)
    return lpact.audit(
        features=features,
        responses=responses,
        grid={"units": "regions"},
        readout={"folds": 3, "alphas": [1.0, 100.0]},
        controls={"include": ["random_matched_dim", "circular_shift"], "draws": 5},
        lpact={
            "relational": {
                "region_as": region_as,
                "alignments": ["linear", "rsa", "cka_debiased"],
                "profiles": ["pearson"],
                "permutations": 19,
            },
            "audit": {"required_controls": ["random_matched_dim", "circular_shift"]},
            "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
            "gates": {"min_subject_runs": 2},
            "assay": {"enabled": False},
        },
        **more,
    )


@pytest.mark.parametrize("kind", ["subspace", "mean"])
def test_populations_see_what_means_miss_and_the_other_way_round(kind):
    runs = {region_as: study_of(kind, region_as) for region_as in ("mean", "population")}
    summaries = {name: run.table("relational_subject_run_summary") for name, run in runs.items()}
    reliability = runs["population"].table("brain_brain_ceiling").filter(kind="profile", mode="subject_to_subject")
    assert reliability["valid"].all()
    assert (reliability["reliability"] > 0.8).all() == (kind == "subspace")
    seen, missed = ("population", "mean") if kind == "subspace" else ("mean", "population")
    for alignment in ("linear", "rsa", "cka_debiased"):
        delta, similarity = (
            {name: table.filter(alignment=alignment)[column].mean() for name, table in summaries.items()}
            for column in ("mean_delta_rel", "mean_real_similarity")
        )
        assert similarity[seen] > 0.8, alignment
        assert delta[seen] > 0.3
        assert similarity[missed] < 0.5
        assert delta[missed] < 0.2
    gates = {name: set(run.claims()["relational"]) for name, run in runs.items()}
    assert gates == {seen: {True}, missed: {False}}


def test_a_run_with_populations_is_resumed_locked_and_verified(tmp_path, monkeypatch):
    """A study that failed in its last context reuses brain patterns of populations; one of means does not."""
    values: dict[str, Any] = {
        "name": "study",
        "datasets": [
            {
                "name": "sim",
                "reader": "simulated",
                "grid": {"lags_ms": [0.0], "units": "regions"},
                "options": {"n_subjects": 2, "n_runs": 1, "n_units": 24, "n_regions": 8},
            }
        ],
        "models": [{"name": "integrated", "layers": [2]}],
        "readout": {"folds": 3, "alphas": [10.0]},
        "controls": {"include": ["circular_shift"], "draws": 1},
        "mechanisms": {"include": ["surprisal"]},
    }
    own = {
        "audit": {"required_controls": ["circular_shift"]},
        "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
        "assay": {"enabled": False},
    }
    studies = {
        name: lpact.load_study(
            values | {"lpact": own | {"relational": {"region_as": name, "alignments": ["rsa", "linear"]}}}
        )
        for name in ("mean", "population")
    }
    calls: list[str] = []
    brain, model = relational.measure_brain_patterns, relational.measure_relational

    def counted(**given):
        calls.append("brain")
        return brain(**given)

    def failing(layer, *given):
        if layer.prepared.id.subject == "02":
            raise OSError("the disk is gone")
        return model(layer, *given)

    monkeypatch.setattr(relational, "measure_brain_patterns", counted)
    monkeypatch.setattr(relational, "measure_relational", failing)
    out = tmp_path / "run"
    with pytest.raises(LPactError, match="the disk is gone"):
        studies["population"].run(out, progress=False)
    assert calls == ["brain"] * 2
    monkeypatch.setattr(relational, "measure_relational", model)
    run = studies["population"].run(out, progress=False)
    assert calls == ["brain"] * 2
    run.lock()
    assert run.verify().ok
    other = studies["mean"].run(tmp_path / "mean", progress=False)
    assert calls == ["brain"] * 4
    name = "profile_similarity_deltas"
    key = ["subject", "unit", "alignment", "profile"]
    both = run.table(name).join(other.table(name), on=key)
    assert both.height == run.table(name).height == other.table(name).height
    assert (both["real_similarity"] != both["real_similarity_right"]).any()
    plans = {name: study.plan() for name, study in studies.items()}
    for table, n_rows in plans["population"].rows.items():
        found = run.n_rows(table)
        assert found <= n_rows if table in plans["population"].at_most else found == n_rows, table
    for stage in (BRAINS, LEVELS):
        cost = {name: next(s for s in plan.stages if s.stage == stage) for name, plan in plans.items()}
        assert cost["population"].seconds > cost["mean"].seconds
        assert cost["population"].peak_bytes > cost["mean"].peak_bytes
