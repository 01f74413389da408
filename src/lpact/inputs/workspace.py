"""Opened datasets and prepared recordings of a study, kept while in use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from lpact.config import DatasetConfig, LanguageModelConfig, RunConfig, StudyConfig
from lpact.datasets.base import DATASETS, Dataset, RecordingId, Stimulus
from lpact.errors import ConfigError, LPactError
from lpact.features.mechanisms import NO_LANGUAGE, Missing, WordValues
from lpact.features.models import MODELS, ModelPlace, ModelSource
from lpact.inputs.grid_cache import GridCache, fingerprint, put_on_grid
from lpact.inputs.prepare import Inspection, ModelOnGrid, Placed, Prepared, inspect
from lpact.inputs.responses import place_recordings
from lpact.inputs.sources import Owner, Seen, SourceWatch

KEPT_RECORDINGS = 2
KEPT_RESPONSE_BYTES = 64 * 2**20
"""Prepared recordings that stay in memory: two, since work is ordered by recording, or more while they are small."""

KEPT_RECALLED = 4
"""Shared parts of tasks that stay in memory: for L-PACT, nuisance readout and brain patterns of two recordings."""

T = TypeVar("T")


class Workspace:
    """A study's sources. Every process has its own; nothing here changes a number."""

    def __init__(
        self,
        config: StudyConfig,
        run: RunConfig | None = None,
        fingerprints: Mapping[str, str] | None = None,
        seen: Mapping[Owner, tuple[Seen, ...]] | None = None,
    ) -> None:
        self.config = config
        self.run = run or RunConfig()
        self.fingerprints = dict(fingerprints or {})
        self._grids = GridCache(Path(self.run.grids), self.fingerprint)
        self.watch = SourceWatch(seen)
        self._looked: set[str] = set()
        self._datasets: dict[str, Dataset] = {}
        self._inspections: OrderedDict[tuple[str, RecordingId], Inspection] = OrderedDict()
        self._recalled: OrderedDict[Hashable, Any] = OrderedDict()

    def dataset(self, name: str) -> Dataset:
        """Open a dataset of the study, once."""
        if name not in self._datasets:
            entry = next(d for d in self.config.datasets if d.name == name)
            reader = DATASETS.build(entry.reader, entry.options, where=f"dataset '{name}'")
            path = self.run.paths.get(name)
            if reader.needs_path and path is None:
                raise ConfigError(
                    f"dataset '{name}' is read from disk, and no folder is given",
                    where="option 'run.paths'",
                    got="nothing",
                    expected=f'[run.paths] {name} = "path/to/folder"',
                    remedy="add the folder to the study file",
                )
            folder = None if path is None else Path(path)
            self._datasets[name] = reader.open(name=name, path=folder, seed=self.config.seed)
        return self._datasets[name]

    def fingerprint(self, name: str) -> str:
        """Digest of a dataset's files, computed once; other processes are given it."""
        if name not in self.fingerprints:
            self.fingerprints[name] = fingerprint(self.dataset(name))
        return self.fingerprints[name]

    def hold(self, seen: Mapping[Owner, tuple[Seen, ...]], fingerprints: Mapping[str, str]) -> None:
        """Take over what an audit in another workspace saw of the sources."""
        self.watch.seen |= seen
        self.fingerprints |= fingerprints

    def check_sources(self, dataset: str | None = None, *, features: bool = True) -> bool:
        """Compare files of one dataset, or of all, with what the audit saw; other content is an `InputError`.

        Returns whether files were written again with the same content: what was read of them is then discarded, and
        must be read again.
        """
        owners = [(own, model) for own, model in self.watch.seen if dataset in (None, own) and (features or not model)]
        rewritten = self.watch.check(owners)
        if rewritten:
            for kept in (self._datasets, self._inspections, self._recalled):
                kept.clear()
            self.__dict__.pop("sources", None)
        return rewritten

    def _look_at(self, name: str) -> None:
        """Note a dataset's files, or compare them with what the audit saw, before this process first reads them."""
        if name in self._looked:
            return
        path = self.run.paths.get(name)
        if any(own == name for own, _ in self.watch.seen):
            self.check_sources(name)
        elif path is not None:
            self.watch.note((name, ""), self.dataset(name).source_files(), Path(path))
        self._looked.add(name)

    def inspection(self, name: str, recording: RecordingId) -> Inspection:
        """Load, check and prepare one recording; the last few are kept."""
        key = (name, recording)
        if key not in self._inspections:
            self._look_at(name)
            dataset = self.dataset(name)
            on_disk = self.run.paths.get(name) is not None
            self._inspections[key] = inspect(
                dataset,
                recording,
                name=name,
                config=self.config,
                language=self.language,
                place=self._grids.place if on_disk else put_on_grid,
            )
            self._drop_recordings()
        self._inspections.move_to_end(key)
        return self._inspections[key]

    def entry(self, name: str) -> DatasetConfig:
        """A dataset of the study file, but with missing responses kept, as `recordings_of` reads them."""
        entry = next(d for d in self.config.datasets if d.name == name)
        kept = entry.preprocess.model_copy(update={"missing": "keep"})
        return entry.model_copy(update={"preprocess": kept})

    def recordings_of(self, name: str, subject: str, *, keep_constant: bool = False) -> list[Placed]:
        """A subject's recordings on their event grids, with missing responses kept, for analyses that count trials."""
        self._look_at(name)
        place = self._grids.place if self.run.paths.get(name) is not None else put_on_grid
        entry = self.entry(name)
        return place_recordings(self.dataset(name), entry, subject=subject, place=place, keep_constant=keep_constant)

    def _drop_recordings(self) -> None:
        kept = [seen.prepared for seen in self._inspections.values()]
        sizes = [0 if p is None else p.grid.responses.nbytes for p in kept]
        while len(sizes) > KEPT_RECORDINGS and sum(sizes) > KEPT_RESPONSE_BYTES:
            del sizes[0]
            self._inspections.popitem(last=False)

    def prepared(self, name: str, recording: RecordingId) -> Prepared:
        """A recording that the audit found usable."""
        prepared = self.inspection(name, recording).prepared
        if prepared is None:
            raise LPactError(
                f"recording {recording} of dataset '{name}' is no longer usable",
                where=name,
                got="a recording that the audit accepted before",
                expected="sources that do not change while a study runs",
                remedy="run the study again on unchanged sources",
            )
        return prepared

    def recall(self, what: Hashable, compute: Callable[[], T]) -> T:
        """Give what was computed before under the same name; the last few are kept."""
        if what not in self._recalled:
            self._recalled[what] = compute()
            while len(self._recalled) > KEPT_RECALLED:
                self._recalled.popitem(last=False)
        self._recalled.move_to_end(what)
        return cast(T, self._recalled[what])

    @cached_property
    def sources(self) -> dict[str, ModelSource]:
        """Model sources of the study, by model name."""
        sources = {}
        for model in self.config.models:
            source = build_source(model)
            folder = self.run.models.get(model.name)
            source.at(ModelPlace(None if folder is None else Path(folder), Path(self.run.features)))
            sources[model.name] = source
        return sources

    def resolved(self) -> RunConfig:
        """The run's settings with every model's folder found, so that other processes need not look for it."""
        found = {name: source.folder(name) for name, source in self.sources.items()}
        models = {name: str(path) for name, path in found.items() if path is not None}
        return self.run.model_copy(update={"models": models})

    def language(self, stimulus: Stimulus) -> WordValues | Missing:
        """The values of a stimulus' words by the study's model for mechanisms."""
        reading = [m.name for m in self.config.models if self.sources[m.name].reads_text]
        chosen = self.config.mechanisms.model or next(iter(reading), None)
        if chosen is None:
            return NO_LANGUAGE
        return self.sources[chosen].words(chosen, stimulus)

    def model(self, name: str, prepared: Placed) -> ModelOnGrid:
        """A model's features for one recording."""
        return ModelOnGrid(name, self.sources[name], prepared)


def build_source(model: LanguageModelConfig) -> ModelSource:
    """Instance of a model's source, with validated options."""
    return MODELS.build(model.source, model.options, where=f"model '{model.name}'")
