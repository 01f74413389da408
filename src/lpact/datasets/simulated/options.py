"""Options of a simulated study."""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from lpact.datasets.simulated.prose import N_STORIES, SENTENCES_PER_STORY
from lpact.registry import PluginOptions

Modality = Literal["intracranial", "meg", "fmri", "epoched"]
Truth = Literal["drift", "nuisance", "lexical", "predictive", "relational", "mechanism", "onset", "sound"]
Text = Literal["syllables", "prose"]
Mechanism = Literal[
    "surprisal",
    "semantic_transition",
    "dependency_integration",
    "syntactic_boundary",
    "discourse_boundary",
    "context_update",
]
MECHANISMS: tuple[str, ...] = get_args(Mechanism)

MOST = 1_000_000
"""Units, words, subjects: more would only fill the memory."""
MOST_TYPES = 100_000
"""Words of a vocabulary."""
MOST_LAYERS = 1000
"""Layers, models and draws of them."""
MOST_RECORDINGS = 10_000
WORDS_PER_SENTENCE = (5, 12)
"""Of syllables."""
SAMPLES_PER_WORD = 40
"""At 100 Hz, with pauses."""
MOST_VALUES = 2**30
"""Random numbers of all recordings."""
Count = Annotated[int, Field(ge=1, le=MOST)]
Strength = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Coefficient = Annotated[float, Field(ge=0.0, lt=1.0)]

_NOISE_AUTOCORRELATION: dict[Modality, float] = {"intracranial": 0.95, "meg": 0.95, "fmri": 0.4, "epoched": 0.2}


def check_size(n_recordings: int, *shapes: tuple[int, ...]) -> None:
    """Raise `ValueError` for sizes that would take hours or fill the memory; ``shapes`` are those of what is drawn."""
    n_values = max(map(math.prod, shapes))
    if n_recordings > MOST_RECORDINGS or n_values > MOST_VALUES:
        raise ValueError(
            f"these sizes make {n_recordings:,} recordings and draw {n_values:,} numbers; at most "
            f"{MOST_RECORDINGS:,} and {MOST_VALUES:,} can be simulated, so lower them"
        )


class SimulatedOptions(PluginOptions):
    """Sizes, planted truths and noise of a simulated study."""

    modality: Modality = "intracranial"
    """Kind of recording: 100 Hz time series (`intracranial`, `meg`), one volume every 2 s through a haemodynamic
    response (`fmri`), or word epochs with their own lags (`epoched`).
    """
    n_subjects: Count = 3
    """Subjects."""
    n_sessions: Count = 1
    """Sessions of every subject."""
    n_runs: Count = 2
    """Runs of every session."""
    repeat_stimulus: bool = True
    """Whether all runs hear the same stimulus; otherwise run r of every session and subject hears stimulus r."""
    n_stories: Count = 3
    """Stories of a stimulus."""
    sentences_per_story: Annotated[int, Field(ge=4, le=MOST)] = 20
    """Sentences of a story; each has 5 to 12 words, in prose mostly 5 to 14. Prose has at most 40."""
    text: Text = "syllables"
    """What the words are: random `syllables` with ready mechanisms, or `prose`, English stories with parse and true
    surprisal, whose mechanisms are left to a language model and the parse. Prose has 160 stories; every stimulus of a
    dataset has its own.
    """
    n_units: Count = 16
    """Brain units of a recording."""
    n_regions: Count = 4
    """Regions that the units are dealt into."""
    truths: tuple[Truth, ...] = ("lexical", "relational", "mechanism")
    """Effects planted in the brain; empty: nothing that any model knows."""
    snr: Strength = 1.0
    """Factor on every planted component. At 1 a gain of 1 makes a response as large as the private noise that is left
    after averaging over 200 ms (`fmri`: in one volume).
    """
    mechanisms: tuple[Mechanism, ...] = ("surprisal",)
    """Mechanisms planted under the truth `mechanism`."""
    n_mechanism_units: Count = 3
    """Units that carry a planted mechanism; each mechanism has its own units."""
    shared_units: bool = True
    """Whether units are the same in all subjects; otherwise every subject has its own units and gains."""
    subject_variability: Strength = 0.15
    """Standard deviation over subjects of the logarithm of a unit's gains; sessions and runs vary by 0.3 and 0.2 of it.
    """
    noise_autocorrelation: Coefficient | None = None
    """Correlation of the noise with itself one sample (`epoched`: one word) later. Unset: 0.95 at 100 Hz, 0.4 for
    `fmri`, 0.2 for `epoched`.
    """
    shared_noise: Strength = 0.3
    """Size of the noise that all units share, relative to the private noise."""
    n_layers: Annotated[int, Field(ge=3, le=MOST_LAYERS)] = 4
    """Layers 0 … n_layers − 1 of every model; the best one is n_layers − 2."""
    vocabulary_size: Annotated[int, Field(ge=20, le=MOST_TYPES)] = 400
    """Word types; prose has its own vocabulary."""
    n_lexical_dims: Count = 6
    """Dimensions of a word type's lexical vector."""
    n_context_dims: Count = 3
    """Dimensions of the contextual and of the private latent."""
    n_lexical_columns: Count = 8
    """Feature columns for lexical latents."""
    n_context_columns: Count = 12
    """Feature columns for contextual (or private) latents."""
    columns_per_mechanism: Count = 2
    """Feature columns for each of the six mechanisms."""
    n_noise_columns: Annotated[int, Field(ge=0, le=MOST)] = 6
    """Feature columns of noise only."""

    @model_validator(mode="after")
    def _check(self) -> SimulatedOptions:
        for field in ("truths", "mechanisms"):
            names = getattr(self, field)
            if len(set(names)) != len(names):
                raise ValueError(f"{field} lists a name twice; list each name once")
        if "sound" in self.truths and self.modality in ("fmri", "epoched"):
            raise ValueError(f"modality '{self.modality}' is too slow for the truth 'sound'; leave it out")
        if "mechanism" in self.truths:
            if not self.mechanisms:
                raise ValueError("the truth 'mechanism' needs at least one of mechanisms")
            n_needed = len(self.mechanisms) * self.n_mechanism_units
            if n_needed > self.n_units:
                raise ValueError(
                    f"{len(self.mechanisms)} mechanisms with n_mechanism_units = "
                    f"{self.n_mechanism_units} need {n_needed} units; raise n_units"
                )
        n_stories = self.n_stories * (1 if self.repeat_stimulus else self.n_runs)
        if self.text == "prose" and n_stories > N_STORIES:
            raise ValueError(
                f"text 'prose' has {N_STORIES} stories, and the stimuli need {n_stories}; lower n_stories or n_runs"
            )
        if self.text == "prose" and self.sentences_per_story > SENTENCES_PER_STORY:
            raise ValueError(
                f"stories of text 'prose' have {SENTENCES_PER_STORY} sentences; "
                "lower sentences_per_story, or raise n_stories"
            )
        if self.n_regions > self.n_units:
            raise ValueError("n_regions is larger than n_units; lower it")
        n_recordings = self.n_subjects * self.n_sessions * self.n_runs
        n_words = n_stories * self.sentences_per_story * WORDS_PER_SENTENCE[1]
        n_columns = (
            self.n_lexical_columns
            + self.n_context_columns
            + len(MECHANISMS) * self.columns_per_mechanism
            + self.n_noise_columns
        )
        n_dims = self.n_lexical_dims + self.n_context_dims
        n_samples = n_words * (SAMPLES_PER_WORD if self.modality in ("intracranial", "meg") else 1)
        check_size(
            n_recordings,
            (n_recordings, n_samples, self.n_units),
            (max(n_words, self.vocabulary_size, n_dims), n_columns + n_dims),
            (self.n_units, n_dims),
        )
        return self

    @property
    def noise_coefficient(self) -> float:
        """Autocorrelation of the noise at a distance of one sample."""
        if self.noise_autocorrelation is not None:
            return self.noise_autocorrelation
        return _NOISE_AUTOCORRELATION[self.modality]

    @property
    def best_layer(self) -> int:
        """The layer of the simulated models that carries more than word identity."""
        return self.n_layers - 2
