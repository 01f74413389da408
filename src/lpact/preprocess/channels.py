"""Which units of a recording a study looks at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from lpact.codes import Reason
from lpact.config import PreprocessConfig
from lpact.datasets._finding import Finding
from lpact.datasets.base import Recording
from lpact.errors import MOST_LISTED, RecordingError, did_you_mean


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name equals one of the patterns, or fits one (``*``, ``?``, ``[abc]``; case counts)."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def select_channels(
    recording: Recording, config: PreprocessConfig
) -> tuple[list[int], tuple[Finding, ...]]:
    """Return the indices of the units that the study keeps, in their order, and what there is to say about it.

    A unit is kept if its id fits one of ``channels``, its region one of ``regions`` (where these are given), and its id
    none of ``drop_channels``. A pattern that fits nothing in this recording is noted, since electrodes differ between
    subjects; if none of ``channels`` fits anything, the recording raises.
    """
    ids, regions = recording.units.ids, recording.units.regions
    notes = []
    for option, patterns, names in (
        ("channels", config.channels, ids),
        ("drop_channels", config.drop_channels, ids),
        ("regions", config.regions, regions),
    ):
        idle = [p for p in patterns if not any(matches(name, (p,)) for name in names)]
        if option == "channels" and idle and len(idle) == len(patterns):
            raise RecordingError(
                "no unit of the recording is among the channels that the study selects",
                where=f"{recording.where}, option 'preprocess.channels'",
                got=listed(idle),
                expected="ids of units, or patterns that fit some of them",
                remedy=did_you_mean(idle[0], ids),
            )
        notes += [_idle(recording, option, pattern, names) for pattern in idle]
    kept = [
        index
        for index, (unit, region) in enumerate(zip(ids, regions, strict=True))
        if (not config.channels or matches(unit, config.channels))
        and (not config.regions or matches(region, config.regions))
        and not matches(unit, config.drop_channels)
    ]
    left_out = [ids[index] for index in sorted(set(range(len(ids))) - set(kept))]
    if left_out:
        notes.append(_left_out(recording, left_out))
    return kept, tuple(notes)


def _idle(recording: Recording, option: str, pattern: str, names: Iterable[str]) -> Finding:
    return Finding(
        field=pattern,
        reason=Reason.CHANNEL_NOT_SELECTED,
        severity="note",
        where=recording.where,
        found=f"no unit of this recording fits '{pattern}' (preprocess.{option})",
        expected="a name or pattern that fits",
        remedy=f"none needed if other recordings have it; {did_you_mean(pattern, set(names))}",
    )


def _left_out(recording: Recording, left_out: list[str]) -> Finding:
    return Finding(
        field="channels",
        reason=Reason.CHANNEL_NOT_SELECTED,
        severity="excluded",
        where=recording.where,
        found=f"{len(left_out)} of {len(recording.units.ids)} units: {listed(left_out)}",
        expected="units that preprocess.channels, drop_channels and regions keep",
        remedy="none needed; widen the selection to keep them",
    )
