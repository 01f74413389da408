"""Everything on disk: declared tables, their manifest, and run directories. Nothing is pickled."""

from __future__ import annotations

from lpact.store._disk import atomic_write, atomic_write_bytes, sha256_file, storage_errors
from lpact.store._lock import FolderLock
from lpact.store.checks import concat, validate
from lpact.store.files import csv_rows, read_table, table_path, write_table
from lpact.store.frames import empty, frame, frame_from_columns, polars_schema
from lpact.store.manifest import (
    SIGNAL_LIBRARIES,
    InputFile,
    Manifest,
    OutputFile,
    Provenance,
    build_manifest,
    code_digest,
    differences,
    read_manifest,
    verify_outputs,
    write_manifest,
)
from lpact.store.rundir import RunWriter
from lpact.store.stored import RunState, RunTables, StoredRun, existing_run
from lpact.store.tasks import TaskStore

__all__ = [
    "SIGNAL_LIBRARIES",
    "FolderLock",
    "InputFile",
    "Manifest",
    "OutputFile",
    "Provenance",
    "RunState",
    "RunTables",
    "RunWriter",
    "StoredRun",
    "TaskStore",
    "atomic_write",
    "atomic_write_bytes",
    "build_manifest",
    "code_digest",
    "concat",
    "csv_rows",
    "differences",
    "empty",
    "existing_run",
    "frame",
    "frame_from_columns",
    "polars_schema",
    "read_manifest",
    "read_table",
    "sha256_file",
    "storage_errors",
    "table_path",
    "validate",
    "verify_outputs",
    "write_manifest",
    "write_table",
]
