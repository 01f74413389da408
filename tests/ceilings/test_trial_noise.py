"""Noise of a trial from the reliability of means over trials."""

from __future__ import annotations

import numpy as np
import pytest

from lpact.ceilings import trial_noise


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
def test_noise_is_that_of_the_definition_of_reliability(noise: float) -> None:
    n = 4
    reliability = 1.0 / (1.0 + noise**2 / n)  # variance of the signal by that of the mean of n trials
    assert trial_noise([0.01, reliability, 1.2, np.nan], n) == pytest.approx(noise)


@pytest.mark.parametrize("reliabilities", [[], [np.nan], [0.0], [-0.1, -0.2, 0.9]])
def test_no_noise_follows_from_responses_without_reliability(reliabilities: list[float]) -> None:
    assert trial_noise(reliabilities, 4) is None
