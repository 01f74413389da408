"""Tables, texts, folders and HDF5 files are read strictly: whatever is odd about them is named, with its place."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from lpact.codes import Reason
from lpact.datasets._files.hdf5 import (
    hdf5_dataset,
    hdf5_object,
    never_written,
    never_written_finding,
    open_hdf5,
)
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import (
    About,
    TextTable,
    read_numbers,
    read_text,
    read_toml,
    validate_toml,
)
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.validation import Strict

NOT_FINITE = ("1e999", "-1e999", "9" * 400, "inf", "nan ", "1_0", "٣")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


class TestNumbers:
    @pytest.mark.parametrize("cell", NOT_FINITE)
    @pytest.mark.parametrize("suffix", ["tsv", "csv"])
    def test_what_is_not_a_finite_number_is_refused(self, tmp_path: Path, cell: str, suffix: str) -> None:
        path = write(tmp_path / f"t.{suffix}", f"x\n1\n{cell}\n")
        table = TextTable(path, RecordingError)
        for column in (table.numbers, table.numbers_or_nan, table.integers):
            with pytest.raises(RecordingError) as caught:
                column("x")
            assert caught.value.where == f"{path}, line 3, column 'x'"
            assert caught.value.got == repr(cell)

    def test_finite_numbers_are_read_and_gaps_are_nan(self, tmp_path: Path) -> None:
        table = TextTable(write(tmp_path / "t.tsv", "x\n-1.5e300\nn/a\n.25\n"), RecordingError)
        np.testing.assert_array_equal(table.numbers_or_nan("x"), [-1.5e300, np.nan, 0.25])

    def test_plain_tables(self, tmp_path: Path) -> None:
        path = write(tmp_path / "n.txt", "1 2\n3 1e999\n")
        with pytest.raises(RecordingError, match=r"n\.txt, line 2"):
            read_numbers(path, RecordingError, shape=(2, 2))

    @pytest.mark.parametrize("value", ["1" * 400, "1" * 5000, "inf", "[" * 5000])
    def test_toml_numbers(self, tmp_path: Path, value: str) -> None:
        class Clock(Strict):
            x: float

        path = write(tmp_path / "a.toml", f"x = {value}\n")
        with pytest.raises(InputError) as caught:
            validate_toml(Clock, read_toml(path, InputError), path, InputError)
        assert str(path) in str(caught.value.where)

    def test_every_wrong_key_is_listed(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.toml", 'source = 1\nversion = ""\nlicense = "CC0"\n')
        with pytest.raises(InputError) as caught:
            validate_toml(About, read_toml(path, InputError), path, InputError)
        for message in ("source: ", "version: ", "did you mean 'licence'"):
            assert message in str(caught.value)


class TestCsv:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('word,x\na,1\n"open,2\nc,3\n', 3),
            ('x,word\n1,a\n2,"open\n3,c\n', 3),
            ('word,x\na,1\n"open,2\n' + "c,3\n" * 60_000, 3),
            ('word,x\n"a"b,1\n', 2),
        ],
        ids=["first cell", "last cell", "more than the parser holds", "text after a quote"],
    )
    def test_quotes_that_are_not_closed_are_named(self, tmp_path: Path, text: str, line: int) -> None:
        path = write(tmp_path / "t.csv", text)
        with pytest.raises(StimulusError) as caught:
            TextTable(path, StimulusError)
        assert f"{path}, lines {line} to " in str(caught.value.where)
        assert f"in line {line} first" in str(caught.value.remedy)

    def test_cells_may_hold_quotes_commas_and_lines(self, tmp_path: Path) -> None:
        text = 'word,x\n"a ""b"", c",1\n\n"two\nlines",2\nlast,soon\n'
        table = TextTable(write(tmp_path / "t.csv", text), StimulusError)
        assert table.cells("word") == ['a "b", c', "two\nlines", "last"]
        # Lines are those of the file, whatever empty lines and line breaks in cells there are.
        with pytest.raises(StimulusError, match="line 6, column 'x'"):
            table.numbers("x")

    def test_a_table_without_a_header_counts_from_its_first_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", "a,1\nb,?\n")
        table = TextTable(path, StimulusError, header=("word", "x"))
        with pytest.raises(StimulusError, match="line 2, column 'x'"):
            table.numbers("x")


@pytest.mark.parametrize("suffix", ["tsv", "csv", "toml", "txt"])
def test_nul_is_in_no_text(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"t.{suffix}", "word\nno\nw\0rd\n")
    readers = {
        "tsv": lambda: TextTable(path, StimulusError),
        "csv": lambda: TextTable(path, StimulusError),
        "toml": lambda: read_toml(path, StimulusError),
        "txt": lambda: read_text(path, StimulusError),
    }
    with pytest.raises(StimulusError, match="NUL") as caught:
        readers[suffix]()
    assert caught.value.where == f"{path}, line 3"


class TestSourceFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> SourceFolder:
        root = tmp_path / "secret-neighbourhood" / "data"
        (root / "sub").mkdir(parents=True)
        (root / "sub" / "a.tsv").write_text("x")
        (root.parent / "neighbour.tsv").write_text("x")
        (root / "away").symlink_to(root.parent)
        return SourceFolder(root, name="d", expected="a folder")

    @pytest.mark.parametrize("there", ["neighbour.tsv", "nothing.tsv"])
    @pytest.mark.parametrize("form", ["../{}", "sub/../../{}", "{absolute}", "away/{}", "away/no/{}"])
    def test_paths_out_of_the_folder_are_refused_there_or_not(
        self, folder: SourceFolder, form: str, there: str
    ) -> None:
        path = form.format(there, absolute=folder.root.parent / there)
        for look in (folder.file, folder.optional):
            with pytest.raises(RecordingError) as caught:
                look(path, RecordingError)
            assert "leads out of the dataset's folder" in caught.value.what
            # What lies outside is not told, but for what the path itself names.
            assert "neighbour.tsv" not in str(caught.value).replace(path, "").replace(there, "")
            assert "inside" in str(caught.value.expected)

    @pytest.mark.parametrize("pattern", ["../*.tsv", "/etc/*", "away/*.tsv"])
    def test_globs_stay_inside(self, folder: SourceFolder, pattern: str) -> None:
        with pytest.raises(InputError, match="leads out of the dataset's folder"):
            folder.glob(pattern)

    def test_paths_inside_are_fine(self, folder: SourceFolder) -> None:
        assert folder.file("sub/../sub/a.tsv").read_text() == "x"
        assert folder.optional("sub/b.tsv") is None
        assert folder.optional("x" * 5000) is None
        with pytest.raises(InputError, match=r"'sub/b.tsv' is missing(.|\n)*a.tsv"):
            folder.file("sub/b.tsv")
        with pytest.raises(InputError, match="is missing"):
            folder.file("x" * 5000)
        (folder.root / "loop").symlink_to(folder.root / "loop")
        with pytest.raises(InputError, match="a link to itself"):
            folder.file("loop")
        with pytest.raises(InputError, match="leads out"):
            folder.file("a\0b")


class TestHdf5:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A file with links of every kind, beside another one that does exist."""
        values = np.arange(6.0)
        with h5py.File(tmp_path / "other.h5", "w") as file:
            file["g/x"] = values
            file["g"].attrs["rate"] = 77.0
        (tmp_path / "raw").write_bytes(values.tobytes())
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["d/x"] = values
            file["d"].attrs["rate"] = 5.0
            file["out"] = h5py.ExternalLink("other.h5", "/g")
            file["soft_out"] = h5py.SoftLink("/out")
            file["soft_out_x"] = h5py.SoftLink("/soft_out/x")
            file["soft"] = h5py.SoftLink("/d/x")
            file["d/soft"] = h5py.SoftLink("x")
            file["group"] = h5py.SoftLink("d")
            file["loop"] = h5py.SoftLink("/pool")
            file["pool"] = h5py.SoftLink("/loop")
            file["nowhere"] = h5py.SoftLink("/nothing")
            file["type"] = np.dtype("f8")
            file.create_dataset("raw", (6,), "f8", external=[("raw", 0, 48)])
            layout = h5py.VirtualLayout((6,), "f8")
            layout[:] = h5py.VirtualSource("other.h5", "g/x", shape=(6,))
            file.create_virtual_dataset("virtual", layout)
        return tmp_path / "a.h5"

    @pytest.mark.parametrize("name", ["d/x", "/d/x", "soft", "d/soft", "group/soft", "./d/./x"])
    def test_what_lies_in_the_file_is_found(self, path: Path, name: str) -> None:
        with open_hdf5(path, RecordingError) as file:
            np.testing.assert_array_equal(hdf5_dataset(file, name, RecordingError), np.arange(6.0))
            assert hdf5_object(file, "group", RecordingError).attrs["rate"] == 5.0
            assert "d" in hdf5_object(file, "/", RecordingError)

    @pytest.mark.parametrize(
        ("name", "what", "got"),
        [
            ("out", "leads out", "other.h5"),
            ("out/x", "leads out", "other.h5"),
            ("soft_out", "leads out", "other.h5"),
            ("soft_out/x", "leads out", "other.h5"),
            ("soft_out_x", "leads out", "other.h5"),
            ("raw", "leads out", "external storage"),
            ("virtual", "leads out", "a virtual dataset"),
            ("loop", "has no dataset", "a link in a loop"),
            ("nowhere", "has no dataset", "without a target"),
            ("d", "not a dataset", "soft, x"),
            ("type", "not a dataset", "a datatype"),
            ("d/y", "has no dataset 'd/y'", "'d/x'"),
            ("d/x/y", "has no dataset", "'d/x'"),
        ],
    )
    def test_whatever_else_is_named(self, path: Path, name: str, what: str, got: str) -> None:
        with open_hdf5(path, RecordingError) as file, pytest.raises(RecordingError) as caught:
            hdf5_dataset(file, name, RecordingError)
        assert what in caught.value.what
        assert got in str(caught.value.got)
        assert caught.value.where == f"{path}, '{name}'"

    def test_no_other_file_is_opened(self, path: Path) -> None:
        """A named pipe in its place would hang whoever opened it."""
        other = path.parent / "other.h5"
        other.unlink()
        os.mkfifo(other)
        with open_hdf5(path, RecordingError) as file, pytest.raises(RecordingError):
            hdf5_object(file, "soft_out", RecordingError)

    def test_parts_that_were_never_written_are_told(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            chunked = file.create_dataset("chunked", (10, 4), "f4", chunks=(3, 4), fillvalue=-1.0)
            chunked[:6] = 1.0
            file["all"] = np.ones((3, 4))
            file.create_dataset("none", (10,), "f4")
            file.create_dataset("empty", (0, 4), "f4", chunks=(3, 4), maxshape=(None, 4))
            file["null"] = h5py.Empty("f4")
            told = {name: never_written(file[name]) for name in file}
        assert told.pop("chunked") == "2 of 4 chunks were never stored; they read as -1.0"
        assert told.pop("none") == "no value was ever stored; all read as 0.0"
        assert told == {"all": "", "empty": "", "null": ""}
        note = never_written_finding("some", field="E1", where="there")
        assert (note.reason, note.severity, note.field) == (Reason.MISSING_SAMPLES, "note", "E1")

    def test_a_defect_inside_the_file_is_named(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x"] = np.ones(3)
        with (
            pytest.raises(RecordingError, match="may be truncated"),
            open_hdf5(tmp_path / "a.h5", RecordingError),
        ):
            raise RuntimeError("Unable to do something (wrong B-tree signature)")
        with pytest.raises(NotImplementedError), open_hdf5(tmp_path / "a.h5", RecordingError):
            raise NotImplementedError


def test_semicolons_are_named_as_such(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("text;start;end\na;0,5;1,0\n", encoding="utf-8")
    with pytest.raises(StimulusError) as error:
        TextTable(path, StimulusError).require(("text",))
    assert error.value.remedy.startswith("separate cells by commas, not by semicolons")
