"""Media of a stimulus: what is present, what is missing and why, and what acoustic controls can be made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lpact.codes import Reason
from lpact.datasets.base import AbsentMedium, Stimulus
from lpact.features.acoustics import WAV_SUFFIXES, envelope_source, why_no_envelope

ENVELOPE = "audio_envelope"
KINDS = (ENVELOPE, "audio", "video")
"""Media that are reported for every recording."""
ACOUSTIC_COLUMNS = ("rms", "pitch", "delta_rms", "delta_pitch", "intensity", "f0", "loudness")
"""Columns of words tables that were measured from sound by the authors of the dataset."""
NOT_OFFERED = AbsentMedium(Reason.MEDIA_NOT_OFFERED, "")


@dataclass(frozen=True)
class StimulusMedia:
    """Media of one stimulus: paths by kind, reasons for the others, and sources of acoustic controls."""

    present: Mapping[str, str]
    absent: Mapping[str, AbsentMedium]
    sources: Mapping[str, str]

    def why_not(self, kind: str) -> AbsentMedium:
        """Why a medium is missing; a kind that no reader names is not offered."""
        return self.absent.get(kind, NOT_OFFERED)


def media_of(stimulus: Stimulus) -> StimulusMedia:
    """Media of one stimulus; nothing is opened."""
    present = {kind: path for kind, path in stimulus.media.items() if path}
    absent = {k: v for k, v in stimulus.media_absent.items() if k not in present}
    if source := envelope_source(stimulus):
        present[ENVELOPE] = source
    else:
        known = absent.get("audio")
        detail = why_no_envelope(stimulus) or ""
        absent[ENVELOPE] = known or AbsentMedium(Reason.MEDIA_NOT_OFFERED, detail)
    absent |= {kind: NOT_OFFERED for kind in KINDS if kind not in (*present, *absent)}
    return StimulusMedia(present, absent, _acoustic_sources(stimulus))


def _acoustic_sources(stimulus: Stimulus) -> dict[str, str]:
    found = {}
    audio = stimulus.media.get("audio", "")
    if stimulus.envelope is not None:
        found["envelope_in_dataset"] = f"{stimulus.envelope.sampling_rate_hz:g} Hz"
    if audio:
        wav = Path(audio).suffix.lower() in WAV_SUFFIXES
        found["wav_file" if wav else "other_audio_file"] = audio
    if stimulus.media.get("video"):
        found["video_file"] = stimulus.media["video"]
    columns = [name for name in ACOUSTIC_COLUMNS if name in stimulus.words.columns]
    if columns:
        found["transcript_columns"] = ", ".join(columns)
    if stimulus.words.height and not stimulus.lacks("onset_s"):
        found["word_times"] = f"{stimulus.words.height} words"
    return found
