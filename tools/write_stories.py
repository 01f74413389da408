"""Write the stories of simulated studies, or the frequencies of their words, with the grammar in ``story_grammar``.

python tools/write_stories.py [frequencies]
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import polars as pl

from lpact.datasets.simulated import prose
from lpact.datasets.simulated.streams import Streams
from lpact.math.seeding import keyed_rng
from story_grammar import join, write_prose
from story_grammar.grammar import Narrator
from story_grammar.mechanisms import mechanisms
from story_grammar.writer import RandomChooser

FOLDER = Path(prose.__file__).parent
SEED = 20240501
N_COUNTED = 5000
N_DOCUMENTED, SENTENCES_DOCUMENTED = 4, 20


@cache
def documented() -> dict[int, Narrator]:
    """The stories that the tutorial and the example with a language model show, by their places in the file.

    The grammar wrote them when the dataset ``stories`` was opened with seed 1; they keep these first sentences.
    """
    streams = Streams(1, "stories")
    chooser = RandomChooser(streams.rng("words", "stimulus01"))
    places = streams.rng("stories").permutation(prose.N_STORIES)[:N_DOCUMENTED].tolist()
    begun = {place: Narrator(chooser) for place in places}
    for narrator in begun.values():
        for _ in range(SENTENCES_DOCUMENTED):
            narrator.write_sentence()
    return begun


def story(i: int) -> pl.DataFrame:
    """Story ``i`` of the file; no story that the tiny model was trained on."""
    chooser = RandomChooser(keyed_rng(SEED, "shipped", i))
    narrator = documented().get(i) or Narrator(chooser)
    narrator.chooser = chooser
    while narrator.sentence < prose.SENTENCES_PER_STORY:
        narrator.write_sentence()
    text = join([narrator.tokens])
    columns = {**vars(text), "story": text.story + i, "bits": text.bits.round(6)}
    columns |= {name: values.round(3) for name, values in mechanisms(text).items()}
    return pl.DataFrame({name: pl.Series(values) for name, values in columns.items()})


def write_stories() -> None:
    """Write every story, one word per line."""
    text = pl.concat([story(i) for i in range(prose.N_STORIES)])
    tsv = text.write_csv(separator="\t", quote_style="never").encode()
    (FOLDER / prose.STORIES).write_bytes(gzip.compress(tsv, mtime=0))
    print(f"{text.height} words in {prose.N_STORIES} stories")


def write_frequencies() -> None:
    """Count word types in about a million words: stories of 16, 17 … 27 sentences in turn."""
    counts: Counter[str] = Counter()
    for i in range(N_COUNTED):
        text = write_prose(keyed_rng(SEED, "frequencies", i), n_stories=1, n_sentences=16 + i % 12)
        counts.update(prose.word_type(word) for word in text.word)
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    lines = "".join(f"{word}\t{count}\n" for word, count in rows)
    (FOLDER / prose.FREQUENCIES).write_text(lines, encoding="utf-8")
    print(f"{counts.total()} words of {len(rows)} types")


if __name__ == "__main__":
    write_frequencies() if "frequencies" in sys.argv else write_stories()
