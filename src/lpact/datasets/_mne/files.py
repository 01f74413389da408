"""Which files a recording consists of, and that none of them lies outside the dataset's folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from lpact.datasets._files.source_folder import SourceFolder
from lpact.errors import RecordingError

_MARKERS = re.compile(r"^\s*MarkerFile\s*[=:][ \t]*(.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)


def recording_files(folder: SourceFolder, path: Path, raw: Any) -> tuple[Path, ...]:
    """Return every file that is read for an opened recording, sorted: header, data, parts and markers.

    A file outside the folder, by a link or by what a header says, is a `RecordingError`.
    """
    named = [path, *(Path(name) for name in raw.filenames if name is not None)]
    if path.suffix.lower() == ".vhdr" and (markers := _marker_file(path)) is not None:
        named.append(markers)
    found = {_inside(folder, path, one) for one in named}
    for one in [one for one in found if one.is_dir()]:
        found.remove(one)
        found |= {_inside(folder, path, part) for part in one.rglob("*") if not part.is_dir()}
    return tuple(sorted(found))


def _inside(folder: SourceFolder, path: Path, named: Path) -> Path:
    absolute = Path(os.path.abspath(path.parent / named))  # a link is not to be followed here
    for one in (absolute, absolute.resolve()):
        if one.is_relative_to(folder.root):
            return folder.file(folder.relative(one), RecordingError)
    raise RecordingError(
        "a recording's data lie outside the dataset's folder",
        where=str(path),
        got=str(absolute),
        expected=f"a file inside {folder.root}",
        remedy="copy the data into the folder, and fix the header",
    )


def _marker_file(header: Path) -> Path | None:
    """Return the marker file of a BrainVision header as MNE finds it: the one it names, or the one beside it."""
    content = header.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    match = _MARKERS.search(text)
    if match is None or not match[1]:
        return None
    named, beside = header.parent / match[1], header.with_suffix(".vmrk")
    return next((one for one in (named, beside) if one.is_file()), None)
