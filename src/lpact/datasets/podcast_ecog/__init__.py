"""Reader of the Podcast ECoG dataset (OpenNeuro ds005574): nine people listen to a story of 30 minutes.

::

    dataset_description.json, participants.tsv
    derivatives/ecogprep/sub-<XX>/ieeg/sub-<XX>_task-podcast_desc-highgamma_ieeg.fif
    sub-<XX>/ieeg/sub-<XX>_task-podcast_ieeg.edf, …_ieeg.json, …_channels.tsv     option signal = "raw"
    sub-<XX>/ieeg/sub-<XX>_space-MNI152NLin2009aSym_electrodes.tsv                optional
    stimuli/podcast_transcript.csv                        word, start, end
    stimuli/podcast.wav                                   optional
    stimuli/gpt2-xl/transcript.tsv, features.hdf5         optional: surprisal, entropy; layers
    stimuli/syntactic/transcript.tsv                      optional: pos, dep
    stimuli/whisper-medium/transcript.tsv, features.hdf5  optional
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import check_participants, read_description
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    AbsentMedium,
    Dataset,
    DatasetReader,
    FeatureKey,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
)
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.podcast_ecog import features
from lpact.datasets.podcast_ecog import words as podcast
from lpact.datasets.podcast_ecog.recording import (
    opened_files,
    read_podcast_recording,
    side_files,
)
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.math.types import IntArray
from lpact.registry import PluginOptions

STIMULUS = podcast.STORY
AUDIO = "stimuli/podcast.wav"
_SIGNALS = {
    "highgamma": "derivatives/ecogprep/sub-*/ieeg/sub-*_task-podcast_desc-highgamma_ieeg.fif",
    "raw": "sub-*/ieeg/sub-*_task-podcast_ieeg.edf",
}
_SUBJECT = re.compile(r"sub-([A-Za-z0-9]+)_")
_Sources = dict[FeatureKey, tuple[Path, str, podcast.TokenTable]]


class PodcastOptions(PluginOptions):
    """Options of the reader."""

    signal: Literal["highgamma", "raw"] = Field(
        "highgamma",
        description="`highgamma`: the released high-gamma envelope. `raw`: the released voltage, to be preprocessed.",
    )
    audio_start_s: float = Field(
        0.0,
        description="Time of the audio's first sample in the recordings, in seconds. The released files are cut to "
        "the story, so that both start together.",
    )
    features: tuple[Literal["gpt2-xl", "whisper-medium"], ...] = Field(
        ("gpt2-xl",),
        description="Feature sets of the release that are offered as models. Words that one of them lacks (two, for "
        "`whisper-medium`) are left out of the words.",
    )
    token_pooling: Literal["mean", "last"] = Field(
        "mean", description="How a word's tokens become one row: their mean, or the last of them."
    )


class PodcastDataset(Dataset):
    """An opened folder."""

    def __init__(self, folder: SourceFolder, options: PodcastOptions) -> None:
        self._folder = folder
        self._options = options
        self.info = read_description(folder)
        self._participants = check_participants(folder)
        self._files: dict[RecordingId, Path] = {}
        for path in folder.glob(_SIGNALS[options.signal], RecordingError):
            match = _SUBJECT.match(path.name)
            if match is not None:
                self._files[RecordingId(match[1], "1", "1", STIMULUS)] = path
        if not self._files:
            raise InputError(
                "the folder holds no recording",
                where=f"{folder.root}, option signal = '{options.signal}'",
                got="nothing like " + _SIGNALS[options.signal],
                expected=_SIGNALS[options.signal].replace("*", "<XX>"),
                remedy="download that part of the dataset, or choose the other signal",
            )

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._files)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Open one recording; its values are read later, a few channels at a time."""
        if recording_id not in self._files:
            raise RecordingError(
                "the folder has no such recording",
                where=str(self._folder.root),
                got=str(recording_id),
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._files]),
            )
        path = self._files[recording_id]
        recording = read_podcast_recording(
            self._folder,
            path,
            recording_id,
            start_s=-self._options.audio_start_s,
            raw_signal=self._options.signal == "raw",
        )
        check_recording(recording)
        return recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read the words and what annotates them; features are read when they are loaded."""
        if stimulus_id != STIMULUS:
            raise StimulusError(
                "the dataset has no such stimulus",
                where=str(self._folder.root),
                got=stimulus_id,
                expected=f"'{STIMULUS}', its only one",
                remedy=f"use '{STIMULUS}'",
            )
        transcript = podcast.read_transcript(self._folder)
        findings = list(transcript.findings)
        sources, order = self._features(transcript, findings)
        words, note = podcast.word_frame(transcript, order, self._folder)
        findings.append(note)
        words, mechanisms = self._annotate(words, transcript, order, findings)
        where = self._folder.where(transcript.path)
        audio = self._folder.optional(AUDIO, StimulusError)
        offer = features.PodcastFeatures(
            sources, order, len(transcript.words), self._options.token_pooling, where
        )
        stimulus = Stimulus(
            id=STIMULUS,
            words=words,
            where=where,
            features=offer if sources else None,
            mechanisms=mechanisms,
            media={"audio": AUDIO} if audio is not None else {},
            media_root=self._folder.root,
            transcripts={STIMULUS: " ".join(words["word"].to_list())},
            media_absent={}
            if audio is not None
            else {"audio": AbsentMedium(Reason.MEDIA_NOT_OFFERED, f"{AUDIO} is not in the folder")},
            findings=tuple(findings),
        )
        check_stimulus(stimulus)
        return stimulus

    def _features(
        self, transcript: podcast.Transcript, findings: list[Finding]
    ) -> tuple[_Sources, IntArray]:
        """Return the feature sets on offer, and the words that all of them have, by onset."""
        sources: _Sources = {}
        order = transcript.order()
        for name in self._options.features:
            path = self._folder.optional(f"stimuli/{name}/features.hdf5", StimulusError)
            if path is None:
                continue
            table = self._folder.file(f"stimuli/{name}/transcript.tsv", StimulusError)
            tokens = podcast.read_tokens(table)
            notes = podcast.check_table(tokens, transcript, self._folder)
            if name != features.GPT2:
                findings.extend(notes)
            found = features.gpt2_sources if name == features.GPT2 else features.whisper_sources
            sources.update(found(path, tokens))
            has = tokens.first_rows(len(transcript.words)) >= 0
            if not has[order].all():
                findings.append(
                    _left_out(name, transcript, order[~has[order]], table, self._folder)
                )
                order = order[has[order]]
        return sources, order

    def _annotate(
        self,
        words: pl.DataFrame,
        transcript: podcast.Transcript,
        order: IntArray,
        findings: list[Finding],
    ) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
        """Return the words with the columns of the token tables, and surprisal as a mechanism."""
        n_words = len(transcript.words)
        mechanisms = {}
        if (path := podcast.table_path(self._folder, features.GPT2)) is not None:
            tokens = podcast.read_tokens(path)
            findings.extend(podcast.check_table(tokens, transcript, self._folder))
            surprisal, entropy = podcast.surprisal_bits(tokens, n_words)
            words = words.with_columns(
                gpt2_surprisal=pl.Series(surprisal[order]), gpt2_entropy=pl.Series(entropy[order])
            )
            if np.isfinite(surprisal[order]).all():
                mechanisms["surprisal"] = surprisal[order]
        if (path := podcast.table_path(self._folder, "syntactic")) is not None:
            tokens = podcast.read_tokens(path)
            findings.extend(podcast.check_table(tokens, transcript, self._folder))
            tokens.table.require(("pos", "dep"))
            first = tokens.first_rows(n_words)[order]
            for column in ("pos", "dep"):
                cells = tokens.table.cells(column)
                labels = [cells[row] if row >= 0 else None for row in first]
                words = words.with_columns(pl.Series(column, labels, dtype=pl.String))
        return words, mechanisms

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read with its checksum, by path."""
        folder = self._folder
        paths = [folder.file("dataset_description.json")]
        paths += [] if self._participants is None else [self._participants]
        for path in self._files.values():
            paths += opened_files(folder, path)
            paths += side_files(folder, path, raw_signal=self._options.signal == "raw")
        transcript = podcast.read_transcript(folder).path
        optional = [AUDIO, "stimuli/syntactic/transcript.tsv", "stimuli/gpt2-xl/transcript.tsv"]
        for name in self._options.features:
            optional += [f"stimuli/{name}/features.hdf5", f"stimuli/{name}/transcript.tsv"]
        found = [folder.optional(relative) for relative in optional]
        paths += [transcript, *(path for path in found if path is not None)]
        return folder.source_files(paths, self.info.licence)


def _left_out(
    name: str,
    transcript: podcast.Transcript,
    gone: IntArray,
    table: Path,
    folder: SourceFolder,
) -> Finding:
    shown = ", ".join(f"{i} {transcript.words[i]!r}" for i in gone[:4])
    return Finding(
        field="word_idx",
        reason=Reason.SOURCE_ROWS_LEFT_OUT,
        severity="excluded",
        where=folder.where(table),
        found=f"{gone.size} word(s) without features of {name}: {shown}",
        expected="features for every word",
        remedy=f"the words are left out; leave {name} out of the option 'features' to keep them",
    )


class PodcastEcog(DatasetReader):
    """The Podcast ECoG dataset; the module's docstring describes the layout."""

    name = "podcast_ecog"
    summary = (
        "Podcast ECoG (ds005574): nine people hear a 30-minute story; high-gamma envelope, 512 Hz"
    )
    Options = PodcastOptions
    role = "primary"
    extra = "meeg"
    layout = (
        Expected("description and licence", ("dataset_description.json",)),
        Expected("recordings: high-gamma envelope, or voltage", tuple(_SIGNALS.values())),
        Expected(
            "words with times",
            (podcast.TRANSCRIPT, *(f"stimuli/{n}/transcript.tsv" for n in podcast.STAND_INS)),
        ),
        Expected("people", ("participants.tsv",), needed=False),
        Expected("audio", (AUDIO,), needed=False),
        Expected("electrode positions", ("sub-*/ieeg/*_electrodes.tsv",), needed=False),
        Expected(
            "surprisal and entropy (GPT-2 XL)", ("stimuli/gpt2-xl/transcript.tsv",), needed=False
        ),
        Expected("features of GPT-2 XL", ("stimuli/gpt2-xl/features.hdf5",), needed=False),
        Expected("features of Whisper", ("stimuli/whisper-medium/features.hdf5",), needed=False),
        Expected("part of speech", ("stimuli/syntactic/transcript.tsv",), needed=False),
    )
    download = Download(
        method="openneuro",
        identifier="ds005574",
        version="1.0.2",
        size="about 7 GB for the parts that are read",
        licence="CC0",
        homepage="https://openneuro.org/datasets/ds005574",
        include=(
            "dataset_description.json",
            "participants.tsv",
            "derivatives/ecogprep/sub-*/ieeg/*desc-highgamma_ieeg.fif",
            "sub-*/ieeg/*_electrodes.tsv",
            "sub-*/ieeg/*_channels.tsv",
            "stimuli/**",
        ),
        citation="Zada, Z., Nastase, S. A., Aubrey, B., et al. (2025). The 'Podcast' ECoG dataset for modeling "
        "neural activity during natural language comprehension. doi:10.18112/openneuro.ds005574.v1.0.2",
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> PodcastDataset:  # noqa: ARG002
        """Open the folder ``path``."""
        assert isinstance(self.options, PodcastOptions)
        expected = "the folder of ds005574, with derivatives/ecogprep/ and stimuli/"
        return PodcastDataset(SourceFolder(path, name=name, expected=expected), self.options)
