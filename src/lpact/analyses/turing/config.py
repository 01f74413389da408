"""The Turing test's part of the study file: ``[turing]``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lpact.config import Section, StudyConfig

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
Growth = Literal["units", "stimuli", "repetitions"]

ALL, EACH = "all", "each"
"""All units of a subject, and every region that all subjects have."""

CONVERGES, ABOVE, INCONCLUSIVE, BELOW, CANNOT_REJECT, NO_AGREEMENT, UNKNOWN = (
    "converges",
    "above",
    "inconclusive",
    "below",
    "cannot_reject",
    "no_agreement",
    "not_computed",
)
PAIRED = "paired"
"""The test where each brain is compared with all others together."""
LABELS = {
    CONVERGES: "Cannot be told from a brain by this measure on these data: not rejected, and equivalent.",
    ABOVE: "Closer to brains than brains are to each other.",
    INCONCLUSIVE: "Not rejected, and not shown to be equivalent; or favoured by more columns than brains have units.",
    BELOW: "Further from brains than brains are from each other.",
    CANNOT_REJECT: "The test could tell no model from a brain with these subjects.",
    NO_AGREEMENT: "No evidence that brains agree with each other by this measure, so there is nothing to compare with.",
    UNKNOWN: "The sources do not allow the comparison.",
}
"""Verdicts, strongest first."""
SHORT = {
    CONVERGES: "cannot be told from a brain",
    ABOVE: "is closer to brains than they are to each other",
    INCONCLUSIVE: "is undecided",
    BELOW: "is further from brains than they are from each other",
    CANNOT_REJECT: "cannot be tested",
    NO_AGREEMENT: "has no brain–brain agreement to be compared with",
    UNKNOWN: "was not computed",
}
SHORT_POOLED = SHORT | {
    CONVERGES: "scores as high as all other brains together",
    ABOVE: "scores higher than all other brains together",
    BELOW: "scores lower than all other brains together",
}
LABELS_POOLED = LABELS | {label: f"{SHORT_POOLED[label].capitalize()}." for label in (CONVERGES, ABOVE, BELOW)}
GATES = {
    "A": "Brains agree with each other.",
    "T": "A test could distinguish a model from a brain with these subjects.",
    "C": "The model has no more columns than a typical brain has units, or more units no longer help.",
    "N": "The test does not reject that the model is one more brain.",
    "E": "The model's gap is shown to be within the bound.",
}
"""Gates by letter, in their order."""


class TuringSection(Section):
    """Is the model as close to a brain as brains are to each other?"""

    measures: tuple[str, ...] = Field(("linear", "rsa"), min_length=1)
    """Measures of alignment (`lpact list measures`); each is tested separately."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by measure; see its reference page."""
    models: tuple[str, ...] = ()
    """Models to test. Empty: all of the study."""
    instances: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Groups of models that are instances of one model, such as its random seeds, by the group's name. The distribution
    of their scores is compared with that of brains.
    """
    regions: tuple[str, ...] = Field((ALL,), min_length=1)
    """Populations of units: names of regions, `all` for all units, `each` for every region that all subjects have."""
    lags_ms: tuple[float, ...] = ()
    """Time points, among the lags of the event grid. Empty: all of them."""
    source: Literal["pairs", "pooled"] = "pairs"
    """What each subject is compared with. `pairs`: every other subject. `pooled`: the units of all other subjects
    together, if single subjects have too few units.
    """
    source_units: Annotated[int, Field(ge=0)] = 0
    """Units drawn at random from every source, brain or model, so that sources with many units have no advantage.
    0: all.
    """
    source_draws: Count = 5
    """Draws of `source_units` to average over."""
    model_trials: Literal["matched", "none"] = "matched"
    """`matched`: models get simulated trials, as many and as noisy as those of a typical subject, so that one more
    brain is treated like the others. `none`: models have no noise, as in the literature; noise of source brains is
    corrected only in part, so models may look closer or further than they are.
    """
    estimator: Literal["full_trials", "half_trials", "as_printed", "none"] = "full_trials"
    """Noise correction. `full_trials`: scores of all trials, divided by reliabilities of all trials
    (Spearman–Brown). `half_trials`: scores and reliabilities of half of the trials. `as_printed`: scores of half of the
    trials, divided by reliabilities of all; biased low. `none`: no correction. Measures that are not correlations
    are never corrected.
    """
    n_halves: Count = 10
    """Random halves of the trials to average over."""
    split_by: Literal["auto", "story", "rows", "random"] = "auto"
    """What a test set never shares with its training set. `story`: stories. `rows`: contiguous blocks of stimuli, with
    `gap_events`. `auto`: stories where there are at least `n_folds`, else rows. `random`: `n_folds` random
    fifths, as in published implementations; optimistic if neighbouring stimuli are similar.
    """
    n_folds: Annotated[int, Field(ge=2)] = 5
    """Folds of measures that are fitted. The others use all stimuli at once, or two halves if a layer is chosen."""
    gap_events: Annotated[int, Field(ge=0)] = 5
    """Stimuli left out of training on both sides of a test block, with `split_by = "rows"`."""
    alphas: tuple[Positive, ...] = Field(tuple(10.0**i for i in range(-1, 7)), min_length=1)
    """Ridge penalties of the measure `linear`, chosen for every unit on training stimuli."""
    layer_choice: Literal["nested", "best_on_test"] = "nested"
    """`nested`: the layer with the best score on training stimuli, in every fold. `best_on_test`: the one with the best
    test score, as in Feather et al. (2025); optimistic.
    """
    test: Literal["auto", "exact", "approximate"] = "auto"
    """`exact`: permutation of who is the model, for symmetric measures; it needs 19 subjects to reject at 0.05.
    `approximate`: Student's t for one new subject. `auto`: exact where it can reject, else approximate.
    """
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05
    """Level of all tests."""
    equivalence_bound: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    """Largest gap between model and brains that counts as equivalent, as a share of the brain–brain value."""
    growth: tuple[Growth, ...] = ("units", "stimuli", "repetitions")
    """What to reduce in number, to see whether brain–brain agreement still grows with it."""
    growth_draws: Count = 4
    """Random subsamples of every size."""
    min_stimuli: Annotated[int, Field(ge=10)] = 20
    """Fewest stimuli that all subjects must share."""

    @model_validator(mode="after")
    def _check(self) -> TuringSection:
        if unused := [name for name in self.options if name not in self.measures]:
            raise ValueError(
                f"options has '{unused[0]}', which is not in measures; add it there, or remove its options"
            )
        if self.source == "pooled" and self.test == "exact":
            raise ValueError('test = "exact" needs source = "pairs"; set test = "auto"')
        return self


def options_of(study: StudyConfig) -> TuringSection:
    """The options of a study that asks this question."""
    own = study.analyses["turing"]
    assert isinstance(own, TuringSection)
    return own


def models_of(study: StudyConfig) -> tuple[str, ...]:
    """Models that are tested."""
    return options_of(study).models or tuple(model.name for model in study.models)


def short(label: str, test: str) -> str:
    """A verdict as the predicate of a sentence about the model."""
    return (SHORT_POOLED if test == PAIRED else SHORT)[label]


def time_of(lag_ms: float) -> str:
    """A time point as one word of a claim's id."""
    return f"{lag_ms:g}ms"
