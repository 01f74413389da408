"""The Turing test through the engine: any number of workers, the archive, arrays, every kind of data."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import lpact
from lpact import ceilings, measures, splits
from lpact.analyses.turing.explain import methods_parts
from lpact.errors import LPactError

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 1,
    "datasets": [
        {
            "name": "brains",
            "reader": "simulated_brains",
            "options": {
                "n_subjects": 4,
                "n_stimuli": 60,
                "n_repetitions": 3,
                "n_units": 10,
                "n_latents": 8,
                "n_seen": 7,
                "lags_ms": [0.0, 100.0],
                "gains": [0.8, 1.0],
            },
        }
    ],
    "models": [{"name": "sixth_brain", "layers": [0, 1]}, {"name": "half_brain", "layers": [0, 1]}],
    "turing": {
        "measures": ["linear", "rsa"],
        "regions": ["all", "frontal"],
        "n_halves": 2,
        "n_folds": 3,
        "gap_events": 3,
        "growth_draws": 2,
        "instances": {"both": ["sixth_brain", "half_brain"]},
    },
    "run": {"progress": False},
}


def study(**options: Any) -> lpact.Study:
    return lpact.load_study(SMALL | {"turing": SMALL["turing"] | options})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> lpact.Run:
    return study().run(tmp_path_factory.mktemp("turing") / "run")


def tables_of(run: lpact.Run) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(run.root.rglob("*.parquet"))}


def arrays(
    n: int = 60,
    r: int = 3,
    units: tuple[int, ...] = (8, 9, 10, 8),
    noise: float = 0.5,
    seed: int = 0,
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Latent variables, responses of subjects, and models: one more brain, and noise."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 5))
    signal = lambda p: z @ rng.standard_normal((5, p)) / np.sqrt(5)  # noqa: E731
    subjects = {f"s{i}": signal(p)[:, None] + noise * rng.standard_normal((n, r, p)) for i, p in enumerate(units)}
    return z, subjects, {"one_more": signal(9), "noise": rng.standard_normal((n, 9))}


def compare(subjects: Any, models: Any, measure: str = "linear", **options: Any) -> lpact.Run:
    own = {"n_halves": 2, "growth": (), "n_folds": 3} | options
    return lpact.turing_test(models, subjects, measure=measure, turing=own)


def row_of(run: lpact.Run, **where: Any) -> Mapping[str, Any]:
    return run.claims().filter(**where).row(0, named=True)


# --- the engine -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_workers_write_the_same_bytes(run: lpact.Run, tmp_path: Path) -> None:
    assert tables_of(study().run(tmp_path / "again", workers=2)) == tables_of(run)


def test_a_locked_run_is_decided_again(run: lpact.Run, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    shutil.copytree(run.root, folder)
    locked = lpact.open_run(folder)
    locked.lock()
    assert locked.verify().ok
    loose = run.decide(lpact.Turing(**SMALL["turing"], equivalence_bound=0.9))["turing/claims"]
    assert loose["label"].to_list().count("converges") > run.claims()["label"].to_list().count("converges")


def test_every_place_and_model_has_a_claim(run: lpact.Run) -> None:
    claims = run.claims()
    assert claims.height == 2 * 2 * 2 * 2  # regions, lags, measures, models
    assert claims.select("region", "time", "measure", "model").n_unique() == claims.height
    claim = run.claim("brains/all/100ms/linear/sixth_brain")
    explained = claim.explain()
    assert claim.label == explained.label
    assert [gate.letter for gate in claim.gates] == ["A", "T", "C", "N", "E"]
    assert all(np.isfinite(value) for value in explained.gates[0].criteria[0].distributions[0].values)
    headline = run.conclusion().headline
    assert "'sixth_brain'" in headline
    assert "'half_brain'" in headline


def test_the_paper_s_tests_carry_their_false_alarms(run: lpact.Run) -> None:
    claims = run.claims().filter(pl.col("rank_sum_p").is_not_null())
    assert claims.height
    assert claims["rank_sum_false_alarms"].is_between(0.03, 0.5).all()


# --- numbers --------------------------------------------------------------------------------------


def test_pairs_and_scores_are_those_of_the_public_functions() -> None:
    z, subjects, models = arrays()
    run = compare(subjects, models, gap_events=2, split_by="rows")
    linear = measures.LinearPredictivity(alphas=tuple(10.0**i for i in range(-1, 7)), gap=2)
    folds = list(splits.contiguous(len(z), 3, gap=2))
    names = list(subjects)
    by_target: dict[str, list[np.ndarray]] = {name: [] for name in names}
    pairs = run.table("turing/pairs")
    for i in names:
        for j in names:
            if i == j:
                continue
            own = ceilings.consistency(subjects[i], subjects[j], linear, folds, n_halves=2)
            row = pairs.filter(kind="brain", source=i, target=j).row(0, named=True)
            np.testing.assert_allclose(row["by_unit"], own.value, rtol=1e-12)
            assert row["value"] == pytest.approx(own.median, rel=1e-12)
            by_target[j].append(own.value)
    # Mean over sources of every unit, then the median over the units of all subjects.
    units = np.concatenate([np.mean(by_target[j], axis=0) for j in names])
    score = run.table("turing/scores").filter(kind="brain").row(0, named=True)
    assert score["score"] == pytest.approx(np.median(units), rel=1e-12)
    assert score["sem"] == pytest.approx(units.std(ddof=1) / np.sqrt(units.size), rel=1e-12)
    model = [ceilings.consistency(models["one_more"], subjects[j], linear, folds, n_halves=2).value for j in names]
    claim = row_of(run, model="one_more")
    assert claim["score_without_noise"] == pytest.approx(np.median(np.concatenate(model)), rel=1e-12)
    assert claim["fraction_of_between"] == pytest.approx(claim["score"] / claim["between"])


def test_the_layer_is_chosen_without_the_test_stimuli() -> None:
    _, subjects, models = arrays(n=90)
    rng = np.random.default_rng(5)
    layers = {"net": {0: rng.standard_normal((90, 9)), 1: models["one_more"]}}
    options = {"split_by": "rows", "gap_events": 0, "model_trials": "none"}
    run = compare(subjects, layers, **options)
    assert row_of(run)["layers"] == [1, 1, 1]
    # With other responses in the last third, what is chosen for the fold that tests it stays.
    other = {name: own.copy() for name, own in subjects.items()}
    for own in other.values():
        own[60:] = rng.standard_normal(own[60:].shape)
    assert row_of(compare(other, layers, **options))["layers"][2] == 1
    flipped = {"net": {0: layers["net"][0], 1: layers["net"][1]}}
    training = compare(other, flipped, **options).table("turing/pairs").filter(kind="model")
    first = run.table("turing/pairs").filter(kind="model")
    for a, b in zip(training["training"], first["training"], strict=True):
        assert a[2] == b[2]
        assert a[0] != b[0]
    best = row_of(compare(subjects, layers, layer_choice="best_on_test", **options))
    assert best["optimistic"]


def test_the_layer_is_chosen_by_measures_of_single_trials_too() -> None:
    _, subjects, models = arrays(noise=0.3)
    layers = {"net": {0: np.random.default_rng(5).standard_normal((60, 9)), 1: models["one_more"]}}
    run = compare(subjects, layers, "rsa", options={"rsa": {"dissimilarity": "crossnobis"}})
    assert row_of(run)["layers"] == [1, 1]


def test_a_fold_counts_above_chance_with_its_own_layer() -> None:
    """Not with all folds of that layer, of which others are what it was chosen on."""
    _, subjects, _ = arrays()
    rng = np.random.default_rng(0)
    layers = {"net": {k: rng.standard_normal((60, 9)) for k in range(6)}}
    run = compare(subjects, layers, "cka", model_trials="none", estimator="none")
    chosen = row_of(run)["layers"]
    assert len(set(chosen)) == len(chosen) == 2
    pairs = run.table("turing/pairs").filter(kind="model")
    for target, above in run.table("turing/model_pairs").select("target", "above_chance").iter_rows():
        rows = {row["layer"]: row for row in pairs.filter(target=target).iter_rows(named=True)}
        own = [(rows[k]["by_fold"][f] - rows[k]["chance"]) / (1.0 - rows[k]["chance"]) for f, k in enumerate(chosen)]
        assert above == pytest.approx(np.mean(own), abs=1e-12)


def test_planted_verdicts() -> None:
    _, subjects, models = arrays(n=120, r=4, units=(12,) * 6)
    run = compare(subjects, models, equivalence_bound=0.2)
    labels = dict(run.claims().select("model", "label").iter_rows())
    assert labels == {"one_more": "converges", "noise": "below"}
    assert row_of(run, model="one_more")["saturated"]
    assert "cannot be told from a brain by linear on these data" in row_of(run, model="one_more")["reason"]


@pytest.mark.parametrize("measure", ["cka", "cka_rbf", "mutual_knn", "rsa"])
def test_brains_that_share_nothing_do_not_agree(measure: str) -> None:
    """Although these measures are far above 0 by chance."""
    rng = np.random.default_rng(0)
    brains = {f"s{i}": rng.standard_normal((60, 3, 20)) for i in range(6)}
    models = {"noise": rng.standard_normal((60, 20))}
    options = {"options": {"rsa": {"comparator": "cosine", "dissimilarity": "euclidean"}}}
    run = compare(brains, models, measure, **(options if measure == "rsa" else {}))
    assert run.claims()["label"].to_list() == ["no_agreement"]
    assert run.table("turing/pairs")["chance"].min() > 0.05
    signal = rng.standard_normal((60, 6))
    shared = {who: own + (signal @ rng.standard_normal((6, 20)))[:, None] for who, own in brains.items()}
    run = compare(shared, models, measure, **(options if measure == "rsa" else {}))
    assert run.claims()["label"].to_list() == ["below"]
    assert "its score above chance is" in run.claims()["reason"].item()


def test_values_of_exactly_zero_and_measures_that_are_always_one_end_no_run() -> None:
    rng = np.random.default_rng(0)
    brains = {f"s{i}": rng.standard_normal((30, 2, 6)) for i in range(4)}
    models = {"noise": rng.standard_normal((30, 6))}
    run = compare(brains, models, "mutual_knn", options={"mutual_knn": {"k": 1}})
    zero = run.table("turing/pairs").filter(pl.col("value") == 0.0)
    assert zero.height
    expected = -zero["chance"] / (1.0 - zero["chance"])
    assert zero["above_chance"].to_list() == pytest.approx(expected.to_list())
    run = compare(brains, models, "mutual_knn", options={"mutual_knn": {"k": 29}})
    assert run.table("turing/pairs")["above_chance"].is_null().all()
    assert not run.claims()["label"].is_in(["converges", "above"]).any()


def test_many_columns_do_not_make_a_model_a_brain() -> None:
    """A model that lacks a part of what brains share catches up by columns alone while agreement grows with units."""
    z, subjects, _ = arrays(n=100, r=4, units=(10,) * 6, noise=0.2)
    rng = np.random.default_rng(9)
    wide = {"half": z[:, :4] @ rng.standard_normal((4, 800)) / 2 + 0.0}
    row = row_of(compare(subjects, wide, "rsa", growth=("units",)), model="half")
    assert not row["comparable"]
    assert row["label"] not in {"converges", "above"}
    row = row_of(compare(subjects, wide, "rsa", source_units=10), model="half")
    assert row["comparable"]


@pytest.mark.parametrize("measure", ["linear", "cka"])
def test_more_columns_are_comparable_where_agreement_has_levelled_off(measure: str) -> None:
    """Unless it is partly that of chance."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((60, 3))
    signal = lambda p: z @ rng.standard_normal((3, p))  # noqa: E731
    subjects = {f"s{i}": signal(64)[:, None] + 0.3 * rng.standard_normal((60, 3, 64)) for i in range(4)}
    run = compare(subjects, {"wide": signal(200)}, measure, growth=("units",))
    fits = run.table("turing/growth_fits")
    assert fits["verdict"].to_list() == ["levelled_off"]
    assert row_of(run)["comparable"] == (measure == "linear")


def test_few_columns_alone_may_be_why_a_model_is_further_from_brains() -> None:
    """The same model is no longer below if all sources have as few units."""
    _, subjects, models = arrays(n=120, units=(24,) * 5, seed=3)
    few = {"few": models["one_more"][:, :3], "wide_noise": np.tile(models["noise"], 3)}
    run = compare(subjects, few, "rsa")
    row = row_of(run, model="few")
    assert row["label"] == "below"
    assert "fewer columns than other sources have units" in row["reason"]
    noise = row_of(run, model="wide_noise")
    assert noise["label"] == "below"
    assert "columns" not in noise["reason"]
    assert row_of(compare(subjects, few, "rsa", source_units=3, source_draws=10), model="few")["label"] != "below"


def test_one_large_brain_does_not_make_wide_models_comparable() -> None:
    z, subjects, _ = arrays(n=100, r=4, units=(200, 10, 10, 10, 10, 10), noise=0.2)
    rng = np.random.default_rng(9)
    wide = {"half": z[:, :4] @ rng.standard_normal((4, 200)) / 2}
    assert not row_of(compare(subjects, wide, "rsa"), model="half")["comparable"]


def test_chance_is_that_of_as_many_units() -> None:
    gaps = []
    for seed in range(4):
        _, subjects, models = arrays(units=(30,) * 5, seed=seed)
        one = {"one_more": np.hstack([models["one_more"]] * 2)}
        row = row_of(compare(subjects, one, "cka", source_units=8, source_draws=2), model="one_more")
        gaps.append(row["fraction_of_between"])
    assert 0.85 < np.mean(gaps) < 1.15


def test_brains_that_only_drift_do_not_agree() -> None:
    """Neighbouring stimuli are alike, so that representations of all brains have the same geometry."""
    from scipy.signal import lfilter

    labels = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        drift = lambda *shape: lfilter([1.0], [1.0, -0.5], rng.standard_normal(shape), axis=0)  # noqa: E731, B023
        brains = {f"s{i}": drift(100, 12)[:, None] + rng.standard_normal((100, 2, 12)) for i in range(6)}
        labels += compare(brains, {"drift": drift(100, 12)}, "rsa").claims()["label"].to_list()
    assert labels.count("no_agreement") >= 5


def test_too_few_stimuli_for_the_gap_are_undefined_values_and_no_failure() -> None:
    rng = np.random.default_rng(0)
    _, subjects, models = arrays(r=2)
    for own in subjects.values():
        own[rng.random((60, 2)) < 0.35] = np.nan
    run = compare(subjects, models, split_by="rows", gap_events=3, growth=("stimuli",))
    assert run.claims().height == 2
    assert run.table("turing/growth").height


def test_the_gap_reaches_the_choice_of_penalties(monkeypatch: pytest.MonkeyPatch) -> None:
    from lpact.measures import LinearPredictivity

    seen = set()
    fit = LinearPredictivity.fit

    def watched(self: LinearPredictivity, X: Any, Y: Any) -> Any:
        seen.add(self.gap)
        return fit(self, X, Y)

    monkeypatch.setattr(LinearPredictivity, "fit", watched)
    _, subjects, models = arrays()
    compare(subjects, models, split_by="rows", gap_events=4, growth=("stimuli",))
    assert seen == {4}


def test_few_subjects_can_never_pass() -> None:
    _, subjects, models = arrays(units=(8, 8))
    row = row_of(compare(subjects, models), model="one_more")
    assert row["label"] == "cannot_reject"
    assert not row["could_reject"]
    assert "at least 3 are needed" in row["reason"]
    _, subjects, models = arrays(units=(8,) * 6)
    row = row_of(compare(subjects, models, "rsa", test="exact"), model="one_more")
    assert row["label"] == "cannot_reject"
    assert row["smallest_p"] == pytest.approx(1 / 7)
    assert "the exact test by rsa can reject no model" in row["reason"]


@pytest.mark.slow
def test_twenty_subjects_take_the_exact_test() -> None:
    _, subjects, models = arrays(n=40, units=(6,) * 20)
    run = compare(subjects, models, "rsa", n_halves=1)
    assert set(run.claims()["test"]) == {"exact"}
    noise = row_of(run, model="noise")
    assert noise["label"] == "below"
    assert noise["p_value"] == noise["smallest_p"] == pytest.approx(1 / 21)


# --- any data -------------------------------------------------------------------------------------


def test_missing_trials_are_kept_out_and_counted() -> None:
    _, subjects, models = arrays()
    subjects["s0"][3, 1] = np.nan  # one trial
    subjects["s1"][7] = np.nan  # a stimulus
    subjects["s2"][:, :, 0] = np.nan  # a unit
    subjects["s3"][11:, 2] = np.nan  # most of a repetition
    run = compare(subjects, models, split_by="rows")
    about = {row["subject"]: row for row in run.table("turing/subjects").iter_rows(named=True)}
    assert about["s0"]["n_missing"] == 8
    assert about["s1"]["n_stimuli"] == 59
    assert {row["n_shared"] for row in about.values()} == {59}
    assert about["s2"]["n_left_out"] == 1
    assert (about["s3"]["n_repetitions"], about["s3"]["fewest_trials"]) == (3, 2)
    pairs = run.table("turing/pairs").filter(kind="brain")
    assert pairs.filter(source="s2")["n_source_left_out"].to_list() == [1, 1, 1]
    undefined = pairs.filter(source="s0", target="s2")["by_unit"].item().to_list()
    assert undefined[0] is None
    assert None not in undefined[1:]
    assert row_of(run, model="one_more")["n_undefined"] > 0
    assert "only 59 of 60 stimuli could be compared" in " ".join(run.conclusion().why)


def test_a_subject_without_a_usable_unit_is_left_out_with_the_reason() -> None:
    _, subjects, models = arrays()
    subjects["s2"][:] = 1.0
    run = compare(subjects, models)
    assert set(run.table("turing/pairs")["target"]) == {"s0", "s1", "s3"}
    assert run.table("turing/subjects").filter(subject="s2")["reason"].item() == "too_few_units"
    assert "subject s2" in run.table("turing/unavailable")["item"].to_list()


def test_a_single_trial_leaves_scores_uncorrected_and_says_so() -> None:
    _, subjects, models = arrays(r=1)
    run = compare(subjects, models)
    assert not run.claims()["corrected"].any()
    assert set(run.table("turing/pairs")["kind"]) == {"brain", "model"}
    said = " ".join(run.conclusion().why)
    assert "Not corrected for noise: linear" in said
    assert "models have no noise" in said
    assert "no_repeated_measure" in run.table("turing/unavailable")["reason"].to_list()
    (agreement, _) = methods_parts(run.config, run.table("turing/pairs"))
    assert "Values were not corrected for noise. Models had no noise." in agreement.sentences[1]


@pytest.mark.parametrize("growth", [(), ("units",)])
def test_one_subject_with_single_trials_leaves_all_scores_uncorrected(growth: tuple[str, ...]) -> None:
    """More pairs of brains than of the model would be uncorrected, and lower."""
    _, subjects, models = arrays()
    subjects["s3"] = subjects["s3"][:, :1]
    run = compare(subjects, models, "rsa", growth=growth)
    pairs = run.table("turing/pairs")
    assert not pairs["corrected"].any()
    assert pairs["value"].equals(pairs["uncorrected"])
    assert set(pairs["detail"]) == {"a subject has one trial per stimulus"}
    assert not run.table("turing/growth")["corrected"].any()
    assert "one trial per stimulus (s3)" in run.table("turing/unavailable")["detail"].item()


def test_pooled_sources_and_subsampled_ones() -> None:
    _, subjects, models = arrays()
    run = compare(subjects, models, source="pooled", estimator="as_printed")
    assert "Scores of brains and models are too low" in " ".join(run.conclusion().why)
    pairs = run.table("turing/pairs").filter(kind="pooled")
    assert pairs["source"].unique().to_list() == ["others"]
    assert pairs["target"].to_list() == list(subjects)
    assert set(run.claims()["test"]) == {"paired"}
    assert "'noise' scores lower than all other brains together" in run.conclusion().headline
    said = str(run.claim("data/all/0ms/linear/noise").explain())
    assert "p-value that the gap is 0" in said
    assert re.search(r"P-value that the gap, \S+, is outside ±", said)
    assert "false alarms" not in said  # of tests of pairs
    (_, test) = methods_parts(study(source="pooled").config, run.table("turing/pairs"))
    assert "paired t-test" in test.sentences[0]
    assert "below: Scores lower than all other brains together." in said
    assert "one more brain" not in said + " ".join(test.sentences)
    drawn = compare(subjects, models, source_units=3, source_draws=2).table("turing/pairs")
    whole = compare(subjects, models).table("turing/pairs")
    for kind in ("brain", "model"):
        few, all_units = (t.filter(kind=kind)["value"].mean() for t in (drawn, whole))
        assert few < all_units  # three units are a poorer source


def test_one_more_brain_stays_one_where_sources_are_subsampled() -> None:
    """Models are subsampled like brains, or they would be better sources."""
    gaps = []
    for seed in range(8):
        _, subjects, models = arrays(units=(12,) * 6, seed=seed)
        models = {"one_more": models["one_more"]}
        run = compare(subjects, models, "rsa", source_units=4, source_draws=3)
        row = row_of(run, model="one_more")
        gaps.append(row["gap"] / row["between"])
    assert abs(np.mean(gaps)) < 2.0 * np.std(gaps, ddof=1) / np.sqrt(len(gaps)) + 0.02


def test_noise_ceiling_has_the_reliability_of_every_subject() -> None:
    """Pairs of a symmetric measure are stored once: the first subject is no target."""
    _, subjects, models = arrays(units=(10,) * 4)
    subjects["s0"] += 3.0 * np.random.default_rng(1).standard_normal(subjects["s0"].shape)
    run = compare(subjects, models, "rsa", n_halves=5)
    pairs = run.table("turing/pairs").filter(kind="brain")
    ends = [pairs.select(who, r=f"reliability_{who}") for who in ("source", "target")]
    ends[0] = ends[0].rename({"source": "target"})
    each = pl.concat(ends).group_by("target").agg(pl.col("r").mean())
    assert each.height == 4
    brains = run.table("turing/scores").filter(source="brains").row(0, named=True)
    assert brains["noise_ceiling"] == pytest.approx(each["r"].clip(0.0).sqrt().mean())
    assert each["r"].min() < 0.5 * each["r"].max()


def test_what_is_undefined_has_a_reason_and_is_counted_once() -> None:
    _, subjects, models = arrays()
    run = compare(subjects, {**models, "flat": np.ones((60, 4))})
    row = row_of(run, model="flat")
    assert row["label"] == "not_computed"
    assert "source or target is constant" in row["reason"]
    flat = compare(subjects, {"flat": np.ones((60, 4))}, "procrustes")
    assert "source or target is constant" in row_of(flat)["reason"]
    scores = run.table("turing/scores")
    assert f"{scores['n_undefined'].sum():,} values" in " ".join(run.conclusion().why)
    noisy = {who: own.copy() for who, own in subjects.items()}
    noisy["s3"] = (
        np.random.default_rng(1).permuted(np.broadcast_to([-1.0, 0.0, 1.0], (60, 8, 3)), axis=2).swapaxes(1, 2)
    )
    run = compare(noisy, models, "rsa")  # trials of a stimulus add up to 0: halves are anticorrelated
    assert set(run.claims()["n_left_out"]) == {1}
    assert "left out of tests: up to 1 in 2 comparisons" in " ".join(run.conclusion().why)
    assert "with an undefined value, left out of the test: 1" in str(run.claim("data/all/0ms/rsa/noise").explain())
    with pytest.raises(LPactError, match="there are no features"):
        compare(subjects, {})
    with pytest.raises(LPactError, match="one row per stimulus of the responses"):
        compare(subjects, np.ones((59, 4)))


def test_epochs_in_arrays_are_compared_at_every_lag() -> None:
    """As the responses of one lag alone."""
    _, subjects, models = arrays()
    later = arrays(seed=5)[1]
    later["s1"][:3] = np.nan
    epochs = {who: np.stack([own, later[who]], axis=3) for who, own in subjects.items()}
    options: dict[str, Any] = {"n_halves": 2, "growth": (), "n_folds": 3}
    run = lpact.turing_test(models, epochs, measure="rsa", lags_ms=(0.0, 80.0), turing=options)
    for time, own in (("0ms", subjects), ("80ms", later)):
        alone = compare(own, models, "rsa").table("turing/pairs").filter(kind="brain")
        found = run.table("turing/pairs").filter(kind="brain", time=time)
        assert found["value"].to_list() == alone["value"].to_list()
    assert "only 57 of 60 stimuli could be compared" in " ".join(run.conclusion().why)
    with pytest.raises(LPactError, match=r"fourth axis: lpact.turing_test\(…, lags_ms=…\)"):
        lpact.turing_test(models, epochs)
    with pytest.raises(LPactError, match="need four axes"):
        lpact.turing_test(models, subjects, lags_ms=(0.0,))


def test_single_answers_of_a_model_are_said_to_count_as_noise_free() -> None:
    rng = np.random.default_rng(0)
    preference = rng.standard_normal((80, 4))
    answer = lambda: np.eye(4)[(preference + rng.standard_normal((80, 4))).argmax(1)]  # noqa: E731
    subjects = {f"s{i}": np.stack([answer(), answer()], axis=1) for i in range(4)}
    said = "By response_correlation, a model's single answers count as noise-free"
    run = compare(subjects, answer(), "response_correlation")
    assert said in " ".join(run.conclusion().why)
    run = compare(subjects, answer(), "response_correlation", estimator="none")
    assert said not in " ".join(run.conclusion().why)


def test_behaviour_is_compared_by_error_consistency() -> None:
    rng = np.random.default_rng(2)
    difficulty = rng.standard_normal(300)

    def observer(own: np.ndarray = difficulty) -> np.ndarray:
        return (0.5 + rng.standard_normal(300) > 2 * own).astype(float)[:, None]

    subjects = {f"s{i}": observer() for i in range(6)}
    models = {"like": observer(), "unlike": observer(rng.standard_normal(300))}
    run = compare(subjects, models, "error_consistency")
    from sklearn.metrics import cohen_kappa_score

    expected = cohen_kappa_score(models["like"][:, 0], subjects["s3"][:, 0])
    row = run.table("turing/pairs").filter(kind="model", source="like", target="s3")
    assert row["value"].item() == pytest.approx(expected, abs=1e-12)
    assert row_of(run, model="unlike")["label"] == "below"
    assert row_of(run, model="like")["position"] == "within"
    # Repeated answers are shares of correct ones; models get no normal noise.
    repeated = {name: np.stack([observer() for _ in range(3)], axis=1) for name in subjects}
    again = compare(repeated, models, "error_consistency")
    assert set(again.table("turing/pairs")["kind"]) == {"brain", "model"}
    with pytest.raises(LPactError, match="not correct or wrong"):
        compare(arrays()[1], arrays()[2], "error_consistency")


def test_alternatives_that_a_subject_never_chooses_or_lacks_stay_in_their_columns() -> None:
    rng = np.random.default_rng(0)
    preference = rng.standard_normal((80, 4))

    def answers(never: int | None = None) -> np.ndarray:
        own = preference + rng.standard_normal((80, 4))
        if never is not None:
            own[:, never] = -np.inf
        return np.eye(4)[own.argmax(1)]

    # Each of the first three has an alternative of its own that it never chooses.
    subjects = {f"s{i}": np.stack([answers(i), answers(i)], axis=1) for i in range(3)}
    subjects["s3"] = np.stack([answers(), answers()], axis=1)
    run = compare(subjects, answers(), "response_correlation", growth=("units", "stimuli"))
    pairs = run.table("turing/pairs")
    correlation = measures.ResponseCorrelation()
    for source, target, found in pairs.filter(kind="brain").select("source", "target", "uncorrected").iter_rows():
        expected = float(correlation.score(*(subjects[who].mean(axis=1) for who in (source, target))))
        assert found == pytest.approx(expected, abs=1e-12)
    assert set(pairs["n_units"]) == {4}
    assert set(run.table("turing/growth")["over"]) == {"stimuli"}
    lacking = {who: own.copy() for who, own in subjects.items()}
    lacking["s3"][5, :, 2] = np.nan  # no stimulus lacks a column for others
    row = compare(lacking, answers(), "response_correlation").table("turing/pairs").filter(source="s0", target="s3")
    assert (row["n_stimuli"].item(), row["n_stimuli_left_out"].item(), row["n_units"].item()) == (79, 1, 4)
    kept = np.arange(80) != 5
    expected = float(correlation.score(*(subjects[who][kept].mean(axis=1) for who in ("s0", "s3"))))
    assert row["uncorrected"].item() == pytest.approx(expected, abs=1e-12)


def test_a_region_that_a_subject_lacks_is_a_row_with_a_reason(tmp_path: Path) -> None:
    from lpact.responses import Responses

    _, subjects, models = arrays()
    made = [
        Responses.from_numpy(
            own,
            subject=name,
            regions=["v1"] * 4 + ["it" if name != "s3" else "v1"] * (own.shape[2] - 4),
        )
        for name, own in subjects.items()
    ]
    run = compare(made, models, regions=("each",))
    assert run.claims()["region"].unique().to_list() == ["v1"]
    lacking = run.table("turing/unavailable").filter(item="it").row(0, named=True)
    assert "subject s3" in lacking["detail"]


def test_instances_are_compared_with_brains_as_distributions(run: lpact.Run) -> None:
    rows = run.table("turing/instances")
    assert rows.height == 8
    row = rows.row(0, named=True)
    models = run.table("turing/model_pairs").filter(kind="model_trials", region="all", time="0ms", measure="linear")
    means = models.group_by("model", maintain_order=True).agg(pl.col("value").mean())
    expected = dict(means.iter_rows())
    assert row["of_instances"] == pytest.approx([expected["sixth_brain"], expected["half_brain"]])
    assert row["sd_instances"] == pytest.approx(np.std(row["of_instances"], ddof=1))
    assert 0.0 < row["smallest_p"] <= row["p_mean"] <= 1.0
    assert "the 2 instances of 'both'" in " ".join(run.conclusion().why)


def test_sources_share_the_representations_of_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    z, subjects, _ = arrays()
    models = {f"m{k}": z + k for k in range(5)}  # with their trials ten sources: two jobs
    calls = {"prepare": 0, "prepare_trials": 0}

    def count(name: str) -> None:
        prepare = getattr(measures.RSA, name)

        def counted(self: measures.RSA, values: np.ndarray) -> Any:
            calls[name] += 1
            return prepare(self, values)

        monkeypatch.setattr(measures.RSA, name, counted)

    for name in calls:
        count(name)
    pairs = compare(subjects, models, "rsa").table("turing/pairs")
    whole_and_halves = 1 + 2 * 2
    # Brains in one job, as targets in two, and trials of models; features have no halves.
    assert calls["prepare_trials"] == whole_and_halves * (3 * len(subjects) + len(models))
    assert calls["prepare"] == len(models)
    for kind, sources in (("brain", subjects), ("model", models)):
        for row in pairs.filter(kind=kind).iter_rows(named=True):
            source, target = sources[row["source"]], subjects[row["target"]]
            own = ceilings.consistency(source, target, measures.RSA(), n_halves=2)
            assert row["value"] == pytest.approx(own.median, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"source_units": 5}], ids=["known", "computed"])
def test_growth_of_brains_is_that_of_the_public_function(options: dict[str, Any]) -> None:
    _, subjects, models = arrays()
    over = ("units", "repetitions")
    run = compare(subjects, models, "rsa", growth=over, growth_draws=1, **options)
    rows = run.table("turing/growth")
    for name in over:
        brains = list(subjects.values())
        own = ceilings.growth(brains, measures.RSA(), over=name, n_draws=1, n_halves=2)
        found = rows.filter(over=name)
        assert found["size"].to_list() == own.sizes.tolist()
        np.testing.assert_allclose(found["by_target"].to_list(), own.values, rtol=1e-12)


def test_growth_ends_at_the_brain_brain_value() -> None:
    _, subjects, models = arrays()
    run = compare(subjects, models, growth=("units", "stimuli", "repetitions"), growth_draws=1)
    growth = run.table("turing/growth")
    last = growth.group_by("over", maintain_order=True).last()
    between = run.table("turing/pairs").filter(kind="brain")
    by_target = between.group_by("target", maintain_order=True).agg(pl.col("value").mean())["value"]
    assert last["value"].to_list() == pytest.approx([by_target.mean()] * 3, rel=1e-12)
    assert set(run.table("turing/growth_fits")["over"]) == {"units", "stimuli", "repetitions"}


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["lienar"]}, "linear"),
        ({"models": ["sixth_brian"]}, "did you mean 'sixth_brain'"),
        ({"regions": ["frontl"]}, "did you mean 'frontal'"),
        ({"lags_ms": [50.0]}, "no responses at 50 ms"),
        ({"instances": {"net": ["seed1"]}}, "there is no model 'seed1'"),
        ({"source": "pooled", "test": "exact"}, "needs source"),
        ({"source": "pooled", "measures": ["error_consistency"]}, "cannot be pooled"),
        ({"source_units": 2, "measures": ["response_correlation"]}, "cannot be subsampled"),
        ({"test": "exact"}, "needs a symmetric measure, which 'linear' is not"),
        ({"options": {"cka": {}}}, "not in measures"),
    ],
)
def test_a_mistake_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LPactError) as caught:
        study(**options).plan()
    assert message in str(caught.value)


def test_too_little_shared_is_a_row_with_a_reason(tmp_path: Path) -> None:
    few = SMALL["datasets"][0] | {"options": {"n_subjects": 2, "n_stimuli": 20}}
    own = SMALL["turing"] | {"min_stimuli": 30, "instances": {}, "regions": ["all"]}
    run = lpact.load_study(SMALL | {"datasets": [few], "turing": own}).run(tmp_path / "run")
    assert run.claims().is_empty()
    row = run.table("turing/unavailable").row(0, named=True)
    assert "share 20 stimuli; 30 are needed (turing.min_stimuli)" in row["detail"]
    assert "Nothing could be tested" in run.conclusion().headline
