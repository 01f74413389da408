"""What a text may say of models whose alignment patterns were compared with those of regions."""

from __future__ import annotations

import polars as pl
import pytest

from lpact.analyses.patterns.claims import Verdicts
from lpact.analyses.patterns.config import ALIGNED, LABELS, PATTERN_ONLY
from lpact.claim_audit import Statement, check_text

SENTENCES = (
    "The model reproduces the alignment pattern of V1.",
    "By RSA, the network matches the region's cross-region pattern.",
    "The alignment pattern of the model cannot be told from that of V4 by this measure on these data.",
    "The cross-region patterns of the network are as similar to those of PIT as other brains' are.",
    "The model relates to all regions as the visual cortex does.",
    "The model captures the full alignment pattern of the region.",
)
SAYS_NOTHING = (
    "The model does not reproduce the alignment pattern of V1.",
    "No model reproduced the alignment patterns of dorsal regions.",
    "We ask whether models reproduce alignment patterns.",
    "A larger model might reproduce the alignment pattern of V1.",
    "Alignment patterns were correlated over regions.",
    "Brains share alignment patterns.",
)


def verdicts(label: str) -> Verdicts:
    row = {"dataset": "films", "measure": "rsa", "region": "V1", "model": "net"}
    return Verdicts.of_table(pl.DataFrame([row | {"label": label, "reason": f"'net' is {label}."}]))


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("text", SENTENCES)
def test_a_pattern_is_claimed_with_its_own_labels_only(label: str, text: str) -> None:
    found = [own.statement for own in check_text(text, "text", verdicts(label))]
    assert found == ([] if label in (ALIGNED, PATTERN_ONLY) else [Statement.PATTERN])


@pytest.mark.parametrize("text", SAYS_NOTHING)
def test_sentences_that_claim_no_pattern_pass(text: str) -> None:
    assert check_text(text, "text", verdicts("neither")) == []


def test_an_aligned_model_is_still_not_a_brain() -> None:
    text = "The model is brain-like, since it reproduces the alignment pattern of V1."
    (found,) = check_text(text, "text", verdicts(ALIGNED))
    assert found.statement.never
