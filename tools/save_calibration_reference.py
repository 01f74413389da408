"""Make the shipped calibration from finished runs: ``python tools/save_calibration_reference.py RUN...``."""

from __future__ import annotations

import sys
from pathlib import Path

from lpact.analyses.lpact.calibration.output import FOLDER, save_reference

SHIPPED = Path(__file__).parents[1] / "src/lpact/analyses/lpact/calibration" / FOLDER

if __name__ == "__main__":
    sys.stdout.write(f"{save_reference([Path(run) for run in sys.argv[1:]], SHIPPED)}\n")
