"""What was registered beside what a run has: one line where a whole section is the same, else one a difference."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from lpact.features.models import FEATURE_SETS
from lpact.run.preregistration.content import (
    MODEL,
    Claim,
    Content,
    ControlFacts,
    DatasetRole,
    RecordingFacts,
    TableRows,
)
from lpact.run.preregistration.items import ABSENT, SAME, Line, counted, shown
from lpact.store import InputFile

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_OWN_GROUPS = ("seed", "gates")
"""Parts of the configuration that have a group of their own, one line an option."""


def compare(registered: Content, found: Content) -> Iterator[Line]:
    """Every item of a registration, with what the run has."""
    yield Line("seed", "seed", str(registered.seed), str(found.seed))
    yield from _configuration(registered.config, found.config)
    yield from _gates(registered.config, found.config)
    yield from _inputs(registered, found)
    yield from _recordings(registered.recordings, found.recordings)
    yield from _roles(registered.datasets, found.datasets)
    yield from _controls(registered.controls, found.controls)
    yield from _claims(registered.claims, found.claims)
    yield from _rows(registered.rows, found.rows)
    yield from _software(registered, found)


def _configuration(registered: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Line]:
    ours, theirs = _sections(registered), _sections(found)
    for section in [*ours, *(name for name in theirs if name not in ours)]:
        if section in _OWN_GROUPS:
            continue
        own, other = (
            dict(_options(side[section], "")) if section in side else {} for side in (ours, theirs)
        )
        if own == other:
            yield Line("configuration", section, counted(len(own), "option"), SAME, followed=True)
        elif not own or not other:
            then, now = (counted(len(side), "option") if side else ABSENT for side in (own, other))
            yield Line("configuration", section, then, now)
        else:
            for path, then, now in _differing(own, other):
                yield Line("configuration", f"{section}{path}", then, now)


def _sections(config: Mapping[str, Any]) -> dict[str, Any]:
    """Sections of a configuration; every dataset and every model is one, whatever its place in the list."""
    sections: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            sections |= {f"{name}[{own.get('name', i)}]": own for i, own in enumerate(value)}
            sections[f"{name}, their order"] = [own.get("name", i) for i, own in enumerate(value)]
        else:
            sections[name] = value
    return sections


def _options(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every option by its dotted path, with its value as text."""
    if isinstance(value, Mapping) and value:
        for name, own in value.items():
            yield from _options(own, f"{path}.{name}")
    else:
        yield path, shown(value)


def _gates(registered: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Line]:
    own = dict(_options(registered.get("gates"), "gates"))
    other = dict(_options(found.get("gates"), "gates"))
    for path in dict.fromkeys((*own, *other)):
        yield Line("gates", path, own.get(path, ABSENT), other.get(path, ABSENT))


def _inputs(registered: Content, found: Content) -> Iterator[Line]:
    """Files of every dataset and model by checksum."""
    ours, theirs = _files(registered.inputs), _files(found.inputs)
    models = [f"{MODEL}{own['name']}" for own in registered.config.get("models", ())]
    for source in dict.fromkeys((*ours, *models, *theirs)):
        group = "models" if source.startswith(MODEL) else "datasets"
        name = source.removeprefix(MODEL)
        own, other = ours.get(source, {}), theirs.get(source, {})
        if group == "models":
            # Features that were extracted after the registration are made from files that it names.
            other = {p: s for p, s in other.items() if p in own or not p.startswith(FEATURE_SETS)}
        if own != other:
            for path, then, now in _differing(own, other):
                yield Line(group, f"{name}, file {path}", then, now)
        elif own:
            yield Line(group, name, counted(len(own), "file"), SAME, "by SHA-256", True)
        else:
            detail = "its features are part of the datasets"
            yield Line(group, name, "no files of its own", SAME, detail, True)


def _files(inputs: Iterable[InputFile]) -> dict[str, dict[str, str]]:
    sources: dict[str, dict[str, str]] = {}
    for file in inputs:
        sources.setdefault(file.dataset, {})[file.path] = f"SHA-256 {file.sha256}"
    return sources


def _recordings(
    registered: Iterable[RecordingFacts], found: Iterable[RecordingFacts]
) -> Iterator[Line]:
    """Every recording twice: whether and with how many events it is used; and its units in their order."""
    for name, then, now in _paired(registered, found, lambda r: r.name):
        yield Line("recordings", name, _use(then), _use(now))
        yield Line("units", name, _units(then), _units(now))


def _use(recording: RecordingFacts | None) -> str:
    if recording is None:
        return ABSENT
    used = "used" if recording.used else f"excluded: {recording.reason}"
    return (
        f"{used}; stimulus {recording.stimulus}, {counted(recording.n_words, 'word')}, "
        f"{counted(recording.n_events, 'event')}, {recording.n_events_excluded} left out"
    )


def _units(recording: RecordingFacts | None) -> str:
    if recording is None:
        return ABSENT
    return f"{recording.n_units_used} of {counted(recording.n_units, 'unit')}, order {recording.unit_order_hash}"


def _roles(registered: Iterable[DatasetRole], found: Iterable[DatasetRole]) -> Iterator[Line]:
    for name, then, now in _paired(registered, found, lambda own: own.dataset):
        yield Line("roles", name, _role(then), _role(now))


def _role(own: DatasetRole | None) -> str:
    if own is None:
        return ABSENT
    why = "" if own.confirmatory else f", not confirmatory: {own.role_detail or own.role_reason}"
    return f"{own.role}{why}"


def _controls(registered: Iterable[ControlFacts], found: Iterable[ControlFacts]) -> Iterator[Line]:
    def place(own: ControlFacts) -> tuple[str, str]:
        return own.dataset, own.model

    def item(own: ControlFacts) -> str:
        return f"{own.dataset}/{own.model}/{own.layer}, {own.control}"

    yield from _grouped("controls", "control", registered, found, place, item, _control)


def _control(own: ControlFacts) -> str:
    if not own.available:
        return f"not available: {own.reason}"
    return counted(own.draws, "draw") + (", counted" if own.counted else "")


def _claims(registered: Iterable[Claim], found: Iterable[Claim]) -> Iterator[Line]:
    def place(own: Claim) -> tuple[str, str]:
        return own.dataset, own.model

    def text(own: Claim) -> str:
        return "a confirmatory claim" if own.confirmatory else "a claim that is not confirmatory"

    yield from _grouped("claims", "claim", registered, found, place, lambda own: own.name, text)


def _rows(registered: Iterable[TableRows], found: Iterable[TableRows]) -> Iterator[Line]:
    for name, then, now in _paired(registered, found, lambda own: own.table):
        if then is None or now is None:
            yield Line("rows", name, _n_rows(then), _n_rows(now))
            continue
        followed = now.n_rows <= then.n_rows if then.at_most else now.n_rows == then.n_rows
        yield Line("rows", name, _n_rows(then), _n_rows(now), followed=followed)


def _n_rows(own: TableRows | None) -> str:
    if own is None:
        return "no such table"
    return ("at most " if own.at_most else "") + counted(own.n_rows, "row")


def _software(registered: Content, found: Content) -> Iterator[Line]:
    yield Line("software", "lpact", registered.lpact_version, found.lpact_version)
    yield Line("software", "lpact's code", registered.lpact_code, found.lpact_code)
    for name in dict.fromkeys((*registered.versions, *found.versions)):
        then, now = registered.versions.get(name, ABSENT), found.versions.get(name, ABSENT)
        yield Line("software", name, then, now)
    then, now = (", ".join(own.plugins) or "none" for own in (registered, found))
    yield Line("software", "plugin packages", then, now)
    for name in sorted({*registered.plugin_code, *found.plugin_code}):
        then, now = (own.plugin_code.get(name, ABSENT) for own in (registered, found))
        yield Line("software", f"code of the plugin '{name}'", then, now)


def _differing(own: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Names whose texts are not the same, with both."""
    for name in dict.fromkeys((*own, *other)):
        then, now = own.get(name, ABSENT), other.get(name, ABSENT)
        if then != now:
            yield name, then, now


def _paired(
    registered: Iterable[V], found: Iterable[V], name: Callable[[V], str]
) -> Iterator[tuple[str, V | None, V | None]]:
    """What has the same name on both sides."""
    own, other = ({name(value): value for value in side} for side in (registered, found))
    for key in dict.fromkeys((*own, *other)):
        yield key, own.get(key), other.get(key)


def _grouped(
    group: str,
    noun: str,
    registered: Iterable[V],
    found: Iterable[V],
    place: Callable[[V], tuple[str, str]],
    item: Callable[[V], str],
    text: Callable[[V], str],
) -> Iterator[Line]:
    """One line for every dataset and model where all is the same, else one for every difference."""
    ours, theirs = (_by_place(side, place, item, text) for side in (registered, found))
    for key in dict.fromkeys((*ours, *theirs)):
        own, other = ours.get(key, {}), theirs.get(key, {})
        if own == other:
            yield Line(group, "/".join(key), counted(len(own), noun), SAME, followed=True)
        for name, then, now in _differing(own, other):
            yield Line(group, name, then, now)


def _by_place(
    values: Iterable[V],
    place: Callable[[V], tuple[str, str]],
    item: Callable[[V], str],
    text: Callable[[V], str],
) -> dict[tuple[str, str], dict[str, str]]:
    places: dict[tuple[str, str], dict[str, str]] = {}
    for value in values:
        places.setdefault(place(value), {})[item(value)] = text(value)
    return places
