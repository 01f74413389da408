"""Blank et al. (2014): people heard stories; one fMRI response per TR of 2 s and functional region.

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
from bisect import bisect_right
from itertools import accumulate
from typing import Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies import (
    LAYOUT,
    STIMULUS_ID,
    TEXT,
    AssemblyDataset,
    AssemblyOptions,
    download,
    group,
)
from lpact.datasets._files.sentences import sentences_by_punctuation
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import FolderReader, no_audio, note, sentence_note, words_table
from lpact.datasets.base import Stimulus, TimeSeries
from lpact.math.types import FloatArray

RUN = "stories"
TR_S = 2.0
SPOKEN_S = 0.5
"""Nominal time over which the words of a TR are spread."""

CITATION = (
    "Blank, I., Kanwisher, N. and Fedorenko, E. (2014). A functional dissociation between language and "
    "multiple-demand systems revealed in patterns of BOLD signal fluctuations. J. Neurophysiol. 112, 1105-1118."
)


class Blank2014Options(AssemblyOptions):
    """What to believe where an assembly contradicts itself."""

    trust: Literal["stimulus_id", "coordinates"] = Field(
        "stimulus_id",
        description="Where `stimulus_id` and the other coordinates of a presentation name different places in the "
        "stories: which of them its responses belong to.",
    )


class Blank2014Dataset(AssemblyDataset[Blank2014Options]):
    """An opened assembly: one recording per subject, over all stories."""

    title = "Blank et al. 2014"
    comparable = True

    def _arrange(self) -> None:
        story = self.presentation("story", what="the story of each TR")
        sentence = self.integers("sentence_number_in_story")
        part = self.integers("part_number_in_sentence")
        places = list(zip(story, sentence, part, strict=True))
        names = [".".join(map(str, place)) for place in places]
        self.check_repetitions(names, "story, sentence_number_in_story and part_number_in_sentence")
        text = self.presentation(*TEXT[:-1], what="the text of each TR")
        self._findings: list[Finding] = []
        trusted = self._trusted(names)
        place_of, text_of = (
            dict(zip(names, places, strict=True)),
            dict(zip(names, text, strict=True)),
        )
        rows = sorted(range(len(names)), key=lambda row: place_of[trusted[row]])
        self._texts = [text_of[trusted[row]] for row in rows]
        self._stories = [place_of[trusted[row]][0] for row in rows]
        self.rows = {RUN: rows}
        self.unit_ids = self.regions = self.neuroid("fROI_area", "roi", what="the regions")
        self._set_recordings(self.subjects("subject_id", "subject_UID", "subject", run=RUN))

    def _trusted(self, names: list[str]) -> list[str]:
        """Return the place that each response belongs to, and note where the file contradicts itself."""
        ids, trust = self.presentations.get(STIMULUS_ID, names), self.options.trust
        self.check_repetitions(ids)
        wrong = [row for row, name in enumerate(ids) if name != names[row]]
        if not wrong or not set(ids) <= set(names):
            return names
        by_id, row = trust == "stimulus_id", wrong[0]
        self._findings.append(
            note(
                STIMULUS_ID,
                Reason.SOURCE_ROWS_MENDED if by_id else Reason.SIDECAR_DISAGREES,
                self.where,
                f"{len(wrong)} presentations; first: row {row} is '{ids[row]}' by its id, '{names[row]}' by its "
                "coordinates",
                "the same place in both",
                f"responses belong to the {trust}; the option 'trust' chooses",
            )
        )
        return ids if by_id else names

    def _signal(self, values: FloatArray) -> TimeSeries:
        return TimeSeries(values, sampling_rate_hz=1.0 / TR_S, physical_unit="a.u.")

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        pieces = [
            words
            for rows in group(self._stories).values()
            for words in split_words([self._texts[row] for row in rows])
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
        rule = sentence_note(
            self.where,
            "TRs that hold the end of one sentence and the start of the next",
            "the sentence of every word",
            "none is needed: a sentence ends with its punctuation, as in the stories' source",
        )
        no_sound = "the assembly holds no sound; its times are nominal, so none could be aligned"
        return Stimulus(
            id=stimulus_id,
            words=words_table(words, onset_s, offset_s, sentences, stories),
            where=self.where,
            findings=(*self._findings, rule, *self.moved_note(self.rows[RUN])),
            **no_audio(Reason.MEDIA_NOT_RELEASED, no_sound),
        )


def split_words(pieces: list[str]) -> list[list[str]]:
    """Return the words of a text that comes in pieces, each in the piece that holds its first letter or digit.

    Words are separated by white space in the joined text. A word without letters and digits goes with its first sign.
    """
    words: list[list[str]] = [[] for _ in pieces]
    ends = list(accumulate(len(text) for text in pieces))
    for match in re.finditer(r"\S+", "".join(pieces)):
        inner = re.search(r"\w", match.group())
        place = match.start() + (inner.start() if inner else 0)
        words[bisect_right(ends, place)].append(match.group())
    return words


class Blank2014(FolderReader):
    """TR-level fMRI of Blank et al. (2014); the module's docstring describes the layout."""

    name = "blank2014"
    summary = "Blank et al. 2014: fMRI while listening to stories, one response per TR and region (netCDF assembly)"
    Options = Blank2014Options
    dataset = Blank2014Dataset
    contents = "a folder with one assembly (*.nc)"
    role = "secondary"
    layout = LAYOUT
    download = download("Blank2014.fROI", CITATION)
    extra = "assemblies"
