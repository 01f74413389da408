"""What patterns follow: with linear prediction the noise of the targets, with similarity of RDMs the regions.

The simulation is that of docs/explanation/alignment-patterns.md, all of it: 5 subjects × 8 regions × 80 units, 400
training and 98 test stimuli. Two subjects as sources suffice: over seeds 1 to 5, patterns of different regions
correlate by .02 to .10 with `rsa` and .90 to .93 with `linear_r2`; with all five subjects by .07 and .93 (seed 1).
"""

from __future__ import annotations

import numpy as np
import pytest

import lpact
from lpact.analyses.patterns.jobs import Comparison
from lpact.analyses.patterns.populations import measure_of, populations_of
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray

N_REGIONS = 8


def patterns(floor: float) -> dict[str, FloatArray]:
    """Mean alignment patterns of brains by measure, [source region, target region]."""
    study = lpact.load_study(
        {
            "name": "contrast",
            "seed": 1,
            "datasets": [
                {
                    "name": "brains",
                    "reader": "simulated_regions",
                    "options": {"floor": floor},
                    "grid": {"lags_ms": [0.0]},
                }
            ],
            "models": [{"name": "noise", "layers": [0]}],
            "patterns": {"measures": ["rsa", "linear_r2"]},
        }
    )
    workspace = Workspace(study.config)
    subjects = tuple(f"{i:02d}" for i in range(1, 6))
    regions = tuple(f"region{r:02d}" for r in range(1, N_REGIONS + 1))
    own = populations_of(workspace, "brains", 0.0, subjects, regions)
    assert own.values.shape == (498, 5 * 8 * 80)
    assert own.n_train == 400
    found = {}
    for name in ("rsa", "linear_r2"):
        comparison = Comparison(measure_of(study.config, name), own)
        rows = []
        for region in regions:
            pairs = []
            for source in subjects[:2]:
                targets = [(who, r) for who in subjects if who != source for r in regions]
                scores = comparison.test(own.of(source, region), targets)
                values = [float(np.mean(score.value)) for score in scores]
                pairs.append(np.reshape(values, (-1, N_REGIONS)))
            rows.append(np.concatenate(pairs).mean(axis=0))
        found[name] = np.array(rows)
    return found


def between_regions(of: FloatArray) -> float:
    """Mean correlation of the patterns of different regions."""
    return float(np.asarray(np.corrcoef(of))[np.triu_indices(N_REGIONS, 1)].mean())


def follows(of: FloatArray, what: FloatArray) -> FloatArray:
    """Correlation of every region's pattern with a value of the target regions."""
    return np.array([np.corrcoef(pattern, what)[0, 1] for pattern in of])


SNR = np.geomspace(3.0, 0.15, N_REGIONS)
PREDICTABILITY = SNR / (1.0 + SNR)
"""Share of variance of a target that is signal, as planted."""


def test_patterns_of_linear_prediction_follow_the_noise_of_the_targets() -> None:
    of = patterns(floor=0.35)
    assert between_regions(of["rsa"]) <= 0.4
    assert between_regions(of["linear_r2"]) >= 0.8
    linear, similar = (follows(of[name], PREDICTABILITY) for name in ("linear_r2", "rsa"))
    assert linear.min() >= 0.7
    assert np.median(similar) < linear.min()


def test_without_much_that_all_regions_share_there_is_no_contrast() -> None:
    of = patterns(floor=0.12)
    linear, similar = (between_regions(of[name]) for name in ("linear_r2", "rsa"))
    assert abs(linear) < 0.2
    assert abs(similar) < 0.2
    assert linear == pytest.approx(similar, abs=0.25)
