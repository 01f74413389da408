"""A key above a picture: classes of colour with their bounds, and symbols with their meaning, at places in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lpact.report.figure import Spec
from lpact.report.theme import colour, colours

_BOX = (34, 12)
_NARROW, _WIDE = " .,:;'|!()[]fijlrtI-", "mwMW%@"


class Key:
    """Collects what a key holds, from left to right, in lines of ``width`` pixels."""

    def __init__(self, width: float = 800) -> None:
        self._width = width
        self._x = self._used = 0.0
        self._y = 8.0
        self._below = 8.0
        self._layers: list[Spec] = []

    def classes(self, title: str, roles: Sequence[str], bounds: Sequence[str]) -> Key:
        """Boxes in the colours of classes, with their bounds between them; as many words as boxes name the classes."""
        self._room(_length(title) + 8 + _BOX[0] * len(roles))
        self._text(title, self._x)
        left = self._x + _length(title) + 8
        for i, paint in enumerate(colours(tuple(roles))):
            self._rect(left + i * _BOX[0], _BOX[0], paint)
        shift = 0.5 if len(bounds) == len(roles) else 1.0
        for i, bound in enumerate(bounds):
            at = left + (i + shift) * _BOX[0]
            self._text(bound, at, align="center", y=self._y + 14, size=10)
        self._used = max(self._used, left + _BOX[0] * len(roles))
        self._x, self._below = left + _BOX[0] * len(roles) + 24, 18.0
        return self

    def words(self, text: str) -> Key:
        """Words alone."""
        self._room(_length(text))
        return self._labelled(text, 0)

    def box(self, label: str, role: str) -> Key:
        """One box with its meaning."""
        self._room(24 + _length(label))
        self._rect(self._x, 16, colour(role))
        return self._labelled(label, 22)

    def symbol(self, label: str, **look: Any) -> Key:
        """A symbol (properties of a point or a rule) with its meaning."""
        self._room(24 + _length(label))
        own = {"type": "point", "x": self._x + 7, "y": self._y, "opacity": 1, **look}
        self._mark(own, {})
        return self._labelled(label, 18)

    def line(self, label: str, *, dash: Sequence[float] = (), thick: float = 2, role: str) -> Key:
        """A line with its meaning."""
        self._room(30 + _length(label))
        own: Spec = {
            "type": "rule",
            "strokeWidth": thick,
            "color": colour(role),
        }
        if dash:
            own["strokeDash"] = list(dash)
        ends = {"x": self._x, "x2": self._x + 22, "y": self._y}
        self._mark(own, {name: {"value": at} for name, at in ends.items()})
        return self._labelled(label, 28)

    def spec(self) -> Spec:
        """The key as a picture of its own."""
        return {"width": self._used, "height": self._y + self._below, "layer": self._layers}

    def _room(self, needed: float) -> None:
        """Go to the next line where this one has no room."""
        if self._x and self._x + needed > self._width:
            self._x, self._y, self._below = 0.0, self._y + self._below + 12, 8.0

    def _labelled(self, label: str, at: float) -> Key:
        self._text(label, self._x + at)
        self._used = max(self._used, self._x + at + _length(label))
        self._x += at + _length(label) + 20
        return self

    def _text(
        self, words: str, x: float, *, align: str = "left", y: float | None = None, size: int = 11
    ) -> None:
        self._mark(
            {
                "type": "text",
                "x": x,
                "y": self._y if y is None else y,
                "align": align,
                "baseline": "middle",
                "fontSize": size,
            },
            {"text": {"value": words}},
        )

    def _rect(self, x: float, width: float, paint: str) -> None:
        y = self._y - _BOX[1] / 2
        place = {"x": x, "x2": x + width, "y": y, "y2": y + _BOX[1]}
        self._mark({"type": "rect", "fill": paint, **place}, {})

    def _mark(self, own: Spec, encoding: Spec) -> None:
        self._layers.append(
            {"data": {"values": [{}]}, "mark": {**own, "aria": False}, "encoding": encoding}
        )


def _length(words: str) -> float:
    """About how wide words of the base size are, in pixels."""
    return sum(3.3 if c in _NARROW else 9.2 if c in _WIDE else 6.3 for c in words)
