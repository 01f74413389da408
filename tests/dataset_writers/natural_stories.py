"""Writer of a small Natural Stories corpus: words, words as read, reading times, and parses.

Quirks of the real files: ``words.tsv`` has no header and parts punctuation and hyphens with blanks; one word was read
with a typing error; reading times are in alphabetical order; a token of a parse may be a whole word, a part of it, or
the word without its punctuation; columns 4 and 5 of the dependencies both hold Penn tags; a comma that stands for "and"
is tagged and attached as a conjunction.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.datasets.natural_stories import AS_READ, TIMES, UD, WORDS

_SUBJECTS = ("boar", "matchstick", "king", "wren", "tulip", "huntsman")


@dataclass(frozen=True)
class NaturalStoriesTruth:
    """What was written, one entry per word in the order of the stories.

    ``words`` are as they were read; ``typo`` is the row whose word is another in ``words.tsv``. ``head`` counts from 1
    in the sentence.
    """

    folder: Path
    words: tuple[str, ...]
    stories: tuple[str, ...]
    sentence: tuple[int, ...]
    mean_rt_ms: tuple[float, ...]
    head: tuple[int, ...]
    relation: tuple[str, ...]
    typo: int


def write_natural_stories(
    folder: Path, *, seed: int = 0, n_stories: int = 3, n_sentences: int = 4, parses: bool = True
) -> NaturalStoriesTruth:
    """Write stories of sentences with eight words each."""
    rng = np.random.default_rng(seed)
    lines, words, stories, conllx = [], [], [], []
    for story in range(1, n_stories + 1):
        for sentence in range(n_sentences):
            subject, thing = rng.choice(_SUBJECTS, 2, replace=False)
            codes = [f"{story}.{8 * sentence + i + 1}" for i in range(8)]
            tokens = ["The", subject, "saw", "the", "long - bearded", f"{thing} ,", "to", "know ."]
            for code, token in zip(codes, tokens, strict=True):
                lines += [f"{code}.whole\t{token}", f"{code}.word\t{token.rstrip(' ,.')}"]
                lines += [f"{code}.{i}\t{part}" for i, part in enumerate(token.split(), start=1)]
                words.append(token.replace(" ", ""))
                stories.append(str(story))
            conllx.append(_dependencies(codes, subject, thing))
    typo = int(rng.integers(len(words)) // 8 * 8 + 2)
    words[typo] = "sawed"
    mean_rt_ms = rng.uniform(280.0, 420.0, len(words)).round(3)
    _write(folder / WORDS, lines)
    zones = [i % (8 * n_sentences) + 1 for i in range(len(words))]
    places = list(zip(words, zones, stories, strict=True))
    _write(folder / AS_READ, ["word\tzone\titem", *(f"{w}\t{z}\t{s}" for w, z, s in places)])
    times = [
        f"{w}\t{z}\t{s}\t{80 + i % 9}\t{mean_rt_ms[i]}\t100.5\t{mean_rt_ms[i] - 20}\t1.4"
        for i, (w, z, s) in enumerate(places)
    ]
    header = "word\tzone\titem\tnItem\tmeanItemRT\tsdItemRT\tgmeanItemRT\tgsdItemRT"
    _write(folder / TIMES, [header, *sorted(times)])
    if parses:
        _write(folder / UD, ["\n".join(sentence) + "\n" for sentence in conllx])
    n_total = n_stories * n_sentences
    return NaturalStoriesTruth(
        folder,
        tuple(words),
        tuple(stories),
        tuple(i // 8 for i in range(len(words))),
        tuple(mean_rt_ms.tolist()),
        (2, 3, 0, 6, 6, 3, 8, 3) * n_total,
        ("det", "nsubj", "root", "det", "amod", "dobj", "mark", "xcomp") * n_total,
        typo,
    )


def _dependencies(codes: list[str], subject: str, thing: str) -> list[str]:
    rows = [
        ("The", "DT", 2, "det", codes[0]),
        (subject, "NN", 3, "nsubj", codes[1]),
        ("saw", "VBD", 0, "root", codes[2]),
        ("the", "DT", 6, "det", codes[3]),
        ("long-bearded", "JJ", 6, "amod", f"{codes[4]}.word"),
        (thing, "NN", 3, "dobj", f"{codes[5]}.1"),
        (",", "CC", 3, "cc", f"{codes[5]}.2"),
        ("to", "TO", 9, "mark", codes[6]),
        ("know", "VB", 3, "xcomp", f"{codes[7]}.1"),
        (".", ".", 3, "punct", f"{codes[7]}.2"),
    ]
    return [
        f"{i}\t{form}\t_\t{tag}\t{tag}\t_\t{head}\t{relation}\t_\tTokenId={code}"
        for i, (form, tag, head, relation, code) in enumerate(rows, start=1)
    ]


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
