"""The text of the starter study file, made from the configuration models: it cannot miss an option.

Prose is ``# like this``; an option at its default is ``#key = value`` and takes effect when the ``#`` is removed.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lpact.config import (
    DatasetConfig,
    GridConfig,
    LanguageModelConfig,
    PreprocessConfig,
    RunConfig,
    StudyConfig,
)
from lpact.registry import Plugin, Registry

WIDTH = 100

_FIRST_OPTIONS = {
    "n_subjects": 3,
    "n_runs": 1,
    "n_stories": 4,
    "sentences_per_story": 10,
    "n_units": 12,
}
DATASETS: tuple[dict[str, Any], ...] = (
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
ACTIVE: dict[str, dict[str, Any]] = {
    "controls": {"draws": 3},
    "lpact": {"stripping": {"mismatch_draws": 1}},
}
"""Options that differ from their default, so that the file runs in seconds."""


def starter_text() -> str:
    """A study file with every option, its explanation and its default, that runs as it is."""
    lines = [
        *_prose(
            "A study: what is computed, and how. `lpact plan` says what it costs, `lpact run` runs it."
        ),
        *_prose(
            "Options that start with `#` are at their default; remove the `#` to change one. "
            "Everything above [run] changes numbers and is hashed into the run."
        ),
        "",
    ]
    fields = dict(StudyConfig.model_fields)
    lines += _options({n: fields.pop(n) for n in ("name", "seed")}, {"name": "first-study"})
    lines += _datasets(fields.pop("datasets"))
    lines += _models(fields.pop("models"))
    for name, field in fields.items():
        lines += _section(name, _model_of(field), ACTIVE.get(name, {}))
        lines += _plugin_options(name)
    lines += _section("run", RunConfig, {})
    return "\n".join(lines).rstrip() + "\n"


def _datasets(field: FieldInfo) -> list[str]:
    """The first dataset with every option explained, the others with theirs alone."""
    lines = ["", *_prose(_explained(field))]
    tables = ("preprocess", "grid", "options")
    own = {n: f for n, f in DatasetConfig.model_fields.items() if n not in tables}
    for i, values in enumerate(DATASETS):
        first = i == 0
        lines += ["", "[[datasets]]", *_options(own, values, explain=first)]
        for table, fields in (
            ("preprocess", PreprocessConfig.model_fields),
            ("grid", GridConfig.model_fields),
            ("options", _reader_options(values["reader"]).model_fields),
        ):
            if not first and table not in values:
                continue
            explained = _explained(DatasetConfig.model_fields[table])
            lines += ["", *(_prose(explained) if first else []), f"[datasets.{table}]"]
            lines += _options(fields, values.get(table, {}), explain=first)
    return lines


def _models(field: FieldInfo) -> list[str]:
    lines = ["", *_prose(_explained(field))]
    for i, values in enumerate(MODELS):
        lines += ["", "[[models]]"]
        lines += _options(LanguageModelConfig.model_fields, values, explain=i == 0)
    return lines


def _section(name: str, model: type[BaseModel], values: Mapping[str, Any]) -> list[str]:
    """One table of the file; the first line of its model's docstring says what it is."""
    tables = {n for n, field in model.model_fields.items() if _is_table(field)}
    plain = {n: f for n, f in model.model_fields.items() if n not in tables}
    lines = ["", *_prose(_summary(model)), f"[{name}]", *_options(plain, values)]
    for table in sorted(tables):
        field = model.model_fields[table]
        lines += ["", *_prose(_explained(field)), f"#[{name}.{table}]"]
        if _is_section(field):
            lines += _options(_model_of(field).model_fields, {})
    return lines


def _plugin_options(section: str) -> list[str]:
    """Options of every registered plugin that a section can hold options for."""
    lines: list[str] = []
    for registry in _registries().get(section, ()):
        for entry in registry.entries():
            fields = entry.plugin.Options.model_fields
            if fields:
                lines += ["", f"#[{section}.options.{entry.name}]", *_options(fields, {})]
    return lines


def _registries() -> dict[str, tuple[Registry[Any], ...]]:
    from lpact.analyses.lpact.levels.strip import STRIPPINGS
    from lpact.controls.base import CONTROLS
    from lpact.measures import MEASURES

    return {"controls": (CONTROLS,), "relational": (MEASURES,), "stripping": (STRIPPINGS,)}


def _reader_options(reader: str) -> type[BaseModel]:
    from lpact.datasets.base import DATASETS as READERS

    plugin: type[Plugin] = READERS.get(reader)
    return plugin.Options


def _options(
    fields: Mapping[str, FieldInfo], values: Mapping[str, Any], *, explain: bool = True
) -> list[str]:
    """Lines of options: those in ``values`` are set, the others stand at their default behind a ``#``.

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
    """A plain value in TOML; long arrays get one line an item."""
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
    """The option's description, with its choices where the description leaves one out."""
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


def _is_table(field: FieldInfo) -> bool:
    return field.default_factory is dict or _is_section(field)


def _is_section(field: FieldInfo) -> bool:
    """Whether the option is a table with options of its own."""
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _model_of(field: FieldInfo) -> type[BaseModel]:
    annotation = field.annotation
    assert isinstance(annotation, type)
    assert issubclass(annotation, BaseModel)
    return annotation
