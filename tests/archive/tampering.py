"""Ways to tamper with a run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from lpact.archive.lock import Content, lock_bytes, make_lock, read_lock
from lpact.store import read_table, write_table
from lpact.tables import find_table
from lpact.validation import json_digest


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def writable_copy(run: Path, target: Path) -> Path:
    shutil.copytree(run, target)
    for folder, _, files in os.walk(target):
        os.chmod(folder, 0o755)
        for name in files:
            os.chmod(Path(folder) / name, 0o644)
    return target


def edit_table(root: Path, name: str, edit: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Change a table in both of its files, as lpact would write it."""
    table = find_table(name)
    frame = edit(read_table(root, table))
    write_table(frame, table, root)
    return frame


def edit_parquet(root: Path, name: str, edit: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Change the Parquet file alone."""
    table = find_table(name)
    frame = edit(read_table(root, table))
    pq.write_table(frame.to_arrow(), root / f"{table.name}.parquet")
    return frame


def edit_manifest(root: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    path = root / "manifest.json"
    values = json.loads(path.read_text())
    edit(values)
    path.write_text(json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False) + "\n")


def rehash_manifest(root: Path) -> None:
    """Make the manifest match the tables and its configuration as they are now."""

    def edit(values: dict[str, Any]) -> None:
        for output in values["outputs"]:
            path = root / output["path"]
            output |= {"n_bytes": path.stat().st_size, "sha256": sha256(path)}
        values["config_digest"] = json_digest(values["config"])

    edit_manifest(root, edit)


def rehash_lock(root: Path) -> str:
    """Make the lock match everything as it is now; returns the new root digest."""
    lock = read_lock(root)
    values = lock.content.model_dump(mode="json")
    manifest = json.loads((root / "manifest.json").read_text())
    values |= {name: manifest[name] for name in ("config", "config_digest", "inputs", "seed")}
    for name, file in values["files"].items():
        file |= {"n_bytes": (root / name).stat().st_size, "sha256": sha256(root / name)}
    again = make_lock(Content.model_validate_json(json.dumps(values)), locked_on=lock.locked_on)
    (root / "lock.json").write_bytes(lock_bytes(again))
    return again.root_digest
