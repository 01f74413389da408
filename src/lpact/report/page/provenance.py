"""How a run was made, for the page: options, inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lpact.report.values import size
from lpact.store import Manifest


def options(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every option by its dotted path, with its value."""
    return list(_flat(config, ""))


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, own in value.items():
            yield from _flat(own, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and all(isinstance(own, Mapping) for own in value):
        for place, own in enumerate(value):
            yield from _flat(own, f"{path}[{own.get('name', place)}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def inputs(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    """Dataset, path, size and checksum of every source file."""
    return [(f.dataset, f.path, size(f.n_bytes), f.sha256) for f in manifest.inputs]


def outputs(manifest: Manifest) -> list[tuple[str, str, str]]:
    """Path, size and checksum of every table file."""
    return [(f.path, size(f.n_bytes), f.sha256) for f in manifest.outputs]
