"""What ``lpact datasets`` shows, as text and as JSON."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import counted, heading, memory, say, show, whole

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.analyses.lpact.dataset_check.check import DatasetCheck, RecordingLook
    from lpact.datasets._finding import Finding
    from lpact.datasets.catalogue import Download
    from lpact.datasets.check import Part
    from lpact.datasets.fetch import Command, FetchPlan

MAX_SHOWN = 20
_KIB = 1024
_LONG_S = 120
_STYLES = {
    "found": "green",
    "missing": "bold red",
    "no content": "bold red",
    "not released": "yellow",
    "yes": "green",
    "no": "red",
}


# --- check -------------------------------------------------------------------------------------


def show_check(out: Console, check: DatasetCheck) -> None:
    """The whole check, as text."""
    place = f" in {check.folder}" if check.folder else ""
    say(out, f"{check.reader}{place}: {'usable' if check.usable else 'something must be mended'}")
    if check.info is not None:
        info = check.info
        say(out, f"{info.source}; version {info.version}; licence {info.licence}", indent=2)
    _show_parts(out, check)
    _show_recordings(out, check)
    _show_media(out, check)
    _show_findings(out, check)
    _show_problems(out, check)
    _show_levels(out, check)


def _show_parts(out: Console, check: DatasetCheck) -> None:
    if not check.parts:
        return
    heading(out, "Layout")
    grid = Grid(
        ("part", "status", "files", "size", "where"),
        right=frozenset({"files", "size"}),
        styles=_STYLES,
    )
    for part in check.parts:
        size = size_of(part.n_bytes) if part.n_files else ""
        where = part.pattern or " or ".join(part.expected.patterns)
        grid.add(part.expected.what, part.status, part.n_files or "", size, where)
    show(out, grid)
    for part in check.parts:
        if part.status == "not released":
            say(out, f"{part.expected.what}: {part.expected.boundary}", indent=2)
        if part.n_without_content:
            n_links = counted(part.n_without_content, "file")
            say(
                out,
                f"{part.expected.what}: {n_links} without content; `datalad get` gets it",
                indent=2,
            )


def _show_recordings(out: Console, check: DatasetCheck) -> None:
    looks = check.recordings
    subjects = counted(len({r.id.subject for r in looks}), "subject")
    stimuli = counted(len(check.stimuli), "stimulus", "stimuli")
    heading(out, f"{counted(len(looks), 'recording')} of {subjects}, {stimuli}")
    if not looks:
        return
    numbers = ("Hz", "samples", "length", "units", "regions", "words", "to", "no time", "events")
    grid = Grid(
        ("subject", "session", "run", "stimulus", "Hz", "unit", *numbers[1:], "audio", "use"),
        right=frozenset(numbers),
    )
    for look in looks[:MAX_SHOWN]:
        grid.add(
            look.id.subject,
            look.id.session,
            look.id.run,
            look.id.stimulus,
            "–" if look.sampling_rate_hz is None else f"{look.sampling_rate_hz:g}",
            look.physical_unit or "not told",
            whole(look.n_samples),
            _length(look.duration_s),
            look.n_units,
            look.n_regions,
            whole(look.n_words),
            _length(look.last_word_s),
            look.n_words_without_time,
            whole(look.n_events),
            "yes" if "audio" in look.media.present else str(look.media.why_not("audio").reason),
            ("yes" if check.deep else "so far") if look.reason == "ok" else str(look.reason),
        )
    show(out, grid)
    if len(looks) > MAX_SHOWN:
        say(out, f"… and {len(looks) - MAX_SHOWN} more", indent=2)
    if not check.deep:
        say(
            out,
            "no signal was read, so that broken units and artefacts still count: "
            "--deep reads it, and puts every recording on the event grid",
            indent=2,
        )


def _length(seconds: float | None) -> str:
    """A time span: seconds up to two minutes, then minutes."""
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if abs(seconds) < _LONG_S else f"{seconds / 60:.1f} min"


def _show_media(out: Console, check: DatasetCheck) -> None:
    absent: dict[tuple[str, str], dict[str, str]] = {}
    for look in check.recordings:
        for kind, why in look.media.absent.items():
            absent.setdefault((kind, str(why.reason)), {})[look.id.stimulus] = why.detail
    if not absent:
        return
    heading(out, "Stimulus media that are not there")
    for (kind, reason), details in absent.items():
        n_stimuli = counted(len(details), "stimulus", "stimuli")
        stimulus, detail = next(iter(details.items()))
        told = f"; '{stimulus}': {detail}" if detail else ""
        say(out, f"{kind} of {n_stimuli}: {reason}{told}", indent=2)


def _show_findings(out: Console, check: DatasetCheck) -> None:
    grouped: dict[tuple[str, ...], list[str]] = {}
    for finding in check.findings:
        grouped.setdefault(_told(finding), []).append(f"{finding.field} ({finding.where})")
    for look in check.recordings:
        for finding in look.findings:
            place = f"{look.id} {finding.field} ({finding.where})"
            grouped.setdefault(_told(finding), []).append(place)
    heading(out, f"Findings: {len(grouped) or 'none'}")
    for (severity, reason, found, expected, remedy), places in list(grouped.items())[:MAX_SHOWN]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        say(out, f"{severity}: {reason}, {places[0]}{more}", indent=2)
        say(out, f"found: {found}", indent=4)
        say(out, f"expected: {expected}", indent=4)
        say(out, f"remedy: {remedy}", indent=4)
    if len(grouped) > MAX_SHOWN:
        say(out, f"… and {len(grouped) - MAX_SHOWN} more", indent=2)


def _told(finding: Finding) -> tuple[str, ...]:
    """What findings of several places share."""
    severity, reason = finding.severity, str(finding.reason)
    return severity, reason, finding.found, finding.expected, finding.remedy


def _show_problems(out: Console, check: DatasetCheck) -> None:
    missing = [part for part in check.parts if part.must_be_mended]
    heading(out, f"To be mended: {len(check.problems) + len(missing) or 'nothing'}")
    for part in missing:
        patterns = " or ".join(part.expected.patterns)
        say(out, f"{part.status}: {part.expected.what} ({patterns})", indent=2)
    for problem in check.problems:
        say(out, str(problem), indent=2)
    for path in check.instead[:MAX_SHOWN]:
        say(out, f"{path} holds more of the layout: give {path} instead", indent=2)
    if missing and check.fetchable:
        say(
            out,
            f"`{program()} datasets fetch {check.reader} --to FOLDER` says how to get it",
            indent=2,
        )


def _show_levels(out: Console, check: DatasetCheck) -> None:
    heading(out, "What the dataset can carry")
    grid = Grid(("evidence", "possible", "why"), styles=_STYLES)
    for level in check.levels:
        grid.add(level.what, "yes" if level.possible else "no", level.detail)
    show(out, grid)


def size_of(n_bytes: int) -> str:
    """The size of files; small ones in bytes or KiB."""
    if n_bytes < _KIB:
        return f"{n_bytes} B"
    return f"{round(n_bytes / _KIB)} KiB" if n_bytes < _KIB**2 else memory(n_bytes)


def as_json(check: DatasetCheck) -> str:
    """The whole check, as JSON."""
    values = {
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
        "problems": [
            {
                "what": p.what,
                "where": p.where,
                "found": None if p.got is None else str(p.got),
                "expected": None if p.expected is None else str(p.expected),
                "remedy": p.remedy,
            }
            for p in check.problems
        ],
    }
    return json.dumps(values, indent=2, ensure_ascii=False)


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


# --- fetch -------------------------------------------------------------------------------------


def source_lines(download: Download) -> list[tuple[str, str]]:
    """Where a dataset comes from, as (label, text)."""
    lines = [
        (
            "source",
            f"{download.identifier} ({download.homepage})"
            if download.identifier
            else download.homepage,
        ),
        ("version", download.version),
        ("size", download.size),
        ("licence", download.licence),
        ("cite", download.citation),
    ]
    return [(label, text) for label, text in lines if text]


def show_plan(out: Console, plan: FetchPlan) -> None:
    """What a download is and takes, as text."""
    say(out, f"{plan.name} → {plan.folder}")
    for label, text in source_lines(plan.download):
        say(out, f"{label + ':':<9}{text}", indent=2)
    if plan.download.include and not plan.by_hand:
        say(out, f"{'parts:':<9}{', '.join(plan.download.include)}", indent=2)
    if plan.download.steps:
        heading(out, "What only you can do" if not plan.by_hand else "How to get it")
        for number, step in enumerate(plan.download.steps, start=1):
            say(out, f"{number}. {step}", indent=2)
    if plan.commands:
        heading(out, "What would be run")
        for command in plan.commands:
            # Not broken: a shell would take the second line of a pasted command for another one.
            out.print(f"  {command_text(command)}", soft_wrap=True, markup=False, highlight=False)
    if plan.lacking:
        say(out, f"not installed; first: {plan.lacking}", indent=2)
    if plan.files:
        _show_files(out, plan)
    if plan.by_hand and not plan.download.steps:
        heading(out, "How to get it")
        say(out, f"by hand, from {plan.download.homepage}", indent=2)


def _show_files(out: Console, plan: FetchPlan) -> None:
    left = plan.n_bytes_left
    known = "size not published" if left is None else f"{size_of(left)} to come"
    heading(out, f"{counted(len(plan.files), 'file')} by HTTPS, {known}")
    grid = Grid(("file", "size", "checksum", "from"), right=frozenset({"size"}))
    for file in plan.files[:MAX_SHOWN]:
        size = "" if file.n_bytes is None else size_of(file.n_bytes)
        grid.add(file.path, size, "published" if file.sha256 else "none", file.url)
    show(out, grid)
    if len(plan.files) > MAX_SHOWN:
        say(out, f"… and {len(plan.files) - MAX_SHOWN} more", indent=2)


def command_text(command: Command) -> str:
    """A command as it can be typed anywhere; files that are found on the way stand as globs, for the shell to expand.

    A tool does not expand globs, and a shell does so where it is: hence the change of folder, in a shell of its own.
    """
    if not command.globs:
        return shlex.join(command.arguments)
    program, _, folder, *rest = command.arguments
    globs = [glob.removesuffix("**/*").removesuffix("/**") or "." for glob in command.globs]
    return f"(cd {shlex.quote(folder)} && {shlex.join([program, *rest])} {' '.join(globs)})"


def plan_json(plan: FetchPlan) -> str:
    """What a download is and takes, as JSON."""
    download = plan.download
    values = {
        "dataset": plan.name,
        "to": str(plan.folder),
        "method": download.method,
        "identifier": download.identifier,
        "version": download.version,
        "size": download.size,
        "licence": download.licence,
        "homepage": download.homepage,
        "citation": download.citation,
        "include": list(download.include),
        "steps": list(download.steps),
        "commands": [
            {"arguments": list(c.arguments), "globs": list(c.globs)} for c in plan.commands
        ],
        "files": [vars(file) for file in plan.files],
        "n_bytes_left": plan.n_bytes_left if plan.files else None,
        "lacking": plan.lacking,
    }
    return json.dumps(values, indent=2, ensure_ascii=False)
