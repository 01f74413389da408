"""Fedorenko et al. (2016): people read sentences word by word; one ECoG response per word and electrode.

::

    assy_Fedorenko2016_language.nc    presentation × neuroid (416 words × 97 electrodes of 5 subjects)
    stimulus*.csv                     optional: stimulus_id, and what the assembly does not say of a word

Presentations have ``stimulus_id``, ``word`` (or ``stimulus``), ``word_num`` (0 to 7) and ``sentence_id`` (0 to 51);
neuroids have ``neuroid_id``, ``electrode`` and ``subject_UID``, and may have ``x``, ``y`` and ``z`` (mm). Responses are
z-scored high-gamma envelopes, averaged over the time that a word is shown.

An epoch is a word (``events = "words"``). Sentences are unrelated: each is a story of its own, so a model reads no
other sentence before it. Words are put in order of ``sentence_id`` and ``word_num``. Times are nominal.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies import LAYOUT, AssemblyDataset, AssemblyOptions, download
from lpact.datasets._folder_dataset import (
    UNKNOWN,
    FolderReader,
    no_audio,
    typed_column,
    words_table,
)
from lpact.datasets.base import WORD_COLUMNS, Epochs, Stimulus
from lpact.errors import StimulusError
from lpact.math.types import FloatArray

RUN = "sentences"
PAUSE_S = 1.0
WORD = ("word", "stimulus", "stimuli")
CITATION = (
    "Fedorenko, E. et al. (2016). Neural correlate of the construction of sentence meaning. "
    "PNAS 113, E6256-E6262."
)


class Fedorenko2016Options(AssemblyOptions):
    """How words are shown to a model."""

    word_s: float = Field(
        0.45,
        gt=0,
        description="Nominal time of a word, in seconds; it was 0.45 or 0.7 s, and the assembly does not say which.",
    )
    lowercase: bool = Field(
        False,
        description="Read words in lower case. They were shown in capitals, which language models hardly know.",
    )


class Fedorenko2016Dataset(AssemblyDataset[Fedorenko2016Options]):
    """An opened assembly: one recording per subject."""

    title = "Fedorenko et al. 2016"

    def _arrange(self) -> None:
        self._words = self.presentation(*WORD, what="the words")
        places = list(zip(self.integers("sentence_id"), self.integers("word_num"), strict=True))
        rows = sorted(range(len(places)), key=places.__getitem__)
        self._places = [places[row] for row in rows]
        for before, (sentence, position) in pairwise(self._places):
            if before[0] == sentence and position != before[1] + 1:
                raise StimulusError(
                    "the words of a sentence are not numbered one after the other",
                    where=f"{self.path}, coordinates 'sentence_id' and 'word_num'",
                    got=f"in sentence {sentence}, word {position} after word {before[1]}",
                    expected="every word of a sentence once",
                    remedy="fix the coordinates, or average over repetitions",
                )
        self.rows = {RUN: rows}
        electrodes = self.neuroid("electrode", "neuroid_id", what="the electrodes")
        self.unit_ids = [f"electrode_{name}" for name in electrodes]
        regions = [self.neuroids[n] for n in ("roi", "region", "atlas") if n in self.neuroids]
        self.regions = regions[0] if regions else [UNKNOWN] * len(electrodes)
        self._set_recordings(self.subjects("subject_UID", "subject", "subject_id", run=RUN))

    def _signal(self, values: FloatArray) -> Epochs:
        return Epochs(values[None], lags_ms=(0.0,), physical_unit="z")

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        rows, word_s = self.rows[RUN], self.options.word_s
        words = [self._words[row] for row in rows]
        sentence = np.array([number for number, _ in self._places])
        n_before = np.cumsum(np.diff(sentence, prepend=sentence[:1]) != 0)
        onset_s = word_s * np.arange(len(rows)) + PAUSE_S * n_before
        columns = {
            name: typed_column([values[row] for row in rows])
            for name, values in self.presentations.items()
            if name not in (*WORD, *WORD_COLUMNS, "presentation")
        }
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
            findings=tuple(self.moved_note(rows)),
            **no_audio(Reason.MEDIA_NOT_OFFERED, "words were read, not heard"),
        )


class Fedorenko2016(FolderReader):
    """Word-level ECoG of Fedorenko et al. (2016); the module's docstring describes the layout."""

    name = "fedorenko2016"
    summary = "Fedorenko et al. 2016: ECoG while reading sentences, one response per word (netCDF assembly)"
    Options = Fedorenko2016Options
    dataset = Fedorenko2016Dataset
    contents = "a folder with one assembly (*.nc)"
    role = "secondary"
    layout = LAYOUT
    download = download("Fedorenko2016.language", CITATION)
    extra = "assemblies"
