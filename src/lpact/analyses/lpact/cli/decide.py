"""``lpact decide``: decide a finished run again, from its tables alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._options import RunFolder, refuse_existing, write_tables
from lpact.cli._results import show_claim_counts
from lpact.cli._terminal import heading, say, show_table
from lpact.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from lpact.analyses.lpact.config import GatesConfig, LPactConfig
    from lpact.study import Run

DECISIONS = "decisions/lpact_decision_table"
OUTCOME = "decisions/lpact_study_outcome"
GATES_FILE = "gates.json"


def command(
    run: RunFolder,
    gates: Annotated[
        Path | None, typer.Option("--gates", help="File whose [lpact.gates] table is used instead.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="New folder for the decided tables.")] = None,
) -> None:
    """Decide a run again from its tables, with other thresholds."""
    import lpact
    from lpact.analyses.lpact.config import LPactConfig

    if out is not None:
        refuse_existing(out, run)
    opened = lpact.open_run(run)
    analysis = opened.analysis("lpact")
    config = LPactConfig.of(opened.config)
    thresholds = config.gates if gates is None else read_gates(gates)
    decided = decide_again(opened, config, thresholds)
    n_claims = decided[DECISIONS].filter(gate_profile="paper").height
    say(f"{counted(n_claims, 'claim')} decided from the tables of {run}.")
    show_claim_counts(analysis, decided[DECISIONS])
    _show_changes(opened, decided)
    if out is not None:
        _write(decided, thresholds, opened, out)
        heading(f"Wrote {counted(len(decided), 'table')} to {out}/")


def decide_again(run: Run, config: LPactConfig, gates: GatesConfig) -> dict[str, pl.DataFrame]:
    """Tables of the decision with these thresholds, from the run's measured tables."""
    from lpact.analyses.lpact.gates import NEEDED, decide

    tables = {table.name: run.table(table.name) for table in NEEDED}
    return decide(tables, gates=gates, primary_metric=config.readout.primary_metric)


def read_gates(path: Path) -> GatesConfig:
    """Thresholds from a study file, or from a file with the table [lpact.gates] alone."""
    from lpact.analyses.lpact.config import GatesConfig, LPactConfig
    from lpact.config import read_study_file, read_toml
    from lpact.validation import validate_model

    values = read_toml(path, "the study file")
    own = values.get("lpact")
    if values.keys() == {"lpact"} and isinstance(own, dict) and own.keys() == {"gates"}:
        return validate_model(GatesConfig, own["gates"], where=f"{path}, table [lpact.gates]")
    # Any other file is read strictly: a misspelt table is an error, not the defaults.
    return LPactConfig.of(read_study_file(path)[0]).gates


def _show_changes(run: Run, decided: dict[str, pl.DataFrame]) -> None:
    """Print the claims whose label differs from the run's, and the outcome."""
    import polars as pl

    from lpact.tables import CLAIM_KEY

    key = [*CLAIM_KEY, "gate_profile"]
    before = run.table(DECISIONS).select(*key, before="label")
    both = decided[DECISIONS].join(before, on=key, how="left", maintain_order="left")
    changed = both.filter(both["label"].ne_missing(both["before"]))
    heading(f"Changed labels: {changed.height or 'none'}")
    if changed.height:
        claim = pl.concat_str(CLAIM_KEY, separator="/")
        rows = changed.select(claim, "gate_profile", "before", "label").iter_rows()
        show_table(("claim", "gates", "before", "now"), rows)
    before_by_profile = dict(run.table(OUTCOME).select("gate_profile", "outcome").iter_rows())
    outcomes: list[dict[str, Any]] = decided[OUTCOME].to_dicts()
    for now in sorted(outcomes, key=lambda row: row["gate_profile"] != "paper"):
        was = before_by_profile[now["gate_profile"]]
        changed_from = f" (was {was})" if was != now["outcome"] else ""
        heading(f"Outcome {now['outcome']}{changed_from}, {now['gate_profile']} gates")
        say(now["meaning"], indent=2)


def _write(decided: dict[str, pl.DataFrame], gates: GatesConfig, run: Run, out: Path) -> None:
    """Write the tables, and the thresholds that they were decided with."""
    import json

    import lpact

    provenance = {
        "gates": gates.model_dump(mode="json"),
        "run_config_digest": run.manifest.config_digest,
        "lpact_version": lpact.__version__,
    }
    text = json.dumps(provenance, indent=2, sort_keys=True) + "\n"
    write_tables(decided, out, {GATES_FILE: text.encode()})
