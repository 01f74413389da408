"""Labelled sentences: overclaims are found, and nothing else is."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lpact.analyses.lpact.claims import Verdicts
from lpact.claim_audit import check_text

FOLDER = Path(__file__).parent
HELD_OUT = "claim_sentences_held_out.toml"
USED = (
    "claim_sentences_building.toml",
    "claim_sentences_second.toml",
    "claim_sentences_more.toml",
)
CORPORA = (*USED, HELD_OUT)
KINDS = {"supported", "overclaiming", "hedged", "negated", "quoted"}
REQUIRED = 0.9


@dataclass
class Score:
    """How the sentences of a corpus were judged."""

    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        flagged = sum(n for (_, found), n in self.counts.items() if found)
        return self.counts["overclaiming", True] / flagged

    @property
    def recall(self) -> float:
        overclaims = self.counts["overclaiming", True] + self.counts["overclaiming", False]
        return self.counts["overclaiming", True] / overclaims

    def told(self) -> str:
        rows = [f"{kind:14}{'flagged' if f else 'passed':9}{n}" for (kind, f), n in sorted(self.counts.items())]
        return "\n".join([f"precision {self.precision:.3f}, recall {self.recall:.3f}", *rows, *self.wrong])


def sentences(name: str) -> list[dict[str, str]]:
    path = FOLDER / name
    assert path.is_file(), f"{name} is missing"
    with path.open("rb") as file:
        found: list[dict[str, str]] = tomllib.load(file)["sentence"]
    return found


def judge(name: str) -> Score:
    score = Score()
    for one in sentences(name):
        found = check_text(one["text"], one["format"], Verdicts.of_label(one["evidence"]))  # type: ignore[arg-type]
        score.counts[one["kind"], bool(found)] += 1
        if bool(found) != (one["kind"] == "overclaiming"):
            told = ", ".join(f"{o.statement}: {o.words}" for o in found) or "not flagged"
            score.wrong.append(f"[{one['kind']}, {one['evidence']}] {one['text']} ({told})")
    return score


@pytest.mark.parametrize("name", CORPORA)
def test_precision_and_recall(name: str) -> None:
    score = judge(name)
    assert score.precision >= REQUIRED, score.told()
    assert score.recall >= REQUIRED, score.told()


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_has_every_kind(name: str) -> None:
    counts = Counter(one["kind"] for one in sentences(name))
    assert set(counts) == KINDS
    assert min(counts.values()) >= 10


def test_the_held_out_corpus_is_large_and_shares_no_sentence() -> None:
    held_out = {one["text"] for one in sentences(HELD_OUT)}
    used = {one["text"] for name in USED for one in sentences(name)}
    assert len(held_out) >= 50
    assert len(used) >= 100
    assert not used & held_out
