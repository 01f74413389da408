"""Write the figures of a run as PNG, to look at: tools/show_figures.py RUN OUT [NAME...]."""

from __future__ import annotations

import sys
from pathlib import Path

import lpact
from lpact.analyses.base import Material
from lpact.analyses.lpact.analysis import LPact
from lpact.analyses.lpact.figures import maker
from lpact.report.figure import Figure
from lpact.report.render import to_png, to_svg
from lpact.report.theme import unknown_colours


def main(run_folder: str, out_folder: str, *wanted: str) -> None:
    from lpact.analyses.lpact.calibration.output import load_reference
    from lpact.analyses.lpact.cli.robustness import compute
    from lpact.analyses.lpact.tables.calibration import RATES, TRUTH_RATES

    run, out = lpact.open_run(run_folder), Path(out_folder)
    out.mkdir(parents=True, exist_ok=True)
    reference = load_reference()
    more = {RATES.name: reference.rates, TRUTH_RATES.name: reference.truth_rates}
    names = wanted or tuple(name for section in LPact.figures.values() for name in section)
    if {"conventional", "uncertainty", "sensitivity"} & set(names):
        more |= compute(run)
    material = Material({table.name: run.table(table.name) for table in run.tables()}, run.config, more)
    for name in names:
        made = maker(name)(material)
        if not isinstance(made, Figure):
            print(f"{name}: not drawn: {made.reason}")
            continue
        svg = to_svg(made)
        (out / f"{name}.png").write_bytes(to_png(svg))
        print(f"{name}: {len(svg):,} bytes; colours outside the palette: {unknown_colours(svg) or 'none'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
