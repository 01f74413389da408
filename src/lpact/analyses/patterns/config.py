"""Alignment patterns' part of the study file: ``[patterns]``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lpact.config import Section, StudyConfig

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]

OWN = "dataset"
"""Value of the option `connectivity` for the matrix that comes with a dataset."""
TEST = "test"
"""Story whose stimuli are the test stimuli unless `patterns.test_stories` names others."""
MEAN = "mean"
"""The mean over regions, among regions."""
FEWEST_SUBJECTS = 4
"""References leave out two subjects, and the others must still make pairs."""
FEWEST_REGIONS = 3
"""Entries of two patterns that can be correlated."""

ALIGNED, PATTERN_ONLY, INCONCLUSIVE, SCORE_ONLY, NEITHER, NO_PATTERN, EXCLUDED, CANNOT_REJECT, UNKNOWN = (
    "aligned",
    "pattern_only",
    "inconclusive",
    "score_only",
    "neither",
    "no_pattern",
    "excluded",
    "cannot_reject",
    "not_computed",
)  # fmt: skip
LABELS = {
    ALIGNED: "Among the best models of the region, and reproduces the region's alignment pattern as other brains do.",
    PATTERN_ONLY: "Reproduces the region's alignment pattern as other brains do, but other models have higher scores.",
    INCONCLUSIVE: "The pattern is neither shown to be that of the region nor to differ from it.",
    SCORE_ONLY: "Among the best models of the region, but its alignment pattern is not that of the region.",
    NEITHER: "Not among the best models of the region, and its alignment pattern is not that of the region.",
    NO_PATTERN: "Brains do not share a pattern that is specific to the region, so there is nothing to reproduce.",
    EXCLUDED: "The score is not above 0 in the median subject, so the pattern cannot be interpreted.",
    CANNOT_REJECT: f"Fewer than {FEWEST_SUBJECTS} subjects: no test can tell a model's pattern from a brain's.",
    UNKNOWN: "The sources do not allow the comparison.",
}
"""Verdicts, strongest first."""
GATES = {
    "V": "The model's score is above 0 in the median subject.",
    "R": "Brains reproduce the region's alignment pattern.",
    "D": "Brains' patterns are closer to that of the region than to those of other regions.",
    "N": "The test does not reject that the model's pattern is one more brain's.",
    "E": "The model's pattern is shown to be as similar as brains' are, up to the bound.",
    "B": "The model is practically equivalent to the best model of the region.",
}
"""Gates by letter, in their order."""


class PatternsSection(Section):
    """Does a model relate to all regions as a region of the brain does? "The paper" is Hoefling et al. (2026)."""

    measures: tuple[str, ...] = Field(("rsa", "linear_r2"), min_length=1)
    """Measures of alignment (`lpact list measures`). Those that are fitted use training stimuli, the others test
    stimuli alone.
    """
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by measure; see its reference page."""
    models: tuple[str, ...] = ()
    """Models to compare. Empty: all of the study."""
    untrained: dict[str, str] = Field(default_factory=dict)
    """Untrained twin of a model, by the model's name. Both are models of the study; figures show them side by side."""
    regions: tuple[str, ...] = ()
    """Regions to analyse, in this order. Empty: all that every subject has with at least `min_units` units."""
    min_units: Annotated[int, Field(ge=3)] = 5
    """Fewest usable units of a region in every subject."""
    lag_ms: float | None = None
    """Lag of the responses, one of the event grid's. Not given: its reference lag."""
    test_stories: tuple[str, ...] = ()
    """Stories (or other groups) whose stimuli are the test stimuli. Empty: the story `test` if there is one, else the
    last `test_share` of the stimuli.
    """
    test_stimuli: tuple[str, ...] = ()
    """Names of the test stimuli, in place of stories."""
    test_share: Share = 0.2
    """Share of the stimuli, at the end, that are test stimuli where no story is named."""
    gap_events: Annotated[int, Field(ge=0)] = 5
    """Stimuli left out between training and test stimuli where no story is named, and around validation folds."""
    min_stimuli: Annotated[int, Field(ge=10)] = 20
    """Fewest training, and fewest test, stimuli that all subjects must share."""
    layer_choice: Literal["training", "best_on_test"] = "training"
    """`training`: the layer with the best mean score over subjects on training stimuli, for every region.
    `best_on_test`: the one with the best test score; optimistic.
    """
    layer_folds: Annotated[int, Field(ge=0)] = 5
    """Folds of the training stimuli in which fitted measures are cross-validated for the choice of layers. 0: the
    leave-one-out score of the fit itself, for measures that have one; several times faster.
    """
    model_trials: Literal["matched", "none"] = "matched"
    """`matched`: for their patterns, models get simulated noise, as strong as that of the region in a typical subject,
    so that one more brain is treated like the others. `none`: models have no noise, as in the literature.
    """
    pairs_per_target: Annotated[int, Field(ge=0)] = 0
    """Source subjects of every target in the ceiling of pairs, drawn at random. 0: all others. The paper uses 5."""
    n_bootstrap: Annotated[int, Field(ge=100)] = 2000
    """Resamples of subjects for practical equivalence."""
    alpha: Share = 0.05
    """Level of all tests; intervals cover 1 − alpha."""
    equivalence_bound: Share = 0.2
    """Largest loss of pattern similarity that counts as equivalent, as a share of the difference between brains'
    similarity to the region's pattern and that to the patterns of other regions.
    """
    connectivity: str = ""
    """Structural connectivity: a name in `[run.paths]` with the file of the matrix, or `dataset` for the dataset's own.
    Empty: none.
    """
    structure_draws: Annotated[int, Field(ge=20)] = 1000
    """Random structural patterns in the test of `connectivity`. The paper uses 100."""

    @property
    def path_names(self) -> tuple[str, ...]:
        """Names in `[run.paths]` besides those of datasets."""
        return (self.connectivity,) if self.connectivity not in ("", OWN) else ()

    @model_validator(mode="after")
    def _check(self) -> PatternsSection:
        if self.test_stories and self.test_stimuli:
            raise ValueError("test_stories and test_stimuli both name test stimuli; keep one of them")
        if unused := [name for name in self.options if name not in self.measures]:
            raise ValueError(
                f"options has '{unused[0]}', which is not in measures; add it there, or remove its options"
            )
        return self


def options_of(study: StudyConfig) -> PatternsSection:
    """The options of a study that asks this question."""
    own = study.analyses["patterns"]
    assert isinstance(own, PatternsSection)
    return own


def models_of(study: StudyConfig) -> tuple[str, ...]:
    """Models that are compared."""
    return options_of(study).models or tuple(model.name for model in study.models)
