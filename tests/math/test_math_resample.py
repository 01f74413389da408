"""Haemodynamic responses and Lanczos filters, against nilearn, NumPy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from nilearn.glm.first_level import glover_hrf, spm_hrf

from lpact.math.resample import HRFS, hrf_weights, lanczos_weights


@pytest.mark.parametrize(("name", "reference"), [("spm", spm_hrf), ("glover", glover_hrf)])
def test_hrfs_are_nilearns(name, reference):
    step_s = 0.01  # theirs begins one step late
    theirs = reference(t_r=0.1, oversampling=10, time_length=32.0, onset=0.0)
    ours = HRFS[name](np.linspace(0, 32.0, len(theirs)) - step_s)
    np.testing.assert_allclose(ours / ours.sum(), theirs / theirs.sum(), atol=1e-12)


def test_a_response_is_causal_and_peaks_after_five_seconds():
    time_s = np.arange(-10, 40, 0.01)
    response = HRFS["spm"](time_s)
    assert (response[time_s < 0] == 0).all()
    assert (response[time_s > 32] == 0).all()
    assert time_s[response.argmax()] == pytest.approx(5.0, abs=0.05)


def test_weights_convolve():
    rng = np.random.default_rng(0)
    step_s, tr_s = 0.1, 2.0
    n_fine = 1000
    events = np.sort(rng.choice(n_fine - 1, 60, replace=False))
    x = rng.standard_normal(60)
    fine = np.zeros(n_fine)
    fine[events] = x
    kernel = HRFS["spm"](np.arange(0, 32.0 + step_s / 2, step_s))
    convolved = np.convolve(fine, kernel)[:n_fine:20]
    samples = np.arange(50) * tr_s
    weights = hrf_weights(samples, events * step_s, HRFS["spm"])
    np.testing.assert_allclose(weights @ x, convolved, atol=1e-6)
    assert weights.nnz < 0.4 * 50 * 60


def lanczos_oracle(samples, events, cutoff_hz, lobes):
    out = np.zeros((len(samples), len(events)))
    for k, s in enumerate(samples):
        for e, t in enumerate(events):
            u = cutoff_hz * (s - t)
            if u == 0:
                out[k, e] = 1.0
            elif abs(u) < lobes:
                numerator = lobes * np.sin(np.pi * u) * np.sin(np.pi * u / lobes)
                out[k, e] = numerator / (np.pi**2 * u**2)
    return out


@pytest.mark.parametrize(("cutoff_hz", "lobes"), [(0.5, 3), (0.25, 2), (1.0, 1)])
def test_lanczos_weights_follow_the_formula(cutoff_hz, lobes):
    rng = np.random.default_rng(1)
    events = np.sort(rng.uniform(0, 40, 80))
    events[7] = 6.0  # exactly on a sample
    events = np.sort(events)
    samples = np.arange(20) * 2.0
    weights = lanczos_weights(samples, events, cutoff_hz=cutoff_hz, lobes=lobes)
    np.testing.assert_allclose(weights.toarray(), lanczos_oracle(samples, events, cutoff_hz, lobes), atol=1e-12)


def test_no_events_give_empty_weights():
    weights = hrf_weights(np.arange(3.0), np.empty(0), HRFS["glover"])
    assert weights.shape == (3, 0)
    assert (weights @ np.empty((0, 2))).shape == (3, 2)
