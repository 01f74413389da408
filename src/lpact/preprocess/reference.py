"""Re-referencing: common average, bipolar pairs and a Laplacian along shafts, a few channels at a time."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from lpact.codes import Reason
from lpact.datasets.base import Findings, Recording, TimeSeries, Units
from lpact.datasets.series import StreamedSeries, read_units, unit_blocks
from lpact.errors import MOST_LISTED, RecordingError
from lpact.math.types import BoolArray, FloatArray
from lpact.wording import listed

MAX_DISTANCE_MM = 20.0
"""Contacts farther apart than this are not neighbours, even if their names suggest it."""
MAX_SPACINGS = 2.0
"""Nor are those farther apart than this many usual spacings of their shaft: G8 and G9 end one row of a grid each."""
KEPT_CHANNELS = 2
"""Channels last read that are kept: the next derived channel along a shaft needs them again."""

Series: TypeAlias = FloatArray | StreamedSeries
Terms: TypeAlias = tuple[tuple[int, float], ...]

_CONTACT = re.compile(r"(?P<stem>.*?)(?P<number>[0-9]+)(?P<rest>[^0-9]*)")


class Rereferenced(StreamedSeries):
    """Each channel a weighted sum of a few channels of the source, minus ``average`` where ``varies``."""

    def __init__(
        self,
        source: Series,
        terms: Sequence[Terms],
        average: FloatArray | None = None,
        varies: BoolArray | None = None,
    ) -> None:
        self._source = source
        self._terms = tuple(terms)
        self._average = average
        self._varies = varies
        self._kept: OrderedDict[int, FloatArray] = OrderedDict()
        self.shape = (source.shape[0], len(self._terms))
        self.unit_major = isinstance(source, StreamedSeries) and source.unit_major

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        columns = sorted({column for unit in units for column, _ in self._terms[unit]})
        missing = [column for column in columns if column not in self._kept]
        if missing:
            block = read_units(self._source, missing)
            self._kept |= {column: np.array(block[:, i]) for i, column in enumerate(missing)}
        values = np.zeros((self.shape[0], len(units)), order="F")
        for place, unit in enumerate(units):
            for column, weight in self._terms[unit]:
                values[:, place] += weight * self._kept[column].astype(np.float64, copy=False)
            if self._average is not None and self._varies is not None and self._varies[unit]:
                values[:, place] -= self._average
        for column in columns:
            self._kept.move_to_end(column)
        while len(self._kept) > KEPT_CHANNELS:
            self._kept.popitem(last=False)
        return values


def rereference(
    recording: Recording, kind: Literal["average", "bipolar", "laplacian"], *, gaps_allowed: bool
) -> Recording:
    """Re-reference a continuous recording; reads all channels once.

    - ``average``: ``y_c = x_c − mean_k x_k`` over the sound channels k.
    - ``bipolar``: ``y = x_c − x_{c+1}`` for neighbours on a shaft, named ``LA1-LA2``.
    - ``laplacian``: ``y_c = x_c − mean_k x_k`` over the neighbours k of c on its shaft, two or, at an end, one.

    A channel is sound if it varies and is finite throughout; with ``gaps_allowed`` it may have the gaps that all
    channels share. Other channels are not referenced to one that is not sound.
    """
    signal, units = recording.signal, recording.units
    assert isinstance(signal, TimeSeries)
    found = survey(signal.values, gaps_allowed=gaps_allowed, add_up=kind == "average")
    sound, average = found.sound, None
    alone: list[int] = []
    if found.total is not None:
        terms: list[Terms] = [((i, 1.0),) for i in range(len(units.ids))]
        n_sound = int(sound.sum())
        average = found.total / n_sound if n_sound else np.full(signal.n_samples, np.nan)
    else:
        after = next_contacts(units)
        if not after:
            raise RecordingError(
                "no channel of the recording has a neighbour to be referenced to",
                where=f"{recording.where}, option 'preprocess.reference'",
                got=f"'{kind}' with the units {listed(units.ids, MOST_LISTED)}",
                expected="contacts of a shaft or strip, named by letters and rising numbers (LA1, LA2 …)",
                remedy='choose reference = "average" or "none", or widen the selection of channels',
            )
        if kind == "bipolar":
            # A gap in one contact is a gap in its pairs: with gaps allowed it costs events, not the pair.
            sound = found.varies if gaps_allowed else sound
            terms, units, alone = _bipolar(units, after, sound)
        else:
            terms, units, alone = _laplacian(units, after, sound, found.varies)
    fix = "no other channel is referenced to them; fix them in the source to keep them"
    left_out = 'the channels are left out; choose reference = "average" or "none" to keep them'
    neighbour = "a usable contact with the next or the previous number on the same shaft"
    broken = np.flatnonzero(~found.constant & ~sound)
    ids, findings = recording.units.ids, Findings(recording.where)
    findings += recording.findings
    for reason, channels, expected, remedy in (
        (Reason.CONSTANT_UNIT, np.flatnonzero(found.constant), "signals that vary", fix),
        (Reason.NON_FINITE_NEURAL, broken, "finite values", fix),
        (Reason.CHANNEL_WITHOUT_REFERENCE, alone, neighbour, left_out),
    ):
        if len(channels):
            names = listed([ids[i] for i in channels], MOST_LISTED)
            text = f"{len(channels)} of {len(ids)} channels: {names}"
            left = kind == "bipolar" or remedy is left_out
            add = findings.excluded if left else findings.note
            add("reference", reason, text, expected, remedy)
    values = Rereferenced(signal.values, terms, average, found.varies)
    signal = replace(signal, values=values)
    return replace(recording, signal=signal, units=units, findings=tuple(findings))


def next_contacts(units: Units) -> dict[int, int]:
    """For each unit that has one, the next contact of its shaft: the same name with the number one higher.

    If both places are known, contacts more than 20 mm or two usual (median) spacings of the shaft apart do not count: a
    grid is numbered row by row.
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
    mm = units.coordinates_mm
    for shaft in pairs.values():
        spacing = [np.nan if mm is None else float(np.linalg.norm(mm[a] - mm[b])) for a, b in shaft]
        known = [distance for distance in spacing if np.isfinite(distance)]
        limit = min(MAX_DISTANCE_MM, MAX_SPACINGS * float(np.median(known))) if known else 0.0
        after |= {a: b for (a, b), far in zip(shaft, spacing, strict=True) if not far > limit}
    return dict(sorted(after.items()))


def _bipolar(units: Units, after: dict[int, int], sound: BoolArray) -> tuple[list[Terms], Units, list[int]]:
    """Pairs of sound neighbours, as units between them; and sound channels without a pair."""
    pairs = [(a, b) for a, b in after.items() if sound[a] and sound[b]]
    paired = {index for pair in pairs for index in pair}
    alone = [index for index in np.flatnonzero(sound).tolist() if index not in paired]
    regions, mm = units.regions, units.coordinates_mm
    derived = Units(
        tuple(f"{units.ids[a]}-{units.ids[b]}" for a, b in pairs),
        tuple(regions[b] if regions[a] == "unknown" else regions[a] for a, b in pairs),
        None if mm is None else (mm[[a for a, _ in pairs]] + mm[[b for _, b in pairs]]) / 2,
        units.coordinate_frame,
    )
    return [((a, 1.0), (b, -1.0)) for a, b in pairs], derived, alone


def _laplacian(
    units: Units, after: dict[int, int], sound: BoolArray, varies: BoolArray
) -> tuple[list[Terms], Units, list[int]]:
    """Channels minus the mean of their sound neighbours; and channels without such a neighbour."""
    before = {b: a for a, b in after.items()}
    terms: list[Terms] = []
    kept, alone = [], []
    for index in range(len(units.ids)):
        around = [n[index] for n in (before, after) if index in n and sound[n[index]]]
        if varies[index] and not around:
            alone.append(index)
            continue
        if not varies[index]:
            around = []  # stays constant, so that the check of units finds it
        kept.append(index)
        terms.append(((index, 1.0), *((n, -1.0 / len(around)) for n in around)))
    return terms, units.take(kept), alone


@dataclass(frozen=True)
class Survey:
    """Results of one pass over all channels.

    ``varies`` and ``constant`` [n_units]: its finite values are not all the same, or are; neither, if there are none.
    ``complete`` [n_units]: it is finite at every sample; with gaps allowed, at every sample at which any channel is.
    ``total`` [n_samples] is the sum over the sound channels, NaN in gaps that all channels share; None if not needed.
    """

    varies: BoolArray
    constant: BoolArray
    complete: BoolArray
    total: FloatArray | None

    @property
    def sound(self) -> BoolArray:
        """Channels that vary and are complete, [n_units]: others can be referenced to them."""
        return self.varies & self.complete


def survey(values: Series, *, gaps_allowed: bool, add_up: bool) -> Survey:
    """Read all channels, a few at a time; a second time only if all of them share a gap and a sum is needed."""
    n_samples, n_units = values.shape
    varies, n_finite = np.zeros(n_units, np.bool_), np.zeros(n_units, np.int64)
    covered = np.zeros(n_samples, np.bool_)
    total = np.zeros(n_samples) if add_up else None
    for indices, block in unit_blocks(values):
        for index, column in zip(indices, block.T, strict=True):
            finite = np.isfinite(column)
            covered |= finite
            n_finite[index] = finite.sum()
            known = column if n_finite[index] == n_samples else column[finite]
            varies[index] = known.size > 0 and known.min() < known.max()
            if total is not None and varies[index] and n_finite[index] == n_samples:
                total += column
    n_covered = int(covered.sum()) if gaps_allowed else n_samples
    found = Survey(varies, ~varies & (n_finite > 0), n_finite == n_covered, total)
    if total is not None and n_covered < n_samples:
        total[:] = np.where(covered, 0.0, np.nan)
        for indices, block in unit_blocks(values):
            for index, column in zip(indices, block.T, strict=True):
                if found.sound[index]:
                    total[covered] += column[covered]
    return found
