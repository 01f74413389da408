"""Studies that plans are compared with: small, the demo, and one with wide features on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]


def load(name: str, folder: Path) -> Any:
    """One of the three studies; the wide one is written to disk."""
    import lpact

    if name == "small":
        sys.path.insert(0, str(ROOT / "tests"))
        from small_study import SMALL

        return lpact.load_study(SMALL)
    if name == "demo":
        return lpact.load_study(ROOT / "src" / "lpact" / "analyses" / "lpact" / "demo.toml")
    data = folder / "wide-data"
    if not data.exists():
        write_wide(data)
    study = folder / "wide.toml"
    study.write_text(WIDE.format(folder=data, features=folder / "f", grids=folder / "g"))
    return lpact.load_study(study)


WIDE = """
name = "wide"
seed = 5
[[datasets]]
name = "wide"
reader = "folder"
grid = {{ lags_ms = [0.0, 200.0, 400.0] }}
[[models]]
name = "large"
layers = [1]
[controls]
draws = 2
include = ["random_matched_dim", "random_matched_autocorr", "circular_shift", "sentence_reset_fresh"]
[mechanisms]
include = ["surprisal", "context_update"]

[lpact.stripping]
methods = ["feature_zeroing", "feature_residualization"]
mismatch_draws = 1
[run]
features = "{features}"
grids = "{grids}"
[run.paths]
wide = "{folder}"
"""


def write_wide(
    root: Path, *, n_words: int = 2400, n_columns: int = 768, n_units: int = 48, n_subjects: int = 3
) -> None:
    """A folder of noise: one stimulus, features of two layers, a few subjects."""
    rng = np.random.default_rng(0)
    stimulus = root / "stimuli" / "talk"
    stimulus.mkdir(parents=True)
    (root / "dataset.toml").write_text('source = "noise"\nversion = "1"\nlicence = "CC0"\n')
    lines = ["word\tonset_s\toffset_s\tsentence_id\tstory_id"]
    for i in range(n_words):
        onset = 1.0 + 0.4 * i
        story = 4 * i // n_words
        lines.append(f"w{i % 97}x\t{onset:.3f}\t{onset + 0.3:.3f}\t{i // 8}\ts{story}")
    (stimulus / "words.tsv").write_text("\n".join(lines) + "\n")
    values = rng.standard_normal((n_words, 2))
    rows = [f"{a:.4f}\t{b:.4f}" for a, b in values]
    (stimulus / "mechanisms.tsv").write_text("\n".join(["surprisal\tcontext_update", *rows]) + "\n")
    for context in ("full", "sentence_reset"):
        folder = stimulus / "features" / "large" / context
        folder.mkdir(parents=True)
        for layer in (0, 1):
            features = rng.standard_normal((n_words, n_columns)).astype(np.float32)
            np.save(folder / f"layer-{layer}.npy", features)
    for subject in range(1, n_subjects + 1):
        recording = root / "recordings" / f"sub-{subject}"
        recording.mkdir(parents=True)
        (recording / "recording.toml").write_text(
            f'subject = "{subject}"\nsession = "1"\nrun = "1"\nstimulus = "talk"\n'
            "sampling_rate_hz = 100.0\nstart_s = 0.0\n"
        )
        n_samples = int(100 * (0.4 * n_words + 4))
        np.save(recording / "neural.npy", rng.standard_normal((n_samples, n_units)).astype(np.float32))
        units = ["unit\tregion", *(f"u{i}\tr{i % 4}" for i in range(n_units))]
        (recording / "units.tsv").write_text("\n".join(units) + "\n")
