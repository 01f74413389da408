"""Recordings of the Podcast ECoG dataset: the released envelope (FIF), or the voltage (EDF)."""

from __future__ import annotations

from collections.abc import Sequence
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
from lpact.datasets._mne.channels import (
    bad_annotations,
    channel_places,
    pick_channels,
    place_findings,
)
from lpact.datasets._mne.series import RawSeries, open_raw
from lpact.datasets._mne.units import Scaling, scaling
from lpact.datasets.base import Recording, RecordingId, Span, TimeSeries, Units
from lpact.errors import RecordingError
from lpact.math.types import BoolArray, FloatArray

NEURAL = ("ecog", "seeg", "dbs")
FRAME = "MNI152NLin2009aSym"
"""Frame of the positions in the released files: they are those of the electrode tables of that space."""

ENVELOPE_UNIT = "a.u."
"""The release does not say what the envelope's numbers are (amplitude or power, scaled or not); its files are marked as
volts because their channels are electrodes. The numbers are given as they are stored."""

_SAME_PLACE_MM = 1.0


def _beside(folder: SourceFolder, subject: str, name: str) -> Path | None:
    return folder.optional(f"sub-{subject}/ieeg/sub-{subject}_{name}", RecordingError)


def electrodes_file(folder: SourceFolder, subject: str) -> Path | None:
    """Return the subject's electrode table in MNI space, if it is there."""
    return _beside(folder, subject, f"space-{FRAME}_electrodes.tsv")


def side_files(folder: SourceFolder, path: Path, *, raw_signal: bool) -> list[Path]:
    """Return the files that are read beside a recording."""
    subject = path.name.partition("_")[0].removeprefix("sub-")
    found = [electrodes_file(folder, subject)]
    if raw_signal:
        found += [_beside(folder, subject, f"task-podcast_{n}") for n in _RAW_SIDECARS]
    return [path for path in found if path is not None]


def opened_files(folder: SourceFolder, path: Path) -> tuple[Path, ...]:
    """Return the files that hold a recording, of which a FIF file may have several; one that is torn stands alone."""
    try:
        return open_raw(folder, path).files
    except RecordingError:
        return (path,)


_RAW_SIDECARS = ("channels.tsv", "ieeg.json")


def read_podcast_recording(
    folder: SourceFolder,
    path: Path,
    recording_id: RecordingId,
    *,
    start_s: float,
    raw_signal: bool,
) -> Recording:
    """Open a recording: its channels, places and marks; the values are read when asked for."""
    where, subject = folder.where(path), recording_id.subject
    raw = open_raw(folder, path).raw
    names: list[str] = list(raw.ch_names)
    types: list[str] = list(raw.get_channel_types())
    bad = {str(name): "in the file" for name in raw.info["bads"]}
    table: ChannelTable | None = None
    if raw_signal:
        check_sampling_rate(
            raw.info["sfreq"], _beside(folder, subject, f"task-podcast_{_RAW_SIDECARS[1]}"), path
        )
        sidecar = f"sub-{subject}/ieeg/sub-{subject}_task-podcast_{_RAW_SIDECARS[0]}"
        table = _channel_table(folder.file(sidecar, RecordingError), names, path)
        types, bad = [table.types[name].lower() for name in names], bad | table.bad
    picks, findings = pick_channels(names, types, wanted=NEURAL, bad=bad, where=where, path=path)
    scaled = Scaling((1.0,) * len(picks), ENVELOPE_UNIT, ())
    if table is not None:
        scaled = scaling(path, raw, picks, types, table=table.path, listed=table.units, where=where)
        findings += scaled.findings
    ids = [names[pick] for pick in picks]
    places = _places(folder, subject, raw, picks, ids, findings, where)
    findings += place_findings(ids, places.coordinates_mm, where)
    if raw.first_samp != 0:
        findings.append(_first_sample(int(raw.first_samp), where))
    nowhere = np.isnan(places.coordinates_mm).all()
    return Recording(
        recording_id,
        TimeSeries(
            RawSeries(path, picks, scale=scaled.factors, raw=raw),
            float(raw.info["sfreq"]),
            start_s,
            scaled.physical_unit,
            envelope=table is None,
        ),
        Units(
            tuple(ids),
            places.regions,
            None if nowhere else places.coordinates_mm,
            "" if nowhere else places.frame,
            comparable=False,
        ),
        where,
        bad_spans=tuple(
            Span(span.start_s + start_s, span.stop_s + start_s, span.label)
            for span in bad_annotations(raw)
        ),
        findings=tuple(findings),
    )


def _channel_table(path: Path, names: Sequence[str], data: Path) -> ChannelTable:
    """Read channels.tsv, which must have a row for every channel of the file."""
    channels = read_channels(path)
    unlisted = [name for name in names if name not in channels.types]
    if unlisted:
        raise RecordingError(
            "a channel of the recording is not in channels.tsv",
            where=str(channels.path),
            got=f"no row for {', '.join(unlisted[:5])}",
            expected=f"a row for each of the {len(names)} channels of {data.name}",
            remedy="add the rows, or download both files again",
        )
    return channels


def _places(
    folder: SourceFolder,
    subject: str,
    raw: Any,
    picks: Sequence[int],
    ids: Sequence[str],
    findings: list[Finding],
    where: str,
) -> Places:
    """Return where the units lie: by the file, and where that does not say, by the electrode table."""
    inside, _ = channel_places(raw, picks)
    path = electrodes_file(folder, subject)
    if path is None:
        return Places(inside, FRAME, ("unknown",) * len(ids), ())
    table = read_electrodes(
        path, ids, unit="mm", frame=FRAME, region_column="", where=folder.where(path)
    )
    findings.extend(table.findings)
    known = np.isfinite(inside.sum(axis=1))
    apart: BoolArray = ((inside - table.coordinates_mm) ** 2).sum(axis=1) > _SAME_PLACE_MM**2
    if apart.any():
        findings.append(_other_places(ids, inside, table.coordinates_mm, apart, where))
    coordinates = np.where(known[:, None], inside, table.coordinates_mm)
    return Places(coordinates, FRAME, table.regions, ())


def _other_places(
    ids: Sequence[str], inside: FloatArray, listed: FloatArray, apart: BoolArray, where: str
) -> Finding:
    i = int(np.flatnonzero(apart)[0])
    shown = " and ".join(np.array2string(xyz, precision=1) for xyz in (inside[i], listed[i]))
    return Finding(
        field="electrodes.tsv",
        reason=Reason.SIDECAR_DISAGREES,
        severity="note",
        where=where,
        found=f"{int(apart.sum())} position(s) differ; the first is {ids[i]}: {shown} mm",
        expected=f"the same positions in the recording and in electrodes.tsv, within {_SAME_PLACE_MM:g} mm",
        remedy="none is needed: the recording's positions count",
    )


def _first_sample(number: int, where: str) -> Finding:
    return Finding(
        field="first_samp",
        reason=Reason.SIDECAR_DISAGREES,
        severity="note",
        where=where,
        found=f"the file numbers its first sample {number}",
        expected="0: the recording is cut to the story",
        remedy="word times are counted from the file's first sample; give audio_start_s if that is wrong",
    )
