"""Time RSA of all pairs of subjects beside rsatoolbox: dissimilarities, then every comparison, on one thread.

``python -m benchmarks.rdms`` in an environment with rsatoolbox: 1,000 conditions, 40 subjects of 100 units. rsatoolbox
is called as its user would: `calc_rdm` for every subject and one `compare` of all with all. Kendall's tau-a, minutes
there, is timed on eight subjects. Numbers must agree to 1e-10.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rsatoolbox.data import Dataset
from rsatoolbox.rdm import calc_rdm, compare, concat
from threadpoolctl import threadpool_limits

from benchmarks.data import Floats
from benchmarks.machine import machine, versions
from benchmarks.relational import row, show
from benchmarks.timing import in_turns
from lpact.measures import RSA

RESULTS = Path(__file__).parent / "results"
TARGET = 5.0
"""How many times as fast as rsatoolbox it should be."""
CASES = (
    ("correlation", "pearson", "corr"),
    ("correlation", "spearman", "spearman"),
    ("correlation", "rho_a", "rho-a"),
    ("correlation", "tau_a", "tau-a"),
    ("euclidean", "pearson", "corr"),
    ("euclidean", "cosine", "cosine"),
    ("euclidean", "pearson_whitened", "corr_cov"),
    ("euclidean", "cosine_whitened", "cosine_cov"),
    ("crossnobis", "cosine", "cosine"),
)
N_FOR_TAU = 8
N_TRIALS = 4


def simulate(n_conditions: int, n_subjects: int, n_units: int) -> Floats:
    """Repetitions of subjects that share ten latents: [subjects, conditions, trials, units]."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((n_conditions, 10))
    signal = latent @ rng.standard_normal((n_subjects, 10, n_units))
    shape = (n_subjects, n_conditions, N_TRIALS, n_units)
    return signal[:, :, None] + 3.0 * rng.standard_normal(shape)


def ours(trials: Floats, dissimilarity: Any, comparator: Any) -> Floats:
    """All values of subjects with subjects."""
    measure = RSA(dissimilarity=dissimilarity, comparator=comparator)
    return measure.compare_all(measure.prepare_all(trials))


def peer(trials: Floats, dissimilarity: str, method: str) -> Floats:
    """The same with rsatoolbox."""
    _, n, n_trials, _ = trials.shape
    if dissimilarity == "crossnobis":
        named = {
            "stimulus": np.repeat(np.arange(n), n_trials),
            "trial": np.tile(np.arange(n_trials), n),
        }
        sets = [Dataset(one.reshape(n * n_trials, -1), obs_descriptors=named) for one in trials]
        options = {"descriptor": "stimulus", "cv_descriptor": "trial"}
    else:
        sets, options = [Dataset(one.mean(axis=1)) for one in trials], {}
    rdms = concat([calc_rdm(one, method=dissimilarity, **options) for one in sets])
    return np.asarray(compare(rdms, rdms, method=method))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a table, write it; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="Time RSA beside rsatoolbox.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args(arguments)
    sizes = (100, 6, 20) if options.quick else (1000, 40, 100)
    measured = []
    with threadpool_limits(1):
        every = simulate(*sizes)
        for dissimilarity, comparator, method in CASES:
            trials = every[:N_FOR_TAU] if comparator == "tau_a" else every
            timed = in_turns(
                lambda t=trials, d=dissimilarity, c=comparator: ours(t, d, c),
                lambda t=trials, d=dissimilarity, m=method: peer(t, d, m),
                options.repeats,
            )
            difference = float(np.abs(timed.our_result - timed.peer_result).max())
            if difference > 1e-10:
                raise ValueError(f"{dissimilarity}, {comparator}: results differ by {difference}")
            name = f"{dissimilarity}, {comparator}, {len(trials)} subjects"
            one = row(name, timed.ours, peer="rsatoolbox", peer_seconds=timed.peer, same_work=True)
            measured.append(one | {"target": TARGET, "max_difference": difference})
            print(show(one), flush=True)
    about = {"machine": machine(), "versions": versions(), "threads": 1, "sizes": sizes}
    if not options.quick:
        text = json.dumps([one | about for one in measured], indent=1) + "\n"
        (RESULTS / "rdms.json").write_text(text, encoding="utf-8")
    return int(not options.quick and any(one["cpu_ratio"] < TARGET for one in measured))


if __name__ == "__main__":
    raise SystemExit(main())
