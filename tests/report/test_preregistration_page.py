"""The page says whether a preregistration was followed, and names every deviation as text."""

from __future__ import annotations

import polars as pl

from lpact.report.page import followed, page_html
from lpact.store import frame
from lpact.study import Run
from lpact.tables import (
    AFTER_THE_FACT,
    BEFORE_RESULTS,
    BEFORE_RUN,
    DIGEST,
    PREREGISTRATION_ITEMS,
)

NOT_REGISTERED = "The run was made without a preregistration."
EVIL = "</td><script>alert(1)</script>"


def row(ok: bool, group: str, item: str, found: str = "x", registered: str = "x") -> dict[str, object]:
    names = PREREGISTRATION_ITEMS.column_names
    return dict(zip(names, (ok, group, item, registered, found, ""), strict=True))


def items(*more: dict[str, object], results: str = "before") -> pl.DataFrame:
    own = [
        row(True, "registration", DIGEST, "abc", "abc"),
        row(results == "before", "registration", BEFORE_RESULTS, results, "before"),
        row(True, "registration", BEFORE_RUN),
    ]
    return frame(PREREGISTRATION_ITEMS, [*own, *more])


def page(run: Run, registration: pl.DataFrame | None) -> str:
    return page_html(run.manifest, (), registration, "", "")


def test_a_run_without_one_says_so(small_run: Run) -> None:
    assert NOT_REGISTERED in page(small_run, None)


def test_deviations_are_named_as_text(small_run: Run) -> None:
    found = items(row(False, "gates", EVIL, "0.5", "0.9"), row(True, "seed", "seed"))
    html = page(small_run, found)
    assert NOT_REGISTERED not in html
    assert "Preregistered (digest abc): 4 of 5 items were followed." in html
    assert "gates 0 of 1, registration 3 of 3, seed 1 of 1." in html
    assert EVIL not in html
    assert "gates: &lt;/td&gt;&lt;script&gt;alert(1)" in html


def test_nothing_that_deviates_is_said(small_run: Run) -> None:
    html = page(small_run, items())
    assert "3 of 3 items were followed." in html
    assert "Nothing deviates from it." in html
    assert "Deviations from the preregistration" not in html


def test_the_sentence_says_what_the_registration_is_worth() -> None:
    assert followed(items()).sentence.startswith("Preregistered (")
    late = followed(items(results=AFTER_THE_FACT))
    assert late.sentence.startswith("Registered after results existed (digest abc): 2 of 3")
    without = items().with_columns(followed=(pl.col("item") != BEFORE_RUN) & (pl.col("item") != DIGEST))
    assert followed(without).sentence.endswith(
        "that it was made before the run is not shown; the registration was edited after it was made."
    )
