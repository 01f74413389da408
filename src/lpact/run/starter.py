"""The text of the starter study file, made from the configuration models, so that it has every option.

Explanations are ``# like this``; an option at its default is ``#key = value``, to be changed without the ``#``.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lpact.config import DatasetConfig, GridConfig, LanguageModelConfig, PreprocessConfig, RunTable, SharedConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS
from lpact.registry import ANALYSES, Registry, resolve

WIDTH = 100

_FIRST_OPTIONS = {
    "n_subjects": 3,
    "n_runs": 1,
    "n_stories": 4,
    "sentences_per_story": 10,
    "n_units": 12,
}
EXAMPLES: tuple[dict[str, Any], ...] = (
    {
        "name": "first",
        "reader": "simulated",
        "role": "primary",
        "grid": {"lags_ms": (100.0, 200.0)},
        "options": _FIRST_OPTIONS,
    },
    {
        "name": "second",
        "reader": "simulated",
        "role": "secondary",
        "grid": {"lags_ms": (100.0, 200.0)},
        "options": {**_FIRST_OPTIONS, "truths": ("drift", "lexical")},
    },
)
MODELS: tuple[dict[str, Any], ...] = (
    {"name": "integrated", "layers": (2,)},
    {"name": "drift", "layers": (2,)},
)
SHARED: dict[str, dict[str, Any]] = {"controls": {"draws": 3}}
"""Shared options that differ from their default, so that the file runs in seconds."""


def starter_text(analyses: Sequence[str] = ("lpact",)) -> str:
    """A study file that runs as it is: shared tables, then those of the analyses, with every option explained."""
    lines = [
        *_prose("A study: what is computed, and how. `lpact plan` shows what a run would cost."),
        *_prose(
            "Options that start with `#` are at their default; remove the `#` to change one. "
            "Everything above [run] changes numbers and is hashed into the run."
        ),
        "",
    ]
    fields = dict(SharedConfig.model_fields)
    lines += _options({n: fields.pop(n) for n in ("name", "seed")}, {"name": "first-study"})
    chosen = [ANALYSES.get(name, where="lpact init") for name in analyses]
    study = chosen[0].starter_study or {"datasets": EXAMPLES, "models": MODELS}
    lines += _datasets(fields.pop("datasets"), study["datasets"])
    lines += _models(fields.pop("models"), study["models"])
    used = frozenset[str]().union(*(analysis.uses for analysis in chosen))
    for name, field in fields.items():
        if name in ("controls", "mechanisms") and chosen[0].starter_study and name not in used:
            continue
        lines += _section(name, _model_of(field), SHARED.get(name, {}))
        lines += _plugin_options(f"{name}.options", CONTROLS) if name == "controls" else []
    for name in analyses:
        lines += _analysis(name)
    lines += _section("run", RunTable, {})
    return "\n".join(lines).rstrip() + "\n"


def _analysis(name: str) -> list[str]:
    """The tables of one analysis, and the options of its plug-ins."""
    analysis = ANALYSES.get(name, where="lpact init")
    lines = _section(name, analysis.Options, analysis.starter)
    for place, option in analysis.kinds.values():
        table = option.rpartition(".")[0]
        lines += _plugin_options(f"{name}.{table}.options" if table else f"{name}.options", resolve(place))
    return lines


def _datasets(field: FieldInfo, examples: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first dataset with every option explained, the others with theirs alone."""
    lines = ["", *_prose(_explained(field))]
    tables = ("preprocess", "grid", "options")
    own = {n: f for n, f in DatasetConfig.model_fields.items() if n not in tables}
    for i, values in enumerate(examples):
        first = i == 0
        lines += ["", "[[datasets]]", *_options(own, values, explain=first)]
        for table, fields in (
            ("preprocess", PreprocessConfig.model_fields),
            ("grid", GridConfig.model_fields),
            ("options", DATASETS.get(values["reader"]).Options.model_fields),
        ):
            if not first and table not in values:
                continue
            explained = _explained(DatasetConfig.model_fields[table])
            lines += ["", *(_prose(explained) if first else []), f"[datasets.{table}]"]
            lines += _options(fields, values.get(table, {}), explain=first)
    return lines


def _models(field: FieldInfo, examples: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["", *_prose(_explained(field))]
    for i, values in enumerate(examples):
        lines += ["", "[[models]]"]
        lines += _options(LanguageModelConfig.model_fields, values, explain=i == 0)
    return lines


def _section(name: str, model: type[BaseModel], values: Mapping[str, Any]) -> list[str]:
    """One table of the file and its sub-tables; the first line of the model's docstring says what it is."""
    fields = model.model_fields.items()
    tables = {n: f for n, f in fields if f.default_factory is dict or _is_section(f)}
    plain = {n: f for n, f in fields if n not in tables}
    lines = ["", *_prose(_summary(model)), f"[{name}]", *_options(plain, values)]
    for table, field in tables.items():
        if _is_section(field):
            lines += _section(f"{name}.{table}", _model_of(field), values.get(table, {}))
        else:
            lines += ["", *_prose(_explained(field)), f"#[{name}.{table}]"]
    return lines


def _plugin_options(table: str, registry: Registry[Any]) -> list[str]:
    lines: list[str] = []
    for entry in registry.entries():
        fields = entry.plugin.Options.model_fields
        if fields:
            lines += ["", f"#[{table}.{entry.name}]", *_options(fields, {})]
    return lines


def _options(fields: Mapping[str, FieldInfo], values: Mapping[str, Any], *, explain: bool = True) -> list[str]:
    """Lines of options: those in ``values`` are set, the others are at their default behind a ``#``.

    Without explanations, only those in ``values`` are listed.
    """
    lines: list[str] = []
    for name, field in fields.items():
        if explain:
            lines += _prose(_explained(field))
        if name in values:
            lines.append(f"{name} = {toml_value(values[name])}")
        if name in values or not explain:
            continue
        default = field.get_default(call_default_factory=True, validated_data={})
        if default is None:
            lines += _prose(f"{name} is not set by default.")
        else:
            lines += [f"#{line}" for line in f"{name} = {toml_value(default)}".split("\n")]
    return lines


def toml_value(value: Any) -> str:
    """A plain value in TOML; long arrays have one line per item."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [toml_value(item) for item in value]
        short = f"[{', '.join(items)}]"
        if len(short) < WIDTH - 20:
            return short
        return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    # JSON's texts, numbers and truth values are TOML's too.
    return json.dumps(value, ensure_ascii=False)


def _explained(field: FieldInfo) -> str:
    """The option's description, with all choices unless the description names them."""
    if not field.description:
        raise ValueError("an option has no description")
    choices = _choices(field.annotation)
    if all(f"`{choice}`" in field.description for choice in choices):
        return field.description
    return f"{field.description} One of: {', '.join(choices)}."


def _choices(annotation: Any) -> list[str]:
    """Texts that an annotation allows, also those of the items of a tuple."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for inner in get_args(annotation) for choice in _choices(inner)]


def _summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().split("\n")[0]


def _prose(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH - 2, break_on_hyphens=False)]


def _is_section(field: FieldInfo) -> bool:
    """Whether the option is a table of options."""
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _model_of(field: FieldInfo) -> type[BaseModel]:
    annotation = field.annotation
    assert isinstance(annotation, type)
    assert issubclass(annotation, BaseModel)
    return annotation
