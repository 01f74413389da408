"""A study whose features are larger than the memory that it may take, on one worker.

``python -m benchmarks.larger_than_memory [--layers N] [--columns N] [--words N] [--every N] [--limit GIB] [--out F]``.
A dataset is written into a temporary folder: one recording, and features of one model in full context and with the
context reset at every sentence, in 32 bits on disk. Then three processes run under the same limit on what a process may
allocate (``RLIMIT_DATA``): one that reads all features at once, which must fail; one that audits the study, which looks
at every file; and one that runs it. The peak of every stage is that of the run's log.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine, versions
from lpact.run.status import LOG_NAME, read_log

RESULTS = Path(__file__).parent / "results" / "larger_than_memory.json"
N_UNITS = 8
RATE_HZ = 50.0
CONTEXTS = ("full", "sentence_reset")

STUDY = """
name = "larger-than-memory"
seed = 4

[[datasets]]
name = "mine"
reader = "folder"
grid = {{ lags_ms = [100.0] }}

[[models]]
name = "wide"
layers = {layers}

[readout]
folds = 3
alphas = [1000.0]
memory_gib = 0.4

[controls]
include = ["circular_shift", "sentence_reset_fresh"]
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

READ_ALL = """
import sys
from pathlib import Path
import numpy as np
kept = [np.load(path).astype(np.float64) for path in sorted(Path(sys.argv[1]).rglob("layer-*.npy"))]
print(sum(values.nbytes for values in kept))
"""

AUDIT = """
import sys
import lpact
from lpact.run.machine import peak_bytes
lpact.load_study(sys.argv[1]).audit()
print(peak_bytes())
"""

RUN = """
import sys
import lpact
lpact.load_study(sys.argv[1]).run(sys.argv[2], workers=1, progress=False)
"""


def write(folder: Path, *, layers: int, columns: int, words: int, every: int) -> tuple[Path, int]:
    """Write dataset and study file; returns the file, and the bytes of all features."""
    rng = np.random.default_rng(0)
    stimulus = folder / "data" / "stimuli" / "talk"
    stimulus.mkdir(parents=True)
    (folder / "data" / "dataset.toml").write_text(
        'source = "made for a benchmark"\nversion = "1"\nlicence = "CC0-1.0"\n'
    )
    lines = ["word\tonset_s\toffset_s\tsentence_id\tstory_id"]
    for i in range(words):
        onset_s = 1.0 + 0.4 * i
        lines.append(f"w{i % 97}\t{onset_s:.3f}\t{onset_s + 0.3:.3f}\t{i // 8}\ts{i // 400}")
    (stimulus / "words.tsv").write_text("\n".join(lines) + "\n")
    rows = [f"{a:.6f}\t{b:.6f}" for a, b in rng.standard_normal((words, 2))]
    (stimulus / "mechanisms.tsv").write_text("\n".join(["surprisal\tcontext_update", *rows]) + "\n")
    n_bytes = 0
    for context in CONTEXTS:
        features = stimulus / "features" / "wide" / context
        features.mkdir(parents=True)
        for layer in range(layers):
            path = features / f"layer-{layer}.npy"
            np.save(path, rng.standard_normal((words, columns), dtype=np.float32))
            n_bytes += path.stat().st_size
    recording = folder / "data" / "recordings" / "one"
    recording.mkdir(parents=True)
    (recording / "recording.toml").write_text(
        f'subject = "01"\nsession = "1"\nrun = "1"\nstimulus = "talk"\nsampling_rate_hz = {RATE_HZ}\nstart_s = 0.0\n'
    )
    n_samples = int((5.0 + 0.4 * words) * RATE_HZ)
    np.save(recording / "neural.npy", rng.standard_normal((n_samples, N_UNITS)))
    units = ["unit\tregion", *(f"E{i}\tSTG" for i in range(N_UNITS))]
    (recording / "units.tsv").write_text("\n".join(units) + "\n")
    study = folder / "study.toml"
    study.write_text(STUDY.format(layers=list(range(0, layers, every))))
    return study, n_bytes


def limited(script: str, *args: object, limit: int) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that may allocate no more than the limit."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Write, read under the limit, audit and run."""
    limit = int(options.limit * 2**30)
    study, n_bytes = write(
        folder,
        layers=options.layers,
        columns=options.columns,
        words=options.words,
        every=options.every,
    )
    if limited(READ_ALL, folder / "data", limit=limit).returncode == 0:
        raise RuntimeError("all features fit under the limit at once: the benchmark shows nothing")
    audited = limited(AUDIT, study, limit=limit)
    if audited.returncode:
        raise RuntimeError(f"the audit failed under the limit:\n{audited.stderr}")
    began = time.perf_counter()
    done = limited(RUN, study, folder / "run", limit=limit)
    if done.returncode:
        raise RuntimeError(f"the run failed under the limit:\n{done.stderr}")
    seconds = time.perf_counter() - began
    log = list(read_log(folder / "run" / LOG_NAME))
    peaks = {"source audit": int(audited.stdout)}
    peaks |= {e["stage"]: e["own_peak_bytes"] for e in log if e["event"] == "stage_finished"}
    return {
        "machine": machine(),
        "versions": versions(),
        "feature_bytes": n_bytes,
        "limit_bytes": limit,
        "n_feature_sets": options.layers * len(CONTEXTS),
        "bytes_a_set_in_64_bits": options.words * options.columns * 8,
        "n_tasks": sum(event["event"] == "task_finished" for event in log),
        "seconds": seconds,
        "peak_bytes": peaks,
    }


def show(found: dict[str, Any]) -> None:
    """Print what was found."""
    print(found["machine"])
    print(f"features on disk   {found['feature_bytes'] / 2**30:.2f} GiB")
    print(f"limit a process    {found['limit_bytes'] / 2**30:.2f} GiB (RLIMIT_DATA)")
    print(f"one set, 64 bits   {found['bytes_a_set_in_64_bits'] / 2**20:.0f} MiB")
    print(f"tasks              {found['n_tasks']}, {found['seconds']:.0f} s")
    for stage, n_bytes in found["peak_bytes"].items():
        print(f"  {stage:<17}{n_bytes / 2**20:7.0f} MiB at most")


def main() -> None:
    """Run the benchmark, and keep what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=192)
    parser.add_argument("--columns", type=int, default=2048)
    parser.add_argument("--words", type=int, default=1200)
    parser.add_argument("--every", type=int, default=48, help="claim every so many layers one")
    parser.add_argument("--limit", type=float, default=2.0, help="GiB a process may allocate")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lpact-") as folder:
        found = measure(Path(folder), options)
    show(found)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
