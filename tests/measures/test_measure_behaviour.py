"""Error consistency and response correlation against scikit-learn, SciPy and planted truths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import cohen_kappa_score

from lpact.ceilings import consistency
from lpact.errors import InputError
from lpact.measures import ErrorConsistency, ResponseCorrelation
from lpact.measures.base import TARGET_CONSTANT

KAPPA = ErrorConsistency()


def test_error_consistency_is_cohens_kappa():
    rng = np.random.default_rng(0)
    for accuracy in (0.3, 0.5, 0.9):
        x, y = (rng.random((50, 2)) < accuracy).astype(float).T
        assert float(KAPPA.score(x, y)) == pytest.approx(cohen_kappa_score(x, y), abs=1e-12)
        assert float(KAPPA.score(x, x)) == pytest.approx(1.0)
    assert float(KAPPA.score(x, np.ones(50))) == 0.0
    always = KAPPA.score(np.ones(50), np.ones(50))
    assert (np.isnan(always.value), str(always.reason)) == (True, TARGET_CONSTANT)


def test_shares_of_correct_answers_give_the_agreement_of_single_answers():
    """Observed agreement over all pairs of answers, one of each observer, against that of both accuracies."""
    rng = np.random.default_rng(1)
    x, y = ((rng.random((40, r)) < rng.random((40, 1))).astype(float) for r in (3, 4))
    observed = np.mean([[x[:, a] == y[:, b] for a in range(3)] for b in range(4)])
    expected = x.mean() * y.mean() + (1 - x.mean()) * (1 - y.mean())
    kappa = (observed - expected) / (1 - expected)
    shares = float(KAPPA.score(x.mean(axis=1), y.mean(axis=1)))
    assert shares == pytest.approx(kappa, abs=1e-12)
    found = consistency(x[:, :, None], y[:, :, None], KAPPA)
    assert not found.corrected
    assert float(found.value) == pytest.approx(kappa, abs=1e-12)


@pytest.mark.parametrize(
    "responses",
    [np.r_[-1.0, np.ones(9)], np.r_[2.0, np.ones(9)], np.eye(10)],
    ids=["signed", "counts", "one-hot"],
)
def test_other_responses_than_correct_or_wrong_are_errors(responses):
    with pytest.raises(InputError, match="not correct or wrong"):
        KAPPA.score(responses, np.ones(10))


def test_response_correlation_is_that_of_centred_cells():
    rng = np.random.default_rng(2)
    x, y = rng.random((30, 4)), rng.random((30, 4)) + np.arange(4)
    expected = pearsonr((x - x.mean(axis=0)).ravel(), (y - y.mean(axis=0)).ravel()).statistic
    measure = ResponseCorrelation()
    assert float(measure.score(x, y)) == pytest.approx(expected, abs=1e-12)
    one = float(measure.score(x[:, 0], y[:, 0]))
    assert one == pytest.approx(pearsonr(x[:, 0], y[:, 0]).statistic, abs=1e-12)
    # A preference for alternatives that both share is no agreement on items.
    bias = 10.0 * np.arange(4)
    assert float(measure.score(x + bias, y + bias)) == pytest.approx(expected, abs=1e-10)
    constant = measure.score(x, np.ones((30, 4)) * bias)
    assert (np.isnan(constant.value), str(constant.reason)) == (True, TARGET_CONSTANT)
    with pytest.raises(InputError, match="different numbers of alternatives"):
        measure.score(x, y[:, :3])


def test_response_correlation_is_corrected_for_noise():
    """True correlation 0.8 of two observers, four noisy answers each."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2000, 1, 3))
    y = 0.8 * x + 0.6 * rng.standard_normal((2000, 1, 3))
    noisy = [side + 2.0 * rng.standard_normal((2000, 4, 3)) for side in (x, y)]
    found = consistency(*noisy, ResponseCorrelation())
    assert found.corrected
    assert float(found.value) == pytest.approx(0.8, abs=0.03)
    assert float(found.uncorrected) < 0.5
