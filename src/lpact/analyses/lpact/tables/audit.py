"""Tables of the source audit."""

from __future__ import annotations

from lpact.tables import RECORDING, RECORDING_KEY, Column, Table, reason

EVIDENCE_FEASIBILITY = Table(
    "audits/lpact_evidence_feasibility",
    "One row per dataset: coverage, the six flags of the evidence chain, and the role after the audit.",
    ("dataset",),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        Column("reader", "str", "Registered reader."),
        Column("configured_role", "str", "Role in the study file."),
        Column("role", "str", "Role after the audit, which can only lower it."),
        Column("confirmatory", "bool", "Whether rows of this dataset can pass a gate."),
        Column("role_reason", "str", "`ok`, or why the dataset is not confirmatory."),
        Column("role_detail", "str", "The missing links, in words; empty when none is."),
        Column("n_subjects", "int", "Usable subjects."),
        Column("n_runs", "int", "Distinct (session, run) labels among usable recordings."),
        Column("n_stimuli", "int", "Distinct stimuli."),
        Column("n_subject_runs", "int", "Usable subject-run units."),
        Column("n_subject_runs_excluded", "int", "Recordings that the audit excluded."),
        Column("n_brain_units", "int", "Usable brain units: the largest count of one recording."),
        Column("n_models", "int", "Models of the study with features for this dataset."),
        Column("n_mechanisms", "int", "Mechanisms of the study that are available."),
        Column("has_brain", "bool", "B: usable neural data."),
        Column("has_words", "bool", "W: a word or event grid."),
        Column("has_features", "bool", "F: model features for at least one model."),
        Column("has_controls", "bool", "S: every required severe control is possible."),
        Column("has_reliability", "bool", "R: at least one reliability mode is possible."),
        Column("has_coverage", "bool", "K: enough subject-runs and brain units."),
        Column("chain_complete", "bool", "B · W · F · S · R · K."),
        Column(
            "n_relational_runs", "int", "Subject-runs with enough units and features for level 2."
        ),
        Column(
            "n_stripping_runs", "int", "Subject-runs with features and at least two mechanisms."
        ),
        Column("source", "str", "Where the data come from."),
        Column("version", "str", "Version of the data."),
        Column("licence", "str", "Licence of the data."),
    ),
)

UNIT_INVENTORY = Table(
    "audits/lpact_dataset_unit_inventory",
    "One row per recording: sizes on disk and on the event grid, and whether it is used.",
    RECORDING_KEY,
    (
        *RECORDING,
        Column("stimulus", "str", "Stimulus that was presented."),
        Column("used", "bool", "Whether the recording enters the levels."),
        reason(),
        Column("n_samples", "int", "Samples (or events, where epoched)."),
        Column("sampling_rate_hz", "float", "Sampling rate.", "Hz", nullable=True),
        Column("n_units", "int", "Units in the file."),
        Column("n_units_used", "int", "Units after exclusions."),
        Column("unit_order_hash", "str", "Hash of the canonical unit order."),
        Column("n_words", "int", "Words of the stimulus."),
        Column("n_events", "int", "Rows of the event grid."),
        Column("n_events_excluded", "int", "Events left out; the findings say why."),
        Column("n_stories", "int", "Stories among the events."),
        Column("n_sentences", "int", "Sentences among the events."),
    ),
)

FINDINGS = Table(
    "audits/lpact_findings",
    "One row per finding of the audit: what was excluded or deserves a look, where, and what to do. What is about a "
    "dataset as a whole has `(all)` for subject, session and run.",
    ("dataset", "subject", "session", "run", "field", "reason", "where", "found"),
    (
        *RECORDING,
        Column("field", "str", "Unit, column or file that the finding is about."),
        reason(),
        Column("severity", "str", "`excluded` (left out) or `note` (kept)."),
        Column("where", "str", "File or object."),
        Column("found", "str", "What was found."),
        Column("expected", "str", "What was expected."),
        Column("remedy", "str", "What to do."),
    ),
)

CONTROL_AVAILABILITY = Table(
    "audits/lpact_control_availability",
    "One row per dataset, model, layer and control: possible, or why not.",
    ("dataset", "model", "layer", "control"),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        Column("model", "str", "Model name in the study file."),
        Column("layer", "int", "Layer; 0 is the input embedding."),
        Column("control", "str", "Registered control."),
        Column("available", "bool", "Whether it is computed."),
        reason(),
        Column("detail", "str", "The reason in words; empty when available."),
        Column("draws", "int", "Draws that are computed."),
        Column("counted", "bool", "Whether the `paper` gate profile counts it."),
    ),
)

INGREDIENT_AVAILABILITY = Table(
    "audits/lpact_ingredient_availability",
    "One row per dataset and nuisance feature or mechanism: available, or why not.",
    ("dataset", "kind", "name"),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        Column("kind", "str", "`nuisance` or `mechanism`."),
        Column("name", "str", "Name of the ingredient."),
        Column("available", "bool", "Whether every usable recording has it."),
        reason(),
        Column("detail", "str", "The reason in words; empty when available."),
    ),
)

RELIABILITY_MODES = Table(
    "audits/lpact_reliability_modes",
    "One row per dataset and reliability mode: how many recordings can be paired, or why none can.",
    ("dataset", "mode"),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        Column("mode", "str", "split_half, run_to_run, session_to_session or subject_to_subject."),
        Column("possible", "bool", "Whether at least one recording has a partner."),
        Column("n_recordings", "int", "Recordings with a partner."),
        reason(),
    ),
)


MECHANISM_CORRELATIONS = Table(
    "audits/lpact_mechanism_correlations",
    "One row per stimulus and pair of mechanisms: near-collinear mechanisms cannot be separated.",
    ("dataset", "stimulus", "mechanism_a", "mechanism_b"),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        Column("stimulus", "str", "Stimulus."),
        Column("mechanism_a", "str", "First mechanism."),
        Column("mechanism_b", "str", "Second mechanism."),
        Column("pearson", "float", "Correlation over words.", nullable=True),
        reason(),
    ),
)

MODEL_INVENTORY = Table(
    "controls/main_table_model_inventory",
    "One row per model and dataset: layers and contexts on offer, and whether it enters the decisions.",
    ("model", "dataset"),
    (
        Column("model", "str", "Model name in the study file."),
        Column("dataset", "str", "Dataset name in the study file."),
        Column("source", "str", "Registered model source."),
        Column("layers_offered", "list[int]", "Layers with features."),
        Column("layers_claimed", "list[int]", "Layers of the study file."),
        Column("contexts_offered", "list[str]", "Feature contexts on offer."),
        Column("n_features", "list[int]", "Columns of each claimed layer."),
        Column("included", "bool", "Whether the model enters the decisions on this dataset."),
        reason(),
    ),
)


TABLES = (
    EVIDENCE_FEASIBILITY,
    UNIT_INVENTORY,
    FINDINGS,
    CONTROL_AVAILABILITY,
    INGREDIENT_AVAILABILITY,
    RELIABILITY_MODES,
    MECHANISM_CORRELATIONS,
    MODEL_INVENTORY,
)
