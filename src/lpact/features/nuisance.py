"""Nuisance features: what a model must beat.

They have one row per word; `EventGrid.pool` puts them on the event grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.config import NuisanceConfig
from lpact.datasets.base import Finding, Stimulus
from lpact.datasets.validate import check_stimulus
from lpact.errors import ConfigError, did_you_mean, require_known
from lpact.features.acoustics import EnvelopeSettings, stimulus_envelope, why_no_envelope
from lpact.features.mechanisms import Missing
from lpact.grid.words import slices, times_s
from lpact.math.types import BoolArray, FloatArray
from lpact.math.windows import mean_slices, nearest_sample, window_samples

Builder: TypeAlias = Callable[[Stimulus, NuisanceConfig], FloatArray | Missing]
"""Makes one nuisance feature of checked words: [n_words, n_columns], or why there is none."""

SHOWN_WORDS = 8
"""Words without a frequency that a finding names."""


def build_nuisance(
    stimulus: Stimulus, config: NuisanceConfig
) -> tuple[FloatArray, tuple[str, ...], dict[str, Missing]]:
    """Return the configured nuisance features of every word, [n_words, n_columns], their names, and missing ones.

    A column has the feature's name, with ``_0``, ``_1`` … if the feature has several. There may be no columns.
    """
    check_stimulus(stimulus)
    blocks: list[FloatArray] = [np.empty((stimulus.words.height, 0))]
    columns: list[str] = []
    missing: dict[str, Missing] = {}
    for name in config.include:
        builder = nuisance_builder(name)
        lacking = stimulus.lacks(*READS[builder])
        block = _not_offered(stimulus, lacking) if lacking else builder(stimulus, config)
        if isinstance(block, Missing):
            missing[name] = block
            continue
        blocks.append(block)
        n_columns = block.shape[1]
        columns += [name] if n_columns == 1 else [f"{name}_{i}" for i in range(n_columns)]
    return np.hstack(blocks), tuple(columns), missing


def nuisance_findings(stimulus: Stimulus, config: NuisanceConfig) -> list[Finding]:
    """Return a note on words whose frequency is the list's lowest, because the list does not have them."""
    language, words = config.language, stimulus.words
    listed = language is not None and "log_frequency" in config.include
    if language is None or not listed or "log_frequency" in words.columns or not stimulus.has_text:
        return []
    _, unlisted = list_log_frequency(words["word"].to_list(), language)
    if not unlisted.any():
        return []
    distinct = words["word"].filter(pl.Series(unlisted)).unique(maintain_order=True).to_list()
    shown = ", ".join(repr(word) for word in distinct[:SHOWN_WORDS])
    more = " …" if len(distinct) > SHOWN_WORDS else ""
    return [
        Finding(
            "log_frequency",
            Reason.WORDS_WITHOUT_FREQUENCY,
            "note",
            stimulus.where,
            f"{int(unlisted.sum())} of {unlisted.size} words ({len(distinct)} different): {shown}{more}",
            f"every word in the list of language '{language}'",
            "check language and spelling, or add a column 'log_frequency'; "
            "they have the frequency of the rarest word in the list",
        )
    ]


def word_rate(stimulus: Stimulus, config: NuisanceConfig) -> FloatArray:
    """Word onsets per second: onsets of the story within ``[t − w/2, t + w/2)``, divided by w."""
    onset_s, _ = times_s(stimulus.words)
    half_s = config.rate_window_s / 2.0
    n_onsets = np.empty(onset_s.size)
    for rows in _stories(stimulus):
        t = onset_s[rows]
        n_onsets[rows] = np.searchsorted(t, t + half_s) - np.searchsorted(t, t - half_s)
    return n_onsets[:, None] / config.rate_window_s


def word_duration(stimulus: Stimulus, _: NuisanceConfig) -> FloatArray:
    """Offset minus onset of the word, in seconds."""
    onset_s, offset_s = times_s(stimulus.words)
    return (offset_s - onset_s)[:, None]


def pause_duration(stimulus: Stimulus, _: NuisanceConfig) -> FloatArray:
    """Silence before the word, in seconds: from the latest offset of the story's earlier words.

    It is 0 by definition for the first word of a story and where words overlap.
    """
    onset_s, offset_s = times_s(stimulus.words)
    pause_s = np.zeros(onset_s.size)
    for rows in _stories(stimulus):
        silent_from_s = np.maximum.accumulate(offset_s[rows][:-1])
        pause_s[rows][1:] = np.maximum(onset_s[rows][1:] - silent_from_s, 0.0)
    return pause_s[:, None]


def word_length(stimulus: Stimulus, _: NuisanceConfig) -> FloatArray:
    """Letters and digits of the word (Unicode alphanumerics); punctuation does not count."""
    words = stimulus.words["word"].to_list()
    n_letters = [sum(character.isalnum() for character in word) for word in words]
    return np.array(n_letters, dtype=np.float64)[:, None]


def log_frequency(stimulus: Stimulus, config: NuisanceConfig) -> FloatArray | Missing:
    """Natural log of the word's probability: the column ``log_frequency``, else the list of ``nuisance.language``.

    A word that the list does not have gets the frequency of the rarest word in it.
    """
    if "log_frequency" in stimulus.words.columns:
        column = stimulus.words["log_frequency"]
        if not column.dtype.is_numeric():
            return _not_offered(stimulus, f"'log_frequency' contains {column.dtype}, not numbers")
        values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        if (unknown := ~np.isfinite(values)).any():
            return _not_offered(stimulus, "no log frequency for " + _some(stimulus, unknown))
        return values[:, None]
    if lacking := stimulus.lacks("word"):
        return _not_offered(stimulus, lacking)
    if config.language is None:
        why = "the words table has no column 'log_frequency', and the option nuisance.language is unset"
        return _not_offered(stimulus, why)
    return list_log_frequency(stimulus.words["word"].to_list(), config.language)[0][:, None]


def position_in_sentence(stimulus: Stimulus, _: NuisanceConfig) -> FloatArray:
    """Index i = 0, 1, … of the word in its sentence of n words, and ``i / (n − 1)``, 0 if n = 1."""
    first, stop = slices(stimulus.words, "sentence_id")
    length = np.repeat(stop - first, stop - first)
    index = np.arange(stimulus.words.height) - np.repeat(first, stop - first)
    return np.column_stack((index, index / np.maximum(length - 1, 1)))


def sentence_length(stimulus: Stimulus, _: NuisanceConfig) -> FloatArray:
    """Number of words in the word's sentence."""
    first, stop = slices(stimulus.words, "sentence_id")
    return np.repeat(stop - first, stop - first).astype(np.float64)[:, None]


def sentence_position(stimulus: Stimulus, _: NuisanceConfig) -> FloatArray:
    """Index j = 0, 1, … of the word's sentence in its story of m sentences, and ``j / (m − 1)``, 0 if m = 1."""
    sentence = stimulus.words["sentence_id"].rle_id().cast(pl.Float64).to_numpy()
    position = np.empty((sentence.size, 2))
    for rows in _stories(stimulus):
        index = sentence[rows] - sentence[rows.start]
        position[rows] = np.column_stack((index, index / max(index[-1], 1.0)))
    return position


def position_in_story(stimulus: Stimulus, config: NuisanceConfig) -> FloatArray:
    """Position x from 0 (first onset of the story) to 1 (last), then ``cos(π k x)``, k = 1 … K.

    x runs in time, as slow drifts of a recording do; for items without times, in the order of the rows. It is 0 where
    all onsets of a story are equal.
    """
    onset_s, _ = times_s(stimulus.words)
    x = np.zeros(onset_s.size)
    for rows in _stories(stimulus):
        elapsed_s = onset_s[rows] - onset_s[rows.start]
        if elapsed_s[-1] > 0:
            x[rows] = elapsed_s / elapsed_s[-1]
    cosines = np.cos(np.pi * x[:, None] * np.arange(1, config.drift_cosines + 1))
    return np.hstack((x[:, None], cosines))


def acoustic_envelope(stimulus: Stimulus, config: NuisanceConfig) -> FloatArray | Missing:
    """Mean of the acoustic envelope, the dataset's or its WAV file's, from the word's onset to its offset."""
    settings = EnvelopeSettings(config.envelope_rate_hz, config.envelope_lowpass_hz)
    if (why := why_no_envelope(stimulus)) is not None:
        return _not_offered(stimulus, why)
    envelope = stimulus_envelope(stimulus, settings)
    onset_s, offset_s = times_s(stimulus.words)
    rate_hz = envelope.sampling_rate_hz
    first = nearest_sample(onset_s, start_s=envelope.start_s, sampling_rate_hz=rate_hz)
    length = window_samples(offset_s - onset_s, sampling_rate_hz=rate_hz)
    outside = (first < 0) | (first + length > envelope.values.size)
    if outside.any():
        return _not_offered(stimulus, "the envelope does not cover " + _some(stimulus, outside))
    return mean_slices(envelope.values[:, None], first, length)


READS: dict[Builder, tuple[str, ...]] = {
    word_rate: ("onset_s",),
    word_duration: ("onset_s", "offset_s"),
    pause_duration: ("onset_s", "offset_s"),
    word_length: ("word",),
    log_frequency: (),
    position_in_sentence: ("sentence_id",),
    sentence_length: ("sentence_id",),
    sentence_position: ("sentence_id",),
    position_in_story: (),
    acoustic_envelope: ("onset_s", "offset_s"),
}
"""Columns of the words table that a feature cannot do without."""

NUISANCE: dict[str, Builder] = {builder.__name__: builder for builder in READS}
"""Every nuisance feature by name; the first line of a builder's docstring defines it."""


def nuisance_builder(name: str) -> Builder:
    """Return the builder of a nuisance feature; an unknown name is a `ConfigError`."""
    where = "option 'nuisance.include'"
    require_known(name, NUISANCE, "nuisance feature", where=where, error=ConfigError)
    return NUISANCE[name]


def _stories(stimulus: Stimulus) -> list[slice]:
    return [slice(*edges) for edges in zip(*slices(stimulus.words, "story_id"), strict=True)]


def _not_offered(stimulus: Stimulus, why: str) -> Missing:
    return Missing(Reason.NUISANCE_NOT_OFFERED, f"stimulus '{stimulus.id}' ({stimulus.where}): {why}")


def _some(stimulus: Stimulus, affected: BoolArray) -> str:
    row = int(np.argmax(affected))
    return (
        f"{int(affected.sum())} of {affected.size} words, first word {row} "
        f"('{stimulus.words['word'][row]}' at {stimulus.words['onset_s'][row]:.3f} s)"
    )


def list_log_frequency(words: Sequence[str], language: str) -> tuple[FloatArray, BoolArray]:
    """Return the natural log of each word's probability, and which words the list lacks, [n_words] each.

    The lists are those of the package ``wordfreq`` (Speer, 2022), which looks a word up in lower case, without
    punctuation, split into the list's own tokens. Several tokens (``ice-cold``) combine as ``1 / p = 1 / p₁ + 1 / p₂
    + …``; numbers are estimated from their shape. A word with a token that is not listed, or without any token
    (punctuation only), is unlisted and gets the floor (`list_floor`); no word gets less.
    """
    floor = list_floor(language)
    from wordfreq import word_frequency

    frequency = np.array([word_frequency(word, language) for word in words], dtype=np.float64)
    return np.log(np.maximum(frequency, floor)), frequency == 0.0


@lru_cache(maxsize=8)
def list_floor(language: str) -> float:
    """Return the probability of the rarest word in the list of a language.

    An unknown language, and a package that is not installed, are a `ConfigError`.
    """
    try:
        import wordfreq
        from wordfreq.tokens import tokenize

        known = sorted(wordfreq.available_languages())
        # The package itself would quietly take the nearest language: Dutch for Afrikaans.
        if language in known:
            tokenize("0", language)  # Chinese, Japanese and Korean need more packages
    except ImportError as problem:
        raise ConfigError(
            "word frequencies need a package that is not installed",
            where="option 'nuisance.language'",
            got=f"'{language}': {problem}",
            expected="the package wordfreq, or a column 'log_frequency' in the words table",
            remedy="pip install 'lpact[lm]', and 'wordfreq[cjk]' for Chinese, Japanese and Korean",
        ) from None
    if language not in known:
        raise ConfigError(
            "there is no list of word frequencies for this language",
            where="option 'nuisance.language'",
            got=language,
            expected="one of " + ", ".join(known),
            remedy=f"{did_you_mean(language, known)}; or add a column 'log_frequency' to the words table",
        )
    centibels = wordfreq.get_frequency_list(language)
    rarest = max(index for index, tokens in enumerate(centibels) if tokens)
    return math.pow(10.0, -rarest / 100.0)
