"""Positive controls by dataset: every result has its symbol, and a frame where it is not as expected."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest
from figure_checks import checked_svg, marks, material, texts, width_of

from lpact.analyses.base import Material
from lpact.analyses.lpact.assays.control_results import control_results
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.assay_sensitivity import make, rows_of
from lpact.analyses.lpact.tables.assay import IMPLANT, LOW_LEVEL_SUMMARY
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run


def sham(gate_pass: bool) -> dict:
    return {
        "arm": "sham",
        "gate_profile": "paper",
        "quantity": "integrated",
        "gate_pass": gate_pass,
        "interpretation": "nothing is planted.",
        "reason": "ok",
    }


@pytest.fixture(scope="module")
def of_run(small_run: Run) -> Material:
    tables = {table.name: small_run.table(table.name) for table in small_run.tables()}
    return Material(tables, small_run.config)


def kinds(root) -> Counter:
    """Shapes of the marks that stand for results."""
    found = Counter()
    for own in marks(root):
        d = own.element.get("d", "")
        found["disc" if "A" in d else "cross" if d.count("M") == 2 else "dash"] += 1
    return found


def frames(root) -> int:
    """Squares round a symbol, less the one of the legend."""
    squares = [own for own in root.iter() if "M-7.5,-7.5h15" in own.get("d", "")]
    return len(squares) - 1


def test_every_finding_of_a_run_has_its_symbol(of_run: Material):
    found = control_results(of_run.tables, LPactConfig.of(of_run.config).gates)
    root = checked_svg(make(of_run))
    assert kinds(root) == {
        "disc": sum(own.passes is True for own in found),
        "cross": sum(own.passes is False for own in found),
        "dash": sum(own.passes is None for own in found),
    }
    wrong = sum(own.passes is not None and own.passes != own.expected for own in found)
    assert frames(root) == wrong
    assert wrong > 0
    shown = [own.text for own in marks(root)]
    for own in found:
        assert sum(own.what in text and own.detail in text for text in shown) >= 1
    assert {own.dataset for own in marks(root)} == {"planted", "empty", None}
    assert width_of(root) <= 1000


def test_an_implant_that_could_not_be_judged_is_not_available():
    unjudged = sham(gate_pass=False) | {"reason": "nothing_measured"}
    own = material({IMPLANT.name: pl.DataFrame([unjudged, sham(gate_pass=False) | {"arm": "implant"}])})
    first, second = control_results(own.tables, LPactConfig.of(own.config).gates)
    assert (first.passes, first.result) == (None, "not available")
    assert first.detail != "nothing is planted."
    assert (second.passes, second.detail) == (False, "nothing is planted.")
    assert kinds(checked_svg(make(own))) == {"cross": 1, "dash": 1}


def test_reasons_stand_where_nothing_could_be_computed(of_run: Material):
    rows = rows_of(of_run)
    absent = rows.filter(pl.col("passes").is_null())
    assert absent.height > 0
    assert absent["number"].to_list() == [""] * absent.height
    written = set(texts(checked_svg(make(of_run))))
    assert {reason.replace("_", " ") for reason in absent["reason"]} <= written


@pytest.mark.parametrize("passes", [True, False])
def test_a_sham_that_passes_is_framed_and_one_that_does_not_is_fine(passes: bool):
    tables = material({IMPLANT.name: pl.DataFrame([sham(passes)])})
    root = checked_svg(make(tables))
    assert kinds(root) == ({"disc": 1} if passes else {"cross": 1})
    assert frames(root) == int(passes)
    (own,) = marks(root)
    assert "it should not pass" in own.text
    assert "nothing is planted." in texts(root)


def test_numbers_are_those_of_the_tables(of_run: Material):
    """Counts and medians beside the symbols, read from the tables another way."""
    rows = rows_of(of_run)
    known = rows.filter(pl.col("passes").is_not_null() & (pl.col("dataset") != "(simulated)"))
    assert known.height
    for row in known.iter_rows(named=True):
        shown = re.search(r"\d+ of \d+|median -?[\d.]+", row["detail"])
        assert shown is not None
        if shown[0].startswith("median"):
            assert row["number"].startswith("median ")
            assert float(row["number"].split()[1]) == pytest.approx(float(shown[0].split()[1]), abs=6e-4)
        else:
            assert row["number"] == shown[0]
    absent = rows.filter(pl.col("passes").is_null())
    assert absent.height
    assert set(absent["number"]) == {""}


def test_names_of_many_datasets_lose_their_middle(of_run: Material):
    many = {
        name: pl.concat([table.with_columns(dataset=pl.lit(f"a_long_name_{i:02}")) for i in range(11)])
        for name, table in of_run.tables.items()
        if name == LOW_LEVEL_SUMMARY.name
    }
    made = make(Material(many, of_run.config))
    assert isinstance(made, Figure)
    root = checked_svg(made)
    assert width_of(root) <= 1000
    assert {"a_lo…e_00", "a_lo…e_10"} <= set(texts(root))


def test_without_positive_controls_it_says_so():
    made = make(material({}, assay={"enabled": False}))
    assert isinstance(made, Missing)
    assert "enabled = false" in made.reason
