"""Write docs/reference from the code; ``--check`` says whether the pages are up to date.

python tools/generate_reference.py [--check] [--out docs/reference]
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import types
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.strip import STRIPPINGS
from lpact.analyses.lpact.tables.predictive import FAILURE_MODES
from lpact.codes import ALL_CODES
from lpact.config import RunConfig, StudyConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS
from lpact.features.mechanisms import MECHANISMS
from lpact.features.models import MODELS
from lpact.features.nuisance import NUISANCE
from lpact.measures import MEASURES
from lpact.registry import BUILT_IN, Entry, Registry
from lpact.tables import (
    Table,
    assay_brain,
    assay_stimulus,
    calibration,
    claim_audit,
    declared_tables,
    power,
    preregistration,
    robustness,
)

NOTE = "<!-- Made from the code by tools/generate_reference.py; edit the code, not this page. -->"
OUT = Path(__file__).parents[1] / "docs/reference"

KINDS: tuple[tuple[str, Registry[Any], str], ...] = (
    ("Datasets", DATASETS, "[datasets.options]"),
    ("Models", MODELS, "[models.options]"),
    ("Controls", CONTROLS, "[controls.options.{name}]"),
    ("Measures", MEASURES, "[relational.options.{name}]"),
    ("Profiles", PROFILES, ""),
    ("Mechanisms", MECHANISMS, "[mechanisms.options.{name}]"),
    ("Strippings", STRIPPINGS, "[stripping.options.{name}]"),
)
"""Title, registry, and the table of the study file that holds a plugin's options (empty: it has none)."""

FACTS = {
    "needs": "needs",
    "random": "random draws",
    "counted": "counted by the `paper` gate profile",
    "needs_path": "read from a folder (`[run.paths]`)",
    "scope": "one number per",
    "symmetric": "symmetric",
    "needs_fit": "fitted on training stimuli",
    "from_readout": "taken from the readout of level 1",
    "uses_mechanism": "depends on the mechanism",
}
"""Class attributes of plugins that a reader wants to know."""

FILLED_BY = {
    "audits": "the source audit",
    "controls": "the source audit",
    "predictive": "level 1",
    "relational": "level 2",
    "causal": "level 3",
    "ceilings": "level 4",
    "decisions": "the decision",
}
MADE_BY = {
    table.name: command
    for module, command in (
        (assay_brain, "the positive controls, `lpact run` or `lpact assay`"),
        (assay_stimulus, "the positive controls, `lpact run` or `lpact assay`"),
        (preregistration, "`lpact run`, where the study was preregistered"),
        (claim_audit, "`lpact claims`"),
        (robustness, "`lpact robustness`"),
        (calibration, "`lpact calibrate`"),
        (power, "`lpact power`"),
    )
    for table in module.TABLES
}
"""Tables that are no part of the levels."""


# --- Markdown ----------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; cells may hold anything."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell(c) for c in line) + " |" for line in lines)


def cell(text: str) -> str:
    """Text that stays in its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def page(title: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", NOTE, *(p.strip() for p in parts))) + "\n"


def prose(docstring: str | None) -> str:
    """A docstring as Markdown: reST literals become code spans, subscripts stay what they are."""
    parts = inspect.cleandoc(docstring or "").replace("``", "`").split("`")
    # Text outside code spans is at even places.
    parts[::2] = [re.sub(r"([_*<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


# --- Options -----------------------------------------------------------------------------------


PLAIN = {str: "text", int: "integer", float: "number", bool: "`true` or `false`"}


def describe(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """An option's type in words, with its bounds."""
    bounds = list(_bounds(metadata))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return describe(arguments[0], [*annotation.__metadata__, *metadata])
    if origin is Literal:
        words = "one of " + ", ".join(f"`{json.dumps(a)}`" for a in arguments)
    elif origin in (Union, types.UnionType):
        kinds = [describe(a) for a in arguments if a is not type(None)]
        words = " or ".join(kinds) + (", or unset" if type(None) in arguments else "")
    elif origin is tuple:
        inner = describe(arguments[0])
        words = f"list, each {inner}" if inner not in PLAIN.values() else f"list of {inner}s"
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        words = "one of " + ", ".join(f"`{member.value}`" for member in annotation)
    elif origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        words = "table"
    else:
        words = PLAIN[annotation]
    return words + (f" ({', '.join(bounds)})" if bounds else "")


def _bounds(metadata: Sequence[Any]) -> Iterator[str]:
    signs = {"gt": "> {}", "ge": "≥ {}", "lt": "< {}", "le": "≤ {}", "min_length": "at least {}"}
    signs |= {"max_length": "at most {} long", "pattern": "like `{}`"}
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from _bounds(item.metadata)
        for name, sign in signs.items():
            if (value := getattr(item, name, None)) is not None:
                yield sign.format(f"{value:g}" if isinstance(value, float) else value)


def default(field: FieldInfo) -> str:
    """An option's default, as TOML."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    if value is None:
        return "unset"
    return f"`{toml(value)}`"


def toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def options_table(model: type[BaseModel]) -> str:
    rows = [
        [f"`{name}`", describe(f.annotation, f.metadata), default(f), f.description or ""]
        for name, f in model.model_fields.items()
        if section_of(f) is None
    ]
    return table(("option", "type", "default", "meaning"), rows)


def section_of(field: FieldInfo) -> tuple[type[BaseModel], bool] | None:
    """The section that a field holds, and whether it is an array of them; None for a plain option."""
    candidates = (field.annotation, *get_args(field.annotation))
    models = [a for a in candidates if isinstance(a, type) and issubclass(a, BaseModel)]
    return (models[0], get_origin(field.annotation) is tuple) if models else None


def sections(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Every table of the study file with its heading, parents first."""
    for name, field in model.model_fields.items():
        if (found := section_of(field)) is not None:
            inner, is_array = found
            yield (f"[[{prefix}{name}]]" if is_array else f"[{prefix}{name}]"), inner
            yield from sections(inner, f"{prefix}{name}.")


# --- Pages -------------------------------------------------------------------------------------


def study_file() -> str:
    parts = [
        "One TOML file describes a study. `lpact init` writes a commented one. An unknown key, a wrong type or a name "
        "that is not registered is an error that names the nearest known one.",
        "Everything but `[run]` changes numbers, and is hashed into the run.",
        "## Top level",
        options_table(StudyConfig),
    ]
    all_sections: list[tuple[str, type[BaseModel]]] = [*sections(StudyConfig), ("[run]", RunConfig)]
    for heading, model in all_sections:
        parts += [f"## `{heading}`", prose(model.__doc__), options_table(model)]
    parts += ["## Options of plugins", "What each plugin does is on [its own page](plugins.md)."]
    for title, registry, place in KINDS:
        for entry in built_in(registry):
            fields = entry.plugin.Options.model_fields
            if fields and not place:
                raise ValueError(f"{title} take no options, but '{entry.name}' declares some")
            if fields:
                parts += [f"### {entry.name}", f"In `{place.format(name=entry.name)}`:"]
                parts.append(options_table(entry.plugin.Options))
    return page("The study file", *parts)


def built_in(registry: Registry[Any]) -> list[Entry[Any]]:
    """Plugins of this package only: the pages do not depend on what else is installed."""
    return [entry for entry in registry.entries() if entry.origin == BUILT_IN]


def plugins() -> str:
    parts = [
        "Everything that a study file can name. Other packages add to each kind through its entry-point group: see "
        "[how to write a plugin](../how-to/write-a-plugin.md). `lpact list` shows what is installed.",
    ]
    for title, registry, _ in KINDS:
        base = f"{registry.base.__module__}.{registry.base.__name__}"
        parts += [f"## {title}", f"Entry-point group `{registry.group}`, base class `{base}`."]
        for entry in built_in(registry):
            parts += [f"### {title[:-1].lower()} {entry.name}", _plugin(entry)]
    rows = [[f"`{name}`", prose(b.__doc__).split("\n\n")[0]] for name, b in NUISANCE.items()]
    parts += ["## Nuisance features", "Names for `nuisance.include`. They are not plugins."]
    return page("Plugins and nuisance features", *parts, table(("name", "definition"), rows))


def _plugin(entry: Entry[Any]) -> str:
    facts = []
    for attribute, label in FACTS.items():
        value = getattr(entry.plugin, attribute, None)
        if value is not None:
            shown = value if isinstance(value, str) else ("yes" if value else "no")
            facts.append(f"- {label}: {shown}")
    names = entry.plugin.Options.model_fields
    if names:
        facts.append(f"- [options](study-file.md#{entry.name}): {listing(list(names))}")
    summary = entry.summary[0].upper() + entry.summary[1:] + "."
    text = prose(entry.plugin.__doc__)
    parts = (text if text.startswith(summary[:-1]) else f"{summary}\n\n{text}", "\n".join(facts))
    return "\n\n".join(part for part in parts if part)


def tables() -> str:
    parts = [
        "Every table of a run directory, and those that other commands make: `<folder>/<name>.parquet`, with a CSV "
        "twin beside it. Rows are sorted by key, "
        "and a key is unique. A number that could not be computed is missing, and the row's `reason` is one of "
        "[these codes](codes.md).",
        "What the decision fills can be made again from the other columns: `lpact decide`.",
    ]
    for declared in declared_tables().values():
        parts += [f"## {declared.name}", declared.meaning]
        parts.append(f"Key: {listing(declared.key)}. {filled_by(declared)}")
        rows = [
            [f"`{c.name}`", c.dtype, c.unit, "yes" if c.nullable else "", c.meaning]
            for c in declared.columns
        ]
        parts.append(table(("column", "type", "unit", "may be missing", "meaning"), rows))
    return page("Tables", *parts)


def filled_by(declared: Table) -> str:
    """Who fills a table, and which columns the decision adds."""
    if declared is FAILURE_MODES:
        return "Filled by the decision."
    level = MADE_BY.get(declared.name) or FILLED_BY[declared.name.split("/")[0]]
    decided = [c.name for c in declared.columns if c.decided]
    return f"Filled by {level}" + (f"; {listing(decided)} by the decision." if decided else ".")


def listing(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def codes() -> str:
    parts = ["Every label, gate, reason and outcome that a table can hold."]
    for family in ALL_CODES:
        rows = [[f"`{member.value}`", member.explanation] for member in family]
        parts += [f"## {family.__name__}", prose(family.__doc__), table(("code", "meaning"), rows)]
    return page("Codes", *parts)


def cli() -> str:
    import typer

    from lpact.cli import app

    group: Any = typer.main.get_command(app)
    parts = [prose(group.help), "## lpact", _parameters(group)]
    for name, command in _commands(group):
        parts += [f"## lpact {name}", f"`{_usage(name, command)}`", prose(command.help)]
        parts.append(_parameters(command))
    return page("The command line", *(part for part in parts if part))


def _commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Commands with their full names; those of a group stand for it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{above}{name} ")
        else:
            yield above + name, command


def _usage(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    words = [p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments]
    has_options = any(p.param_type_name == "option" and p.name != "help" for p in command.params)
    return " ".join(["lpact", name, *words, *(["[OPTIONS]"] if has_options else [])])


def _parameters(command: Any) -> str:
    hints = get_type_hints(command.callback)
    rows = []
    for p in command.params:
        is_argument = p.param_type_name == "argument"
        if p.name == "help":
            continue
        names = p.name.upper() if is_argument else ", ".join([*p.opts, *p.secondary_opts])
        value = p.default.value if isinstance(p.default, Enum) else p.default
        shown = "" if value in (None, False, ()) else f"`{value}`"
        kind = "" if getattr(p, "is_flag", False) else _kind(hints[p.name])
        meaning = (p.help or "") + (f" Also set by `{p.envvar}`." if p.envvar else "")
        rows.append([f"`{names}`", kind, "required" if p.required else shown, meaning])
    return table(("argument or option", "type", "default", "meaning"), rows) if rows else ""


def _kind(hint: Any) -> str:
    inner = [a for a in get_args(hint) if a is not type(None)] or [hint]
    if get_origin(hint) is list:
        return _kind(inner[0]) + ", repeatable"
    if get_origin(inner[0]) is list:
        return _kind(inner[0])
    return {Path: "path"}.get(inner[0]) or describe(inner[0])


PAGES = {
    "study-file.md": study_file,
    "tables.md": tables,
    "codes.md": codes,
    "plugins.md": plugins,
    "cli.md": cli,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a page is stale"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pages")
    arguments = parser.parse_args()
    stale = []
    for name, make in PAGES.items():
        path, text = arguments.out / name, make()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not arguments.check:
            arguments.out.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(("stale: " if arguments.check else "written: ") + ", ".join(stale))
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
