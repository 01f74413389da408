"""Known truths: what is planted, which model is tested, and which gates should stay shut.

A gate is *null* under a truth if nothing that the gate looks for exists: a pass is then a false pass. A gate that
should open gives power. Where a truth makes no promise either way, the gate is *open*, and its rate is only shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lpact.errors import ConfigError, did_you_mean

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
    """One way the world can be.

    ``planted`` are truths of the simulator and ``models`` those that the truth is a fair question about. ``null_gates``
    gives, for every gate that should not pass, the reason in words; ``open_gates`` the same for gates about which the
    truth says nothing; all others should pass. ``options`` are further options of the simulator.
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


def _of(gates: tuple[str, ...], why: str) -> dict[str, str]:
    return dict.fromkeys(gates, why)


_LEVEL2 = ("severe_control_level2", "severe_control", "relational", "ceiling")
_LEVEL1 = ("predictive", "severe_control_level1", "replication")
_NO_PATTERN = "The brain's pattern over units comes from a factor that no model knows, and the model's runs against it."
_NO_MECHANISM = "No unit responds to a mechanism, so stripping one has nothing to take away."
_UNPLANTED = "Another mechanism is planted; no unit responds to this one."
_NOT_ALL = "Integration asks for a gate that is null here."
_FEW_UNITS = "A few units respond, and the gate looks at the typical unit or at all of them."

_NULL_TRUTHS = (
    KnownTruth(
        "independent",
        "Nothing is planted: autocorrelated features, and a brain that does not know them.",
        (),
        ("null", "integrated"),
        _of(GATES, "Features and brain are independent."),
    ),
    KnownTruth(
        "drift",
        "Units drift slowly over each story; the model knows the drifts, or wanders by chance.",
        ("drift",),
        ("drift", "null"),
        _of(
            GATES,
            "What can be shared is a slow course over the story, which the nuisance features know.",
        ),
    ),
    KnownTruth(
        "nuisance",
        "Units respond to word length, frequency and position; the model knows these and nothing else.",
        ("nuisance",),
        ("nuisance",),
        _of(
            GATES,
            "What is shared is in the nuisance features, and survives in the model's own controls.",
        ),
    ),
    KnownTruth(
        "shared_noise",
        "Nothing is planted, and units share strong noise: the brain has a reliable pattern that no model knows.",
        (),
        ("integrated", "null"),
        _of(
            GATES,
            "Features and brain are independent; the units' pattern is noise that they share.",
        ),
        options={"shared_noise": 1.5},
    ),
)

_UNKNOWN_SIGNAL = KnownTruth(
    "unknown_signal",
    "Units respond strongly to the story, the same in everybody, and the model knows nothing of it.",
    ("lexical", "relational"),
    ("null",),
    _of(
        GATES,
        "Features are independent of what the brain responds to; chance has them fit everybody alike.",
    ),
)

_TRUTHS_WITH_SIGNAL = (
    KnownTruth(
        "predictive_only",
        "Units respond to what the model knows, with gains that run against the brain's own pattern.",
        ("predictive",),
        ("predictive",),
        {
            **_of(_LEVEL2, _NO_PATTERN),
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
            **_of(OTHERS, _UNPLANTED),
        },
        _of((*_LEVEL1, *_LEVEL2), _FEW_UNITS),
    ),
    KnownTruth(
        "integrated",
        "Lexical, relational and mechanism responses are planted, and the model knows them all.",
        ("lexical", "relational", "mechanism"),
        ("integrated",),
        _of(OTHERS, _UNPLANTED),
    ),
)

TRUTHS: dict[str, KnownTruth] = {
    truth.name: truth for truth in (*_NULL_TRUTHS, _UNKNOWN_SIGNAL, *_TRUTHS_WITH_SIGNAL)
}
"""All known truths by name: the null ones first."""


def known_truth(name: str) -> KnownTruth:
    """Return a known truth; an unknown name is a `ConfigError`."""
    if name not in TRUTHS:
        raise ConfigError(
            f"there is no known truth named '{name}'",
            where="option '--truth'",
            got=name,
            expected=", ".join(TRUTHS),
            remedy=did_you_mean(name, TRUTHS),
        )
    return TRUTHS[name]
