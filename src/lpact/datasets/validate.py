"""Checks that every dataset passes before its numbers are looked at.

What cannot be analysed at all raises (`StimulusError`, `RecordingError`, `InputError`); what can
be left out, or kept with a note, is a `Finding`.
"""

from __future__ import annotations

from lpact.datasets._finding import Finding
from lpact.datasets._validate_recording import (
    UnitScan,
    check_recording,
    check_recording_ids,
    check_word_onsets,
    unit_findings,
)
from lpact.datasets._validate_stimulus import check_stimulus, overlap_findings

__all__ = [
    "Finding",
    "UnitScan",
    "check_recording",
    "check_recording_ids",
    "check_stimulus",
    "check_word_onsets",
    "overlap_findings",
    "unit_findings",
]
