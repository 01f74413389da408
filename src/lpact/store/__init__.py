"""Everything on disk: declared tables, their manifest, and run directories. Nothing is pickled."""

from __future__ import annotations

from lpact.store.code import code_digest as code_digest
from lpact.store.disk import (
    FolderLock as FolderLock,
    atomic_write as atomic_write,
    atomic_write_bytes as atomic_write_bytes,
    file_state as file_state,
    holder as holder,
    refuse_held as refuse_held,
    sha256_file as sha256_file,
    storage_errors as storage_errors,
)
from lpact.store.frames import (
    concat as concat,
    csv_rows as csv_rows,
    empty as empty,
    frame as frame,
    frame_from_columns as frame_from_columns,
    polars_schema as polars_schema,
    read_table as read_table,
    table_path as table_path,
    validate as validate,
    write_table as write_table,
)
from lpact.store.manifest import (
    SIGNAL_LIBRARIES as SIGNAL_LIBRARIES,
    InputFile as InputFile,
    Manifest as Manifest,
    OutputFile as OutputFile,
    Provenance as Provenance,
    build_manifest as build_manifest,
    differences as differences,
    library_versions as library_versions,
    read_manifest as read_manifest,
    write_manifest as write_manifest,
)
from lpact.store.rundir import (
    LazyTables as LazyTables,
    RunTables as RunTables,
    RunWriter as RunWriter,
    StoredRun as StoredRun,
    clear_leftovers as clear_leftovers,
    existing_run as existing_run,
    partial_folder as partial_folder,
    refuse_foreign as refuse_foreign,
    refuse_other_run as refuse_other_run,
)
from lpact.store.tasks import MemoryTasks as MemoryTasks, Results as Results, TaskStore as TaskStore
