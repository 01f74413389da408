"""In which unit a recording's numbers are: by its file, and by ``channels.tsv`` where the file does not say.

The rule, for voltages: a unit that the file states counts. If ``channels.tsv`` states another one, that is an error;
it is a note for the plain ``V``, which tables often hold because software gives values in volts. Where the file states
none (EDF, BDF), the table's counts, with a note; where neither does, that is an error. For MEG the file's calibration
counts, and another unit in the table is a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpact.codes import Reason
from lpact.datasets._files.strict import MISSING
from lpact.datasets._finding import Finding
from lpact.datasets._mne.channels import MICROVOLT, SCALES
from lpact.datasets._mne.edf import ENDINGS, read_edf_header
from lpact.errors import RecordingError

_VOLT, _TESLA, _TESLA_PER_METRE = 107, 112, 201
_MEG_UNITS = {_TESLA: "T", _TESLA_PER_METRE: "T/m"}
_MICROVOLT_FORMATS = (".set", ".mff")
_MICRO = ("uv", "µv", "microv", "microvolt", "microvolts")
_VOLTS = {
    **dict.fromkeys(_MICRO, 1e-6),
    **dict.fromkeys(("V", "v", "volt", "volts"), 1.0),
    **dict.fromkeys(("mV", "mv", "millivolt", "millivolts"), 1e-3),
    **dict.fromkeys(("nV", "nv", "nanovolt", "nanovolts"), 1e-9),
}


@dataclass(frozen=True)
class StatedUnit:
    """A channel's unit in its file: the text, and volts in one of it (None: it is no unit of voltage).

    ``applied`` is the factor by which MNE makes volts of the file's numbers, None where it makes none.
    """

    text: str
    volts: float | None
    applied: float | None


@dataclass(frozen=True)
class Scaling:
    """Factor from MNE's values to the physical unit for each unit, the unit's name, and what there is to tell."""

    factors: tuple[float, ...]
    physical_unit: str
    findings: tuple[Finding, ...]


def volts(text: str) -> float | None:
    """Return how many volts one of a unit is, None if it is no unit of voltage."""
    plain = text.strip().replace("\u03bc", "µ").replace("\x83\xca", "µ")
    return _VOLTS.get(plain, _VOLTS.get(plain.lower()) if plain.lower() in _MICRO else None)


def stated_units(path: Path, raw: Any) -> list[StatedUnit]:
    """Return the unit of every channel of an opened recording, as its file states it."""
    ending = path.suffix.lower()
    if ending in ENDINGS:
        # MNE takes a dimension that it does not know for volts, so that the header itself is read.
        applied = [float(factor) for factor in raw._raw_extras[0]["units"]]
        dimensions = read_edf_header(path).dimensions
        return [StatedUnit(d, volts(d), a) for d, a in zip(dimensions, applied, strict=True)]
    units = []
    for channel in raw.info["chs"]:
        plain = int(channel["unit"]) == _VOLT and int(channel["unit_mul"]) == 0
        if not plain:
            units.append(StatedUnit(str(raw._orig_units.get(channel["ch_name"], "")), None, None))
        elif ending in _MICROVOLT_FORMATS:
            units.append(StatedUnit(MICROVOLT, 1e-6, 1e-6))
        else:
            text = str(raw._orig_units.get(channel["ch_name"], "V"))
            factor = volts(text)
            units.append(StatedUnit(text, factor, factor))
    return units


def scaling(
    path: Path,
    raw: Any,
    picks: Sequence[int],
    types: Sequence[str],
    *,
    table: Path | None,
    listed: Mapping[str, str],
    where: str,
) -> Scaling:
    """Return the scaling of the channels ``picks`` by the rule of this module.

    ``types`` are the channels' (of all of the file's), ``listed`` their units in ``table`` by name; no table: empty.
    """
    stated = stated_units(path, raw)
    notes = _Notes(path, table)
    factors, names = [], []
    for pick in picks:
        name, entry = str(raw.ch_names[pick]), listed.get(str(raw.ch_names[pick]), "").strip()
        scale, unit = SCALES[types[pick]]
        if types[pick] in ("mag", "grad"):
            unit = _MEG_UNITS.get(int(raw.info["chs"][pick]["unit"]), "")
            if not unit:
                raise notes.unknown(name, "a unit that is not T or T/m", entry)
            if entry not in MISSING and entry != unit:
                notes.other.append((name, unit, entry))
            factors.append(scale)
        else:
            factors.append(scale * notes.correction(name, stated[pick], entry))
        names.append(unit)
    return Scaling(tuple(factors), ", ".join(sorted(set(names))), tuple(notes.findings(where)))


class _Notes:
    """What was found on the way through the channels."""

    def __init__(self, path: Path, table: Path | None) -> None:
        self.path = path
        self.table = table
        self.other: list[tuple[str, str, str]] = []
        self.by_table: list[tuple[str, str, str]] = []

    def correction(self, name: str, unit: StatedUnit, entry: str) -> float:
        """Return the factor from MNE's volts to volts."""
        told = volts(entry)
        if unit.volts is None or unit.applied is None:
            if told is None or unit.applied is None:
                raise self.unknown(name, repr(unit.text) if unit.text else "no unit", entry)
            self.by_table.append((name, unit.text, entry))
            return told / unit.applied
        if told is not None and told not in (unit.volts, 1.0):
            raise RecordingError(
                "the recording and channels.tsv name different units for a channel",
                where=f"{self.table}, channel '{name}', column 'units'",
                got=f"'{unit.text}' in {self.path.name}, '{entry}' in the table",
                expected="the same unit in both",
                remedy="find out which is right; fix the table, or write the recording again",
            )
        if told != unit.volts and entry not in MISSING:
            self.other.append((name, unit.text, entry))
        return unit.volts / unit.applied

    def unknown(self, name: str, found: str, entry: str) -> RecordingError:
        return RecordingError(
            "the unit of a channel is not known",
            where=f"{self.path}, channel '{name}'",
            got=f"{found} in the file; "
            + (
                f"'{entry}' in the column 'units' of channels.tsv"
                if entry
                else "none in channels.tsv"
            ),
            expected="V, mV, µV or nV, in the file or in channels.tsv",
            remedy="add the unit in the column 'units' of channels.tsv, or leave the channel out: type MISC there",
        )

    def findings(self, where: str) -> list[Finding]:
        found = []
        if self.by_table:
            found.append(
                _note(
                    where,
                    self.by_table,
                    "a unit of voltage in the file",
                    "none is needed: the unit in channels.tsv counts",
                )
            )
        if self.other:
            found.append(
                _note(
                    where,
                    self.other,
                    "the file's unit in channels.tsv",
                    "none is needed: the file's unit counts; fix the column 'units'",
                )
            )
        return found


def _note(
    where: str, channels: Sequence[tuple[str, str, str]], expected: str, remedy: str
) -> Finding:
    name, inside, entry = channels[0]
    return Finding(
        field="units",
        reason=Reason.SIDECAR_DISAGREES,
        severity="note",
        where=where,
        found=f"{len(channels)} channel(s); the first is {name}: {repr(inside) if inside else 'no unit'} in the file, "
        f"{entry!r} in channels.tsv",
        expected=expected,
        remedy=remedy,
    )
