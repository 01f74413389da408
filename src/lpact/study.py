"""The Python face of lpact: load a study, plan it, run it, read its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates import CALIBRATED, NEEDED, PAPER, decide, explain
from lpact.analyses.lpact.positive_controls import execute_assay
from lpact.analyses.lpact.robustness import (
    READS,
    READS_DECIDED,
    READS_IF_THERE,
    robustness,
    robustness_cost,
    uncertainty_tables,
)
from lpact.analyses.lpact.tables.calibration import RATES, TRUTH_RATES
from lpact.config import RunConfig, StudyConfig, check_paths, parse_study, read_study_file
from lpact.errors import ConfigError, LPactError, RunError
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, resolve_plugins
from lpact.run.execute import execute
from lpact.run.features import extract_features, extraction_cost
from lpact.run.journal.progress import Reporter, Silent, reporter
from lpact.run.outline import Outline, outline_study
from lpact.run.plan import Plan, make_plan
from lpact.run.preregistration import (
    Registration,
    read_registration,
    refuse_other_digest,
    refuse_taken,
    register,
    write_registration,
)
from lpact.run.provenance import provenance, with_sets_of
from lpact.store import StoredRun, clear_leftovers, differences, existing_run
from lpact.tables import Table
from lpact.validation import validate_model

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.report import WrittenReport


MOST_DECIDED_AGAIN = 20_000
"""Claims that a report decides again by itself, at most; a thousand take about a second."""


class Run(StoredRun):
    """A finished run: tables as Polars data frames, and verdicts in words."""

    @property
    def decisions(self) -> pl.DataFrame:
        """The decision table under the point rules of the paper: one row a claim."""
        return self.verdicts(PAPER)

    @property
    def calibrated(self) -> pl.DataFrame:
        """The decision table in which every gate is a test: one row a claim."""
        return self.verdicts(CALIBRATED)

    def verdicts(self, gate_profile: str) -> pl.DataFrame:
        """The decision table of one gate profile, ``paper`` or ``calibrated``."""
        return self.table("decisions/lpact_decision_table").filter(gate_profile=gate_profile)

    @property
    def outcome(self) -> str:
        """Outcome of the study under the point rules: A, B, C, D or I."""
        return str(self._outcomes[PAPER])

    @property
    def calibrated_outcome(self) -> str:
        """Outcome of the study in which every gate is a test."""
        return str(self._outcomes[CALIBRATED])

    @property
    def _outcomes(self) -> dict[str, str]:
        table = self.table("decisions/lpact_study_outcome")
        return dict(table.select("gate_profile", "outcome").iter_rows())

    @property
    def config(self) -> StudyConfig:
        """The configuration that the run was made with."""
        where = f"{self.root}, manifest.json"
        return validate_model(StudyConfig, self.manifest.config, where=where)

    def explain(self, claim: str, gate_profile: str = PAPER) -> str:
        """The chain of evidence of a claim ``dataset/model/layer/mechanism``, in plain words."""
        evidence = self.table("decisions/lpact_gate_evidence")
        return explain(claim, self.verdicts(gate_profile), evidence, gate_profile=gate_profile)

    def decide(self, gates: GatesConfig | None = None) -> dict[str, pl.DataFrame]:
        """Decide again from the stored tables alone, with the run's thresholds or others."""
        config = self.config
        tables = {table.name: self.table(table.name) for table in NEEDED}
        return decide(
            tables, gates=gates or config.gates, primary_metric=config.readout.primary_metric
        )

    def robustness(self, tell: Callable[[str], None] = lambda _: None) -> dict[str, pl.DataFrame]:
        """What the verdicts hang on: the tables of `lpact.analyses.lpact.robustness`, computed from the stored tables alone.

        ``tell`` is called with what is being done, for those who wait.
        """
        return self._analysed(robustness, READS, tell=tell)

    def _uncertainty(self, _: Callable[[str], None]) -> dict[str, pl.DataFrame]:
        """The part of it that decides nothing again."""
        return self._analysed(uncertainty_tables, READS_DECIDED, as_decided=True)

    def _analysed(
        self, analyse: Callable[..., dict[str, pl.DataFrame]], reads: Sequence[Table], **more: Any
    ) -> dict[str, pl.DataFrame]:
        config = self.config
        present = {table.name for table in self.tables()}
        wanted = [*reads, *(table for table in READS_IF_THERE if table.name in present)]
        return analyse(
            {table.name: self.table(table.name) for table in wanted},
            gates=config.gates,
            primary_metric=config.readout.primary_metric,
            seed=config.seed,
            **more,
        )

    def report(
        self,
        out: str | Path | None = None,
        *,
        tables: bool = True,
        sensitivity: bool | None = None,
        workers: int = 0,
        tell: Callable[[str], None] = lambda _: None,
    ) -> WrittenReport:
        """Write figures and a page that explains the run, from its tables alone.

        Parameters
        ----------
        out
            Folder of the report; by default ``report/`` in the run.
        tables
            Whether every table is written as CSV and LaTeX beside the page.
        sensitivity
            Whether the verdicts are decided again under other thresholds and without single datasets, controls and
            subject-runs; by default unless that would take minutes.
        workers
            Processes that draw and write meanwhile; with more than none, a script must guard its entry point.
        tell
            Called with what is being done, for those who wait.
        """
        from lpact.analyses.lpact.calibration.reference_run import load_reference
        from lpact.report.write import write_report

        reference = load_reference()
        more = {RATES.name: reference.rates, TRUTH_RATES.name: reference.truth_rates}
        return write_report(
            self,
            config=self.config,
            out=out,
            more=more,
            late=self.robustness if self._sensitive(sensitivity) else self._uncertainty,
            with_tables=tables,
            workers=workers,
            tell=tell,
        )

    def _sensitive(self, wanted: bool | None) -> bool:
        if wanted is not None:
            return wanted
        cost = robustness_cost({table.name: self.table(table.name) for table in READS})
        return cost.n_claim_decisions <= MOST_DECIDED_AGAIN


class Study:
    """A validated study: what to compute (``config``, every plugin option spelt out) and how (``run_config``)."""

    def __init__(self, config: StudyConfig, run_config: RunConfig | None = None) -> None:
        self.config = resolve_plugins(config)
        self.run_config = run_config or RunConfig()

    def __repr__(self) -> str:
        return f"Study({self.config.name!r}, config {self.config.digest()[:12]})"

    def audit(self, told: Reporter | None = None) -> StudyAudit:
        """Look at the sources only; ``told`` hears how far that is."""
        return audit_study(self._workspace(), told or Silent())

    def extract(self, *, progress: bool | None = None, console: Console | None = None) -> bool:
        """Extract the features that the study needs of its language models; says whether any were missing."""
        self.audit()
        show = self.run_config.progress if progress is None else progress
        with reporter(show=show, console=console) as told:
            return extract_features(self._workspace(), told)

    def _workspace(self) -> Workspace:
        return Workspace(self.config, self.run_config)

    def outline(self) -> Outline:
        """Say what the study asks for and what of it is not there; nothing is opened or fetched."""
        return outline_study(self.config, self.run_config)

    def plan(self, told: Reporter | None = None) -> Plan:
        """Say what a run would compute, and what it would cost; ``told`` hears how far the look at the sources is."""
        audit = self.audit(told)
        return make_plan(self.config, audit, extraction_cost(self._workspace()))

    def preregister(
        self, out: str | Path, *, runs: Iterable[str | Path] = (), after_the_fact: bool = False
    ) -> Registration:
        """Freeze what the study will do in the new file ``out``, from sources and sizes alone.

        ``runs`` are folders of earlier runs. Where results of the same data and models are found there, or in the
        study's place for results (``[run] tasks``), a `RunError` is raised, unless the registration is made
        ``after_the_fact``, which it then says.
        """
        refuse_taken(Path(out))
        made = register(
            self.config,
            self.audit(),
            runs=[Path(folder) for folder in runs],
            kept=self.run_config.tasks,
            after_the_fact=after_the_fact,
        )
        write_registration(made, Path(out))
        return made

    def run(
        self,
        out: str | Path,
        *,
        workers: int | None = None,
        cluster: str | None = None,
        preregistration: str | Path | None = None,
        registered_digest: str | None = None,
        progress: bool | None = None,
        plan: Plan | None = None,
        console: Console | None = None,
    ) -> Run:
        """Compute the study into the folder ``out``.

        A finished run of the same configuration, inputs and code at ``out`` is returned as it is; an interrupted one is
        resumed.

        Parameters
        ----------
        out
            Folder of the run.
        workers, cluster
            Processes of this machine, or the address of a Dask scheduler (or ``slurm``), in place of the study file's.
        preregistration
            File of `lpact preregister` that the run is held against, in place of the study file's.
        registered_digest
            The registration's digest as it was deposited; a file with another is a `RunError` before anything is
            computed.
        progress, console
            Whether and where to show progress.
        plan
            A plan that was just made saves a second look at the sources; what it expects weighs the progress.
        """
        _check_workers(workers, "Study.run")
        if plan is not None and plan.config_digest != self.config.digest():
            raise ConfigError(
                "the plan is of another study",
                where="Study.run, argument 'plan'",
                got=f"configuration {plan.config_digest[:12]}",
                expected=f"configuration {self.config.digest()[:12]}",
                remedy="plan this study, or leave the plan out",
            )
        settings = self.settings(cluster=cluster, preregistration=preregistration)
        registration = self.registration(settings.preregistration, registered_digest)
        if existing_run(Path(out), self.config.digest()) == "complete":
            return self.reopen(out, plan.audit if plan is not None else self.audit())
        show = self.run_config.progress if progress is None else progress
        count = self.run_config.workers if workers is None else workers
        with reporter(show=show, console=console) as told:
            stored = execute(
                self.config,
                settings=settings,
                out=out,
                workers=count,
                reporter=told,
                audit=None if plan is None else plan.audit,
                expected=None if plan is None else plan.expected(count),
                registration=registration,
            )
        return Run(stored.root)

    def registration(
        self, file: str | Path | None = None, digest: str | None = None
    ) -> Registration | None:
        """The registration that a run is held against: ``file``, else the study file's; None where there is none.

        One that does not have the ``digest`` that was deposited is a `RunError`.
        """
        path = file or self.run_config.preregistration
        registration = read_registration(path) if path else None
        if digest is None:
            return registration
        if registration is None:
            raise ConfigError(
                "a digest without a registration",
                where="option --registered-digest",
                got="no registration",
                expected="the file that has the digest",
                remedy="name the file with --preregistration, or in the study file",
            )
        refuse_other_digest(registration, digest, where=str(path))
        return registration

    def settings(
        self, *, cluster: str | None = None, preregistration: str | Path | None = None
    ) -> RunConfig:
        """How a run is made, with what is given in place of the study file's; raises `ConfigError`."""
        given: dict[str, object] = {}
        if cluster is not None:
            given["cluster"] = cluster
        if preregistration is not None:
            given["preregistration"] = str(preregistration)
        values = self.run_config.model_dump() | given
        return validate_model(
            RunConfig, values, where="settings of the run", what="the settings of the run are"
        )

    def assay(
        self,
        *,
        workers: int | None = None,
        progress: bool | None = None,
        audit: StudyAudit | None = None,
        console: Console | None = None,
    ) -> dict[str, pl.DataFrame]:
        """Compute the positive controls alone: tables by name, written nowhere, and no model looked at."""
        _check_workers(workers, "Study.assay")
        show = self.run_config.progress if progress is None else progress
        with reporter(show=show, console=console) as told:
            return execute_assay(
                self.config,
                settings=self.run_config,
                workers=self.run_config.workers if workers is None else workers,
                reporter=told,
                audit=audit,
            )

    def reopen(self, out: str | Path, audit: StudyAudit) -> Run:
        """Open a finished run of this study; raises `RunError` where it would come out otherwise today."""
        run = Run(out)
        now = with_sets_of(run.manifest, provenance(self.config, audit))
        changed = differences(run.manifest, now)
        if changed:
            raise RunError(
                "the finished run was made from something else",
                where=str(out),
                got="; ".join(changed[:3])
                + (f"; and {len(changed) - 3} more" if len(changed) > 3 else ""),
                expected="the same inputs, code and versions as now",
                remedy="choose another output folder, or remove this run to compute it again",
            )
        clear_leftovers(out, run.manifest.config_digest)
        return run


def _check_workers(workers: int | None, where: str) -> None:
    if workers is not None and workers < 1:
        raise ConfigError(
            "the number of workers must be positive",
            where=f"{where}, argument 'workers'",
            got=workers,
            expected="1 or more",
            remedy="leave it out to use the study file's",
        )


def load_study(
    source: str | Path | Mapping[str, object],
    *,
    paths: Mapping[str, str | Path] | None = None,
    models: Mapping[str, str | Path] | None = None,
) -> Study:
    """Load a study from a TOML file, or from a mapping of the same shape.

    ``paths`` and ``models`` name folders of datasets and language models on this machine; they win over those of the
    study file, which can then be the same everywhere.
    """
    if isinstance(source, Mapping):
        values = dict(source)
        run = validate_model(RunConfig, _section(values.pop("run", {})), where="table [run]")
        config = validate_model(StudyConfig, values, where="study")
        where = "study"
    else:
        config, run = read_study_file(source)
        where = str(source)
    for option, given in (("paths", paths), ("models", models)):
        placed = {name: str(Path(folder).absolute()) for name, folder in (given or {}).items()}
        run = run.model_copy(update={option: {**getattr(run, option), **placed}})
    check_paths(config, run, where=where)
    return Study(config, run) if isinstance(source, Mapping) else _named(where, config, run)


def _named(where: str, config: StudyConfig, run: RunConfig) -> Study:
    """A study whose errors name the file it came from."""
    try:
        return Study(config, run)
    except LPactError as error:
        raise type(error)(
            error.what,
            where=f"{where}: {error.where}" if error.where else where,
            got=error.got,
            expected=error.expected,
            remedy=error.remedy,
        ) from error


def _section(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {"": value}


def study_from_text(text: str, *, where: str) -> Study:
    """Load a study from the text of a study file; ``where`` names it in errors."""
    return _named(where, *parse_study(text, where=where))


def open_run(path: str | Path) -> Run:
    """Open a finished run directory."""
    return Run(path)
