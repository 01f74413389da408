"""``ro-crate-metadata.json``: an archive described for people and machines (RO-Crate 1.1).

The description is made from the lock and the tables, so that the same locked run gives the same bytes. Only the day of
publication and the licence are added.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import polars as pl

from lpact.analyses.base import Analysis, Material
from lpact.analyses.explanation import Outcome
from lpact.archive.lock import CRATE_FILE, Lock, read_limited
from lpact.archive.problems import Problem, first_difference
from lpact.config import StudyConfig
from lpact.errors import LPactError
from lpact.registry import ANALYSES
from lpact.store import sha256_file
from lpact.store.manifest import LOCK_FILE
from lpact.tables import declared_tables

VERSION = "1.1"
_FORMATS = {
    ".bib": "application/x-bibtex",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
    ".toml": "application/toml",
}
Tables = Mapping[str, pl.DataFrame]


def crate_bytes(root: Path, lock: Lock, study: StudyConfig, tables: Tables, date: str, licence: str | None) -> bytes:
    """The description of the locked run at ``root``; the lock has no day of publication and no URL of a licence."""
    from rocrate.rocrate import ContextEntity, ROCrate

    content = lock.content
    crate = ROCrate(version=VERSION)
    crate.metadata.extra_terms["sha256"] = "https://schema.org/sha256"

    def add(place: str, kind: str, /, **properties: Any) -> Any:
        return crate.add(ContextEntity(crate, place, {"@type": kind, **properties}))

    for name, file in sorted(content.files.items()):
        _add_file(crate, name, file.n_bytes, file.sha256)
    own = root / LOCK_FILE
    _add_file(crate, LOCK_FILE, own.stat().st_size, sha256_file(own))
    outcomes = [
        add(identifier, "PropertyValue", **properties)
        for name, section in study.analyses.items()
        for identifier, properties in _outcomes(ANALYSES.get(name)(section), study, tables)
    ]
    sources = [
        add(
            f"#input/{quote(file.dataset, safe='')}/{quote(file.path, safe='')}",
            "CreativeWork",
            name=f"{file.dataset}: {file.path}",
            description="Source file of the run; not part of this archive.",
            identifier=f"sha256:{file.sha256}",
            contentSize=str(file.n_bytes),
            sha256=file.sha256,
        )
        for file in content.inputs
    ]
    software = add(
        "#lpact",
        "SoftwareApplication",
        name="lpact",
        version=content.software.made_by_version,
        identifier=f"code {content.software.made_by_code}",
        softwareRequirements=[f"{n} {v}" for n, v in sorted(content.software.made_with.items())],
    )
    action = add(
        "#run",
        "CreateAction",
        name=f"Run of the study '{content.study}' (configuration {content.config_digest[:12]})",
        instrument=software,
        object=sources,
        result=crate.root_dataset,
    )
    dataset = crate.root_dataset
    dataset["name"] = f"Locked lpact run of the study '{content.study}'"
    said = " ".join(outcome["description"] for outcome in outcomes)
    dataset["description"] = (
        f"Tables, results and report of a study of language models and the brain. {said} Verify it with lpact, without "
        f"the raw data: `lpact verify ARCHIVE --digest {lock.root_digest}`."
    )
    dataset["identifier"] = f"sha256:{lock.root_digest}"
    dataset["datePublished"] = date
    dataset["mentions"] = action
    dataset["variableMeasured"] = outcomes
    if licence is not None:
        short = licence.rsplit("/", 1)[-1] or licence
        dataset["license"] = add(licence, "CreativeWork", name=short)
    document = json.dumps(crate.metadata.generate(), indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False)
    return f"{document}\n".encode()


def _add_file(crate: Any, name: str, n_bytes: int, sha256: str) -> None:
    suffix = PurePosixPath(name).suffix
    properties = {
        "name": name,
        "contentSize": str(n_bytes),
        "encodingFormat": _FORMATS.get(suffix, "application/octet-stream"),
        "sha256": sha256,
    }
    table = declared_tables().get(name.removesuffix(suffix))
    if table is not None:
        properties["description"] = table.meaning
    crate.add_file(None, dest_path=name, properties=properties)


def _outcomes(analysis: Analysis, study: StudyConfig, tables: Tables) -> Iterator[tuple[str, dict[str, Any]]]:
    """Outcome and labels of an analysis, one per profile."""
    claims = tables[analysis.claims.table.name]
    # An analysis without outcomes of the whole study has its labels counted.
    for outcome in analysis.conclude(Material(tables, study)).outcomes or (Outcome("", ""),):
        rows = claims.filter(gate_profile=outcome.profile) if outcome.profile else claims
        counts = Counter(rows["label"].to_list())
        named = ", ".join(f"{counts[label]} {label}" for label in sorted(counts))
        place = f"{analysis.name}, {outcome.profile}" if outcome.profile else analysis.name
        result = f"outcome {outcome.code}; " if outcome.code else ""
        identifier = f"#outcome/{quote(analysis.name, safe='')}/{quote(outcome.profile, safe='')}"
        yield (
            identifier.removesuffix("/"),
            {
                "name": f"Outcome ({place})",
                "value": outcome.code or named,
                "description": f"{place}: {result}{rows.height} claims: {named}.",
            },
        )


def check_crate(root: Path, lock: Lock, study: StudyConfig, tables: Tables) -> list[Problem]:
    """Compare the description next to a lock with a new one of the same day and licence."""
    try:
        content = read_limited(root / CRATE_FILE)
        graph = {entity["@id"]: entity for entity in json.loads(content)["@graph"]}
        licence = graph["./"]["license"]["@id"] if "license" in graph["./"] else None
        day = str(graph["./"]["datePublished"])
        again = crate_bytes(root, lock, study, tables, day, licence)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return [Problem("crate", CRATE_FILE, f"cannot be compared: {repr(error)[:300]}")]
    except LPactError as error:
        return [Problem("crate", CRATE_FILE, f"cannot be compared: {error.what}: {error.got}")]
    if again == content:
        return []
    found = first_difference(io.BytesIO(content), io.BytesIO(again))
    return [Problem("crate", CRATE_FILE, f"does not describe this run: {found}")]
