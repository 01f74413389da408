"""Writer of a small table of sentences and responses, as Tuckute et al. (2024) publish theirs.

The first region of every subject holds, at sentence k in the order of ``item_id``, the number k + 1; others hold noise.
Lines are in no order. Sentences have commas and quotes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.math.types import FloatArray

ROIS = ("lang_LH_netw", "lang_LH_IFG", "lang_LH_PostTemp")
HEADER = (
    "", "item_id", "sentence", "cond", "rating_frequency_mean", "target_UID", "roi", "response_target",
    "response_target_non_norm",
)  # fmt: skip


@dataclass(frozen=True)
class SentenceTableTruth:
    """What was written: ``sentences`` in the order of ``items``; ``values`` of a subject, [n_items, n_rois].

    ``items_of`` are the items that a subject was shown.
    """

    path: Path
    items: tuple[int, ...]
    sentences: tuple[str, ...]
    values: Mapping[str, FloatArray]
    items_of: Mapping[str, tuple[int, ...]]


def write_sentence_table(
    folder: Path, *, seed: int = 0, n_sentences: int = 12, n_subjects: int = 3, wide: bool = False
) -> SentenceTableTruth:
    """Write a long table (or a wide one); the last subject was shown every second sentence only."""
    rng = np.random.default_rng(seed)
    items = tuple(range(1, n_sentences + 1))
    things = ("bread", 'a "new" lamp', "two maps, folded", "the café's key")
    sentences = tuple(f"We bought {things[i % 4]} for room {i}." for i in items)
    subjects = [str(848 + i) for i in range(n_subjects)]
    values, items_of, lines = {}, {}, []
    for subject in subjects:
        own = items[::2] if subject == subjects[-1] else items
        items_of[subject] = own
        block = rng.standard_normal((len(own), len(ROIS))).round(6)
        block[:, 0] = np.arange(len(own)) + 1.0
        values[subject] = block
        for place, item in enumerate(own):
            fixed = [item, sentences[item - 1], "BDS"[item % 3], round(1 + item / 7, 4), subject]
            row = block[place].tolist()
            if wide:
                lines.append([*fixed, *row])
            else:
                lines += [[*fixed, roi, v, v * 2 + 1] for roi, v in zip(ROIS, row, strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "brain-lang-data_participant.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*HEADER[:6], *ROIS] if wide else HEADER)
        for index in rng.permutation(len(lines)):
            writer.writerow([int(index), *lines[index]])
    return SentenceTableTruth(path, items, sentences, values, items_of)
