"""Numbers behind gate T: brain–brain reliabilities, and fractions of them."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.claim_story.level2 import summary_name
from lpact.analyses.lpact.claim_story.material import Material, place
from lpact.analyses.lpact.claim_story.model import Distribution
from lpact.analyses.lpact.claim_story.shapes import several
from lpact.analyses.lpact.gates._frames import SUBJECT_RUN_KEY, mean_over_subject_runs
from lpact.analyses.lpact.gates.wording import number

_PROFILE = "profile"


def _by_run(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    return frame.group_by(SUBJECT_RUN_KEY, maintain_order=True).agg(pl.col(column).mean())


def reliability(material: Material, mode: str) -> tuple[Distribution, ...]:
    """Reliability that bounds each subject-run, and all reliabilities of the dataset, by mode."""
    rows = material.ceiling_rows
    found = _by_run(rows.drop_nulls("reliability"), "reliability")
    without = rows.select(SUBJECT_RUN_KEY).n_unique() - found.height
    first = several(
        "Brain–brain reliability that bounds each subject-run",
        "reliability",
        found["reliability"].to_list(),
        [place(row) for row in found.iter_rows(named=True)],
        kind="subject_runs",
        gives="mean",
        observed=found["reliability"].mean() if found.height else None,  # type: ignore[arg-type]
        bound=material.gates.min_reliability,
        reference=mode,
        where="mean over units and summaries, by subject-run",
        n_missing=without,
    )
    return (first, *_modes(material, mode)) if found.height else _modes(material, mode)


def _modes(material: Material, mode: str) -> tuple[Distribution, ...]:
    found = []
    profiles = material.reliabilities.filter(kind=_PROFILE)
    for name, rows in profiles.group_by("mode", maintain_order=True):
        why = rows.filter(~pl.col("valid"))["reason"].unique().sort().to_list()
        labels = [
            f"{place(row)}, {summary_name(row['alignment'], row['profile'])}"
            for row in rows.iter_rows(named=True)
        ]
        valid = pl.when(pl.col("valid")).then(pl.col("reliability"))
        found.append(
            several(
                f"Brain–brain reliability of relational patterns, {name[0]}",
                "reliability",
                rows.select(valid).to_series().to_list(),
                labels,
                kind="recordings",
                bound=material.gates.min_reliability,
                reference=str(name[0]),
                where="every recording and summary",
                note=f"Not valid elsewhere ({', '.join(why)})." if why else "",
            )
        )
    return tuple(sorted(found, key=lambda d: (d.reference != mode, d.reference)))


def fraction(
    material: Material, column: str, reference: str, bound: float
) -> tuple[Distribution, ...]:
    """Mean fraction of the ceiling, or contrast in units of it, by subject-run."""
    words = {
        "fraction_of_ceiling": ("Real similarity / reliability", "fraction of the ceiling"),
        "delta_fraction": (
            "(Real similarity − best control) / reliability",
            "difference in fractions of the ceiling",
        ),
    }
    title, unit = words[column]
    found = _by_run(material.bounded, column)
    if not found.height:
        return ()
    without = material.ceiling_rows.select(SUBJECT_RUN_KEY).n_unique() - found.height
    return (
        several(
            f"{title}, by subject-run",
            unit,
            found[column].to_list(),
            [place(row) for row in found.iter_rows(named=True)],
            kind="subject_runs",
            gives="mean",
            observed=found[column].mean(),  # type: ignore[arg-type]
            bound=bound,
            reference=reference,
            where="mean over units and summaries, by subject-run",
            n_missing=without,
        ),
    )


def median_fraction(material: Material, mode: str) -> tuple[Distribution, ...]:
    """Mean fraction of the ceiling, by summary."""
    found = mean_over_subject_runs(
        material.bounded, ["alignment", "profile"], ["fraction_of_ceiling"]
    )
    if not found.height:
        return ()
    return (
        several(
            "Real similarity / reliability, by summary",
            "fraction of the ceiling",
            found["fraction_of_ceiling"].to_list(),
            [summary_name(a, p) for a, p in found.select("alignment", "profile").iter_rows()],
            kind="summaries",
            gives="median",
            observed=found["fraction_of_ceiling"].median(),  # type: ignore[arg-type]
            bound=material.gates.min_ceiling_fraction,
            reference=mode,
            where="mean over units, then over subject-runs",
        ),
    )


def unit_fractions(material: Material) -> list[tuple[str, list[float]]]:
    """Subject-runs with the fractions of their units: the median over summaries of each."""
    units = (
        material.bounded.drop_nulls("fraction_of_ceiling")
        .group_by([*SUBJECT_RUN_KEY, "unit"], maintain_order=True)
        .agg(pl.col("fraction_of_ceiling").median())
    )
    return [
        (place(key), part["fraction_of_ceiling"].to_list())
        for key, part in units.group_by(SUBJECT_RUN_KEY, maintain_order=True)
    ]


def bootstrapped(material: Material, mode: str, p_value: float | None) -> tuple[Distribution, ...]:
    """Mean fraction of the ceiling by subject-run, as the bootstrap sees it."""
    groups = unit_fractions(material)
    if not groups:
        return ()
    means = [sum(values) / len(values) for _, values in groups]
    without = material.ceiling_rows.select(SUBJECT_RUN_KEY).n_unique() - len(groups)
    return (
        several(
            "Real similarity / reliability in the median summary, by subject-run",
            "fraction of the ceiling",
            means,
            [name for name, _ in groups],
            kind="subject_runs",
            gives="bootstrap",
            observed=sum(means) / len(means),
            bound=material.gates.min_ceiling_fraction,
            reference=mode,
            where="mean over units, by subject-run",
            note="Subject-runs and their units are drawn with replacement; "
            f"that the mean is above the bound: p = {number(p_value)}.",
            p_value=p_value,
            n_missing=without,
        ),
    )
