"""Assemblies of the sentence and word literature: Pereira et al. 2018, Blank et al. 2014, Fedorenko et al. 2016."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies import STIMULUS_ID, TEXT, AssemblyDataset, AssemblyOptions, group, sentence_words
from lpact.datasets._files.strict import invalid, typed_column
from lpact.datasets._folder_dataset import UNKNOWN, check_known, no_audio, sentences_by_punctuation, words_table
from lpact.datasets.base import WORD_COLUMNS, Epochs, Findings, RecordingId, Stimulus, TimeSeries
from lpact.datasets.catalogue import published
from lpact.errors import StimulusError
from lpact.math.types import FloatArray

SHOWN_S, PAUSE_S, PASSAGE_PAUSE_S = 4.0, 4.0, 4.0
PASSAGE = ("passage_category", "passage_label", "passage_index")
TR_S = 2.0
SPOKEN_S = 0.5
"""Nominal time over which the words of a TR are spread."""

SENTENCE_PAUSE_S = 1.0
WORD = ("word", "stimulus", "stimuli")


class Pereira2018Options(AssemblyOptions):
    """Which voxels are read, and what a region and a passage are."""

    atlases: tuple[str, ...] = ()
    """Networks whose neuroids are read, by the coordinate `atlas` (language, MD, DMN, …). Empty: all."""
    rois: tuple[str, ...] = ()
    """Regions whose neuroids are read, by the coordinate `roi`. Empty: all."""
    region: Literal["roi", "atlas"] = "roi"
    """Coordinate that names a unit's region: `roi` or `atlas`. Where it is empty or absent, the other."""
    without_passages: bool = False
    """Accept an assembly that does not say which passage a sentence is from: every sentence is then a separate story,
    and folds cannot keep passages together.
    """


def _without_subject(name: str, subject: str) -> str:
    """Return a neuroid's name without the subject that some assemblies put before it."""
    return name.removeprefix(f"{subject}_").removeprefix(f"{subject}.")


class Pereira2018(AssemblyDataset[Pereira2018Options]):
    """Pereira et al. (2018): people read passages, sentence by sentence; one fMRI response per sentence and voxel.

    A run is an experiment, an epoch a sentence, a story a passage. Rows of a passage are put side by side, in the order
    of the number that ends their ``stimulus_id``. See docs/how-to/datasets/assemblies.md.
    """

    name = "pereira2018"
    summary = "Pereira et al. 2018: fMRI while reading passages, one response per sentence (netCDF assembly)"
    Options = Pereira2018Options
    layout, download = published("pereira2018")
    title = "Pereira et al. 2018"

    def _arrange(self) -> None:
        self._text = self.presentations.first(*TEXT, what="the sentences")
        self._passages = self._read_passages()
        self.rows = self._sorted_rows()
        subjects = self.neuroids.first("subject", "subject_UID", what="the subjects")
        columns = self._select(subjects)
        ids = self.neuroids.first("neuroid_id", "neuroid", "roi", what="the names of the neuroids")
        self.unit_ids = [_without_subject(i, s) for i, s in zip(ids, subjects, strict=True)]
        # A voxel's number means another place in every subject, a region's name the same.
        self.comparable = not {"neuroid_id", "neuroid"} & self.neuroids.keys()
        recordings = []
        self._absent: dict[str, list[str]] = {run: [] for run in self.rows}
        for run, rows in self.rows.items():
            for subject, own in group(subjects, columns).items():
                if np.isnan(self.values[np.ix_(rows, own)]).all():
                    self._absent[run].append(subject)
                else:
                    recordings.append((RecordingId(subject, "1", run, run), own))
        self._set_recordings(recordings)

    def _signal(self, values: FloatArray) -> Epochs:
        return Epochs(values[None], lags_ms=(0.0,), physical_unit="a.u.")

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        rows = self.rows[stimulus_id]
        passages = [self._passages[row] for row in rows]
        number = np.cumsum([0, *(a != b for a, b in pairwise(passages))])
        onset_s = (SHOWN_S + PAUSE_S) * np.arange(len(rows)) + PASSAGE_PAUSE_S * number
        columns = {"experiment": [stimulus_id] * len(rows)} | {
            name: [values[row] for row in rows]
            for name, values in self.presentations.items()
            if name not in (*TEXT, "presentation", "experiment", "sentence_id", "story")
        }
        where = f"{self.where}, experiment {stimulus_id}"
        return Stimulus(
            id=stimulus_id,
            words=sentence_words(
                [self._text[row] for row in rows],
                passages,
                onset_s.tolist(),
                shown_s=SHOWN_S,
                where=where,
                columns=columns,
            ),
            where=where,
            findings=tuple(self._stimulus_findings(stimulus_id, where)),
            **no_audio(Reason.MEDIA_NOT_OFFERED, "sentences were read, not heard"),
        )

    def _stimulus_findings(self, run: str, where: str) -> Findings:
        findings = Findings(where)
        self.note_moved(self.rows[run], findings)
        for subject in sorted(self._absent[run]):
            findings.excluded(
                f"subject {subject}",
                Reason.RECORDING_NOT_READ,
                "no value but NaN in this experiment",
                "responses of a subject that took part",
                "nothing to do: not every subject took part in both experiments",
            )
        if not any(name in self.presentations for name in PASSAGE):
            findings.note(
                "story_id",
                Reason.SENTENCES_BY_RULE,
                "no passages; every sentence is a story",
                "the passage of every sentence",
                "give passages, or do not read scores as those of held-out passages",
            )
        return findings

    def _read_passages(self) -> list[str]:
        """Return the passage of every sentence: category, label and index, as far as they are known."""
        known = [self.presentations[name] for name in PASSAGE if name in self.presentations]
        if known:
            return [" / ".join(filter(None, parts)) for parts in zip(*known, strict=True)]
        if not self.options.without_passages:
            raise StimulusError(
                "the assembly does not state which passage a sentence is from",
                where=f"{self.path}, coordinates of 'presentation'",
                got="coordinates " + ", ".join(self.presentations),
                expected="one of " + ", ".join(PASSAGE),
                remedy="put a table of stimuli with passages next to it, or accept that folds split "
                "passages: without_passages = true",
            )
        return [f"sentence_{row:03d}" for row in range(len(self._text))]

    def _sorted_rows(self) -> dict[str, list[int]]:
        """Return the presentations of every experiment, passages together, in the order of reading."""
        runs = group(self.presentations.get("experiment", ["all"] * len(self._text)))
        ids = self.presentations.get(STIMULUS_ID)
        for run, rows in runs.items():
            if ids is not None:
                self.check_repetitions([ids[row] for row in rows])
                ends = {row: re.search(r"[0-9]{1,9}$", ids[row]) for row in rows}
                numbers = {row: int(match[0]) for row, match in ends.items() if match}
                if len(set(numbers.values())) == len(rows):
                    rows = sorted(rows, key=numbers.__getitem__)
            runs[run] = [row for own in group(self._passages, rows).values() for row in own]
        return dict(sorted(runs.items()))

    def _select(self, subjects: list[str]) -> list[int]:
        """Set the region of every neuroid, and return the neuroids that the options choose."""
        atlas = self.neuroids.get("atlas", [""] * len(subjects))
        roi = self.neuroids.get("roi", [""] * len(subjects))
        roi = [_without_subject(r, s) for r, s in zip(roi, subjects, strict=True)]
        first, second = (roi, atlas) if self.options.region == "roi" else (atlas, roi)
        self.regions = [a or b or UNKNOWN for a, b in zip(first, second, strict=True)]
        atlases, rois = self.options.atlases, self.options.rois
        check_known(atlases, atlas, option="atlases", folder=self.folder)
        check_known(rois, roi, option="rois", folder=self.folder)
        return [
            index
            for index in range(len(subjects))
            if (not atlases or atlas[index] in atlases) and (not rois or roi[index] in rois)
        ]


class Blank2014Options(AssemblyOptions):
    """Which of two contradicting coordinates to trust."""

    trust: Literal["stimulus_id", "coordinates"] = "stimulus_id"
    """Where `stimulus_id` and the other coordinates of a presentation name different places in the stories: which of
    them its responses belong to.
    """


def split_words(pieces: list[str]) -> list[list[str]]:
    """Return the words of a text in pieces, each in the piece with its first letter or digit.

    Words are separated by white space in the joined text. A word without letters and digits is in the piece with its
    first sign.
    """
    words: list[list[str]] = [[] for _ in pieces]
    ends = list(accumulate(len(text) for text in pieces))
    for match in re.finditer(r"\S+", "".join(pieces)):
        inner = re.search(r"\w", match.group())
        place = match.start() + (inner.start() if inner else 0)
        words[bisect_right(ends, place)].append(match.group())
    return words


class Blank2014(AssemblyDataset[Blank2014Options]):
    """Blank et al. (2014): people heard stories; one fMRI response per TR of 2 s and functional region.

    A recording is a time series with one sample per presentation, stories one after the other. Presentation k is at
    2 k seconds, and its words lie in the first half second, so that they belong to that sample in any rounding. See
    docs/how-to/datasets/assemblies.md.
    """

    name = "blank2014"
    summary = "Blank et al. 2014: fMRI while listening to stories, one response per TR and region (netCDF assembly)"
    Options = Blank2014Options
    layout, download = published("blank2014")
    title = "Blank et al. 2014"
    comparable = True

    def _arrange(self) -> None:
        story = self.presentations.first("story", what="the story of each TR")
        sentence = self.presentations.integers("sentence_number_in_story")
        part = self.presentations.integers("part_number_in_sentence")
        places = list(zip(story, sentence, part, strict=True))
        names = [".".join(map(str, place)) for place in places]
        self.check_repetitions(names, "story, sentence_number_in_story and part_number_in_sentence")
        text = self.presentations.first(*TEXT[:-1], what="the text of each TR")
        self._findings = Findings(self.where)
        trusted = self._trusted(names)
        place_of = dict(zip(names, places, strict=True))
        text_of = dict(zip(names, text, strict=True))
        rows = sorted(range(len(names)), key=lambda row: place_of[trusted[row]])
        self._texts = [text_of[trusted[row]] for row in rows]
        self._stories = [place_of[trusted[row]][0] for row in rows]
        self.rows = {"stories": rows}
        self.unit_ids = self.regions = self.neuroids.first("fROI_area", "roi", what="the regions")
        self._set_recordings(self.subjects("subject_id", "subject_UID", "subject", run="stories"))
        self._findings.sentences_by_rule(
            "TRs with the end of one sentence and the start of the next",
            "the sentence of every word",
            "nothing to do: a sentence ends with its punctuation, as in the stories' source",
        )
        self.note_moved(rows, self._findings)

    def _trusted(self, names: list[str]) -> list[str]:
        """Return the place that each response belongs to, and note where the file contradicts itself."""
        ids, trust = self.presentations.get(STIMULUS_ID, names), self.options.trust
        self.check_repetitions(ids)
        wrong = [row for row, name in enumerate(ids) if name != names[row]]
        if not wrong or not set(ids) <= set(names):
            return names
        by_id, row = trust == "stimulus_id", wrong[0]
        self._findings.note(
            STIMULUS_ID,
            Reason.SOURCE_VALUES_CORRECTED if by_id else Reason.SIDECAR_DISAGREES,
            f"{len(wrong)} presentations; first: row {row} is '{ids[row]}' by its id, '{names[row]}' by its "
            "coordinates",
            "the same place in both",
            f"responses belong to the {trust}; the option 'trust' chooses",
        )
        return ids if by_id else names

    def _signal(self, values: FloatArray) -> TimeSeries:
        return TimeSeries(values, sampling_rate_hz=1.0 / TR_S, physical_unit="a.u.")

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        pieces = [
            words for rows in group(self._stories).values() for words in split_words([self._texts[row] for row in rows])
        ]
        words = [word for own in pieces for word in own]
        times = [
            (TR_S * sample + SPOKEN_S / len(own) * i, TR_S * sample + SPOKEN_S / len(own) * (i + 1))
            for sample, own in enumerate(pieces)
            for i in range(len(own))
        ]
        onset_s, offset_s = np.array(times).reshape(-1, 2).T
        stories = [s for s, own in zip(self._stories, pieces, strict=True) for _ in own]
        sentences = sentences_by_punctuation(words, stories)
        no_sound = "the assembly contains no sound, and its nominal times cannot be aligned with any"
        return Stimulus(
            id=stimulus_id,
            words=words_table(words, onset_s, offset_s, sentences, stories),
            where=self.where,
            findings=tuple(self._findings),
            **no_audio(Reason.MEDIA_NOT_RELEASED, no_sound),
        )


class Fedorenko2016Options(AssemblyOptions):
    """How words are shown to a model."""

    word_s: float = Field(0.45, gt=0)
    """Nominal time of a word, in seconds; it was 0.45 or 0.7 s, and the assembly does not say which."""
    lowercase: bool = False
    """Read words in lower case. They were shown in capitals, which language models hardly know."""


class Fedorenko2016(AssemblyDataset[Fedorenko2016Options]):
    """Fedorenko et al. (2016): people read sentences word by word; one ECoG response per word and electrode.

    An epoch is a word, a story a sentence, so that a model reads no other sentence before it. See
    docs/how-to/datasets/assemblies.md.
    """

    name = "fedorenko2016"
    summary = "Fedorenko et al. 2016: ECoG while reading sentences, one response per word (netCDF assembly)"
    Options = Fedorenko2016Options
    layout, download = published("fedorenko2016")
    title = "Fedorenko et al. 2016"

    def _arrange(self) -> None:
        self._words = self.presentations.first(*WORD, what="the words")
        places = list(
            zip(self.presentations.integers("sentence_id"), self.presentations.integers("word_num"), strict=True)
        )
        rows = sorted(range(len(places)), key=places.__getitem__)
        self._places = [places[row] for row in rows]
        for before, (sentence, position) in pairwise(self._places):
            if before[0] == sentence and position != before[1] + 1:
                where = f"{self.path}, coordinates 'sentence_id' and 'word_num'"
                found = f"in sentence {sentence}, word {position} after word {before[1]}"
                remedy = "fix the coordinates, or average over repetitions"
                raise invalid(where, found, "every word of a sentence once", StimulusError, remedy)
        self.rows = {"sentences": rows}
        electrodes = self.neuroids.first("electrode", "neuroid_id", what="the electrodes")
        self.unit_ids = [f"electrode_{name}" for name in electrodes]
        regions = [self.neuroids[n] for n in ("roi", "region", "atlas") if n in self.neuroids]
        self.regions = regions[0] if regions else [UNKNOWN] * len(electrodes)
        self._set_recordings(self.subjects("subject_UID", "subject", "subject_id", run="sentences"))

    def _signal(self, values: FloatArray) -> Epochs:
        return Epochs(values[None], lags_ms=(0.0,), physical_unit="z")

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        rows, word_s = self.rows["sentences"], self.options.word_s
        words = [self._words[row] for row in rows]
        sentence = np.array([number for number, _ in self._places])
        n_before = np.cumsum(np.diff(sentence, prepend=sentence[:1]) != 0)
        onset_s = word_s * np.arange(len(rows)) + SENTENCE_PAUSE_S * n_before
        columns = {
            name: typed_column([values[row] for row in rows])
            for name, values in self.presentations.items()
            if name not in (*WORD, *WORD_COLUMNS, "presentation")
        }
        findings = Findings(self.where)
        self.note_moved(rows, findings)
        return Stimulus(
            id=stimulus_id,
            words=words_table(
                [word.lower() for word in words] if self.options.lowercase else words,
                onset_s,
                onset_s + word_s,
                sentence,
                [f"sentence_{number:02d}" for number in sentence],
                columns,
            ),
            where=self.where,
            findings=tuple(findings),
            **no_audio(Reason.MEDIA_NOT_OFFERED, "words were read, not heard"),
        )
