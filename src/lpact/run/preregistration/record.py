"""The registration as a file: canonical JSON with a digest over everything but its time, and one over both."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from lpact.errors import ConfigError, RunError
from lpact.run.preregistration.content import Content
from lpact.store import storage_errors

FORMAT = "lpact preregistration"
FORMAT_VERSION = 1
REGISTRATION_NAME = "preregistration.json"
"""Name of the copy that a run keeps."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@dataclass(frozen=True)
class Registration:
    """What was registered, and when; ``digest`` and ``dated_digest`` are those that were written down with it."""

    content: Content
    registered_at: str
    digest: str
    dated_digest: str

    @property
    def found_digest(self) -> str:
        """Digest of the content as it is now."""
        return content_digest(self.content)

    @property
    def intact(self) -> bool:
        """Whether content and time are what the digests were made of."""
        return self.digest == self.found_digest and self.time_intact

    @property
    def time_intact(self) -> bool:
        """Whether the time is the one that was written down with the digest."""
        return self.dated_digest == _dated(self.digest, self.registered_at)

    def text(self) -> str:
        """The file: sorted keys, two spaces, a newline at the end."""
        return _canonical(
            {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "digest": self.digest,
                "dated_digest": self.dated_digest,
                "registered_at": self.registered_at,
                "registered": self.content.model_dump(mode="json"),
            }
        )


def new_registration(content: Content, now: datetime | None = None) -> Registration:
    """Freeze ``content``; ``now`` is this moment unless given."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    # What is frozen is what can be read back: tuples are lists in JSON, and so on.
    plain = Content.model_validate_json(content.model_dump_json())
    digest, time = content_digest(plain), moment.strftime(_TIME)
    return Registration(plain, time, digest, _dated(digest, time))


def content_digest(content: Content) -> str:
    """SHA-256 of the format and everything that is registered, as JSON without white space."""
    values = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "registered": content.model_dump(mode="json"),
    }
    text = json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _dated(digest: str, registered_at: str) -> str:
    """SHA-256 of a digest and a time: an edit of the time alone does not go unseen."""
    return hashlib.sha256(f"{digest} {registered_at}".encode()).hexdigest()


def refuse_other_digest(registration: Registration, digest: str, *, where: str) -> None:
    """Refuse a registration whose content does not have the deposited ``digest``."""
    wanted = deposited_digest(digest, where=where)
    if registration.found_digest != wanted:
        raise RunError(
            "the registration is not the one that was deposited",
            where=where,
            got=f"a file whose content has the digest {registration.found_digest}",
            expected=f"the digest {wanted}",
            remedy="use the file that was deposited; one that was edited or made anew is another registration",
        )


def deposited_digest(text: str, *, where: str) -> str:
    """A digest as it was deposited, in small letters; a `ConfigError` for what can be none."""
    digest = text.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ConfigError(
            "this is no digest of a registration",
            where=where,
            got=text,
            expected="64 digits from 0 to f",
            remedy="give the whole digest that `lpact preregister` printed",
        )
    return digest


def refuse_taken(path: Path) -> None:
    """Refuse a place where something is already; a registration is never overwritten."""
    if path.exists() or path.is_symlink():
        raise RunError(
            "a registration is never overwritten",
            where=str(path),
            got="a file, folder or link of that name",
            expected="a name that is not taken",
            remedy="name another file with --out; keep the first registration, so that both can be seen",
        )


def write_registration(registration: Registration, path: Path) -> None:
    """Write the file at once, or not at all; raises `RunError` where something has the name."""
    refuse_taken(path)
    content = registration.text().encode()
    with storage_errors(path, "the registration cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            _write(temporary, content)
            _take_name(temporary, path, content)
        except FileExistsError:
            refuse_taken(path)
            raise
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


def _take_name(temporary: Path, path: Path, content: bytes) -> None:
    """Give a finished file its name, unless that was taken meanwhile."""
    try:
        # Unlike a rename, a link never replaces what is there.
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write(path, content)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


def read_registration(path: str | Path) -> Registration:
    """Read a registration; a `RunError` says what is wrong with a file that is none, cut short, damaged or newer.

    A file that was edited but can still be read is returned: `Registration.intact` is then False, and every run that is
    held against it says so.
    """
    path = Path(path)
    if not path.is_file():
        raise RunError(
            "there is no such registration",
            where=str(path),
            got="a folder" if path.is_dir() else "no such file",
            expected="a file that `lpact preregister` wrote",
            remedy="check the path",
        )
    with storage_errors(path, "the registration cannot be read"):
        text = path.read_bytes()
    values = _parse(path, text)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise _foreign(path, "JSON of another kind")
    version = values.get("format_version")
    if version != FORMAT_VERSION:
        raise RunError(
            "the registration was made by another version of lpact",
            where=str(path),
            got=f"format version {version!r}",
            expected=f"format version {FORMAT_VERSION}",
            remedy="use the version of lpact that made it",
        )
    return _registration(path, values)


def _registration(path: Path, values: dict[str, Any]) -> Registration:
    known = {
        "format",
        "format_version",
        "digest",
        "dated_digest",
        "registered_at",
        "registered",
    }
    if values.keys() != known:
        differing = sorted(values.keys() ^ known)
        raise _damaged(path, f"fields that are missing or not expected: {', '.join(differing)}")
    digest, dated, moment = values["digest"], values["dated_digest"], values["registered_at"]
    if not all(isinstance(value, str) for value in (digest, dated, moment)):
        raise _damaged(path, "a digest or time that is no text")
    try:
        datetime.strptime(moment, _TIME)
    except ValueError:
        raise _damaged(path, f"registered_at {moment!r}, which is no time in UTC") from None
    try:
        content = Content.model_validate_json(json.dumps(values["registered"]))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(("registered", *map(str, first["loc"])))
        raise _damaged(path, f"{place}: {first['msg']}") from None
    return Registration(content, moment, digest, dated)


def _parse(path: Path, content: bytes) -> Any:
    try:
        return json.loads(
            content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number
        )
    except json.JSONDecodeError as error:
        if content.lstrip()[:1] != b"{":
            raise _foreign(path, "text that is not JSON") from None
        cut = error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg
        what = "it ends too early" if cut else f"{error.msg}, line {error.lineno}"
        raise _damaged(path, what) from None
    except UnicodeDecodeError:
        raise _foreign(path, "bytes that are not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that stands twice would show one value to a reader and another to a program."""
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r} twice")
    return values


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no number of JSON")


def _foreign(path: Path, got: str) -> RunError:
    return RunError(
        "the file is no registration",
        where=str(path),
        got=got,
        expected="a file that `lpact preregister` wrote",
        remedy="name the registration, not the study file or the run",
    )


def _damaged(path: Path, got: str) -> RunError:
    return RunError(
        "the registration is damaged or was edited",
        where=str(path),
        got=got,
        expected="the file as `lpact preregister` wrote it",
        remedy="restore it from where it was deposited; a new registration would be of a later time",
    )


def _canonical(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text + "\n"
