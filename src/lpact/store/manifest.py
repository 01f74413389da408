"""``manifest.json``: what a run was made from, by which versions, and checksums of its tables.

The same inputs and configuration give the same bytes: no time, host, path or run setting is
recorded.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from lpact.errors import RunError
from lpact.store.code import code_digest
from lpact.store.disk import atomic_write_bytes, sha256_file, storage_errors
from lpact.validation import json_digest

MANIFEST_NAME = "manifest.json"
MANIFEST_FORMAT = 4
REPORT_FOLDER = "report"
LOCK_FILE = "lock.json"
"""A file that only a locked run has (`lpact.archive`)."""
_LIBRARIES = ("numpy", "scipy", "polars", "pyarrow")
SIGNAL_LIBRARIES = ("h5netcdf", "h5py", "mne", "nibabel", "nilearn", "pynwb", "xarray", "zarr")
"""Libraries that read and preprocess recordings other than plain arrays."""
_PLAIN_READERS = {"folder", "simulated"}
_MISSING = "not installed"


class Record(BaseModel):
    """A part of a JSON file: frozen, strict, without undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


R = TypeVar("R", bound=Record)


class InputFile(Record):
    """A source file; ``path`` is inside the folder of the dataset or model, or names a generated source."""

    dataset: str
    path: str
    n_bytes: int
    sha256: str


class OutputFile(Record):
    """A table file of the run; ``path`` is inside the run directory, with forward slashes."""

    path: str
    n_bytes: int
    sha256: str


class Manifest(Record):
    """Contents of ``manifest.json``."""

    format_version: int
    lpact_version: str
    lpact_code: str
    study: str
    seed: int
    config: dict[str, Any]
    config_digest: str
    versions: dict[str, str]
    plugins: tuple[str, ...]
    plugin_code: dict[str, str] = {}
    inputs: tuple[InputFile, ...]
    outputs: tuple[OutputFile, ...]


@dataclass(frozen=True)
class Provenance:
    """What a run is made from.

    ``config`` is the hashed configuration as plain JSON values; ``plugins`` names other packages in use, with versions;
    ``plugin_code`` is the SHA-256 of the code of every plugin that is not lpact's own.
    """

    study: str
    seed: int
    config: Mapping[str, Any]
    inputs: tuple[InputFile, ...]
    plugins: tuple[str, ...] = ()
    plugin_code: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Refused now, not after hours of work.
        object.__setattr__(self, "config", json.loads(_canonical_json(self.config)))

    @property
    def config_digest(self) -> str:
        """SHA-256 of the configuration."""
        return json_digest(self.config)


def library_versions(config: Mapping[str, Any]) -> dict[str, str]:
    """Versions of Python and of the libraries that numbers and bytes of a study depend on."""
    on_torch = config.get("readout", {}).get("device", "cpu") != "cpu"
    libraries = [*_LIBRARIES, *(["torch"] if on_torch else [])]
    if config.get("nuisance", {}).get("language"):
        libraries.append("wordfreq")
    if parser := config.get("mechanisms", {}).get("parser"):
        libraries.append(str(parser).partition(":")[0])
    readers = {dataset.get("reader") for dataset in config.get("datasets", ())}
    if readers - _PLAIN_READERS:
        libraries += [name for name in SIGNAL_LIBRARIES if _version(name) != _MISSING]
    versions = {name: _version(name) for name in libraries}
    return {"python": platform.python_version(), **versions}


def lpact_version() -> str:
    """Version of lpact, or ``not installed`` when it runs from a source tree."""
    return _version("lpact")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return _MISSING


def differences(manifest: Manifest, provenance: Provenance) -> list[str]:
    """What has changed since a run was made, in words; empty if the same run would be made again."""
    made_of = {
        "configuration": (manifest.config_digest, provenance.config_digest),
        "lpact's version": (manifest.lpact_version, lpact_version()),
        "lpact's code": (manifest.lpact_code, code_digest()),
        "plugin packages": (manifest.plugins, provenance.plugins),
        "libraries": (manifest.versions, library_versions(provenance.config)),
    }
    for plugin in sorted(manifest.plugin_code.keys() | provenance.plugin_code.keys()):
        codes = (side.plugin_code.get(plugin, "") for side in (manifest, provenance))
        then, now = (code[:16] or "unknown" for code in codes)
        made_of[f"code of the plugin '{plugin}'"] = (then, now)
    changed = [f"{what}: {then} then, {now} now" for what, (then, now) in made_of.items() if then != now]
    old, new = ({(f.dataset, f.path): f.sha256 for f in side.inputs} for side in (manifest, provenance))
    return changed + [
        f"input file '{path}' of dataset '{dataset}'"
        for dataset, path in sorted(old.keys() | new.keys())
        if old.get((dataset, path)) != new.get((dataset, path))
    ]


def build_manifest(root: Path, provenance: Provenance) -> Manifest:
    """Describe the run under ``root``; every Parquet and CSV file there is hashed."""
    with storage_errors(root, "the tables of the run cannot be read"):
        outputs = tuple(
            OutputFile(path=name, n_bytes=path.stat().st_size, sha256=sha256_file(path))
            for name, path in sorted(_table_files(root).items())
        )
    return Manifest(
        format_version=MANIFEST_FORMAT,
        lpact_version=lpact_version(),
        lpact_code=code_digest(),
        study=provenance.study,
        seed=provenance.seed,
        config=dict(provenance.config),
        config_digest=provenance.config_digest,
        versions=library_versions(provenance.config),
        plugins=provenance.plugins,
        plugin_code=dict(provenance.plugin_code),
        inputs=tuple(sorted(provenance.inputs, key=lambda file: (file.dataset, file.path))),
        outputs=outputs,
    )


def write_manifest(root: Path, manifest: Manifest) -> Path:
    """Write ``root/manifest.json`` atomically: sorted keys, two spaces, a newline at the end."""
    path = root / MANIFEST_NAME
    atomic_write_bytes(path, _canonical_json(manifest.model_dump(mode="json")).encode())
    return path


def read_manifest(root: Path) -> Manifest:
    """Read ``root/manifest.json``; a missing, damaged, edited or newer one is a `RunError`."""
    path = root / MANIFEST_NAME
    if not path.is_file():
        raise RunError(
            "the folder is not a finished run",
            where=str(root),
            got=f"no {MANIFEST_NAME}" if root.is_dir() else "no such folder",
            expected="a run directory that `lpact run` has published",
            remedy="check the path, or run the study to the end",
        )
    with storage_errors(path, "the manifest cannot be read"):
        content = path.read_bytes()
    manifest = parse_record(content, Manifest, MANIFEST_FORMAT, where=str(path), verb="made")
    if json_digest(manifest.config) != manifest.config_digest:
        raise _damaged(str(path), "a configuration that does not match its own digest")
    if (seed := manifest.config.get("seed")) != manifest.seed:
        raise _damaged(str(path), f"seed {manifest.seed}, and {seed} in its configuration")
    return manifest


def parse_record(content: bytes, model: type[R], version: int, *, where: str, verb: str) -> R:
    """Manifest or lock from the bytes of its file; a damaged one, or one of another version, is a `RunError`."""
    try:
        found = json.loads(content)["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(where, f"{type(error).__name__}: {str(error)[:200]}") from None
    if found != version:
        raise RunError(
            f"the run was {verb} by another version of lpact",
            where=where,
            got=f"format version {found}",
            expected=f"format version {version}",
            remedy=f"use the version of lpact by which it was {verb}, or run the study again",
        )
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise _damaged(where, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _table_files(root: Path) -> dict[str, Path]:
    """Parquet and CSV files by relative path; the report's files do not count."""
    with storage_errors(root, "the run directory cannot be read"):
        found = (path for path in root.rglob("*") if path.suffix in (".parquet", ".csv"))
        names = {path.relative_to(root).as_posix(): path for path in found if path.is_file()}
    return {name: path for name, path in names.items() if name.split("/")[0] != REPORT_FOLDER}


def _damaged(where: str, got: str) -> RunError:
    return RunError(
        f"the {Path(where).stem.rpartition(' ')[2]} is damaged",
        where=where,
        got=got,
        expected="the file as lpact wrote it",
        remedy="restore the file from a copy, or run the study again",
    )


def _canonical_json(values: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RunError(
            "the configuration cannot be written as JSON",
            where=MANIFEST_NAME,
            got=str(error),
            expected="text, finite numbers, true or false, lists and tables",
            remedy="fix the option in the study file",
        ) from error
    return text + "\n"


def is_locked(root: Path) -> bool:
    """Whether ``root`` is a locked run; a link of that name counts too."""
    lock, manifest = root / LOCK_FILE, root / MANIFEST_NAME
    return os.path.lexists(lock) and os.path.lexists(manifest)


def refuse_locked(place: str | Path) -> None:
    """Refuse to write at ``place`` if it is a locked run, or in one."""
    target = Path(place).resolve()
    for folder in (target, *target.parents):
        if is_locked(folder):
            raise RunError(
                "the run is locked, and nothing is written into it",
                where=str(place),
                got=f"{LOCK_FILE} in {folder}",
                expected="a place outside of locked runs",
                remedy=f"write elsewhere, or copy the run, make the copy writable and remove {LOCK_FILE} from it",
            )
