"""The estimators among scikit-learn's tools: pipelines, searches, clones, data frames, routed columns."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from lpact.estimators import BandedRidge, NestedRidge
from lpact.splits import contiguous

ESTIMATORS = [
    NestedRidge(alphas=(1.0, 100.0), cv=4),
    BandedRidge(alphas=(1.0, 100.0), cv=4, draws=3, spaces={"left": [0, 3], "right": slice(1, 3)}),
]
named = pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((60, 4))


@pytest.fixture
def y(X: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(1).standard_normal((60, 2))
    return X @ np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5], [0.0, 0.0]]) + noise


@named
def test_a_pipeline_is_its_steps_one_after_the_other(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    step = PowerTransformer()
    piped = make_pipeline(step, clone(model)).fit(X, y)
    by_hand = clone(model).fit(step.fit_transform(X), y)
    np.testing.assert_array_equal(piped.predict(X), by_hand.predict(step.transform(X)))
    assert piped.score(X, y) == by_hand.score(step.transform(X), y)
    assert is_regressor(piped)


@named
def test_cross_validation_fits_every_training_set_anew(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    scores = cross_val_score(model, X, y, cv=KFold(3))
    for score, (train, test) in zip(scores, KFold(3).split(X), strict=True):
        assert score == clone(model).fit(X[train], y[train]).score(X[test], y[test])
    assert not hasattr(model, "coef_")


@named
def test_a_search_finds_the_better_setting(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    grid = {"alphas": [(1e6,), (1.0,)], "metric": ["r2", "pearson"]}
    found = GridSearchCV(model, grid, cv=KFold(3)).fit(X, y)
    assert found.best_params_["alphas"] == (1.0,)
    np.testing.assert_array_equal(found.predict(X), clone(model).set_params(**found.best_params_).fit(X, y).predict(X))


@named
def test_a_clone_has_the_settings_and_nothing_that_was_learnt(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    blocks = contiguous(60, 3, gap=2)
    fitted = clone(model).set_params(cv=blocks).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert copy.cv == blocks
    with pytest.raises(NotFittedError):
        copy.predict(X)
    np.testing.assert_array_equal(copy.fit(X, y).coef_, fitted.coef_)


@named
def test_settings_are_read_when_it_is_fitted(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    changed = clone(model).set_params(alphas=(100.0,))
    np.testing.assert_array_equal(changed.fit(X, y).coef_, _with(model, alphas=[100.0], X=X, y=y))
    assert not np.allclose(changed.coef_, _with(model, alphas=[0.1], X=X, y=y))
    np.testing.assert_array_equal(changed.coef_, _with(model, alphas=np.array([100.0]), X=X, y=y))
    with pytest.raises(ValueError, match="Invalid parameter 'penalty'"):
        changed.set_params(penalty=1.0)


def _with(model: Any, *, alphas: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    coefficients: np.ndarray = clone(model).set_params(alphas=alphas).fit(X, y).coef_
    return coefficients


@named
def test_what_was_learnt_survives_a_pickle(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@named
@pytest.mark.parametrize("library", [pd, pl])
def test_names_of_features_are_kept_and_checked(model: Any, library: Any, X: np.ndarray, y: np.ndarray) -> None:
    names = ["rate", "pitch", "surprisal", "length"]
    frame = library.DataFrame(dict(zip(names, X.T, strict=True)))
    responses = library.DataFrame({"left": y[:, 0], "right": y[:, 1]})
    fitted = clone(model).fit(frame, responses)
    assert fitted.feature_names_in_.tolist() == names
    np.testing.assert_allclose(fitted.predict(frame), clone(model).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fitted.predict(X)
    scores = clone(model).nested_scores(frame, responses)
    np.testing.assert_allclose(scores, clone(model).nested_scores(X, y))


@named
def test_a_series_is_one_response(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    for series in (pd.Series(y[:, 0]), pl.Series(y[:, 0])):
        fitted = clone(model).fit(X, series)
        assert fitted.predict(X).shape == (60,)
        assert isinstance(fitted.nested_scores(X, series), float)


@named
def test_segments_and_unpenalised_columns_are_routed(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    stories = np.repeat([0, 1, 2, 3, 4, 5], 10)
    drift = np.linspace(-1.0, 1.0, 60)[:, None]
    y = y + 20.0 * drift
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(model).set_fit_request(groups=True, unpenalised=True).set_score_request(unpenalised=True)
        found = cross_validate(
            asking,
            X,
            y,
            cv=KFold(3),
            params={"groups": stories, "unpenalised": drift},
            return_estimator=True,
        )
    for score, fitted, (train, test) in zip(found["test_score"], found["estimator"], KFold(3).split(X), strict=True):
        by_hand = clone(model).fit(X[train], y[train], groups=stories[train], unpenalised=drift[train])
        np.testing.assert_array_equal(fitted.coef_, by_hand.coef_)
        assert score == by_hand.score(X[test], y[test], unpenalised=drift[test])
    # Away from the training rows, only a trend that is not shrunk carries on.
    assert np.mean(found["test_score"]) > np.mean(cross_val_score(model, X, y, cv=KFold(3)))


BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {name!r}:
            raise ModuleNotFoundError(name + " is not here", name=name)
sys.meta_path.insert(0, Missing())
{code}
"""


def without(name: str, code: str) -> str:
    """What ``code`` writes in an interpreter that cannot import a package."""
    program = BLOCKED.format(name=name, code=code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout


def test_without_scikit_learn_the_remedy_is_named() -> None:
    code = """
import lpact.math.ridge
try:
    import lpact.estimators
except ImportError as error:
    print(error)
"""
    told = without("sklearn", code)
    assert "needs scikit-learn 1.6 or newer" in told
    assert "pip install 'lpact[sklearn]'" in told


def test_without_torch_the_remedy_is_named() -> None:
    code = """
from lpact.estimators import BandedRidge, NestedRidge
try:
    NestedRidge(device="cuda").fit([[1.0]] * 9, range(9))
except ImportError as error:
    print(error)
NestedRidge().fit([[1.0]] * 9, range(9))
print("fitted")
"""
    told = without("torch", code)
    assert "pip install 'lpact[torch]'" in told
    assert told.endswith("fitted\n")
