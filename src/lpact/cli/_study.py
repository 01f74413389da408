"""Study files as commands take them: with folders of datasets and models given on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.errors import ConfigError

if TYPE_CHECKING:
    from lpact.run.journal.progress import Reporter
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

Report = Annotated[
    bool, typer.Option("--report/--no-report", help="Write the page and its figures too.")
]


def load(study: Path, paths: list[str] | None = None, models: list[str] | None = None) -> Study:
    """Load a study; what the command line names wins over ``[run.paths]`` and ``[run.models]``."""
    import lpact

    return lpact.load_study(
        study, paths=_places("--path", paths or []), models=_places("--model", models or [])
    )


@contextmanager
def progress_on_terminals() -> Iterator[Reporter]:
    """Progress of a look at the sources, for commands whose output is all that a file should get."""
    from rich.console import Console

    from lpact.run.journal.progress import reporter

    told = Console(stderr=True)
    with reporter(show=told.is_terminal, console=told) as bar:
        yield bar


def _places(option: str, given: list[str]) -> dict[str, str]:
    """``NAME=FOLDER`` pairs; folders are relative to where the command was typed."""
    places: dict[str, str] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder) or name in places:
            raise ConfigError(
                "a folder is not given as NAME=FOLDER, or twice for one name",
                where=f"option {option}",
                got=text,
                expected="a name of the study, '=', and a folder",
                remedy=f"write for example {option} podcast=/data/podcast, once for each name",
            )
        places[name] = str(Path(folder).expanduser().absolute())
    return places
