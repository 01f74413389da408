"""Deconstruct's part of the study file: ``[deconstruct]``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lpact.config import Section, StudyConfig
from lpact.math.ridge import BandedGrid

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
Choice = Literal["nested", "best_on_test"]

STATIC_PREFIX = "static:"
"""Before the name of a model whose static vectors are a feature space."""

ADDS, ACCOUNTED_FOR, NOTHING, UNKNOWN = (
    "adds_to_simple_features",
    "accounted_for_by_simple_features",
    "predicts_nothing",
    "not_computed",
)
LABELS = {
    ADDS: "The model predicts held-out responses, and adds to what simple features predict.",
    ACCOUNTED_FOR: "The model predicts held-out responses; no evidence that it adds to simple features.",
    NOTHING: "There is no evidence that the model predicts held-out responses at all.",
    UNKNOWN: "The sources do not allow the comparison.",
}
"""Verdicts, strongest first."""


class DeconstructSection(Section):
    """What simple features explain a model's score?"""

    ladder: tuple[tuple[str, ...], ...] = ()
    """Steps from simple to complex, each a list of feature spaces with separate penalties: `SP` (sentence position,
    one-hot), `SL` (sentence length), `WP` (word position: ramp and smoothed one-hot), a nuisance feature, a model of
    the study (word vectors, a user's matrix), or `static:MODEL`. Empty: `SP` and `SL` for sentences, `WP` for words,
    `word_rate` and `position_in_story` for TRs.
    """
    simple_steps: Annotated[int, Field(ge=0)] = 0
    """Number of steps that count as simple: what they cannot account for is the model's own. 0: all."""
    scored_models: tuple[str, ...] = ()
    """Models to deconstruct. Empty: all that are not in `ladder`."""
    network: str = ""
    """Region whose units decide on layers, sub-models and verdicts. Empty: all units. All regions have scores."""
    split_by: Literal["auto", "story", "sentence", "rows"] = "auto"
    """What a test set never shares with its training set. `auto`: sentences for words, else stories (passages); `rows`
    where there are fewer than 5 of them. `rows`: contiguous blocks with the gap of `readout.gap_events`.
    """
    category: str = ""
    """Column of the words table with the category of every story. A fold then tests one story of each category, for
    half of the categories, as is usual for Pereira et al. (2018). Empty: stories are assigned to folds in order.
    """
    n_folds: Annotated[int, Field(ge=3)] = 8
    """Outer folds; fewer if there are fewer groups. With `category`, categories determine the number. All other folds
    serve as validation folds in turn.
    """
    block_events: Annotated[int, Field(ge=2)] = 10
    """Events of a block in tests with `split_by = "rows"`; with groups, a block is a group."""
    shuffled: bool = True
    """Whether scores under shuffled splits are computed, as a diagnostic: they reward autocorrelation."""
    oasm: bool = True
    """Whether orthogonal autocorrelated sequences (OASM), which encode nothing but time, are fitted."""
    oasm_sigmas: tuple[Positive, ...] = Field(tuple(round(0.1 * i, 1) for i in range(1, 51)), min_length=1)
    """Widths of the Gaussian filter of OASM to choose from, in events."""
    oasm_choice: Choice = "nested"
    """`nested`: the width with the best validation score in each outer fold. `best_on_test`: the one with the best test
    score, as in the literature; optimistic.
    """
    untrained: bool = True
    """Whether untrained copies of the models are compared with the first step of the ladder, where they are offered."""
    layer_choice: Choice = "nested"
    """How a model's layer is chosen; see `oasm_choice`."""
    sub_model: Literal["validation", "best_of_network", "best_of_unit", "none"] = "validation"
    """How the sub-model of a step is chosen, where adding features can hurt. `validation`: per unit and
    outer fold, by validation score. `best_of_network`, `best_of_unit`: by test score, over units or for each of them,
    as in the literature; optimistic. `none`: all features of the step and those before. All four are stored; verdicts
    rest on this one.
    """
    alphas: tuple[Positive, ...] = Field(tuple(2.0**i for i in range(-5, 20, 2)), min_length=1)
    """Ridge penalties, divided by the weight of each feature space."""
    draws: Annotated[int, Field(ge=0)] = 1000
    """Largest number of random weights of feature spaces, tried after all ways of dropping spaces."""
    patience: Count = 50
    """The search ends when this many draws in a row have not raised the mean score."""
    min_gain: Annotated[float, Field(ge=0.0)] = 1e-4
    """Smallest rise of the mean validation score that counts."""
    selection_score: Literal["mean", "pooled"] = "pooled"
    """Validation R². `pooled`: of the predictions of all validation folds together, around the training means. `mean`:
    mean over folds, around each fold's own mean.
    """
    permutations: Annotated[int, Field(ge=19)] = 999
    """Random signs of the blocks' differences, in the permutation test of every unit."""
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05
    """Level of all tests, and of false discoveries."""

    @model_validator(mode="after")
    def _check(self) -> DeconstructSection:
        if any(not step for step in self.ladder):
            raise ValueError("a step of ladder is empty; name at least one feature space")
        listed = [space for step in self.ladder for space in step]
        twice = sorted({space for space in listed if listed.count(space) > 1})
        if twice:
            raise ValueError(f"ladder lists '{twice[0]}' twice; list each feature space once")
        if self.simple_steps > len(self.ladder) > 0:
            raise ValueError(f"simple_steps is {self.simple_steps}, and ladder has {len(self.ladder)} steps; lower it")
        return self

    @property
    def grid(self) -> BandedGrid:
        """Penalties and search of the banded ridge."""
        metric = "pooled_r2" if self.selection_score == "pooled" else "r2"
        return BandedGrid(
            self.alphas,
            draws=self.draws,
            patience=self.patience,
            min_gain=self.min_gain,
            metric=metric,  # type: ignore[arg-type]
        )


def options_of(study: StudyConfig) -> DeconstructSection:
    """The options of a study that asks this question."""
    own = study.analyses["deconstruct"]
    assert isinstance(own, DeconstructSection)
    return own


def models_of(study: StudyConfig) -> tuple[str, ...]:
    """Models whose scores are deconstructed."""
    options = options_of(study)
    in_ladder = {space for step in options.ladder for space in step}
    others = (model.name for model in study.models if model.name not in in_ladder)
    return options.scored_models or tuple(others)
