"""NestedRidge against searches composed from scikit-learn's own parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from lpact.estimators import NestedRidge
from lpact.math.ridge import Selection
from lpact.math.splits import BlockedFolds, contiguous_folds
from lpact.splits import contiguous, shuffled

ALPHAS = (0.1, 3.0, 100.0, 3000.0)
Split = tuple[np.ndarray, np.ndarray]


def recording(n: int = 83, p: int = 7, t: int = 4, noise: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Autocorrelated features of unlike scales, and responses that some of them make."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.standard_normal((n, p)), axis=0) * 10.0 ** rng.integers(-2, 3, p) + 3.0
    weights = rng.standard_normal((p, t)) * (rng.random((p, t)) < 0.6) / X.std(axis=0)[:, None]
    y = X @ weights + noise * rng.standard_normal((n, t)) * np.arange(1, t + 1) + 10.0
    return X, y


def search(splits: Any, components: tuple[int, ...] = (0,), alphas: Any = ALPHAS) -> GridSearchCV:
    """Standardise, rotate, ridge; settings in the order in which ties are broken."""
    steps = [("scale", StandardScaler()), ("pca", "passthrough"), ("ridge", Ridge(solver="svd"))]
    axes: list[Any] = [PCA(k, svd_solver="full") if k else "passthrough" for k in components]
    grid = {"pca": axes, "ridge__alpha": list(alphas)}
    return GridSearchCV(Pipeline(steps), grid, cv=splits, scoring="r2")


def block_splits(folds: BlockedFolds, outer: int | None = None) -> Iterator[Split]:
    """Training and validation rows over all blocks, or over those that are not ``outer``."""
    for block in range(folds.n_blocks):
        if block == outer:
            continue
        train = folds.train_rows(block) if outer is None else folds.train_rows(block, outer)
        held = folds.rows(block) if outer is None else folds.validation_rows(block=block, outer=outer)
        yield train, np.arange(held.start, held.stop)


def assert_same_fit(model: NestedRidge, found: GridSearchCV, X: np.ndarray, target: int) -> None:
    best = found.best_estimator_
    assert model.alpha_[target] == best["ridge"].alpha
    chosen = 0 if best["pca"] == "passthrough" else best["pca"].n_components
    assert model.components_[target] == chosen
    np.testing.assert_allclose(model.best_score_[target], found.best_score_, atol=1e-9)
    np.testing.assert_allclose(model.predict(X)[:, target], best.predict(X), atol=1e-9)
    back = best["ridge"].coef_
    if chosen:
        back = back @ best["pca"].components_
    np.testing.assert_allclose(model.coef_[target], back / best["scale"].scale_, atol=1e-9)


# --- fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("components", [(0,), (1, 3, 0)])
def test_fit_is_a_grid_search_for_every_target(components: tuple[int, ...], form: Any) -> None:
    X, y = recording()
    model = NestedRidge(ALPHAS, components=components, cv=5, form=form).fit(X, y)
    for target in range(y.shape[1]):
        found = search(KFold(5), components).fit(X, y[:, target])
        assert_same_fit(model, found, X, target)
    assert len(set(model.alpha_)) > 1  # targets differ, or the test would show little


def test_fit_on_one_response_has_no_target_axis() -> None:
    X, y = recording()
    model = NestedRidge(ALPHAS).fit(X, y[:, 1])
    found = search(KFold(5)).fit(X, y[:, 1])
    assert isinstance(model.alpha_, float)
    assert isinstance(model.intercept_, float)
    assert isinstance(model.components_, int)
    assert model.alpha_ == found.best_params_["ridge__alpha"]
    assert model.coef_.shape == (X.shape[1],)
    np.testing.assert_allclose(model.predict(X), found.predict(X), atol=1e-9)
    np.testing.assert_allclose(model.score(X, y[:, 1]), found.score(X, y[:, 1]), atol=1e-9)
    column = NestedRidge(ALPHAS).fit(X, y[:, [1]])
    assert column.coef_.shape == (1, X.shape[1])
    assert column.predict(X).shape == (len(X), 1)


def test_fit_with_a_gap_leaves_its_rows_out() -> None:
    X, y = recording()
    folds = contiguous_folds(len(X), 4, gap=6)
    by_number = NestedRidge(ALPHAS, cv=4, gap=6).fit(X, y)
    by_blocks = NestedRidge(ALPHAS, cv=contiguous(len(X), 4, gap=6)).fit(X, y)
    np.testing.assert_array_equal(by_number.coef_, by_blocks.coef_)
    for target in range(y.shape[1]):
        found = search(list(block_splits(folds))).fit(X, y[:, target])
        assert_same_fit(by_number, found, X, target)
    without = NestedRidge(ALPHAS, cv=4).fit(X, y)
    assert (without.best_score_ != by_number.best_score_).all()


def test_fit_with_groups_leaves_one_story_out() -> None:
    X, y = recording()
    stories = np.repeat(["frogs", "cats", "zebras"], [20, 33, 30])
    model = NestedRidge(ALPHAS).fit(X, y, groups=stories)
    for target in range(y.shape[1]):
        found = search(LeaveOneGroupOut()).fit(X, y[:, target], groups=stories)
        assert_same_fit(model, found, X, target)


def test_a_shared_choice_is_that_of_the_mean_score() -> None:
    X, y = recording()
    model = NestedRidge(ALPHAS, components=(2, 0), selection="shared").fit(X, y)
    found = search(KFold(5), (2, 0)).fit(X, y)  # scikit-learn's R² is the mean over targets
    assert set(model.alpha_) == {found.best_params_["ridge__alpha"]}
    np.testing.assert_allclose(model.best_score_.mean(), found.best_score_, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), found.predict(X), atol=1e-9)


def test_groups_of_targets_share_their_choice() -> None:
    X, y = recording()
    pools = Selection(lag="group", components="group", alpha="group", groups=(0, 1, 1, 0))
    model = NestedRidge(ALPHAS, selection=pools).fit(X, y)
    for members in ([0, 3], [1, 2]):
        found = search(KFold(5)).fit(X, y[:, members])
        assert set(model.alpha_[members]) == {found.best_params_["ridge__alpha"]}
        np.testing.assert_allclose(model.predict(X)[:, members], found.predict(X), atol=1e-9)


def test_unpenalised_columns_are_not_shrunk() -> None:
    X, y = recording(p=3)
    nuisance = np.column_stack([np.arange(len(X)) / 10.0, np.sin(np.arange(len(X)))])
    y = y + nuisance @ np.array([[4.0, 0.0, -3.0, 1.0], [0.0, 5.0, 2.0, 9.0]])
    model = NestedRidge(ALPHAS).fit(X, y, unpenalised=nuisance)
    assert model.unpenalised_coef_.shape == (4, 2)
    # Normal equations: penalty α on standardised features, none on the intercept and the other columns.
    scale = X.std(axis=0)
    design = np.column_stack([np.ones(len(X)), nuisance, (X - X.mean(axis=0)) / scale])
    for target in range(4):
        penalty = np.diag([0.0, 0.0, 0.0, *[model.alpha_[target]] * 3])
        solved = np.linalg.solve(design.T @ design + penalty, design.T @ y[:, target])
        np.testing.assert_allclose(model.unpenalised_coef_[target], solved[1:3], atol=1e-8)
        np.testing.assert_allclose(model.coef_[target], solved[3:] / scale, atol=1e-8)
        fitted = model.predict(X, unpenalised=nuisance)[:, target]
        np.testing.assert_allclose(fitted, design @ solved, atol=1e-8)
    expected = r2_score(y, model.predict(X, unpenalised=nuisance))
    assert model.score(X, y, unpenalised=nuisance) == pytest.approx(expected)


def test_a_lag_is_chosen_for_every_target() -> None:
    X, y = recording(t=2, noise=0.1)
    rng = np.random.default_rng(1)
    responses = rng.standard_normal((3, *y.shape)) * y.std(axis=0)
    planted = [2, 1]
    for target, lag in enumerate(planted):
        responses[lag, :, target] = y[:, target]
    model = NestedRidge(ALPHAS).fit_lags(X, responses)
    assert model.lag_.tolist() == planted
    at_their_lags = NestedRidge(ALPHAS).fit(X, y)
    np.testing.assert_allclose(model.coef_, at_their_lags.coef_, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), at_their_lags.predict(X), atol=1e-9)
    assert at_their_lags.lag_.tolist() == [0, 0]
    nested = NestedRidge(ALPHAS).nested_predictions(X, responses)
    np.testing.assert_allclose(nested, NestedRidge(ALPHAS).nested_predictions(X, y), atol=1e-9)


# --- nested ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0, 3])
def test_nested_predictions_are_those_of_a_search_inside_every_training_set(gap: int) -> None:
    X, y = recording()
    folds = contiguous_folds(len(X), 4, gap=gap)
    model = NestedRidge(ALPHAS, components=(2, 0), cv=4, gap=gap)
    predicted = model.nested_predictions(X, y)
    by_hand, baseline = np.empty_like(y), np.empty_like(y)
    for outer in range(4):
        test, train = folds.rows(outer), folds.train_rows(outer)
        baseline[test] = y[train].mean(axis=0)
        for target in range(y.shape[1]):
            found = search(list(block_splits(folds, outer)), (2, 0)).fit(X, y[:, target])
            best = found.best_estimator_.fit(X[train], y[train, target])
            by_hand[test, target] = best.predict(X[test])
    np.testing.assert_allclose(predicted, by_hand, atol=1e-8)
    r2 = 1.0 - ((y - by_hand) ** 2).sum(axis=0) / ((y - baseline) ** 2).sum(axis=0)
    np.testing.assert_allclose(model.nested_scores(X, y), r2, atol=1e-8)
    r = [np.corrcoef((y - baseline)[:, j], (by_hand - baseline)[:, j])[0, 1] for j in range(4)]
    np.testing.assert_allclose(model.nested_scores(X, y, metric="pearson"), r, atol=1e-8)


def test_nested_results_of_one_response_have_no_target_axis() -> None:
    X, y = recording()
    model = NestedRidge(ALPHAS)
    score = model.nested_scores(X, y[:, 0])
    assert isinstance(score, float)
    assert score == pytest.approx(model.nested_scores(X, y)[0], abs=1e-12)
    predicted = model.nested_predictions(X, y[:, 0])
    np.testing.assert_allclose(predicted, model.nested_predictions(X, y)[:, 0], atol=1e-9)


def test_the_nested_readout_tells_what_was_chosen() -> None:
    X, y = recording()
    stories = np.repeat([7, 3, 5], [20, 33, 30])
    model = NestedRidge(ALPHAS, components=(1, 0))
    readout = model.nested_readout(X, y, groups=stories, keep=("predictions", "weights"))
    assert readout.alpha.shape == readout.components.shape == (3, 4)
    assert set(readout.components.ravel()) <= {0, 1}
    assert readout.weights.shape == (3, 7, 4)
    second = slice(20, 53)
    rebuilt = X[second] @ readout.weights[1] + readout.intercept[1]
    np.testing.assert_allclose(readout.predicted[second], rebuilt, atol=1e-8)
    only = model.nested_predictions(X, y, groups=stories)
    np.testing.assert_allclose(only, readout.predicted, atol=1e-12)


def test_nested_results_leave_the_estimator_as_it_is() -> None:
    X, y = recording()
    fresh = NestedRidge(ALPHAS)
    before = dict(vars(fresh))
    fresh.nested_scores(X, y)
    fresh.nested_predictions(X, y)
    assert vars(fresh) == before
    fitted = NestedRidge(ALPHAS).fit(X[:, :3], y)
    fitted.nested_scores(X, y)
    assert fitted.n_features_in_ == 3


def test_the_best_validation_score_flatters_and_the_nested_score_does_not() -> None:
    # Nothing to be found at any of ten lags: the best of ten scores looks like something.
    rng = np.random.default_rng(2)
    X, responses = rng.standard_normal((60, 5)), rng.standard_normal((10, 60, 100))
    model = NestedRidge(ALPHAS, metric="pearson").fit_lags(X, responses)
    assert model.best_score_.mean() > 0.2
    assert abs(np.mean(model.nested_scores(X, responses))) < 0.05


# --- compute --------------------------------------------------------------------------------------


def test_a_small_memory_changes_nothing() -> None:
    X, y = recording(t=4000)
    whole = NestedRidge(ALPHAS).fit(X, y)
    little = NestedRidge(ALPHAS, memory_bytes=28 * 2**20).fit(X, y)
    np.testing.assert_array_equal(little.alpha_, whole.alpha_)
    np.testing.assert_allclose(little.coef_, whole.coef_, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="is too little"):
        NestedRidge(ALPHAS, memory_bytes=1000).fit(X, y)


@pytest.mark.parametrize(("precision", "error"), [("float64", 1e-9), ("float32", 1e-3)])
def test_torch_gives_the_same(precision: Any, error: float) -> None:
    X, y = recording()
    here = NestedRidge(ALPHAS).fit(X, y)
    there = NestedRidge(ALPHAS, device="torch", precision=precision).fit(X, y)
    np.testing.assert_array_equal(there.alpha_, here.alpha_)
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=error)
    assert there.coef_.dtype == np.float64


def test_single_precision_input_is_read() -> None:
    X, y = recording()
    wide = NestedRidge(ALPHAS).fit(X.astype(np.float32).astype(np.float64), y)
    narrow = NestedRidge(ALPHAS).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(narrow.coef_, wide.coef_, rtol=1e-12)
    counts = NestedRidge(ALPHAS).fit(X, np.rint(y).astype(np.int64))
    np.testing.assert_allclose(counts.coef_, NestedRidge(ALPHAS).fit(X, np.rint(y)).coef_)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cv": KFold(5)}, "cv must be a number of blocks or a split"),
        ({"cv": True}, "cv must be a number of blocks or a split"),
        ({"cv": 1}, "cannot split 83 rows into 1 folds"),
        ({"cv": 84}, "cannot split 83 rows into 84 folds"),
        ({"cv": shuffled(83, 4)}, "cv must hold out contiguous rows, got a shuffled split"),
        ({"cv": contiguous(80, 4)}, "folds have 80 rows, responses have 83"),
        ({"cv": contiguous(83, 4, gap=2), "gap": 1}, "the split has a gap of 2"),
        ({"alphas": (1.0, -1.0)}, "alphas must be positive"),
        ({"alphas": ()}, "alphas must be a list"),
        ({"components": (-1,)}, "components must be whole numbers"),
        ({"metric": "mse"}, "unknown metric 'mse'"),
        ({"selection": "voxel"}, "unknown selection 'voxel'; known: target, shared"),
        ({"device": "abacus"}, "unknown device 'abacus'"),
        ({"precision": "float16"}, "unknown precision 'float16'"),
    ],
)
def test_wrong_settings_are_named_when_it_is_fitted(options: dict[str, Any], told: str) -> None:
    X, y = recording()
    model = NestedRidge(**{"alphas": ALPHAS, **options})
    with pytest.raises(ValueError, match=told):
        model.fit(X, y)


def test_wrong_input_is_named() -> None:
    X, y = recording()
    model = NestedRidge(ALPHAS)
    with pytest.raises(ValueError, match="not contiguous"):
        model.fit(X, y, groups=np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match=r"groups must be \[83\], got shape \(82,\)"):
        model.fit(X, y, groups=np.zeros(82))
    with pytest.raises(ValueError, match="as cv or as groups, not both"):
        NestedRidge(cv=contiguous(83, 4)).fit(X, y, groups=np.zeros(83))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y, unpenalised=X[:80])
    with pytest.raises(ValueError, match=r"must be \[n_lags, 83, t\], got shape \(83, 4\)"):
        model.fit_lags(X, y)
    with pytest.raises(ValueError, match="at least 3 blocks"):
        NestedRidge(cv=2).nested_scores(X, y)
    with pytest.raises(ValueError, match="unknown metric 'mse'"):
        model.nested_scores(X, y, metric="mse")
    model.fit(X, y, unpenalised=X[:, :2])
    for given in (None, X[:, :1]):
        with pytest.raises(ValueError, match="fitted with 2 unpenalised columns"):
            model.predict(X, unpenalised=given)
    with pytest.raises(ValueError, match="fitted with 0 unpenalised columns, got 2"):
        NestedRidge(ALPHAS).fit(X, y).predict(X, unpenalised=X[:, :2])
