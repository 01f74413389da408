"""Study files."""

from __future__ import annotations

import tomllib
from pathlib import Path

from lpact.config.study import RunConfig, StudyConfig, study_config
from lpact.errors import ConfigError, did_you_mean
from lpact.validation import validate_model


def read_study_file(path: str | Path) -> tuple[StudyConfig, RunConfig]:
    """Read and validate a study file (TOML)."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            "the study file does not exist",
            where=str(path),
            remedy=f"write one with `lpact init {path}`",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "the study file cannot be read",
            where=str(path),
            got=str(error),
            expected="a readable UTF-8 TOML file",
            remedy="check the path and its permissions",
        ) from error
    study, run = parse_study(text, where=str(path))
    folder = path.absolute().parent
    paths = {name: str(folder / given) for name, given in run.paths.items()}
    models = {name: str(folder / given) for name, given in run.models.items()}
    kept = {"features": str(folder / run.features), "grids": str(folder / run.grids)}
    if run.tasks and "://" not in run.tasks:
        kept["tasks"] = str(folder / run.tasks)
    if run.preregistration:
        kept["preregistration"] = str(folder / run.preregistration)
    return study, run.model_copy(update={"paths": paths, "models": models, **kept})


def parse_study(text: str, *, where: str) -> tuple[StudyConfig, RunConfig]:
    """Validate the text of a study file; ``where`` names it in errors."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            "the study file is not valid TOML",
            where=where,
            got=str(error),
            expected="TOML 1.0",
            remedy="fix the named line" if "line" in str(error) else "complete its last line",
        ) from None
    run = validate_model(RunConfig, values.pop("run", {}), where=f"{where}, table [run]")
    study = study_config(values, where=where)
    check_paths(study, run, where=where)
    return study, run


def check_paths(study: StudyConfig, run: RunConfig, *, where: str) -> None:
    """Raise `ConfigError` where a path is given for a dataset or model that the study does not list."""
    for what, option, given, names in (
        ("dataset", "paths", run.paths, [d.name for d in study.datasets]),
        ("model", "models", run.models, [m.name for m in study.models]),
    ):
        for unknown in sorted(set(given) - set(names)):
            raise ConfigError(
                f"a path is given for a {what} that the study does not list",
                where=f"{where}, option 'run.{option}'",
                got=unknown,
                expected=f"names of [[{what}s]]",
                remedy=did_you_mean(unknown, names),
            )
