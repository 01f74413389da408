"""Whether a run followed its preregistration, from its table: a sentence, counts, and every deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.tables import AFTER_THE_FACT, BEFORE_RESULTS, BEFORE_RUN, DIGEST


@dataclass(frozen=True)
class Followed:
    """How far a run followed its preregistration; ``groups`` holds followed and registered items of each group."""

    digest: str
    edited: bool
    after_the_fact: bool
    before_run: bool
    n_items: int
    n_followed: int
    groups: tuple[tuple[str, int, int], ...]
    deviations: list[dict[str, Any]]

    @property
    def sentence(self) -> str:
        """The statement that goes with every mention of the preregistration."""
        made = "Registered after results existed" if self.after_the_fact else "Preregistered"
        text = f"{made} (digest {self.digest}): {self.n_followed} of {self.n_items} items were followed"
        if not self.before_run:
            text += "; that it was made before the run is not shown"
        if self.edited:
            text += "; the registration was edited after it was made"
        return f"{text}."


def followed(items: pl.DataFrame) -> Followed:
    """Summarise the table `PREREGISTRATION_ITEMS`."""
    own = {
        row["item"]: row for row in items.filter(item_group="registration").iter_rows(named=True)
    }
    counts = items.group_by("item_group").agg(pl.col("followed").sum(), pl.len()).sort("item_group")
    return Followed(
        digest=own[DIGEST]["registered"],
        edited=not own[DIGEST]["followed"],
        after_the_fact=own[BEFORE_RESULTS]["found"] == AFTER_THE_FACT,
        before_run=own[BEFORE_RUN]["followed"],
        n_items=items.height,
        n_followed=int(items["followed"].sum()),
        groups=tuple(counts.iter_rows()),
        deviations=items.filter(~pl.col("followed")).sort("item_group", "item").to_dicts(),
    )
