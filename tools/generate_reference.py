"""Write docs/reference from the code; ``--check`` says whether the pages are up to date.

python tools/generate_reference.py [--check] [--out docs/reference]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import re
import sys
import types
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lpact.analyses import BUILT_IN as BUILT_IN_ANALYSES
from lpact.analyses import COMMANDS
from lpact.cli.list import plugin_kinds
from lpact.codes import ALL_CODES
from lpact.config import RunTable, SharedConfig
from lpact.config.study import SlurmConfig
from lpact.features.nuisance import NUISANCE
from lpact.registry import ANALYSES, BUILT_IN, Entry, Registry
from lpact.tables import ENGINE_TABLES, Table

NOTE = "<!-- Made from the code by tools/generate_reference.py; edit the code, not this page. -->"
OUT = Path(__file__).parents[1] / "docs/reference"

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
"""Class attributes of plug-ins that a reader wants to know."""

PUBLIC = (
    "lpact",
    "lpact.responses",
    "lpact.measures",
    "lpact.splits",
    "lpact.ceilings",
    "lpact.stats",
    "lpact.analyses.base",
    "lpact.analyses.explanation",
)
"""Modules whose names are for others to use."""


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
    return table(("option", "type", "default", "meaning"), rows) if rows else ""


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
        "that is not registered is an error that suggests the nearest known name.",
        "Shared tables are at the top; each analysis has one table of its own, and a study asks the questions whose "
        "tables it has (L-PACT's, if it has none). Everything but `[run]` changes numbers and is hashed into the run.",
        "## Top level",
        options_table(SharedConfig),
    ]
    for heading, model in [
        *sections(SharedConfig),
        ("[run]", RunTable),
    ]:
        parts += [f"## `{heading}`", prose(model.__doc__), options_table(model)]
    parts += [
        "## File of `lpact run --slurm`",
        prose(SlurmConfig.__doc__),
        options_table(SlurmConfig),
    ]
    for entry in built_in(ANALYSES):
        parts += [f"## `[{entry.name}]`", prose(entry.plugin.Options.__doc__)]
        parts.append(options_table(entry.plugin.Options))
        for heading, model in sections(entry.plugin.Options, f"{entry.name}."):
            parts += [f"### `{heading}`", prose(model.__doc__), options_table(model)]
    parts += ["## Options of plug-ins", "What each plug-in does is on [its own page](plugins.md)."]
    for kind, (registry, option) in kinds().items():
        for entry in built_in(registry):
            if entry.plugin.Options.model_fields:
                place = f"[{option.rpartition('.')[0]}.options"
                # A dataset or a model has one plug-in, so its options need no name.
                place += "]" if kind in ("datasets", "models") else f".{entry.name}]"
                parts += [
                    f"### {entry.name}",
                    f"In `{place}`:",
                    options_table(entry.plugin.Options),
                ]
    return page("The study file", *(part for part in parts if part))


def kinds() -> dict[str, tuple[Registry[Any], str]]:
    """Kinds of plug-ins, without analyses, which have pages of their own."""
    return {kind: found for kind, found in plugin_kinds().items() if kind != "analyses"}


def built_in(registry: Registry[Any]) -> list[Entry[Any]]:
    """Plugins of this package only: the pages do not depend on what else is installed."""
    return [entry for entry in registry.entries() if entry.origin == BUILT_IN]


def plugins() -> str:
    parts = [
        "Everything that a study file can name. Other packages add to each kind through its entry-point group: see "
        "[how to write a plugin](../how-to/write-a-plugin.md). `lpact list` shows what is installed.",
    ]
    for kind, (registry, option) in plugin_kinds().items():
        base = f"{registry.base.__module__}.{registry.base.__name__}"
        named = "" if kind == "analyses" else f" Named by `{option}`."
        parts += [f"## {kind.capitalize()}"]
        parts += [f"Entry-point group `{registry.group}`, base class `{base}`.{named}"]
        for entry in built_in(registry):
            parts += [f"### {registry.kind} {entry.name}", _plugin(entry)]
    rows = [[f"`{name}`", prose(b.__doc__).split("\n\n")[0]] for name, b in NUISANCE.items()]
    parts += ["## Nuisance features", "Names for `nuisance.include`. They are not plug-ins."]
    return page("Plug-ins and nuisance features", *parts, table(("name", "definition"), rows))


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
    summary = entry.summary[0].upper() + entry.summary[1:] + "." * (not entry.summary.endswith("?"))
    text = prose(entry.plugin.__doc__)
    parts = (text if text.startswith(summary[:-1]) else f"{summary}\n\n{text}", "\n".join(facts))
    return "\n\n".join(part for part in parts if part)


def tables() -> str:
    parts = [
        "Every table of a run directory, and those that other commands make: `<folder>/<name>.parquet`, with a CSV "
        "copy beside it. Rows are sorted by key, and a key is unique. A number that could not be computed is missing, "
        "and the row's `reason` is one of [these codes](codes.md).",
        "## Every run",
        *(part for declared in ENGINE_TABLES for part in _table(declared)),
    ]
    for entry in built_in(ANALYSES):
        parts += [f"## Runs of `{entry.name}`"]
        parts += [part for declared in entry.plugin.tables for part in _table(declared)]
        if entry.plugin.other_tables:
            commands = listing([f"lpact {name}" for name in entry.plugin.commands])
            parts += [
                f"## Other tables of `{entry.name}`",
                f"Made by its own commands: {commands}.",
            ]
            parts += [part for declared in entry.plugin.other_tables for part in _table(declared)]
    return page("Tables", *parts)


def _table(declared: Table) -> list[str]:
    decided = [c.name for c in declared.columns if c.decided]
    by_decision = f" Filled by the decision: {listing(decided)}." if decided else ""
    rows = [[f"`{c.name}`", c.dtype, c.unit, "yes" if c.nullable else "", c.meaning] for c in declared.columns]
    return [
        f"### {declared.name}",
        declared.meaning,
        f"Key: {listing(declared.key)}.{by_decision}",
        table(("column", "type", "unit", "may be missing", "meaning"), rows),
    ]


def listing(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def codes() -> str:
    parts = ["Every label, gate, reason and outcome that a table can hold."]
    for family in ALL_CODES:
        rows = [[f"`{member.value}`", member.explanation] for member in family]
        parts += [f"## {family.__name__}", prose(family.__doc__), table(("code", "meaning"), rows)]
    for entry in built_in(ANALYSES):
        claims = entry.plugin.claims
        if not {*claims.labels} <= {member.value for family in ALL_CODES for member in family}:
            said = {**claims.labels, **claims.gate_meanings}
            rows = [[f"`{code}`", meaning] for code, meaning in said.items()]
            parts += [f"## Labels and gates of {entry.name}", table(("code", "meaning"), rows)]
    return page("Codes", *parts)


def cli() -> str:
    import typer

    from lpact.cli import SHARED, app

    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    parts = [prose(group.help), "## lpact", _parameters(group)]
    own = [name for analysis in BUILT_IN_ANALYSES for name in COMMANDS[analysis]]
    for top in (*SHARED, *own):
        for name, command in _commands(top, group.get_command(context, top)):
            parts += [f"## lpact {name}", f"`{_usage(name, command)}`", prose(command.help)]
            parts.append(_parameters(command))
    for analysis in BUILT_IN_ANALYSES:
        parts += [f"## lpact {analysis} (analysis)", f"`lpact {analysis} STUDY [OPTIONS]`"]
        parts.append(f"Run the analysis `{analysis}` of a study alone; the options are those of `lpact run`.")
    return page("The command line", *(part for part in parts if part))


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command with its full name, or the commands of a group."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for inner, found in command.commands.items():
        yield from _commands(f"{name} {inner}", found)


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


def api() -> str:
    parts = [
        "Names for scripts, notebooks and plug-ins. Everything else may change without notice.",
    ]
    for module_name in PUBLIC:
        if importlib.util.find_spec(module_name) is None:
            continue
        module = importlib.import_module(module_name)
        parts += [f"## {module_name}", prose(inspect.getdoc(module)).split("\n\n")[0]]
        for name in _public_names(module):
            member = getattr(module, name)
            if inspect.isclass(member) or inspect.isroutine(member):
                parts += [f"### {module_name}.{name}", *_member(name, member)]
    return page("Python", *parts)


def _public_names(module: types.ModuleType) -> list[str]:
    """The names that a module lists, or the classes and functions that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, member in vars(module).items()
        if not name.startswith("_") and getattr(member, "__module__", "") == module.__name__
    ]


def _member(name: str, member: Any) -> Iterator[str]:
    """Signature and first paragraph of a function or class; a line for each method of a class."""
    yield f"```text\n{name}{_signature(member)}\n```"
    yield prose(inspect.getdoc(member)).split("\n\n")[0]
    if not inspect.isclass(member) or issubclass(member, BaseModel):
        return
    rows = []
    stored = [base for base in member.__mro__[1:] if base.__module__.startswith("lpact.store.")]
    # What `Run` inherits is documented with it; bases of measures and estimators have entries of their own.
    for own, value in (item for base in (*stored, member) for item in vars(base).items()):
        if own.startswith("_") or not (callable(value) or _is_method(value)):
            continue
        call = getattr(value, "__func__", value)
        shown = f"{own}{_signature(call)}" if callable(call) else own
        rows.append([f"`{shown}`", prose(inspect.getdoc(value)).split("\n\n")[0]])
    if rows:
        yield table(("method or property", "meaning"), rows)


def _is_method(value: object) -> bool:
    return isinstance(value, property | classmethod | cached_property)


def _signature(member: Any) -> str:
    """Arguments with their defaults; annotations are left to the code."""
    parameters = inspect.signature(member).parameters.values()
    kept = [p.replace(annotation=p.empty) for p in parameters if p.name not in ("self", "cls")]
    return re.sub(r"<[^=,]* at 0x[0-9a-f]+>", "…", str(inspect.Signature(kept)))


PAGES = {
    "study-file.md": study_file,
    "tables.md": tables,
    "codes.md": codes,
    "plugins.md": plugins,
    "cli.md": cli,
    "api.md": api,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
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
