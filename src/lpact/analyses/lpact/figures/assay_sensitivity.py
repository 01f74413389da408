"""Could the assay have said yes? Positive controls by dataset: which pass, which do not, which are not available."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.assays.lines import SIMULATED, Finding, findings
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.gates.wording import words
from lpact.report import panels
from lpact.report.figure import MARK, Drawing, figure, mark
from lpact.report.panels import CROSS, DASH, Look
from lpact.report.wording import counted, letters_in

_LEFT, _WIDTH, _ROW = 236, 960, 20
_WIDEST, _NARROWEST, _ROOM = 176, 26, 84
"""Pixels of a dataset's column: the most, the fewest, and what numbers beside the symbols need."""
_LOOKS = {
    (True, True): Look("circle", "pass", "pass", 100),
    (True, False): Look("circle", "fail", "fail", 100),
    (False, True): Look(CROSS, None, "pass", 100),
    (False, False): Look(CROSS, None, "fail", 100),
    (None, None): Look(DASH, None, "line", 100),
}
"""Symbols by whether a control passes and whether that is as expected."""
_FRAME = Look("square", None, "fail", 225)


def rows_of(material: Material) -> pl.DataFrame:
    """One row per finding, in the order of the controls; ``fits``: whether it is as expected (null: not available)."""
    found = findings(material.tables, LPactConfig.of(material.config).gates)
    whats: dict[str, set[str]] = {}
    for own in found:
        whats.setdefault(own.control, set()).add(own.what)
    return pl.DataFrame(
        [
            {
                "control": own.control,
                "what": own.what,
                "group": _line(own, whats)[0],
                "line": _line(own, whats)[1],
                "dataset": own.dataset,
                "passes": own.passes,
                "expected": own.expected,
                "fits": None if own.passes is None else own.passes == own.expected,
                "result": own.result,
                "detail": own.detail,
                "reason": own.reason,
                "number": own.number,
            }
            for own in found
        ],
        schema_overrides={"passes": pl.Boolean, "fits": pl.Boolean},
        infer_schema_length=None,
    )


def _line(finding: Finding, whats: dict[str, set[str]]) -> tuple[str, str]:
    """Heading and name of a finding's line; controls with one line each share the heading before their comma."""
    heading, _, rest = finding.control.partition(", ")
    if len(whats[finding.control]) == 1 and rest:
        return heading, rest
    profile = finding.what.rpartition("gate profile ")[2]
    if profile in PROFILES:
        return finding.control, finding.what.replace(f"gate profile {profile}", PROFILES[profile])
    return finding.control, finding.what


@figure("assay_sensitivity", "Assay sensitivity: could the assay have said yes?")
def make(material: Material) -> Drawing | str:
    """Draw the matrix of positive controls."""
    rows = rows_of(material)
    if rows.is_empty():
        enabled = LPactConfig.of(material.config).assay.enabled
        return f"the run has no positive controls{'' if enabled else ' ([assay] enabled = false)'}"
    datasets = sorted(set(rows["dataset"]) - {SIMULATED})
    step = max(_NARROWEST, min(_WIDEST, (_WIDTH - _LEFT) / max(len(datasets), 1)))
    key = panels.key(
        ("passes", _LOOKS[True, True]),
        ("does not pass", _LOOKS[False, True]),
        ("not available", _LOOKS[None, None]),
        ("framed: not as expected", _FRAME),
    )
    chart = panels.stacked(key, _matrix(rows, datasets, step))
    return chart, _caption(rows, datasets, step), _summary(rows)


def _numbered(datasets: list[str], step: float) -> bool:
    """Whether names are too long for their columns, which then have numbers."""
    return max((len(name) for name in datasets), default=0) > letters_in(step - 8)


def _matrix(rows: pl.DataFrame, datasets: list[str], step: float) -> alt.LayerChart:
    """One lane per finding below the heading of its control; one column per dataset."""
    columns = {name: _LEFT + i * step for i, name in enumerate(datasets)} | {SIMULATED: _LEFT}
    width = max(_LEFT + len(datasets) * step, 560)
    lines = rows.select("group", "line").unique(maintain_order=True)
    lanes, heads = [], []
    for own in lines.partition_by("group", maintain_order=True):
        heads.append({"lane": own["group"][0], "text": own["group"][0]})
        lanes += [own["group"][0], *(f"{own['group'][0]}: {line}" for line in own["line"])]
    y = {**panels.lanes("lane", lanes), "axis": None}
    named = lines.select(lane=pl.format("{}: {}", "group", "line"), text="line")
    cells = pl.DataFrame([_cell(row, columns) for row in rows.iter_rows(named=True)])
    looks = pl.DataFrame(
        [_LOOKS[row["passes"], row["fits"]].columns() for row in rows.iter_rows(named=True)]
    )
    wrong = cells.filter(~rows["fits"].fill_null(value=True)).drop(MARK)
    x, beside = panels.pixels("x"), panels.pixels("beside")
    layers = [
        panels.layer(heads, "rect", {"fill": "band", "height": _ROW - 2}, y=y),
        panels.text(heads, "text", {"value": 4}, y, fontWeight="bold", limit=_LEFT - 8),
        panels.text(named, "text", {"value": 14}, y, limit=_LEFT - 22),
        panels.text(_column_names(rows, columns, step), "text", x, y, ink="muted"),
        panels.points(cells.hstack(looks), x, y, thick=2),
        panels.symbols(wrong, _FRAME, x, y, thick=1),
    ]
    words_beside = cells.drop(MARK)
    for kind, ink in (("alone", "ink"), ("known", "ink"), ("absent", "muted")):
        limit = width - _LEFT - 30 if kind == "alone" else step - 26
        if kind == "alone" or step >= _ROOM:
            own = words_beside.filter(kind=kind)
            layers.append(panels.text(own, "text", beside, y, size=10, ink=ink, limit=limit))
    return panels.overlay(*layers, width=width, height={"step": _ROW})


def _column_names(
    rows: pl.DataFrame, columns: dict[str, float], step: float
) -> list[dict[str, Any]]:
    """Datasets beside the heading of every control, so that no column is far from its name."""
    datasets = [name for name in columns if name != SIMULATED]
    numbered = _numbered(datasets, step)
    made = []
    for own in rows.partition_by("group", maintain_order=True):
        lane = own["group"][0]
        if set(own["dataset"]) == {SIMULATED}:
            made.append({"lane": lane, "x": _LEFT + 6.0, "text": "simulated study"})
            continue
        made += [
            {"lane": lane, "x": columns[name] + 6, "text": str(i) if numbered else name}
            for i, name in enumerate(datasets, 1)
        ]
    return made


def _cell(row: dict[str, Any], columns: dict[str, float]) -> dict[str, Any]:
    """Place, words and tooltip of a finding; the simulated study has its line to itself, and room for more words."""
    simulated, known = row["dataset"] == SIMULATED, row["passes"] is not None
    wanted = "" if row["expected"] else "; it should not pass"
    text = row["detail"] if simulated else row["number"] if known else words(row["reason"])
    return {
        "lane": f"{row['group']}: {row['line']}",
        "x": columns[row["dataset"]] + 12,
        "beside": columns[row["dataset"]] + 24,
        "kind": "alone" if simulated else "known" if known else "absent",
        "text": str(text),
        MARK: mark(
            f"{row['control']}, {row['what']}; {row['dataset']}: {row['result']}{wanted}. {row['detail']}",
            dataset=None if simulated else row["dataset"],
            value=float(row["passes"]) if known else None,
        ),
    }


def _caption(rows: pl.DataFrame, datasets: list[str], step: float) -> str:
    known = rows.filter(pl.col("fits").is_not_null())
    columns = "; ".join(f"{i + 1} {name}" for i, name in enumerate(datasets))
    listed = f" Columns: {columns}." if _numbered(datasets, step) else ""
    numbers = (
        "Numbers: recordings, rows, summaries or measures that pass, or the median reliability; "
        if step >= _ROOM
        else "Numbers and reasons show on hovering, and in the tables of positive controls; "
    )
    return (
        f"Positive controls: {counted(rows.height, 'finding')} in {counted(len(datasets), 'dataset')}. A negative "
        "verdict is worth something only where controls that should pass do: "
        f"{known.filter('fits').height} of {known.height} findings that could be computed are as expected, "
        f"{rows.height - known.height} are not available. A frame marks what is not: a control that should pass and "
        f"does not, or a sham that passes. {numbers}blank: does not apply there.{listed}"
    )


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for (control,), own in rows.group_by("control", maintain_order=True):
        known = own.filter(pl.col("fits").is_not_null())
        if known.is_empty():
            parts.append(f"{control}: not available.")
            continue
        part = f"{control}: {known.filter('fits').height} of {known.height} as expected"
        absent = own.height - known.height
        parts.append(f"{part}, {absent} not available." if absent else f"{part}.")
    return " ".join(parts)
