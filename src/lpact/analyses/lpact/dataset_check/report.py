"""What ``lpact datasets check`` says about a dataset, as blocks and as plain values."""

from __future__ import annotations

from typing import Any

from lpact.analyses.explanation import Block, DatasetReport
from lpact.analyses.lpact.dataset_check.check import DatasetCheck, RecordingLook
from lpact.cli._options import program
from lpact.datasets._finding import Finding
from lpact.datasets.catalogue import Part
from lpact.errors import LPactError
from lpact.wording import counted, size

MAX_SHOWN = 20
_LONG_S = 120
_NUMBERS = ("Hz", "samples", "length", "units", "regions", "words", "to", "no time", "events")


def dataset_report(check: DatasetCheck) -> DatasetReport:
    """Everything that a check found."""
    blocks = (
        _about(check),
        *_layout(check),
        _recordings(check),
        *_media(check),
        _findings(check),
        _problems(check),
        _levels(check),
    )
    return DatasetReport(blocks, check.usable, _values(check))


def _about(check: DatasetCheck) -> Block:
    place = f" in {check.folder}" if check.folder else ""
    state = "usable" if check.usable else "something must be fixed first"
    info = check.info
    lines = (
        () if info is None else (f"{info.source}; version {info.version}; licence {info.licence}",)
    )
    return Block(f"{check.reader}{place}: {state}", lines)


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
    looks = check.recordings
    subjects = counted(len({look.id.subject for look in looks}), "subject")
    stimuli = counted(len(check.stimuli), "stimulus", "stimuli")
    title = f"{counted(len(looks), 'recording')} of {subjects}, {stimuli}"
    lines = [f"the first {MAX_SHOWN}:"] if len(looks) > MAX_SHOWN else []
    if looks and not check.deep:
        lines.insert(
            0,
            "Signals were not read: bad units and artefacts still count. --deep reads them and puts every recording "
            "on the event grid.",
        )
    columns = ("subject", "session", "run", "stimulus", "Hz", "unit", *_NUMBERS[1:], "audio", "use")
    rows = tuple(_row(look, deep=check.deep) for look in looks[:MAX_SHOWN])
    return Block(title, tuple(lines), columns, rows, frozenset(_NUMBERS))


def _row(look: RecordingLook, *, deep: bool) -> tuple[str, ...]:
    return (
        look.id.subject,
        look.id.session,
        look.id.run,
        look.id.stimulus,
        "–" if look.sampling_rate_hz is None else f"{look.sampling_rate_hz:g}",
        look.physical_unit or "unknown",
        f"{look.n_samples:,}",
        _length(look.duration_s),
        str(look.n_units),
        str(look.n_regions),
        f"{look.n_words:,}",
        _length(look.last_word_s),
        str(look.n_words_without_time),
        f"{look.n_events:,}",
        "yes" if "audio" in look.media.present else str(look.media.why_not("audio").reason),
        ("yes" if deep else "so far") if look.reason == "ok" else str(look.reason),
    )


def _length(seconds: float | None) -> str:
    """A time span: seconds up to two minutes, then minutes."""
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if abs(seconds) < _LONG_S else f"{seconds / 60:.1f} min"


def _media(check: DatasetCheck) -> list[Block]:
    absent: dict[tuple[str, str], dict[str, str]] = {}
    for look in check.recordings:
        for kind, why in look.media.absent.items():
            absent.setdefault((kind, str(why.reason)), {})[look.id.stimulus] = why.detail
    lines = []
    for (kind, reason), details in absent.items():
        stimulus, detail = next(iter(details.items()))
        example = f"; '{stimulus}': {detail}" if detail else ""
        lines.append(f"{kind} of {counted(len(details), 'stimulus', 'stimuli')}: {reason}{example}")
    return [Block("Missing stimulus media", tuple(lines))] if lines else []


def _findings(check: DatasetCheck) -> Block:
    grouped: dict[tuple[str, ...], list[str]] = {}
    places = [(finding, "") for finding in check.findings]
    places += [(finding, f"{look.id} ") for look in check.recordings for finding in look.findings]
    for f, recording in places:
        kind = (f.severity, str(f.reason), f.found, f.expected, f.remedy)
        grouped.setdefault(kind, []).append(f"{recording}{f.field} ({f.where})")
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
    lines = [
        f"{part.status}: {part.expected.what} ({' or '.join(part.expected.patterns)})"
        for part in missing
    ]
    lines += map(str, check.problems)
    lines += (
        f"{path} holds more of the layout: give {path} instead"
        for path in check.instead[:MAX_SHOWN]
    )
    if missing and check.fetchable:
        lines.append(f"How to get it: {program()} datasets fetch {check.reader} --to FOLDER")
    n_problems = len(check.problems) + len(missing)
    return Block(f"To be fixed: {n_problems or 'nothing'}", tuple(lines))


def _levels(check: DatasetCheck) -> Block:
    rows = tuple((v.what, "yes" if v.possible else "no", v.detail) for v in check.levels)
    return Block("What the dataset supports", (), ("evidence", "possible", "why"), rows)


# --- Plain values ----------------------------------------------------------------------------------


def _values(check: DatasetCheck) -> dict[str, Any]:
    return {
        "reader": check.reader,
        "folder": None if check.folder is None else str(check.folder),
        "usable": check.usable,
        "deep": check.deep,
        "role": check.role,
        "source": None if check.info is None else vars(check.info),
        "layout": [_part(part) for part in check.parts],
        "recordings": [_recording(look) for look in check.recordings],
        "stimuli": list(check.stimuli),
        "findings": [_finding(finding) for finding in check.findings],
        "give_instead": [str(path) for path in check.instead],
        "chain": [vars(link) for link in check.chain],
        "levels": [vars(level) for level in check.levels],
        "problems": [_problem(problem) for problem in check.problems],
    }


def _problem(problem: LPactError) -> dict[str, Any]:
    return {
        "what": problem.what,
        "where": problem.where,
        "found": None if problem.got is None else str(problem.got),
        "expected": None if problem.expected is None else str(problem.expected),
        "remedy": problem.remedy,
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "part": part.expected.what,
        "patterns": list(part.expected.patterns),
        "needed": part.expected.needed,
        "boundary": part.expected.boundary,
        "status": part.status,
        "n_files": part.n_files,
        "n_bytes": part.n_bytes,
        "n_without_content": part.n_without_content,
    }


def _recording(look: RecordingLook) -> dict[str, Any]:
    return {
        **vars(look.id),
        "where": look.where,
        "sampling_rate_hz": look.sampling_rate_hz,
        "physical_unit": look.physical_unit,
        "n_samples": look.n_samples,
        "duration_s": look.duration_s,
        "last_word_s": look.last_word_s,
        "n_units": look.n_units,
        "n_regions": look.n_regions,
        "n_words": look.n_words,
        "n_words_without_time": look.n_words_without_time,
        "n_events": look.n_events,
        "reason": str(look.reason),
        "media": dict(look.media.present),
        "media_absent": {
            kind: {"reason": str(why.reason), "detail": why.detail}
            for kind, why in look.media.absent.items()
        },
        "findings": [_finding(finding) for finding in look.findings],
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {key: str(value) for key, value in vars(finding).items()}
