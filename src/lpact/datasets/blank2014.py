"""Blank et al. (2014): people heard stories; one fMRI response a TR of 2 s and functional region.

::

    assy_Blank2014_fROI.nc    presentation × neuroid (1317 TRs of 8 stories × 60: 12 regions of 5 subjects)
    stimulus*.csv             optional: stimulus_id, and what the assembly does not say of a TR

Presentations have ``stimulus_id`` (``<story>.<sentence>.<part>``), ``stimulus`` (what was heard in the TR; spaces at
its ends count), ``story``, ``sentence_number_in_story`` and ``part_number_in_sentence``; neuroids have ``subject_id``
and ``fROI_area``. The text of a presentation is that of 4 s before: the delay of the response is in the assembly.

A recording is a time series with one sample per presentation, stories one after the other; an event is a TR
(``events = "trs"``, ``lags_ms = [0]``). TRs without words are not in the assembly. Times are nominal: presentation k
is at 2 k seconds, and its words lie in the first half second, so that they belong to that sample in any rounding.

The texts of a story joined are the story. A word belongs to the presentation that holds its first letter or digit:
quotes before a word, and hyphens inside one, may lie in the presentation before.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies.dataset import (
    LAYOUT,
    LICENCE,
    AssemblyDataset,
    AssemblyOptions,
    download,
)
from lpact.datasets._assemblies.files import STIMULUS_ID
from lpact.datasets._assemblies.presented import plain_table, reordered
from lpact.datasets._files.sentences import sentences_by_punctuation
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    AbsentMedium,
    DatasetInfo,
    DatasetReader,
    Recording,
    RecordingId,
    Stimulus,
    TimeSeries,
)
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import StimulusError

RUN = "stories"
TR_S = 2.0
SPOKEN_S = 0.5
"""Nominal time over which the words of a TR are spread."""

TEXT = ("stimulus", "stimulus_sentence", "sentence", "stimuli")
SENTENCE, PART = "sentence_number_in_story", "part_number_in_sentence"
CITATION = (
    "Blank, I., Kanwisher, N. and Fedorenko, E. (2014). A functional dissociation between language and "
    "multiple-demand systems revealed in patterns of BOLD signal fluctuations. J. Neurophysiol. 112, 1105-1118."
)
Place = tuple[str, int, int]
"""Story, sentence in the story, part of the sentence."""


class Blank2014Options(AssemblyOptions):
    """What to believe where an assembly contradicts itself."""

    trust: Literal["stimulus_id", "coordinates"] = Field(
        "stimulus_id",
        description="Where `stimulus_id` and the other coordinates of a presentation name different places in the "
        "stories: which of them its responses belong to.",
    )


class Blank2014Dataset(AssemblyDataset):
    """An opened assembly: one recording per subject, over all stories."""

    def __init__(self, name: str, path: Path | None, options: Blank2014Options) -> None:
        super().__init__(
            name, path, options, info=DatasetInfo("Blank et al. 2014", "assembly", LICENCE)
        )
        self._findings: list[Finding] = []
        text = self.file.presentation(TEXT, what="the text of each TR")
        places = self._places()
        self._text = dict(zip(places, text, strict=True))
        if len(self._text) != len(places):
            first = next(place for i, place in enumerate(places) if place in places[:i])
            raise StimulusError(
                "two presentations have the same place in a story",
                where=f"{self.path}, coordinates 'story', '{SENTENCE}' and '{PART}'",
                got=f"story '{first[0]}', sentence {first[1]}, part {first[2]} twice",
                expected="every part of a sentence once",
                remedy="average over repetitions, and write the assembly again",
            )
        places = self._believed(places, options.trust)
        self._rows = sorted(range(len(places)), key=places.__getitem__)
        self._places_sorted = [places[row] for row in self._rows]
        self._unit_ids = self.file.neuroid(("fROI_area", "roi"), what="the regions")
        self._set_recordings(self.one_a_subject(("subject_id", "subject_UID", "subject"), RUN))

    def stimulus_ids(self) -> list[str]:
        """Return the one stimulus, of all stories."""
        return [RUN]

    def _read(self, recording_id: RecordingId, columns: list[int]) -> Recording:
        recording = Recording(
            recording_id,
            TimeSeries(
                self.file.read(self._rows, columns),
                sampling_rate_hz=1.0 / TR_S,
                physical_unit="a.u.",
            ),
            self.units(self._unit_ids, self._unit_ids, columns, comparable=True),
            f"{self.where}, subject {recording_id.subject}",
        )
        check_recording(recording)
        return recording

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        words, onsets_s, offsets_s, stories = [], [], [], []
        first = 0
        for story in dict.fromkeys(place[0] for place in self._places_sorted):
            pieces = [self._text[place] for place in self._places_sorted if place[0] == story]
            for sample, own in enumerate(split_words(pieces), start=first):
                step_s = SPOKEN_S / max(1, len(own))
                words += own
                onsets_s += [TR_S * sample + step_s * i for i in range(len(own))]
                offsets_s += [TR_S * sample + step_s * (i + 1) for i in range(len(own))]
                stories += [story] * len(own)
            first += len(pieces)
        stimulus = Stimulus(
            id=stimulus_id,
            words=plain_table(
                {
                    "word": words,
                    "onset_s": onsets_s,
                    "offset_s": offsets_s,
                    "sentence_id": sentences_by_punctuation(words, stories).tolist(),
                    "story_id": stories,
                }
            ),
            where=self.where,
            media_absent={
                "audio": AbsentMedium(
                    Reason.MEDIA_NOT_RELEASED,
                    "the assembly holds no sound; its times are nominal, so none could be aligned",
                )
            },
            findings=(
                *self._findings,
                self._sentence_rule(),
                *reordered(self._rows, where=self.where),
            ),
        )
        check_stimulus(stimulus)
        return stimulus

    def _sentence_rule(self) -> Finding:
        return Finding(
            field="sentence_id",
            reason=Reason.SENTENCES_BY_RULE,
            severity="note",
            where=self.where,
            found="TRs that hold the end of one sentence and the start of the next",
            expected="the sentence of every word",
            remedy="none needed: a sentence ends with its punctuation, as in the stories' source",
        )

    def _places(self) -> list[Place]:
        """Return the place of every presentation in the stories, as its coordinates say."""
        story = self.file.presentation(["story"], what="the story of each TR")
        return list(zip(story, self.integers(SENTENCE), self.integers(PART), strict=True))

    def _believed(self, places: list[Place], trust: str) -> list[Place]:
        """Return the places that the responses belong to, and note where the file contradicts itself."""
        ids = self.file.presentations.get(STIMULUS_ID)
        if ids is None:
            return places
        self.check_stimulus_ids(ids)
        by_id = {
            f"{story}.{sentence}.{part}": (story, sentence, part)
            for story, sentence, part in places
        }
        wrong = [row for row, name in enumerate(ids) if by_id.get(name) != places[row]]
        if not wrong or not set(ids) <= set(by_id):
            return places
        row = wrong[0]
        named = ".".join(str(part) for part in places[row])
        self._findings.append(
            Finding(
                field=STIMULUS_ID,
                reason=Reason.SOURCE_ROWS_MENDED
                if trust == "stimulus_id"
                else Reason.SIDECAR_DISAGREES,
                severity="note",
                where=self.where,
                found=f"{len(wrong)} presentations; first: row {row} is '{ids[row]}' by its id, "
                f"'{named}' by its coordinates",
                expected="the same place in both",
                remedy=f"responses are taken to belong to the {trust}; the option 'trust' says which",
            )
        )
        return [by_id[name] for name in ids] if trust == "stimulus_id" else places


def split_words(pieces: list[str]) -> list[list[str]]:
    """Return the words of a text that comes in pieces, each in the piece that holds its first letter or digit.

    Words are what white space parts in the joined text. A word without letters and digits goes with its first sign.
    """
    words: list[list[str]] = [[] for _ in pieces]
    ends, total = [], 0
    for text in pieces:
        total += len(text)
        ends.append(total)
    piece = 0
    for match in re.finditer(r"\S+", "".join(pieces)):
        inner = re.search(r"\w", match.group())
        place = match.start() + (inner.start() if inner else 0)
        while ends[piece] <= place:
            piece += 1
        words[piece].append(match.group())
    return words


class Blank2014(DatasetReader):
    """TR-level fMRI of Blank et al. (2014); the module's docstring describes the layout."""

    name = "blank2014"
    summary = "Blank et al. 2014: fMRI while listening to stories, one response per TR and region (netCDF assembly)"
    Options = Blank2014Options
    role = "secondary"
    layout = LAYOUT
    download = download("Blank2014.fROI", CITATION)
    extra = "assemblies"
    options: Blank2014Options

    def open(self, *, name: str, path: Path | None, seed: int) -> Blank2014Dataset:  # noqa: ARG002
        """Open the assembly in the folder ``path``."""
        return Blank2014Dataset(name, path, self.options)
