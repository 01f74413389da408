"""``lpact decide``: verdicts again, from the stored tables alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._layout import Grid
from lpact.cli._output import refuse_existing, write_tables
from lpact.cli._render import VERDICT_STYLES, console, counted, heading, say, show
from lpact.cli._results import DECISIONS, show_verdict_counts

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from lpact.analyses.lpact.config import GatesConfig
    from lpact.study import Run

OUTCOME = "decisions/lpact_study_outcome"
GATES_FILE = "gates.json"


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    gates: Annotated[
        Path | None, typer.Option("--gates", help="File whose [gates] table is used instead.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder for the decided tables.")
    ] = None,
) -> None:
    """Decide again from stored tables, with other thresholds."""
    import lpact

    if out is not None:
        refuse_existing(out, run)
    opened = lpact.open_run(run)
    thresholds = opened.config.gates if gates is None else read_gates(gates)
    decided = opened.decide(thresholds)
    told = console()
    say(
        told,
        f"{counted(decided[DECISIONS].filter(gate_profile='paper').height, 'claim')} decided from the tables of {run}.",
    )
    show_verdict_counts(told, decided[DECISIONS])
    _show_changes(told, opened, decided)
    if out is not None:
        _write(decided, thresholds, opened, out)
        heading(told, f"Wrote {counted(len(decided), 'table')} to {out}/")


def read_gates(path: Path) -> GatesConfig:
    """Thresholds from a study file, or from a file that holds a [gates] table alone."""
    import tomllib

    from lpact.analyses.lpact.config import GatesConfig
    from lpact.config import read_study_file
    from lpact.validation import validate_model

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        values = {}
    if values.keys() == {"gates"}:
        return validate_model(GatesConfig, values["gates"], where=f"{path}, table [gates]")
    # Any other file is read strictly, so that a misspelt [gates] is an error and not the defaults.
    return read_study_file(path)[0].gates


def _show_changes(out: Console, run: Run, decided: dict[str, pl.DataFrame]) -> None:
    """Claims whose verdict is another one than in the run, and the outcome."""
    from lpact.tables import CLAIM_KEY

    key = [*CLAIM_KEY, "gate_profile"]
    before = run.table(DECISIONS).select(*key, before="label")
    both = decided[DECISIONS].join(before, on=key, how="left", maintain_order="left")
    changed = both.filter(both["label"].ne_missing(both["before"]))
    heading(out, f"Verdicts that changed: {changed.height or 'none'}")
    if changed.height:
        grid = Grid(("claim", "gates", "before", "now"), styles=VERDICT_STYLES)
        for row in changed.iter_rows(named=True):
            claim = "/".join(str(row[k]) for k in CLAIM_KEY)
            grid.add(claim, row["gate_profile"], row["before"], row["label"])
        show(out, grid)
    now: dict[str, Any] = decided[OUTCOME].row(0, named=True)
    was = f" (was {run.outcome})" if run.outcome != now["outcome"] else ""
    heading(out, f"Outcome {now['outcome']}{was}")
    say(out, now["meaning"], indent=2)


def _write(decided: dict[str, pl.DataFrame], gates: GatesConfig, run: Run, out: Path) -> None:
    """Write the tables, and what they were decided by."""
    import json

    import lpact

    provenance = {
        "gates": gates.model_dump(mode="json"),
        "run_config_digest": run.manifest.config_digest,
        "lpact_version": lpact.__version__,
    }
    text = json.dumps(provenance, indent=2, sort_keys=True) + "\n"
    files = {GATES_FILE: text.encode()}
    write_tables(decided, out, what="the decided tables", files=files)
