"""PDFs have the same bytes for the same picture, and are still the PDFs they were."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import vl_convert

from lpact.report.render import same_bytes

# Groups that are half transparent become resources, and two weights of text two fonts: both come in any order.
GROUPS = "".join(
    f'<g opacity="0.{i % 8 + 1}"><rect x="{i}" y="1" width="3" height="3"/><circle cx="{i}" cy="9" r="2"/></g>'
    for i in range(40)
)
TEXT = '<text x="5" y="30" font-family="Liberation Sans" font-weight="{}">some words</text>'
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60">'
    f"{GROUPS}{TEXT.format('bold')}{TEXT.format('normal')}</svg>"
)


@pytest.fixture(scope="module")
def raw() -> list[bytes]:
    return [bytes(vl_convert.svg_to_pdf(SVG)) for _ in range(8)]


def objects(pdf: bytes) -> dict[int, bytes]:
    """Objects by number, found through the cross-reference table."""
    start = int(pdf.split(b"startxref\n")[1].split()[0])
    assert pdf[start:].startswith(b"xref")
    offsets = [int(o) for o in re.findall(rb"^(\d{10}) 00000 n", pdf[start:], re.MULTILINE)]
    found = {}
    for number, offset in enumerate(offsets, 1):
        assert pdf[offset:].startswith(b"%d 0 obj\n" % number)
        found[number] = pdf[offset:].split(b"endobj", 1)[0]
    return found


def streams(pdf: bytes) -> Counter[bytes]:
    return Counter(re.findall(rb"\nstream\n(.*?)\nendstream", pdf, re.DOTALL))


def test_every_conversion_gives_the_same_bytes(raw: list[bytes]) -> None:
    assert len(set(raw)) > 1
    assert len({same_bytes(pdf) for pdf in raw}) == 1


def test_it_is_still_the_same_document(raw: list[bytes]) -> None:
    made = same_bytes(raw[0])
    before, after = objects(raw[0]), objects(made)
    assert len(after) == len(before)
    assert streams(made) == streams(raw[0])
    assert sum(streams(made).values()) > 40
    for text in after.values():
        head = text.split(b"\nstream\n")[0]
        assert {int(r) for r in re.findall(rb"(\d+) 0 R", head)} <= set(after)
    assert made.startswith(b"%PDF-1.7")
    assert made.endswith(b"%%EOF")
    root = int(re.findall(rb"/Root (\d+) 0 R", made)[0])
    assert b"/Type /Catalog" in after[root]


def test_doing_it_twice_changes_nothing(raw: list[bytes]) -> None:
    made = same_bytes(raw[0])
    assert same_bytes(made) == made


def test_what_is_no_such_pdf_is_refused() -> None:
    broken = b"%PDF-1.7\nxref\n0 2\n0000000003 00000 n\r\ntrailer\n<< /Root 1 0 R >>\nstartxref\n9\n%%EOF"
    with pytest.raises(ValueError, match="no object at byte 3"):
        same_bytes(broken)
