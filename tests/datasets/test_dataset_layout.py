"""Expected layouts: which files belong to a part, and what of a part is in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpact.datasets.base import DATASETS
from lpact.datasets.catalogue import Expected, find_instead, find_parts

FILES = (
    "sub_1_trial000.h5",
    "all/sub_2_trial001.h5",
    "all/deep/er/sub_2_trial001.h5",
    "stimuli/a.wav",
    "stimuli/deep/b.wav",
    "sub-01/meg/x.con",
    "sub-1x/meg/x.con",
    ".hidden/a.wav",
    "notes(1)+.txt",
)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("sub_*_trial*.h5", {0}),
        ("all/*.h5", {1}),
        ("all/**/*.h5", {1, 2}),
        ("**/*.h5", {0, 1, 2}),
        ("stimuli", {3, 4}),
        ("stimuli/**", {3, 4}),
        ("stimuli/*.wav", {3}),
        ("sub-[0-9][0-9]/meg/*.con", {5}),
        ("sub-[0-9][!0-9]/meg/*.con", {6}),
        ("sub-??", {5, 6}),
        ("notes(1)+.txt", {8}),
        ("nothing/*", set()),
    ],
)
def test_patterns_name_the_same_files_on_disk_and_in_words(tmp_path: Path, pattern: str, wanted: set[int]) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    part = Expected("part", (pattern,))
    assert {i for i, name in enumerate(FILES) if part.holds(name)} == wanted
    (found,) = find_parts(tmp_path, (part,))
    assert (found.n_files, found.n_bytes) == (len(wanted), 5 * len(wanted))


def test_the_first_alternative_that_matches_counts(tmp_path: Path) -> None:
    for name in ("b.csv", "c.csv"):
        (tmp_path / name).write_text("x")
    (found,) = find_parts(tmp_path, (Expected("words", ("a.csv", "b.csv", "c.csv")),))
    assert (found.pattern, found.n_files, found.status) == ("b.csv", 1, "found")


def test_what_is_not_there_is_missing_optional_or_a_boundary(tmp_path: Path) -> None:
    parts = find_parts(
        tmp_path,
        (
            Expected("needed", ("a",)),
            Expected("optional", ("b",), needed=False),
            Expected("boundary", ("c",), boundary="word times may stand in"),
        ),
    )
    assert [p.status for p in parts] == ["missing", "not there", "not released"]
    assert [p.must_be_fixed for p in parts] == [True, False, False]


def test_links_without_content_are_told_apart(tmp_path: Path) -> None:
    """A DataLad clone has names only until content is fetched."""
    layout = (Expected("data", ("*.h5",)),)
    (tmp_path / "a.h5").symlink_to(".git/annex/objects/a")
    (found,) = find_parts(tmp_path, layout)
    assert (found.n_files, found.n_without_content, found.status) == (1, 1, "no content")
    assert found.must_be_fixed
    (tmp_path / "b.h5").write_bytes(b"1")
    (found,) = find_parts(tmp_path, layout)
    assert (found.n_files, found.n_without_content, found.status) == (2, 1, "found")


@pytest.mark.parametrize("entry", DATASETS.entries(), ids=lambda entry: entry.name)
def test_every_reader_from_a_folder_tells_its_layout(entry: object) -> None:
    reader = entry.plugin  # type: ignore[attr-defined]
    parts = [part.what for part in reader.layout]
    assert len(set(parts)) == len(parts)
    if reader.needs_path:
        assert any(part.needed for part in reader.layout)


LAYOUT = (
    Expected("words", ("stimuli/*.csv",)),
    Expected("volumes", ("sub-*/**/*.nii", "**/*.nii")),
    Expected("films", ("films/*",), boundary="not released"),
    Expected("audio", ("*.wav",), needed=False),
)


def test_a_folder_one_level_off_is_found(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "data"
    for name in ("ds1/stimuli/a.csv", "ds1/sub-01/func/b.nii", "ds2/stimuli/a.csv", ".ds3/a.csv"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    assert find_instead(root, LAYOUT) == [root / "ds1"]
    assert find_instead(root / "ds1/stimuli", LAYOUT) == [root / "ds1"]
    assert find_instead(root / "ds1", LAYOUT) == []
    assert find_instead(root / "ds2", LAYOUT) == []
    assert find_instead(root / "ds1/sub-01/func", LAYOUT) == []


def test_sidecars_are_no_recordings(tmp_path: Path) -> None:
    folder = tmp_path / "sub-01/eeg"
    folder.mkdir(parents=True)
    (folder / "sub-01_task-x_eeg.json").write_text("{}")
    (part,) = [p for p in DATASETS.get("bids").layout if p.what == "recordings"]
    assert find_parts(tmp_path, (part,))[0].status == "missing"
    (folder / "sub-01_task-x_eeg.edf").write_bytes(b"x")
    assert find_parts(tmp_path, (part,))[0].n_files == 1
