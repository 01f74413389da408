"""Files in the layout of the published data sets: folds, events, and a whole run of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lpact
from dataset_writers.assemblies import write_blank2014, write_fedorenko2016, write_pereira2018

pytest.importorskip("xarray")
pytestmark = pytest.mark.slow

READOUT = {"folds": 3, "min_train_events": 8, "min_test_events": 2, "gap_events": 0}
SMALL = {"draws": 2, "oasm_sigmas": [1.0, 2.0], "alphas": [1.0, 100.0], "permutations": 19}


def deconstructed(folder: Path, reader: str, grid: dict[str, Any], options: dict[str, Any]) -> lpact.Run:
    """Run the study of one written data set; the model is the small one that comes with lpact."""
    pytest.importorskip("transformers")
    study = lpact.load_study(
        {
            "name": reader,
            "datasets": [{"name": "data", "reader": reader, "grid": grid}],
            "models": [
                {
                    "name": "lpact-tiny",
                    "source": "transformers",
                    "layers": [0, 2],
                    "options": {"pooling": "sum", "untrained_seeds": 1},
                }
            ],
            "readout": READOUT,
            "deconstruct": SMALL | options,
            "run": {"features": str(folder / "features"), "progress": False},
        },
        paths={"data": folder / "data"},
    )
    return study.run(folder / "run")


def written(folder: Path, write: Callable[..., object], **options: Any) -> Path:
    write(folder / "data", **options)
    return folder


def test_pereira_holds_out_one_passage_of_each_category(tmp_path: Path) -> None:
    folder = written(tmp_path, write_pereira2018, n_passages=(8, 6), n_subjects=2)
    grid = {"events": "sentences", "lags_ms": [0.0]}
    run = deconstructed(folder, "pereira2018", grid, {"category": "passage_category"})
    splits = run.table("deconstruct/splits").filter(split="contiguous")
    folds = dict(splits.select("stimulus", "n_folds").unique().iter_rows())
    assert folds == {"384sentences": 8, "243sentences": 6}
    assert splits["made_by"].unique().to_list() == ["balanced"]
    assert run.claims().select("stimulus", "model").rows() == [
        ("243sentences", "lpact-tiny"),
        ("384sentences", "lpact-tiny"),
    ]
    ladder = run.table("deconstruct/ladder")
    assert set(ladder["step_name"]) == {"SP+SL", "SP+SL+lpact-tiny"}
    assert {"all", "LPostTemp", "LTE11"} == set(ladder["network"])
    assert set(run.table("deconstruct/scores")["family"]) == {"ladder", "oasm", "untrained"}


def test_fedorenko_holds_out_sentences_and_knows_word_positions(tmp_path: Path) -> None:
    folder = written(tmp_path, write_fedorenko2016, n_sentences=24, n_electrodes=(2, 2, 2))
    grid = {"events": "words", "lags_ms": [0.0]}
    run = deconstructed(folder, "fedorenko2016", grid, {"n_folds": 6, "untrained": False})
    splits = run.table("deconstruct/splits").filter(split="contiguous")
    assert set(splits.select("n_folds", "n_groups", "smallest_test").iter_rows()) == {(6, 24, 32)}
    for fold in splits["fold"]:  # sentences of 8 words stay together
        assert all(fold[i : i + 8].n_unique() == 1 for i in range(0, len(fold), 8))
    assert set(run.table("deconstruct/ladder")["step_name"]) == {"WP", "WP+lpact-tiny"}


def test_blank_holds_out_stories_and_compares_the_model_with_the_training_mean(
    tmp_path: Path,
) -> None:
    folder = written(tmp_path, write_blank2014, n_stories=4, n_sentences=16)
    grid = {"events": "trs", "lags_ms": [4000.0]}
    run = deconstructed(folder, "blank2014", grid, {"n_folds": 4, "split_by": "story", "untrained": False})
    splits = run.table("deconstruct/splits").filter(split="contiguous")
    assert set(splits["n_folds"]) == set(splits["n_groups"]) == {4}
    tests = run.table("deconstruct/tests").filter(comparison="model_beyond_nothing")
    assert tests.filter(family="ladder").height == tests["subject"].n_unique()
    p = tests.filter(family="ladder")["p_events"].explode()
    assert p.is_between(0.0, 1.0).all()
    counts = run.table("deconstruct/test_counts").filter(
        pl.col("comparison") == "model_beyond_nothing", test="events", family="ladder"
    )
    assert (counts["n_after_fdr"] <= counts["n_gaining"]).all()
