"""Every label and reason code that a table can contain, once, with its explanation."""

from __future__ import annotations

from enum import EnumType, StrEnum
from typing import Any


class _NamedByCode(EnumType):
    """The code of a member is its name in lower case; a single letter keeps its case."""

    def __new__(metacls, name: str, bases: tuple[type, ...], members: Any, **more: Any) -> Any:
        for own in members._member_names:
            code = own if len(own) == 1 else own.lower()
            dict.__setitem__(members, own, (code, members[own]))
        return super().__new__(metacls, name, bases, members, **more)


class _Explained(StrEnum, metaclass=_NamedByCode):
    """A code, written as its explanation: ``member.explanation``."""

    explanation: str

    def __new__(cls, code: str, explanation: str = "") -> _Explained:
        member = str.__new__(cls, code)
        member._value_, member.explanation = code, explanation
        return member


class FinalLabel(_Explained):
    """Verdict on a claim, in the order in which they are tried."""

    DIAGNOSTIC_ONLY = "Kept for transparency; the dataset cannot support primary neural evidence."
    INSUFFICIENT_COVERAGE = "Too few subject-runs or brain units for a confirmatory inference."
    INTEGRATED_CANDIDATE = "Every gate passes."
    MECHANISM_SPECIFIC_CANDIDATE = "Every gate except the ceiling gate passes."
    RELATIONAL_CANDIDATE = (
        "Predictive, relational, severe-control and replication gates pass; the mechanism gate does not."
    )
    PREDICTIVE_ONLY = "The model predicts beyond nuisance and severe controls; no more is shown."
    INSUFFICIENT_BRAIN_CEILING = "Brain–brain reliability is missing, invalid or below the minimum."
    CONTROL_EXPLAINED = "Nuisance, a severe control or an unmet gate accounts for a raw positive."
    NULL = "No raw positive at any level."


class Gate(_Explained):
    """Gates of the decision, in the order in which a failure is reported."""

    PREDICTIVE = "On average over subject-runs, features beat nuisance and the best severe control."
    SEVERE_CONTROL = "No severe control reaches the model at level 1, or in most level-2 summaries."
    RELATIONAL = "The model's pattern over units resembles the brain's own more than any control's pattern does."
    MECHANISM = "Stripping the mechanism costs its own target units more than others, and more than a mismatched strip."
    CEILING = "The surviving evidence reaches the minimum fraction of brain–brain reliability."
    REPLICATION = "The positive direction holds in enough subject-runs."


class RowLabel(_Explained):
    """Labels of single rows at levels 1 to 4."""

    PASS = "The row passes its gate."  # noqa: S105
    DIAGNOSTIC_ONLY = "The dataset is not confirmatory; the row can never pass."
    NOT_COMPUTED = "The row has no finite result; its reason says why."
    NUISANCE_EXPLAINED = "Nuisance features score at least as high as the model."
    SEVERE_CONTROL_EXPLAINED = "At least one severe control scores at least as high as the model."
    UNRELIABLE_BRAIN_PATTERN = "The brain unit's own pattern is not reliable across split halves."
    INSUFFICIENT_COVERAGE = "Too few units for a relational pattern."
    NO_PREDICTIVE_CANDIDATE = "The predictive gate did not pass: a drop cannot be interpreted."
    NO_RELATIONAL_CANDIDATE = "The relational gate did not pass: a drop is not evidence of a mechanism."
    STRIPPING_NO_EFFECT = "Removing the mechanism cost no held-out score."
    NONSPECIFIC_FEATURE_DEGRADATION = "The drop is not above that of a mismatched strip."
    DIAGONAL_NOT_DOMINANT = "A non-matching target dropped at least as much as the matching one."
    INSUFFICIENT_TARGETS = "Too few mechanisms or target units for a contrast."
    NOT_A_MATCHING_TARGET = "Comparison row: another target dropped less than the matching one."
    INSUFFICIENT_BRAIN_CEILING = "Brain–brain reliability is missing, invalid or below the minimum."
    CONTROL_EXPLAINED = "The ceiling-normalised contrast is not positive."
    BELOW_CEILING_FRACTION = "The score is below the minimum fraction of the brain–brain ceiling."


class Reason(_Explained):
    """Why something is missing, excluded or invalid."""

    OK = "Nothing is missing."
    NON_FINITE_NEURAL = "Neural data contain NaN or infinite values."
    CONSTANT_UNIT = "The unit's signal never changes."
    UNIT_MISSING_IN_RUN = "A unit of this subject is absent in one of its runs."
    TOO_MANY_BAD_UNITS = "More units are unusable than the audit allows."
    EMPTY_RUN = "The recording has no samples, no units or no words."
    TOO_FEW_EVENTS = "Too few events remain for the configured folds."
    TOO_FEW_STORIES = "Leave-one-story-out needs at least three stories."
    WORDS_OVERLAP = "A word starts before the previous one has ended."
    WORDS_WITHOUT_FREQUENCY = "Words that the frequency list lacks are given its lowest frequency."
    WORDS_OUTSIDE_RECORDING = "Events with response windows outside the recording are left out."
    WORDS_WITHOUT_TIME = "Words that the recording lacks (no trigger, cut short) are left out."
    BAD_SPAN = "Events that touch a stretch marked bad, or an artefact, are left out."
    MISSING_SAMPLES = "Events whose response windows touch non-finite samples are left out."
    CLOCK_DRIFT = "The clocks of stimulus and recording drift apart; word times follow the recording's triggers."
    TRIGGERS_DROPPED = "Triggers are missing; words near them take the nearest existing trigger."
    CHANNEL_NOT_NEURAL = "A channel without neural data (triggers, other signals) is left out."
    CHANNEL_MARKED_BAD = "The source marks the channel as bad, and it is left out."
    CHANNEL_NOT_SELECTED = "The study's channel selection leaves the channel out."
    CHANNEL_WITHOUT_REFERENCE = "The channel has no neighbour to be referenced to, and is left out."
    UNIT_WITHOUT_PLACE = "The source has no coordinates for the unit."
    SOURCE_ROWS_LEFT_OUT = "Rows of a source table are broken in a known way, and are left out."
    SOURCE_ROWS_SORTED = "Rows of a source table are not in order of time; they were sorted."
    SOURCE_VALUES_CORRECTED = "Wrong cells of a source table were corrected, as the finding says."
    SOURCE_STANDS_IN = "A file is missing, and another one with the same content is read instead."
    SENTENCES_BY_RULE = "The source does not number sentences; they are derived from punctuation or pauses."
    SIDECAR_DISAGREES = "A sidecar file and the data disagree on something irrelevant here; the data are used."
    STIMULUS_START_ASSUMED = "The stimulus is assumed to begin with the recording's first sample."
    RECORDING_NOT_READ = "A recording in the folder is not read; the finding says why."
    CONFOUNDS_NOT_OFFERED = "The recording comes without the confounds that could be regressed out."
    NO_WORDS_IN_TR = "TRs without any word onset carry no features and are left out."
    DATASET_HAS_NO_RECORDING = "No recording of the dataset is usable."
    MODEL_OFFERS_NOTHING = "The model offers no features for this stimulus."
    CONTEXT_NOT_OFFERED = "Neither dataset nor model offers features of that context."
    NO_OTHER_LAYER = "The model offers no other layer."
    NO_SENTENCE_IDS = "The words have no sentence ids, or every sentence has one word."
    STORY_TOO_SHORT = "No story is long enough for this surrogate."
    SHIFT_NOT_POSSIBLE = "The run is too short to rotate beyond the features' autocorrelation time."
    MECHANISM_NOT_OFFERED = "Neither dataset nor model offers this mechanism."
    WORDS_UNKNOWN_TO_MODEL = "Words with characters that the tokenizer lacks are read as unknown."
    TRANSCRIPT_BEYOND_WORDS = "A transcript has text that is in no word; it is read as context."
    FEATURES_NOT_EXTRACTED = "A run will first extract it from a language model."
    MECHANISM_CONSTANT = "The mechanism does not vary over the events."
    NO_PREVIOUS_LAYER_FEATURES = "The model offers no features of the previous layer."
    DEGENERATE_DIRECTION = "The mechanism has no finite, non-zero direction in the features."
    FEATURE_SPACE_NOT_OFFERED = "The words or features needed for this feature space are missing."
    CONNECTIVITY_NOT_OFFERED = "The dataset comes without structural connectivity."
    NUISANCE_NOT_OFFERED = "The words or audio needed for this nuisance are missing."
    UNDEFINED_SCORE = "The score is undefined: predictions or responses do not vary."
    SINGLE_RUN = "The subject has no second run in the session."
    SINGLE_SESSION = "The subject has no second session."
    SINGLE_SUBJECT = "The dataset has no second subject."
    DIFFERENT_STIMULUS = "Responses can be paired only for the same stimulus."
    SINGLE_PARTNER = "With one partner there is no mean over partners: see the row of kind `response`."
    DIFFERENT_EVENTS = "The paired recordings do not share the same events."
    UNITS_TAKEN_AS_COMPARABLE = "Units of the same name are assumed to be at the same place."
    UNITS_NOT_COMPARABLE = 'Units are at different places in different subjects; use `grid.units = "regions"`.'
    TOO_FEW_SHARED_UNITS = "The paired recordings share too few units."
    TOO_FEW_UNITS = "The recording, or the region, has fewer units than the level needs."
    NO_REPEATED_MEASURE = "A split half of one presentation has no repeated response."
    NONPOSITIVE_RELIABILITY = "Reliability is zero or negative."
    NO_VALID_CEILING = "No reliability mode is possible for this recording."
    NO_PARTNER_PATTERN = "No other recording offers brain patterns for these units."
    MEDIA_NOT_OFFERED = "The source has no stimulus audio or video."
    SOUND_AVAILABLE = "The stimulus has sound: its acoustic envelope is tested, without a proxy."
    NOT_CONTINUOUS = "Epochs contain no signal between words, so onsets and envelope cannot be shifted."
    NO_SAMPLES_IN_WINDOW = "The recording has no samples, or no lag, in this window after word onset."
    MEDIA_NOT_RELEASED = "The official release does not include this medium."
    CHAIN_INCOMPLETE = "A link of the evidence chain is missing."
    ROLE_NOT_CONFIRMATORY = "The study file gives the dataset another role."
    SINGLE_AGGREGATION_UNIT = "The number comes from one subject-run: it has no interval."
    NOTHING_MEASURED = "No row contains such a number."
    NO_CONTROL_LEFT = "None of the required controls was computed."
    NEVER_DETECTED = "Even the strongest simulated effect is detected too rarely."
    ALWAYS_DETECTED = "Even the weakest simulated effect is detected: the smallest detectable effect is below it."
    TOO_FEW_DRAWS = "With fewer than two draws of every surrogate control, no effect is significant (`controls.draws`)."
    SINGLE_SUBJECT_RUN = "With one subject-run there is no spread over subject-runs."
    NOT_SIMULATED = "No study of this design was simulated."
    COLLINEAR_MECHANISMS = "Two mechanisms are too collinear to be separated by stripping."


class Outcome(_Explained):
    """Outcome of the whole study."""

    A = "At least one integrated candidate."
    B = "At least one relational or mechanism-specific candidate, none integrated."
    C = "Predictive evidence only."
    D = "No robust predictive or structural alignment under the controls."
    I = "Inconclusive: no confirmatory evidence chain is complete."  # noqa: E741


ALL_CODES: tuple[type[_Explained], ...] = (FinalLabel, Gate, RowLabel, Reason, Outcome)
"""Every family of codes, for documentation and tests."""
