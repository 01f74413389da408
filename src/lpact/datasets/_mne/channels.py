"""Which channels of a recording are neural and usable, and where they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpact.codes import Reason
from lpact.datasets._finding import Finding
from lpact.datasets.base import Span
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

MICROVOLT = "µV"
SCALES = {
    "mag": (1.0, "T"),
    "grad": (1.0, "T/m"),
    "eeg": (1e6, MICROVOLT),
    "ecog": (1e6, MICROVOLT),
    "seeg": (1e6, MICROVOLT),
    "dbs": (1e6, MICROVOLT),
}
"""Factor from MNE's SI unit to the physical unit in which values are given, and that unit, by type of channel."""

_FRAMES = {1: "device", 4: "head", 5: "mri", 2001: "mri_voxel", 2002: "ras", 2003: "mni_tal"}
"""Coordinate frames of FIFF, as MNE names them."""


def pick_channels(
    names: Sequence[str],
    types: Sequence[str],
    *,
    wanted: Sequence[str],
    bad: Mapping[str, str],
    where: str,
    path: Path,
) -> tuple[list[int], list[Finding]]:
    """Return the indices of usable neural channels, and findings on all others.

    ``types`` are MNE's (``ecog``, ``mag`` …), ``wanted`` those that count as neural; ``bad`` maps channels that the
    source marks as bad to the reason that it gives.
    """
    other = [name for name, kind in zip(names, types, strict=True) if kind not in wanted]
    findings = []
    if other:
        kinds = Counter(kind for kind in types if kind not in wanted)
        shown = ", ".join(other[:8]) + (" …" if len(other) > 8 else "")
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        findings.append(
            Finding(
                field="channels",
                reason=Reason.CHANNEL_NOT_NEURAL,
                severity="excluded",
                where=where,
                found=f"{len(other)} channel(s) ({counted}): {shown}",
                expected="channels of type " + ", ".join(wanted),
                remedy="none is needed; fix the channel's type in the source if it is neural",
            )
        )
    picks = []
    for index, (name, kind) in enumerate(zip(names, types, strict=True)):
        if kind not in wanted:
            continue
        if name in bad:
            findings.append(
                Finding(
                    field=name,
                    reason=Reason.CHANNEL_MARKED_BAD,
                    severity="excluded",
                    where=where,
                    found=f"marked as bad: {bad[name]}",
                    expected="a channel that is not marked as bad",
                    remedy="the channel is left out; fix its status in the source to keep it",
                )
            )
        else:
            picks.append(index)
    if not picks:
        raise RecordingError(
            "a recording has no usable neural channel",
            where=str(path),
            got=", ".join(f"{n} {kind}" for kind, n in sorted(Counter(types).items())) or "nothing",
            expected="at least one channel of type " + ", ".join(wanted) + " that is not bad",
            remedy="check the types and status of channels (channels.tsv), and the options",
        )
    return picks, findings


def channel_places(raw: Any, picks: Sequence[int]) -> tuple[FloatArray, str]:
    """Return positions from the channel info in mm, [n_picks, 3] with NaN where there is none, and their frame."""
    chosen = [raw.info["chs"][pick] for pick in picks]
    places = np.array([channel["loc"][:3] for channel in chosen], dtype=np.float64) * 1000.0
    absent = ~np.isfinite(places).all(axis=1) | (places == 0.0).all(axis=1)
    places[absent] = np.nan
    frames = {int(channel["coord_frame"]) for channel in chosen}
    frame = _FRAMES.get(frames.pop(), "") if len(frames) == 1 else ""
    return places, frame


def place_findings(names: Sequence[str], places: FloatArray, where: str) -> list[Finding]:
    """Return one note if some units have no place."""
    absent = [name for name, place in zip(names, places, strict=True) if np.isnan(place).any()]
    if not absent:
        return []
    shown = ", ".join(absent[:8]) + (" …" if len(absent) > 8 else "")
    return [
        Finding(
            field="units",
            reason=Reason.UNIT_WITHOUT_PLACE,
            severity="note",
            where=where,
            found=f"{len(absent)} of {len(names)} unit(s) without a position: {shown}",
            expected="a position for every unit",
            remedy="the units are kept, without a position",
        )
    ]


def bad_annotations(raw: Any) -> list[Span]:
    """Return stretches that annotations of the file mark as bad, from the file's first sample on."""
    found = raw.annotations
    return [
        Span(float(onset - raw.first_time), float(onset - raw.first_time + duration), str(label))
        for onset, duration, label in zip(
            found.onset, found.duration, found.description, strict=True
        )
        if str(label).lower().startswith("bad")
    ]
