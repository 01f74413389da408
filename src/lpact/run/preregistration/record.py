"""The registration as a file: canonical JSON with a digest of everything but its time, and one of both."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import Field, ValidationError

from lpact.errors import ConfigError, RunError
from lpact.run.preregistration.content import Content, Item
from lpact.store import storage_errors

FORMAT: Literal["lpact preregistration"] = "lpact preregistration"
FORMAT_VERSION: Literal[2] = 2
REGISTRATION_NAME = "preregistration.json"
"""Name of the copy that a run keeps."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Registration(Item):
    """What was registered, and when; ``digest`` and ``dated_digest`` are those that were written with it."""

    format: Literal["lpact preregistration"] = FORMAT
    format_version: Literal[2] = FORMAT_VERSION
    digest: str
    dated_digest: str
    registered_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    registered: Content

    @property
    def content(self) -> Content:
        """What was registered."""
        return self.registered

    @property
    def found_digest(self) -> str:
        """Digest of the content as it is now."""
        return content_digest(self.registered)

    @property
    def time_intact(self) -> bool:
        """Whether the time is the one that was written with the digest."""
        return self.dated_digest == _dated(self.digest, self.registered_at)

    @property
    def intact(self) -> bool:
        """Whether content and time are what the digests were made of."""
        return self.digest == self.found_digest and self.time_intact

    def text(self) -> str:
        """The file: sorted keys, two spaces, a newline at the end."""
        values = self.model_dump(mode="json")
        return json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def new_registration(content: Content, now: datetime | None = None) -> Registration:
    """Freeze ``content``; ``now`` is this moment unless given."""
    moment = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    # What is frozen is what can be read back: tuples are lists in JSON, and so on.
    plain = Content.model_validate_json(content.model_dump_json())
    digest = content_digest(plain)
    return Registration(
        digest=digest,
        dated_digest=_dated(digest, moment),
        registered_at=moment,
        registered=plain,
    )


def content_digest(content: Content) -> str:
    """SHA-256 of the format and everything that is registered, as JSON without white space."""
    values = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "registered": content.model_dump(mode="json"),
    }
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _dated(digest: str, registered_at: str) -> str:
    """SHA-256 of a digest and a time, which shows an edit of the time alone."""
    return hashlib.sha256(f"{digest} {registered_at}".encode()).hexdigest()


def refuse_other_digest(registration: Registration, digest: str, *, where: str) -> None:
    """Raise `RunError` for a registration whose content does not have the deposited ``digest``."""
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
    """A digest as it was deposited, in lower case; raises `ConfigError` for anything else."""
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
    """Raise `RunError` if ``path`` exists: a registration is never overwritten."""
    if path.exists() or path.is_symlink():
        raise RunError(
            "a registration is never overwritten",
            where=str(path),
            got="a file, folder or link of that name",
            expected="a new name",
            remedy="name another file with --out; keep the first registration, so that both can be seen",
        )


def write_registration(registration: Registration, path: Path) -> None:
    """Write the file as a whole, or not at all; raises `RunError` if ``path`` exists."""
    refuse_taken(path)
    content = registration.text().encode()
    with storage_errors(path, "the registration cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            _write(temporary, content)
            # Unlike a rename, a link never replaces a file that appeared meanwhile.
            os.link(temporary, path)
        except FileExistsError:
            refuse_taken(path)
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _write(path, content)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


def read_registration(path: str | Path) -> Registration:
    """Read a registration; a `RunError` says what is wrong with a file that is none, is damaged or newer.

    A file that was edited but can still be read is returned: `Registration.intact` is then False, and every run that is
    compared with it says so.
    """
    path = Path(path)
    with storage_errors(path, "the registration cannot be read"):
        content = path.read_bytes()
    try:
        values = json.loads(content, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise _unreadable(path, "JSON of another kind")
    if (version := values.get("format_version")) != FORMAT_VERSION:
        raise RunError(
            "the registration was made by another version of lpact",
            where=str(path),
            got=f"format version {version!r}",
            expected=f"format version {FORMAT_VERSION}",
            remedy="use the version of lpact that made it",
        )
    try:
        return Registration.model_validate_json(json.dumps(values))
    except ValidationError as error:
        first = error.errors()[0]
        raise _unreadable(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A field that is there twice would show one value to a reader and another to a program."""
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the field {twice!r} twice")
    return dict(pairs)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no number of JSON")


def _unreadable(path: Path, got: str) -> RunError:
    return RunError(
        "the file is not a registration, or it was damaged or edited",
        where=str(path),
        got=got,
        expected="a file as `lpact preregister` wrote it",
        remedy="name the registration itself, or restore it from where it was deposited",
    )
