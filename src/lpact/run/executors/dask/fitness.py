"""Whether a worker would compute the same as the client: code, libraries, sources, features; and where results go."""

from __future__ import annotations

import platform
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lpact.errors import RunError
from lpact.extras import require
from lpact.inputs.grid_cache import fingerprint
from lpact.inputs.workspace import Workspace
from lpact.run.audit import check_device, plugin_packages
from lpact.run.executors.dask.terms import Briefing, folders
from lpact.run.features import unready
from lpact.store import FolderShelf, code_digest, library_versions


def this_worker() -> Any:
    """The Dask worker that runs this thread."""
    return require("distributed", extra="dask").get_worker()


def other_code(code: str) -> str:
    """How lpact's code here differs from the client's; empty where it does not."""
    own = code_digest()
    if own == code:
        return ""
    package = Path(sys.modules["lpact"].__file__ or "").parent
    return f"lpact's code is {own} there ({package}) and {code} here"


def unfitness(briefing: Briefing) -> str:
    """Why this worker must not take tasks, in words; empty where it may."""
    config = briefing.setup.config
    found = [
        *_other_versions(briefing, library_versions(config.model_dump(mode="json"))),
        *_other_plugins(briefing, plugin_packages(config)),
    ]
    if not found:
        check_device(config)
        found += _other_sources(briefing)
    return "; ".join(found)


def shares_results(briefing: Briefing) -> bool:
    """Whether this worker reads and writes results where the client does.

    A folder that is not the client's is no fault: results then travel through the scheduler. A store that was named by
    URL is there for all, and a worker that cannot use it is a mistake: `RunError`.
    """
    shelf = briefing.store.shelf
    own = f"{briefing.probe}-{uuid.uuid4().hex}"
    try:
        if shelf.size(briefing.probe) is None:
            if isinstance(shelf, FolderShelf):
                return False
            raise RunError(
                "the store for results is not the client's",
                where=shelf.where(briefing.probe),
                got="a store without the file that the client has just put there",
                expected="the same store on every machine",
                remedy="check that the address of 'run.tasks' leads to one store from everywhere",
            )
        shelf.write(own, b"")
        shelf.remove(own)
    except RunError:
        if isinstance(shelf, FolderShelf):
            return False
        raise
    return True


def _other_versions(briefing: Briefing, own: dict[str, str]) -> Iterator[str]:
    for name in sorted({*own, *briefing.versions}):
        there, here = own.get(name, "not installed"), briefing.versions.get(name, "not in use")
        if there != here:
            yield f"{name} is {there} there and {here} here"


def _other_plugins(briefing: Briefing, own: tuple[str, ...]) -> Iterator[str]:
    if own != briefing.plugins:
        yield f"plugin packages are {', '.join(own)} there and {', '.join(briefing.plugins)} here"
    elif other := briefing.setup.other_plugins():
        yield other


def _other_sources(briefing: Briefing) -> Iterator[str]:
    """Datasets and features that are copies, and not the same."""
    settings = briefing.setup.settings
    own = folders(settings)
    # Without the client's fingerprints, so that they are computed here.
    workspace = Workspace(briefing.setup.config, settings)
    for name, path in settings.paths.items():
        if own[name] != briefing.folders[name]:
            there, here = (
                fingerprint(workspace.dataset(name)),
                briefing.setup.fingerprints.get(name),
            )
            if there != here:
                yield (
                    f"the files of dataset '{name}' in {path} on {platform.node()} are others than the client's "
                    f"(fingerprint {there} there and {here} here)"
                )
    if own[""] != briefing.folders[""]:
        for model, _, stimulus in unready(workspace):
            yield (
                f"features of model '{model}' for '{stimulus.id}' are not complete in {settings.features} on "
                f"{platform.node()}: copy that folder, or share it"
            )
