"""``lpact datasets check`` and ``fetch`` at the prompt."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

from lpact.cli.datasets import reader_options
from lpact.datasets.base import DATASETS
from lpact.datasets.folder import write_folder
from lpact.errors import ConfigError
from tiny_study import Lpact

OPTIONS = {"n_subjects": 2, "n_runs": 2, "n_stories": 2, "sentences_per_story": 8, "n_units": 8}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder dataset: two subjects, two runs, one stimulus, eight units."""
    folder = tmp_path_factory.mktemp("datasets") / "mine"
    reader = DATASETS.build("simulated", OPTIONS)
    write_folder(reader.open(name="mine", path=None, seed=1), folder)
    return folder


@pytest.fixture
def mine(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "mine"))


def checked(lpact: Lpact, *args: object, status: int = 0) -> dict[str, object]:
    result = lpact("datasets", "check", *args, "--json")
    assert result.exit_code == status, result.output
    found: dict[str, object] = json.loads(result.stdout)
    assert found["usable"] is (status == 0)
    return found


def levels(found: dict[str, object]) -> dict[str, tuple[bool, str]]:
    return {x["what"].split(",")[0]: (x["possible"], x["detail"]) for x in found["levels"]}  # type: ignore[attr-defined]


def recordings(folder: Path) -> list[Path]:
    return sorted((folder / "recordings").iterdir())


def test_a_good_folder_is_usable(lpact: Lpact, mine: Path) -> None:
    result = lpact("datasets", "check", "folder", mine)
    assert result.exit_code == 0, result.output
    for told in (
        f"folder in {mine}: usable",
        "4 recordings of 2 subjects, 1 stimulus",
        "Signals were not read: bad units and artefacts still count.",
        "4 of 4 recordings have enough events for 5 folds; units were not checked (--deep does)",
        "B: yes, W: yes, F: yes, S: yes, R: yes, K: yes; units were not checked (--deep does)",
        "Findings: none",
        "To be fixed: nothing",
        "role by default: primary",
    ):
        assert told in result.stdout
    (line,) = [x for x in result.stdout.splitlines() if x.strip().startswith("neural data")]
    assert line.split()[2:4] == ["found", "4"]


def test_the_json_says_the_same_in_full(lpact: Lpact, mine: Path) -> None:
    found = checked(lpact, "folder", mine)
    assert found["role"] == "primary"
    layout = {part["part"]: part for part in found["layout"]}  # type: ignore[attr-defined]
    neural = [(p / "neural.npy").stat().st_size for p in recordings(mine)]
    assert (layout["neural data"]["n_files"], layout["neural data"]["n_bytes"]) == (4, sum(neural))
    assert layout["stimulus audio"]["status"] == "not there"
    first = found["recordings"][0]  # type: ignore[index]
    stored = np.load(recordings(mine)[0] / "neural.npy", mmap_mode="r")
    assert (first["n_samples"], first["n_units"]) == stored.shape
    words = (mine / "stimuli" / first["stimulus"] / "words.tsv").read_text().splitlines()
    assert first["n_words"] == len(words) - 1
    assert first["media"] == {"audio_envelope": "in the dataset"}
    assert first["media_absent"]["audio"] == {"reason": "media_not_offered", "detail": ""}
    able = levels(found)
    assert able["level 1"][0]
    assert able["level 2"][0]
    patterns = able["level 4"][1]
    assert patterns.startswith("patterns: ")
    assert "run_to_run: 4 recordings" in patterns
    assert "session_to_session: no (the subject has no second session)" in patterns
    chain = {link["letter"]: link["there"] for link in found["chain"]}  # type: ignore[attr-defined]
    assert chain == dict.fromkeys("BWFSRK", True)
    assert able["confirmatory"][0]
    assert "surprisal" in able["level 3"][1].split(";")[0]


def test_a_quick_look_reads_no_signal(lpact: Lpact, mine: Path) -> None:
    """Values that only a reader of the signal could see are found by the deep look alone."""
    path = recordings(mine)[0] / "neural.npy"
    values = np.load(path)
    values[10, 3] = np.nan
    values[:, 5] = 7.0
    np.save(path, values)
    quick = checked(lpact, "folder", mine)
    assert [r["findings"] for r in quick["recordings"]] == [[], [], [], []]  # type: ignore[attr-defined]
    deep = checked(lpact, "folder", mine, "--deep", "--no-progress")
    reasons = [f["reason"] for f in deep["recordings"][0]["findings"]]  # type: ignore[index]
    assert sorted(reasons) == ["constant_unit", "non_finite_neural"]
    assert [r["n_units"] for r in deep["recordings"]] == [6, 8, 8, 8]  # type: ignore[attr-defined]
    assert "3 of 4 usable recordings have 8 units or more" in levels(deep)["level 2"][1]
    assert "units were not checked" in levels(quick)["level 1"][1]
    assert "units were not checked" not in json.dumps(deep["levels"])


def test_every_problem_is_listed_not_only_the_first(lpact: Lpact, mine: Path) -> None:
    first, second, *_ = recordings(mine)
    (first / "units.tsv").write_text("unit\tregion\nA\tx\nA\tx\n")
    np.save(second / "neural.npy", np.zeros((10, 3)))
    found = checked(lpact, "folder", mine, status=1)
    told = [problem["what"] for problem in found["problems"]]  # type: ignore[attr-defined]
    assert len(told) == 2
    assert first.name in str(found["problems"])
    assert second.name in str(found["problems"])
    assert len(found["recordings"]) == 2  # type: ignore[arg-type]


def test_a_broken_stimulus_is_reported_once(lpact: Lpact, mine: Path) -> None:
    (words,) = (mine / "stimuli").glob("*/words.tsv")
    words.write_text(words.read_text().replace("\tonset_s", "\tonset", 1))
    found = checked(lpact, "folder", mine, status=1)
    assert len(found["problems"]) == 1  # type: ignore[arg-type]
    assert str(words) in found["problems"][0]["where"]  # type: ignore[index]


def test_a_missing_part_must_be_fixed(lpact: Lpact, mine: Path) -> None:
    for folder in recordings(mine):
        (folder / "neural.npy").unlink()
    result = lpact("datasets", "check", "folder", mine)
    assert result.exit_code == 1
    assert "something must be fixed first" in result.stdout
    assert "missing: neural data (recordings/*/neural.npy)" in result.stdout
    assert "neural.npy' is missing" in result.stdout
    assert "Traceback" not in result.output


def test_too_few_events_for_any_fold_must_be_fixed(lpact: Lpact, mine: Path) -> None:
    (words,) = (mine / "stimuli").glob("*/words.tsv")
    words.write_text("\n".join(words.read_text().splitlines()[:20]) + "\n")
    shutil.rmtree(words.parent / "features")
    for other in ("mechanisms.tsv",):
        path = words.parent / other
        path.write_text("\n".join(path.read_text().splitlines()[:20]) + "\n")
    found = checked(lpact, "folder", mine, status=1)
    assert found["problems"][0]["what"] == "no recording can be used"  # type: ignore[index]
    assert "too_few_events, 19 events" in found["problems"][0]["found"]  # type: ignore[index]
    assert levels(found)["level 4"] == (False, "no recording is usable at level 1")


def test_few_units_take_level_2_away_and_no_more(lpact: Lpact) -> None:
    options = ("--option", "n_units=5", "--option", "n_mechanism_units=1")
    found = checked(lpact, "simulated", *options, "--option", "n_subjects=1")
    able = levels(found)
    assert not able["level 2"][0]
    assert "the largest has 5" in able["level 2"][1]
    assert able["level 1"][0]
    assert "subject_to_subject: no (the dataset has no second subject)" in able["level 4"][1]


def test_without_a_reliability_mode_nothing_is_confirmatory(lpact: Lpact) -> None:
    """Six units are enough for coverage, and too few for a pattern: the chain is open at R."""
    found = checked(lpact, "simulated", "--option", "n_units=6", "--option", "n_mechanism_units=1")
    able = levels(found)
    assert not able["level 4"][0]
    possible, why = able["confirmatory"]
    assert not possible
    assert "R: no, K: yes; missing: R, reliability (no reliability mode is possible" in why


def test_slow_recordings_are_counted_in_volumes(lpact: Lpact) -> None:
    found = checked(lpact, "simulated", "--option", "modality=fmri", "--option", "n_subjects=1")
    first = found["recordings"][0]  # type: ignore[index]
    assert first["sampling_rate_hz"] < 2
    assert 0 < first["n_events"] <= first["n_samples"] < first["n_words"]


def test_a_dataset_of_one_subject_and_run_has_split_halves_only(lpact: Lpact) -> None:
    found = checked(lpact, "simulated", "--option", "n_subjects=1", "--option", "n_runs=1")
    able = levels(found)
    patterns = able["level 4"][1]
    assert patterns.count(": no (") == 3
    assert patterns.endswith("split_half: 1 recording")
    assert not able["confirmatory"][0]
    assert "missing: K, coverage (1 subject-runs" in able["confirmatory"][1]


def test_what_is_not_a_folder_or_reader_is_an_error(lpact: Lpact, tmp_path: Path) -> None:
    for args, told in (
        (("folder", tmp_path / "none"), "there is no such folder"),
        (("folder",), "the reader needs a folder"),
        (("foldr", tmp_path), "did you mean 'folder'?"),
        (("simulated", "--option", "n_unit=3"), "did you mean 'n_units'?"),
        (("simulated", "--option", "n_units"), "an option is not KEY=VALUE"),
        (("simulated", "--option", "n_units=many"), "n_units"),
    ):
        result = lpact("datasets", "check", *args)
        assert result.exit_code == 2
        assert told in result.stderr


def test_options_are_toml_values_or_text() -> None:
    reader = DATASETS.get("simulated")
    given = ["n_units=9", "snr=2", "modality=meg", 'truths=["drift"]', "repeat_stimulus=false"]
    assert reader_options(reader, given) == {
        "n_units": 9,
        "snr": 2,
        "modality": "meg",
        "truths": ["drift"],
        "repeat_stimulus": False,
    }


def test_an_option_that_asks_for_text_gets_text() -> None:
    """``run=001`` is no TOML number, and ``run=1`` is one that the option does not want."""
    reader = DATASETS.get("arrays")
    assert reader_options(reader, ["table=7"]) == {"table": "7"}


def test_an_option_is_given_once() -> None:
    with pytest.raises(ConfigError, match="an option is given twice"):
        reader_options(DATASETS.get("simulated"), ["snr=1.0", "snr=2.0"])


# --- fetch -------------------------------------------------------------------------------------


def test_lengths_are_shown(lpact: Lpact, mine: Path) -> None:
    found = checked(lpact, "folder", mine)
    look = found["recordings"][0]  # type: ignore[index]
    assert look["duration_s"] == look["n_samples"] / look["sampling_rate_hz"]
    assert 0 < look["last_word_s"] < look["duration_s"]
    result = lpact("datasets", "check", "folder", mine)
    assert f"{look['duration_s']:.1f} s" in result.stdout


@pytest.mark.parametrize("more", [(), ("--deep",)])
def test_words_beyond_the_end_are_reported(lpact: Lpact, mine: Path, more: tuple[str, ...]) -> None:
    """A rate that is twice too high leaves half of the words without a signal."""
    first = recordings(mine)[0]
    header = (first / "recording.toml").read_text()
    rate = tomllib.loads(header)["sampling_rate_hz"]
    lines = [
        f"sampling_rate_hz = {2 * rate}" if line.startswith("sampling_rate_hz") else line
        for line in header.splitlines()
    ]
    (first / "recording.toml").write_text("\n".join(lines) + "\n")
    result = lpact("datasets", "check", "folder", mine, *more, "--json")
    looks = json.loads(result.stdout)["recordings"]
    told = [[f for f in x["findings"] if "begin after the end" in f["found"]] for x in looks]
    assert [len(notes) for notes in told] == [1, 0, 0, 0]
    (note,) = told[0]
    assert note["reason"] == "words_outside_recording"
    assert f"at {2 * rate:g} Hz" in note["found"]
    assert note["remedy"].startswith("check the sampling rate first, then where the stimulus starts")
    shown = lpact("datasets", "check", "folder", mine, *more).stdout
    assert "expected: at most 10% of the words beyond the end" in shown


def test_a_folder_one_level_off_is_named(lpact: Lpact, mine: Path) -> None:
    for wrong in (mine.parent, mine / "recordings"):
        result = lpact("datasets", "check", "folder", wrong)
        assert result.exit_code == 1
        assert f"pass {mine.resolve()} instead" in " ".join(result.stdout.split())
        assert checked(lpact, "folder", wrong, status=1)["give_instead"] == [str(mine.resolve())]
    assert checked(lpact, "folder", mine)["give_instead"] == []


def test_fetch_is_offered_only_where_it_helps(lpact: Lpact, mine: Path, tmp_path: Path) -> None:
    offer = "How to get it"
    assert offer not in lpact("datasets", "check", "folder", mine.parent).stdout
    empty = tmp_path / "empty"
    empty.mkdir()
    assert offer in lpact("datasets", "check", "natural_stories", empty).stdout


def test_words_that_were_not_looked_at_are_not_called_missing(lpact: Lpact, tmp_path: Path) -> None:
    (tmp_path / "stimuli").mkdir()
    (tmp_path / "stimuli/podcast_transcript.csv").write_text("word,start,end\nact,1.0,1.2\n")
    (tmp_path / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.8.0"}')
    able = levels(checked(lpact, "podcast_ecog", tmp_path, status=1))
    for level in ("level 1", "level 3"):
        assert able[level] == (
            False,
            "not checked: the folder cannot be opened, see what must be fixed",
        )


def test_fetch_shows_and_stops(lpact: Lpact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    to = tmp_path / "to"
    for more in ((), ("--plan",), ("--plan", "--yes")):
        result = lpact("datasets", "fetch", "podcast_ecog", "--to", to, *more)
        assert result.exit_code == 0, result.output
        for told in ("ds005574", "licence: CC0", "size:", "cite:", "Commands that would run"):
            assert told in result.stdout
        assert f"openneuro-py download --dataset=ds005574 --tag=1.0.2 --target-dir={to}" in (result.stdout)
        assert "Not installed: pip install openneuro-py. Install it first." in result.stdout
    assert not to.exists()


def test_a_command_is_one_line_however_narrow_the_terminal(
    lpact: Lpact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    result = lpact("datasets", "fetch", "narratives", "--to", tmp_path / "to")
    assert result.exit_code == 0, result.output
    (line,) = [x for x in result.stdout.splitlines() if "datalad get --" in x]
    assert line.startswith(f"  (cd {tmp_path / 'to'} && ")
    assert line.endswith("_bold.nii.gz)")
    assert "get -n -- code stimuli derivatives/afni-nosmooth" in result.stdout


def test_fetch_with_yes_and_no_tool_is_an_error(lpact: Lpact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = lpact("datasets", "fetch", "podcast_ecog", "--to", tmp_path / "to", "--yes")
    assert result.exit_code == 2
    assert "pip install openneuro-py" in result.stderr


def test_fetch_as_json(lpact: Lpact, tmp_path: Path) -> None:
    result = lpact("datasets", "fetch", "brain_treebank", "--to", tmp_path / "to", "--json")
    assert result.exit_code == 0
    plan = json.loads(result.stdout)
    assert plan["dataset"] == "brain_treebank"
    assert plan["homepage"] == "https://braintreebank.dev"
    assert {"licence", "size", "citation", "commands", "files", "steps"} <= plan.keys()
    assert not (tmp_path / "to").exists()


def test_fetch_of_what_has_no_source(lpact: Lpact, tmp_path: Path) -> None:
    result = lpact("datasets", "fetch", "folder", "--to", tmp_path)
    assert result.exit_code == 2
    assert "the reader 'folder' has no official download" in result.stderr
    assert "podcast_ecog" in result.stderr
