"""PDF files with the same bytes for the same picture.

The converter writes resources and fonts in an order that changes from call to call. Here objects are numbered again in
the order in which they are reached from the catalogue, and lists of resources are sorted by name. Nothing else changes:
streams are copied as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(rb"^(\d{10}) \d{5} n", re.MULTILINE)
_HEAD = re.compile(rb"(\d+) 0 obj\n")
_LENGTH = re.compile(rb"/Length (\d+)")
_REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
_RESOURCES = re.compile(rb"(?:^ *\/\w+ \d+ 0 R\n){2,}", re.MULTILINE)
_STREAM = b"\nstream\n"


@dataclass(frozen=True)
class _Object:
    """Its dictionary, and its stream with all that follows."""

    dictionary: bytes
    rest: bytes

    @property
    def references(self) -> list[int]:
        return [int(found) for found in _REFERENCE.findall(self.dictionary)]

    def numbered(self, new: dict[int, int]) -> bytes:
        return _REFERENCE.sub(lambda r: b"%d 0 R" % new[int(r[1])], self.dictionary) + self.rest


def same_bytes(pdf: bytes) -> bytes:
    """The same document with its objects in an order that depends on the picture alone."""
    head, trailer = pdf[: pdf.index(b"\n") + 1], pdf[pdf.rindex(b"trailer") :]
    table = pdf[int(trailer.split(b"startxref\n")[1].split()[0]) :]
    objects = dict(_object(pdf, int(offset)) for offset in _ENTRY.findall(table))
    settings = trailer[: trailer.index(b"startxref")]
    new = _numbers([int(found) for found in _REFERENCE.findall(settings)], objects)
    body, offsets = bytearray(head), []
    for number in new:
        offsets.append(len(body))
        body += b"%d 0 obj\n" % new[number] + objects[number].numbered(new) + b"\nendobj\n\n"
    entries = b"".join(b"%010d 00000 n\r\n" % offset for offset in offsets)
    size = b"%d" % (len(new) + 1)
    settings = re.sub(rb"(?<=/Size )\d+", size, settings)
    settings = _REFERENCE.sub(lambda found: b"%d 0 R" % new[int(found[1])], settings)
    return bytes(
        body
        + (b"xref\n0 " + size + b"\n0000000000 65535 f\r\n" + entries + settings)
        + b"startxref\n%d\n%%%%EOF" % len(body)
    )


def _object(pdf: bytes, offset: int) -> tuple[int, _Object]:
    found = _HEAD.match(pdf, offset)
    if found is None:
        raise ValueError(f"there is no object at byte {offset} of the PDF")
    end = pdf.index(b"\nendobj", found.end())
    stream = pdf.find(_STREAM, found.end(), end)
    if stream >= 0:
        length = _LENGTH.search(pdf, found.end(), stream)
        if length is None:
            raise ValueError(f"a stream at byte {offset} of the PDF does not say its length")
        end = pdf.index(b"\nendobj", stream + len(_STREAM) + int(length[1]))
    middle = stream if stream >= 0 else end
    dictionary = _RESOURCES.sub(_by_name, pdf[found.end() : middle])
    return int(found[1]), _Object(dictionary, pdf[middle:end])


def _by_name(lines: re.Match[bytes]) -> bytes:
    return b"".join(sorted(lines[0].splitlines(keepends=True)))


def _numbers(roots: list[int], objects: dict[int, _Object]) -> dict[int, int]:
    """New numbers of the objects, in the order in which they are reached."""
    new: dict[int, int] = {}
    waiting = list(reversed(roots))
    while waiting:
        number = waiting.pop()
        if number not in new:
            new[number] = len(new) + 1
            waiting += reversed(objects[number].references)
    return new
