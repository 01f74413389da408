"""One MEG, EEG or iEEG recording of a BIDS folder: channels, places and marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lpact.codes import Reason
from lpact.datasets._bids import (
    ChannelTable,
    Places,
    check_sampling_rate,
    read_channels,
    read_electrodes,
)
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import read_json
from lpact.datasets._mne.channels import (
    bad_annotations,
    channel_places,
    pick_channels,
    place_findings,
)
from lpact.datasets._mne.event_samples import sample_mismatch
from lpact.datasets._mne.series import RawSeries, open_raw
from lpact.datasets._mne.units import scaling
from lpact.datasets.base import Span, TimeSeries, Units
from lpact.datasets.bids.events import Events, bad_events, read_events
from lpact.datasets.bids.files import BidsFiles, Datatype, sidecar_of
from lpact.errors import RecordingError

NEURAL: dict[Datatype, tuple[str, ...]] = {
    "meg": ("mag", "grad"),
    "eeg": ("eeg",),
    "ieeg": ("ecog", "seeg", "dbs"),
}
_BIDS_TYPES = {
    "MEGMAG": "mag",
    "MEGGRADAXIAL": "mag",
    "MEGGRADPLANAR": "grad",
    "EEG": "eeg",
    "ECOG": "ecog",
    "SEEG": "seeg",
    "DBS": "dbs",
}
"""Types of channels in BIDS as MNE calls them; axial gradiometers are in T, as magnetometers are."""

_DURATION_NOTE_S = 1.0


@dataclass(frozen=True)
class OpenRecording:
    """A recording before its words are known: sample 0 is at 0 s. ``files`` are those that hold it."""

    signal: TimeSeries
    units: Units
    bad_spans: tuple[Span, ...]
    findings: tuple[Finding, ...]
    files: tuple[Path, ...]


def open_recording(
    folder: SourceFolder,
    files: BidsFiles,
    *,
    datatype: Datatype,
    channel_types: Sequence[str],
    space: str,
    region_column: str,
) -> OpenRecording:
    """Open a recording: the values are read when asked for."""
    where = folder.where(files.path)
    raw, own_files = open_raw(folder, files.path)
    rate_hz = float(raw.info["sfreq"])
    check_sampling_rate(rate_hz, files.sidecar, files.path)
    names: list[str] = [str(name) for name in raw.ch_names]
    findings = _duration_note(raw, files.sidecar, folder)
    table = None if files.channels is None else read_channels(files.channels)
    types, bad = _types(table, files.path, names, raw, findings, where)
    wanted = tuple(channel_types) or NEURAL[datatype]
    picks, more = pick_channels(names, types, wanted=wanted, bad=bad, where=where, path=files.path)
    findings += more
    ids = [names[pick] for pick in picks]
    scaled = scaling(
        files.path,
        raw,
        picks,
        types,
        table=files.channels,
        listed={} if table is None else table.units,
        where=where,
    )
    findings += scaled.findings
    places = _places(folder, files, raw, picks, ids, space=space, region_column=region_column)
    findings += [*places.findings, *place_findings(ids, places.coordinates_mm, where)]
    nowhere = np.isnan(places.coordinates_mm).all()
    spans = set(bad_annotations(raw))
    if files.events is not None:
        events = read_events(files.events)
        spans |= set(bad_events(events))
        findings += _sample_notes(folder, files, events, rate_hz, int(raw.first_samp))
    return OpenRecording(
        TimeSeries(
            RawSeries(files.path, picks, scale=scaled.factors, raw=raw),
            rate_hz,
            0.0,
            scaled.physical_unit,
        ),
        Units(
            tuple(ids),
            places.regions,
            None if nowhere else places.coordinates_mm,
            "" if nowhere else places.frame,
            comparable=datatype != "ieeg",
        ),
        tuple(sorted(spans, key=lambda span: (span.start_s, span.stop_s, span.label))),
        tuple(findings),
        own_files,
    )


def _sample_notes(
    folder: SourceFolder, files: BidsFiles, events: Events, rate_hz: float, first_sample: int
) -> list[Finding]:
    """Compare the columns ``onset`` and ``sample`` of the events, where both are there.

    Two clocks that disagree are an error: one of them puts the words at wrong samples. A note is enough where samples
    are numbered as the file numbers them, from its first one on, and where a derivative has the events of its raw
    recording, whose samples are not its own: ``onset`` counts then.
    """
    if "sample" not in events.table.columns:
        return []
    mismatch = sample_mismatch(events.onset_s, events.table.numbers_or_nan("sample"), rate_hz)
    if mismatch is None:
        return []
    shifted_by = np.abs(mismatch.apart[np.isfinite(mismatch.apart)] + first_sample)
    renumbered = first_sample != 0 and bool((shifted_by <= mismatch.within).all())
    own = events.path.is_relative_to(Path(files.entities.root))
    if own and not renumbered:
        raise RecordingError(
            "the columns 'onset' and 'sample' of the events disagree",
            where=f"{events.path}, line {mismatch.rows[0] + 2}",
            got=mismatch.found,
            expected=mismatch.expected,
            remedy="find out which is right; fix the other, or remove the column 'sample'",
        )
    return [
        Finding(
            field="sample",
            reason=Reason.SIDECAR_DISAGREES,
            severity="note",
            where=folder.where(events.path),
            found=mismatch.found,
            expected=mismatch.expected,
            remedy=f"none is needed: samples are numbered from {first_sample} as in the file, and 'onset' counts"
            if renumbered
            else "none is needed: the samples are those of the raw recording, and 'onset' counts",
        )
    ]


def _types(
    table: ChannelTable | None,
    path: Path,
    names: Sequence[str],
    raw: Any,
    findings: list[Finding],
    where: str,
) -> tuple[list[str], dict[str, str]]:
    """Return each channel's type as MNE calls it and why bad ones are bad: channels.tsv counts, then the file."""
    types: list[str] = list(raw.get_channel_types())
    bad = {str(name): "in the file" for name in raw.info["bads"]}
    if table is None:
        return types, bad
    _check_listed(table, names, path)
    unknown = [name for name in table.types if name not in names]
    if unknown:
        findings.append(
            Finding(
                field="channels.tsv",
                reason=Reason.SIDECAR_DISAGREES,
                severity="note",
                where=where,
                found=f"{len(unknown)} row(s) for channels that the file does not have: {', '.join(unknown[:8])}",
                expected="the channels of the file",
                remedy="none is needed: the file's channels count",
            )
        )
    known = [_BIDS_TYPES.get(table.types[name], table.types[name].lower()) for name in names]
    return known, bad | table.bad


def _check_listed(table: ChannelTable, names: Sequence[str], path: Path) -> None:
    unlisted = [name for name in names if name not in table.types]
    if unlisted:
        raise RecordingError(
            "a channel of the recording is not in channels.tsv",
            where=str(table.path),
            got=f"no row for {', '.join(unlisted[:5])}",
            expected=f"a row for each of the {len(names)} channels of {path.name}",
            remedy="add the rows",
        )


def _duration_note(raw: Any, sidecar: Path | None, folder: SourceFolder) -> list[Finding]:
    if sidecar is None:
        return []
    stated = read_json(sidecar, RecordingError).get("RecordingDuration")
    length_s = raw.n_times / raw.info["sfreq"]
    if not isinstance(stated, int | float) or math.isclose(
        stated, length_s, abs_tol=_DURATION_NOTE_S
    ):
        return []
    return [
        Finding(
            field="RecordingDuration",
            reason=Reason.SIDECAR_DISAGREES,
            severity="note",
            where=folder.where(sidecar),
            found=f"{stated:g} s in the sidecar, {length_s:g} s in the file",
            expected=f"the same length, within {_DURATION_NOTE_S:g} s",
            remedy="check that the file is complete; words after its end are left out",
        )
    ]


def _places(
    folder: SourceFolder,
    files: BidsFiles,
    raw: Any,
    picks: Sequence[int],
    ids: Sequence[str],
    *,
    space: str,
    region_column: str,
) -> Places:
    """Return where the units lie: by electrodes.tsv, or else by the file."""
    entities = files.entities.copy().update(
        space=space or None, check=False, acquisition=None, run=None, split=None
    )
    path = _electrodes_file(folder, files, space, entities)
    if path is None:
        inside, frame = channel_places(raw, picks)
        return Places(inside, frame, ("unknown",) * len(ids), ())
    unit, frame = _coordinate_system(folder, path)
    return read_electrodes(
        path, ids, unit=unit, frame=frame, region_column=region_column, where=folder.where(path)
    )


def _electrodes_file(
    folder: SourceFolder, files: BidsFiles, space: str, entities: Any
) -> Path | None:
    """Return the electrode table: the one of ``space``, or the only one."""
    subject = folder.root / f"sub-{files.entities.subject}"
    session = f"ses-{files.entities.session}" if files.entities.session else ""
    here = [
        path
        for path in folder.glob(f"{subject.name}/**/{subject.name}_*electrodes.tsv", RecordingError)
        if not session or session in path.parts
    ]
    if space:
        here = [path for path in here if f"_space-{space}_" in path.name]
    if not here:
        inherited = sidecar_of(folder, entities, "electrodes", ".tsv")
        return inherited if inherited is not None else None
    own = [path for path in here if f"_run-{files.entities.run}_" in path.name]
    chosen = own or here
    if len(chosen) > 1:
        raise RecordingError(
            "there are several electrode tables for a recording",
            where=str(files.path),
            got=", ".join(path.name for path in chosen),
            expected="one, or one of the chosen space",
            remedy="choose with the option 'space'",
        )
    return chosen[0]


def coordinate_system_file(folder: SourceFolder, electrodes: Path) -> Path | None:
    """Return the coordsystem.json beside an electrode table, if it is there."""
    stem = electrodes.name.removesuffix("electrodes.tsv")
    beside = electrodes.with_name(f"{stem}coordsystem.json")
    return folder.optional(folder.relative(beside), RecordingError)


def _coordinate_system(folder: SourceFolder, electrodes: Path) -> tuple[str, str]:
    """Return unit and frame of an electrode table from the coordsystem.json beside it."""
    path = coordinate_system_file(folder, electrodes)
    if path is None:
        return "n/a (no coordsystem.json)", ""
    values = read_json(path, RecordingError)
    units = [str(v) for k, v in values.items() if k.endswith("CoordinateUnits")]
    frames = [str(v) for k, v in values.items() if k.endswith("CoordinateSystem")]
    return (units[0] if units else "n/a"), (frames[0] if frames else "")


def shifted(recording: OpenRecording, start_s: float) -> OpenRecording:
    """Return the recording with sample 0 at ``start_s``."""
    return replace(
        recording,
        signal=replace(recording.signal, start_s=start_s),
        bad_spans=tuple(
            Span(span.start_s + start_s, span.stop_s + start_s, span.label)
            for span in recording.bad_spans
        ),
    )
