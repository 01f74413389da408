"""Power: studies of one design make a curve, others are listed, and designs are never pooled."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from figure_checks import EVIL, SVG, checked_svg, marks, material, texts, width_of
from rate_rows import rate, rates

from lpact.analyses.lpact.calibration.output import load_reference
from lpact.analyses.lpact.figures.rates import (
    POWER_HEIGHT,
    POWER_WIDTH,
    power,
    power_of,
    power_rows,
)
from lpact.analyses.lpact.tables.calibration import RATES
from lpact.report.figure import Figure, Missing
from lpact.report.render import to_svg
from lpact.stats import wilson_interval

IMAGES = Path(__file__).parents[4] / "docs" / "images"
CURVE = [
    rate(k, 10, snr=snr, profile=profile)
    for profile, counts in (("paper", (1, 5, 10)), ("calibrated", (0, 4, 9)))
    for snr, k in zip((0.5, 1.0, 2.0), counts, strict=True)
]
HAND = rates(
    *CURVE,
    rate(3, 10, snr=2.0, cell="d"),
    rate(7, 12, snr=2.0, n_units=12),
    rate(8, 12, snr=2.0, n_units=12, profile="calibrated"),
    rate(6, 12, snr=2.0, n_events=100, n_subjects=9),
    rate(2, 10, gate="relational", role="false_pass"),
    rate(4, 9, gate="integrated", truth=EVIL, snr=0.0),
)


@pytest.fixture(scope="module")
def root() -> ElementTree.Element:
    return checked_svg(power_of(HAND))


def test_cells_of_one_design_and_signal_are_taken_together():
    rows = power_rows(HAND).filter(truth="planted")
    (top,) = rows.filter(snr=2.0, gate_profile="paper").to_dicts()
    assert (top["n_passes"], top["n_studies"], top["rate"]) == (13, 20, 0.65)
    assert (top["low"], top["high"]) == wilson_interval(13, 20)
    assert set(rows["n_units"]) == {20}  # other designs are never pooled
    assert rows.height == 6
    assert "relational" not in rows["gate"]
    made = power_of(HAND)
    assert isinstance(made, Figure)
    assert f"{RATES.name} has 2 more designs" in made.caption


def test_points_stand_at_their_signal_and_rate(root):
    found = []
    for own in marks(root):
        at = re.fullmatch(r"translate\(([-\d.]+),([-\d.]+)\)", own.element.get("transform", ""))
        if (
            own.text.startswith("truth planted")
            and "300 words" in own.text
            and "20 units" in own.text
            and own.element.tag == f"{SVG}path"
            and at
        ):
            signal = float(re.findall(r"signal ([\d.]+)", own.text)[0])
            found.append((signal, own.profile, own.value, float(at[1]), float(at[2])))
    assert len(found) == 6
    for signal, profile, value, x, y in found:
        assert value is not None
        beside = -4.5 if profile == "paper" else 4.5
        assert x == pytest.approx(signal / 2.2 * POWER_WIDTH + beside, abs=0.1)
        assert y == pytest.approx(POWER_HEIGHT * (1 - value), abs=0.1)


def test_every_signal_has_its_label(root):
    assert {"0.5", "1", "2"} <= set(texts(root))
    assert "300 words, 4 subjects, 20 units; n = 10 to 20 studies per point" in texts(root)
    assert "signal-to-noise ratio" in texts(root)


def test_words_hold_the_power_of_the_last_gate():
    made = power_of(rates(*CURVE, *(row | {"gate": "integrated", "n_passes": 2} for row in CURVE[:1])))
    assert isinstance(made, Figure)
    assert "all gates under planted, point rules: 2 of 10 at signal 0.5" in made.summary


def test_names_from_data_stay_text(root):
    assert not list(root.iter(f"{SVG}script"))
    assert any(EVIL.split("\n")[0] in own.text for own in marks(root))


def test_the_shipped_curves_are_drawn_and_in_the_documentation():
    reference = load_reference().rates
    made = power(material({}, {RATES.name: reference}))
    assert isinstance(made, Figure)
    root = ElementTree.fromstring(to_svg(made))
    rows = power_rows(reference)
    assert len({mark.text for mark in marks(root)}) == rows.height
    assert {mark.value for mark in marks(root)} == set(rows["rate"])
    assert width_of(root) < 1000
    assert "0.25" in texts(root)
    assert "0.5" in texts(root)
    shown = ElementTree.parse(IMAGES / "power.svg").getroot()
    assert {mark.text for mark in marks(shown)} == {mark.text for mark in marks(root)}


@pytest.mark.parametrize("given", [material({}), material({}, {RATES.name: HAND.filter(role="false_pass")})])
def test_without_power_there_is_a_reason(given):
    made = power(given)
    assert isinstance(made, Missing)
    assert made.reason
