"""Feature spaces: position and length, autocorrelated sequences, and what models give, on the events of a recording.

``SP`` is one-hot in the position of the sentence within its story (passage), ``SL`` the number of words in the
sentence, ``WP`` the position of the word in its sentence (a linear ramp, and a one-hot position that is smoothed by a
Gaussian of one word).

OASM (orthogonal autocorrelated sequences) is the identity matrix over events, smoothed along its rows within each chunk
of neighbouring events: events of one chunk resemble their neighbours, and events of different chunks share nothing. It
cannot generalise to a held-out chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d

from lpact.analyses.deconstruct.config import STATIC_PREFIX, DeconstructSection
from lpact.codes import Reason
from lpact.config import LanguageModelConfig
from lpact.errors import ConfigError, FeatureError, require_known
from lpact.features.mechanisms import Missing
from lpact.features.models import FULL, STATIC
from lpact.features.nuisance import NUISANCE, READS
from lpact.grid import EventGrid
from lpact.grid.words import slices
from lpact.inputs.prepare import Prepared
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray, IntArray

SIMPLE = {
    "SP": "position of the sentence in its story",
    "SL": "sentence length",
    "WP": "position of the word in its sentence",
}
"""Built-in spaces, and what they are in words."""

SIMPLE_READS = {"SP": ("sentence_id", "story_id"), "SL": ("sentence_id",), "WP": ("sentence_id",)}
"""Columns of the words table that they cannot do without."""

SHORT = {"SP": "sentence position", "SL": "sentence length", "WP": "word position"}

DEFAULT_LADDER = {
    "sentences": (("SP", "SL"),),
    "words": (("WP",),),
    "trs": (("word_rate", "position_in_story"),),
}
"""Steps of the ladder where the study names none, by kind of event."""

WP_SIGMA = 1.0


def described(space: str) -> str:
    """A feature space in words."""
    static = space.removeprefix(STATIC_PREFIX)
    return SHORT.get(space, f"static vectors of {static}" if static != space else space).replace("_", " ")


def ladder_of(options: DeconstructSection, events: str) -> tuple[tuple[str, ...], ...]:
    """Steps of the ladder for a kind of event."""
    return options.ladder or DEFAULT_LADDER[events]


def check_spaces(options: DeconstructSection, models: Sequence[str]) -> None:
    """Raise `ConfigError` for a space that is neither built in nor a model of the study."""
    known = [*SIMPLE, *NUISANCE, *models, *(STATIC_PREFIX + model for model in models)]
    for space in (space for step in options.ladder for space in step):
        require_known(space, known, "feature space", where="option 'deconstruct.ladder'", error=ConfigError)
    for model in options.scored_models:
        where = "option 'deconstruct.scored_models'"
        require_known(model, models, "model", where=where, error=ConfigError)


# --- on the events of a recording -------------------------------------------------------------------


def why_not(name: str, prepared: Prepared, workspace: Workspace) -> Missing | None:
    """Why a feature space cannot be made for a recording; None if it can. Reads no features."""
    model, context, layer = model_of(name, workspace.config.models)
    if model:
        if (layer, context) in workspace.model(model, prepared).offered:
            return None
        lacking = f"model '{model}' offers no layer {layer} in context '{context}'"
    else:
        needed = READS[NUISANCE[name]] if name in NUISANCE else SIMPLE_READS[name]
        if not (lacking := prepared.stimulus.lacks(*needed)):
            if name in SIMPLE:
                return None
            made = NUISANCE[name](prepared.stimulus, workspace.config.nuisance)
            return made if isinstance(made, Missing) else None
    stimulus = prepared.stimulus
    detail = f"feature space '{name}', stimulus '{stimulus.id}' ({stimulus.where}): {lacking}"
    return Missing(Reason.FEATURE_SPACE_NOT_OFFERED, detail)


def model_of(name: str, models: Sequence[LanguageModelConfig]) -> tuple[str, str, int]:
    """Model, context and layer of a feature space; an empty model if it needs none."""
    model = name.removeprefix(STATIC_PREFIX)
    layers = {entry.name: entry.layers[0] for entry in models}
    if model not in layers:
        return "", FULL, 0
    return (model, FULL, layers[model]) if model == name else (model, STATIC, 0)


def space_of(name: str, prepared: Prepared, workspace: Workspace) -> FloatArray:
    """A feature space on the events, [n_events, p]."""
    model, context, layer = model_of(name, workspace.config.models)
    if model:
        return model_features(workspace, prepared, model, layer, context)
    if name in SIMPLE:
        return _simple(name, prepared)
    values = NUISANCE[name](prepared.stimulus, workspace.config.nuisance)
    if isinstance(values, Missing):
        raise FeatureError(values.detail, where=f"feature space '{name}'")
    return prepared.grid.pool(values)


def model_features(
    workspace: Workspace,
    prepared: Prepared,
    model: str,
    layer: int,
    context: str,
    draw: int = 0,
) -> FloatArray:
    """A model's features on the events, [n_events, p].

    The tokens of an event are pooled as the model reads those of a word; features that were not read from tokens
    follow the grid of the dataset.
    """
    on_grid, source = workspace.model(model, prepared), workspace.sources[model]
    grid, read_as = prepared.grid, source.token_pooling
    if grid.weights is not None:
        return on_grid.load(layer, context, draw)
    if source.has_sentences(model, prepared.stimulus):
        return replace(grid, pooling="last").pool(on_grid.words(layer, context, draw))
    if read_as is None:
        return on_grid.load(layer, context, draw)
    values = on_grid.words(layer, context, draw)
    if read_as != "mean" or (grid.stop_word - grid.first_word == 1).all():
        return replace(grid, pooling=read_as).pool(values)  # type: ignore[arg-type]
    # Over tokens, not over the means of words.
    counts = source.token_counts(model, prepared.stimulus).astype(np.float64)[:, None]
    of_events = replace(grid, pooling="sum")
    return np.asarray(of_events.pool(values * counts) / of_events.pool(counts))


def _simple(name: str, prepared: Prepared) -> FloatArray:
    words, first = prepared.stimulus.words, prepared.grid.first_word
    start, stop = slices(words, "sentence_id")
    if name == "SL":
        length = np.repeat(stop - start, stop - start)
        return length[first, None].astype(np.float64)
    if name == "WP":
        place = np.arange(words.height) - np.repeat(start, stop - start)
        return word_position(place[first], int(place.max()) + 1)
    sentence = words["sentence_id"].rle_id().to_numpy().astype(np.int64)
    story_start, story_stop = slices(words, "story_id")
    of_story = np.repeat(sentence[story_start], story_stop - story_start)
    return one_hot((sentence - of_story)[first])


def one_hot(position: IntArray) -> FloatArray:
    """One column per position that occurs, [n, k]."""
    return np.asarray(position[:, None] == np.unique(position), dtype=np.float64)


def word_position(position: IntArray, n_positions: int) -> FloatArray:
    """Linear ramp, and one-hot positions smoothed by a Gaussian of one word, [n, 1 + n_positions]."""
    smooth = gaussian_filter1d(np.eye(n_positions), WP_SIGMA, axis=1)
    return np.column_stack([position, smooth[position]])


# --- autocorrelation --------------------------------------------------------------------------------


def chunks_of(grid: EventGrid, events: str) -> IntArray:
    """Chunk of every event for OASM: its sentence where events are words, else its story."""
    if events != "words":
        return grid.story
    starts = (np.diff(grid.sentence, prepend=-1) != 0) | (np.diff(grid.story, prepend=-1) != 0)
    return np.cumsum(starts)


def oasm(chunks: IntArray, sigma: float) -> FloatArray:
    """Orthogonal autocorrelated sequences, [n, n].

    The filter is SciPy's: reflected at the ends of a chunk, cut off at 4 σ.
    """
    out = np.zeros((chunks.size, chunks.size))
    edges = np.flatnonzero(np.diff(chunks, prepend=np.nan, append=np.nan))
    for start, stop in pairwise(edges.tolist()):
        out[start:stop, start:stop] = gaussian_filter1d(np.eye(stop - start), sigma, axis=1)
    return out
