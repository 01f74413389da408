"""Study files as commands take them: with folders of datasets and models from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.errors import ConfigError

if TYPE_CHECKING:
    from lpact.run.progress import Reporter
    from lpact.study import Study

StudyFile = Annotated[Path, typer.Argument(help="Study file (TOML).")]
Paths = Annotated[
    list[str] | None,
    typer.Option("--path", metavar="NAME=FOLDER", help="Folder of a dataset; may be repeated."),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME=FOLDER", help="Folder or GGUF file of a model."),
]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write the report too.")]
OneAnalysis = Annotated[
    str | None,
    typer.Option("--analysis", help="Run this analysis alone (`lpact list analyses`)."),
]


def load(
    study: Path,
    paths: list[str] | None = None,
    models: list[str] | None = None,
    analysis: str | None = None,
) -> Study:
    """Load a study, or one question of it; folders given here replace ``[run.paths]`` and ``[run.models]``."""
    import lpact

    loaded = lpact.load_study(
        study, paths=_places("--path", paths or []), models=_places("--model", models or [])
    )
    return loaded if analysis is None else loaded.only(analysis)


@contextmanager
def progress_on_terminals() -> Iterator[Reporter]:
    """Progress on standard error, for commands whose output may be redirected to a file."""
    from rich.console import Console

    from lpact.run.progress import reporter

    console = Console(stderr=True)
    with reporter(show=console.is_terminal, console=console) as bar:
        yield bar


def _places(option: str, given: list[str]) -> dict[str, str]:
    """``NAME=FOLDER`` pairs; folders are relative to the current folder."""
    places: dict[str, str] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder) or name in places:
            raise ConfigError(
                "a folder is not written as NAME=FOLDER, or is given twice for one name",
                where=f"option {option}",
                got=text,
                expected="a name from the study file, '=', and a folder",
                remedy=f"write {option} podcast=/data/podcast, once for each name",
            )
        places[name] = str(Path(folder).expanduser().absolute())
    return places
