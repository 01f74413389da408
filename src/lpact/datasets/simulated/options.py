"""Options of a simulated study."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from lpact.registry import PluginOptions

Modality = Literal["intracranial", "meg", "fmri", "epoched"]
Truth = Literal[
    "drift", "nuisance", "lexical", "predictive", "relational", "mechanism", "onset", "sound"
]
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

Count = Annotated[int, Field(ge=1)]
Strength = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Coefficient = Annotated[float, Field(ge=0.0, lt=1.0)]

_NOISE_AUTOCORRELATION: dict[Modality, float] = {
    "intracranial": 0.95,
    "meg": 0.95,
    "fmri": 0.4,
    "epoched": 0.2,
}


class SimulatedOptions(PluginOptions):
    """Sizes, planted truths and noise of a simulated study."""

    modality: Modality = Field(
        "intracranial",
        description="Kind of recording: 100 Hz time series (`intracranial`, `meg`), one volume every "
        "2 s through a haemodynamic response (`fmri`), or word epochs with their own lags "
        "(`epoched`).",
    )
    n_subjects: Count = Field(3, description="Subjects.")
    n_sessions: Count = Field(1, description="Sessions of every subject.")
    n_runs: Count = Field(2, description="Runs of every session.")
    repeat_stimulus: bool = Field(
        True,
        description="Whether all runs hear the same stimulus; otherwise run r of every session and "
        "subject hears stimulus r.",
    )
    n_stories: Count = Field(3, description="Stories of a stimulus.")
    sentences_per_story: Annotated[int, Field(ge=4)] = Field(
        20, description="Sentences of a story; each has 5 to 12 words, in prose mostly 5 to 14."
    )
    text: Text = Field(
        "syllables",
        description="What the words are: random `syllables` with ready mechanisms, or `prose`, English "
        "stories of a stochastic grammar with parse and true surprisal, whose mechanisms are left to a "
        "language model and the parse.",
    )
    n_units: Count = Field(16, description="Brain units of a recording.")
    n_regions: Count = Field(4, description="Regions that the units are dealt into.")
    truths: tuple[Truth, ...] = Field(
        ("lexical", "relational", "mechanism"),
        description="What is planted in the brain; empty: nothing that any model knows.",
    )
    snr: Strength = Field(
        1.0,
        description="Factor on every planted component. At 1 a gain of 1 makes a response as large "
        "as the private noise that is left after averaging over 200 ms (`fmri`: in one volume).",
    )
    mechanisms: tuple[Mechanism, ...] = Field(
        ("surprisal",), description="Mechanisms planted under the truth `mechanism`."
    )
    n_mechanism_units: Count = Field(
        3, description="Units that carry a planted mechanism; each mechanism has its own units."
    )
    shared_units: bool = Field(
        True,
        description="Whether units are the same in all subjects; otherwise every subject has its own units "
        "and gains.",
    )
    subject_variability: Strength = Field(
        0.15,
        description="Standard deviation over subjects of the logarithm of a unit's gains; sessions "
        "and runs vary by 0.3 and 0.2 of it.",
    )
    noise_autocorrelation: Coefficient | None = Field(
        None,
        description="Correlation of the noise with itself one sample (`epoched`: one word) later. "
        "Unset: 0.95 at 100 Hz, 0.4 for `fmri`, 0.2 for `epoched`.",
    )
    shared_noise: Strength = Field(
        0.3, description="Size of the noise that all units share, relative to the private noise."
    )
    n_layers: Annotated[int, Field(ge=3)] = Field(
        4, description="Layers 0 … n_layers − 1 of every model; the best one is n_layers − 2."
    )
    vocabulary_size: Annotated[int, Field(ge=20)] = Field(
        400, description="Word types; prose has its own vocabulary."
    )
    n_lexical_dims: Count = Field(6, description="Dimensions of a word type's lexical vector.")
    n_context_dims: Count = Field(
        3, description="Dimensions of the contextual and of the private latent."
    )
    n_lexical_columns: Count = Field(8, description="Feature columns for lexical latents.")
    n_context_columns: Count = Field(
        12, description="Feature columns for contextual (or private) latents."
    )
    columns_per_mechanism: Count = Field(
        2, description="Feature columns for each of the six mechanisms."
    )
    n_noise_columns: Annotated[int, Field(ge=0)] = Field(
        6, description="Feature columns that hold noise only."
    )

    @model_validator(mode="after")
    def _check(self) -> SimulatedOptions:
        for field in ("truths", "mechanisms"):
            names = getattr(self, field)
            if len(set(names)) != len(names):
                raise ValueError(f"{field} lists a name twice; list each name once")
        if "sound" in self.truths and self.modality in ("fmri", "epoched"):
            raise ValueError(
                f"modality '{self.modality}' is too slow for the truth 'sound'; leave it out"
            )
        if "mechanism" in self.truths:
            if not self.mechanisms:
                raise ValueError("the truth 'mechanism' needs at least one of mechanisms")
            n_needed = len(self.mechanisms) * self.n_mechanism_units
            if n_needed > self.n_units:
                raise ValueError(
                    f"{len(self.mechanisms)} mechanisms with n_mechanism_units = "
                    f"{self.n_mechanism_units} need {n_needed} units; raise n_units"
                )
        if self.n_regions > self.n_units:
            raise ValueError("n_regions is larger than n_units; lower it")
        return self

    @property
    def noise_coefficient(self) -> float:
        """Autocorrelation of the noise at a distance of one sample."""
        if self.noise_autocorrelation is not None:
            return self.noise_autocorrelation
        return _NOISE_AUTOCORRELATION[self.modality]

    @property
    def best_layer(self) -> int:
        """The layer that carries more than word identity."""
        return self.n_layers - 2
