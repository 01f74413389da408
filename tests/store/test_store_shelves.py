"""Results in an object store, against a real S3 server on loopback."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import polars as pl
import pytest

from lpact.errors import ConfigError, RunError
from lpact.store import FolderShelf, TaskStore
from lpact.store.shelves import RemoteShelf, open_shelf
from lpact.store.tasks import file_name

FRAMES = {"a": pl.DataFrame({"x": [1.0, None, float("nan")], "y": ["ä", "", None]})}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """Address of an S3 server with a bucket ``results``."""
    boto3 = pytest.importorskip("boto3", reason="tool missing: boto3")
    server = pytest.importorskip("moto.server", reason="tool missing: moto")
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ACCESS_KEY_ID", "some")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "body")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer("127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    client.create_bucket(Bucket="results")
    client.close()
    yield f"{host}:{port}"
    running.stop()
    patch.undo()


def url(s3: str, place: str = "results/some/folder") -> str:
    return f"s3://{place}?endpoint_override={s3}&scheme=http&region=us-east-1"


def test_a_result_comes_back_from_the_store(s3, tmp_path):
    store = TaskStore(open_shelf(url(s3)))
    assert store.fault("k") == ""
    n_bytes = store.save("k", FRAMES)
    assert store.fault("k") is None
    assert store.names("k") == ("a",)
    assert store.load("k")["a"].equals(FRAMES["a"], null_equal=True)
    # The same bytes as in a folder, and the same name.
    folder = TaskStore.at(tmp_path)
    assert folder.save("k", FRAMES) == n_bytes
    assert store.content("k") == folder.content("k")
    assert store.shelf.where("ab") == "s3://results/some/folder/ab/ab"
    store.remove("k")
    store.remove("k")
    assert store.fault("k") == ""


def test_another_process_can_be_given_the_shelf(s3):
    store = TaskStore(open_shelf(url(s3)))
    store.save("other", FRAMES)
    again = pickle.loads(pickle.dumps(store))
    assert again.load("other", ["a"])["a"].equals(FRAMES["a"], null_equal=True)


def test_parts_are_read_and_missing_files_said(s3):
    shelf = open_shelf(url(s3, "results/parts"))
    shelf.write("name", b"0123456789")
    assert shelf.size("name") == 10
    assert shelf.read("name", 2, 3) == b"234"
    assert shelf.read("name", 8, 100) == b"89"
    assert shelf.read("name", 10, 4) == b""
    assert shelf.size("none") is None
    with pytest.raises(FileNotFoundError):
        shelf.read("none", 0, 1)
    shelf.write("name", b"new")
    assert shelf.read("name", 0, 100) == b"new"


def test_a_damaged_object_is_found(s3):
    store = TaskStore(open_shelf(url(s3, "results/damaged")))
    store.save("k", FRAMES)
    content = store.content("k")
    for damaged in (content[:-1], content[:-1] + b"x", b""):
        store.shelf.write(file_name("k"), damaged)
        assert store.fault("k")
        with pytest.raises(RunError, match="damaged"):
            store.load("k")
    store.put("k", content)
    assert store.fault("k") is None


def test_a_bucket_that_does_not_exist_is_an_error_with_a_remedy(s3):
    store = TaskStore(open_shelf(url(s3, "nobucket/x")))
    with pytest.raises(RunError, match="AWS_ACCESS_KEY_ID") as error:
        store.save("k", FRAMES)
    assert "s3://nobucket/x/" in str(error.value)


def test_a_store_that_renames_shows_no_half_file():
    # Arrow's file system in memory stands for those that are no object stores.
    shelf = RemoteShelf("mock:///results")
    shelf.write("name", b"whole")
    system, folder = shelf.opened()
    from pyarrow.fs import FileSelector

    found = system.get_file_info(FileSelector(folder, recursive=True))
    assert [file.base_name for file in found if file.is_file] == ["name"]
    assert shelf.read("name", 0, 10) == b"whole"


class Keeping:
    """An object store whose streams, like Arrow's, keep at their end whatever they were given."""

    type_name = "s3"

    def __init__(self, limit: int | None) -> None:
        self.files: dict[str, bytes] = {}
        self.limit = limit

    def get_file_info(self, path: str) -> SimpleNamespace:
        found = self.files.get(path)
        return SimpleNamespace(
            is_file=found is not None, size=None if found is None else len(found)
        )

    def delete_file(self, path: str) -> None:
        del self.files[path]

    @contextmanager
    def open_output_stream(self, path: str) -> Iterator[SimpleNamespace]:
        parts: list[bytes] = []

        def write(content: bytes) -> None:
            parts.append(content[: self.limit])
            if self.limit is not None:
                raise OSError("the network is gone")

        try:
            yield SimpleNamespace(write=write)
        finally:
            if parts:
                self.files[path] = b"".join(parts)


@pytest.mark.parametrize("limit", [0, 3])
def test_a_write_that_fails_keeps_nothing(monkeypatch, limit):
    system = Keeping(limit)
    monkeypatch.setattr("lpact.store.shelves._opened", lambda _: (system, "bucket/x"))
    shelf = RemoteShelf("s3://bucket/x")
    with pytest.raises(RunError, match="the network is gone"):
        shelf.write("name", b"0123456789")
    assert system.files == {}
    system.limit = None
    shelf.write("name", b"0123456789")
    assert list(system.files.values()) == [b"0123456789"]


def test_a_write_that_fails_before_it_begins_keeps_what_was_there(monkeypatch):
    system = Keeping(None)
    monkeypatch.setattr("lpact.store.shelves._opened", lambda _: (system, "bucket/x"))
    shelf = RemoteShelf("s3://bucket/x")
    shelf.write("name", b"0123456789")

    def refuse(_: str) -> None:
        raise OSError("not now")

    monkeypatch.setattr(system, "open_output_stream", refuse)
    with pytest.raises(RunError, match="not now"):
        shelf.write("name", b"0123456789")
    assert list(system.files.values()) == [b"0123456789"]


def test_files_are_listed_by_how_their_names_begin(s3, tmp_path):
    for shelf in (
        open_shelf(url(s3, "results/listed")),
        RemoteShelf("mock:///listed"),
        FolderShelf(tmp_path),
    ):
        assert shelf.names("sources-") == []
        for name in ("sources-b", "sources-a", "soap", "ab12.task"):
            shelf.write(name, b"x")
        assert shelf.names("sources-") == ["sources-a", "sources-b"]
        assert shelf.names("ab") == ["ab12.task"]


def test_folders_stay_folders(tmp_path):
    assert open_shelf(str(tmp_path)) == FolderShelf(tmp_path)
    assert open_shelf((tmp_path / "ä b").as_uri()) == FolderShelf(tmp_path / "ä b")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("s3://key:secret@bucket/x", "must not contain a key"),
        ("s3://", "without a bucket"),
        ("s3://bucket/x?nope=1", "nope"),
        ("nonsense://bucket", "nonsense"),
        ("file://elsewhere/x", "a host or a query"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(place, told):
    with pytest.raises(ConfigError, match=told) as error:
        open_shelf(place)
    assert "secret" not in str(error.value)
