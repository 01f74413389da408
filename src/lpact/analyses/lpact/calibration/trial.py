"""One simulated study of a known truth, measured by the real stages and judged by the real rules.

A gate is *null* under a truth if nothing that the gate looks for exists: a pass is then a false pass. A gate that
should pass gives power. Where a truth makes no promise either way, the gate is *open*, and its rate is only shown.
Studies go through all stages, severe controls, levels and default gates; sizes that only cost time are in `Effort`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

import polars as pl
from threadpoolctl import threadpool_limits

from lpact.analyses.lpact.analysis import LABELS
from lpact.analyses.lpact.config import GatesConfig, LPactConfig, RelationalConfig
from lpact.analyses.lpact.gates import PAPER, decide
from lpact.analyses.lpact.plan.stages import measure_levels
from lpact.analyses.lpact.tables.calibration import TRIALS
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS
from lpact.config import ReadoutConfig
from lpact.datasets.simulated.options import WORDS_PER_SENTENCE, SimulatedOptions
from lpact.errors import ConfigError, require_known
from lpact.math.seeding import keyed_rng
from lpact.store import frame
from lpact.validation import validate_model

Role = Literal["false_pass", "power", "open"]

GATES = (
    "predictive",
    "severe_control_level1",
    "severe_control_level2",
    "severe_control",
    "relational",
    "mechanism_specific",
    "ceiling",
    "replication",
    "integrated",
)
"""Gate columns of the decision table, in the order in which failures are reported, then their product."""

OTHERS = ("other_mechanism_specific", "other_integrated")
"""The same for mechanisms that are not planted, in studies in which another one is."""

PLANTED_MECHANISM = "surprisal"


@dataclass(frozen=True)
class KnownTruth:
    """A simulated world: what is ``planted``, and the ``models`` that it is a fair question about.

    ``null_gates`` are gates that should not pass, ``open_gates`` those about which the truth says nothing, with their
    reasons; all others should pass. ``options`` are further options of the simulator.
    """

    name: str
    meaning: str
    planted: tuple[str, ...]
    models: tuple[str, ...]
    null_gates: Mapping[str, str]
    open_gates: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, float] = field(default_factory=dict)

    @property
    def gates(self) -> tuple[str, ...]:
        """Gates that have a rate under this truth."""
        return (*GATES, *OTHERS) if self.plants_mechanism else GATES

    @property
    def is_null(self) -> bool:
        """Whether there is nothing to find."""
        return all(gate in self.null_gates for gate in GATES)

    @property
    def plants_mechanism(self) -> bool:
        """Whether one mechanism is planted, and the others are not."""
        return "mechanism" in self.planted

    def role(self, gate: str) -> Role:
        """What the share of passes of a gate is under this truth."""
        if gate in self.null_gates:
            return "false_pass"
        return "open" if gate in self.open_gates else "power"

    def why(self, gate: str) -> str:
        """Why the gate has its role, in words."""
        reasons = {**self.null_gates, **self.open_gates}
        return reasons.get(gate, "What the gate looks for is planted, and the model knows it.")


_LEVEL2 = ("severe_control_level2", "severe_control", "relational", "ceiling")
_LEVEL1 = ("predictive", "severe_control_level1", "replication")
_NO_PATTERN = "The brain's pattern over units comes from a factor that no model knows, and the model's runs against it."
_NO_MECHANISM = "No unit responds to a mechanism, so stripping one has nothing to take away."
_UNPLANTED = "Another mechanism is planted; no unit responds to this one."
_NOT_ALL = "Integration asks for a gate that is null here."
_FEW_UNITS = "A few units respond, and the gate looks at the typical unit or at all of them."


def _null(
    name: str,
    meaning: str,
    planted: tuple[str, ...],
    models: tuple[str, ...],
    why: str,
    **options: float,
) -> KnownTruth:
    """A truth under which no gate should pass."""
    return KnownTruth(name, meaning, planted, models, dict.fromkeys(GATES, why), options=options)


_ALL = (
    _null(
        "independent",
        "Nothing is planted: autocorrelated features, and a brain that does not know them.",
        (),
        ("null", "integrated"),
        "Features and brain are independent.",
    ),
    _null(
        "drift",
        "Units drift slowly over each story; the model knows the drifts, or wanders by chance.",
        ("drift",),
        ("drift", "null"),
        "What can be shared is a slow course over the story, which the nuisance features know.",
    ),
    _null(
        "nuisance",
        "Units respond to word length, frequency and position; the model knows these and nothing else.",
        ("nuisance",),
        ("nuisance",),
        "What is shared is in the nuisance features, and survives in the model's own controls.",
    ),
    _null(
        "shared_noise",
        "Nothing is planted, and units share strong noise: the brain has a reliable pattern that no model knows.",
        (),
        ("integrated", "null"),
        "Features and brain are independent; the units' pattern is noise that they share.",
        shared_noise=1.5,
    ),
    _null(
        "unknown_signal",
        "Units respond strongly to the story, the same in everybody, and the model knows nothing of it.",
        ("lexical", "relational"),
        ("null",),
        "Features are independent of what the brain responds to; chance has them fit everybody alike.",
    ),
    KnownTruth(
        "predictive_only",
        "Units respond to what the model knows, with gains that run against the brain's own pattern.",
        ("predictive",),
        ("predictive",),
        {
            **dict.fromkeys(_LEVEL2, _NO_PATTERN),
            "mechanism_specific": _NO_MECHANISM,
            "integrated": _NOT_ALL,
        },
    ),
    KnownTruth(
        "relational",
        "Units respond to what the model knows, and that response makes the brain's pattern over units.",
        ("relational",),
        ("integrated",),
        {"mechanism_specific": _NO_MECHANISM, "integrated": _NOT_ALL},
    ),
    KnownTruth(
        "mechanism",
        "Three units respond to one mechanism; the brain's pattern over units comes mostly from elsewhere.",
        ("mechanism",),
        ("integrated",),
        {
            "integrated": "Integration asks for a typical unit that the model predicts, and there is none.",
            **dict.fromkeys(OTHERS, _UNPLANTED),
        },
        dict.fromkeys((*_LEVEL1, *_LEVEL2), _FEW_UNITS),
    ),
    KnownTruth(
        "integrated",
        "Lexical, relational and mechanism responses are planted, and the model knows them all.",
        ("lexical", "relational", "mechanism"),
        ("integrated",),
        dict.fromkeys(OTHERS, _UNPLANTED),
    ),
)

TRUTHS = {truth.name: truth for truth in _ALL}
"""All known truths by name: the null ones first."""


def known_truth(name: str) -> KnownTruth:
    """Return a known truth; an unknown name is a `ConfigError`."""
    require_known(name, TRUTHS, "known truth", where="option '--truth'", error=ConfigError)
    return TRUTHS[name]


DATASET = "simulation"
LAYER = 2
"""The layer of a simulated model of four layers that knows most."""
N_STORIES = 4
SENTENCES_AT_LEAST = 4


@dataclass(frozen=True)
class Effort:
    """Settings that only cost time; nothing here is a property of the simulated world."""

    draws: int = 20
    mismatch_draws: int = 2
    folds: int = 5
    gap_events: int = 5
    lags_ms: tuple[float, ...] = (0.0, 100.0)
    alphas: tuple[float, ...] = (1.0, 100.0, 10000.0)
    mechanisms: tuple[str, ...] = (PLANTED_MECHANISM, "semantic_transition", "context_update")
    methods: tuple[str, ...] = (
        "feature_residualization",
        "mechanism_projection_removal",
        "feature_zeroing",
    )
    controls: tuple[str, ...] | None = None
    """Severe controls; None for all of a study's default ones."""


EFFORT = Effort()
"""Settings of a study of the calibration by default."""


@dataclass(frozen=True, order=True)
class Cell:
    """One cell of the grid.

    ``truth`` is a name of `TRUTHS`, ``model`` one of the simulated models. ``n_events`` is the number of
    words of a subject-run, met on average: four stories of sentences with 5 to 12 words. ``noise_autocorrelation``
    is that of the noise at 100 Hz, one sample later.
    """

    truth: str
    model: str
    snr: float = 1.0
    n_events: int = 340
    n_subjects: int = 4
    n_units: int = 12
    noise_autocorrelation: float = 0.95

    @property
    def key(self) -> str:
        """Name of the cell: the same for the same cell, on every machine."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())

    @property
    def sentences_per_story(self) -> int:
        """Sentences of each story that give ``n_events`` words, or four."""
        words_a_sentence = sum(WORDS_PER_SENTENCE) / 2
        return max(SENTENCES_AT_LEAST, round(self.n_events / (N_STORIES * words_a_sentence)))


def cell_config(cell: Cell, seed: int, effort: Effort = EFFORT) -> LPactConfig:
    """Return the study ``seed`` of a cell: one dataset, one model, one layer, the default rules."""
    truth = known_truth(cell.truth)
    options = {
        "n_subjects": cell.n_subjects,
        "n_runs": 1,
        "n_stories": N_STORIES,
        "sentences_per_story": cell.sentences_per_story,
        "n_units": cell.n_units,
        "truths": list(truth.planted),
        "mechanisms": [PLANTED_MECHANISM],
        "snr": cell.snr,
        "noise_autocorrelation": cell.noise_autocorrelation,
        **truth.options,
    }
    controls: dict[str, Any] = {"draws": effort.draws}
    if effort.controls is not None:
        controls["include"] = list(effort.controls)
    where = f"calibration cell {cell.key}"
    what = "the configuration of a simulated study is"
    validate_model(SimulatedOptions, options, where=where, what=what)
    return validate_model(
        LPactConfig,
        {
            "name": "calibration",
            # Studies of different cells share no random number.
            "seed": int(keyed_rng(seed, "calibrate", cell.key).integers(2**48)),
            "datasets": [
                {
                    "name": DATASET,
                    "reader": "simulated",
                    "grid": {"lags_ms": list(effort.lags_ms)},
                    "options": options,
                }
            ],
            "models": [{"name": cell.model, "layers": [LAYER]}],
            "readout": {
                "alphas": list(effort.alphas),
                "folds": effort.folds,
                "gap_events": effort.gap_events,
            },
            "controls": controls,
            "stripping": {"methods": list(effort.methods), "mismatch_draws": effort.mismatch_draws},
            "assay": {"enabled": False},
            "mechanisms": {"include": list(effort.mechanisms)},
        },
        where=where,
        what=what,
    )


Rules = tuple[GatesConfig, RelationalConfig]
"""Gates and relational options of a user's study."""


def decide_trial(cell: Cell, seed: int, effort: Effort = EFFORT, rules: Rules | None = None) -> dict[str, pl.DataFrame]:
    """Simulate, measure and judge the study ``seed`` of a cell; decided tables by name."""
    config = cell_config(cell, seed, effort)
    if rules is not None:
        config = config.model_copy(update=dict(zip(("gates", "relational"), rules, strict=True)))
    with threadpool_limits(1):
        measured = measure_levels(config)
        return decide(measured, gates=config.gates, primary_metric=config.readout.primary_metric)


def run_trial(cell: Cell, seed: int, effort: Effort = EFFORT) -> pl.DataFrame:
    """Simulate, measure and judge the study ``seed`` of a cell: rows of `TRIALS`."""
    return summarise_trial(cell, seed, decide_trial(cell, seed, effort))


def observed_effect(decided: Mapping[str, pl.DataFrame]) -> dict[str, float | None]:
    """Score, contrast with the best rival, and fraction of the ceiling, as the user of a study sees them."""
    rows = decided[CONTROL_DELTAS.name].filter(metric=ReadoutConfig().primary_metric)
    evidence = decided[GATE_EVIDENCE.name].filter(
        gate_profile=PAPER, criterion="mean_fraction_of_ceiling", mechanism=PLANTED_MECHANISM
    )
    contrasts = [_mean(rows["delta_nuisance"]), _mean(rows["delta_control"])]
    known = [c for c in contrasts if c is not None]
    return {
        "score": _mean(rows["real_score"]),
        "delta": min(known) if len(known) == len(contrasts) else None,
        "fraction_of_ceiling": _mean(evidence["value"]),
    }


def _mean(values: pl.Series) -> float | None:
    return cast("float | None", values.cast(pl.Float64).mean())


def summarise_trial(cell: Cell, seed: int, decided: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Rows of `TRIALS` for a study's decided tables, one per gate profile.

    Gates are those of one claim, so that a rate is that of one test: the claim of the mechanism that is planted, or
    would be. Where none is planted, ``integrated`` counts any claim.
    """
    rows = []
    for profile in decided[DECISIONS.name]["gate_profile"].unique().sort():
        own = (decided[t.name].filter(gate_profile=profile) for t in (DECISIONS, GATE_EVIDENCE))
        key = {"cell": cell.key, **asdict(cell), "trial": seed, "gate_profile": profile}
        rows.append(key | _profile_row(cell, *own))
    return frame(TRIALS, rows)


def _profile_row(cell: Cell, decisions: pl.DataFrame, evidence: pl.DataFrame) -> dict[str, Any]:
    planted = pl.col("mechanism") == PLANTED_MECHANISM
    one = known_truth(cell.truth).plants_mechanism
    tested, others = decisions.filter(planted), decisions.filter(~planted)
    integrated = tested if one else decisions
    # Only p-values must be small; point rules require more than a threshold. All tests of a gate must reject.
    tests = evidence.filter(planted & (pl.col("relation") == "<="))
    largest = dict(tests.group_by("gate").agg(pl.col("value").max()).iter_rows())
    largest["mechanism_specific"] = largest.pop("mechanism", None)
    return {
        "claims": "planted" if one else "any",
        "n_claims": decisions.height,
        **{gate: bool(tested[gate].any()) for gate in GATES},
        "integrated": bool(integrated["integrated"].any()),
        **{other: bool(others[other[6:]].any()) if one else None for other in OTHERS},
        "n_mechanism_specific": int(decisions["mechanism_specific"].sum()),
        "label": min(integrated["label"], key=LABELS.index),
        "alpha": tests["threshold"].max(),
        **{column.name: largest.get(column.name[2:]) for column in TRIALS.columns if column.name.startswith("p_")},
    }
