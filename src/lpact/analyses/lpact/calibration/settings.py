"""Settings of a calibration: the grid, the studies per cell, and the command for them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from lpact.analyses.lpact.calibration.cells import EFFORT, Cell, Effort, cell_config
from lpact.analyses.lpact.calibration.truths import TRUTHS, known_truth
from lpact.errors import ConfigError

OPTIONS = {
    "truths": "--truth",
    "snr": "--snr",
    "n_events": "--events",
    "n_subjects": "--subjects",
    "n_units": "--units",
    "noise_autocorrelation": "--autocorrelation",
}
"""Option of the command line behind each axis of the grid."""
_EXPECTED = {
    "snr": "a finite number, 0 or more",
    "n_events": "a whole number, 1 or more",
    "n_subjects": "a whole number, 1 or more",
    "n_units": "a whole number, 4 or more",
    "noise_autocorrelation": "a number from 0 to below 1",
}


@dataclass(frozen=True)
class Settings:
    """Axes of the grid, and the studies ``first_trial`` … ``first_trial + n_trials − 1`` of every cell.

    With ``one_at_a_time`` the first value of every axis is the base, from which one axis at a time departs; otherwise
    every combination is a cell.
    """

    truths: tuple[str, ...] = tuple(TRUTHS)
    snr: tuple[float, ...] = (0.5, 1.0, 1.5)
    n_events: tuple[int, ...] = (340,)
    n_subjects: tuple[int, ...] = (4,)
    n_units: tuple[int, ...] = (12,)
    noise_autocorrelation: tuple[float, ...] = (0.95,)
    n_trials: int = 20
    first_trial: int = 0
    one_at_a_time: bool = False
    effort: Effort = EFFORT

    def __post_init__(self) -> None:
        for axis, option in OPTIONS.items():
            values = getattr(self, axis)
            if not values or len(set(values)) != len(values):
                raise ConfigError(
                    "an axis of the calibration grid is empty or lists a value twice",
                    where=f"option '{option}'",
                    got=", ".join(map(str, values)) or "nothing",
                    expected="one value or more, each once",
                    remedy="leave the repeated value out",
                )
        if self.n_trials < 1:
            raise _not_valid("--trials", self.n_trials, "a whole number, 1 or more")
        self._check_values()
        for cell in self.cells():
            cell_config(cell, self.first_trial, self.effort)

    def _check_values(self) -> None:
        """Try every value of an axis with all others at their defaults, so that the error can name the option."""
        base = Cell(self.truths[0], known_truth(self.truths[0]).models[0])
        cell_config(base, self.first_trial, self.effort)
        for axis, expected in _EXPECTED.items():
            for value in getattr(self, axis):
                if axis == "n_events" and value < 1:
                    raise _not_valid(OPTIONS[axis], value, expected)
                try:
                    cell_config(replace(base, **{axis: value}), self.first_trial, self.effort)
                except ConfigError:
                    raise _not_valid(OPTIONS[axis], value, expected) from None

    def cells(self) -> list[Cell]:
        """All cells, sorted. Where nothing is planted, the signal-to-noise ratio is 0."""
        axes = {axis: getattr(self, axis) for axis in OPTIONS if axis != "truths"}
        grids = [axes]
        if self.one_at_a_time:
            base = {axis: values[:1] for axis, values in axes.items()}
            grids = [{**base, axis: values} for axis, values in axes.items()]
        cells = set()
        for name, grid in product(self.truths, grids):
            truth = known_truth(name)
            own = grid if truth.planted else {**grid, "snr": (0.0,)}
            cells |= {Cell(name, *values) for values in product(truth.models, *own.values())}
        return sorted(cells)

    def trials(self) -> range:
        """Numbers of the studies of every cell."""
        return range(self.first_trial, self.first_trial + self.n_trials)

    def command(self, out: str = "FOLDER") -> str:
        """The command for this grid, with all axes spelled out.

        ``effort`` is no option of the command: the numbers are the same only if it is the default. `as_json` holds all
        settings.
        """
        parts = ["lpact calibrate", f"--out {out}", f"--trials {self.n_trials}"]
        if self.first_trial:
            parts.append(f"--seed {self.first_trial}")
        if self.one_at_a_time:
            parts.append("--one-at-a-time")
        for axis, option in OPTIONS.items():
            if axis != "truths" or self.truths != tuple(TRUTHS):
                parts += [f"{option} {value}" for value in getattr(self, axis)]
        return " ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Plain values of all settings."""
        return asdict(self)


def _not_valid(option: str, value: object, expected: str) -> ConfigError:
    return ConfigError(
        "a value of the calibration grid is not valid",
        where=f"option '{option}'",
        got=value,
        expected=expected,
        remedy="give another value",
    )
