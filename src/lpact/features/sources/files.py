"""Features from files that users bring: static word vectors in text form, and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.source_folder import check_regular
from lpact.datasets.base import FeatureKey, Finding, SourceFile, Stimulus
from lpact.errors import FeatureError, require_known
from lpact.features.language.model_files import Checksums
from lpact.features.models import FULL, ModelSource, check_features
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions
from lpact.store import file_state


class Precomputed(ModelSource):
    """Feature sets of the dataset, under the model's name."""

    name = "precomputed"
    summary = "feature sets that the dataset offers under the model's name"

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return the dataset's feature sets of this model."""
        return sorted(
            (key for key in stimulus.features if key.model == model), key=lambda key: (key.layer, key.context, key.draw)
        )

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return one of the dataset's feature sets, checked against the words."""
        offered = stimulus.features[key]
        values = np.asarray(offered.load(), dtype=np.float64)
        check_features(values, key, stimulus, where=offered.where)
        return values

    def check(self, key: FeatureKey, stimulus: Stimulus) -> None:
        """Read the feature set."""
        self.load(key, stimulus)


SHOWN = 8
MATRIX_ENDINGS = (".npy", ".csv", ".tsv", ".parquet")


class UserFiles(ModelSource):
    """A source that reads the file or folder named in ``[run.models]``."""

    def check(self, key: FeatureKey, stimulus: Stimulus) -> None:
        """Read the features, and compare them with the words."""
        check_features(self.load(key, stimulus), key, stimulus, where=str(self.path(key.model)))

    def path(self, model: str) -> Path:
        """The file or folder; raises `FeatureError` where there is none."""
        path = self.place.folder
        if path is None or not path.exists():
            raise FeatureError(
                f"the files of model '{model}' were not found",
                where="option 'run.models'",
                got="nothing" if path is None else str(path),
                expected=f'[run.models] {model} = "path/to/file"',
                remedy="name the file in the study file, or with --model NAME=PATH",
            )
        check_regular([path], FeatureError)
        return path

    def absent(self, model: str) -> str:
        """Return the file that does not exist."""
        path = self.place.folder
        if path is None:
            return f"no file is named for it in [run.models] ({model})"
        return "" if path.exists() else f"its file {path} does not exist"

    def folder(self, model: str) -> Path | None:  # noqa: ARG002
        """Return the file or folder."""
        return self.place.folder

    def files(self, model: str) -> list[SourceFile]:
        """Return the files with their checksums."""
        path = self.path(model)
        found = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        sums = Checksums(self.place.features).of(found)
        return [SourceFile(p.name, p.stat().st_size, sums[p], str(p.name)) for p in found]


class WordVectorsOptions(PluginOptions):
    """How words find their vectors."""

    missing: Literal["error", "zeros"] = "error"
    """What to do with words that have no vector, in no spelling: stop, or use `zeros`; the audit counts them."""


class WordVectors(UserFiles):
    """Static vectors from a text file, as GloVe and word2vec write them: a word and its numbers on each line.

    A first line with two numbers, the size of the table, is skipped. A word is looked up as it is, then in lower case,
    then without punctuation around it.
    """

    name = "word_vectors"
    summary = "static word vectors from a text file (GloVe, word2vec, fastText .vec)"
    Options = WordVectorsOptions

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return layer 0, where there are words."""
        return [FeatureKey(model, 0, FULL)] if stimulus.has_text else []

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return the vector of every word, [n_words, columns]."""
        path, words = self.path(key.model), stimulus.words["word"].to_list()
        vectors, missing = _looked_up(path, file_state(path), tuple(words))
        if missing and cast(WordVectorsOptions, self.options).missing == "error":
            raise FeatureError(
                f"{len(missing)} words of {len({*words})} have no vector",
                where=f"{path}, stimulus '{stimulus.id}' ({stimulus.where})",
                got=", ".join(repr(word) for word in missing[:SHOWN]),
                expected="a line for every word, as it is, in lower case, or without punctuation",
                remedy='use vectors with these words, or set options = { missing = "zeros" } for the model',
            )
        return vectors

    def findings(self, model: str, stimulus: Stimulus) -> list[Finding]:
        """Return a note on words without a vector."""
        if not stimulus.has_text or self.absent(model):
            return []
        path, words = self.path(model), stimulus.words["word"].to_list()
        _, missing = _looked_up(path, file_state(path), tuple(words))
        if not missing:
            return []
        lacking = {*missing}
        n_rows = sum(word in lacking for word in words)
        shown = ", ".join(repr(word) for word in missing[:SHOWN])
        found = f"{n_rows} of {len(words)} words ({len(missing)} different): {shown}"
        field, expected = f"words of model '{model}'", f"a vector in {path.name} for every word"
        remedy = "their vectors are zero; use vectors with these words"
        reason = Reason.WORDS_UNKNOWN_TO_MODEL
        return [Finding(field, reason, "note", stimulus.where, found, expected, remedy)]


def _spellings(word: str) -> tuple[str, ...]:
    """A word as it is, in lower case, and without what surrounds its letters and digits."""
    lower = word.lower()
    inside = [i for i, character in enumerate(lower) if character.isalnum()]
    return word, lower, lower[inside[0] : inside[-1] + 1] if inside else lower


@lru_cache(maxsize=4)
def _looked_up(path: Path, _: tuple[int, ...], words: tuple[str, ...]) -> tuple[FloatArray, tuple[str, ...]]:
    """Vectors of the words [n, d], and the words without one. The file is read line by line."""
    spellings = {word: _spellings(word) for word in dict.fromkeys(words)}
    wanted = {own for several in spellings.values() for own in several}
    try:
        found, size = _vectors(path, wanted)
    except (OSError, UnicodeDecodeError) as error:
        raise FeatureError(
            "the word vectors cannot be read",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            expected="a text file in UTF-8, with a word and its numbers on each line",
            remedy="name the text file, not a folder or a binary table",
        ) from error
    known = {w: next((s for s in several if s in found), None) for w, several in spellings.items()}
    zero = np.zeros(size)
    vectors = np.stack([zero if (own := known[word]) is None else found[own] for word in words])
    vectors.flags.writeable = False
    return vectors, tuple(word for word, own in known.items() if own is None)


def _vectors(path: Path, wanted: set[str]) -> tuple[dict[str, FloatArray], int]:
    """The vectors of some words of a file, and their size."""
    found: dict[str, FloatArray] = {}
    size = 0
    with path.open(encoding="utf-8", errors="strict") as lines:
        for number, line in enumerate(lines, 1):
            if number == 1 and len(line.split()) == 2:
                continue
            size = size or len(line.split()) - 1
            # Words of some tables contain blanks.
            word, *values = line.rstrip().rsplit(" ", size)
            if word not in wanted or word in found:
                continue
            try:
                found[word] = np.array([float(value) for value in values])
            except ValueError:
                found[word] = np.empty(0)
            if found[word].size != size or not np.isfinite(found[word]).all():
                raise FeatureError(
                    "a line of the word vectors cannot be read",
                    where=f"{path}, line {number}",
                    got=line[:60],
                    expected=f"a word and {size} finite numbers, separated by blanks",
                    remedy="correct the line",
                )
    return found, size


class Matrix(UserFiles):
    """A matrix per stimulus, with a row for every word or for every sentence.

    ``[run.models]`` names a file, or a folder with one file per stimulus (``STIMULUS.npy``, ``.csv``, ``.tsv`` or
    ``.parquet``). Rows of sentences are used as they are; they are never added up over words.
    """

    name = "matrix"
    summary = "a matrix from a file, one row per word or per sentence (.npy, .csv, .tsv, .parquet)"

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return layer 0, where there is a file for the stimulus."""
        return [FeatureKey(model, 0, FULL)] if self._file(model, stimulus) else []

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return one row per word, [n_words, columns]; words of a sentence share its row."""
        values, of_sentences = self._read(key.model, stimulus)
        if not of_sentences:
            return values
        return np.asarray(values[stimulus.words["sentence_id"].rle_id().to_numpy()])

    def has_sentences(self, model: str, stimulus: Stimulus) -> bool:
        """Whether rows are sentences."""
        return self._read(model, stimulus)[1]

    def _file(self, model: str, stimulus: Stimulus) -> Path | None:
        path = self.path(model)
        if not path.is_dir():
            return path
        found = [path / f"{stimulus.id}{ending}" for ending in MATRIX_ENDINGS]
        return next((own for own in found if own.is_file()), None)

    def _read(self, model: str, stimulus: Stimulus) -> tuple[FloatArray, bool]:
        path = self._file(model, stimulus)
        assert path is not None, "`offers` named no features"
        values = _matrix(path, file_state(path))
        n_words, n_sentences = stimulus.words.height, len(stimulus.words["sentence_id"].rle())
        if len(values) not in (n_words, n_sentences):
            raise FeatureError(
                f"the matrix of model '{model}' does not fit the stimulus",
                where=f"{path}, stimulus '{stimulus.id}' ({stimulus.where})",
                got=f"{len(values)} rows",
                expected=f"{n_words} rows (words) or {n_sentences} rows (sentences)",
                remedy="give one row per word or sentence, in the order of the words table",
            )
        return values, len(values) != n_words


@lru_cache(maxsize=8)
def _matrix(path: Path, _: tuple[int, ...]) -> FloatArray:
    """A matrix of numbers from a file."""
    require_known(path.suffix, MATRIX_ENDINGS, "matrix format", where=str(path), error=FeatureError)
    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        elif path.suffix == ".parquet":
            values = pl.read_parquet(path, glob=False).to_numpy()
        else:
            separator = "\t" if path.suffix == ".tsv" else ","
            values = pl.read_csv(path, separator=separator, glob=False).to_numpy()
        made = np.asarray(values, dtype=np.float64)
        if made.ndim != 2:
            raise ValueError(f"shape {made.shape}")
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise FeatureError(
            "the matrix cannot be read",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            expected="numbers, one row per word or sentence; text files with one line of column names",
            remedy="write it again, for example with numpy.save",
        ) from error
    return made
