"""Page headers of a Parquet file: how large pages are once unpacked, read without unpacking any.

The footer of a Parquet file says how much its columns hold, and may say anything. What a reader makes room for is what
every page says of itself, in a small header in the compact Thrift encoding. This reads those headers and skips
everything between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow.parquet as pq

DICTIONARY_PAGE = 2
DELTA_BYTE_ARRAY = 7
"""Encoding of texts by what they share with the text before: short pages, and no bound to what they give."""
_WINDOW = 4096
_LONGEST = 2**20
"""Bytes of a page header at most."""
_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY = range(1, 9)
_LIST, _SET, _MAP, _STRUCT = range(9, 13)
_TYPE, _UNPACKED, _PACKED = 1, 2, 3
_DATA, _DATA_2 = 5, 8
_VALUES = 1
_ENCODING = {_DATA: 2, _DATA_2: 4}
Fields = dict[int, Any]


@dataclass(frozen=True)
class Page:
    """What one page says of itself."""

    kind: int
    n_bytes: int
    """Bytes when it is unpacked."""
    n_values: int
    encoding: int | None


def pages(handle: BinaryIO, column: pq.ColumnChunkMetaData) -> Iterator[Page]:
    """Every page of one column in one row group; a `ValueError` where headers make no sense."""
    if column.num_values == 0:
        # A reader looks for no page then, and the footer may say that they are anywhere.
        return
    at = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < at:
        at = column.dictionary_page_offset
    end = at + column.total_compressed_size
    if at < 0 or end < at:
        raise ValueError("a column lies outside of the file")
    while at < end:
        fields, length = _header(handle, at)
        packed, unpacked = fields.get(_PACKED), fields.get(_UNPACKED)
        if not isinstance(packed, int) or not isinstance(unpacked, int):
            raise ValueError("a page does not say how large it is")
        if packed < 0 or unpacked < 0:
            raise ValueError("a page says to be smaller than nothing")
        yield _page(fields, unpacked)
        at += length + packed


def _page(fields: Fields, n_bytes: int) -> Page:
    for name, encoding in _ENCODING.items():
        data = fields.get(name)
        if isinstance(data, dict):
            n_values = data.get(_VALUES)
            if not isinstance(n_values, int) or n_values < 0:
                raise ValueError("a page does not say how many values it has")
            return Page(int(fields.get(_TYPE, 0)), n_bytes, n_values, data.get(encoding))
    return Page(int(fields.get(_TYPE, 0)), n_bytes, 0, None)


def _header(handle: BinaryIO, at: int) -> tuple[Fields, int]:
    """The header at a place of the file, and its length."""
    window = _WINDOW
    while True:
        handle.seek(at)
        content = handle.read(window)
        reader = _Compact(content)
        try:
            return reader.struct(), reader.at
        except IndexError:
            if len(content) < window or window >= _LONGEST:
                raise ValueError("a page header is cut short, or too long") from None
            window *= 16


class _Compact:
    """Values in the compact Thrift encoding; an `IndexError` where bytes end too early."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def struct(self, depth: int = 0) -> Fields:
        """Fields by number."""
        if depth > _DEEPEST:
            raise ValueError("a page header is nested too deeply")
        fields: Fields = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int, *, inside: bool = False) -> Any:
        if kind in (_TRUE, _FALSE):
            return self._byte() if inside else kind
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._signed()
        if kind == _DOUBLE:
            return self._skip(8)
        if kind == _BINARY:
            return self._skip(self._unsigned())
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"a page header has a field of the unknown kind {kind}")

    def _list(self, depth: int) -> None:
        head = self._byte()
        length = head >> 4 if head >> 4 != 15 else self._unsigned()
        for _ in range(length):
            self._value(head & 15, depth + 1, inside=True)

    def _skip(self, n_bytes: int) -> None:
        self.at += n_bytes
        if self.at > len(self.content):
            raise IndexError

    def _byte(self) -> int:
        value = self.content[self.at]
        self.at += 1
        return value

    def _unsigned(self) -> int:
        value, shift = 0, 0
        while True:
            own = self._byte()
            value |= (own & 127) << shift
            shift += 7
            if own < 128:
                return value
            if shift > 63:
                raise ValueError("a page header has a number that is too long")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
