"""A tiny run for the explorer, and copies of it with other strings or rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from filelock import FileLock

import lpact
from lpact.store import Provenance, StoredRun, build_manifest, write_manifest, write_table
from shared_folder import shared_folder

STUDY: dict[str, Any] = {
    "name": "tiny",
    "seed": 7,
    "datasets": [
        {
            "name": "sim",
            "reader": "simulated",
            "grid": {"lags_ms": [100.0]},
            "options": {
                "n_subjects": 3,
                "n_runs": 1,
                "n_stories": 2,
                "sentences_per_story": 8,
                "n_units": 8,
                "snr": 2.0,
            },
        }
    ],
    "models": [{"name": "integrated", "layers": [2]}, {"name": "drift", "layers": [2]}],
    "readout": {"folds": 3, "gap_events": 2, "alphas": [10.0, 1000.0], "min_train_events": 30},
    "controls": {
        "include": [
            "random_matched_dim",
            "random_matched_autocorr",
            "circular_shift",
            "untrained_model_fresh",
        ],
        "draws": 2,
    },
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {
        "relational": {"alignments": ["linear", "cka"], "profiles": ["pearson"]},
        "stripping": {
            "methods": ["feature_zeroing", "feature_residualization"],
            "mismatch_draws": 1,
        },
        "assay": {"enabled": False},
    },
}

PLANTED = {
    "sim": "<script>window.planted=1</script>",
    "integrated": '"><img src=x onerror="window.planted=2">',
    "surprisal": "'><svg onload='window.planted=3'>&amp;{{7*7}}",
    "u001": "</td></table><script>window.planted=4</script>",
    "u002": "javascript:window.planted=5//\n=cmd|' /C calc'!A0",
    "linear": "<iframe srcdoc='<script>parent.planted=6</script>'>",
}
"""What names become in a planted copy."""
SENTENCES = ("sentence", "detail", "meaning")
IN_SENTENCES = "<b onclick=window.planted=7>planted</b><script>window.planted=8</script> "


def make_run(out: Path) -> Path:
    """A finished tiny run at ``out``; takes about two seconds."""
    lpact.load_study(STUDY).run(out, progress=False)
    return out


def shared_tiny(factory: pytest.TempPathFactory) -> Path:
    """The one of this session, which parallel workers share; not to be changed."""
    folder = shared_folder(factory, "explorer") / "tiny"
    with FileLock(f"{folder.parent}.lock"):
        return make_run(folder)


def rewrite(run: Path, out: Path, change: Callable[[pl.DataFrame], pl.DataFrame], study: str) -> Path:
    """A copy of a run whose tables went through ``change``, with a manifest of its own."""
    stored = StoredRun(run)
    for table in stored.tables():
        write_table(change(stored.table(table.name)), table, out)
    old = stored.manifest
    provenance = Provenance(study, old.seed, old.config, old.inputs, old.plugins)
    write_manifest(out, build_manifest(out, provenance))
    return out


def planted_run(run: Path, out: Path) -> Path:
    """A copy whose names and sentences are made of markup that would run, were it not escaped."""

    def plant(frame: pl.DataFrame) -> pl.DataFrame:
        texts = [name for name, kind in frame.schema.items() if kind == pl.String]
        lists = [name for name, kind in frame.schema.items() if kind == pl.List(pl.String)]
        # Elsewhere a reason is a code.
        sentences = [n for n in texts if n in SENTENCES or (n == "reason" and "beaten_by" in texts)]
        return frame.with_columns(
            *(pl.col(name).replace(PLANTED) for name in texts if name not in sentences),
            *(pl.col(name).list.eval(pl.element().replace(PLANTED)) for name in lists),
            *((pl.lit(IN_SENTENCES) + pl.col(name)).alias(name) for name in sentences),
        )

    return rewrite(run, out, plant, f"{PLANTED['sim']} study")
