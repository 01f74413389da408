"""Positive controls: can the assay see?"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from lpact.config.section import Section

Count = Annotated[int, Field(ge=1)]


class AssayConfig(Section):
    """Positive controls. They show what the assay can detect, and never change a verdict on a model."""

    enabled: bool = Field(True, description="Whether `lpact run` computes the positive controls.")
    implant_snr: float = Field(
        1.5,
        gt=0,
        description="Strength of the signal that the implanted study carries; see `snr` of the reader `simulated`.",
    )
    unit_permutations: Count = Field(
        50,
        description="Shuffled unit orders that brain-as-model and profile-order controls are held against.",
    )
    onset_windows_ms: tuple[tuple[float, float], ...] = Field(
        ((0.0, 100.0), (100.0, 300.0), (250.0, 500.0)),
        min_length=1,
        description="Windows after word onset in which responses to words, and to their rate, are looked for.",
    )
    shifts: Count = Field(
        20,
        description="Circular shifts of word onsets, word rate and envelope that a response is held against; at least "
        "`1 / alpha - 1`, so that p can reach `alpha`.",
    )
    alpha: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Largest p at which a row passes against circular shifts, and a brain in a model's place against "
        "shuffled unit orders.",
    )
    envelope_lags_ms: tuple[float, ...] = Field(
        (0.0, 50.0, 100.0, 150.0, 200.0, 300.0),
        min_length=1,
        description="Lags at which the acoustic envelope predicts the signal, side by side.",
    )
    envelope_rate_hz: float = Field(
        25.0,
        gt=0,
        description="Rate to which envelope and signal are resampled; a slower signal keeps its own rate.",
    )

    @model_validator(mode="after")
    def _check(self) -> AssayConfig:
        if any(start >= stop for start, stop in self.onset_windows_ms):
            raise ValueError(
                "a window of onset_windows_ms ends before it starts; write [start, stop]"
            )
        if len(set(self.envelope_lags_ms)) != len(self.envelope_lags_ms):
            raise ValueError("envelope_lags_ms lists a lag twice; list each lag once")
        if len(set(self.onset_windows_ms)) != len(self.onset_windows_ms):
            raise ValueError("onset_windows_ms lists a window twice; list each window once")
        if self.alpha * (self.shifts + 1) < 1.0 - 1e-9:
            raise ValueError(
                f"no p of {self.shifts} shifts can reach alpha = {self.alpha:g}; raise shifts or alpha"
            )
        return self
