"""What ``lpact datasets check`` shows of a dataset, as blocks and as plain values."""

from __future__ import annotations

from typing import Any

from lpact.analyses.explanation import Block
from lpact.cli._options import program
from lpact.datasets.base import Finding
from lpact.datasets.catalogue import Part
from lpact.inputs.check import DatasetCheck, RecordingCheck
from lpact.wording import counted, size

MAX_SHOWN = 20
_LONG_S = 120
_NUMBERS = ("Hz", "samples", "length", "units", "regions", "words", "to", "no time", "events")


def check_blocks(check: DatasetCheck) -> list[Block]:
    """Everything that a check found."""
    place = f" in {check.folder}" if check.folder else ""
    state = "usable" if check.usable else "something must be fixed first"
    info = check.info
    about = () if info is None else (f"{info.source}; version {info.version}; licence {info.licence}",)
    return [
        Block(f"{check.reader}{place}: {state}", about),
        *_layout(check),
        _recordings(check),
        *_media(check),
        _findings(check),
        _problems(check),
    ]


def _layout(check: DatasetCheck) -> list[Block]:
    if not check.parts:
        return []
    rows, lines = [], []
    for part in check.parts:
        what = part.expected.what
        n_bytes = size(part.n_bytes) if part.n_files else ""
        where = part.pattern or " or ".join(part.expected.patterns)
        rows.append((what, part.status, str(part.n_files or ""), n_bytes, where))
        if part.status == "not released":
            lines.append(f"{what}: {part.expected.boundary}")
        if part.n_without_content:
            n_links = counted(part.n_without_content, "file")
            lines.append(f"{what}: {n_links} without content; `datalad get` fetches it")
    columns = ("part", "status", "files", "size", "where")
    return [Block("Layout", tuple(lines), columns, tuple(rows), frozenset({"files", "size"}))]


def _recordings(check: DatasetCheck) -> Block:
    found = check.recordings
    subjects = counted(len({recording.id.subject for recording in found}), "subject")
    stimuli = counted(len(check.stimuli), "stimulus", "stimuli")
    title = f"{counted(len(found), 'recording')} of {subjects}, {stimuli}"
    lines = []
    if found and not check.deep:
        lines.append(
            "Signals were not read: bad units and artefacts still count. --deep reads them and puts every recording "
            "on the event grid."
        )
    if len(found) > MAX_SHOWN:
        lines.append(f"the first {MAX_SHOWN}:")
    columns = ("subject", "session", "run", "stimulus", "Hz", "unit", *_NUMBERS[1:], "audio", "use")
    rows = tuple(_row(recording, deep=check.deep) for recording in found[:MAX_SHOWN])
    return Block(title, tuple(lines), columns, rows, frozenset(_NUMBERS))


def _row(found: RecordingCheck, *, deep: bool) -> tuple[str, ...]:
    return (
        found.id.subject,
        found.id.session,
        found.id.run,
        found.id.stimulus,
        "–" if found.sampling_rate_hz is None else f"{found.sampling_rate_hz:g}",
        found.physical_unit or "unknown",
        f"{found.n_samples:,}",
        _length(found.duration_s),
        str(found.n_units),
        str(found.n_regions),
        f"{found.n_words:,}",
        _length(found.last_word_s),
        str(found.n_words_without_time),
        f"{found.n_events:,}",
        "yes" if "audio" in found.media.present else str(found.media.why_not("audio").reason),
        ("yes" if deep else "so far") if found.reason == "ok" else str(found.reason),
    )


def _length(seconds: float | None) -> str:
    """A time span: seconds up to two minutes, then minutes."""
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if abs(seconds) < _LONG_S else f"{seconds / 60:.1f} min"


def _media(check: DatasetCheck) -> list[Block]:
    absent: dict[tuple[str, str], dict[str, str]] = {}
    for recording in check.recordings:
        for kind, why in recording.media.absent.items():
            absent.setdefault((kind, str(why.reason)), {})[recording.id.stimulus] = why.detail
    lines = []
    for (kind, reason), details in absent.items():
        stimulus, detail = next(iter(details.items()))
        example = f"; '{stimulus}': {detail}" if detail else ""
        lines.append(f"{kind} of {counted(len(details), 'stimulus', 'stimuli')}: {reason}{example}")
    return [Block("Missing stimulus media", tuple(lines))] if lines else []


def _findings(check: DatasetCheck) -> Block:
    grouped: dict[tuple[str, ...], list[str]] = {}
    places = [(finding, "") for finding in check.findings]
    places += [(f, f"{recording.id} ") for recording in check.recordings for f in recording.findings]
    for f, recording_id in places:
        kind = (f.severity, str(f.reason), f.found, f.expected, f.remedy)
        grouped.setdefault(kind, []).append(f"{recording_id}{f.field} ({f.where})")
    lines: list[str] = []
    for (severity, reason, found, expected, remedy), where in list(grouped.items())[:MAX_SHOWN]:
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        lines += [
            f"{severity}: {reason}, {where[0]}{more}",
            f"  found: {found}",
            f"  expected: {expected}",
            f"  remedy: {remedy}",
        ]
    if len(grouped) > MAX_SHOWN:
        lines.append(f"… and {len(grouped) - MAX_SHOWN} more")
    return Block(f"Findings: {len(grouped) or 'none'}", tuple(lines))


def _problems(check: DatasetCheck) -> Block:
    missing = [part for part in check.parts if part.must_be_fixed]
    lines = [f"{part.status}: {part.expected.what} ({' or '.join(part.expected.patterns)})" for part in missing]
    lines += map(str, check.problems)
    lines += (f"{path} has more of the layout: pass {path} instead" for path in check.instead[:MAX_SHOWN])
    if missing and check.fetchable:
        lines.append(f"How to get it: {program()} datasets fetch {check.reader} --to FOLDER")
    n_problems = len(check.problems) + len(missing)
    return Block(f"To be fixed: {n_problems or 'nothing'}", tuple(lines))


def check_values(check: DatasetCheck) -> dict[str, Any]:
    """The same as plain values for JSON."""
    return {
        "reader": check.reader,
        "folder": None if check.folder is None else str(check.folder),
        "usable": check.usable,
        "deep": check.deep,
        "role": check.role,
        "source": None if check.info is None else vars(check.info),
        "layout": [_part(part) for part in check.parts],
        "recordings": [_recording(recording) for recording in check.recordings],
        "stimuli": sorted(check.stimuli),
        "findings": [_finding(finding) for finding in check.findings],
        "give_instead": [str(path) for path in check.instead],
        "problems": [
            {
                "what": problem.what,
                "where": problem.where,
                "found": None if problem.got is None else str(problem.got),
                "expected": None if problem.expected is None else str(problem.expected),
                "remedy": problem.remedy,
            }
            for problem in check.problems
        ],
    }


def _part(part: Part) -> dict[str, Any]:
    expected, counts = vars(part.expected).copy(), vars(part).copy()
    del counts["expected"], counts["pattern"]
    expected["part"] = expected.pop("what")
    return {**expected, "patterns": list(part.expected.patterns), "status": part.status, **counts}


def _recording(found: RecordingCheck) -> dict[str, Any]:
    left_out = ("id", "unit_ids", "comparable", "events")
    values = {name: value for name, value in vars(found).items() if name not in left_out}
    return {
        **vars(found.id),
        **values,
        "n_units": found.n_units,
        "reason": str(found.reason),
        "media": dict(found.media.present),
        "media_absent": {
            kind: {"reason": str(why.reason), "detail": why.detail} for kind, why in found.media.absent.items()
        },
        "findings": [_finding(finding) for finding in found.findings],
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {key: str(value) for key, value in vars(finding).items()}
