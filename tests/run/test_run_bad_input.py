"""Bad input is an error or an audit row that names file, field, found, expected and remedy; nothing is half written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import lpact
from lpact.codes import Reason
from lpact.errors import ConfigError, LPactError, StudyInputError
from lpact.inputs.workspace import Workspace


@pytest.fixture(scope="module")
def clean(tiny_study, tmp_path_factory) -> Path:
    from lpact.datasets.folder import write_folder

    study = lpact.load_study(tiny_study())
    folder = tmp_path_factory.mktemp("folder") / "data"
    write_folder(Workspace(study.config).dataset("sim"), folder)
    return folder


@pytest.fixture
def folder(clean, tmp_path) -> Path:
    return Path(shutil.copytree(clean, tmp_path / "data"))


def load(folder, tiny_study, **changes):
    values = tiny_study(
        datasets=[{"name": "mine", "reader": "folder", "grid": {"lags_ms": [0.0, 100.0]}}],
        run={"paths": {"mine": str(folder)}},
        models=[{"name": "integrated", "layers": [2]}],
        **changes,
    )
    return lpact.load_study(values)


def recordings(folder: Path) -> list[Path]:
    return sorted((folder / "recordings").iterdir())


def words(folder: Path) -> Path:
    (path,) = (folder / "stimuli").glob("*/words.tsv")
    return path


def refused(folder, tiny_study, tmp_path, *expected: str) -> str:
    """The study must not run, say all of ``expected``, and leave nothing behind."""
    out = tmp_path / "run"
    with pytest.raises(StudyInputError) as caught:
        load(folder, tiny_study).run(out, progress=False)
    text = str(caught.value)
    for part in ("where:", "found:", "expected:", "remedy:", *expected):
        assert part in text, f"{part!r} is not in:\n{text}"
    assert not out.exists()
    assert not out.with_name("run.partial").exists()
    return text


def findings(folder, tiny_study, reason: Reason) -> list[dict[str, object]]:
    table = load(folder, tiny_study).audit().tables["audits/lpact_findings"]
    rows = table.filter(reason=str(reason)).to_dicts()
    assert rows, f"no finding '{reason}' in {table['reason'].to_list()}"
    for row in rows:
        assert row["where"]
        assert row["found"]
        assert row["expected"]
        assert row["remedy"]
    return rows


def edit_neural(path: Path, change) -> None:
    values = np.load(path / "neural.npy")
    np.save(path / "neural.npy", change(values))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_neural_data_excludes_the_unit_by_name(folder, tiny_study, bad):
    def spoil(values):
        values[17, 3] = bad
        return values

    edit_neural(recordings(folder)[0], spoil)
    (row,) = findings(folder, tiny_study, Reason.NON_FINITE_NEURAL)
    unit = (recordings(folder)[0] / "units.tsv").read_text().splitlines()[4].split("\t")[0]
    assert unit in row["field"]
    assert "17" in row["found"]
    assert row["severity"] == "excluded"
    audit = load(folder, tiny_study).audit()
    used = audit.tables["audits/lpact_dataset_unit_inventory"].sort("subject", "run")
    assert used["n_units_used"].to_list() == [7, 8, 8, 8]


def test_a_run_with_too_many_bad_units_is_excluded_whole(folder, tiny_study):
    def spoil(values):
        values[:, :5] = np.nan
        return values

    edit_neural(recordings(folder)[0], spoil)
    (row,) = findings(folder, tiny_study, Reason.TOO_MANY_BAD_UNITS)
    assert "5 of 8" in row["found"]
    inventory = load(folder, tiny_study).audit().tables["audits/lpact_dataset_unit_inventory"]
    assert inventory["used"].sum() == 3


def test_constant_unit_is_excluded_by_name(folder, tiny_study):
    def spoil(values):
        values[:, 2] = 4.25
        return values

    edit_neural(recordings(folder)[1], spoil)
    (row,) = findings(folder, tiny_study, Reason.CONSTANT_UNIT)
    assert "4.25" in row["found"]


def test_unit_missing_in_one_run_is_noted_and_the_rest_is_paired(folder, tiny_study, tmp_path):
    path = recordings(folder)[0]
    lines = (path / "units.tsv").read_text().splitlines()
    missing = lines[1].split("\t")[0]
    (path / "units.tsv").write_text("\n".join([lines[0], *lines[2:]]) + "\n")
    edit_neural(path, lambda values: values[:, 1:])
    (row,) = findings(folder, tiny_study, Reason.UNIT_MISSING_IN_RUN)
    assert missing in row["field"]
    assert row["severity"] == "note"


def test_words_out_of_order(folder, tiny_study, tmp_path):
    lines = words(folder).read_text().splitlines()
    lines[5], lines[6] = lines[6], lines[5]
    words(folder).write_text("\n".join(lines) + "\n")
    text = refused(folder, tiny_study, tmp_path, "words.tsv", "onset_s", "order")
    assert text.startswith("1 input problem(s)")


def test_overlapping_words_are_noted(folder, tiny_study):
    lines = words(folder).read_text().splitlines()
    header = lines[0].split("\t")
    cells = lines[4].split("\t")
    offset = header.index("offset_s")
    cells[offset] = str(float(cells[offset]) + 0.9)
    lines[4] = "\t".join(cells)
    words(folder).write_text("\n".join(lines) + "\n")
    rows = findings(folder, tiny_study, Reason.WORDS_OVERLAP)
    assert rows[0]["severity"] == "note"


def test_words_outside_the_recording_are_excluded_and_counted(folder, tiny_study):
    path = recordings(folder)[0]
    edit_neural(path, lambda values: values[: len(values) * 3 // 4])
    (row,) = findings(folder, tiny_study, Reason.WORDS_OUTSIDE_RECORDING)
    inventory = load(folder, tiny_study).audit().tables["audits/lpact_dataset_unit_inventory"]
    excluded = inventory.sort("subject", "run")["n_events_excluded"].to_list()
    assert excluded[0] > 10
    assert excluded[1:] == [0, 0, 0]
    assert str(excluded[0]) in row["found"]


def test_duplicate_unit_ids(folder, tiny_study, tmp_path):
    path = recordings(folder)[0] / "units.tsv"
    lines = path.read_text().splitlines()
    lines[2] = lines[1]
    path.write_text("\n".join(lines) + "\n")
    refused(folder, tiny_study, tmp_path, lines[1].split("\t")[0], "unit")


def test_duplicate_recordings(folder, tiny_study, tmp_path):
    first, second = recordings(folder)[:2]
    shutil.copy(first / "recording.toml", second / "recording.toml")
    refused(folder, tiny_study, tmp_path, "more than once", "recordings")


def test_features_with_fewer_rows_than_words(folder, tiny_study, tmp_path):
    (path,) = (folder / "stimuli").glob("*/features/integrated/full/layer-2.npy")
    np.save(path, np.load(path)[:-7])
    refused(folder, tiny_study, tmp_path, "layer-2.npy", "one row per word", "integrated")


def test_features_that_are_not_finite(folder, tiny_study, tmp_path):
    (path,) = (folder / "stimuli").glob("*/features/integrated/full/layer-2.npy")
    values = np.load(path)
    values[11, 2] = np.nan
    np.save(path, values)
    refused(folder, tiny_study, tmp_path, "layer-2.npy", "row 11", "column 2")


def test_empty_run_is_excluded(folder, tiny_study):
    edit_neural(recordings(folder)[0], lambda values: values[:0])
    (row,) = findings(folder, tiny_study, Reason.EMPTY_RUN)
    assert "0 samples" in row["found"]


def test_too_few_events_is_a_finding_with_the_minima(folder, tiny_study):
    edit_neural(recordings(folder)[0], lambda values: values[: len(values) // 8])
    (row,) = findings(folder, tiny_study, Reason.TOO_FEW_EVENTS)
    assert "3 folds" in row["expected"]


def test_model_without_the_named_layer(folder, tiny_study, tmp_path):
    values = tiny_study(models=[{"name": "integrated", "layers": [99]}])
    out = tmp_path / "run"
    with pytest.raises(StudyInputError, match=r"no layer 99") as caught:
        lpact.load_study(values).run(out, progress=False)
    assert "[0, 1, 2, 3]" in str(caught.value)
    assert not out.exists()


def test_a_misspelt_model_is_refused_with_the_nearest_name(tiny_study, tmp_path):
    values = tiny_study(models=[{"name": "integratd", "layers": [2]}])
    with pytest.raises(StudyInputError, match="did you mean 'integrated'") as caught:
        lpact.load_study(values).run(tmp_path / "run", progress=False)
    assert "no dataset has features of the model 'integratd'" in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_features_that_only_a_control_would_use_are_checked_before_the_run(folder, tiny_study, tmp_path):
    (path,) = (folder / "stimuli").glob("*/features/integrated/untrained/layer-2_draw-1.npy")
    values = np.load(path)
    values[4, 1] = np.nan
    np.save(path, values)
    refused(folder, tiny_study, tmp_path, "layer-2_draw-1.npy", "row 4")


def test_draws_are_counted_from_zero(folder, tiny_study, tmp_path):
    (path,) = (folder / "stimuli").glob("*/features/integrated/untrained/layer-2_draw-2.npy")
    path.rename(path.with_name("layer-2_draw-9.npy"))
    refused(folder, tiny_study, tmp_path, "draws [0, 1, 9]", "without gaps")


def test_dataset_listed_twice(tiny_study):
    values = tiny_study()
    values["datasets"] = values["datasets"] * 2
    with pytest.raises(ConfigError, match="'sim' is listed twice") as caught:
        lpact.load_study(values)
    assert len(str(caught.value)) < 500


def test_a_device_that_is_not_there(tiny_study, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    study = lpact.load_study(tiny_study(readout={"device": "cuda"}))
    for work in (study.plan, lambda: study.run(tmp_path / "run")):
        with pytest.raises(ConfigError, match=r"readout\.device") as caught:
            work()
        assert "no CUDA device" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("readout", "message"),
    [
        ({"device": "gpu"}, "readout.device"),
        ({"device": "mps"}, "no float64"),
        ({"memory_gib": 0}, "readout.memory_gib"),
        ({"memory_gib": 1e-300}, "readout.memory_gib"),
        ({"memory_gib": 1e300}, "readout.memory_gib"),
    ],
)
def test_device_settings_that_make_no_sense(tiny_study, readout, message):
    with pytest.raises(ConfigError, match=message):
        lpact.load_study(tiny_study(readout=readout))


def test_folder_without_a_path(tiny_study):
    values = tiny_study(datasets=[{"name": "mine", "reader": "folder"}])
    with pytest.raises(ConfigError, match=r"run.paths"):
        lpact.load_study(values).audit()


def test_all_problems_are_told_at_once(folder, tiny_study, tmp_path):
    (path,) = (folder / "stimuli").glob("*/features/integrated/full/layer-2.npy")
    np.save(path, np.load(path)[:-7])
    units = recordings(folder)[3] / "units.tsv"
    lines = units.read_text().splitlines()
    lines[2] = lines[1]
    units.write_text("\n".join(lines) + "\n")
    text = refused(folder, tiny_study, tmp_path, "layer-2.npy", "unit 'u001'", "recordings/")
    assert text.startswith("2 input problem(s)")


def test_every_error_is_an_lpact_error():
    assert issubclass(StudyInputError, LPactError)
