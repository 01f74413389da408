"""A registration is made from sources and sizes: other responses change nothing in it; and results are noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import lpact
from lpact.analyses.lpact import gates
from lpact.analyses.lpact.levels import (
    ceiling,
    predictive,
    readouts,
    relational,
    stripping,
)
from lpact.analyses.lpact.tables.audit import UNIT_INVENTORY
from lpact.cli import app
from lpact.errors import LPactError, RunError
from lpact.math import ridge, scores
from lpact.run.preregistration.earlier import leave_note, look_for_results, register, study_tasks
from lpact.run.preregistration.record import Registration, read_registration
from lpact.store import InputFile, TaskStore
from lpact.study import Run, Study

OUTCOMES: tuple[Callable[..., Any], ...] = (
    predictive.measure_predictive,
    relational.measure_relational,
    relational.measure_brain_patterns,
    stripping.measure_stripping,
    ceiling.measure_ceilings,
    gates.decide,
    readouts.fit_layer,
    readouts.fit_nuisance,
    stripping.localise,
    ridge.nested_ridge,
    ridge.nested_ridge_draws,
    scores.partial_correlations,
)
"""Whatever fits, correlates or judges responses."""

N_WORDS, N_UNITS = 90, 6


def write_folder(root: Path, responses: Callable[[int], np.ndarray]) -> None:
    """A dataset of two subjects, in the layout of the reader ``folder``."""
    rng = np.random.default_rng(0)
    stimulus = root / "stimuli" / "talk"
    stimulus.mkdir(parents=True)
    (root / "dataset.toml").write_text('source = "x"\nversion = "1"\nlicence = "CC0"\n', encoding="utf-8")
    lines = ["word\tonset_s\toffset_s\tsentence_id\tstory_id"]
    lines += [f"w{i % 17}\t{0.4 * i:.3f}\t{0.4 * i + 0.3:.3f}\t{i // 6}\ttalk" for i in range(N_WORDS)]
    (stimulus / "words.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    features = stimulus / "features" / "m" / "full"
    features.mkdir(parents=True)
    np.save(features / "layer-1.npy", rng.standard_normal((N_WORDS, 5)))
    for subject in (1, 2):
        recording = root / "recordings" / f"s{subject}"
        recording.mkdir(parents=True)
        (recording / "recording.toml").write_text(
            f'subject = "{subject}"\nsession = "1"\nrun = "1"\nstimulus = "talk"\nlags_ms = [0]\n',
            encoding="utf-8",
        )
        np.save(recording / "neural.npy", responses(subject))
        units = ["unit\tregion", *(f"E{i}\tSTG" for i in range(N_UNITS))]
        (recording / "units.tsv").write_text("\n".join(units) + "\n", encoding="utf-8")


def real(subject: int) -> np.ndarray:
    return np.random.default_rng(subject).standard_normal((1, N_WORDS, N_UNITS))


def permuted(subject: int) -> np.ndarray:
    return real(subject)[:, np.random.default_rng(9).permutation(N_WORDS)]


def replaced(subject: int) -> np.ndarray:
    """Responses that the features explain completely."""
    features = np.random.default_rng(0).standard_normal((N_WORDS, 5))
    return (features @ np.random.default_rng(subject).standard_normal((5, N_UNITS)))[None]


def flat_unit(subject: int) -> np.ndarray:
    values = real(subject)
    values[..., 2] = 1.0
    return values


def study_of(folder: Path) -> Study:
    return lpact.load_study(
        {
            "name": "own",
            "datasets": [{"name": "mine", "reader": "folder", "grid": {"lags_ms": [0.0]}}],
            "models": [{"name": "m", "layers": [1]}],
            "readout": {"folds": 3, "gap_events": 1, "min_train_events": 10},
            "run": {"paths": {"mine": str(folder)}, "grids": str(folder.parent / "grids")},
            "lpact": {"assay": {"enabled": False}},
        }
    )


def registered(tmp_path: Path, responses: Callable[[int], np.ndarray]) -> Registration:
    folder = tmp_path / responses.__name__
    write_folder(folder, responses)
    study = study_of(folder)
    return register(study.config, study.audit())


def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an error in the place of everything that computes outcomes, under every name that it has."""

    def stop(*_: Any, **__: Any) -> Any:
        raise AssertionError("an outcome was computed")

    for module in [m for name, m in sys.modules.items() if name.startswith("lpact")]:
        for name, value in list(vars(module).items()):
            if any(value is function for function in OUTCOMES):
                monkeypatch.setattr(module, name, stop)


def test_other_responses_give_the_same_registration_but_for_their_checksums(
    tmp_path: Path,
) -> None:
    first = registered(tmp_path, real).registered
    assert first.claims
    assert all(recording["used"] for recording in first.audit[UNIT_INVENTORY.name])
    for responses in (permuted, replaced):
        other = registered(tmp_path, responses).registered
        changed = {then.path for then, now in zip(first.inputs, other.inputs, strict=True) if then.sha256 != now.sha256}
        assert changed == {"recordings/s1/neural.npy", "recordings/s2/neural.npy"}
        assert other.model_copy(update={"inputs": first.inputs}) == first


def test_a_unit_that_cannot_be_used_is_seen(tmp_path: Path) -> None:
    """The twin: what the source audit is to see of responses does enter the registration."""
    first, other = registered(tmp_path, real).registered, registered(tmp_path, flat_unit).registered
    then, now = (own.audit[UNIT_INVENTORY.name] for own in (first, other))
    assert {recording["n_units_used"] for recording in then} == {N_UNITS}
    assert {recording["n_units_used"] for recording in now} == {N_UNITS - 1}
    assert then[0]["unit_order_hash"] != now[0]["unit_order_hash"]


STUDY = """
name = "own"
[[datasets]]
name = "mine"
reader = "folder"
grid.lags_ms = [0.0]
[[models]]
name = "m"
layers = [1]
[readout]
folds = 3
gap_events = 1
min_train_events = 10
[lpact.assay]
enabled = false
[run.paths]
mine = "data"
"""


def test_the_command_computes_no_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "data", real)
    path = tmp_path / "own.toml"
    path.write_text(STUDY, encoding="utf-8")
    poison(monkeypatch)
    result = CliRunner().invoke(app, ["preregister", str(path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    claims = read_registration(tmp_path / "own.preregistration.json").registered.claims
    assert {claim.split("/")[0] for claim in claims["lpact"]} == {"mine"}
    # The twin: a run of the same study does come upon what was put in their place.
    with pytest.raises((AssertionError, LPactError), match="an outcome was computed"):
        lpact.load_study(path).run(tmp_path / "run", progress=False)


def inputs_of(run: Run, rename: Callable[[str], str] = str) -> list[InputFile]:
    return [f.model_copy(update={"dataset": rename(f.dataset)}) for f in run.manifest.inputs]


def test_results_of_the_same_data_and_models_are_found_under_any_name(small_run: Run) -> None:
    def renamed(name: str) -> str:
        return f"new-{name}"

    (same,) = look_for_results(small_run.root, inputs_of(small_run, renamed), [("new-planted", "drift")])
    assert same.same == ("new-planted/drift",)
    assert same.has_results


def test_results_of_other_data_or_models_are_no_hindrance(small_run: Run) -> None:
    other = [f.model_copy(update={"sha256": "0" * 64}) for f in small_run.manifest.inputs]
    for inputs, pair in (
        (other, ("planted", "drift")),
        (inputs_of(small_run), ("planted", "another")),
    ):
        (found,) = look_for_results(small_run.root, inputs, [pair])
        assert found.study == "small"
        assert not found.has_results


def test_a_model_is_known_by_its_files(small_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def weights(model: str, sha256: str) -> InputFile:
        return InputFile(dataset=f"model {model}", path="w", n_bytes=9, sha256=sha256)

    own = inputs_of(small_run)
    seen = (*small_run.manifest.inputs, weights("drift", "1" * 64))
    manifest = small_run.manifest.model_copy(update={"inputs": seen})
    monkeypatch.setattr("lpact.store.rundir.read_manifest", lambda _: manifest)
    for name, sha256, expected in (
        ("renamed", "1" * 64, True),
        ("drift", "2" * 64, False),
    ):
        inputs = [*own, weights(name, sha256)]
        (found,) = look_for_results(small_run.root, inputs, [("planted", name)])
        assert found.has_results is expected


def test_registering_is_refused_where_results_are(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", real)
    study = study_of(tmp_path / "data")
    audit = study.audit()
    out = tmp_path / "run"
    with pytest.raises(RunError, match="there is no run to search"):
        register(study.config, audit, runs=[out])
    partial = tmp_path / "run.partial"
    (partial / "tasks" / "ab").mkdir(parents=True)
    made = register(study.config, audit, runs=[out])
    assert [run.state for run in made.registered.earlier_runs] == ["unfinished"]
    (partial / "tasks" / "ab" / "abcd").write_bytes(b"a result")
    for folder in (out, partial):
        with pytest.raises(RunError, match="results already exist"):
            register(study.config, audit, runs=[folder])
    late = register(study.config, audit, runs=[out], after_the_fact=True).registered
    assert late.after_the_fact
    assert [run.n_finished_tasks for run in late.earlier_runs] == [1]


def test_a_shared_place_tells_the_same_data_from_other_data(tmp_path: Path) -> None:
    """Other seed, other name of dataset and study, other options: no task is the same, and the data are."""
    for responses in (real, permuted):
        write_folder(tmp_path / responses.__name__, responses)
    study, place = study_of(tmp_path / "real"), str(tmp_path / "kept")
    store, audit = TaskStore(Path(place)), study.audit()
    leave_note(store, study.config, audit)

    def seen(folder: str) -> set[str]:
        values = study_of(tmp_path / folder).config.model_dump(mode="json")
        values |= {"name": "another", "seed": 77}
        values["datasets"][0]["name"] = "renamed"
        paths = {"paths": {"renamed": str(tmp_path / folder)}}
        other = lpact.load_study(values | {"run": paths})
        made = register(other.config, other.audit(), kept=place, after_the_fact=True)
        assert made.registered.earlier_runs[0].n_finished_tasks == 0
        return {f"{run.state} {pair}" for run in made.registered.earlier_runs for pair in run.same}

    assert seen("real") == set()  # the run was noted, and has kept nothing yet
    store.save(study_tasks(study.config, audit)[0].key, {})
    assert seen("real") == {"noted renamed/m"}
    # Of the same size, with the same words and features: half of the bytes must be the same.
    assert seen("permuted") == set()
