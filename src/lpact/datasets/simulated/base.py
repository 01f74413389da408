"""Base class of simulated datasets, which depend on options, name and seed alone and need no folder."""

from __future__ import annotations

import json
from abc import abstractmethod
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from lpact.datasets.base import Dataset, DatasetInfo, DatasetReader, Recording, RecordingId, SourceFile, Stimulus
from lpact.errors import RecordingError, StimulusError, require_known
from lpact.registry import PluginOptions
from lpact.validation import json_digest

VERSION = "1"
"""Goes up whenever the same options give other numbers."""

LICENCE = "CC0-1.0"
OptionsT = TypeVar("OptionsT", bound=PluginOptions)


class SimulatedDataset(Dataset, DatasetReader, Generic[OptionsT]):
    """A simulated dataset and its reader; stimuli are generated once, recordings on request.

    ``noun`` is what messages call it.
    """

    noun: ClassVar[str]
    needs_path = False
    info = DatasetInfo("lpact simulation", VERSION, LICENCE)
    options: OptionsT
    opened_as: str
    seed: int
    _stimuli: dict[str, Stimulus]

    def open(self, *, name: str, path: Path | None, seed: int) -> SimulatedDataset[OptionsT]:  # noqa: ARG002
        """Open the dataset ``name``."""
        opened = copy(self)
        opened.opened_as, opened.seed, opened._stimuli = name, seed, {}
        return opened

    @abstractmethod
    def _recording(self, recording_id: RecordingId, where: str) -> Recording:
        """Generate one recording."""

    @abstractmethod
    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Generate one stimulus."""

    @property
    def where(self) -> str:
        """Name of the dataset in messages."""
        return f"{self.noun} '{self.opened_as}'"

    def recording(self, recording_id: RecordingId) -> Recording:
        """Generate one recording."""
        where, known = f"{self.where}, recording {recording_id}", map(str, self.recording_ids())
        require_known(str(recording_id), known, "recording", where=where, error=RecordingError)
        return self._recording(recording_id, where)

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return one stimulus; the same object every time."""
        if stimulus_id not in self._stimuli:
            known = self.stimulus_ids()
            require_known(stimulus_id, known, "stimulus", where=self.where, error=StimulusError)
            self._stimuli[stimulus_id] = self._stimulus(stimulus_id)
        return self._stimuli[stimulus_id]

    def _recipe(self) -> dict[str, Any]:
        """Return the options that the numbers depend on."""
        return self.options.model_dump(mode="json")

    def source_files(self) -> list[SourceFile]:
        """Return one generated source: the hash of everything that the numbers depend on."""
        recipe = {"generator": VERSION, "name": self.opened_as, "options": self._recipe(), "seed": self.seed}
        text = json.dumps(recipe, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = json_digest(recipe)
        return [SourceFile(f"generated:{self.name}", len(text.encode()), digest, LICENCE)]
