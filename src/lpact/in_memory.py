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
from lpact.datasets.connectivity import connectivity_file
from lpact.datasets.folder import write_folder
from lpact.datasets.memory import STIMULI, memory_dataset, with_lags
from lpact.datasets.validate import check_stimulus
from lpact.errors import InputError, require_known
from lpact.features.mechanisms import MECHANISMS
from lpact.features.mechanisms.built_in import PARAGRAPH
from lpact.features.models import CONTEXTS, FULL, check_features
from lpact.features.parsing import HEAD, RELATION, UPOS
from lpact.inputs.media import ACOUSTIC_COLUMNS
from lpact.math.types import FloatArray
from lpact.responses import Responses
from lpact.responses.read import STIMULUS, as_polars, numbers, places, some, texts

if TYPE_CHECKING:
    from lpact.study import Run

MODEL, DATASET = "model", "data"
"""Names in tables of a model and a dataset that have none."""

_NEAR = 0.75
"""Similarity (`difflib`) from which a column counts as misspelt: ``onset`` and ``story`` do, ``word_id`` does not."""

FEATURES = "argument 'features'"

Options = Mapping[str, Any] | BaseModel
Names = tuple[str, ...]


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
    """Run L-PACT on arrays. A study file with the same data and options gives the same verdict.

    Parameters
    ----------
    features
        Features of the models, one row per word (or per stimulus), in the order of ``words``, or else of the stimuli
        of ``responses``: an array; a mapping from model to array; or from model to layer to array. Labelled rows (see
        ``responses``) are put into that order. In place of a layer's array, a mapping from context (``full``,
        ``sentence_reset``, ``reversed``, ``shuffled``, ``untrained``, ``static``) to an array, or to a list of arrays
        (draws).
    responses
        An array [n_stimuli, n_units] or [n_stimuli, n_repetitions, n_units], or `Responses`; a list of these, one per
        subject; or a mapping from subject to these. Arrays have the same rows for all subjects; `Responses` with
        ``stimulus_ids`` need not, nor pandas, Polars and xarray objects with labelled rows: a column or coordinate
        ``stimulus_id``, or else an index other than 0 … n−1. In a list, unnamed subjects are ``01``, ``02`` ….
        Missing values are NaN; events with one are left out for that subject, unless ``preprocess`` says otherwise.
    words
        What the rows are: a list of words, or a pandas or Polars table with any of the columns ``word``,
        ``onset_s``, ``offset_s``, ``sentence_id``, ``story_id``, ``log_frequency``. Columns with the name of a
        mechanism (``surprisal`` …) are its values. A column ``stimulus_id`` says which stimulus of the responses a
        row belongs to, if there are several per stimulus, or if the responses are in another order.
        Features and controls that need a missing column are unavailable, and the report says so. None: the rows are
        items.
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
    sections |= {"controls": controls, "mechanisms": mechanisms, "lpact": lpact or {}}
    study = {"name": name, "seed": seed, "run": {"workers": workers, "progress": progress}}
    data = (features, responses, words, sampling_rate_hz)
    return _run(study, *data, sections, out)


def deconstruct(
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
    deconstruct: Options | None = None,
    out: str | Path | None = None,
    workers: int = 1,
    progress: bool = False,
) -> Run:
    """Deconstruct the scores of models on arrays: what do simple features account for?

    Parameters
    ----------
    features
        As in `audit`. Models that ``deconstruct={"ladder": …}`` names are feature spaces; the scores of all others are
        deconstructed.
    deconstruct
        Options of the analysis, such as ``{"ladder": [["SP", "SL"], ["vectors"]]}``.
    responses, words, sampling_rate_hz, name, seed, grid, preprocess, readout, nuisance, out, workers, progress
        As in `audit`. Columns of ``words`` can contain the category of a story.

    Returns
    -------
    lpact.Run
        Tables, verdicts and report.
    """
    sections = {"grid": grid, "preprocess": preprocess, "readout": readout, "nuisance": nuisance}
    sections |= {"deconstruct": deconstruct or {}}
    study = {"name": name, "seed": seed, "run": {"workers": workers, "progress": progress}}
    data = (features, responses, words, sampling_rate_hz)
    return _run(study, *data, sections, out)


def turing_test(
    model: npt.ArrayLike | Mapping[str, Any],
    subjects: Any,
    *,
    measure: str | Sequence[str] = ("linear", "rsa"),
    lags_ms: Sequence[float] | None = None,
    words: Any = None,
    sampling_rate_hz: float | None = None,
    name: str = "in-memory",
    seed: int = 0,
    grid: Options | None = None,
    preprocess: Options | None = None,
    turing: Options | None = None,
    out: str | Path | None = None,
    workers: int = 1,
    progress: bool = False,
) -> Run:
    """Test whether models are as close to brains as brains are to each other.

    Parameters
    ----------
    model
        Features of the models, or their behaviour, as ``features`` of `audit`: one row per stimulus.
    subjects
        Responses of every subject, as ``responses`` of `audit`: [n_stimuli, n_repetitions, n_units], NaN where a trial
        is missing. Units need not correspond. Behaviour is one unit, or one per alternative.
    measure
        Names of measures of alignment: ``"linear"``, ``"rsa"``, ``"cka_debiased"``, ``"error_consistency"`` …
    lags_ms
        Time points of epochs: the responses are then arrays [n_stimuli, n_repetitions, n_units, n_lags].
    turing
        Options of the analysis, such as ``{"n_halves": 20, "equivalence_bound": 0.05}``.
    words, sampling_rate_hz, name, seed, grid, preprocess, out, workers, progress
        As in `audit`. Missing responses are kept, and counted.

    Returns
    -------
    lpact.Run
        Tables, verdicts and report.
    """
    measures = (measure,) if isinstance(measure, str) else tuple(measure)
    own = {"measures": measures, **_plain(turing or {})}
    sections = {"grid": grid, "preprocess": preprocess, "turing": own}
    study = {"name": name, "seed": seed, "run": {"workers": workers, "progress": progress}}
    return _run(study, model, subjects, words, sampling_rate_hz, sections, out, lags_ms)


def alignment_patterns(
    model: npt.ArrayLike | Mapping[str, Any],
    subjects: Any,
    *,
    regions: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    test: npt.ArrayLike | Sequence[str] | None = None,
    measure: str | Sequence[str] = ("rsa", "linear_r2"),
    connectivity: Any = None,
    comparable_units: bool = False,
    words: Any = None,
    sampling_rate_hz: float | None = None,
    name: str = "in-memory",
    seed: int = 0,
    grid: Options | None = None,
    preprocess: Options | None = None,
    patterns: Options | None = None,
    out: str | Path | None = None,
    workers: int = 1,
    progress: bool = False,
) -> Run:
    """Test whether models relate to all regions as regions of the brain do.

    Parameters
    ----------
    model
        Features of the models, as ``features`` of `audit`: one row per stimulus.
    subjects
        Responses of every subject, as ``responses`` of `audit`: [n_stimuli, n_repetitions, n_units].
    regions
        Region of every unit, if all subjects have the same; or a mapping from subject to these. Not for `Responses`,
        which have their own.
    test
        Test stimuli: True for each of these, [n_stimuli], or their names. None: the story ``test``, or else the last
        stimuli (``patterns={"test_share": 0.2}``).
    measure
        Names of measures of alignment: ``"rsa"``, ``"linear_r2"``, ``"cka_debiased"`` …
    connectivity
        Structural connectivity: a file (see the how-to on connectivity), or a square pandas table with regions as its
        index and columns.
    comparable_units
        Whether units with the same index are at the same place in every brain, like the vertices of a template.
    patterns
        Options of the analysis, such as ``{"untrained": {"resnet": "random_resnet"}}``.
    words, sampling_rate_hz, name, seed, grid, preprocess, out, workers, progress
        As in `audit`. Missing responses are kept, and counted.

    Returns
    -------
    lpact.Run
        Tables, verdicts and report.
    """
    measures = (measure,) if isinstance(measure, str) else tuple(measure)
    own = {"measures": measures, **_plain(patterns or {})}
    with tempfile.TemporaryDirectory(prefix="lpact-connectivity-") as folder:
        paths: dict[str, str] = {}
        if connectivity is not None:
            paths["connectivity"] = str(connectivity_file(connectivity, Path(folder)))
            own["connectivity"] = "connectivity"
        sections = {"grid": grid, "preprocess": preprocess, "patterns": own}
        run = {"workers": workers, "progress": progress, "paths": paths}
        study = {"name": name, "seed": seed, "run": run}
        units = {"regions": regions, "comparable_units": comparable_units}
        return _run(study, model, subjects, words, sampling_rate_hz, sections, out, units=units, test=test)


def _run(
    study: dict[str, Any],
    features: Any,
    responses: Any,
    words: Any,
    sampling_rate_hz: float | None,
    given: Mapping[str, Options | None],
    out: str | Path | None,
    lags_ms: Sequence[float] | None = None,
    *,
    units: Mapping[str, Any] | None = None,
    test: Any = None,
) -> Run:
    """Write the arrays into a temporary folder, and run the study on it; their content alone is in its keys."""
    from lpact.study import load_study

    sections = {key: _plain(section) for key, section in given.items() if section is not None}
    at_lags = [responses] if lags_ms is None else _at_lags(responses, lags_ms)
    responses = at_lags[0]
    table = _words(words, [*_each(responses), *(value for _, value in _keys(features))])
    subjects = _subjects(responses, sampling_rate_hz, table, units or {})
    if test is not None:
        sections["patterns"] |= {"test_stimuli": _test_stimuli(test, subjects[0], table)}
    target = Path(tempfile.mkdtemp(prefix="lpact-run-"), study["name"]) if out is None else Path(out)
    labelled = _labelled(_each(responses)[0])[1] is not None
    words = subjects[0].words if table is None else table
    mechanisms, words = _mechanisms(words, sections.get("deconstruct", {}).get("category", ""))
    arrays, per_stimulus = _features(features, subjects[0], words, labelled)
    dataset = memory_dataset(subjects, words, features=arrays, mechanisms=mechanisms)
    if lags_ms is not None:
        later = [memory_dataset(_subjects(own, None, table), words) for own in at_lags[1:]]
        dataset = with_lags([dataset, *later], lags_ms)
    stimulus = dataset.stimulus(STIMULI)
    check_stimulus(stimulus)
    for key, values in arrays.items():
        check_features(values, key, stimulus, where=FEATURES, of_words=words is not None)
    shape = dataset.recording(dataset.recording_ids()[0]).signal.values.shape
    sentences = len(shape) == 3 and shape[1] != stimulus.words.height  # of several words
    grid = {"events": "sentences"} if sentences else {}
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
                **sections,
            },
            paths={DATASET: folder},
        )
        return loaded.run(target)


def _test_stimuli(test: Any, first: Responses, words: pl.DataFrame | None) -> Names:
    """Names of the test stimuli, from these or from a mask."""
    if words is not None and words.height != first.n_stimuli:
        raise InputError(
            "test stimuli can be chosen only where words are stimuli",
            where="argument 'test'",
            got=f"{words.height} words for {first.n_stimuli} stimuli",
            remedy="put test stimuli into a story of their own: the column 'story_id' is \"test\"",
        )
    chosen = np.asarray(test)
    if chosen.dtype != np.bool_:
        return texts(chosen.ravel())
    if chosen.shape != (first.n_stimuli,):
        raise InputError(
            "the mask of test stimuli and the responses do not match",
            where="argument 'test'",
            got=f"shape {chosen.shape}",
            expected=f"{first.n_stimuli} values, one per stimulus",
        )
    return tuple(name for name, own in zip(first.stimulus_ids, chosen, strict=True) if own)


def _subjects(
    responses: Any,
    sampling_rate_hz: float | None,
    words: pl.DataFrame | None,
    units: Mapping[str, Any] | None = None,
) -> list[Responses]:
    """Responses of each subject; ``units`` are further arguments of `Responses` for plain arrays."""
    originals = _each(responses)
    values = [_use_labels(v) if sampling_rate_hz is None else v for v in originals]
    unnamed = (Responses.subject, Responses.session)
    given = [own for own in values if isinstance(own, Responses)]
    named = any((own.subject, own.session) != unnamed for own in given)
    subjects = [
        "" if named and isinstance(own, Responses) else f"{number:02}" for number, own in enumerate(values, start=1)
    ]
    if isinstance(responses, Mapping):
        subjects = [str(subject) for subject in responses]
    if not values:
        raise InputError(
            "there are no responses",
            where="argument 'responses'",
            got=f"an empty {type(responses).__name__}",
            expected="responses of at least one subject",
            remedy="give an array, Responses, or a list or mapping of these",
        )
    made = []
    for subject, value, original in zip(subjects, values, originals, strict=True):
        options = {"subject": subject or None, "sampling_rate_hz": sampling_rate_hz}
        about: dict[str, Any] = {key: own for key, own in options.items() if own is not None}
        if not isinstance(original, Responses):
            about |= units or {}
            if isinstance(of_subject := about.get("regions"), Mapping):
                require_known(subject, of_subject, "subject", where="argument 'regions'")
                about["regions"] = of_subject[subject]
        is_made = isinstance(value, Responses)
        made.append(replace(value, **about) if is_made else Responses.from_numpy(value, **about))
    if made[0].sampling_rate_hz is None:
        plain = [i for i, value in enumerate(values) if not isinstance(value, Responses)]
        _check_rows([made[i] for i in plain], made[0], words)
        if words is not None and STIMULUS in words.columns:
            names = texts(words[STIMULUS].drop_nulls().unique(maintain_order=True))
            for i in plain:
                made[i] = replace(made[i], stimulus_ids=names)
    return made


def _at_lags(responses: Any, lags_ms: Sequence[float]) -> list[Any]:
    """The responses at every lag, of arrays whose last axis is the lag."""
    subjects = responses if isinstance(responses, Mapping) else dict(enumerate(_each(responses)))
    for who, own in subjects.items():
        if np.ndim(own) != 4 or np.shape(own)[3] != len(lags_ms) or not lags_ms:
            raise InputError(
                "responses at several lags need four axes: stimuli, repetitions, units, lags",
                where=f"argument 'subjects', subject {who!r}",
                got=f"shape {np.shape(own)}, and {len(lags_ms)} lags",
                remedy="reshape the array; values[:, None] adds repetitions",
            )
    each = [{who: np.asarray(own)[..., i] for who, own in subjects.items()} for i in range(len(lags_ms))]
    return each if isinstance(responses, Mapping) else [list(own.values()) for own in each]


def _each(responses: Any) -> list[Any]:
    """Responses of each subject, as they were given."""
    if isinstance(responses, Mapping):
        return list(responses.values())
    several = isinstance(responses, Sequence) and (
        not responses or isinstance(responses[0], Responses) or np.ndim(responses[0]) >= 2
    )
    return list(responses) if several else [responses]


def _use_labels(value: Any) -> Any:
    """`Responses` of an object with labelled rows; any other value as it is."""
    if STIMULUS in getattr(value, "coords", ()) and "repetition" not in value.dims:
        return Responses.from_xarray(value)
    array, names = _labelled(value)
    is_plain = names is None or isinstance(value, Responses)
    return value if is_plain else Responses.from_numpy(array, stimulus_ids=names)


def _labelled(value: Any) -> tuple[Any, Names | None]:
    """Values, rows first, and labels of the rows: ``stimulus_id``, or else an index other than 0 … n−1."""
    if isinstance(value, Responses):
        return value.values, value.stimulus_ids
    index: Any = None
    if hasattr(value, "coords") and hasattr(value, "dims"):  # xarray
        if STIMULUS in value.coords and value[STIMULUS].ndim == 1:
            rows = value[STIMULUS]
            return value.transpose(*rows.dims, ...).values, texts(rows.values.tolist())
        index = value.indexes.get(value.dims[0]) if value.dims else None
    elif STIMULUS in getattr(value, "columns", ()):
        others = [name for name in value.columns if name != STIMULUS]
        return value[others], texts(value[STIMULUS])
    elif hasattr(value, "iloc"):  # pandas
        index = value.index
        if STIMULUS in index.names:
            return value, texts(index.get_level_values(STIMULUS))
    if index is None or list(index) == list(range(len(index))):
        return value, None
    return value, texts(index)


def _check_rows(plain: Sequence[Responses], first: Responses, words: pl.DataFrame | None) -> None:
    """Raise `InputError` unless arrays, whose rows have no names, have a row for every stimulus."""
    expected, source = first.n_stimuli, f"as subject '{first.subject}' has"
    if words is not None and STIMULUS in words.columns:
        expected = words[STIMULUS].drop_nulls().n_unique()
        source = f"one per '{STIMULUS}' of the words"
    if any(own.n_stimuli != expected for own in plain):
        raise InputError(
            "arrays do not have one row per stimulus",
            where="argument 'responses'",
            got=", ".join(f"subject '{own.subject}': {own.n_stimuli} rows" for own in plain),
            expected=f"{expected} rows for every subject, {source}",
            remedy="mark missing rows with NaN, or name the rows: Responses.from_numpy(values, stimulus_ids=…)",
        )


def _words(words: Any, others: Sequence[Any]) -> pl.DataFrame | None:
    """The table of words; labels of its index that ``others`` (responses, features) share are stimulus ids."""
    if words is None:
        return None
    if isinstance(words, Sequence) and all(isinstance(word, str) for word in words):
        return pl.DataFrame({"word": list(words)})
    table, names = as_polars(words), _labelled(words)[1]
    if names is None or STIMULUS in table.columns:
        return table
    shared = any(not set(names).isdisjoint(_labelled(own)[1] or ()) for own in others)
    if STIMULUS in words.index.names or (shared and len(set(names)) == len(names)):
        table.insert_column(0, pl.Series(STIMULUS, names))
    return table


def _known_columns(words: pl.DataFrame, category: str = "") -> pl.DataFrame:
    """The columns that are read; `InputError` for another whose name is close to one of these."""
    columns = words.columns
    known = {*WORD_COLUMNS, ITEM, STIMULUS, "log_frequency", *MECHANISMS.names(), category}
    absent = sorted(known.difference(columns))
    known |= {HEAD, RELATION, UPOS, PARAGRAPH, *ACOUSTIC_COLUMNS}
    for name in columns:
        near = difflib.get_close_matches(name.casefold(), absent, n=1, cutoff=_NEAR)
        if name not in known and near:
            raise InputError(
                f"the words have an unknown column '{name}'",
                where="argument 'words'",
                got="columns " + ", ".join(columns),
                expected="names of columns that lpact reads, or names unlike these",
                remedy=f"did you mean '{near[0]}'? If not, rename or drop the column",
            )
    return words.select(name for name in columns if name in known)


def _mechanisms(words: pl.DataFrame | None, category: str) -> tuple[dict[str, FloatArray], pl.DataFrame | None]:
    """Columns with the name of a mechanism, as its values; and the table without them."""
    if words is None:
        return {}, None
    words = _known_columns(words, category)
    found = [name for name in words.columns if name in MECHANISMS.names() and words[name].dtype.is_numeric()]
    return {name: words[name].cast(pl.Float64).to_numpy() for name in found}, words.drop(found)


def _features(
    features: Any, first: Responses, words: pl.DataFrame | None, labelled: bool
) -> tuple[dict[FeatureKey, FloatArray], bool]:
    """Features by key, one row per word; and whether they were given per stimulus of several words."""
    given = {key: _labelled(value) for key, value in _keys(features)}
    if not given:
        raise InputError("there are no features", where=FEATURES, expected="an array, or a model")
    continuous = first.sampling_rate_hz is not None
    order = first.stimulus_ids if labelled and not continuous else None
    if words is not None and STIMULUS in words.columns:
        own = words[STIMULUS]
        # Samples of a continuous recording have several words, or none: such names are not those of words.
        order = texts(own) if not continuous or own.drop_nulls().n_unique() == len(own) else None
    if order is None and len({names for _, names in given.values() if names is not None}) > 1:
        raise InputError(
            "features have different labels, and the responses have none",
            where=FEATURES,
            remedy="label the responses, or add a column 'stimulus_id' to the words",
        )
    arrays = {
        key: numbers(value, FEATURES, key.model)[_rows_in_order(names, order, key.model)]
        for key, (value, names) in given.items()
    }
    if words is None or STIMULUS not in words.columns or continuous:
        return arrays, False
    place = {name: i for i, name in enumerate(dict.fromkeys(words[STIMULUS]))}
    per_stimulus = len(place) != words.height and all(len(array) == len(place) for array in arrays.values())
    if per_stimulus:
        of_word = [place[name] for name in words[STIMULUS]]
        arrays = {key: array[of_word] for key, array in arrays.items()}
    return arrays, per_stimulus


def _rows_in_order(names: Names | None, order: Names | None, model: str) -> Any:
    """Rows of features labelled ``names`` for words (or stimuli) in this order; raise `InputError` if some lack."""
    if names is None or order is None or names == order:
        return ...
    stimuli = tuple(dict.fromkeys(order))
    absent = [name for name in stimuli if name not in set(names)]
    if absent or len(set(names)) < len(names):
        raise InputError(
            f"labels of the features of '{model}' do not match the stimuli",
            where=FEATURES,
            got=f"no row for {some(absent)}" if absent else "several rows with the same label",
            expected=f"one row per stimulus, labelled {some(stimuli)}",
            remedy="correct the labels; or if the rows are in order already, give them without: .to_numpy()",
        )
    return places(names, stimuli)


def _keys(features: Any) -> Iterator[tuple[FeatureKey, Any]]:
    models = features if isinstance(features, Mapping) else {MODEL: features}
    for model, by_layer in models.items():
        layers = by_layer if isinstance(by_layer, Mapping) else {0: by_layer}
        for layer, by_context in layers.items():
            contexts = by_context if isinstance(by_context, Mapping) else {FULL: by_context}
            for context, values in contexts.items():
                if context not in CONTEXTS or not isinstance(layer, int | np.integer):
                    raise InputError(
                        "features are not ordered by model, layer and context",
                        where=FEATURES,
                        got=f"model {model!r}, layer {layer!r}, context {context!r}",
                        expected=f"layers as whole numbers, contexts among {', '.join(CONTEXTS)}",
                        remedy="give {model: {layer: {context: array}}}",
                    )
                draws = values if isinstance(values, list) and np.ndim(values[0]) == 2 else [values]
                for draw, array in enumerate(draws):
                    yield FeatureKey(str(model), int(layer), context, draw), array


def _plain(section: Options | None) -> dict[str, Any]:
    if isinstance(section, BaseModel):
        return section.model_dump(exclude_unset=True)
    return dict(section or {})
