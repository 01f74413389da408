"""Fedorenko et al. (2016): people read sentences word by word; one ECoG response a word and electrode.

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

from pathlib import Path

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies.dataset import (
    LAYOUT,
    LICENCE,
    UNKNOWN,
    AssemblyDataset,
    AssemblyOptions,
    download,
)
from lpact.datasets._assemblies.presented import annotation, plain_table, reordered
from lpact.datasets.base import (
    AbsentMedium,
    DatasetInfo,
    DatasetReader,
    Epochs,
    Recording,
    RecordingId,
    Stimulus,
)
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import StimulusError

RUN = "sentences"
PAUSE_S = 1.0
WORD = ("word", "stimulus", "stimuli")
REGION = ("roi", "region", "atlas")
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


class Fedorenko2016Dataset(AssemblyDataset):
    """An opened assembly: one recording per subject."""

    def __init__(self, name: str, path: Path | None, options: Fedorenko2016Options) -> None:
        super().__init__(
            name, path, options, info=DatasetInfo("Fedorenko et al. 2016", "assembly", LICENCE)
        )
        self._options = options
        self._words = self.file.presentation(WORD, what="the words")
        self._sentence = self.integers("sentence_id")
        self._position = self.integers("word_num")
        places = list(zip(self._sentence, self._position, strict=True))
        self._rows = sorted(range(len(places)), key=places.__getitem__)
        self._check_places([places[row] for row in self._rows])
        self._unit_ids = [
            f"electrode_{i}"
            for i in self.file.neuroid(("electrode", "neuroid_id"), what="the electrodes")
        ]
        found = [self.file.neuroids[name] for name in REGION if name in self.file.neuroids]
        self._regions = found[0] if found else [UNKNOWN] * self.file.n_neuroids
        self._set_recordings(self.one_a_subject(("subject_UID", "subject", "subject_id"), RUN))

    def stimulus_ids(self) -> list[str]:
        """Return the one stimulus."""
        return [RUN]

    def _read(self, recording_id: RecordingId, columns: list[int]) -> Recording:
        units = self.units(self._unit_ids, self._regions, columns, comparable=False)
        recording = Recording(
            recording_id,
            Epochs(self.file.read(self._rows, columns)[None], lags_ms=(0.0,), physical_unit="z"),
            units,
            f"{self.where}, subject {recording_id.subject}",
            findings=tuple(self.placeless(units)),
        )
        check_recording(recording)
        return recording

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        word_s = self._options.word_s
        words, onsets_s, number = [], [], -1
        for place, row in enumerate(self._rows):
            word = self._words[row]
            words.append(word.lower() if self._options.lowercase else word)
            number += place == 0 or self._sentence[row] != self._sentence[self._rows[place - 1]]
            onsets_s.append(word_s * place + PAUSE_S * number)
        table = plain_table(
            {
                "word": words,
                "onset_s": onsets_s,
                "offset_s": [onset_s + word_s for onset_s in onsets_s],
                "sentence_id": [self._sentence[row] for row in self._rows],
                "story_id": [f"sentence_{self._sentence[row]:02d}" for row in self._rows],
            }
        )
        extra = {
            column: annotation([values[row] for row in self._rows])
            for column, values in self.file.presentations.items()
            if column not in (*WORD, *table.columns, "presentation")
        }
        stimulus = Stimulus(
            id=stimulus_id,
            words=table.with_columns(values.alias(name) for name, values in extra.items()),
            where=self.where,
            media_absent={
                "audio": AbsentMedium(Reason.MEDIA_NOT_OFFERED, "words were read, not heard")
            },
            findings=tuple(reordered(self._rows, where=self.where)),
        )
        check_stimulus(stimulus)
        return stimulus

    def _check_places(self, places: list[tuple[int, int]]) -> None:
        """Raise where a place in a sentence is taken twice or left out."""
        for before, (sentence, position) in zip([None, *places], places, strict=False):
            follows = before is not None and before[0] == sentence
            wanted = before[1] + 1 if before is not None and follows else position
            if position != wanted:
                raise StimulusError(
                    "the words of a sentence are not numbered one after the other",
                    where=f"{self.path}, coordinates 'sentence_id' and 'word_num'",
                    got=f"in sentence {sentence}, word {position} after word {wanted - 1}",
                    expected="every word of a sentence once",
                    remedy="fix the coordinates, or average over repetitions",
                )


class Fedorenko2016(DatasetReader):
    """Word-level ECoG of Fedorenko et al. (2016); the module's docstring describes the layout."""

    name = "fedorenko2016"
    summary = "Fedorenko et al. 2016: ECoG while reading sentences, one response per word (netCDF assembly)"
    Options = Fedorenko2016Options
    role = "secondary"
    layout = LAYOUT
    download = download("Fedorenko2016.language", CITATION)
    extra = "assemblies"
    options: Fedorenko2016Options

    def open(self, *, name: str, path: Path | None, seed: int) -> Fedorenko2016Dataset:  # noqa: ARG002
        """Open the assembly in the folder ``path``."""
        return Fedorenko2016Dataset(name, path, self.options)
