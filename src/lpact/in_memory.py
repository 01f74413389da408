"""From arrays to a verdict in one call."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BaseModel

from lpact.datasets.base import ITEM, WORD_COLUMNS, FeatureKey
from lpact.datasets.folder.writer import write_folder
from lpact.datasets.memory import STIMULI, MemoryDataset, memory_dataset
from lpact.datasets.validate import check_stimulus
from lpact.errors import InputError
from lpact.features.mechanisms import MECHANISMS
from lpact.features.models import CONTEXTS, FULL, check_features
from lpact.math.types import FloatArray
from lpact.responses import Responses
from lpact.responses.read import STIMULUS, as_polars, numbers

if TYPE_CHECKING:
    from lpact.study import Run

MODEL, DATASET = "model", "data"
"""Names in tables of a model and a dataset that have none."""

_NEAR = 0.75
"""Similarity (`difflib`) from which a column counts as misspelt: ``onset`` and ``story`` do, ``word_id`` does not."""

Options = Mapping[str, Any] | BaseModel


def audit(
    *,
    features: npt.ArrayLike | Mapping[str, Any],
    responses: Any,
    words: Any = None,
    sampling_rate_hz: float | None = None,
    name: str = "in-memory",
    seed: int = 0,
    grid: Options | None = None,
    preprocess: Options | None = None,
    readout: Options | None = None,
    nuisance: Options | None = None,
    controls: Options | None = None,
    mechanisms: Options | None = None,
    lpact: Options | None = None,
    out: str | Path | None = None,
    workers: int = 1,
    progress: bool = False,
) -> Run:
    """Run L-PACT on arrays; the verdict is that of a study file with the same data and options.

    Parameters
    ----------
    features
        Features of the models, one row per word (or per stimulus), in the order of ``words``, or else of the
        stimuli of ``responses``: an array; a mapping from model to array; or from model to layer to array. In place
        of a layer's array, a mapping from context (``full``, ``sentence_reset``, ``reversed``, ``shuffled``,
        ``untrained``, ``static``) to an array, or to a list of arrays (draws).
    responses
        An array [n_stimuli, n_units] or [n_stimuli, n_repetitions, n_units], or `Responses`; a list of these, one per
        subject; or a mapping from subject to these. Arrays have the same rows for all subjects; `Responses` with
        ``stimulus_ids`` need not. In a list, unnamed subjects are ``01``, ``02`` …. Missing values
        are NaN; events with one are left out for that subject, unless ``preprocess`` says otherwise.
    words
        What the rows are: a list of words, or a pandas or Polars table with any of the columns ``word``,
        ``onset_s``, ``offset_s``, ``sentence_id``, ``story_id``, ``log_frequency``. Columns with the name of a
        mechanism (``surprisal`` …) are its values. A column ``stimulus_id`` says which stimulus of the responses a
        row belongs to, if there are several per stimulus, or if the responses are in another order.
        What needs a missing column is unavailable, and the report says so. None: the rows are items.
    sampling_rate_hz
        Set for continuous recordings: ``responses`` are then [n_samples, n_units] on the clock of ``words``.
    name
        Name of the study.
    seed
        Seed of every random draw.
    grid, preprocess, readout, nuisance, controls, mechanisms, lpact
        Tables of the study file, as mappings or section objects: ``readout={"folds": 5}``,
        ``lpact={"gates": {"alpha": 0.01}}``.
    out
        Folder of the run. None: a new temporary folder, which is ``run.root`` and is not removed.
    workers
        Processes.
    progress
        Whether progress is shown.

    Returns
    -------
    lpact.Run
        Tables, verdicts and report.
    """
    sections = {"grid": grid, "preprocess": preprocess, "readout": readout, "nuisance": nuisance}
    sections |= {"controls": controls, "mechanisms": mechanisms, "lpact": lpact}
    plain = {key: _plain(section) for key, section in sections.items() if section is not None}
    table = _words(words)
    subjects = _subjects(responses, sampling_rate_hz, table)
    study = {"name": name, "seed": seed, "run": {"workers": workers, "progress": progress}}
    target = Path(tempfile.mkdtemp(prefix="lpact-run-"), name) if out is None else Path(out)
    return _run(study, subjects, features, table, plain, target)


def _run(
    study: dict[str, Any],
    subjects: Sequence[Responses],
    features: Any,
    words: pl.DataFrame | None,
    sections: dict[str, Any],
    target: Path,
) -> Run:
    """Write the arrays into a temporary folder, and run the study on it; their content alone is in its keys."""
    from lpact.study import load_study

    words = subjects[0].words if words is None else words
    _check_columns(words)
    mechanisms, words = _mechanisms(words)
    arrays, per_stimulus = _features(features, subjects[0], words)
    dataset = memory_dataset(subjects, words, features=arrays, mechanisms=mechanisms)
    stimulus = dataset.stimulus(STIMULI)
    check_stimulus(stimulus)
    for key, values in arrays.items():
        check_features(values, key, stimulus, where="lpact.audit, argument 'features'")
    grid = {"events": "sentences"} if _sentences(dataset) else {}
    grid |= ({"pooling": "last"} if per_stimulus else {}) | sections.pop("grid", {})
    preprocess = {"missing": "drop_events"} | sections.pop("preprocess", {})
    models = dict.fromkeys(key.model for key in arrays)
    layers = {model: sorted({k.layer for k in arrays if k.model == model}) for model in models}
    with tempfile.TemporaryDirectory(prefix="lpact-inputs-") as inputs:
        folder = Path(inputs, DATASET)
        write_folder(dataset, folder)
        own = {"name": DATASET, "reader": "memory", "grid": grid, "preprocess": preprocess}
        loaded = load_study(
            {
                **study,
                "run": {**study["run"], "grids": f"{inputs}/grids"},
                "datasets": [own],
                "models": [{"name": model, "layers": own} for model, own in layers.items()],
                "lpact": {},
                **sections,
            },
            paths={DATASET: folder},
        )
        return loaded.run(target)


def _subjects(
    responses: Any, sampling_rate_hz: float | None, words: pl.DataFrame | None
) -> list[Responses]:
    """Responses of each subject."""
    given: list[tuple[str, Any]] = [("", responses)]
    if isinstance(responses, Mapping):
        given = [(str(subject), own) for subject, own in responses.items()]
    elif isinstance(responses, Sequence) and (not responses or _is_subject(responses[0])):
        named = any(_has_name(own) for own in responses)
        given = [
            ("" if named and isinstance(own, Responses) else f"{number:02}", own)
            for number, own in enumerate(responses, start=1)
        ]
    if not given:
        raise InputError(
            "there are no responses",
            where="lpact.audit, argument 'responses'",
            got=f"an empty {type(responses).__name__}",
            expected="responses of at least one subject",
            remedy="give an array, Responses, or a list or mapping of these",
        )
    made = []
    for subject, value in given:
        options = {"subject": subject or None, "sampling_rate_hz": sampling_rate_hz}
        about: dict[str, Any] = {key: own for key, own in options.items() if own is not None}
        is_made = isinstance(value, Responses)
        made.append(replace(value, **about) if is_made else Responses.from_numpy(value, **about))
    if made[0].sampling_rate_hz is None:
        plain = [
            own
            for own, (_, value) in zip(made, given, strict=True)
            if not isinstance(value, Responses)
        ]
        _check_rows(plain, made[0], words)
    return made


def _check_rows(plain: Sequence[Responses], first: Responses, words: pl.DataFrame | None) -> None:
    """Raise `InputError` unless arrays, whose rows have no names, have a row for every stimulus."""
    expected, source = first.n_stimuli, f"as subject '{first.subject}' has"
    if words is not None and STIMULUS in words.columns:
        expected = words[STIMULUS].drop_nulls().n_unique()
        source = f"one per '{STIMULUS}' of the words"
    if any(own.n_stimuli != expected for own in plain):
        raise InputError(
            "arrays do not have one row per stimulus",
            where="lpact.audit, argument 'responses'",
            got=", ".join(f"subject '{own.subject}': {own.n_stimuli} rows" for own in plain),
            expected=f"{expected} rows for every subject, {source}",
            remedy="mark missing rows with NaN, or name the rows: Responses.from_numpy(values, stimulus_ids=…)",
        )


def _has_name(own: Any) -> bool:
    default = (Responses.subject, Responses.session)
    return isinstance(own, Responses) and (own.subject, own.session) != default


def _is_subject(value: Any) -> bool:
    return isinstance(value, Responses) or np.ndim(value) >= 2


def _words(words: Any) -> pl.DataFrame | None:
    if words is None:
        return None
    if isinstance(words, Sequence) and all(isinstance(word, str) for word in words):
        return pl.DataFrame({"word": list(words)})
    return as_polars(words)


def _check_columns(words: pl.DataFrame | None) -> None:
    """Raise `InputError` for a column that would be ignored because its name is misspelt."""
    columns = [] if words is None else words.columns
    known = {*WORD_COLUMNS, ITEM, STIMULUS, "log_frequency", *MECHANISMS.names()}
    absent = sorted(known.difference(columns))
    for name in columns:
        near = difflib.get_close_matches(name.casefold(), absent, n=1, cutoff=_NEAR)
        if name not in known and near:
            raise InputError(
                f"the words have an unknown column '{name}'",
                where="lpact.audit, argument 'words'",
                got="columns " + ", ".join(columns),
                expected="names of columns that lpact reads, or names unlike these",
                remedy=f"did you mean '{near[0]}'? If not, rename or drop the column",
            )


def _mechanisms(
    words: pl.DataFrame | None,
) -> tuple[dict[str, FloatArray], pl.DataFrame | None]:
    """Columns with the name of a mechanism, as its values; and the table without them."""
    if words is None:
        return {}, None
    found = [
        name
        for name in words.columns
        if name in MECHANISMS.names() and words[name].dtype.is_numeric()
    ]
    return {name: words[name].cast(pl.Float64).to_numpy() for name in found}, words.drop(found)


def _features(
    features: Any, first: Responses, words: pl.DataFrame | None
) -> tuple[dict[FeatureKey, FloatArray], bool]:
    """Features by key, one row per word; and whether they were given per stimulus of several words."""
    where = "lpact.audit, argument 'features'"
    arrays = {key: numbers(value, where, key.model) for key, value in _keys(features, where)}
    if words is None or STIMULUS not in words.columns or first.sampling_rate_hz is not None:
        return arrays, False
    place = {name: i for i, name in enumerate(dict.fromkeys(words[STIMULUS]))}
    per_stimulus = len(place) != words.height and all(
        len(array) == len(place) for array in arrays.values()
    )
    if per_stimulus:
        of_word = [place[name] for name in words[STIMULUS]]
        arrays = {key: array[of_word] for key, array in arrays.items()}
    return arrays, per_stimulus


def _keys(features: Any, where: str) -> Iterator[tuple[FeatureKey, Any]]:
    models = features if isinstance(features, Mapping) else {MODEL: features}
    for model, by_layer in models.items():
        layers = by_layer if isinstance(by_layer, Mapping) else {0: by_layer}
        for layer, by_context in layers.items():
            contexts = by_context if isinstance(by_context, Mapping) else {FULL: by_context}
            for context, values in contexts.items():
                if context not in CONTEXTS or not isinstance(layer, int | np.integer):
                    raise InputError(
                        "features are not ordered by model, layer and context",
                        where=where,
                        got=f"model {model!r}, layer {layer!r}, context {context!r}",
                        expected=f"layers as whole numbers, contexts among {', '.join(CONTEXTS)}",
                        remedy="give {model: {layer: {context: array}}}",
                    )
                draws = values if isinstance(values, list) and np.ndim(values[0]) == 2 else [values]
                for draw, array in enumerate(draws):
                    yield FeatureKey(str(model), int(layer), context, draw), array


def _sentences(dataset: MemoryDataset) -> bool:
    """Whether responses are to sentences of several words."""
    recording = dataset.recording(dataset.recording_ids()[0])
    shape = recording.signal.values.shape
    return len(shape) == 3 and shape[1] != dataset.stimulus(STIMULI).words.height


def _plain(section: Options | None) -> dict[str, Any]:
    if isinstance(section, BaseModel):
        return section.model_dump(exclude_unset=True)
    return dict(section or {})
