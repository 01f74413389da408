"""Real transcripts, where they are at hand: every word is found, and every word gets its features."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from lpact import extract_features
from lpact.features.language.transcript import locate

DATA = Path(__file__).parents[3] / "shared" / "data"
STORIES = DATA / "naturalstories" / "naturalstories_RTS" / "all_stories.tok"
PODCAST = DATA / "podcast_ds005574" / "stimuli" / "gpt2-xl" / "transcript.tsv"


def table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        pytest.skip(f"data missing: {path}")
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t"))


def letters(text: str) -> str:
    return re.sub(r"\W", "", text).lower()


def test_bare_words_are_found_in_ten_written_stories() -> None:
    stories: dict[str, list[str]] = {}
    for row in table(STORIES):
        stories.setdefault(row["item"], []).append(row["word"])
    assert len(stories) == 10
    for written in stories.values():
        text = "\n ".join(written)
        bare = [letters(word) or word for word in written]
        passage, skipped = locate(bare, text, where="story")
        assert not skipped
        for word, found in zip(bare, passage.words(), strict=True):
            assert letters(found) == word or found == word


def test_a_podcast_is_read_word_by_word(tmp_path: Path) -> None:
    rows = table(PODCAST)
    words: list[str] = []
    seen = ""
    for row in rows:  # one row a token: words of several tokens come several times
        if row["word_idx"] != seen:
            words.append(row["word"])
            seen = row["word_idx"]
    assert len(words) > 5000
    words = words[:2000]
    full, static = extract_features("lpact-tiny", pl.DataFrame({"word": words}), tmp_path, contexts=["full", "static"])
    assert full.n_words == static.n_words == len(words)
    assert np.isfinite(full.hidden(full.n_layers - 1)).all()
    assert (full.surprisal() > 0).all()
    # A word that the small model never met is spelt out byte by byte, and costs more than one it knows.
    known = np.array([letters(word) in {"the", "and", "was", "a"} for word in words])
    assert full.surprisal()[known].mean() < full.surprisal()[~known].mean() / 2
