"""Deconstruct through the engine: any number of workers, the archive, the explorer, arrays."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import lpact
from lpact.errors import ConfigError, StudyInputError

SMALL = {
    "name": "small",
    "seed": 2,
    "datasets": [
        {
            "name": "passages",
            "reader": "simulated_passages",
            "grid": {"events": "sentences", "lags_ms": [0.0], "pooling": "sum"},
            "options": {
                "n_subjects": 4,
                "n_units": 6,
                "n_categories": 6,
                "n_columns": 8,
                "vectors": 0.3,
                "contextual": 0.2,
            },
        }
    ],
    "models": [{"name": "planted", "layers": [0, 4]}, {"name": "vectors", "layers": [0]}],
    "deconstruct": {
        "ladder": [["SP", "SL"], ["vectors"]],
        "category": "category",
        "draws": 3,
        "oasm_sigmas": [1.0, 2.0],
        "alphas": [1.0, 30.0, 1000.0],
        "permutations": 99,
    },
    "run": {"progress": False},
}


def study(**options: Any) -> lpact.Study:
    return lpact.load_study(SMALL | {"deconstruct": SMALL["deconstruct"] | options})  # type: ignore[operator]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> lpact.Run:
    return study().run(tmp_path_factory.mktemp("deconstruct") / "run")


def tables_of(run: lpact.Run) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(run.root.rglob("*.parquet"))}


@pytest.mark.slow
def test_two_workers_write_the_same_bytes(run: lpact.Run, tmp_path: Path) -> None:
    again = study().run(tmp_path / "again", workers=2)
    assert tables_of(again) == tables_of(run)


@pytest.mark.slow
def test_little_memory_changes_nothing_but_rounding(run: lpact.Run, tmp_path: Path) -> None:
    values = SMALL | {"readout": {"memory_gib": 0.05}}
    small = lpact.load_study(values).run(tmp_path / "small")
    for name in ("deconstruct/ladder", "deconstruct/layers"):
        columns = [c for c in ("r2", "r2_raw") if c in run.table(name).columns]
        first, second = (own.table(name).select(columns).to_numpy() for own in (run, small))
        np.testing.assert_allclose(first, second, atol=1e-9)


def test_a_locked_run_is_decided_again(run: lpact.Run, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    shutil.copytree(run.root, folder)
    locked = lpact.open_run(folder)
    locked.lock()
    assert locked.verify().ok
    first = run.decide()["deconstruct/claims"]
    assert all(run.decide()["deconstruct/claims"].equals(first) for _ in range(30))
    assert lpact.Deconstruct(alpha=1e-6).alpha == 1e-6
    stricter = run.decide(lpact.Deconstruct(**SMALL["deconstruct"], alpha=1e-6))  # type: ignore[arg-type]
    labels = stricter["deconstruct/claims"]["label"].to_list()
    assert labels == ["predicts_nothing"]
    assert run.claims()["label"].to_list() != labels


def test_the_claim_explains_itself(run: lpact.Run) -> None:
    claim = run.claim("passages/passages/planted")
    assert claim.label == "adds_to_simple_features"
    assert [gate.letter for gate in claim.gates] == ["P", "O"]
    facts = dict(claim.explain().facts)
    row = run.claims().row(0, named=True)
    assert facts["accounted for by simple features (%)"] == row["accounted_for"]
    assert facts["score of the untrained model"] == pytest.approx(
        run.table("deconstruct/scores").filter(family="untrained", sub_model="none", features="planted")["r2"].mean()
    )
    assert f"{row['accounted_for']:.0f} % of this model's score" in run.conclusion().headline
    assert row["p_own"] <= 0.05 < 1.0


def test_choices_by_test_scores_are_marked(run: lpact.Run, tmp_path: Path) -> None:
    scores = run.table("deconstruct/scores")
    assert scores.filter("optimistic")["sub_model"].unique().sort().to_list() == [
        "best_of_network",
        "best_of_unit",
    ]
    seed = study(layer_choice="best_on_test", oasm_choice="best_on_test", sub_model="best_of_unit").run(
        tmp_path / "seed"
    )
    assert seed.table("deconstruct/scores")["optimistic"].all()
    assert "optimistic" in " ".join(seed.conclusion().why)
    best = seed.table("deconstruct/ladder").filter(sub_model="best_of_unit")
    plain = seed.table("deconstruct/ladder").filter(sub_model="none")
    both = best.join(plain, on=["subject", "network", "step"])
    assert (both["r2"] >= both["r2_right"] - 1e-12).all()


@pytest.mark.slow
def test_arrays_give_the_verdict_of_the_study_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    sentence = np.repeat(np.arange(120), 4)
    words = pl.DataFrame(
        {
            "word": [f"w{i % 40}" for i in range(480)],
            "stimulus_id": [f"s{i}" for i in sentence],
            "sentence_id": sentence,
            "story_id": [f"passage{i // 4}" for i in sentence],
            "topic": [f"topic{i // 4 % 5}" for i in sentence],
        }
    )
    vectors, own = rng.standard_normal((480, 3)), rng.standard_normal((480, 3))
    pooled = np.hstack([vectors, own]).reshape(120, 4, 6).mean(axis=1)
    responses = pooled @ rng.standard_normal((6, 5)) + rng.standard_normal((120, 5))
    run = lpact.deconstruct(
        features={"model": np.hstack([vectors, own]), "vectors": vectors},
        responses=responses,
        words=words,
        deconstruct={
            "ladder": [["vectors"]],
            "category": "topic",
            "draws": 3,
            "oasm": False,
            "shuffled": False,
        },
        out=tmp_path / "run",
    )
    assert run.table("deconstruct/splits")["n_folds"].to_list() == [12]
    claim = run.claims().row(0, named=True)
    assert claim["label"] == "adds_to_simple_features"
    assert claim["accounted_for"] == pytest.approx(50.0, abs=12.0)


def test_what_is_missing_is_a_row_with_a_reason(tmp_path: Path) -> None:
    values = SMALL | {
        "deconstruct": SMALL["deconstruct"] | {"ladder": [["SP"], ["static:planted"]]}  # type: ignore[operator]
    }
    run = lpact.load_study(values).run(tmp_path / "run")
    missing = run.table("deconstruct/unavailable").filter(pl.col("item") != "vectors, untrained")
    assert missing["item"].unique().to_list() == ["static:planted"]
    assert missing["reason"].unique().to_list() == ["feature_space_not_offered"]
    assert run.claims()["label"].to_list() == ["not_computed"] * 2
    assert run.table("deconstruct/layers").height  # everything else is there


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ladder": [["SP"], ["vectrs"]]}, "did you mean 'vectors'"),
        ({"ladder": [["SP"], ["SP"]]}, "lists 'SP' twice"),
        ({"simple_steps": 3}, "lower it"),
        ({"scored_models": ["plantd"]}, "did you mean 'planted'"),
        ({"category": "categry"}, "did you mean 'category'"),
        ({"network": "langauge"}, "did you mean 'language'"),
    ],
)
def test_a_misspelt_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, StudyInputError)) as caught:
        study(**options).plan()
    assert message in str(caught.value)
