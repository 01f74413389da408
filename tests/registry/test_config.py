"""The study file: strict, explained, hashed."""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpact
from lpact.config import (
    RunConfig,
    StudyConfig,
    parse_study,
    read_slurm_file,
    read_study_file,
    study_config,
)
from lpact.errors import ConfigError
from lpact.validation import json_digest, validate_model

MINIMAL: dict[str, Any] = {
    "name": "study",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "lm", "layers": [1]}],
}

TOML = """
name = "study"
[[datasets]]
name = "sim"
reader = "simulated"
[[models]]
name = "lm"
layers = [1]
"""


def study(*path: str | int, value: object) -> StudyConfig:
    """The minimal study with one option set."""
    return study_config(changed(*path, value=value), where="study.toml")


def changed(*path: str | int, value: object) -> dict[str, Any]:
    """The minimal study as plain values, with one option set."""
    values = copy.deepcopy(MINIMAL)
    inner: Any = values
    for part in path[:-1]:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else inner[part]
    inner[path[-1]] = value
    return values


def test_the_minimal_study_is_valid() -> None:
    config = study_config(MINIMAL, where="study.toml")
    assert config.seed == 0
    assert config.datasets[0].role is None
    assert config.models[0].source == "precomputed"
    assert parse_study(TOML, where="study.toml") == (config, RunConfig())


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (("readout", "fold"), "readout.fold: unknown option; did you mean 'folds'?"),
        (("nuisance", "includes"), "nuisance.includes: unknown option; did you mean 'include'?"),
        (("controls", "draw"), "controls.draw: unknown option; did you mean 'draws'?"),
        (("lpact", "relational", "min_unit"), "did you mean 'min_units'?"),
        (("lpact", "stripping", "method"), "did you mean 'methods'?"),
        (("lpact", "audit", "max_bad_units"), "it is now max_bad_units of each dataset"),
        (("lpact", "gates", "minimum_reliability"), "did you mean 'min_reliability'?"),
        (("datasets", 0, "reeder"), "datasets.0.reeder: unknown option; did you mean 'reader'?"),
        (
            ("datasets", 0, "grid", "lag_ms"),
            "datasets.0.grid.lag_ms: unknown option; did you mean 'lags_ms'?",
        ),
        (("models", 0, "layer"), "models.0.layer: unknown option; did you mean 'layers'?"),
    ],
)
def test_an_unknown_key_gets_the_nearest_known_one(path: tuple[str | int, ...], remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        study(*path, value=1)
    assert remedy in str(caught.value)
    assert place(path) in str(caught.value)


def place(path: tuple[str | int, ...]) -> str:
    """How an error names an option: those of an analysis within its table."""
    table, inner = (", table [lpact]", path[1:]) if path[0] == "lpact" else ("", path)
    option = ".".join(str(part) for part in inner)
    return f"study.toml{table}, option '{option}'"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("sed", "did you mean 'seed'?"),
        ("reedout", "did you mean 'readout'?"),
        ("lpac", "did you mean 'lpact'?"),
        ("zzz", "use one of: controls, datasets, deconstruct, lpact"),
        ("gates", "rename the table to [lpact.gates]"),
    ],
)
def test_an_unknown_table_gets_the_nearest_known_one(name: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        study(name, value=1)
    assert caught.value.where == "study.toml"
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), "0"),
        (("seed",), 1.0),
        (("seed",), True),
        (("seed",), -1),
        (("name",), 3),
        (("name",), "no spaces"),
        (("name",), ""),
        (("readout", "folds"), 2),
        (("readout", "folds"), "5"),
        (("readout", "alphas"), []),
        (("readout", "alphas"), [0.0]),
        (("readout", "alphas"), ["1"]),
        (("readout", "alphas"), 1.0),
        (("readout", "pca"), [-1]),
        (("readout", "pca"), [10, 10]),
        (("readout", "split"), "random"),
        (("nuisance", "language"), "English"),
        (("nuisance", "envelope_rate_hz"), 19.0),
        (("nuisance", "envelope_lowpass_hz"), 0.0),
        (("controls", "include"), "circular_shift"),
        (("controls", "include"), []),
        (("lpact", "stripping", "target_fraction"), 0.0),
        (("lpact", "gates", "min_reliability"), 1.5),
        (("lpact", "gates", "severe_scope"), "some"),
        (("datasets",), []),
        (("datasets", 0, "role"), "main"),
        (("datasets", 0, "grid", "window_ms"), 0.0),
        (("datasets", 0, "grid", "lags_ms"), [0.0, 0.0]),
        (("datasets", 0, "grid", "reference_lag_ms"), 50.0),
        (("datasets", 0, "preprocess", "notch_hz"), [50.0, 50.0]),
        (("datasets", 0, "preprocess", "notch_hz"), [0.0]),
        (("datasets", 0, "preprocess", "reference"), "mastoids"),
        (("datasets", 0, "preprocess", "highpass_hz"), 0.0),
        (("datasets", 0, "preprocess", "envelope_bands_hz"), [70.0]),
        (("datasets", 0, "preprocess", "envelope_bands_hz"), [80.0, 70.0]),
        (("datasets", 0, "preprocess", "artefact_units"), 1.1),
        (("models", 0, "layers"), []),
        (("models", 0, "layers"), [1, 1]),
        (("models", 0, "layers"), ["last"]),
        (("readout",), 3),
    ],
)
def test_wrong_values_are_errors_that_name_the_option(path: tuple[str | int, ...], value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        study(*path, value=value)
    # A rule over several options is reported at the table that holds them.
    path = path[1:] if path[0] == "lpact" else path
    named = {".".join(str(part) for part in path[:n]) for n in (len(path) - 1, len(path))}
    assert any(f"  - {name}" in str(caught.value) for name in named if name)


def test_an_integer_is_a_number() -> None:
    assert study("datasets", 0, "grid", "window_ms", value=100).datasets[0].grid.window_ms == 100.0


def test_every_problem_is_listed() -> None:
    values = changed("readout", "folds", value=1)
    values["controls"] = {"draw": 3}
    del values["datasets"]
    with pytest.raises(ConfigError) as caught:
        study_config(values, where="study.toml")
    message = str(caught.value)
    assert "readout.folds" in message
    assert "datasets: required option is missing" in message
    assert "controls.draw: unknown option; did you mean 'draws'?" in message
    assert "docs/reference/study-file.md" in message


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (("controls", "include"), "control"),
        (("mechanisms", "include"), "mechanism"),
        (("lpact", "stripping", "methods"), "stripping method"),
        (("lpact", "relational", "alignments"), "alignment measure"),
        (("lpact", "relational", "profiles"), "profile similarity"),
        (("nuisance", "include"), "nuisance feature"),
    ],
)
def test_names_are_listed_once(path: tuple[str, ...], what: str) -> None:
    with pytest.raises(ConfigError, match=f"the {what} 'twice' is listed twice; list it once"):
        study(*path, value=["twice", "twice"])


def test_a_dataset_and_a_model_are_listed_once() -> None:
    for section in ("datasets", "models"):
        entry = MINIMAL[section][0]
        with pytest.raises(ConfigError, match=f"'{entry['name']}' is listed twice"):
            study(section, value=[entry, entry])


# --- The digest ----------------------------------------------------------------------------------

OTHER_VALUES: dict[tuple[str | int, ...], Any] = {
    ("lpact", "assay", "enabled"): False,
    ("lpact", "assay", "implant_snr"): 2.0,
    ("lpact", "assay", "unit_permutations"): 20,
    ("lpact", "assay", "onset_windows_ms"): [[0.0, 50.0]],
    ("lpact", "assay", "shifts"): 40,
    ("lpact", "assay", "alpha"): 0.1,
    ("lpact", "assay", "envelope_lags_ms"): [0.0],
    ("lpact", "assay", "envelope_rate_hz"): 50.0,
    ("lpact", "gates", "alpha"): 0.01,
    ("lpact", "gates", "fdr"): 0.1,
    ("lpact", "relational", "permutations"): 19,
    ("name",): "other",
    ("seed",): 1,
    ("mechanisms", "model"): "lm",
    ("mechanisms", "parser"): "spacy:some_pipeline",
    ("mechanisms", "options"): {"context_update": {"of": "prediction"}},
    ("datasets", 0, "name"): "other",
    ("datasets", 0, "reader"): "other",
    ("datasets", 0, "role"): "secondary",
    ("datasets", 0, "options"): {"snr": 2.0},
    ("datasets", 0, "grid", "events"): "sentences",
    ("datasets", 0, "grid", "lags_ms"): [0.0],
    ("datasets", 0, "grid", "window_ms"): 100.0,
    ("datasets", 0, "grid", "units"): "regions",
    ("datasets", 0, "grid", "pooling"): "last",
    ("datasets", 0, "grid", "reference_lag_ms"): 100.0,
    ("datasets", 0, "grid", "hrf"): "glover",
    ("datasets", 0, "grid", "lanczos_lobes"): 2,
    ("datasets", 0, "grid", "lanczos_cutoff"): 0.5,
    ("datasets", 0, "preprocess", "channels"): ["LA*"],
    ("datasets", 0, "preprocess", "drop_channels"): ["LA1"],
    ("datasets", 0, "preprocess", "regions"): ["STG"],
    ("datasets", 0, "preprocess", "notch_hz"): [50.0],
    ("datasets", 0, "preprocess", "reference"): "average",
    ("datasets", 0, "preprocess", "highpass_hz"): 0.5,
    ("datasets", 0, "preprocess", "lowpass_hz"): 40.0,
    ("datasets", 0, "preprocess", "envelope"): "hilbert",
    ("datasets", 0, "preprocess", "envelope_bands_hz"): [70.0, 150.0],
    ("datasets", 0, "preprocess", "resample_hz"): 100.0,
    ("datasets", 0, "preprocess", "detrend"): True,
    ("datasets", 0, "preprocess", "highpass_s"): 128.0,
    ("datasets", 0, "preprocess", "confounds"): ["rot_x"],
    ("datasets", 0, "preprocess", "zscore"): True,
    ("datasets", 0, "preprocess", "artefact_threshold"): 500.0,
    ("datasets", 0, "preprocess", "artefact_units"): 0.0,
    ("datasets", 0, "preprocess", "missing"): "drop_events",
    ("models", 0, "name"): "other",
    ("models", 0, "source"): "other",
    ("models", 0, "layers"): [2],
    ("models", 0, "options"): {"size": 1},
    ("readout", "folds"): 4,
    ("readout", "split"): "stories",
    ("readout", "gap_events"): 0,
    ("readout", "alphas"): [1.0],
    ("readout", "pca"): [10],
    ("readout", "selection_metric"): "pearson",
    ("readout", "selection"): "shared",
    ("readout", "device"): "cuda:1",
    ("readout", "precision"): "float32",
    ("readout", "memory_gib"): 4.0,
    ("readout", "primary_metric"): "r2",
    ("readout", "min_train_events"): 10,
    ("readout", "min_test_events"): 5,
    ("nuisance", "include"): ["word_rate"],
    ("nuisance", "drift_cosines"): 0,
    ("nuisance", "rate_window_s"): 1.0,
    ("nuisance", "language"): "en",
    ("nuisance", "envelope_rate_hz"): 50.0,
    ("nuisance", "envelope_lowpass_hz"): 8.0,
    ("controls", "include"): ["circular_shift"],
    ("controls", "draws"): 3,
    ("controls", "best_control_rule"): "mean_top_3",
    ("controls", "options"): {"circular_shift": {"min_autocorrelation_times": 3.0}},
    ("lpact", "relational", "alignments"): ["cka"],
    ("lpact", "relational", "profiles"): ["cosine"],
    ("lpact", "relational", "brain_patterns_from"): "other_run",
    ("lpact", "relational", "min_units"): 4,
    ("lpact", "relational", "region_as"): "population",
    ("lpact", "relational", "min_region_units"): 2,
    ("lpact", "relational", "half_blocks"): 4,
    ("lpact", "relational", "options"): {"cka": {"x": 1}},
    ("mechanisms", "include"): ["surprisal", "context_update"],
    ("lpact", "stripping", "methods"): ["feature_zeroing"],
    ("lpact", "stripping", "target_fraction"): 0.5,
    ("lpact", "stripping", "mismatch_draws"): 1,
    ("lpact", "stripping", "options"): {"feature_zeroing": {"fraction": 0.2}},
    ("lpact", "audit", "required_controls"): [],
    ("lpact", "audit", "min_subject_runs"): 1,
    ("lpact", "audit", "min_brain_units"): 1,
    ("datasets", 0, "max_bad_units"): 0.1,
    ("lpact", "gates", "direction_fraction"): 0.7,
    ("lpact", "gates", "min_subject_runs"): 2,
    ("lpact", "gates", "min_reliability"): 0.2,
    ("lpact", "gates", "min_ceiling_fraction"): 0.5,
    ("lpact", "gates", "summary_majority"): 0.6,
    ("lpact", "gates", "method_majority"): 0.6,
    ("lpact", "gates", "severe_scope"): "all_levels",
}
"""Another value than the default for every option that is hashed."""


def option_paths(plain: object, prefix: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """Every option of a dumped configuration; lists of tables are entered, ``options`` tables are not."""
    if isinstance(plain, dict) and plain and prefix[-1:] != ("options",):
        return set().union(*(option_paths(v, (*prefix, k)) for k, v in plain.items()))
    if isinstance(plain, list) and plain and isinstance(plain[0], dict):
        return set().union(*(option_paths(v, (*prefix, i)) for i, v in enumerate(plain)))
    return {prefix}


JOINT_VALUES: dict[tuple[str | int, ...], Any] = {
    ("datasets", 0, "grid", "tr_features"): {"events": "trs", "tr_features": "lanczos"},
    ("datasets", 0, "grid", "fir_ms"): {
        "events": "trs",
        "tr_features": "lanczos",
        "fir_ms": [0.0, 2000.0],
    },
}
"""Options that ask for others: the grid in which they are set."""


def test_other_values_cover_every_option() -> None:
    dumped = study_config(MINIMAL, where="study").model_dump(mode="json")
    assert {*OTHER_VALUES, *JOINT_VALUES} == option_paths(dumped)


@pytest.mark.parametrize("path", JOINT_VALUES, ids=lambda path: str(path[-1]))
def test_options_that_ask_for_others_change_the_digest(path: tuple[str | int, ...]) -> None:
    grid = JOINT_VALUES[path]
    without = {key: value for key, value in grid.items() if key != path[-1]}
    there, base = (study("datasets", 0, "grid", value=value) for value in (grid, without))
    assert there.digest() != base.digest()


@pytest.mark.parametrize("path", OTHER_VALUES, ids=lambda path: ".".join(str(p) for p in path))
def test_every_hashed_option_changes_the_digest(path: tuple[str | int, ...]) -> None:
    base = study_config(MINIMAL, where="study")
    other = study(*path, value=OTHER_VALUES[path])
    assert other != base
    assert other.digest() != base.digest()


def test_every_change_has_a_digest_of_its_own() -> None:
    digests = [study(*path, value=value).digest() for path, value in OTHER_VALUES.items()]
    assert len(set(digests)) == len(digests)


def test_a_default_that_is_written_down_changes_nothing() -> None:
    base = study_config(MINIMAL, where="study")
    written = study_config(base.model_dump(mode="json"), where="study")
    assert written == base
    assert written.digest() == base.digest()


def test_run_settings_do_not_enter_the_digest() -> None:
    plain, _ = parse_study(TOML, where="study.toml")
    with_run, run = parse_study(
        TOML + '[run]\nworkers = 4\nprogress = false\n[run.paths]\nsim = "elsewhere"\n',
        where="study.toml",
    )
    assert (run.workers, run.progress, run.paths) == (4, False, {"sim": "elsewhere"})
    assert with_run.digest() == plain.digest()


def test_the_digest_is_stable() -> None:
    # printf '{"a":"é","b":[1,2.5]}' | sha256sum
    assert json_digest({"b": [1, 2.5], "a": "é"}) == (
        "123b424b7606d08d0756074e1f76051117423e1a66a03e02f56fd334de63705b"
    )
    assert re.fullmatch(r"[0-9a-f]{64}", validate_model(StudyConfig, MINIMAL, where="s").digest())


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.integers())))
def test_the_digest_does_not_depend_on_the_order_of_keys(plain: dict[str, object]) -> None:
    assert json_digest(plain) == json_digest(dict(reversed(plain.items())))


def test_configurations_are_frozen() -> None:
    config = study_config(MINIMAL, where="study")
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3


# --- Files ---------------------------------------------------------------------------------------


def test_read_study_file(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TOML, encoding="utf-8")
    study, run = parse_study(TOML, where="anywhere")
    kept = {name: str(tmp_path / f"lpact-{name}") for name in ("features", "grids")}
    assert read_study_file(path) == (study, run.model_copy(update=kept))


def test_a_missing_file_tells_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist") as caught:
        read_study_file(tmp_path / "study.toml")
    assert f"lpact init {tmp_path / 'study.toml'}" in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "study.toml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        read_study_file(path)
    assert str(path) in str(caught.value)


def test_broken_toml_names_the_line() -> None:
    with pytest.raises(ConfigError, match="not valid TOML") as caught:
        parse_study('name = "study"\nseed = = 3\n', where="study.toml")
    assert "line 2" in str(caught.value)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("worker = 2", "worker: unknown option; did you mean 'workers'?"),
        ("workers = 0", "workers: Input should be greater than or equal to 1 (found 0)"),
        ("progress = 1", "progress: Input should be a valid boolean (found 1)"),
        ('paths = {smi = "data"}', "did you mean 'sim'?"),
    ],
)
def test_wrong_run_settings(run: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_study(f"{TOML}[run]\n{run}\n", where="study.toml")
    assert message in str(caught.value)
    assert "study.toml" in str(caught.value)


def test_run_must_be_a_table() -> None:
    with pytest.raises(ConfigError, match=r"study.toml, table \[run\]"):
        parse_study("run = 3\n" + TOML, where="study.toml")


def test_a_study_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TOML.encode())
    assert read_study_file(path)[0] == parse_study(TOML, where="anywhere")[0]


def test_a_mistake_in_a_list_is_told_once() -> None:
    with pytest.raises(ConfigError) as caught:
        study("datasets", 0, "preprocess", value={"reference": "car"})
    assert "too short" not in str(caught.value)
    assert "at least 1 item" not in str(caught.value)
    assert str(caught.value).count("  - ") == 1


@pytest.mark.parametrize(
    ("build", "where", "fix"),
    [
        (lambda: lpact.Readout(fold=3), "Readout, option 'fold'", "did you mean 'folds'"),
        (lambda: lpact.Gates(alpha="x"), "Gates, option 'alpha'", "found 'x'"),
        (lambda: lpact.LPact(gates={"alpah": 1}), "LPact, option 'gates.alpah'", "'alpha'"),
        (lambda: lpact.Dataset(name="meg"), "Dataset, option 'reader'", "required option"),
    ],
)
def test_sections_built_in_python_have_the_same_errors(build, where, fix) -> None:
    with pytest.raises(ConfigError) as caught:
        build()
    assert caught.value.where == where
    assert fix in str(caught.value)


@pytest.mark.parametrize(
    ("table", "fix"),
    [
        ('[run]\ncluster = "tcp://10.0.0.1:8786"', "--cluster"),
        ('[run.slurm]\nprologue = ["id"]', "--slurm FILE"),
    ],
)
def test_a_study_file_names_no_machine_that_runs_code(table: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(fix)):
        parse_study(TOML + table, where="study.toml")


def test_slurm_options_come_from_a_file_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "slurm.toml"
    path.write_text('jobs = 3\nprologue = ["module load python"]')
    assert read_slurm_file(path).jobs == 3
    path.write_text("job = 3")
    with pytest.raises(ConfigError, match="did you mean 'jobs'") as error:
        read_slurm_file(path)
    assert str(path) in str(error.value.where)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (f"x = {'[' * 5000}{']' * 5000}", "thousands of nested brackets"),
        (f"x = {'[' * 60}{']' * 60}", "more than 50 tables or lists"),
        (f"[lpact.{'.'.join('a' * 3000)}]", "more than 50 tables or lists"),
        (f"seed = {'1' * 100_000}", "a number of thousands of digits"),
        (f"seed = 0x{'f' * 100_000}", "an integer of more than 64 bits"),
    ],
)
def test_values_that_are_too_large_are_refused(text: str, got: str) -> None:
    with pytest.raises(ConfigError, match="not valid TOML") as error:
        parse_study(text, where="study.toml")
    assert got in str(error.value.got)


def test_values_that_are_too_large_are_refused_in_a_mapping() -> None:
    nested: list[object] = []
    for _ in range(5000):
        nested = [nested]
    for value, got in ((nested, "more than 50 tables"), (10**5000, "more than 64 bits")):
        with pytest.raises(ConfigError, match="the study is not valid") as error:
            lpact.load_study({"name": "x", "seed": value})
        assert got in str(error.value.got)


def test_a_pipe_is_no_study_file(tmp_path: Path) -> None:
    pipe = tmp_path / "study.toml"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="cannot be read") as error:
        read_study_file(pipe)
    assert error.value.where == str(pipe)
    assert error.value.got == "not a regular file"
