"""A dataset in a folder whose features are many and wide, and a small study of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

N_WORDS = 250
N_UNITS = 6
RATE_HZ = 50.0

STUDY = """
name = "wide"
seed = 2

[[datasets]]
name = "mine"
reader = "folder"

[datasets.grid]
lags_ms = [0.0]

[[models]]
name = "wide-model"
layers = {layers}

[readout]
folds = 3
gap_events = 2
alphas = [1000.0]
min_train_events = 30

[controls]
include = ["circular_shift"]
draws = 1

[lpact.relational]
alignments = ["linear"]
profiles = ["pearson"]

[mechanisms]
include = ["surprisal", "context_update"]

[lpact.stripping]
methods = ["feature_zeroing"]
mismatch_draws = 1

[lpact.assay]
enabled = false

[run.paths]
mine = "data"
"""


def write_wide(folder: Path, *, layers: int, columns: int, every: int) -> tuple[Path, int]:
    """Write dataset and study file; returns the file, and the bytes of all features.

    Every so many layers one is claimed; the audit looks at all.
    """
    rng = np.random.default_rng(0)
    data = folder / "data"
    stimulus = data / "stimuli" / "talk"
    stimulus.mkdir(parents=True)
    (data / "dataset.toml").write_text('source = "made"\nversion = "1"\nlicence = "CC0-1.0"\n')
    lines = ["word\tonset_s\toffset_s\tsentence_id\tstory_id"]
    for i in range(N_WORDS):
        onset_s = 1.0 + 0.4 * i
        lines.append(f"w{i % 17}\t{onset_s:.3f}\t{onset_s + 0.3:.3f}\t{i // 6}\tt{i // 126}")
    (stimulus / "words.tsv").write_text("\n".join(lines) + "\n")
    values = rng.standard_normal((N_WORDS, 2))
    rows = ["surprisal\tcontext_update", *(f"{a:.6f}\t{b:.6f}" for a, b in values)]
    (stimulus / "mechanisms.tsv").write_text("\n".join(rows) + "\n")
    n_bytes = 0
    features = stimulus / "features" / "wide-model" / "full"
    features.mkdir(parents=True)
    for layer in range(layers):
        np.save(features / f"layer-{layer}.npy", rng.standard_normal((N_WORDS, columns)))
        n_bytes += (features / f"layer-{layer}.npy").stat().st_size
    recording = data / "recordings" / "one"
    recording.mkdir(parents=True)
    (recording / "recording.toml").write_text(
        f'subject = "01"\nsession = "1"\nrun = "1"\nstimulus = "talk"\nsampling_rate_hz = {RATE_HZ}\nstart_s = 0.0\n'
    )
    n_samples = int((3.0 + 0.4 * N_WORDS) * RATE_HZ)
    np.save(recording / "neural.npy", rng.standard_normal((n_samples, N_UNITS)))
    units = ["unit\tregion", *(f"E{i}\tSTG" for i in range(N_UNITS))]
    (recording / "units.tsv").write_text("\n".join(units) + "\n")
    study = folder / "study.toml"
    study.write_text(STUDY.format(layers=list(range(0, layers, every))))
    return study, n_bytes
