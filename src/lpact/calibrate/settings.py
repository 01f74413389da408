"""What a calibration is asked to do: the grid, the studies a cell, and the command that says so."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from lpact.calibrate.cells import EFFORT, Cell, Effort, make_grid, make_star
from lpact.calibrate.truths import TRUTHS
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

    def cells(self) -> list[Cell]:
        """All cells, sorted."""
        make = make_star if self.one_at_a_time else make_grid
        return make(**{axis: getattr(self, axis) for axis in OPTIONS})

    def trials(self) -> range:
        """Numbers of the studies of every cell."""
        return range(self.first_trial, self.first_trial + self.n_trials)

    def command(self, out: str = "FOLDER") -> str:
        """The command that makes this calibration, whatever the defaults will be then."""
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
        plain = asdict(self)
        return {field.name: plain[field.name] for field in fields(self)}
