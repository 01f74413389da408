"""Interval tiers of Praat TextGrid files (long text format)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lpact.datasets._files.strict import is_finite
from lpact.errors import StimulusError

_INTERVAL = re.compile(
    r"intervals \[(?P<number>[0-9]+)\]:?\s*"
    r"xmin = (?P<start>[-+0-9.eE]+)\s*"
    r"xmax = (?P<stop>[-+0-9.eE]+)\s*"
    r'text = "(?P<text>(?:[^"]|"")*)"'
)
_TIER = re.compile(r'class = "(?P<kind>[A-Za-z]+)"\s*name = "(?P<name>[^"]*)"')
_SIZE = re.compile(r"intervals: size = (?P<size>[0-9]+)")


@dataclass(frozen=True)
class Interval:
    """A labelled stretch of time; ``number`` is its place in the tier, from 1."""

    number: int
    start_s: float
    stop_s: float
    text: str


def read_intervals(path: Path, tier: str) -> list[Interval]:
    """Return the intervals of a tier, in order of time, empty ones included.

    The file may be UTF-8 or UTF-16, as Praat writes them.
    """
    text = _decode(path)
    tiers = list(_TIER.finditer(text))
    names = [match["name"] for match in tiers]
    if tier not in names:
        raise StimulusError(
            f"a TextGrid has no tier '{tier}'",
            where=str(path),
            got="tiers " + (", ".join(names) or "none"),
            expected=f"an IntervalTier named '{tier}'",
            remedy="check that this is the file of the dataset, in Praat's long text format",
        )
    place = names.index(tier)
    end = tiers[place + 1].start() if place + 1 < len(tiers) else len(text)
    body = text[tiers[place].end() : end]
    intervals = [_interval(match, path, tier) for match in _INTERVAL.finditer(body)]
    announced = _SIZE.search(body)
    if announced is None or int(announced["size"]) != len(intervals):
        raise StimulusError(
            "a TextGrid is truncated or damaged",
            where=f"{path}, tier '{tier}'",
            got=f"{len(intervals)} intervals",
            expected=f"{announced['size'] if announced else 'a stated number of'} intervals",
            remedy="copy or download the file again",
        )
    for before, after in pairwise(intervals):
        if after.start_s < before.stop_s - 1e-9 or after.stop_s < after.start_s:
            raise StimulusError(
                "intervals of a TextGrid run backwards",
                where=f"{path}, tier '{tier}', interval {after.number}",
                got=f"{after.start_s} to {after.stop_s} s after one that ends at {before.stop_s} s",
                expected="intervals in order of time, without overlap",
                remedy="fix the interval in Praat",
            )
    return intervals


def _interval(match: re.Match[str], path: Path, tier: str) -> Interval:
    for time in (match["start"], match["stop"]):
        if not is_finite(time):
            raise StimulusError(
                "a time of a TextGrid is not valid",
                where=f"{path}, tier '{tier}', interval {match['number']}",
                got=time,
                expected="a finite number of seconds",
                remedy="fix the interval in Praat",
            )
    text = match["text"].replace('""', '"')
    return Interval(int(match["number"]), float(match["start"]), float(match["stop"]), text)


def _decode(path: Path) -> str:
    try:
        content = path.read_bytes()
        utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        return content.decode("utf-16" if utf16 else "utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise StimulusError(
            "a TextGrid cannot be read",
            where=str(path),
            got=f"{type(problem).__name__}: {problem}",
            expected="a TextGrid in UTF-8 or UTF-16",
            remedy="save the file again in one of these encodings",
        ) from None
