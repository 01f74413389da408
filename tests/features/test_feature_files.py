"""Static word vectors and matrices from files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from lpact.codes import Reason
from lpact.datasets.base import FeatureKey, Stimulus
from lpact.errors import FeatureError
from lpact.features.models import ModelPlace
from lpact.features.sources.files import Matrix, WordVectors, WordVectorsOptions

KEY = FeatureKey("glove", 0, "full")


@pytest.fixture
def stimulus() -> Stimulus:
    words = ["The", "dog", "\u201cbarks!\u201d", "New York", "the"]
    return Stimulus(
        "park",
        pl.DataFrame(
            {
                "word": words,
                "onset_s": [0.0, 1.0, 2.0, 3.0, 4.0],
                "offset_s": [0.5, 1.5, 2.5, 3.5, 4.5],
                "sentence_id": [0, 0, 0, 1, 1],
                "story_id": ["a"] * 5,
            }
        ),
        "here",
    )


def source(kind: type[Any], path: Path, tmp_path: Path, **options: Any) -> Any:
    made = kind(WordVectorsOptions(**options)) if options else kind()
    made.at(ModelPlace(path, tmp_path / "features"))
    return made


VECTORS = "the 1 0.5\ndog 2 -1e-1\nbarks 3 0\nNew York 4 1\nunused 9 9\n"


def test_vectors_are_found_as_written_in_lower_case_or_without_punctuation(stimulus: Stimulus, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    for text in (VECTORS, f"5 2\n{VECTORS}"):  # word2vec begins with its size
        path.write_text(text, encoding="utf-8")
        made = source(WordVectors, path, tmp_path)
        assert made.offers("glove", stimulus) == [KEY]
        expected = [[1, 0.5], [2, -0.1], [3, 0], [4, 1], [1, 0.5]]
        np.testing.assert_array_equal(made.load(KEY, stimulus), expected)
        assert made.findings("glove", stimulus) == []
        path = tmp_path / "word2vec.vec"


def test_a_word_without_a_vector_is_an_error_or_counted_zeros(stimulus: Stimulus, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS.replace("dog", "cat"), encoding="utf-8")
    with pytest.raises(FeatureError, match="1 words of 5 have no vector") as caught:
        source(WordVectors, path, tmp_path).load(KEY, stimulus)
    assert "'dog'" in str(caught.value)
    lenient = source(WordVectors, path, tmp_path, missing="zeros")
    np.testing.assert_array_equal(lenient.load(KEY, stimulus)[1], [0.0, 0.0])
    (finding,) = lenient.findings("glove", stimulus)
    assert finding.reason is Reason.WORDS_UNKNOWN_TO_MODEL
    assert "1 of 5 words" in finding.found


@pytest.mark.parametrize("line", ["dog 2 x", "dog nan 1", "dog 2"])
def test_a_damaged_line_is_named(stimulus: Stimulus, tmp_path: Path, line: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS.replace("dog 2 -1e-1", line), encoding="utf-8")
    with pytest.raises(FeatureError) as caught:
        source(WordVectors, path, tmp_path).load(KEY, stimulus)
    assert "line 2" in str(caught.value) or "'dog'" in str(caught.value)


def test_a_missing_file_says_where_to_name_it(stimulus: Stimulus, tmp_path: Path) -> None:
    made = source(WordVectors, tmp_path / "nowhere.txt", tmp_path)
    assert "does not exist" in made.absent("glove")
    with pytest.raises(FeatureError, match="the files of model 'glove' were not found") as caught:
        made.load(KEY, stimulus)
    assert "[run.models] glove" in str(caught.value)


@pytest.mark.parametrize("ending", ["npy", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("n_rows", [5, 2])
def test_a_matrix_has_rows_of_words_or_sentences(stimulus: Stimulus, tmp_path: Path, ending: str, n_rows: int) -> None:
    values = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    folder = tmp_path / "matrices"
    folder.mkdir()
    path = folder / f"park.{ending}"
    frame = pl.DataFrame(values, schema=["a", "b"])
    if ending == "npy":
        np.save(path, values)
    elif ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if ending == "tsv" else ",")
    for place in (path, folder):
        made = source(Matrix, place, tmp_path)
        key = FeatureKey("SENSE", 0, "full")
        assert made.offers("SENSE", stimulus) == [key]
        assert made.has_sentences("SENSE", stimulus) is (n_rows == 2)
        rows = [0, 0, 0, 1, 1] if n_rows == 2 else range(5)
        np.testing.assert_array_equal(made.load(key, stimulus), values[list(rows)])
    assert [file.path for file in made.files("SENSE")] == [path.name]


def test_a_matrix_that_does_not_fit_is_an_error(stimulus: Stimulus, tmp_path: Path) -> None:
    path = tmp_path / "matrix.npy"
    np.save(path, np.ones((3, 2)))
    with pytest.raises(FeatureError, match="does not fit the stimulus") as caught:
        source(Matrix, path, tmp_path).load(KEY, stimulus)
    assert "5 rows (words) or 2 rows (sentences)" in str(caught.value)
    for name, text in (("matrix.csv", "a,b\n1,x\n"), ("matrix.npy", "no array"), ("m.mat", "")):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FeatureError):
            source(Matrix, path, tmp_path).load(KEY, stimulus)


@pytest.mark.parametrize("kind", [WordVectors, Matrix])
def test_a_pipe_is_refused(kind: type[Any], stimulus: Stimulus, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "park.npy")
    with pytest.raises(FeatureError, match="is a pipe"):
        source(kind, tmp_path / "park.npy", tmp_path).load(KEY, stimulus)


def test_arrays_of_objects_are_never_unpickled(stimulus: Stimulus, tmp_path: Path) -> None:
    path = tmp_path / "matrix.npy"
    np.save(path, np.array([{"a": 1}] * 5, dtype=object), allow_pickle=True)
    with pytest.raises(FeatureError, match="the matrix cannot be read"):
        source(Matrix, path, tmp_path).load(KEY, stimulus)
