"""Tables of detectable effects: what a study's design could have found."""

from __future__ import annotations

from lpact.tables import Column, Table, reason

_DATASET = Column("dataset", "str", "Dataset name in the study file.")
_MODEL = Column("model", "str", "Model name in the study file.")
_PROFILE = Column(
    "gate_profile", "str", "Gate profile: `paper` point rules, or `calibrated` tests."
)
_TARGET = Column("target_power", "float", "Power that a detectable effect is detected with.")

STUDY_DESIGN = Table(
    "controls/study_design",
    "One row per dataset and model: sizes and autocorrelation, and the independent events and units they are worth.",
    ("dataset", "model"),
    (
        _DATASET,
        _MODEL,
        Column(
            "layer", "int", "First claimed layer, whose features were looked at.", nullable=True
        ),
        Column("role", "str", "Role after the audit."),
        Column("confirmatory", "bool", "Whether rows of this dataset can pass a gate."),
        Column("n_subjects", "int", "Usable subjects."),
        Column("n_subject_runs", "int", "Usable subject-run units."),
        Column("n_measured", "int", "Subject-runs whose autocorrelation was looked at."),
        Column("n_events", "float", "Events of a subject-run, median.", nullable=True),
        Column("n_units", "float", "Brain units of a subject-run, median.", nullable=True),
        Column("n_folds", "int", "Outer folds, fewest.", nullable=True),
        Column("n_lags", "int", "Candidate lags, most.", nullable=True),
        Column("n_rivals", "int", "Counted severe controls that are possible, and nuisance."),
        Column(
            "response_autocorrelation",
            "float",
            "Correlation of a unit's response with the one to the next event: median over units and subject-runs.",
            nullable=True,
        ),
        Column(
            "feature_autocorrelation",
            "float",
            "The same of the feature columns; where features are not at hand, null, and responses stand in for them.",
            nullable=True,
        ),
        Column(
            "variance_inflation",
            "float",
            "1 + 2 Σ_k (N_k / n) ρ_x(k) ρ_y(k), median over subject-runs.",
            nullable=True,
        ),
        Column(
            "n_effective_events",
            "float",
            "Events over variance inflation, median over subject-runs.",
            nullable=True,
        ),
        Column(
            "n_effective_units",
            "float",
            "Independent units that the units are worth, median over subject-runs.",
            nullable=True,
        ),
        Column(
            "n_effective_subject_runs",
            "float",
            "Independent subject-runs that those of the same stimulus are worth, by how far their responses agree.",
            nullable=True,
        ),
        Column("ceiling_mode", "str", "Reliability mode of the ceiling.", nullable=True),
        Column(
            "ceiling",
            "float",
            "Largest score that a perfect model could expect: √ of the response reliability.",
            nullable=True,
        ),
        reason(),
    ),
)

MINIMUM_DETECTABLE_EFFECT = Table(
    "controls/minimum_detectable_effect",
    "One row per dataset, gate profile, gate and method: the smallest effect that the design detects with the target "
    "power.",
    ("dataset", "gate_profile", "gate", "method"),
    (
        _DATASET,
        _PROFILE,
        Column("gate", "str", "Gate; `integrated` is all of them."),
        Column(
            "method",
            "str",
            "`closed_form` (from sizes and autocorrelation), `observed_spread` (from a run's own spread over "
            "subject-runs) or `simulated` (studies of this design through all stages).",
        ),
        _TARGET,
        Column(
            "alpha", "float", "Largest p-value that passes; null for a point rule.", nullable=True
        ),
        Column(
            "score", "float", "Held-out score at the smallest detectable effect.", nullable=True
        ),
        Column(
            "score_low",
            "float",
            "The same at the lower end of the interval of `snr`; simulated studies only.",
            nullable=True,
        ),
        Column(
            "delta",
            "float",
            "Smallest detectable mean contrast with the better of nuisance and best severe control.",
            nullable=True,
        ),
        Column(
            "fraction_of_ceiling",
            "float",
            "Mean fraction of the brain–brain ceiling at that effect, as gate `ceiling` reads it.",
            nullable=True,
        ),
        Column("snr", "float", "Signal-to-noise ratio at the target power.", nullable=True),
        Column("snr_low", "float", "Lower end of its 95 % interval.", nullable=True),
        Column("snr_high", "float", "Upper end of its 95 % interval.", nullable=True),
        Column("snr_half", "float", "Signal-to-noise ratio at a power of one half.", nullable=True),
        Column("n_trials", "int", "Simulated studies."),
        Column("n_passed", "int", "How many of them passed the gate."),
        Column(
            "simulated_size",
            "str",
            "Sizes of simulated studies, against the design's: `same`, `smaller`, `larger` or `mixed`; `same` for "
            "other methods.",
        ),
        Column(
            "enough_trials",
            "bool",
            "False where too few studies were simulated to exclude the target power at the strongest effect, or a "
            "smallest effect below the ceiling.",
        ),
        Column(
            "ceiling", "float", "Largest score that a perfect model could expect.", nullable=True
        ),
        Column(
            "attainable",
            "bool",
            "Whether `score` is below `ceiling`: an effect above it cannot exist.",
            nullable=True,
        ),
        reason(),
        Column("sentence", "str", "The row in plain words."),
    ),
)

LAYER_DETECTABILITY = Table(
    "controls/layer_detectability",
    "One row per dataset, model, layer, gate profile and gate of a run: what was observed beside what could have been "
    "found. Gates beyond level 1 have rows where studies of the design were simulated.",
    ("dataset", "model", "layer", "gate_profile", "gate"),
    (
        _DATASET,
        _MODEL,
        Column("layer", "int", "Layer; 0 is the input embedding."),
        _PROFILE,
        Column("gate", "str", "Gate; `integrated` is all of them."),
        Column(
            "verdict", "str", "`found`, `could_have_found`, `could_not_have_found` or `not_known`."
        ),
        Column("n_subject_runs", "int", "Subject-runs with a finite level-1 contrast."),
        Column("score", "float", "Observed mean held-out score.", nullable=True),
        Column("delta", "float", "Observed mean contrast with the best rival.", nullable=True),
        Column("rival", "str", "The best rival: `nuisance` or the most frequent best control."),
        Column("detectable_score", "float", "Score that would have been needed.", nullable=True),
        Column("detectable_delta", "float", "Contrast that would have been needed.", nullable=True),
        Column("method", "str", "Method behind the two, as in `minimum_detectable_effect`."),
        Column(
            "ceiling", "float", "Largest score that a perfect model could expect.", nullable=True
        ),
        _TARGET,
        reason(),
        Column("sentence", "str", "The row in plain words."),
    ),
)

TABLES = (STUDY_DESIGN, MINIMUM_DETECTABLE_EFFECT, LAYER_DETECTABILITY)
