"""Draw the pictures of the shipped calibration for the documentation: ``python tools/draw_calibration.py``."""

from __future__ import annotations

from pathlib import Path

from lpact.analyses.lpact.calibration.output import load_reference
from lpact.analyses.lpact.figures.rates import false_passes_of, power_of
from lpact.report.render import picture

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Write both pictures."""
    reference = load_reference()
    made = {
        "false-passes.svg": false_passes_of(reference.truth_rates),
        "power.svg": power_of(reference.rates),
    }
    for name, figure in made.items():
        (IMAGES / name).write_text(f"{picture(figure)}\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
