"""Writer of the layout of Le Petit Prince: small files with the quirks of the real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dataset_writers._nifti import (
    REGIONS,
    centres_mm,
    region_means,
    volume_of_words,
    word_times,
    write_atlas,
    write_bold,
)
from lpact.math.types import FloatArray, IntArray

TR_S = 2.0
N_SECTIONS = 9
LENGTH = 5
"""Words of every sentence."""

RUNS = {"057": range(15, 24), "058": range(8, 17)}
"""Run labels of the subjects; those of the second would be in another order as texts."""

_HEADS = (2, 0, 2, 3, 3)
_RELATIONS = ("nsubj", "root", "dobj", "cc", "conj:and")
_TEXTS = ("boa", "swallowed", "sheep", "and", "elephants")


@dataclass
class _Sentence:
    """Rows of a sentence: words as spoken, lemmas as parsed, and the parse as it should be read."""

    words: list[str]
    lemmas: list[str]
    heads: list[int] = field(default_factory=lambda: list(_HEADS))
    relations: list[str] = field(default_factory=lambda: list(_RELATIONS))
    kind: str = "plain"


@dataclass(frozen=True)
class PetitPrinceTruth:
    """What was written; lists have one entry a section, with the words that a reader should keep.

    ``volumes`` and ``means`` are keyed by ``sub-EN057_ses-1_run-1``, where the run is the section: the volume of every
    word (−1 outside of the series), and the exact region means. ``run_of`` holds the label in the file name.
    ``known_broken`` counts rows that are broken in the published table, if this one is long enough to hold them.
    """

    words: tuple[tuple[str, ...], ...]
    onset_s: tuple[FloatArray, ...]
    offset_s: tuple[FloatArray, ...]
    lemmas: tuple[tuple[str, ...], ...]
    heads: tuple[tuple[int, ...], ...]
    relations: tuple[tuple[str, ...], ...]
    volumes: Mapping[str, IntArray]
    means: Mapping[str, FloatArray]
    run_of: Mapping[str, int]
    n_blank: int
    known_broken: int
    regions: tuple[str, ...]
    centres_mm: FloatArray


def write_petit_prince(
    folder: Path, *, seed: int = 0, n_sentences: int = 4, language: str = "EN", scans: bool = True
) -> PetitPrinceTruth:
    """Write a small folder: two subjects, nine sections of ``n_sentences`` sentences each."""
    rng = np.random.default_rng(seed)
    write_atlas(folder)
    sentences = [_sentence(i) for i in range(N_SECTIONS * n_sentences)]
    n_rows = len(sentences) * LENGTH
    long_enough = language == "EN" and n_rows > 6790
    if long_enough:
        _plant_known(sentences)
    times = [word_times(rng, n_sentences * LENGTH, 0.113) for _ in range(N_SECTIONS)]
    _write_annotation(folder, language, sentences, times)
    kept = _Kept(sentences, times, {3919, 6775, 6781} if long_enough else set())
    volumes, means, run_of = {}, {}, {}
    for subject, labels in RUNS.items() if scans else ():
        for section, label in enumerate(labels, start=1):
            key = f"sub-{language}{subject}_ses-1_run-{section}"
            run_of[key] = label
            of_words = volume_of_words(kept.onset_s[section - 1], 0.0, TR_S)
            n_volumes = max(1, int(of_words.max()) + (-2 if section == 9 else 3))
            means[key], volumes[key] = region_means(rng, of_words, n_volumes)
            name = f"sub-{language}{subject}_task-lpp{language}_run-{label}"
            path = folder / f"derivatives/sub-{language}{subject}/func" / name
            bold = path.with_name(f"{name}_space-MNIColin27_desc-preproc_bold.nii.gz")
            write_bold(bold, means[key], tr_s=TR_S)
            sidecar = bold.with_name(bold.name.replace(".nii.gz", ".json"))
            sidecar.write_text(json.dumps({"RepetitionTime": TR_S}), encoding="utf-8")
    return PetitPrinceTruth(
        words=kept.words,
        onset_s=kept.onset_s,
        offset_s=kept.offset_s,
        lemmas=kept.lemmas,
        heads=kept.heads,
        relations=kept.relations,
        volumes=volumes,
        means=means,
        run_of=run_of,
        n_blank=kept.n_blank,
        known_broken=3 if long_enough else 0,
        regions=REGIONS,
        centres_mm=centres_mm(),
    )


def _sentence(index: int) -> _Sentence:
    words = list(_TEXTS)
    if index == 1:
        # The second half of a contraction has no word of its own.
        words[2:4] = ["didnt", ""]
        lemmas = [*_TEXTS[:2], "did", "not", _TEXTS[4]]
        heads, relations = [2, 0, 2, 3], ["nsubj", "root", "dobj", "conj:and"]
        return _Sentence(words, lemmas, heads, relations)
    if index == 2:
        words[0], words[4] = "TRUE", "FALSE"
        return _Sentence(words, ["true", *_TEXTS[1:4], "fasle"])
    if index == 5:
        # The parser took two words for one.
        words[2:4] = ["three two five", "three two six"]
        lemmas = [*_TEXTS[:2], "325", "326", _TEXTS[4]]
        relations = ["nsubj", "root", "dobj", "dep", "conj:and"]
        return _Sentence(words, lemmas, list(_HEADS), relations, "fused")
    if index == 7:
        return _Sentence(words, list(_TEXTS), [3, 0, 2, 3, 3], list(_RELATIONS), "cycle")
    return _Sentence(words, list(_TEXTS))


def _plant_known(sentences: list[_Sentence]) -> None:
    """Plant the rows 3919, 6775 and 6781 of the published table; words are one row ahead from 6765 to 6775."""
    of_3919 = sentences[3919 // LENGTH]
    of_3919.words[4], of_3919.lemmas[4] = "i.", "i"
    of_3919.heads, of_3919.relations = [2, 0, 2, 3], ["nsubj", "root", "dobj", "cc"]
    first = 6765 // LENGTH
    sentences[first].lemmas[0] = "phew"
    sentences[first].heads = [0, 1, 2, 2]
    sentences[first].relations = ["root", "dobj", "cc", "conj:and"]
    lemmas = [lemma for s in sentences[first : first + 3] for lemma in s.lemmas]
    for i in range(10):
        sentences[first + i // LENGTH].words[i % LENGTH] = lemmas[i + 1]
    sentences[first + 2].words[0] = "and"
    of_6781 = sentences[6781 // LENGTH]
    of_6781.words[1] = of_6781.lemmas[1] = "and"
    of_6781.heads, of_6781.relations = [0, 1, 2, 2], ["root", "dobj", "cc", "conj:and"]


def _edges(sentence: _Sentence) -> list[str]:
    """Return the lines of a sentence, with a head too many for the conjunct, which the parser propagates."""
    w = sentence.lemmas
    if sentence.kind == "fused":
        fused = f"{w[2]}\u00a0{w[3]}"
        return [
            f"nsubj({w[1]}-2, {w[0]}-1)",
            f"root(ROOT-0, {w[1]}-2)",
            f"dobj({w[1]}-2, {fused}-3)",
            f"conj:and({fused}-3, {w[4]}-4)",
        ]
    lines = [
        f"nsubj({w[1]}-2, {w[0]}-1)",
        f"root(ROOT-0, {w[1]}-2)",
        f"conj:and({w[1]}-2, {w[1]}-2)",
        f"dobj({w[1]}-2, {w[2]}-3)",
        f"cc({w[2]}-3, {w[3]}-4)",
        f"dobj({w[1]}-2, {w[4]}-5)",
        f"conj:and({w[2]}-3, {w[4]}-5)",
    ]
    if sentence.kind == "cycle":
        lines[0] = f"nsubj({w[2]}-3, {w[0]}-1)"
        lines.insert(3, f"acl({w[0]}-1, {w[2]}-3)")
    return lines


def _write_annotation(
    folder: Path,
    language: str,
    sentences: list[_Sentence],
    times: list[tuple[FloatArray, FloatArray]],
) -> None:
    to = folder / f"annotation/{language}"
    to.mkdir(parents=True, exist_ok=True)
    onset_s = np.concatenate([onset for onset, _ in times])
    offset_s = np.concatenate([offset for _, offset in times])
    tags = ("NOUN", "VERB", "NOUN", "CCONJ", "NOUN")
    rows = [",word,lemma,onset,offset,logfreq,pos,section,top_down,bottom_up,left_corner"]
    for i, (onset, offset) in enumerate(zip(onset_s, offset_s, strict=True)):
        of, at = sentences[i // LENGTH], i % LENGTH
        section = i * N_SECTIONS // len(onset_s) + 1
        cells = (i, of.words[at], of.lemmas[at], onset, offset, 5.25 + at, tags[at], section, 1, 2)
        rows.append(",".join(str(cell) for cell in (*cells, 3)))
    name = f"lpp{language}_"
    (to / f"{name}word_information.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    trees = [
        f"(S (NP (NN {a})) (VP (VBD {b}) (NP (NP (NN {c})) (CC {d}) (NP (NN {e})))))"
        for a, b, c, d, e in (sentence.lemmas for sentence in sentences)
    ]
    (to / f"{name}tree.csv").write_text("\n".join(trees) + "\n", encoding="utf-8")
    blocks = ["\n".join(_edges(sentence)) for sentence in sentences]
    text = "\n\n".join(blocks) + "\n\n"
    (to / f"{name}dependency.csv").write_text(text, encoding="utf-8")


class _Kept:
    """The rows that a reader should keep, by section."""

    def __init__(
        self,
        sentences: list[_Sentence],
        times: list[tuple[FloatArray, FloatArray]],
        broken: set[int],
    ) -> None:
        words = [word for sentence in sentences for word in sentence.words]
        lemmas = [lemma for sentence in sentences for lemma in sentence.lemmas]
        size = len(words) // N_SECTIONS
        unnoted = {6765 if row == 6775 else row for row in broken}
        self.n_blank = words.count("")
        kept, noted, onsets, offsets = [], [], [], []
        for section, (onset_s, offset_s) in enumerate(times):
            ends = offset_s.copy()
            rows = range(section * size, (section + 1) * size)
            for row in rows:
                if not words[row]:
                    ends[row - rows[0] - 1] = offset_s[row - rows[0]]
            full = [row for row in rows if words[row] and row not in broken]
            kept.append(tuple(_spelt(words[row]) for row in full))
            at = [row - rows[0] for row in full]
            onsets.append(onset_s[at])
            offsets.append(ends[at])
            noted.append(tuple(lemmas[row] for row in rows if words[row] and row not in unnoted))
        per = size // LENGTH
        parts = [sentences[i * per : (i + 1) * per] for i in range(N_SECTIONS)]
        self.words, self.lemmas = tuple(kept), tuple(noted)
        self.onset_s, self.offset_s = tuple(onsets), tuple(offsets)
        self.heads = tuple(tuple(h for s in part for h in s.heads) for part in parts)
        self.relations = tuple(tuple(r for s in part for r in s.relations) for part in parts)


def _spelt(word: str) -> str:
    return word.lower() if word in ("TRUE", "FALSE") else word
