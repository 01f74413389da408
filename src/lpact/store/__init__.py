"""Everything on disk: declared tables, their manifest, and run directories. Nothing is pickled."""

from __future__ import annotations

from lpact.store.code import code_digest
from lpact.store.disk import (
    FolderLock,
    atomic_write,
    atomic_write_bytes,
    holder,
    refuse_held,
    sha256_file,
    storage_errors,
)
from lpact.store.files import csv_rows, read_table, table_path, write_table
from lpact.store.frames import (
    concat,
    empty,
    frame,
    frame_from_columns,
    polars_schema,
    validate,
)
from lpact.store.manifest import (
    SIGNAL_LIBRARIES,
    InputFile,
    Manifest,
    OutputFile,
    Provenance,
    build_manifest,
    differences,
    library_versions,
    read_manifest,
    write_manifest,
)
from lpact.store.rundir import (
    LazyTables,
    RunTables,
    RunWriter,
    StoredRun,
    clear_leftovers,
    existing_run,
    partial_folder,
    refuse_foreign,
    refuse_other_run,
)
from lpact.store.tasks import MemoryTasks, Results, TaskStore

__all__ = [
    "SIGNAL_LIBRARIES",
    "FolderLock",
    "InputFile",
    "LazyTables",
    "Manifest",
    "MemoryTasks",
    "OutputFile",
    "Provenance",
    "Results",
    "RunTables",
    "RunWriter",
    "StoredRun",
    "TaskStore",
    "atomic_write",
    "atomic_write_bytes",
    "build_manifest",
    "clear_leftovers",
    "code_digest",
    "concat",
    "csv_rows",
    "differences",
    "empty",
    "existing_run",
    "frame",
    "frame_from_columns",
    "holder",
    "library_versions",
    "partial_folder",
    "polars_schema",
    "read_manifest",
    "read_table",
    "refuse_foreign",
    "refuse_held",
    "refuse_other_run",
    "sha256_file",
    "storage_errors",
    "table_path",
    "validate",
    "write_manifest",
    "write_table",
]
