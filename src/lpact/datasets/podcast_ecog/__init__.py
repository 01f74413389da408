"""Reader of the Podcast ECoG dataset (OpenNeuro ds005574): nine people listen to a story of 30 minutes.

::

    dataset_description.json
    derivatives/ecogprep/sub-<XX>/ieeg/sub-<XX>_task-podcast_desc-highgamma_ieeg.fif
    sub-<XX>/ieeg/sub-<XX>_task-podcast_ieeg.edf, …_ieeg.json, …_channels.tsv     option signal = "raw"
    sub-<XX>/ieeg/sub-<XX>_space-MNI152NLin2009aSym_electrodes.tsv                optional
    stimuli/podcast_transcript.csv                        word, start, end
    stimuli/podcast.wav                                   optional
    stimuli/gpt2-xl/transcript.tsv, features.hdf5         optional: surprisal, entropy; layers
    stimuli/syntactic/transcript.tsv                      optional: pos, dep
    stimuli/whisper-medium/transcript.tsv, features.hdf5  optional

The release does not say what the numbers of the high-gamma envelope are (amplitude or power, scaled or not); its files
are marked as volts because their channels are electrodes. The numbers are given as they are stored, in a.u.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import (
    DESCRIPTION,
    Places,
    entities,
    read_description,
    read_electrodes,
)
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import (
    FolderDataset,
    FolderReader,
    excluded,
    note,
    sentence_note,
    words_table,
)
from lpact.datasets._mne import open_raw, open_recording, shift_spans
from lpact.datasets.base import FeatureKey, Recording, RecordingId, Stimulus
from lpact.datasets.catalogue import Download, Expected, optional
from lpact.datasets.podcast_ecog.words import (
    AUDIO,
    GPT2,
    SENTENCE_PAUSE_S,
    STAND_INS,
    STIMULUS,
    TRANSCRIPT,
    FeatureSource,
    PodcastFeatures,
    TokenTable,
    Transcript,
    check_tokens,
    feature_sources,
    read_transcript,
    sentence_numbers,
    surprisal_bits,
    token_table,
)
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.math.types import IntArray
from lpact.registry import PluginOptions

FRAME = "MNI152NLin2009aSym"
"""Frame of the positions in the released files: they are those of the electrode tables of that space."""

_SIGNALS = {
    "highgamma": "derivatives/ecogprep/sub-*/ieeg/sub-*_task-podcast_desc-highgamma_ieeg.fif",
    "raw": "sub-*/ieeg/sub-*_task-podcast_ieeg.edf",
}
_SAME_PLACE_MM = 1.0


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


class PodcastDataset(FolderDataset[PodcastOptions, Path]):
    """An opened folder."""

    def __init__(self, folder: SourceFolder, options: PodcastOptions) -> None:
        super().__init__(folder, options)
        self.info = read_description(folder)
        pattern = _SIGNALS[options.signal]
        self.recordings = {
            RecordingId(entities(path)["sub"], "1", "1", STIMULUS): path
            for path in folder.glob(pattern, RecordingError)
        }
        if not self.recordings:
            raise InputError(
                "the folder holds no recording",
                where=f"{folder.root}, option signal = '{options.signal}'",
                got=f"nothing like {pattern}",
                expected=pattern.replace("*", "<XX>"),
                remedy="download that part of the dataset, or choose the other signal",
            )

    def _electrodes(self, subject: str) -> Path | None:
        name = f"sub-{subject}/ieeg/sub-{subject}_space-{FRAME}_electrodes.tsv"
        return self.folder.optional(name, RecordingError)

    def _recording(self, recording_id: RecordingId, files: Path) -> Recording:
        where, subject = self.folder.where(files), recording_id.subject
        sidecar = channels = None
        if self.options.signal == "raw":
            stem = f"sub-{subject}/ieeg/sub-{subject}_task-podcast"
            sidecar = self.folder.optional(f"{stem}_ieeg.json", RecordingError)
            channels = self.folder.file(f"{stem}_channels.tsv", RecordingError)
        found = open_recording(
            self.folder,
            files,
            wanted=("ecog", "seeg", "dbs"),
            comparable=False,
            sidecar=sidecar,
            channels=channels,
            places=lambda own, ids: self._places(subject, own, ids, where),
            envelope=self.options.signal == "highgamma",
        )
        findings = list(found.findings)
        if found.raw.first_samp != 0:
            findings.append(
                note(
                    "first_samp",
                    Reason.SIDECAR_DISAGREES,
                    where,
                    f"the file numbers its first sample {found.raw.first_samp}",
                    "0: the recording is cut to the story",
                    "word times are counted from the file's first sample; give audio_start_s if that is wrong",
                )
            )
        start_s = -self.options.audio_start_s
        return Recording(
            recording_id,
            replace(found.signal, start_s=start_s),
            found.units,
            where,
            bad_spans=shift_spans(found.bad_spans, start_s),
            findings=tuple(findings),
        )

    def _places(self, subject: str, own: Places, ids: Sequence[str], where: str) -> Places:
        """Return the places of the units: from the file, and where that has none, from the electrode table."""
        path, inside = self._electrodes(subject), own.coordinates_mm
        if path is None:
            return Places(inside, FRAME, own.regions)
        listed = read_electrodes(
            path, ids, unit="mm", frame=FRAME, region_column="", where=self.folder.where(path)
        )
        findings = list(listed.findings)
        distance_mm = np.linalg.norm(inside - listed.coordinates_mm, axis=1)
        apart = np.flatnonzero(distance_mm > _SAME_PLACE_MM)
        if apart.size:
            pair = (inside[apart[0]], listed.coordinates_mm[apart[0]])
            both = " and ".join(np.array2string(xyz, precision=1) for xyz in pair)
            findings.append(
                note(
                    "electrodes.tsv",
                    Reason.SIDECAR_DISAGREES,
                    where,
                    f"{apart.size} position(s) differ; the first is {ids[apart[0]]}: {both} mm",
                    f"the same positions in the recording and in electrodes.tsv, within {_SAME_PLACE_MM:g} mm",
                    "none is needed: the recording's positions count",
                )
            )
        known = np.isfinite(inside).all(axis=1, keepdims=True)
        coordinates = np.where(known, inside, listed.coordinates_mm)
        return Places(coordinates, FRAME, listed.regions, tuple(findings))

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Read the words and their annotations; features are read when they are loaded."""
        transcript, findings = read_transcript(self.folder)
        n_words = len(transcript.words)
        sources, order = self._features(transcript, findings)
        words = [transcript.words[i] for i in order]
        onset_s, offset_s = transcript.start_s[order], transcript.end_s[order]
        sentences = sentence_numbers(words, onset_s, offset_s)
        where = self.folder.where(transcript.path)
        findings.append(
            sentence_note(
                where,
                f"{len(set(sentences.tolist()))} sentences: they begin after final punctuation, and at capitalised "
                f"words that are also written small, or that follow {SENTENCE_PAUSE_S:g} s of silence",
                "numbered sentences",
                "none is needed; sentences that begin with 'I' or a name without a pause join the one before",
            )
        )
        columns: dict[str, Any] = {"word_idx": order}
        mechanisms = {}
        if (tokens := self._tokens(GPT2, transcript, findings)) is not None:
            surprisal, entropy = (bits[order] for bits in surprisal_bits(tokens, n_words))
            columns |= {"gpt2_surprisal": surprisal, "gpt2_entropy": entropy}
            if np.isfinite(surprisal).all():
                mechanisms["surprisal"] = surprisal
        if (tokens := self._tokens("syntactic", transcript, findings)) is not None:
            tokens.table.require(("pos", "dep"))
            first = tokens.first_rows(n_words)[order]
            for column in ("pos", "dep"):
                cells = tokens.table.cells(column)
                labels = [cells[row] if row >= 0 else None for row in first]
                columns[column] = pl.Series(labels, dtype=pl.String)
        pooling = self.options.token_pooling
        return Stimulus(
            id=stimulus_id,
            words=words_table(words, onset_s, offset_s, sentences, STIMULUS, columns),
            where=where,
            features=PodcastFeatures(sources, order, n_words, pooling, where) if sources else None,
            mechanisms=mechanisms,
            transcripts={STIMULUS: " ".join(words)},
            findings=tuple(findings),
            **self._audio(
                self.folder.optional(AUDIO, StimulusError), f"{AUDIO} is not in the folder"
            ),
        )

    def _tokens(
        self, name: str, transcript: Transcript, findings: list[Finding]
    ) -> TokenTable | None:
        path = self.folder.optional(token_table(name), StimulusError)
        if path is None:
            return None
        tokens = TokenTable(path)
        findings += check_tokens(tokens, transcript, self.folder)
        return tokens

    def _features(
        self, transcript: Transcript, findings: list[Finding]
    ) -> tuple[dict[FeatureKey, FeatureSource], IntArray]:
        """Return the feature sets on offer, and the words that all of them have, by onset."""
        sources: dict[FeatureKey, FeatureSource] = {}
        order = transcript.order()
        for name in self.options.features:
            path = self.folder.optional(f"stimuli/{name}/features.hdf5", StimulusError)
            if path is None:
                continue
            self.folder.file(token_table(name), StimulusError)
            # Findings on the table of GPT-2 are made with its surprisal.
            tokens = self._tokens(name, transcript, [] if name == GPT2 else findings)
            assert tokens is not None
            sources |= feature_sources(name, path, tokens)
            has = tokens.first_rows(len(transcript.words))[order] >= 0
            if not has.all():
                gone = order[~has]
                words = ", ".join(f"{i} {transcript.words[i]!r}" for i in gone[:4])
                findings.append(
                    excluded(
                        "word_idx",
                        Reason.SOURCE_ROWS_LEFT_OUT,
                        self.folder.where(tokens.path),
                        f"{gone.size} word(s) without features of {name}: {words}",
                        "features for every word",
                        f"the words are left out; leave {name} out of the option 'features' to keep them",
                    )
                )
                order = order[has]
        return sources, order

    def _paths(self) -> Iterator[Path | None]:
        folder = self.folder
        yield folder.file(DESCRIPTION)
        for recording_id, path in self.recordings.items():
            try:
                yield from open_raw(folder, path).files
            except RecordingError:  # a damaged file
                yield path
            yield self._electrodes(recording_id.subject)
            if self.options.signal == "raw":
                stem = folder.relative(path).removesuffix("_ieeg.edf")
                yield from map(folder.optional, (f"{stem}_channels.tsv", f"{stem}_ieeg.json"))
        yield read_transcript(folder)[0].path
        names = [AUDIO, token_table("syntactic"), token_table(GPT2)]
        for name in self.options.features:
            names += [f"stimuli/{name}/features.hdf5", token_table(name)]
        yield from (folder.optional(name) for name in names)


class PodcastEcog(FolderReader):
    """The Podcast ECoG dataset; the module's docstring describes the layout."""

    name = "podcast_ecog"
    summary = (
        "Podcast ECoG (ds005574): nine people hear a 30-minute story; high-gamma envelope, 512 Hz"
    )
    Options = PodcastOptions
    dataset = PodcastDataset
    contents = "the folder of ds005574, with derivatives/ecogprep/ and stimuli/"
    role = "primary"
    extra = "meeg"
    layout = (
        Expected("description and licence", (DESCRIPTION,)),
        Expected("recordings: high-gamma envelope, or voltage", tuple(_SIGNALS.values())),
        Expected("words with times", (TRANSCRIPT, *map(token_table, STAND_INS))),
        optional("audio", AUDIO),
        optional("electrode positions", "sub-*/ieeg/*_electrodes.tsv"),
        optional("surprisal and entropy (GPT-2 XL)", "stimuli/gpt2-xl/transcript.tsv"),
        optional("features of GPT-2 XL", "stimuli/gpt2-xl/features.hdf5"),
        optional("features of Whisper", "stimuli/whisper-medium/features.hdf5"),
        optional("part of speech", "stimuli/syntactic/transcript.tsv"),
    )
    download = Download(
        method="openneuro",
        identifier="ds005574",
        version="1.0.2",
        size="about 7 GB for the parts that are read",
        licence="CC0",
        homepage="https://openneuro.org/datasets/ds005574",
        include=(
            DESCRIPTION,
            "derivatives/ecogprep/sub-*/ieeg/*desc-highgamma_ieeg.fif",
            "sub-*/ieeg/*_electrodes.tsv",
            "sub-*/ieeg/*_channels.tsv",
            "stimuli/**",
        ),
        citation="Zada, Z., Nastase, S. A., Aubrey, B., et al. (2025). The 'Podcast' ECoG dataset for modeling "
        "neural activity during natural language comprehension. doi:10.18112/openneuro.ds005574.v1.0.2",
    )
