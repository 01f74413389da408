"""Distributions of the kinds that several gates share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lpact.analyses.lpact.claim_story.material import place
from lpact.analyses.lpact.claim_story.model import Distribution, Gives, Kind
from lpact.analyses.lpact.gates.calibrated.frames import SubjectRun
from lpact.analyses.lpact.gates.wording import count, number
from lpact.math.types import FloatArray


def finite(values: Iterable[float | None]) -> list[float | None]:
    """Numbers, None for what is missing or not finite."""
    return [float(v) if v is not None and math.isfinite(v) else None for v in values]


def several(
    title: str,
    unit: str,
    values: Sequence[float | None],
    labels: Sequence[str],
    *,
    kind: Kind,
    gives: Gives = "",
    observed: float | None = None,
    bound: float | None = None,
    reference: str = "",
    where: str = "",
    note: str = "",
    marks: tuple[tuple[str, float], ...] = (),
    p_value: float | None = None,
    n_missing: int = 0,
) -> Distribution:
    """A distribution of labelled numbers; those that are missing are counted, with ``n_missing`` more."""
    pairs = list(zip(finite(values), labels, strict=True))
    there = [(v, label) for v, label in pairs if v is not None]
    return Distribution(
        title=title,
        unit_of_value=unit,
        observed=None if observed is None or not math.isfinite(observed) else float(observed),
        draws=tuple(v for v, _ in there),
        n_missing=len(pairs) - len(there) + n_missing,
        reference=reference,
        where=where,
        note=note,
        kind=kind,
        gives=gives,
        labels=tuple(label for _, label in there),
        bound=bound,
        marks=marks,
        p_value=p_value,
    )


def against_draws(
    title: str,
    unit: str,
    observed: float,
    draws: FloatArray,
    *,
    reference: str,
    where: str,
    gives: Gives = "",
    p_value: float | None = None,
    marks: tuple[tuple[str, float], ...] = (),
    note: str = "",
) -> Distribution:
    """A number of the model's beside the same in every draw of something else."""
    there = draws[np.isfinite(draws)]
    n_reaching = int((there >= observed).sum())
    said = f"{n_reaching} of {count(there.size, 'draw')} {'reaches' if n_reaching == 1 else 'reach'} it"
    if p_value is not None:
        said += f": p = {number(p_value)}"
    return several(
        title,
        unit,
        draws.tolist(),
        [f"draw {i}" for i in range(draws.size)],
        kind="draws",
        gives=gives,
        observed=observed,
        reference=reference,
        where=where,
        note=" ".join(part for part in (f"{said}.", note) if part),
        marks=marks,
        p_value=p_value,
    )


def over_blocks(
    title: str,
    unit: str,
    contrasts: Mapping[SubjectRun, FloatArray],
    *,
    reference: str,
    p_value: float | None,
    n_subject_runs: int | None = None,
    where: str = "",
) -> Distribution:
    """Contrasts in the held-out blocks of all given subject-runs; their mean is the observed one."""
    values = [v for run in contrasts for v in contrasts[run].tolist()]
    labels = [f"{place(run)}, block {i}" for run in contrasts for i in range(contrasts[run].size)]
    there = [v for v in values if math.isfinite(v)]
    p = "" if p_value is None else f", p = {number(p_value)}"
    n_above = sum(v > 0 for v in there)
    return several(
        title,
        unit,
        values,
        labels,
        kind="blocks",
        gives="" if p_value is None else "block_test",
        observed=float(np.mean(there)) if there else None,
        bound=0.0,
        reference=reference,
        where=where
        or f"held-out blocks of {count(n_subject_runs or len(contrasts), 'subject-run')}",
        note=f"{n_above} of {count(len(there), 'block')} above 0{p}.",
        p_value=p_value,
    )


def pooled_over(n: int) -> str:
    """What a mean over subject-runs pools."""
    return f"mean over {count(n, 'subject-run')}"
