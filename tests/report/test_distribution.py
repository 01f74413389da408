"""Pictures of distributions: every number is drawn, the scale is right, and the words say the same."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from lpact.analyses.explanation import Distribution
from lpact.report.explanation import MOST_DOTS, description, distribution_svg


def made(**changes: object) -> Distribution:
    given: dict[str, object] = {
        "title": "Score",
        "unit": "Pearson r",
        "observed": 0.5,
        "kind": "draw",
        "values": (0.0, 0.1, 0.2, 0.2, 0.3),
        "n_missing": 1,
        "compared_with": "nuisance",
        "where": "subject 01",
        "bound": 0.0,
        "marks": (("nuisance", 0.25),),
    }
    return Distribution(**{**given, **changes})  # type: ignore[arg-type]


def drawn(shown: Distribution) -> ElementTree.Element:
    return ElementTree.fromstring(str(distribution_svg(shown)))


def of_class(picture: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [part for part in picture.iter() if part.get("class") == name]


def test_few_numbers_are_dots_on_a_linear_scale() -> None:
    picture = drawn(made())
    dots = of_class(picture, "dot")
    assert len(dots) == 5
    places = [float(dot.get("cx", "")) for dot in dots]
    (observed,) = of_class(picture, "observed")
    (bound,) = of_class(picture, "bound")
    (mark,) = of_class(picture, "mark")
    zero, per_unit = places[0], (places[-1] - places[0]) / 0.3
    assert float(bound.get("x1", "")) == pytest.approx(zero, abs=0.1)
    assert float(observed.get("x1", "")) == pytest.approx(zero + 0.5 * per_unit, abs=0.5)
    assert float(mark.get("x1", "")) == pytest.approx(zero + 0.25 * per_unit, abs=0.5)
    # The two equal numbers stand above each other.
    assert places[2] == places[3]
    assert dots[2].get("cy") != dots[3].get("cy")


def test_many_numbers_are_a_histogram_of_all() -> None:
    draws = tuple(i / 1000 for i in range(MOST_DOTS + 500))
    picture = drawn(made(values=draws))
    assert of_class(picture, "dot") == []
    counts = [int((bar[0].text or "").split()[0]) for bar in of_class(picture, "bar")]
    assert sum(counts) == len(draws)


@pytest.mark.parametrize("draws", [(0.2,), (0.0, 0.0, 0.0), (1e-12, 2e-12), (-5e8, 5e8), (3.0,) * 200])
@pytest.mark.parametrize("observed", [None, 0.2])
def test_any_scale_is_drawn_inside_the_picture(draws: tuple[float, ...], observed: float | None) -> None:
    picture = drawn(made(values=draws, observed=observed, bound=None, marks=()))
    text = ElementTree.tostring(picture, encoding="unicode")
    assert "nan" not in text
    width = float(picture.get("viewBox", "").split()[2])
    for part in picture.iter():
        for name in ("x", "x1", "x2", "cx"):
            if part.get(name) is not None:
                assert 0 <= float(part.get(name, "")) <= width


def test_words_say_what_is_drawn() -> None:
    words = description(made(kind="subject-run"))
    assert words == (
        "Score, subject 01; 5 subject-runs from 0 to 0.3, median 0.2; 1 missing; the model's own 0.5; "
        "threshold 0; nuisance 0.25."
    )
    assert description(made(values=(0.1, 0.4), marks=(), bound=None, observed=None, n_missing=0)) == (
        "Score, subject 01; 2 draws from 0.1 to 0.4, median 0.25."
    )
    assert "no number" in description(made(values=()))
    picture = drawn(made())
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == description(made())


def test_names_from_data_stay_text() -> None:
    evil = "<script>alert(1)</script>\"'"
    text = str(distribution_svg(made(title=evil, where=evil, marks=((evil, 0.1),), labels=(evil,) * 5)))
    assert "<script" not in text
    assert ElementTree.fromstring(text).get("aria-label", "").startswith(evil)
    assert not re.search(r'\son\w+="', text)
