"""LaTeX as papers are written: spacing, verbatim text, links and names do not hide a sentence."""

from __future__ import annotations

import pytest

from lpact.analyses.lpact.claims import Verdicts
from lpact.claim_audit import check_text

VERDICTS = Verdicts.of_label("control_explained")
OVERCLAIM = "The model is brain-like."


def lines(text: str) -> list[int]:
    return [found.line for found in check_text(text, "latex", VERDICTS)]


@pytest.mark.parametrize(
    "before",
    [
        "\\begin{tabular}{c} a \\\\[2pt] b \\end{tabular}",
        "Set \\verb|$HOME| first.",
        "It costs $5 and more.",
        "See \\url{http://example.org/a%20b} for more.",
    ],
)
def test_what_comes_before_hides_nothing(before):
    text = f"{before}\n\n{OVERCLAIM}\n\n\\[ x = 1 \\] and \\$7, or $7.\n"
    assert lines(text) == [3]


def test_a_formula_is_not_read():
    assert lines("Let \\[ \\mbox{The model is brain-like.} \\] hold.\n") == []
    assert lines(f"% {OVERCLAIM}\nNothing here.\n") == []


def test_an_escaped_underscore_belongs_to_the_word():
    (found,) = check_text("GPT\\_2 is brain-like.\n", "latex", VERDICTS)
    assert found.line == 1


def test_a_long_paragraph_is_split_at_every_sentence():
    text = "The scores were computed, cf. Fig. 2. " * 500 + OVERCLAIM
    assert len(check_text(text, "text", VERDICTS)) == 1
