"""Tables of the source audit and of stimulus media."""

from __future__ import annotations

from lpact.tables import SHARED

_VOCABULARY = SHARED.add(
    """
    stimulus       str   Stimulus that was presented.
    detail         str   The reason in words; empty when available.
    media          str   `audio_envelope`, `audio`, `video` or another kind.
    n_stimuli      int   Stimuli of the dataset.
    true_envelope  bool  Whether it gives an envelope of the sound itself.
    """
)

EVIDENCE_FEASIBILITY = _VOCABULARY.table("""
    audits/lpact_evidence_feasibility
    One row per dataset: coverage, the six flags of the evidence chain, and the role after the audit.
    key: dataset

    reader                   str   Registered reader.
    configured_role          str   Role in the study file.
    role                     str   Role after the audit, which can only lower it.
    confirmatory             bool  Whether rows of this dataset can pass a gate.
    role_reason              str   `ok`, or why the dataset is not confirmatory.
    role_detail              str   The missing links, in words; empty when none is.
    n_subjects               int   Usable subjects.
    n_runs                   int   Distinct (session, run) labels among usable recordings.
    n_stimuli                int   Distinct stimuli.
    n_subject_runs           int   Usable subject-runs.
    n_subject_runs_excluded  int   Recordings that the audit excluded.
    n_brain_units            int   Usable brain units: the largest count of one recording.
    n_models                 int   Models of the study with features for this dataset.
    n_mechanisms             int   Mechanisms of the study that are available.
    has_brain                bool  B: usable neural data.
    has_words                bool  W: a word or event grid.
    has_features             bool  F: model features for at least one model.
    has_controls             bool  S: every required severe control is possible.
    has_reliability          bool  R: at least one reliability mode is possible.
    has_coverage             bool  K: enough subject-runs and brain units.
    chain_complete           bool  B · W · F · S · R · K.
    n_relational_runs        int   Subject-runs with enough units and features for level 2.
    n_stripping_runs         int   Subject-runs with features and at least two mechanisms.
    source                   str   Where the data come from.
    version                  str   Version of the data.
    licence                  str   Licence of the data.
""")

UNIT_INVENTORY = _VOCABULARY.table("""
    audits/lpact_dataset_unit_inventory
    One row per recording: sizes on disk and on the event grid, and whether it is used.
    key: recording

    stimulus
    used               bool         Whether the recording enters the levels.
    reason
    n_samples          int          Samples (or events, where epoched).
    sampling_rate_hz   float? (Hz)  Sampling rate.
    n_units            int          Units in the file.
    n_units_used       int          Units after exclusions.
    unit_order_hash    str          Hash of the canonical unit order.
    n_words            int          Words of the stimulus.
    n_events           int          Rows of the event grid.
    n_events_excluded  int          Events left out; the findings say why.
    n_stories          int          Stories among the events.
    n_sentences        int          Sentences among the events.
""")

FINDINGS = _VOCABULARY.table("""
    audits/lpact_findings
    One row per finding of the audit: what was excluded or deserves a look, where, and what to do. What is about a
    dataset as a whole has `(all)` for subject, session and run.
    key: recording field reason where found

    field     str  Unit, column or file that the finding is about.
    reason
    severity  str  `excluded` (left out) or `note` (kept).
    where     str  File or object.
    found     str  What was found.
    expected  str  What was expected.
    remedy    str  What to do.
""")

CONTROL_AVAILABILITY = _VOCABULARY.table("""
    audits/lpact_control_availability
    One row per dataset, model, layer and control: possible, or why not.
    key: dataset model layer control

    control    str   Registered control.
    available  bool  Whether it is computed.
    reason detail
    draws      int   Draws that are computed.
    counted    bool  Whether the `paper` gate profile counts it.
""")

INGREDIENT_AVAILABILITY = _VOCABULARY.table("""
    audits/lpact_ingredient_availability
    One row per dataset and nuisance feature or mechanism: available, or why not.
    key: dataset kind name

    kind       str   `nuisance` or `mechanism`.
    name       str   Name of the ingredient.
    available  bool  Whether every usable recording has it.
    reason detail
""")

RELIABILITY_MODES = _VOCABULARY.table("""
    audits/lpact_reliability_modes
    One row per dataset and reliability mode: how many recordings can be paired, or why none can.
    key: dataset mode

    mode          str   split_half, run_to_run, session_to_session or subject_to_subject.
    possible      bool  Whether at least one recording has a partner.
    n_recordings  int   Recordings with a partner.
    reason
""")

MECHANISM_CORRELATIONS = _VOCABULARY.table("""
    audits/lpact_mechanism_correlations
    One row per stimulus and pair of mechanisms: near-collinear mechanisms cannot be separated.
    key: dataset stimulus mechanism_a mechanism_b

    stimulus     str     Stimulus.
    mechanism_a  str     First mechanism.
    mechanism_b  str     Second mechanism.
    pearson      float?  Correlation over words.
    reason
""")

MODEL_INVENTORY = _VOCABULARY.table("""
    controls/main_table_model_inventory
    One row per model and dataset: available layers and contexts, and whether it enters the decisions.
    key: model dataset

    source            str        Registered model source.
    layers_offered    list[int]  Layers with features.
    layers_claimed    list[int]  Layers of the study file.
    contexts_offered  list[str]  Available feature contexts.
    n_features        list[int]  Columns of each claimed layer.
    included          bool       Whether the model enters the decisions on this dataset.
    reason
""")

STIMULUS_MEDIA = _VOCABULARY.table("""
    controls/stimulus_media_mapping
    One row per recording and medium: which stimulus media are available, which are missing and why.
    key: recording media

    stimulus media
    present  bool  Whether the source offers it.
    reason
    path     str   Path or description; empty when missing.
    detail   str   Why it is missing, in words; empty when present or not known.
""")

MEDIA_SUMMARY = _VOCABULARY.table("""
    controls/main_table_stimulus_media_mapping
    One row per dataset and medium: for how many recordings and stimuli it is available.
    key: dataset media

    n_recordings          int  Recordings of the dataset.
    n_recordings_present  int  Recordings whose stimulus has it.
    n_stimuli
    n_stimuli_present     int  Stimuli that have it.
    reason
    detail                str  Why it is missing, in words; empty when present or not known.
""")

RELEASE_AUDIT = _VOCABULARY.table("""
    controls/release_audit
    One row per dataset and part of its official layout: released or not, and what of it was read.
    key: dataset part

    part      str          Part of the layout, in words.
    patterns  list[str]    Where it is in the folder, as alternative globs.
    needed    bool         Whether a study cannot do without it.
    released  bool         Whether the official release holds it.
    n_files   int          Files of this part that the dataset was read from.
    n_bytes   int (bytes)  Their size.
    status    str          `read`, `not_read` or `not_released`.
    stand_in  str          What may replace it if it is not released; otherwise empty.
""")

AUDIO_SOURCES = _VOCABULARY.table("""
    controls/audio_source_audit
    One row per dataset and possible source of an acoustic control: how many stimuli have it.
    key: dataset source

    source          str  `envelope_in_dataset`, `wav_file`, `other_audio_file`, `video_file`, `transcript_columns` \
                         or `word_times`.
    n_stimuli
    n_stimuli_with  int  Stimuli that have this source.
    true_envelope reason
    detail          str  The first one found, or why there is none.
""")

ACOUSTIC_PROXIES = _VOCABULARY.table("""
    controls/acoustic_proxy_alternatives
    One row per dataset and way to control for sound: possible or not, and what it may be called.
    key: dataset option

    option           str   `true_waveform_envelope`, `transcript_derived_proxy`, `speech_activity_boxcar`, \
                           `word_onset_control` or `envelope_of_another_dataset`.
    status           str   `available`, `available_diagnostic`, `partial` or `blocked`.
    true_envelope
    diagnostic       bool  Whether it can serve as a diagnostic only.
    reason
    label            str   What it must be called wherever it is shown.
    recommended_use  str   Recommended use, and its limits.
    detail           str   What it would be made from, or why it cannot be.
""")

TABLES = tuple(_VOCABULARY.tables)
