"""Studies and runs in Python: load or build a study, plan it, run it, read its claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from lpact.analyses import DEFAULT
from lpact.analyses.base import Analysis, Material, analyses_of, decided
from lpact.analyses.explanation import Claim, Conclusion, Value
from lpact.config import (
    ControlsConfig,
    DatasetConfig,
    LanguageModelConfig,
    MechanismsConfig,
    NuisanceConfig,
    ReadoutConfig,
    RunConfig,
    Section,
    StudyConfig,
    check_paths,
    parse_study,
    read_study_file,
    study_from_values,
    with_paths,
)
from lpact.errors import ConfigError, LPactError, RegistryError, RunError, did_you_mean, require_known
from lpact.registry import ANALYSES
from lpact.store import RunTables, StoredRun, clear_leftovers, differences, existing_run
from lpact.store.manifest import REPORT_FOLDER
from lpact.validation import validate_model

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.archive import LockedRun, Verification
    from lpact.report.figure import Chart
    from lpact.report.write import WrittenReport
    from lpact.run.audit import StudyAudit
    from lpact.run.plan import Outline, Plan
    from lpact.run.preregistration.record import Registration
    from lpact.run.progress import Reporter

S = TypeVar("S", bound=Section)


class Run(StoredRun):
    """A finished run: tables as Polars data frames, claims, figures, report and archive."""

    @cached_property
    def analyses(self) -> dict[str, Analysis]:
        """The analyses of the run by name."""
        return analyses_of(self.config)

    def analysis(self, name: str | None = None) -> Analysis:
        """One analysis of the run; without a name, the only or the first one."""
        if name is None:
            return next(iter(self.analyses.values()))
        if name not in self.analyses:
            again = f"add [{name}] to the study file and run it into another folder"
            raise ConfigError(
                f"the run has no analysis '{name}'",
                where=str(self.root),
                got=", ".join(self.analyses),
                expected=f"a run of a study with a table [{name}]",
                remedy=again if name in ANALYSES.names() else did_you_mean(name, self.analyses),
            )
        return self.analyses[name]

    @property
    def material(self) -> Material:
        """Tables and configuration, as figures and conclusions take them."""
        return Material(RunTables(self), self.config)

    def rows(self, table: str, /, **equals: Value) -> pl.DataFrame:
        """Rows of a table whose columns have these values."""
        return self.table(table).filter(**equals)

    def claims(self, analysis: str | None = None, profile: str | None = None) -> pl.DataFrame:
        """One row per claim of an analysis, under one profile; by default its first one."""
        claims = self.analysis(analysis).claims
        table = self.table(claims.table.name)
        if not claims.profiles:
            return table
        return table.filter(gate_profile=self._profile(self.analysis(analysis), profile))

    def _profile(self, analysis: Analysis, profile: str | None) -> str:
        profiles = analysis.claims.profiles
        if profile is None:
            return next(iter(profiles), "")
        where = f"analysis '{analysis.name}', argument 'profile'"
        require_known(profile, profiles, "gate profile", where=where, error=ConfigError)
        return profile

    def claim(self, claim: str | Sequence[Value], analysis: str | None = None, profile: str | None = None) -> Claim:
        """One claim by its id (for L-PACT ``"dataset/model/layer/mechanism"``) or by the values of its columns.

        Without ``analysis``, the first analysis of the run that has such a claim.
        """
        wanted = claim if isinstance(claim, str) else "/".join(map(str, claim))
        known: list[str] = []
        for chosen in [self.analysis(analysis)] if analysis else self.analyses.values():
            key = list(chosen.claims.key)
            table = self.claims(chosen.name, profile if chosen.claims.profiles else None)
            columns = [pl.col(column).cast(pl.String) for column in key]
            ids = table.select(pl.concat_str(columns, separator="/")).to_series()
            found = table.filter(ids == wanted)
            if found.height:
                rules = self._profile(chosen, profile if chosen.claims.profiles else None)
                values = found.select(key).row(0, named=True)
                return Claim(chosen.explain(self.config, self.rows, values, rules))
            known += ids.to_list()
        raise RunError(
            f"the run has no claim '{wanted}'",
            where=str(self.root),
            got=wanted,
            expected="a claim of `run.claims()`",
            remedy=did_you_mean(wanted, known),
        )

    def conclusion(self, analysis: str | None = None) -> Conclusion:
        """What an analysis concludes, in one sentence, and why."""
        return self.analysis(analysis).conclude(self.material)

    def decide(self, options: Section | None = None) -> dict[str, pl.DataFrame]:
        """Decide an analysis again from the stored tables, with other options (``lpact.LPact(gates=…)``) or its own."""
        name = self.analysis().name if options is None else _analysis_of(options)
        chosen = self.analysis(name) if options is None else ANALYSES.get(name)(options)
        sections = {**self.config.analyses, name: chosen.options}
        study = self.config.model_copy(update={"analyses": sections})
        return decided(chosen, study, RunTables(self))

    def figure(self, name: str, analysis: str | None = None) -> Chart:
        """A figure by name, as an Altair chart that looks as in the report."""
        from lpact.report.figure import Missing

        asked = [self.analysis(analysis)] if analysis else list(self.analyses.values())
        by_name = {own: one for one in asked for part in one.figures.values() for own in part}
        require_known(name, by_name, "figure", where="argument 'name'", error=ConfigError)
        chosen = by_name[name]
        material = self.material
        more = chosen.extra_tables(material, lambda _: None)
        figure = chosen.figure(name, Material(material.tables, material.config, more))
        if isinstance(figure, Missing):
            raise RunError(
                f"the figure '{name}' cannot be drawn",
                where=str(self.root),
                got=figure.reason,
                expected="tables with the data that it shows",
                remedy="choose another figure",
            )
        chart: Chart = figure.themed()
        return chart

    def report(
        self,
        out: str | Path | None = None,
        *,
        tables: bool = True,
        workers: int = 0,
        tell: Callable[[str], None] = lambda _: None,
    ) -> WrittenReport:
        """Write figures and a page that explains the run, from its tables alone.

        Parameters
        ----------
        out
            Folder of the report; by default ``report/`` in the run.
        tables
            Whether every table is written as CSV and LaTeX next to the page.
        workers
            Threads that draw and write.
        tell
            Called with the name of each step.
        """
        from lpact.report.write import write_report

        return write_report(self, out=out, with_tables=tables, workers=workers, tell=tell)

    def lock(self) -> LockedRun:
        """Freeze the run and return its digest, to be quoted."""
        from lpact.archive import lock_run

        return lock_run(self.root)

    def verify(self, **options: Any) -> Verification:
        """Check every byte against the lock, and decide again from the stored tables."""
        from lpact.archive import verify_run

        return verify_run(self.root, **options)

    def __repr__(self) -> str:
        return f"Run({str(self.root)!r}, analyses={list(self.analyses)})"

    def _repr_html_(self) -> str:
        from lpact.report.notebook import run_html

        return run_html(self)


class Study:
    """A validated study: what to compute (``config``) and how (``run_config``).

    Built in code, every argument is a section with completion and validation:

    >>> import lpact
    >>> study = lpact.Study(
    ...     name="first",
    ...     datasets=[lpact.Dataset(name="meg", reader="simulated")],
    ...     models=[lpact.Model(name="planted", layers=(2,))],
    ...     analyses=[lpact.LPact()],
    ... )

    Parameters
    ----------
    name, datasets, models, seed, readout, nuisance, controls, mechanisms
        As in the study file; one dataset or model needs no list.
    analyses
        Sections of the analyses to run; without any, L-PACT with its defaults.
    run
        Settings that change no number: workers, folders, cluster.
    """

    def __init__(
        self,
        name: str,
        datasets: DatasetConfig | Sequence[DatasetConfig],
        models: LanguageModelConfig | Sequence[LanguageModelConfig] = (),
        *,
        analyses: Section | Sequence[Section] = (),
        run: RunConfig | None = None,
        seed: int | None = None,
        readout: ReadoutConfig | None = None,
        nuisance: NuisanceConfig | None = None,
        controls: ControlsConfig | None = None,
        mechanisms: MechanismsConfig | None = None,
    ) -> None:
        datasets, models, analyses = _several(datasets), _several(models), _several(analyses)
        sections: dict[str, Any] = {"seed": seed, "readout": readout, "nuisance": nuisance}
        sections |= {"controls": controls, "mechanisms": mechanisms}
        own = {_analysis_of(section): section for section in analyses}
        if len(own) < len(analyses):
            raise ConfigError(
                "an analysis has two sections",
                where="lpact.Study, argument 'analyses'",
                got=f"{len(analyses)} sections of {', '.join(own)}",
                expected="one section per analysis",
                remedy="merge them",
            )
        values = {
            "name": name,
            "datasets": datasets,
            "models": models,
            "analyses": own or {DEFAULT: ANALYSES.get(DEFAULT).Options()},
            **{key: section for key, section in sections.items() if section is not None},
        }
        config = validate_model(StudyConfig, values, where="lpact.Study")
        self._setup(config, with_paths(run, datasets, models))

    @classmethod
    def of(cls, config: StudyConfig, run: RunConfig | None = None) -> Study:
        """A study from a validated configuration."""
        study = cls.__new__(cls)
        study._setup(config, run)
        return study

    def _setup(self, config: StudyConfig, run: RunConfig | None) -> None:
        from lpact.run.audit import resolve_plugins

        self.config = resolve_plugins(config)
        self.run_config = run or RunConfig()

    @property
    def analyses(self) -> dict[str, Analysis]:
        """The analyses of the study by name."""
        return analyses_of(self.config)

    def only(self, analysis: str) -> Study:
        """The study with one analysis alone; one that the study does not name has its default options."""
        found = ANALYSES.get(analysis, where="argument 'analysis'")
        section = self.config.analyses.get(analysis) or found.Options()
        config = self.config.model_copy(update={"analyses": {analysis: section}})
        return Study.of(config, self.run_config)

    def __repr__(self) -> str:
        return f"Study({self.config.name!r}, config {self.config.digest()[:12]})"

    def _repr_html_(self) -> str:
        from lpact.report.notebook import study_html

        return study_html(self)

    def audit(self, reporter: Reporter | None = None) -> StudyAudit:
        """Audit the sources only."""
        from lpact.inputs.workspace import Workspace
        from lpact.run.audit import audit_study
        from lpact.run.progress import Reporter

        return audit_study(Workspace(self.config, self.run_config), reporter or Reporter())

    def extract(self, *, progress: bool | None = None, console: Console | None = None) -> bool:
        """Extract the features that the study needs from its language models; returns whether any were missing."""
        from lpact.inputs.workspace import Workspace
        from lpact.run.audit import extract_features
        from lpact.run.progress import reporter

        self.audit()
        show = self.run_config.progress if progress is None else progress
        with reporter(show=show, console=console) as shown:
            return extract_features(Workspace(self.config, self.run_config), shown)

    def outline(self) -> Outline:
        """What the study needs, and what of it is missing; nothing is opened or fetched."""
        from lpact.run.plan import outline_study

        return outline_study(self.config, self.run_config)

    def plan(self, reporter: Reporter | None = None) -> Plan:
        """Count what a run would compute."""
        from lpact.inputs.workspace import Workspace
        from lpact.run.audit import extraction_cost
        from lpact.run.plan import make_plan

        audit = self.audit(reporter)
        cost = extraction_cost(Workspace(self.config, self.run_config))
        return make_plan(self.config, audit, cost)

    def preregister(
        self, out: str | Path, *, runs: Iterable[str | Path] = (), after_the_fact: bool = False
    ) -> Registration:
        """Freeze what the study will do in the new file ``out``, from sources and sizes alone.

        ``runs`` are folders of earlier runs. Results of the same data and models there, or in the study's store of
        results (``[run] tasks``), are a `RunError`, unless the registration is made ``after_the_fact``, which it then
        says.
        """
        from lpact.run.preregistration.earlier import refuse_no_run, register
        from lpact.run.preregistration.record import refuse_taken, write_registration

        refuse_taken(Path(out))
        earlier = [Path(folder) for folder in runs]
        for folder in earlier:
            refuse_no_run(folder)
        made = register(
            self.config, self.audit(), runs=earlier, kept=self.run_config.tasks, after_the_fact=after_the_fact
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
            File of `lpact preregister` that the run is compared with, in place of the study file's.
        registered_digest
            The registration's digest as it was deposited; a file with another one is a `RunError`.
        progress, console
            Whether and where to show progress.
        plan
            A plan that was just made saves a second audit.
        """
        from lpact.run.execute import execute
        from lpact.run.progress import reporter

        if plan is not None and plan.config.digest() != self.config.digest():
            raise ConfigError(
                "the plan is of another study",
                where="Study.run, argument 'plan'",
                got=f"configuration {plan.config.digest()[:12]}",
                expected=f"configuration {self.config.digest()[:12]}",
                remedy="plan this study, or leave the plan out",
            )
        settings = self.settings(workers=workers, cluster=cluster, preregistration=preregistration, progress=progress)
        registration = self.registration(settings.preregistration, registered_digest)
        if existing_run(Path(out), self.config.digest()) == "complete":
            return self.reopen(out, plan.audit if plan is not None else self.audit())
        with reporter(show=settings.progress, console=console) as shown:
            stored = execute(
                self.config,
                settings=settings,
                out=out,
                workers=settings.workers,
                reporter=shown,
                audit=None if plan is None else plan.audit,
                expected=None if plan is None else plan.expected(settings.workers),
                registration=registration,
            )
        return Run(stored.root)

    def registration(self, file: str | Path | None = None, digest: str | None = None) -> Registration | None:
        """The registration that a run is compared with: ``file``, or the study file's; it must have the ``digest``."""
        path = file or self.run_config.preregistration
        if not path and digest is None:
            return None
        from lpact.run.preregistration.record import read_registration, refuse_other_digest

        if not path:
            raise ConfigError(
                "a digest is given without a registration",
                where="option --registered-digest",
                got="no registration",
                expected="the file that has the digest",
                remedy="name the file with --preregistration, or in the study file",
            )
        registration = read_registration(path)
        if digest is not None:
            refuse_other_digest(registration, digest, where=str(path))
        return registration

    def settings(self, **given: Any) -> RunConfig:
        """How a run is made, with these settings instead of the study file's; None changes nothing."""
        known = {k: str(v) if isinstance(v, Path) else v for k, v in given.items() if v is not None}
        values = self.run_config.model_dump() | known
        where, what = "settings of the run", "the settings of the run are"
        return validate_model(RunConfig, values, where=where, what=what)

    def reopen(self, out: str | Path, audit: StudyAudit) -> Run:
        """Open a finished run of this study; raises `RunError` if it would come out differently today."""
        from lpact.report.folder import clear_leftovers as clear_report
        from lpact.run.audit import provenance, with_sets_of

        run = Run(out)
        now = with_sets_of(run.manifest, provenance(self.config, audit))
        changed = differences(run.manifest, now)
        if changed:
            raise RunError(
                "the finished run was made from other inputs, code or versions",
                where=str(out),
                got="; ".join(changed[:3]) + (f"; and {len(changed) - 3} more" if len(changed) > 3 else ""),
                expected="the same inputs, code and versions as now",
                remedy="choose another output folder, or remove this run to compute it again",
            )
        clear_leftovers(out, run.manifest.config_digest)
        clear_report(run.root / REPORT_FOLDER)
        return run


def _several(sections: S | Sequence[S]) -> tuple[S, ...]:
    return (sections,) if isinstance(sections, Section) else tuple(sections)


def _analysis_of(section: Section) -> str:
    for name in ANALYSES.names():
        with suppress(RegistryError):  # one that cannot be imported has no section here
            if type(section) is ANALYSES.get(name).Options:
                return name
    raise ConfigError(
        "a section does not belong to any analysis",
        where="lpact.Study, argument 'analyses'",
        got=type(section).__name__,
        expected=f"sections of {', '.join(ANALYSES.names())}",
        remedy="pass shared sections by name, such as readout=lpact.Readout(...)",
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
        config, run = study_from_values(dict(source), where="study")
        where = "study"
    else:
        config, run = read_study_file(source)
        where = str(source)
    for option, given in (("paths", paths), ("models", models)):
        placed = {name: str(Path(folder).absolute()) for name, folder in (given or {}).items()}
        run = run.model_copy(update={option: {**getattr(run, option), **placed}})
    check_paths(config, run, where=where)
    return Study.of(config, run) if isinstance(source, Mapping) else _named(where, config, run)


def _named(where: str, config: StudyConfig, run: RunConfig) -> Study:
    """A study whose errors name the file it came from."""
    try:
        return Study.of(config, run)
    except LPactError as error:
        raise error.at(f"{where}: {error.where}" if error.where else where) from error


def study_from_text(text: str, *, where: str) -> Study:
    """Load a study from the text of a study file; ``where`` names it in errors."""
    return _named(where, *parse_study(text, where=where))


def open_run(path: str | Path) -> Run:
    """Open a finished run directory."""
    return Run(path)
