"""``ro-crate-metadata.json``: an archive described for people and machines (RO-Crate 1.1).

It is made from the lock and the decision tables, so that the same locked run gives the same bytes. Day and licence are
the only things that are told it.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import polars as pl

from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.archive.bounded_json import read_bounded
from lpact.archive.files import CRATE_FILE
from lpact.archive.lockfile import Lock
from lpact.archive.model import Problem
from lpact.errors import LPactError, RunError
from lpact.store import InputFile, sha256_file
from lpact.store.locked import LOCK_FILE
from lpact.tables import declared_tables

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILE = "https://w3id.org/ro/crate/1.1"
_TERMS = {"sha256": "https://schema.org/sha256"}
_ROOT = "./"
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
_LONGEST = 300
Entity = dict[str, Any]
Tables = Callable[[str], pl.DataFrame | None]


@dataclass(frozen=True)
class Stated:
    """What the lock does not know: the day of publication, and the licence (its address), if there is one."""

    date: str
    licence: str | None = None


def crate_bytes(root: Path, lock: Lock, stated: Stated, table: Tables) -> bytes:
    """The description of the locked run at ``root``; ``table`` gives its tables by name, or None."""
    sealed = lock.sealed
    files = [_file(name, file.n_bytes, file.sha256) for name, file in sorted(sealed.files.items())]
    own = root / LOCK_FILE
    files.append(_file(LOCK_FILE, own.stat().st_size, sha256_file(own)))
    inputs = [_input(file) for file in sealed.inputs]
    outcomes = _outcomes(table)
    graph = [
        _descriptor(),
        _dataset(lock, stated, files, outcomes),
        *files,
        *outcomes,
        _action(lock, inputs),
        _software(lock),
        *inputs,
        *([] if stated.licence is None else [_licence(stated.licence)]),
    ]
    document = {"@context": [CONTEXT, _TERMS], "@graph": graph}
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _descriptor() -> Entity:
    return {
        "@id": CRATE_FILE,
        "@type": "CreativeWork",
        "about": {"@id": _ROOT},
        "conformsTo": {"@id": PROFILE},
    }


def _dataset(lock: Lock, stated: Stated, files: list[Entity], outcomes: list[Entity]) -> Entity:
    sealed = lock.sealed
    said = "; ".join(entity["description"] for entity in outcomes)
    entity: Entity = {
        "@id": _ROOT,
        "@type": "Dataset",
        "name": f"Locked lpact run of the study '{sealed.study}'",
        "description": (
            f"Tables, verdicts and report of a study of language-model-to-brain alignment. {said}. "
            f"Check it with lpact: `lpact verify ARCHIVE --digest {lock.root_digest}`; raw data are not needed."
        ),
        "identifier": f"sha256:{lock.root_digest}",
        "datePublished": stated.date,
        "hasPart": [{"@id": file["@id"]} for file in files],
        "mentions": {"@id": "#run"},
        "variableMeasured": [{"@id": outcome["@id"]} for outcome in outcomes],
    }
    if stated.licence is not None:
        entity["license"] = {"@id": stated.licence}
    return entity


def _file(name: str, n_bytes: int, sha256: str) -> Entity:
    suffix = PurePosixPath(name).suffix
    entity: Entity = {
        "@id": quote(name),
        "@type": "File",
        "name": name,
        "contentSize": str(n_bytes),
        "encodingFormat": _FORMATS.get(suffix, "application/octet-stream"),
        "sha256": sha256,
    }
    table = declared_tables().get(name.removesuffix(suffix))
    if table is not None:
        entity["description"] = table.meaning
    return entity


def _input(file: InputFile) -> Entity:
    """A source file, which the archive does not hold."""
    return {
        "@id": f"#input/{quote(file.dataset, safe='')}/{quote(file.path, safe='')}",
        "@type": "CreativeWork",
        "name": f"{file.dataset}: {file.path}",
        "description": "Source that the run was made from; it is not part of this archive.",
        "identifier": f"sha256:{file.sha256}",
        "contentSize": str(file.n_bytes),
        "sha256": file.sha256,
    }


def _action(lock: Lock, inputs: list[Entity]) -> Entity:
    return {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run of the study '{lock.sealed.study}' (configuration {lock.sealed.config_digest[:12]})",
        "instrument": {"@id": "#lpact"},
        "object": [{"@id": source["@id"]} for source in inputs],
        "result": {"@id": _ROOT},
    }


def _software(lock: Lock) -> Entity:
    software = lock.sealed.software
    return {
        "@id": "#lpact",
        "@type": "SoftwareApplication",
        "name": "lpact",
        "version": software.made_by_version,
        "identifier": f"code {software.made_by_code}",
        "softwareRequirements": [f"{n} {v}" for n, v in sorted(software.made_with.items())],
    }


def _licence(address: str) -> Entity:
    return {
        "@id": address,
        "@type": "CreativeWork",
        "name": address.rsplit("/", 1)[-1] or address,
        "description": "Licence of this archive, as stated by whoever exported it.",
    }


def _outcomes(table: Tables) -> list[Entity]:
    """Outcome and verdicts under every gate profile."""
    outcomes, decisions = table(STUDY_OUTCOME.name), table(DECISIONS.name)
    if outcomes is None or decisions is None:
        raise RunError(
            "the description cannot be made",
            where="decisions",
            got="no readable table of outcomes or decisions",
            expected="both tables",
            remedy="restore the run from a copy",
        )
    return [
        _outcome(profile, outcome, decisions)
        for profile, outcome in outcomes.sort("gate_profile")
        .select("gate_profile", "outcome")
        .iter_rows()
    ]


def _outcome(profile: str, outcome: str, decisions: pl.DataFrame) -> Entity:
    counts = Counter(decisions.filter(gate_profile=profile)["label"].to_list())
    verdicts = ", ".join(f"{n} {label}" for label, n in sorted(counts.items()))
    return {
        "@id": f"#outcome/{quote(profile, safe='')}",
        "@type": "PropertyValue",
        "name": f"Outcome under the gate profile {profile}",
        "value": outcome,
        "description": f"Gate profile {profile}: outcome {outcome}; of {sum(counts.values())} claims {verdicts}",
    }


def check_crate(root: Path, lock: Lock, table: Tables) -> list[Problem]:
    """The description beside a lock: made again, with its own day and licence, and compared."""
    path = root / CRATE_FILE
    try:
        content = read_bounded(path, what="the description cannot be read")
        graph = json.loads(content)["@graph"]
        own = next(entity for entity in graph if entity["@id"] == _ROOT)
        licence = own["license"]["@id"] if "license" in own else None
        stated = Stated(str(own["datePublished"]), licence)
        again = crate_bytes(root, lock, stated, table)
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError, LPactError) as error:
        text = f"{error.what}: {error.got}" if isinstance(error, LPactError) else repr(error)
        return [Problem("crate", CRATE_FILE, f"cannot be compared: {text[:_LONGEST]}")]
    if again == content:
        return []
    from lpact.archive.check_report import first_difference

    what = f"does not describe this run: {first_difference(io.BytesIO(content), io.BytesIO(again))}"
    return [Problem("crate", CRATE_FILE, what)]
