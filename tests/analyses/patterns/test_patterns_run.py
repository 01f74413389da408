"""Alignment patterns through the engine: numbers against plain loops, any number of workers, arrays, missing data."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

import lpact
from lpact.analyses.patterns.explain import methods_parts
from lpact.analyses.patterns.jobs import with_noise
from lpact.ceilings import split_half, trial_noise
from lpact.errors import LPactError
from lpact.math.seeding import keyed_rng
from lpact.responses import Responses

N_TRAIN, N_TEST = 48, 24
REGIONS = ("v1", "v4", "mt", "pit")
ALPHAS = tuple(10.0**i for i in range(-9, 10))
FAST: dict[str, Any] = {"n_bootstrap": 200, "structure_draws": 50}


def population(z: np.ndarray, region: int, units: int, rng: np.random.Generator) -> np.ndarray:
    """Units that carry the latent variables near a place."""
    gains = np.exp(-((np.arange(z.shape[1]) - 2 * region) ** 2) / 4.0)[:, None]
    return z @ (gains * rng.standard_normal((z.shape[1], units)))


def data(
    n_subjects: int = 4, units: int = 6, seed: int = 0
) -> tuple[dict[str, np.ndarray], dict[str, Any], list[str], np.ndarray]:
    """Subjects [stimuli, 3 trials, units], models, the region of every unit, and which stimuli are test stimuli."""
    rng = np.random.default_rng(seed)
    n = N_TRAIN + N_TEST
    z = rng.standard_normal((n, 8))
    brain = lambda: np.concatenate([population(z, r, units, rng) for r in range(4)], axis=1)  # noqa: E731
    subjects = {f"s{i}": brain()[:, None] + rng.standard_normal((n, 3, 4 * units)) for i in range(n_subjects)}
    layers = {r: population(z, r, 10, rng) for r in range(4)}
    models = {
        "brain": layers,
        "blend": z @ rng.standard_normal((8, 12)),
        "noise": np.random.default_rng([seed, 1]).standard_normal((n, 9)),
    }
    test = np.arange(n) % 3 == 2
    return subjects, models, [name for name in REGIONS for _ in range(units)], test


def run_of(subjects: Any, models: Any, regions: Any, test: Any, measure: Any = "rsa", **more: Any) -> lpact.Run:
    own = FAST | more.pop("patterns", {})
    return lpact.alignment_patterns(models, subjects, regions=regions, test=test, measure=measure, patterns=own, **more)


@pytest.fixture(scope="module")
def run() -> lpact.Run:
    return run_of(*data(), measure=("rsa", "linear_r2"), connectivity=connectivity())


def connectivity() -> pd.DataFrame:
    names = [*REGIONS, "a1", "m1", "s1"]
    weights = np.exp(-np.abs(np.subtract.outer(np.arange(7), np.arange(7))))
    return pd.DataFrame(weights, index=names, columns=names)


def standardised(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    return (x - x[train].mean(axis=0)) / x[train].std(axis=0)


def rsa(x: np.ndarray, y: np.ndarray) -> float:
    upper = np.triu_indices(len(x), 1)
    return float(np.corrcoef(1 - np.corrcoef(x)[upper], 1 - np.corrcoef(y)[upper])[0, 1])


# --- numbers, against plain loops -----------------------------------------------------------------


def test_scores_of_brains_are_those_of_numpy_and_scikit_learn(run: lpact.Run) -> None:
    subjects, _, regions, test = data()
    columns = {name: np.array(regions) == name for name in REGIONS}
    means = {who: standardised(own.mean(axis=1), ~test) for who, own in subjects.items()}
    found = run.table("patterns/brain_pairs")
    for p, r, t, q in (
        ("s0", "v1", "s1", "v1"),
        ("s2", "mt", "s3", "pit"),
        ("s3", "v4", "s0", "mt"),
    ):
        x, y = means[p][:, columns[r]], means[t][:, columns[q]]
        fit = RidgeCV(ALPHAS).fit(x[~test], y[~test])
        by_unit = r2_score(y[test], fit.predict(x[test]), multioutput="raw_values")
        at = found.filter(source=p, source_region=r, target=t, region=q)
        linear = at.filter(measure="linear_r2").row(0, named=True)
        assert linear["value"] == pytest.approx(by_unit.mean(), rel=1e-9)
        assert linear["clipped"] == pytest.approx(by_unit.clip(0).mean(), rel=1e-9)
        assert at.filter(measure="rsa")["value"][0] == pytest.approx(rsa(x[test], y[test]), rel=1e-10)


def test_the_layer_of_a_region_is_the_best_on_training_stimuli(run: lpact.Run) -> None:
    subjects, models, regions, test = data()
    train = np.flatnonzero(~test)
    chosen = dict(
        run.table("patterns/ranking").filter(model="brain", measure="rsa").select("region", "layer").iter_rows()
    )
    for region in REGIONS:
        own = np.array(regions) == region
        scores = {
            layer: np.mean([
                rsa(standardised(x, train)[train], standardised(y.mean(axis=1), train)[train][:, own])
                for y in subjects.values()
            ])
            for layer, x in models["brain"].items()
        }  # fmt: skip
        assert chosen[region] == max(scores, key=lambda layer: scores[layer])
        found = run.table("patterns/layers").filter(measure="rsa", model="brain", region=region)
        for (layer,), own in found.group_by(["layer"]):
            assert own["training"].mean() == pytest.approx(scores[layer], rel=1e-10)


def test_fitted_measures_choose_layers_by_cross_validation_within_training_stimuli() -> None:
    subjects, models, regions, test = data()
    folds = {"layer_folds": 3, "gap_events": 2}
    run = run_of(subjects, {"brain": models["brain"]}, regions, test, "linear_r2", patterns=folds)
    train = np.flatnonzero(~test)
    y = standardised(subjects["s1"].mean(axis=1), train)[train][:, np.array(regions) == "mt"]
    x = standardised(models["brain"][2], train)[train]
    expected = 0.0
    for part in np.array_split(np.arange(N_TRAIN), 3):
        apart = np.abs(np.arange(N_TRAIN)[:, None] - part).min(axis=1)
        fit = RidgeCV(ALPHAS).fit(x[apart > 2], y[apart > 2])
        score = r2_score(y[part], fit.predict(x[part]), multioutput="raw_values").mean()
        expected += score * len(part) / N_TRAIN
    found = run.table("patterns/layers").filter(layer=2, region="mt", target="s1")
    assert found["training"][0] == pytest.approx(expected, rel=1e-9)


def test_test_stimuli_never_reach_the_choice_of_layers_or_the_scaling() -> None:
    subjects, models, regions, test = data()
    measure = ("rsa", "linear_r2")
    first = run_of(subjects, models, regions, test, measure)
    rng = np.random.default_rng(9)
    for own in subjects.values():
        own[test] = 5.0 + 3.0 * rng.standard_normal(own[test].shape)
    second = run_of(subjects, models, regions, test, measure)
    tables = [own.table("patterns/layers") for own in (first, second)]
    assert tables[0]["training"].equals(tables[1]["training"])
    assert not tables[0]["value"].equals(tables[1]["value"])
    chosen = [own.table("patterns/ranking").filter(region="v1")["layer"] for own in (first, second)]
    assert sorted(map(str, chosen[0])) == sorted(map(str, chosen[1]))


def test_planted_verdicts(run: lpact.Run) -> None:
    labels = {
        (r, m): v for r, m, v in run.claims().filter(measure="rsa").select("region", "model", "label").iter_rows()
    }
    for region in REGIONS:
        assert labels[region, "brain"] in ("aligned", "pattern_only", "inconclusive")
        assert labels[region, "noise"] in ("excluded", "neither", "score_only")
    headline = run.conclusion().headline
    assert "'brain'" in headline
    assert "'noise'" not in headline


def test_everything_is_explained(run: lpact.Run) -> None:
    claim = run.claim("data/rsa/v1/brain")
    explained = claim.explain()
    assert [gate.letter for gate in explained.gates] == ["V", "R", "D", "N", "E", "B"]
    assert explained.label == claim.label
    values = [v for g in explained.gates for c in g.criteria for d in c.distributions for v in d.values]
    assert len(values) == 4 + 4 * 3 + 4
    assert np.isfinite(values).all()


def test_structure_is_correlated_without_the_region_itself(run: lpact.Run) -> None:
    found = run.table("patterns/structure").filter(measure="rsa", region="v4").row(0, named=True)
    mean = run.table("patterns/patterns").filter(measure="rsa", kind="brain", source_region="v4")
    functional = dict(mean.select("region", "mean").iter_rows())
    weights = connectivity().loc["v4"]
    others = [name for name in REGIONS if name != "v4"]
    expected = np.corrcoef([functional[o] for o in others], [weights[o] for o in others])[0, 1]
    assert found["similarity"] == pytest.approx(expected, rel=1e-9)
    assert (found["n_regions"], found["n_drawn_from"]) == (3, 6)
    assert found["p_higher"] >= 1 / 51


# --- ceilings -------------------------------------------------------------------------------------


def test_ceilings_average_units_where_they_correspond_and_rdms_elsewhere(run: lpact.Run) -> None:
    subjects, models, regions, test = data()
    own = np.array(regions) == "pit"
    means = {w: standardised(y.mean(axis=1), ~test)[test][:, own] for w, y in subjects.items()}
    apart = run.table("patterns/ceiling_values").filter(measure="rsa", region="pit", target="s2")
    upper = np.triu_indices(N_TEST, 1)
    rdm = {w: 1 - np.corrcoef(y)[upper] for w, y in means.items()}
    pooled = lambda who: np.mean([(rdm[w] - rdm[w].mean()) / rdm[w].std() for w in who], axis=0)  # noqa: E731
    for ceiling, who in (
        ("leave_one_out_mean", ("s0", "s1", "s3")),
        ("all_including_self", tuple(means)),
    ):
        row = apart.filter(ceiling=ceiling).row(0, named=True)
        assert row["made_of"] == "representations"
        assert row["value"] == pytest.approx(np.corrcoef(pooled(who), rdm["s2"])[0, 1], rel=1e-9)
    linear = run.table("patterns/ceiling_values").filter(measure="linear_r2")
    assert set(linear["reason"]) == {"units_not_comparable"}
    same = run_of(subjects, models, regions, test, comparable_units=True)
    row = same.table("patterns/ceiling_values").filter(
        region="pit", target="s2", ceiling="leave_one_out_mean"
    ).row(0, named=True)  # fmt: skip
    assert row["made_of"] == "units"
    average = np.mean([means[w] for w in ("s0", "s1", "s3")], axis=0)
    assert row["value"] == pytest.approx(rsa(average, means["s2"]), rel=1e-9)


# --- noise ----------------------------------------------------------------------------------------


def test_a_model_with_noise_is_as_reliable_as_a_typical_brain() -> None:
    rng = np.random.default_rng(2)
    n_train, n_test, n_trials = 400, 600, (2, 5)
    brains = [
        rng.standard_normal((n_test, 1, 60)) + spread * rng.standard_normal((n_test, n_trials[1], 60))
        for spread in (1.5, 2.0, 4.0)
    ]
    reliable = [float(np.median(split_half(own, 10).corrected)) for own in brains]
    assert reliable[1] == pytest.approx(5 / (5 + 2.0**2), abs=0.03)
    noise = trial_noise(reliable, n_trials[1])
    assert noise == pytest.approx(2.0, abs=0.1)
    features = rng.standard_normal((n_train + n_test, 80)) * np.repeat([[1.0], [1.3]], (n_train, n_test), axis=0)
    one, two = (with_noise(features, n_train, noise, n_trials, np.random.default_rng(i)) for i in (1, 2))
    np.testing.assert_allclose(one[:n_train].std(axis=0), 1.0)
    again = [np.corrcoef(a, b)[0, 1] for a, b in zip(one[n_train:].T, two[n_train:].T, strict=True)]
    assert np.mean(again) == pytest.approx(reliable[1], abs=0.02)
    again = [np.corrcoef(a, b)[0, 1] for a, b in zip(one[:n_train].T, two[:n_train].T, strict=True)]
    assert np.mean(again) == pytest.approx(2 / (2 + (1.3 * 2.0) ** 2), abs=0.03)  # fewer trials, and less signal


def test_scores_with_noise_are_those_of_numpy(run: lpact.Run) -> None:
    subjects, models, regions, test = data()
    found = run.table("patterns/model_trials").filter(measure="rsa", model="brain", source_region="mt")
    layer, noise = found.select("layer", "noise").row(0)
    targets = run.table("patterns/targets").filter(region="mt")
    assert noise == trial_noise(targets["median_reliability"], 3)
    own = np.array(regions) == "mt"
    trials = subjects["s1"][test][:, :, own]
    expected = np.median(split_half(trials, 10, seed=run.config.seed).corrected)
    assert targets.filter(target="s1")["median_reliability"][0] == pytest.approx(expected)
    order = np.argsort(test, kind="stable")
    source = standardised(models["brain"][layer][order], ~test[order])
    rng = keyed_rng(run.config.seed, "patterns model trials", "data", "brain", "mt")
    noisy = with_noise(source, N_TRAIN, noise, (3, 3), rng)[N_TRAIN:]
    y = standardised(subjects["s1"].mean(axis=1), ~test)[test][:, np.array(regions) == "pit"]
    assert found.filter(target="s1", region="pit")["value"][0] == pytest.approx(rsa(noisy, y), rel=1e-9)
    # Ranks are those of scores without noise, patterns those with it.
    at = {"measure": "rsa", "model": "brain", "region": "mt"}
    plain = run.table("patterns/layers").filter(layer=layer, **at)["value"]
    assert run.claims().filter(**at)["score"][0] == pytest.approx(plain.mean())
    shown = run.table("patterns/patterns").filter(measure="rsa", source="brain", source_region="mt", region="pit")
    assert shown["mean"][0] == pytest.approx(found.filter(region="pit")["value"].mean())


def test_one_more_brain_without_noise_is_rejected_unless_it_is_given_some(tmp_path: Path) -> None:
    """In 30 regions of six such studies, it was rejected in 28 without noise, and in 1 with it."""
    brains = {"n_subjects": 5, "n_regions": 5, "n_units": 25, "n_train": 120, "n_test": 60, "floor": 0.12}
    brains |= {"n_repetitions": 4, "n_train_repetitions": 4, "snr_first": 2.0, "snr_last": 0.3}
    dataset = SMALL["datasets"][0] | {"options": brains}
    models = [{"name": "one_more_brain", "layers": list(range(5))}]
    n_rejected = {"matched": 0, "none": 0}
    for seed in (1, 2):
        for trials in n_rejected:
            options = FAST | {"measures": ["linear_r2"], "model_trials": trials}
            own = {"datasets": [dataset], "models": models, "patterns": options, "seed": seed}
            found = lpact.load_study(SMALL | own).run(tmp_path / f"{seed}-{trials}").claims()
            assert found["noise"].is_null().all() == (trials == "none")
            n_rejected[trials] += int((~found["not_rejected"]).sum())
    assert n_rejected["matched"] <= 1
    assert n_rejected["none"] >= 7


# --- the engine -----------------------------------------------------------------------------------


SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 3,
    "datasets": [
        {
            "name": "brains",
            "reader": "simulated_regions",
            "options": {
                "n_subjects": 4,
                "n_regions": 4,
                "n_units": 8,
                "n_train": 60,
                "n_test": 20,
                "n_repetitions": 2,
            },
            "grid": {"lags_ms": [0.0]},
        }
    ],
    "models": [
        {"name": "one_more_brain", "layers": [0, 1, 2, 3]},
        {"name": "noise", "layers": [0]},
    ],
    "patterns": FAST | {"measures": ["rsa", "linear_r2"], "connectivity": "dataset"},
    "run": {"progress": False},
}


def study(**options: Any) -> lpact.Study:
    return lpact.load_study(SMALL | {"patterns": SMALL["patterns"] | options})


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> lpact.Run:
    return study().run(tmp_path_factory.mktemp("patterns") / "run")


def tables_of(run: lpact.Run) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(run.root.rglob("*.parquet"))}


@pytest.mark.slow
def test_two_workers_write_the_same_bytes(simulated: lpact.Run, tmp_path: Path) -> None:
    assert tables_of(study().run(tmp_path / "again", workers=2)) == tables_of(simulated)


def test_a_locked_run_is_decided_again(simulated: lpact.Run, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    shutil.copytree(simulated.root, folder)
    locked = lpact.open_run(folder)
    locked.lock()
    assert locked.verify().ok
    loose = simulated.decide(lpact.Patterns(**(SMALL["patterns"] | {"equivalence_bound": 0.9})))
    before, after = simulated.claims()["bound"], loose["patterns/claims"]["bound"]
    kept = before.is_not_null()
    assert kept.any()
    np.testing.assert_allclose(after.filter(kept), before.filter(kept) * 0.9 / 0.2)


# --- any data -------------------------------------------------------------------------------------


def test_missing_data_are_kept_out_and_counted() -> None:
    subjects, models, regions, test = data()
    subjects["s0"][3, 1] = np.nan  # one trial
    subjects["s1"][7] = np.nan  # a stimulus
    subjects["s2"][:, :, 0] = np.nan  # a unit of v1
    run = run_of(subjects, models, regions, test)
    about = {row["subject"]: row for row in run.table("patterns/subjects").iter_rows(named=True)}
    n_train, n_test = N_TRAIN - (not test[7]), N_TEST - bool(test[7])
    assert (about["s0"]["n_train"], about["s0"]["n_test"]) == (n_train, n_test)
    assert about["s0"]["n_own"] == 1
    assert about["s1"]["n_own"] == 0
    units = run.table("patterns/regions").filter(subject="s2", region="v1").row(0, named=True)
    assert (units["n_units"], units["n_left_out"]) == (5, 1)
    assert set(run.claims()["reason"]) != {""}


def test_stimuli_of_the_gap_are_not_ones_that_a_subject_lacks() -> None:
    subjects, models, regions, _ = data()
    subjects["s1"][7] = np.nan
    run = run_of(subjects, models, regions, None, patterns={"min_stimuli": 10})
    about = run.table("patterns/subjects")
    n_stimuli = N_TRAIN + N_TEST - 1
    n_test = round(0.2 * n_stimuli)
    assert set(about.select("n_train", "n_test").rows()) == {(n_stimuli - n_test - 5, n_test)}
    assert dict(about.select("subject", "n_own").rows()) == {"s0": 1, "s1": 0, "s2": 1, "s3": 1}
    assert any("up to 1 per subject" in why for why in run.conclusion().why)


@pytest.mark.parametrize("floor", [0.35, 0.12])
def test_conclusion_and_claims_warn_where_patterns_say_how_predictable_targets_are(
    floor: float, tmp_path: Path
) -> None:
    brains = {"n_subjects": 4, "n_regions": 6, "n_units": 25, "n_train": 150, "n_test": 60, "floor": floor}
    dataset = SMALL["datasets"][0] | {"options": brains}
    options = FAST | {"measures": ["linear_r2"]}
    models = [{"name": "one_more_brain", "layers": [0]}]
    run = lpact.load_study(SMALL | {"datasets": [dataset], "models": models, "patterns": options}).run(tmp_path / "run")
    said = [why for why in run.conclusion().why if "how predictable targets are" in why]
    (distinct,) = [gate for gate in run.claim("brains/linear_r2/region01/one_more_brain").gates if gate.letter == "D"]
    _, follows = distinct.criteria
    assert not follows.decisive
    assert distinct.passed
    # Noise cannot be matched to single trials.
    assert run.table("patterns/model_trials").is_empty()
    assert run.table("patterns/unavailable").filter(item="repetitions").height == 1
    assert not {"score_only", "neither"} & {*run.claims()["label"]}
    assert any("models have no noise, but brains do" in why for why in run.conclusion().why)
    if floor == 0.12:
        assert said == []
        assert follows.passed
        return
    (sentence,) = said
    assert "linear_r2: the patterns of 6 of 6 regions" in sentence
    assert not follows.passed


def test_methods_name_the_test_stimuli_that_were_given(run: lpact.Run) -> None:
    assert f"{N_TEST} named stimuli were test stimuli." in methods_parts(run.config)[0].sentences[0]


@pytest.mark.parametrize("n_subjects", [1, 2, 3])
def test_few_subjects_have_scores_but_no_verdict(n_subjects: int) -> None:
    subjects, models, regions, test = data(n_subjects)
    run = run_of(subjects, models, regions, test)
    assert set(run.claims()["label"]) <= {"cannot_reject"}
    if n_subjects == 1:
        assert "subject" in " ".join(run.conclusion().why)
    else:
        assert run.claims()["score"].is_not_null().all()


def test_a_region_that_a_subject_lacks_is_a_row_with_a_reason() -> None:
    subjects, models, regions, test = data()
    of_subject = dict.fromkeys(subjects, regions)
    of_subject["s3"] = [name if name != "mt" else "v4" for name in regions]
    run = run_of(subjects, models, of_subject, test)
    assert set(run.claims()["region"]) == {"v1", "v4", "pit"}
    row = run.table("patterns/unavailable").filter(item="mt").row(0, named=True)
    assert "s3" in row["detail"]


def test_two_regions_make_no_pattern() -> None:
    subjects, models, regions, test = data()
    run = run_of(subjects, models, ["v1" if r in ("v1", "v4") else "mt" for r in regions], test)
    assert set(run.claims()["label"]) == {"not_computed"}
    assert "at least 3 are needed" in run.claims()["reason"][0]
    assert run.claims()["score"].is_not_null().all()


def test_constant_features_and_units_end_no_run() -> None:
    subjects, models, regions, test = data()
    models["flat"] = np.ones((N_TRAIN + N_TEST, 4))
    run = run_of(subjects, models, regions, test, ("rsa", "linear_r2"))
    flat = run.claims().filter(model="flat")
    assert set(flat["label"]) == {"not_computed"}
    assert all("flat" in reason for reason in flat["reason"])
    others = run.claims().filter(run.claims()["model"] != "flat")
    assert "not_computed" not in set(others["label"])


# --- arrays ---------------------------------------------------------------------------------------


def test_test_stimuli_by_name_are_those_of_the_mask(run: lpact.Run) -> None:
    subjects, models, regions, test = data()
    names = [f"film{i:02d}" for i in range(len(test))]
    made = [
        Responses.from_numpy(own, subject=who, regions=regions, stimulus_ids=names, comparable_units=False)
        for who, own in subjects.items()
    ]  # fmt: skip
    chosen = [name for name, own in zip(names, test, strict=True) if own]
    named = run_of(made, models, None, chosen)
    first = run.table("patterns/layers").filter(measure="rsa")
    assert named.table("patterns/layers")["value"].to_list() == first["value"].to_list()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": [True, False]}, "mask of test stimuli"),
        ({"test": ["film99"]}, "film99"),
        ({"regions": ["v1"]}, "'regions' and the values do not match"),
        ({"regions": {"s0": ["v1"] * 24}}, "there is no subject 's1'"),
        ({"connectivity": np.eye(4)}, "has no region names"),
        ({"connectivity": pd.DataFrame(np.eye(2), index=["v1", "x"], columns=["v1", "x"])}, "lacks regions"),
        ({"measure": "error_consistency"}, "does not compare populations"),
        ({"measure": "linear", "patterns": {"layer_folds": 0}}, "layers cannot be chosen"),
        ({"patterns": {"options": {"rsa": {"dissimilarity": "crossnobis"}}}}, "needs single trials"),
        ({"patterns": {"regions": ["v7"]}}, "v7"),
        ({"patterns": {"untrained": {"brain": "twin"}}}, "there is no model 'twin'"),
        ({"patterns": {"test_stories": ["exam"]}, "test": None}, "there is no story in dataset 'data': 'exam'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(change: dict[str, Any], message: str) -> None:
    subjects, models, regions, test = data()
    given = {"regions": regions, "test": test, "measure": "rsa"} | change
    own = given.pop("patterns", {})
    with pytest.raises(LPactError) as caught:
        lpact.alignment_patterns(models, subjects, **given, patterns=own)
    assert message in str(caught.value)
