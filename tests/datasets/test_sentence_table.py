"""Reader of sentence tables: exact responses, shared stimuli, and tables that are broken."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dataset_writers.sentence_table import ROIS, write_sentence_table
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import DATASETS, Dataset, DatasetInfo, Epochs, RecordingId
from lpact.errors import InputError, LPactError, RecordingError, StimulusError
from lpact.grid import build_grid

SENTENCES = GridConfig(events="sentences", lags_ms=(0.0,))


def opened(folder: Path, **options: object) -> Dataset:
    return DATASETS.build("sentence_table", options).open(name="table", path=folder, seed=0)


def responses(dataset: Dataset, recording_id: RecordingId) -> np.ndarray:
    signal = dataset.recording(recording_id).signal
    assert isinstance(signal, Epochs)
    return signal.values[0]


@pytest.mark.parametrize("wide", [False, True])
def test_every_sentence_has_its_own_responses(wide: bool, tmp_path: Path) -> None:
    truth = write_sentence_table(tmp_path, wide=wide)
    dataset = opened(tmp_path, **({"response_columns": list(ROIS)} if wide else {}))
    assert [i.subject for i in dataset.recording_ids()] == sorted(truth.values)
    for recording_id in dataset.recording_ids():
        recording = dataset.recording(recording_id)
        stimulus = dataset.stimulus(recording_id.stimulus)
        grid = build_grid(recording, stimulus, SENTENCES)
        order = [ROIS.index(unit) for unit in recording.units.ids]
        assert np.array_equal(grid.responses[0], truth.values[recording_id.subject][:, order])
        code = recording.units.ids.index(ROIS[0])
        assert np.array_equal(grid.responses[0, :, code], np.arange(grid.n_events) + 1)
        own = [truth.sentences[item - 1] for item in truth.items_of[recording_id.subject]]
        text = [
            " ".join(stimulus.words["word"][int(a) : int(b)])
            for a, b in zip(grid.first_word, grid.stop_word, strict=True)
        ]
        assert text == own
        assert len(set(grid.story.tolist())) == len(own)


def test_subjects_with_the_same_sentences_share_a_stimulus(tmp_path: Path) -> None:
    write_sentence_table(tmp_path)
    first, second, third = opened(tmp_path).recording_ids()
    assert first.stimulus == second.stimulus != third.stimulus
    (only,) = opened(tmp_path, subjects=["849"], rois=["lang_LH_IFG"]).recording_ids()
    assert only.stimulus == "sentences"


def test_columns_that_go_with_a_sentence_are_kept(tmp_path: Path) -> None:
    write_sentence_table(tmp_path)
    words = opened(tmp_path).stimulus("sentences-1").words
    by_item = words.unique("item_id").sort("item_id")
    assert by_item["cond"].to_list() == ["BDS"[i % 3] for i in by_item["item_id"]]
    assert by_item["rating_frequency_mean"][1] == pytest.approx(1.2857)
    assert "response_target_non_norm" not in words.columns
    assert "roi" not in words.columns


def test_options_name_other_columns(tmp_path: Path) -> None:
    rows = [
        {"text": "One two.", "block": "b", "LH": 1.5, "RH": 2.5},
        {"text": "Three four.", "block": "a", "LH": 3.5, "RH": 4.5},
        {"text": "Five.", "block": "b", "LH": 5.5, "RH": 6.5},
    ]
    _write(tmp_path, rows)
    dataset = opened(
        tmp_path,
        item_column="",
        sentence_column="text",
        subject_column="",
        passage_column="block",
        response_columns=["RH", "LH"],
        physical_unit="z",
    )
    (recording_id,) = dataset.recording_ids()
    assert recording_id.subject == "group"
    # Passages stand together, in the order in which they first appear.
    assert responses(dataset, recording_id).tolist() == [[2.5, 1.5], [6.5, 5.5], [4.5, 3.5]]
    words = dataset.stimulus("sentences").words
    assert words["word"].to_list() == ["One", "two.", "Five.", "Three", "four."]
    assert words["story_id"].to_list() == ["b", "b", "b", "a", "a"]
    assert dataset.recording(recording_id).signal.physical_unit == "z"


def test_repetitions_need_sessions(tmp_path: Path) -> None:
    rows = [{**row, "session": i} for i in (1, 2) for row in _rows()]
    _write(tmp_path, rows)
    _expect(RecordingError, tmp_path, "a response is listed twice", "lines 2 and 6", "session_column")
    dataset = opened(tmp_path, session_column="session")
    assert [(i.subject, i.session) for i in dataset.recording_ids()] == [("1", "1"), ("1", "2")]


def test_sentences_without_all_regions_stop_or_are_left_out(tmp_path: Path) -> None:
    rows = _rows()
    rows[3]["response_target"] = "NA"
    _write(tmp_path, rows)
    _expect(RecordingError, tmp_path, "sentence '2' has no response in 'B'", "leave_out")
    dataset = opened(tmp_path, missing="leave_out")
    recording = dataset.recording(dataset.recording_ids()[0])
    assert responses(dataset, recording.id).tolist() == [[1.0, 2.0]]
    assert [f.reason for f in recording.findings] == [Reason.SOURCE_ROWS_LEFT_OUT]
    assert dataset.stimulus("sentences").words["word"].to_list() == ["One", "two."]
    _write(tmp_path, _rows()[:3])
    _expect(RecordingError, tmp_path, "sentence '2' has no response in 'B'")


def _cell(row: int, column: str, value: object) -> Callable[[list[dict[str, object]]], None]:
    return lambda rows: rows[row].update({column: value})


def _same_sentence(rows: list[dict[str, object]]) -> None:
    rows[2]["sentence"] = rows[3]["sentence"] = "One two."


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (
            _cell(1, "sentence", "Other."),
            InputError,
            "one sentence for '1', which has 'One two.' before",
        ),
        (_same_sentence, InputError, "this one is '1' and '2'"),
        (_cell(0, "response_target", "1,5"), InputError, "line 2, column 'response_target'"),
        (_cell(0, "sentence", ""), InputError, "line 2, column 'sentence'"),
        (_cell(0, "roi", ""), InputError, "line 2, column 'roi'"),
        (_cell(0, "target_UID", ""), InputError, "line 2, column 'target_UID'"),
    ],
)
def test_wrong_cells_are_named(
    change: Callable[[list[dict[str, object]]], None],
    kind: type[LPactError],
    said: str,
    tmp_path: Path,
) -> None:
    rows = _rows()
    change(rows)
    _write(tmp_path, rows)
    _expect(kind, tmp_path, said, "table.csv")


def test_a_sentence_of_blanks_is_named(tmp_path: Path) -> None:
    rows = _rows()
    for row in rows[:2]:
        row["sentence"] = "  "
    _write(tmp_path, rows)
    with pytest.raises(StimulusError, match="the text of a sentence"):
        opened(tmp_path).stimulus("sentences")


def test_files_that_are_missing_broken_or_unclear_are_named(tmp_path: Path) -> None:
    _expect(InputError, tmp_path, "there is no file")
    path = _write(tmp_path, _rows())
    path.write_bytes(path.read_bytes() + "3,Caf\xe9.,1,A,1\r\n".encode("latin-1"))
    _expect(InputError, tmp_path, "UnicodeDecodeError", "encoding", "table.csv")
    _write(tmp_path, [{k: v for k, v in row.items() if k != "roi"} for row in _rows()])
    _expect(InputError, tmp_path, "the column 'roi' is missing", "line 1")
    path.write_text(path.read_text(encoding="utf-8") + "3,Torn", encoding="utf-8")
    _expect(InputError, tmp_path, "one cell per column", "line 6")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    _expect(InputError, tmp_path, "there are several files", 'file = "other.csv"')
    with pytest.raises(InputError, match="the folder does not exist"):
        opened(tmp_path / "nowhere")


def test_names_that_are_not_in_the_table_are_named(tmp_path: Path) -> None:
    _write(tmp_path, _rows())
    with pytest.raises(InputError, match="there is no subject '12'") as error:
        opened(tmp_path, subjects=["12"])
    assert "option 'subjects'" in str(error.value)
    with pytest.raises(InputError, match="there is no roi 'C'"):
        opened(tmp_path, rois=["C"])


def _rows() -> list[dict[str, object]]:
    return [
        {"item_id": 1, "sentence": "One two.", "target_UID": 1, "roi": "A", "response_target": 1.0},
        {"item_id": 1, "sentence": "One two.", "target_UID": 1, "roi": "B", "response_target": 2.0},
        {"item_id": 2, "sentence": "Three.", "target_UID": 1, "roi": "A", "response_target": 3.0},
        {"item_id": 2, "sentence": "Three.", "target_UID": 1, "roi": "B", "response_target": 4.0},
    ]


def _write(folder: Path, rows: list[dict[str, object]]) -> Path:
    path = folder / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def _expect(kind: type[LPactError], folder: Path, *said: str) -> None:
    with pytest.raises(kind) as error:
        opened(folder)
    for part in said:
        assert part in str(error.value)


def test_provenance_is_what_the_options_say(tmp_path: Path) -> None:
    write_sentence_table(tmp_path)
    plain = opened(tmp_path)
    assert plain.info.source.startswith("table ")
    assert plain.info.version == "not stated"
    given = {"source": "Tuckute et al. 2024", "version": "20230728", "licence": "CC BY 4.0"}
    dataset = opened(tmp_path, **given)
    assert dataset.info == DatasetInfo("Tuckute et al. 2024", "20230728", "CC BY 4.0")
    assert {file.licence for file in dataset.source_files()} == {"CC BY 4.0"}
