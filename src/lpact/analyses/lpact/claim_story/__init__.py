"""Why a claim got its verdict: every gate, every number, the draws it was held against, and what would change it."""

from __future__ import annotations

from lpact.analyses.lpact.claim_story.model import (
    Claim,
    ClaimStory,
    CriterionStory,
    Distribution,
    GateStory,
    Rival,
)
from lpact.analyses.lpact.claim_story.rows import Rows, rows_of, rows_of_run
from lpact.analyses.lpact.claim_story.story import claim_stories, claim_story

__all__ = [
    "Claim",
    "ClaimStory",
    "CriterionStory",
    "Distribution",
    "GateStory",
    "Rival",
    "Rows",
    "claim_stories",
    "claim_story",
    "rows_of",
    "rows_of_run",
]
