"""Every label and reason code that a table can hold, once, with its explanation."""

from __future__ import annotations

from enum import StrEnum


class _Explained(StrEnum):
    """A code with its explanation: ``member.explanation``."""

    explanation: str

    def __new__(cls, code: str, explanation: str = "") -> _Explained:
        member = str.__new__(cls, code)
        member._value_ = code
        member.explanation = explanation
        return member


class FinalLabel(_Explained):
    """Verdict on a claim, in the order in which they are tried."""

    DIAGNOSTIC_ONLY = (
        "diagnostic_only",
        "The dataset is kept for transparency but cannot support primary neural evidence.",
    )
    INSUFFICIENT_COVERAGE = (
        "insufficient_coverage",
        "Too few subject-runs or brain units for a robust confirmatory inference.",
    )
    INTEGRATED_CANDIDATE = ("integrated_candidate", "Every gate passes.")
    MECHANISM_SPECIFIC_CANDIDATE = (
        "mechanism_specific_candidate",
        "Predictive, relational, mechanism, severe-control and replication gates pass; the ceiling gate does not.",
    )
    RELATIONAL_CANDIDATE = (
        "relational_candidate",
        "Predictive, relational, severe-control and replication gates pass; the mechanism gate does not.",
    )
    PREDICTIVE_ONLY = (
        "predictive_only",
        "The model predicts beyond nuisance and severe controls, and no more than that is shown.",
    )
    INSUFFICIENT_BRAIN_CEILING = (
        "insufficient_brain_ceiling",
        "Brain–brain reliability is missing, invalid or below the minimum.",
    )
    CONTROL_EXPLAINED = (
        "control_explained",
        "There is a raw positive, and nuisance, a severe control or an unmet gate accounts for it.",
    )
    NULL = ("null", "No raw positive at any level.")


class Gate(_Explained):
    """Gates of the decision, in the order in which a failure is reported."""

    PREDICTIVE = (
        "predictive",
        "The real features beat nuisance and the best severe control, on average over subject-runs.",
    )
    SEVERE_CONTROL = (
        "severe_control",
        "No severe control reaches the real features at level 1, nor in most summaries at level 2.",
    )
    RELATIONAL = (
        "relational",
        "The model's pattern over units resembles the brain's own more than any control's pattern does.",
    )
    MECHANISM = (
        "mechanism",
        "Stripping the mechanism costs its own target units more than others, and more than a mismatched strip.",
    )
    CEILING = (
        "ceiling",
        "The surviving evidence reaches the minimum fraction of brain–brain reliability.",
    )
    REPLICATION = ("replication", "The positive direction holds in enough subject-runs.")


class RowLabel(_Explained):
    """Labels of single rows at levels 1 to 4."""

    PASS = ("pass", "The row passes its gate.")
    DIAGNOSTIC_ONLY = (
        "diagnostic_only",
        "The dataset is not confirmatory; the row can never pass.",
    )
    NOT_COMPUTED = ("not_computed", "The row has no finite result; its reason says why.")
    NUISANCE_EXPLAINED = (
        "nuisance_explained",
        "Nuisance features score at least as high as the model.",
    )
    SEVERE_CONTROL_EXPLAINED = (
        "severe_control_explained",
        "At least one severe control scores at least as high as the model.",
    )
    UNRELIABLE_BRAIN_PATTERN = (
        "unreliable_brain_pattern",
        "The brain unit's own pattern is not reliable across split halves.",
    )
    INSUFFICIENT_COVERAGE = ("insufficient_coverage", "Too few units for a relational pattern.")
    NO_PREDICTIVE_CANDIDATE = (
        "no_predictive_candidate",
        "The claim did not pass the predictive gate, so a drop has nothing to explain.",
    )
    NO_RELATIONAL_CANDIDATE = (
        "no_relational_candidate",
        "The claim did not pass the relational gate, so the drop cannot be read as a mechanism.",
    )
    STRIPPING_NO_EFFECT = ("stripping_no_effect", "Removing the mechanism cost no held-out score.")
    NONSPECIFIC_FEATURE_DEGRADATION = (
        "nonspecific_feature_degradation",
        "The drop is not above that of a mismatched strip.",
    )
    DIAGONAL_NOT_DOMINANT = (
        "diagonal_not_dominant",
        "A non-matching target dropped at least as much as the matching one.",
    )
    INSUFFICIENT_TARGETS = (
        "insufficient_targets",
        "Too few mechanisms or target units for a contrast.",
    )
    NOT_A_MATCHING_TARGET = (
        "not_a_matching_target",
        "A comparison row: another mechanism's target dropped less than the matching one.",
    )
    INSUFFICIENT_BRAIN_CEILING = (
        "insufficient_brain_ceiling",
        "Brain–brain reliability is missing, invalid or below the minimum.",
    )
    CONTROL_EXPLAINED = ("control_explained", "The ceiling-normalised contrast is not positive.")
    BELOW_CEILING_FRACTION = (
        "below_ceiling_fraction",
        "The score is below the minimum fraction of the brain–brain ceiling.",
    )


class Reason(_Explained):
    """Why something is missing, excluded or invalid."""

    OK = ("ok", "Nothing is missing.")
    NON_FINITE_NEURAL = ("non_finite_neural", "Neural data hold NaN or infinite values.")
    CONSTANT_UNIT = ("constant_unit", "The unit's signal never changes.")
    UNIT_MISSING_IN_RUN = (
        "unit_missing_in_run",
        "A unit of this subject is absent in one of its runs.",
    )
    TOO_MANY_BAD_UNITS = ("too_many_bad_units", "More units are unusable than the audit allows.")
    EMPTY_RUN = ("empty_run", "The recording has no samples, no units or no words.")
    TOO_FEW_EVENTS = ("too_few_events", "Too few events remain for the configured folds.")
    TOO_FEW_STORIES = ("too_few_stories", "Leave-one-story-out needs at least three stories.")
    WORDS_OVERLAP = ("words_overlap", "A word starts before the previous one has ended.")
    WORDS_WITHOUT_FREQUENCY = (
        "words_without_frequency",
        "Some words are not in the list of word frequencies; they have the lowest frequency of the list.",
    )
    WORDS_OUTSIDE_RECORDING = (
        "words_outside_recording",
        "Response windows of some words lie outside the recording; those events are left out.",
    )
    WORDS_WITHOUT_TIME = (
        "words_without_time",
        "The recording does not hold some words of the stimulus (a trigger is missing, it began late or ended early); "
        "those events are left out.",
    )
    BAD_SPAN = (
        "bad_span",
        "The source marks a stretch as unusable, or a signal is beyond the artefact threshold there; events whose "
        "response windows touch it are left out.",
    )
    MISSING_SAMPLES = (
        "missing_samples",
        "Neural data hold stretches without finite values; events whose response windows touch them are left out.",
    )
    CLOCK_DRIFT = (
        "clock_drift",
        "The clocks of stimulus and recording drift apart; word times follow the recording's triggers.",
    )
    TRIGGERS_DROPPED = (
        "triggers_dropped",
        "Triggers that were expected are not in the recording; words near them take the nearest one that is.",
    )
    CHANNEL_NOT_NEURAL = (
        "channel_not_neural",
        "A channel carries triggers or other signals, not neural data, and is left out.",
    )
    CHANNEL_MARKED_BAD = (
        "channel_marked_bad",
        "The source marks the channel as bad, and it is left out.",
    )
    CHANNEL_NOT_SELECTED = (
        "channel_not_selected",
        "The study's channel selection leaves the channel out.",
    )
    CHANNEL_WITHOUT_REFERENCE = (
        "channel_without_reference",
        "The channel has no neighbour to be referenced to, and is left out.",
    )
    UNIT_WITHOUT_PLACE = (
        "unit_without_place",
        "The source does not say where the unit lies.",
    )
    SOURCE_ROWS_LEFT_OUT = (
        "source_rows_left_out",
        "Rows of a source table are broken in a known way, and are left out.",
    )
    SOURCE_ROWS_SORTED = (
        "source_rows_sorted",
        "Rows of a source table are not in order of time; they were sorted.",
    )
    SOURCE_ROWS_MENDED = (
        "source_rows_mended",
        "Cells of a source table are wrong in a known way, and were corrected as the finding says.",
    )
    SOURCE_STANDS_IN = (
        "source_stands_in",
        "A file of the dataset is missing, and another one that holds the same is read instead.",
    )
    SENTENCES_BY_RULE = (
        "sentences_by_rule",
        "The source does not number sentences; they follow from punctuation or pauses.",
    )
    SIDECAR_DISAGREES = (
        "sidecar_disagrees",
        "A sidecar file and the data disagree in something that does not matter here; the data count.",
    )
    STIMULUS_START_ASSUMED = (
        "stimulus_start_assumed",
        "Nothing says when the stimulus begins in the recording; it is taken to begin with the first sample.",
    )
    RECORDING_NOT_READ = (
        "recording_not_read",
        "A recording lies in the folder and is not read; the finding says why.",
    )
    CONFOUNDS_NOT_OFFERED = (
        "confounds_not_offered",
        "Series that could be regressed out did not come with the recording.",
    )
    NO_WORDS_IN_TR = (
        "no_words_in_tr",
        "TRs without any word onset carry no features and are left out.",
    )
    DATASET_HAS_NO_RECORDING = (
        "dataset_has_no_recording",
        "No recording of the dataset is usable.",
    )
    MODEL_OFFERS_NOTHING = (
        "model_offers_nothing",
        "The model offers no features for this stimulus.",
    )
    CONTEXT_NOT_OFFERED = (
        "context_not_offered",
        "Neither dataset nor model offers features of that context.",
    )
    NO_OTHER_LAYER = ("no_other_layer", "The model offers no other layer.")
    NO_SENTENCE_IDS = (
        "no_sentence_ids",
        "The words carry no sentence ids, or one word a sentence.",
    )
    STORY_TOO_SHORT = ("story_too_short", "No story is long enough for this surrogate.")
    SHIFT_NOT_POSSIBLE = (
        "shift_not_possible",
        "The run is too short to rotate it by more than the features' autocorrelation time.",
    )
    MECHANISM_NOT_OFFERED = (
        "mechanism_not_offered",
        "Neither dataset nor model offers this mechanism.",
    )
    WORDS_UNKNOWN_TO_MODEL = (
        "words_unknown_to_model",
        "Some words hold characters that the model's tokenizer does not know; the model reads them as unknown.",
    )
    TRANSCRIPT_BEYOND_WORDS = (
        "transcript_beyond_words",
        "A transcript has text that is in no word; a model reads it as context.",
    )
    FEATURES_NOT_EXTRACTED = (
        "features_not_extracted",
        "A language model will give it: its features are not extracted yet, and a run does so first.",
    )
    MECHANISM_CONSTANT = ("mechanism_constant", "The mechanism does not vary over the events.")
    NO_PREVIOUS_LAYER_FEATURES = (
        "no_previous_layer_features",
        "The model offers no features of the previous layer.",
    )
    DEGENERATE_DIRECTION = (
        "degenerate_direction",
        "The mechanism has no finite, non-zero direction in the features.",
    )
    NUISANCE_NOT_OFFERED = (
        "nuisance_not_offered",
        "The words or audio needed for this nuisance are missing.",
    )
    UNDEFINED_SCORE = (
        "undefined_score",
        "The score is undefined: predictions or responses do not vary.",
    )
    SINGLE_RUN = ("single_run", "The subject has no second run in the session.")
    SINGLE_SESSION = ("single_session", "The subject has no second session.")
    SINGLE_SUBJECT = ("single_subject", "The dataset has no second subject.")
    DIFFERENT_STIMULUS = (
        "different_stimulus",
        "Responses can be paired only for the same stimulus.",
    )
    SINGLE_PARTNER = (
        "single_partner",
        "One partner has no mean over partners: the row of kind `response` says the same.",
    )
    DIFFERENT_EVENTS = ("different_events", "The paired recordings do not share the same events.")
    UNITS_TAKEN_AS_COMPARABLE = (
        "units_taken_as_comparable",
        "Nothing says whether units of the same name are the same place in other subjects; they are taken to be.",
    )
    UNITS_NOT_COMPARABLE = (
        "units_not_comparable",
        "Units of the same name are other places in another subject (implanted electrodes, a subject's own voxels); "
        '`grid.units = "regions"` compares regions.',
    )
    TOO_FEW_SHARED_UNITS = ("too_few_shared_units", "The paired recordings share too few units.")
    TOO_FEW_UNITS = ("too_few_units", "The recording has fewer units than the level needs.")
    NO_REPEATED_MEASURE = (
        "no_repeated_measure",
        "A split half of one presentation has no repeated response.",
    )
    NONPOSITIVE_RELIABILITY = ("nonpositive_reliability", "Reliability is zero or negative.")
    NO_VALID_CEILING = ("no_valid_ceiling", "No reliability mode is possible for this recording.")
    NO_PARTNER_PATTERN = (
        "no_partner_pattern",
        "No other recording offers brain patterns for these units.",
    )
    MEDIA_NOT_OFFERED = ("media_not_offered", "The source has no stimulus audio or video.")
    SOUND_AVAILABLE = (
        "sound_available",
        "The stimulus has its sound: the acoustic envelope is tested, and no proxy is needed.",
    )
    NOT_CONTINUOUS = (
        "not_continuous",
        "Epochs hold no signal between the words, so that neither onsets nor an envelope can be shifted.",
    )
    WINDOW_NOT_HELD = (
        "window_not_held",
        "The recording has no samples in this window after word onset: it is sampled too slowly, or its "
        "epochs have no such lag.",
    )
    MEDIA_NOT_RELEASED = (
        "media_not_released",
        "The official release holds no such medium: a boundary of the source, not a fault of the folder.",
    )
    CHAIN_INCOMPLETE = ("chain_incomplete", "A link of the evidence chain is missing.")
    ROLE_NOT_CONFIRMATORY = (
        "role_not_confirmatory",
        "The study file gives the dataset another role.",
    )
    SINGLE_AGGREGATION_UNIT = (
        "single_aggregation_unit",
        "One subject-run carries the number: its interval is a point, which tells of coverage and not of precision.",
    )
    NOTHING_MEASURED = ("nothing_measured", "No row holds such a number.")
    NO_CONTROL_LEFT = ("no_control_left", "None of the controls that this asks for was computed.")
    NEVER_DETECTED = (
        "never_detected",
        "Even the strongest simulated effect is detected too seldom.",
    )
    ALWAYS_DETECTED = (
        "always_detected",
        "Even the weakest simulated effect is detected often enough: the smallest one is below it.",
    )
    TOO_FEW_DRAWS = (
        "too_few_draws",
        "With fewer than two draws of every surrogate control, no effect is significant (`controls.draws`).",
    )
    SINGLE_SUBJECT_RUN = (
        "single_subject_run",
        "One subject-run shows no spread over subject-runs.",
    )
    NOT_SIMULATED = (
        "not_simulated",
        "No study of this design was simulated.",
    )
    COLLINEAR_MECHANISMS = (
        "collinear_mechanisms",
        "Two mechanisms are nearly collinear and cannot be separated by stripping.",
    )


class Outcome(_Explained):
    """Outcome of the whole study."""

    A = ("A", "At least one integrated candidate.")
    B = ("B", "At least one relational or mechanism-specific candidate, none integrated.")
    C = ("C", "Predictive evidence only.")
    D = ("D", "No robust predictive or structural alignment under the controls.")
    I = ("I", "Inconclusive: no confirmatory evidence chain is complete.")  # noqa: E741


ALL_CODES: tuple[type[_Explained], ...] = (FinalLabel, Gate, RowLabel, Reason, Outcome)
"""Every family of codes, for documentation and tests."""
