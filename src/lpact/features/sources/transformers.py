"""Features read off a language model with Hugging Face transformers, kept on disk by content."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from lpact.codes import Reason
from lpact.datasets.base import FeatureKey, Finding, SourceFile, Stimulus
from lpact.datasets.fetch import Progress
from lpact.errors import FeatureError
from lpact.features.language.extraction import Extraction, LoadedModel, PlannedSet, surely_causal
from lpact.features.language.feature_set import FeatureSet, array_files
from lpact.features.language.model_files import Checksums, ModelFolder, find_model, missing_here
from lpact.features.language.settings import KNOWN_CONTEXTS, WORD_BY_WORD, ReadingOptions
from lpact.features.language.text import read_stories
from lpact.features.mechanisms import Missing, WordValues
from lpact.features.models import FULL, STATIC, ExtractionCost, ModelSource, StoredSet, check_features
from lpact.math.types import FloatArray, IntArray


class TransformersOptions(ReadingOptions):
    """Which model, and how its features are read."""

    model: str = ""
    """Hub name of the model, or `lpact-tiny`, the small one that comes with lpact. Empty: the model's name in the
    study. A folder is given in `[run.models]`.
    """


class Transformers(ModelSource):
    """A causal or masked language model, from a folder or a hub name."""

    name = "transformers"
    summary = "hidden states, surprisal and entropy of a Hugging Face language model, extracted from the words"
    Options = TransformersOptions
    reads_text = True

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self._folders: dict[str, ModelFolder] = {}
        self._loaded: dict[str, LoadedModel] = {}
        self._extractions: OrderedDict[tuple[str, str, tuple[str, ...]], Extraction] = OrderedDict()
        self._verified: set[Path] = set()

    @property
    def reading(self) -> TransformersOptions:
        """The validated options."""
        return cast(TransformersOptions, self.options)

    @property
    def token_pooling(self) -> str:
        """How the tokens of a word become its row."""
        return self.reading.pooling

    def token_counts(self, model: str, stimulus: Stimulus) -> IntArray:
        """Return the number of tokens of every word, as noted when the full context was extracted."""
        extraction = self._extraction(model, stimulus, (FULL,))
        found = extraction.open(extraction.sets[0])
        if "tokens_per_word" not in found.about:
            raise FeatureError(
                "the feature set does not say how many tokens words have",
                where=str(found.path),
                got="a set of an earlier version",
                expected="a set with 'tokens_per_word'",
                remedy="remove the folder, and extract the features again",
            )
        return np.asarray(found.about["tokens_per_word"], dtype=np.int64)

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return every layer in every context, and the static vectors."""
        if not stimulus.has_text:
            return []
        n_layers, _ = self._folder(model).sizes()
        keys = [
            FeatureKey(model, layer, context, draw)
            for context in self._contexts(model)
            if context != STATIC
            for layer in range(n_layers + 1)
            for draw in range(self.reading.draws(context))
        ]
        return [*keys, FeatureKey(model, 0, STATIC)]

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return an extracted feature set, [n_words, columns]."""
        extraction, planned = self._planned(key, stimulus)
        found = self._open(extraction, planned)
        values = found.hidden(key.layer)
        check_features(values, key, stimulus, where=str(found.path))
        return values

    def check(self, key: FeatureKey, stimulus: Stimulus) -> None:
        """Raise if an extracted set has changed."""
        extraction, planned = self._planned(key, stimulus)
        if planned.complete:
            self._open(extraction, planned)

    def width(self, key: FeatureKey, stimulus: Stimulus) -> int:  # noqa: ARG002
        """Return the width of the model's hidden states."""
        return self._folder(key.model).sizes()[1]

    def ready(self, model: str, stimulus: Stimulus, contexts: Sequence[str]) -> bool:
        """Return whether all sets of these contexts are complete."""
        if stimulus.lacks("word"):
            return True
        return not self._extraction(model, stimulus, self._wanted(model, contexts)).unfinished

    def cost(self, model: str, stimulus: Stimulus, contexts: Sequence[str]) -> ExtractionCost:
        """Return what is left to extract; the model is loaded and one batch is timed."""
        return self._extraction(model, stimulus, self._wanted(model, contexts)).estimate()

    def extract(self, model: str, stimulus: Stimulus, contexts: Sequence[str], progress: Progress) -> None:
        """Extract the feature sets that are missing."""
        self._extraction(model, stimulus, self._wanted(model, contexts)).run(progress)

    def words(self, model: str, stimulus: Stimulus) -> WordValues | Missing:
        """Return surprisal, entropy and states in full context."""
        extraction = self._extraction(model, stimulus, (FULL, STATIC))
        if extraction.unfinished:
            return Missing(
                Reason.FEATURES_NOT_EXTRACTED,
                f"features of model '{model}' are not extracted yet; `lpact run` does so first",
            )
        full, static = (self._open(extraction, planned) for planned in extraction.sets)
        where = f"model '{model}'"
        return WordValues(
            where,
            layers=tuple(range(full.n_layers)),
            surprisal=lambda: _defined(full.surprisal(), "surprisal", where),
            entropy=lambda: _defined(full.entropy(), "entropy", where),
            states=lambda layer: static.hidden(0) if layer is None else full.hidden(layer),
        )

    def findings(self, model: str, stimulus: Stimulus) -> list[Finding]:
        """Return a note on words that the tokenizer does not know, and on transcript text that is in no word."""
        if stimulus.lacks("word"):
            return []
        extraction = self._extraction(model, stimulus, (FULL,))
        if extraction.unfinished:
            return []
        about = extraction.open(extraction.sets[0]).about
        unknown = ", ".join(about.get("unknown_words", ()))
        notes = {
            "n_unknown_words": (
                f"words as model '{model}' reads them",
                Reason.WORDS_UNKNOWN_TO_MODEL,
                f"words, such as {unknown}",
                "words of characters that the tokenizer knows",
                "spell them otherwise, or use a model of that language",
            ),
            "n_skipped_stretches": (
                "transcripts",
                Reason.TRANSCRIPT_BEYOND_WORDS,
                f"stretches, the first {about.get('skipped_stretch')!r}",
                "transcripts of the words and no more",
                "none needed: it is read as context; remove it if it was not heard",
            ),
        }
        return [
            Finding(field, reason, "note", stimulus.where, f"{about[n]} {found}", expected, remedy)
            for n, (field, reason, found, expected, remedy) in notes.items()
            if about.get(n)
        ]

    def absent(self, model: str) -> str:
        """Return the package, folder or hub name that is not here."""
        return missing_here(self.reading.model or model, revision=self.reading.revision, folder=self.place.folder)

    def folder(self, model: str) -> Path | None:
        """Return the model's folder, or its GGUF file; a hub name is resolved here."""
        found = self._folder(model)
        return found.path if found.gguf is None else found.path / found.gguf

    def files(self, model: str) -> list[SourceFile]:
        """Return configuration, tokenizer and weights."""
        folder = self._folder(model)
        source = folder.name + (f"@{folder.revision}" if folder.revision else "")
        sums = Checksums(self.place.features).of(folder.files)
        return [SourceFile(p.name, p.stat().st_size, sums[p], source) for p in folder.files]

    def sets(self, model: str, stimulus: Stimulus, contexts: Sequence[str]) -> dict[str, StoredSet | None]:
        """Return the sets of these contexts, each compared with its digest."""
        found: dict[str, StoredSet | None] = {}
        if not stimulus.has_text:
            return found
        extraction = self._extraction(model, stimulus, self._wanted(model, contexts))
        for planned in extraction.sets:
            name = planned.path.name
            found[name] = None
            if planned.complete:
                stored = extraction.open(planned)
                sha256 = stored.verify(extraction.checksums)
                files = tuple(
                    SourceFile(f"{name}/{path}", place.stat().st_size, own, "", place)
                    for path, (place, own) in array_files(stored.path, extraction.checksums).items()
                )
                found[name] = StoredSet(name, sha256, files)
        return found

    def _planned(self, key: FeatureKey, stimulus: Stimulus) -> tuple[Extraction, PlannedSet]:
        extraction = self._extraction(key.model, stimulus, (key.context,))
        return extraction, next(s for s in extraction.sets if s.draw == key.draw)

    def _open(self, extraction: Extraction, planned: PlannedSet) -> FeatureSet:
        """An unchanged set; its digest is checked once per process."""
        found = extraction.open(planned)
        if found.complete and found.path not in self._verified:
            found.verify(extraction.checksums)
            self._verified.add(found.path)
        return found

    def _wanted(self, model: str, contexts: Sequence[str]) -> tuple[str, ...]:
        return tuple(context for context in self._contexts(model) if context in contexts)

    def _contexts(self, model: str) -> tuple[str, ...]:
        """Contexts that can be compared: words that are read last cannot be, with features that see the future."""
        seen = self.reading.future == "seen" and not surely_causal(self._folder(model), self.reading)
        return tuple(c for c in KNOWN_CONTEXTS if not (seen and c in WORD_BY_WORD))

    def _folder(self, model: str) -> ModelFolder:
        if model not in self._folders:
            self._folders[model] = find_model(
                self.reading.model or model, revision=self.reading.revision, folder=self.place.folder
            )
        return self._folders[model]

    def _extraction(self, model: str, stimulus: Stimulus, contexts: tuple[str, ...]) -> Extraction:
        place = (model, _content(stimulus), contexts)
        if place not in self._extractions:
            stories = read_stories(
                stimulus.words,
                where=stimulus.where,
                transcripts=stimulus.transcripts or None,
                joiner=self.reading.joiner,
            )
            self._extractions[place] = Extraction(
                self._folder(model),
                stories,
                self.reading,
                out=self.place.features,
                name=model,
                contexts=contexts,
                where=stimulus.where,
                loaded=self._loaded.setdefault(model, LoadedModel(self._folder(model), self.reading)),
            )
            while len(self._extractions) > KEPT_EXTRACTIONS:
                self._extractions.popitem(last=False)
        self._extractions.move_to_end(place)
        return self._extractions[place]


KEPT_EXTRACTIONS = 16
"""Texts and contexts whose plans stay in memory."""


def _content(stimulus: Stimulus) -> str:
    """Hash of all that features can depend on in a stimulus: times and other annotations do not matter."""
    digest = hashlib.sha256(repr(sorted(stimulus.transcripts.items())).encode("utf-8", "replace"))
    for column in ("word", "story_id", "sentence_id", "space_after", "misc"):
        if column in stimulus.words.columns:
            values = "\x1f".join(map(str, stimulus.words[column]))
            digest.update(f"{column}\x1e{values}\x1e".encode("utf-8", "replace"))
    return digest.hexdigest()


def _defined(values: FloatArray, what: str, where: str) -> FloatArray | Missing:
    """Return values of the words, or Missing if the model does not define all of them."""
    undefined = ~np.isfinite(values)
    if not undefined.any():
        return values
    row = int(np.argmax(undefined))
    return Missing(
        Reason.MECHANISM_NOT_OFFERED,
        f"{where} has no {what} for {int(undefined.sum())} of {len(values)} words, first word {row}",
    )
