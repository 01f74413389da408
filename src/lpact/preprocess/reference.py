"""Re-referencing: common average, bipolar pairs and a Laplacian along shafts, a few channels at a time."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from lpact.codes import Reason
from lpact.datasets._finding import Finding
from lpact.datasets.base import Recording, Units
from lpact.datasets.series import StreamedSeries, read_units
from lpact.errors import RecordingError
from lpact.math.types import BoolArray, FloatArray
from lpact.preprocess.channels import listed
from lpact.preprocess.survey import Survey, survey

FARTHEST_MM = 20.0
"""Contacts farther apart than this are no neighbours, whatever their names say."""
FARTHEST_SPACINGS = 2.0
"""Nor are those farther apart than this many usual spacings of their shaft: G8 and G9 end one row of a grid each."""
KEPT_CHANNELS = 2
"""Channels last read that are kept: the next derived channel along a shaft needs them again."""

Reference: TypeAlias = Literal["average", "bipolar", "laplacian"]
Series: TypeAlias = FloatArray | StreamedSeries
Terms: TypeAlias = tuple[tuple[int, float], ...]

_CONTACT = re.compile(r"(?P<stem>.*?)(?P<number>[0-9]+)(?P<rest>[^0-9]*)")


@dataclass(frozen=True)
class Referenced:
    """Channels after re-referencing, with their units and what there is to say about them."""

    values: Series
    units: Units
    findings: tuple[Finding, ...]


class AverageReferenced(StreamedSeries):
    """Channels minus the mean of the sound ones; one that never varies stays as it is, so that it is found out."""

    def __init__(self, source: Series, average: FloatArray, varies: BoolArray) -> None:
        self._source = source
        self._average = average
        self._varies = varies
        self.shape = (source.shape[0], source.shape[1])
        self.dtype = np.dtype(np.float64)
        self.unit_major = isinstance(source, StreamedSeries) and source.unit_major

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        values = np.array(read_units(self._source, units), dtype=np.float64, order="F")
        for place, unit in enumerate(units):
            if self._varies[unit]:
                values[:, place] -= self._average
        return values


class Combined(StreamedSeries):
    """Each channel a weighted sum of a few of the source's; the source's channels last read are kept."""

    def __init__(self, source: Series, terms: Sequence[Terms]) -> None:
        self._source = source
        self._terms = tuple(terms)
        self._kept: OrderedDict[int, FloatArray] = OrderedDict()
        self.shape = (source.shape[0], len(self._terms))
        self.dtype = np.dtype(np.float64)
        self.unit_major = isinstance(source, StreamedSeries) and source.unit_major

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        self._fetch(sorted({column for unit in units for column, _ in self._terms[unit]}))
        values = np.zeros((self.shape[0], len(units)), order="F")
        for place, unit in enumerate(units):
            for column, weight in self._terms[unit]:
                values[:, place] += weight * self._kept[column].astype(np.float64, copy=False)
        self._forget()
        return values

    def _fetch(self, columns: Sequence[int]) -> None:
        missing = [column for column in columns if column not in self._kept]
        if missing:
            block = read_units(self._source, missing)
            for place, column in enumerate(missing):
                self._kept[column] = np.array(block[:, place])
        for column in columns:
            self._kept.move_to_end(column)

    def _forget(self) -> None:
        while len(self._kept) > KEPT_CHANNELS:
            self._kept.popitem(last=False)


def rereference(
    recording: Recording, values: Series, units: Units, kind: Reference, *, gaps_allowed: bool
) -> Referenced:
    """Re-reference the channels ``values`` [n_samples, n_units] of a recording; reads all of them once.

    - ``average``: ``y_c = x_c − mean_k x_k`` over the sound channels k.
    - ``bipolar``: ``y = x_c − x_{c+1}`` for neighbours on a shaft, named ``LA1-LA2``.
    - ``laplacian``: ``y_c = x_c − mean_k x_k`` over the neighbours k of c on its shaft, two or, at an end, one.

    A channel is sound if it varies and is finite throughout; with ``gaps_allowed`` it may share the gaps that all
    channels have. One that is not is no reference for others.
    """
    found = survey(values, gaps_allowed=gaps_allowed, add_up=kind == "average")
    if kind == "average":
        return _average(recording, values, units, found)
    after = next_contacts(units)
    if not after:
        raise RecordingError(
            "no channel of the recording has a neighbour to be referenced to",
            where=f"{recording.where}, option 'preprocess.reference'",
            got=f"'{kind}' with the units {listed(units.ids)}",
            expected="contacts of a shaft or strip, named by letters and rising numbers (LA1, LA2 …)",
            remedy='choose reference = "average" or "none", or widen the selection of channels',
        )
    if kind == "bipolar":
        # A gap in one contact is a gap in its pairs: with gaps allowed it costs events, as it would by itself.
        usable = found.varies if gaps_allowed else found.sound
        return _bipolar(recording, values, units, after, usable, found.constant)
    return _laplacian(recording, values, units, after, found)


def next_contacts(units: Units) -> dict[int, int]:
    """Return, for each unit that has one, the next contact of its shaft: the same name with the number one higher.

    Where both places are known, contacts more than 20 mm or two usual (median) spacings of the shaft apart do not
    count: a grid is numbered row by row.
    """
    places: dict[tuple[str, str, int], int] = {}
    for index, name in enumerate(units.ids):
        if (match := _CONTACT.fullmatch(name)) is not None:
            places.setdefault((match["stem"], match["rest"], int(match["number"])), index)
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for (stem, rest, number), index in places.items():
        following = places.get((stem, rest, number + 1))
        if following is not None:
            pairs.setdefault((stem, rest), []).append((index, following))
    after: dict[int, int] = {}
    for shaft in pairs.values():
        spacing = [_distance_mm(units, *pair) for pair in shaft]
        known = [mm for mm in spacing if np.isfinite(mm)]
        limit = min(FARTHEST_MM, FARTHEST_SPACINGS * float(np.median(known))) if known else 0.0
        after |= {a: b for (a, b), mm in zip(shaft, spacing, strict=True) if not mm > limit}
    return dict(sorted(after.items()))


def _distance_mm(units: Units, a: int, b: int) -> float:
    """Distance of two units, NaN where a place is not known."""
    if units.coordinates_mm is None:
        return float("nan")
    return float(np.linalg.norm(units.coordinates_mm[a] - units.coordinates_mm[b]))


def _average(recording: Recording, values: Series, units: Units, found: Survey) -> Referenced:
    assert found.total is not None
    n_sound = int(found.sound.sum())
    average = found.total / n_sound if n_sound else np.full(values.shape[0], np.nan)
    findings = _not_sound(recording, units, found.constant, found.sound, severity="note")
    return Referenced(AverageReferenced(values, average, found.varies), units, findings)


def _bipolar(
    recording: Recording,
    values: Series,
    units: Units,
    after: dict[int, int],
    usable: BoolArray,
    constant: BoolArray,
) -> Referenced:
    pairs = [(a, b) for a, b in after.items() if usable[a] and usable[b]]
    paired = {index for pair in pairs for index in pair}
    alone = [i for i in range(len(units.ids)) if usable[i] and i not in paired]
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    place = units.coordinates_mm
    derived = Units(
        tuple(f"{units.ids[a]}-{units.ids[b]}" for a, b in pairs),
        tuple(_region(units.regions[a], units.regions[b]) for a, b in pairs),
        None if place is None else (place[first] + place[second]) / 2,
        units.coordinate_frame,
    )
    findings = (
        *_not_sound(recording, units, constant, usable, severity="excluded"),
        *_without_neighbour(recording, units, alone),
    )
    return Referenced(
        Combined(values, [((a, 1.0), (b, -1.0)) for a, b in pairs]), derived, findings
    )


def _region(first: str, second: str) -> str:
    return second if first == "unknown" else first


def _laplacian(
    recording: Recording, values: Series, units: Units, after: dict[int, int], found: Survey
) -> Referenced:
    before = {b: a for a, b in after.items()}
    sound = found.sound
    terms: list[Terms] = []
    kept, alone = [], []
    for index in range(len(units.ids)):
        around = [n[index] for n in (before, after) if index in n and sound[n[index]]]
        if not found.varies[index]:
            around = []  # stays as it is, so that it is found out
        elif not around:
            alone.append(index)
            continue
        kept.append(index)
        terms.append(((index, 1.0), *((n, -1.0 / len(around)) for n in around)))
    findings = (
        *_not_sound(recording, units, found.constant, sound, severity="note"),
        *_without_neighbour(recording, units, alone),
    )
    return Referenced(Combined(values, terms), units.take(kept), findings)


def _not_sound(
    recording: Recording,
    units: Units,
    constant: BoolArray,
    sound: BoolArray,
    *,
    severity: Literal["excluded", "note"],
) -> tuple[Finding, ...]:
    """Findings on channels that are no reference for others: one for each of two reasons."""
    findings = []
    for reason, flags, expected in (
        (Reason.CONSTANT_UNIT, constant, "signals that vary"),
        (Reason.NON_FINITE_NEURAL, ~constant & ~sound, "finite values"),
    ):
        names = [units.ids[index] for index in np.flatnonzero(flags)]
        if names:
            findings.append(
                Finding(
                    field="reference",
                    reason=reason,
                    severity=severity,
                    where=recording.where,
                    found=f"{len(names)} of {len(units.ids)} channels: {listed(names)}",
                    expected=expected,
                    remedy="no other channel is referenced to them; fix them in the source to keep them",
                )
            )
    return tuple(findings)


def _without_neighbour(recording: Recording, units: Units, alone: list[int]) -> tuple[Finding, ...]:
    if not alone:
        return ()
    names = [units.ids[index] for index in alone]
    return (
        Finding(
            field="reference",
            reason=Reason.CHANNEL_WITHOUT_REFERENCE,
            severity="excluded",
            where=recording.where,
            found=f"{len(names)} of {len(units.ids)} channels: {listed(names)}",
            expected="a usable contact with the next or the previous number on the same shaft",
            remedy='the channels are left out; choose reference = "average" or "none" to keep them',
        ),
    )
