"""The file of a registration: its digest, what is refused, and that nothing is overwritten."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lpact.errors import RunError
from lpact.run.preregistration.record import (
    Content,
    Registration,
    TableRows,
    new_registration,
    read_registration,
    write_registration,
)
from lpact.store import InputFile

EVIL = 'a"\n[red]\x1b[31m é'


@pytest.fixture
def registration() -> Registration:
    content = Content(
        study="s",
        seed=3,
        config={"name": "s", "x": [1.5, None, True]},
        config_digest="c",
        lpact_version="1",
        lpact_code="2",
        versions={"numpy": "2"},
        plugins=(),
        inputs=(InputFile(dataset="d", path=EVIL, n_bytes=1, sha256="0" * 64),),
        audit={"audits/units": ({"dataset": "d", "subject": EVIL, "used": True, "n_units": 4},)},
        rows={"t": TableRows(n_rows=2, at_most=True)},
        claims={"lpact": ("d/m/1/z",)},
    )
    return new_registration(content, datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC))


def test_the_digest_is_over_everything_but_the_time(registration: Registration) -> None:
    values = json.loads(registration.text())
    assert values.pop("registered_at") == "2024-05-06T07:08:09Z"
    digest = values.pop("digest")
    dated = f"{digest} 2024-05-06T07:08:09Z"
    assert values.pop("dated_digest") == hashlib.sha256(dated.encode()).hexdigest()
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest == hashlib.sha256(text.encode()).hexdigest()
    later = new_registration(registration.registered, datetime(2025, 1, 1, tzinfo=UTC))
    assert (later.digest, later.registered_at) == (digest, "2025-01-01T00:00:00Z")


def test_what_is_written_is_read(registration: Registration, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "registered.json"
    write_registration(registration, path)
    assert read_registration(path) == registration
    assert registration.intact
    assert path.read_bytes() == registration.text().encode()
    assert [p.name for p in path.parent.iterdir()] == ["registered.json"]


def test_nothing_is_overwritten(registration: Registration, tmp_path: Path) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text("mine", encoding="utf-8")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nowhere")
    for path in (taken, link, tmp_path):
        with pytest.raises(RunError, match="never overwritten"):
            write_registration(registration, path)
    assert taken.read_text(encoding="utf-8") == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "taken.json"]


def test_a_name_that_is_taken_at_the_last_moment_is_left_alone(
    registration: Registration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes between the first look and the last step."""
    path = tmp_path / "r.json"
    theirs = lambda taken: taken.write_text("theirs", encoding="utf-8")  # noqa: E731
    monkeypatch.setattr("lpact.run.preregistration.record.refuse_taken", theirs)
    with pytest.raises(RunError, match="cannot be written"):
        write_registration(registration, path)
    assert path.read_text(encoding="utf-8") == "theirs"


def test_a_full_disk_leaves_no_part_of_a_registration(
    registration: Registration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="No space left"):
        write_registration(registration, tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[str], bytes]:
    def edit(text: str) -> bytes:
        values = json.loads(text)
        change(values)
        return json.dumps(values).encode()

    return edit


REFUSED: dict[str, tuple[Callable[[str], bytes], str]] = {
    "empty": (lambda _: b"", "not a registration"),
    "a study file": (lambda _: b'name = "x"\n', "not a registration"),
    "other JSON": (lambda _: b'{"format": "lpact"}', "not a registration"),
    "a list": (lambda _: b"[1]", "not a registration"),
    "an archive": (lambda _: b"\x1f\x8b\x08\xff", "not a registration"),
    "cut in half": (lambda t: t.encode()[: len(t) // 2], "damaged or edited"),
    "last brace cut": (lambda t: t.rstrip()[:-1].encode(), "damaged or edited"),
    "cut in a word": (lambda t: t[: t.index('"registered_at"') + 5].encode(), "damaged or edited"),
    "newer": (edited(lambda v: v.update(format_version=3)), "another version of lpact"),
    "without a version": (edited(lambda v: v.pop("format_version")), "another version of lpact"),
    "a field more": (edited(lambda v: v.update(note="x")), "note"),
    "a field less": (edited(lambda v: v.pop("digest")), "digest"),
    "no time": (edited(lambda v: v.update(registered_at="yesterday")), "registered_at"),
    "a time that is a number": (edited(lambda v: v.update(registered_at=3)), "registered_at"),
    "a seed in words": (edited(lambda v: v["registered"].update(seed="3")), "registered.seed"),
    "an unknown item": (edited(lambda v: v["registered"].update(x=1)), "registered.x"),
    "a claim less": (edited(lambda v: v["registered"].pop("claims")), "registered.claims"),
    "a field twice": (
        lambda t: t.replace('"seed": 3', '"seed": 3, "seed": 4').encode(),
        "'seed' twice",
    ),
    "no number": (lambda t: t.replace("1.5", "NaN").encode(), "NaN"),
    "very deep": (lambda _: b'{"a":' * 100_000, "damaged or edited"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_that_cannot_be_trusted_is_refused(registration: Registration, tmp_path: Path, what: str) -> None:
    damage, message = REFUSED[what]
    path = tmp_path / "r.json"
    path.write_bytes(damage(registration.text()))
    with pytest.raises(RunError) as caught:
        read_registration(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_white_space_is_no_edit(registration: Registration, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(json.loads(registration.text())), encoding="utf-8")
    assert read_registration(path) == registration


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.json")
    with pytest.raises(RunError, match="a pipe, a device or another special file"):
        read_registration(tmp_path / "r.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(RunError, match="cannot be read"):
            read_registration(path)
