"""Validation with errors that name file, option, found and remedy."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from lpact.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

M = TypeVar("M", bound=BaseModel)


class Strict(BaseModel):
    """A frozen record: unknown keys are errors, and lists become tuples."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _lists(cls, values: Any) -> Any:
        return _tuples(values)


class _ClearErrors(ModelMetaclass):
    """Turns errors of sections that are built in Python into `ConfigError`."""

    if not TYPE_CHECKING:  # type checkers keep the signatures of the sections

        def __call__(cls, *args: Any, **values: Any) -> Any:
            try:
                return super().__call__(*args, **values)
            except ValidationError as error:
                name = cls.__name__.removesuffix("Config").removesuffix("Section")
                raise _config_error(cls, error, name, f"the options of {name} are") from None


class Section(Strict, metaclass=_ClearErrors):
    """Options of a study file.

    The docstring of a field describes the option. ``MOVED`` names options of the last release that have moved, and
    their new place.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    MOVED: ClassVar[Mapping[str, str]] = {}

    @property
    def path_names(self) -> tuple[str, ...]:
        """Names in `[run.paths]` that it reads, in addition to those of datasets."""
        return ()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for field in cls.model_fields.values():
            field.description = field.description and " ".join(field.description.split())


PLUGIN_OPTIONS = "the options of a plugin are"
"""How a message begins about the options of a plugin."""


def json_digest(plain: object) -> str:
    """SHA-256 of plain values as canonical JSON (sorted keys, no white space)."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def parse_digest(text: str, what: str, *, where: str, remedy: str) -> str:
    """A SHA-256 that a user has copied, in lower case; anything else is a `ConfigError` that begins with ``what``."""
    digest = text.strip().lower().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        expected = "64 hexadecimal digits"
        raise ConfigError(what, where=where, got=text, expected=expected, remedy=remedy)
    return digest


def validate_model(model: type[M], values: Mapping[str, Any], *, where: str, what: str = "the study file is") -> M:
    """Validate ``values``; a failure becomes a `ConfigError` that names field, value and remedy."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _config_error(model, error, where, what) from None


def _tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_tuples(item) for item in value)
    return value


def _config_error(model: type[BaseModel], error: ValidationError, where: str, what: str) -> ConfigError:
    problems = []
    places = [item["loc"] for item in error.errors()]
    for item in error.errors():
        if _follows(item, places):
            continue
        location = ".".join(str(part) for part in item["loc"]) or "(top level)"
        if item["type"] == "extra_forbidden":
            inside, name = _model_at(model, item["loc"][:-1]), str(item["loc"][-1])
            moved = getattr(inside, "MOVED", {})
            known = getattr(inside, "model_fields", ())
            fix = f"it is now {moved[name]}" if name in moved else did_you_mean(name, known)
            problems.append(f"{location}: unknown option; {fix}")
        elif item["type"] == "missing":
            problems.append(f"{location}: required option is missing")
        else:
            message = item["msg"].removeprefix("Value error, ")
            found = item["input"]
            shown = "" if isinstance(found, Mapping) else f" (found {found!r})"
            problems.append(f"{location}: {message}{shown}")
    first = problems[0].split(":", 1)[0]
    options = "options as listed in docs/reference/study-file.md (`lpact init` writes them all)"
    if what == PLUGIN_OPTIONS:
        options = "options as listed for it in docs/reference/plugins.md"
    return ConfigError(
        f"{what} not valid:\n" + "\n".join(f"  - {p}" for p in problems),
        where=f"{where}, option '{first}'",
        expected=options,
        remedy="fix the listed options",
    )


def _follows(item: Any, places: list[tuple[int | str, ...]]) -> bool:
    """Whether a list counts as too short only because an element of it is not valid."""
    inside = [p for p in places if len(p) > len(item["loc"]) and p[: len(item["loc"])] == item["loc"]]
    return item["type"] == "too_short" and bool(inside)


def _model_at(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model of the options at a place of another one."""
    current: Any = model
    for part in location:
        if isinstance(part, int) or not hasattr(current, "model_fields"):
            continue
        annotation = current.model_fields[part].annotation if part in current.model_fields else None
        inner = [annotation, *getattr(annotation, "__args__", ())]
        models = [a for a in inner if isinstance(a, type) and issubclass(a, BaseModel)]
        if not models:
            return None
        current = models[0]
    return current  # type: ignore[no-any-return]
