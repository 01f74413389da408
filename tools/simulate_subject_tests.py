"""Make the size and power table of the tests of subjects: ``python tools/simulate_subject_tests.py`` (2 minutes).

Writes ``src/lpact/stats/subject_tests.csv`` and the tables of ``docs/explanation/turing-test-statistics.md``; with
``--page``, the page alone. The same seeds, and so the same numbers, in every cell and every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import special, stats

from lpact.stats.subjects import RATES, exact_p_values, layout

PAGE = Path(__file__).parents[1] / "docs/explanation/turing-test-statistics.md"
N_SIMULATIONS = 10_000
SIZES = (3, 4, 6, 10, 20, 40)
DEVIATIONS = (0.0, 0.5, 1.0)
GAPS = (0.0, 0.5, 1.0, 2.0)
MARGIN = 2.0
LEVEL = 0.05
AT_ONCE = 4_000_000
EFFECTS = {"normal": 0.0, "skewed": 0.0, "correlated": 0.7}
"""Kinds of effects, and the correlation of e_ij with e_ji and of s_i with t_i."""


def draw(rng, n, sd, symmetric, effects, size):
    """Studies of N brains and one more: [size, N, N] and [size, N]; the effect of the last one is separate."""
    shape = (size, n + 1)
    normal = rng.standard_exponential if effects == "skewed" else rng.standard_normal
    centre, rho = float(effects == "skewed"), EFFECTS[effects]
    s = sd * (normal(shape) - centre)
    t = s if symmetric else rho * s + np.sqrt(1 - rho**2) * sd * (normal(shape) - centre)
    e = rng.standard_normal((*shape, n + 1))
    if symmetric:
        e = np.triu(e, 1)
        e += e.swapaxes(1, 2)
    elif rho:
        other = e.swapaxes(1, 2)
        e = np.sqrt(1 + rho) / 2 * (e + other) + np.sqrt(1 - rho) / 2 * (e - other)
    d = s[:, :, None] + t[:, None, :] + e
    return d[:, :n, :n], d[:, n, :n], s[:, n]


def pairs_of(between, symmetric):
    """[size, pairs] off the diagonal, each pair of a symmetric measure once."""
    n = between.shape[-1]
    chosen = np.triu(np.ones((n, n), dtype=bool), 1) if symmetric else ~np.eye(n, dtype=bool)
    return between[:, chosen]


def ks_rejects(model, pairs):
    """Whether `scipy.stats.ks_2samp` has p ≤ 0.05, in every row; a few calls do, as p falls with the statistic."""
    n, m = model.shape[1], pairs.shape[1]
    both = np.concatenate([model, pairs], axis=1)
    steps = np.where(np.argsort(both, axis=1) < n, m, -n)
    largest = np.abs(np.cumsum(steps, axis=1)).max(axis=1)  # of the statistic times n m
    values, rows = np.unique(largest, return_index=True)
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        row = rows[middle]
        rejects = stats.ks_2samp(model[row], pairs[row]).pvalue <= LEVEL
        low, high = (low, middle) if rejects else (middle + 1, high)
    return largest >= (values[low] if low < len(values) else np.inf)


def rejections(between, model, symmetric):
    """Test → whether it rejects, per study."""
    n, found = model.shape[1], layout(between, model, symmetric)
    critical = special.stdtrit(n - 1, 1 - LEVEL / 2)
    made = {"approximate": np.abs(found.gap) >= critical * np.sqrt(found.null_variance)}
    if symmetric:
        made["exact"] = exact_p_values(between, model) <= LEVEL
    pairs = pairs_of(between, symmetric)
    made["rank_sum"] = stats.mannwhitneyu(model, pairs, axis=1).pvalue <= LEVEL
    made["ks"] = ks_rejects(model, pairs)
    return made


def of_fixed(between, model, symmetric, gap):
    """Coverage of a fixed model's gap, and how often it is wrongly equivalent within it."""
    n, found = model.shape[1], layout(between, model, symmetric)
    error = np.sqrt(found.variance)
    covers = np.abs(found.gap - gap) <= special.stdtrit(n - 1, 1 - LEVEL / 2) * error
    equivalent = gap - np.abs(found.gap) >= special.stdtrit(n - 1, 1 - LEVEL) * error
    return {"interval": covers, "equivalence": equivalent}


def cell(n, sd, symmetric, effects, n_simulations=N_SIMULATIONS, gaps=GAPS) -> Iterator[dict[str, Any]]:
    """Rows of one cell; the same draws for all gaps."""
    rng = np.random.default_rng([n, round(10 * sd), symmetric, list(EFFECTS).index(effects)])
    counts: dict[tuple[str, float], int] = {}
    step = max(1, AT_ONCE // (n + 1) ** 2)
    for start in range(0, n_simulations, step):
        between, model, own = draw(rng, n, sd, symmetric, effects, min(step, n_simulations - start))
        found = [(gap, rejections(between, model + gap, symmetric)) for gap in gaps]
        fixed = model - own[:, None] + MARGIN
        found.append((MARGIN, of_fixed(between, fixed, symmetric, MARGIN)))
        for gap, tests in found:
            for test, hits in tests.items():
                counts[test, gap] = counts.get((test, gap), 0) + int(hits.sum())
    for (test, gap), count in counts.items():
        yield {
            "test": test, "symmetric": symmetric, "effects": effects, "n_subjects": n, "sd_subject": sd,
            "gap": gap, "rate": round(count / n_simulations, 4), "n_simulations": n_simulations,
        }  # fmt: skip


def tables(rates: pl.DataFrame) -> dict[str, str]:
    """Tables of the page, by name."""
    keys = ["test", "symmetric", "effects", "n_subjects", "gap"]
    found = {
        key: part.sort("sd_subject")["rate"].to_list() for key, part in rates.partition_by(keys, as_dict=True).items()
    }

    def row_of(label: object, keys: Iterable[tuple[Any, ...]]) -> str:
        cells = [" / ".join(f"{rate:.2f}" for rate in found.get(key, [])) or "–" for key in keys]
        return f"| {' | '.join([str(label), *cells])} |"

    def table(head: str, rows: Iterable[str]) -> str:
        return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *rows])

    size = [("exact", True), ("approximate", True), ("approximate", False), ("rank_sum", True), ("rank_sum", False),
            ("ks", True), ("ks", False)]  # fmt: skip
    power = [(*t, gap) for t in size[:3] for gap in GAPS[1:]]
    other = [("exact", True, "skewed", 0.0), *(("approximate", *k, 0.0) for k in (
        (True, "skewed"), (False, "skewed"), (False, "correlated")))]  # fmt: skip
    other += [(t, s, "normal", MARGIN) for t in ("interval", "equivalence") for s in (True, False)]
    return {
        "size": table(
            "| N | exact | approximate, symmetric | approximate, asymmetric | rank-sum, symmetric "
            "| rank-sum, asymmetric | KS, symmetric | KS, asymmetric |",
            (row_of(n, ((t, sym, "normal", n, 0.0) for t, sym in size)) for n in SIZES),
        ),
        "power": table(
            "| N | exact, gap 0.5 | 1 | 2 | approximate, symmetric, gap 0.5 | 1 | 2 "
            "| approximate, asymmetric, gap 0.5 | 1 | 2 |",
            (row_of(n, ((t, sym, "normal", n, gap) for t, sym, gap in power)) for n in SIZES),
        ),
        "other": table(
            "| N | exact, skewed | approximate, symmetric, skewed | asymmetric, skewed | asymmetric, correlated "
            "| interval, symmetric | asymmetric | equivalence, symmetric | asymmetric |",
            (row_of(n, ((t, sym, e, n, gap) for t, sym, e, gap in other)) for n in SIZES),
        ),
    }  # fmt: skip


def page(text: str, rates: pl.DataFrame) -> str:
    """The page with its tables, each between two comments."""
    for name, table in tables(rates).items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, rest = text.split(start)
        text = before + start + table + end + rest.split(end)[1]
    return text


def main() -> None:
    """Write table and page."""
    if "--page" not in sys.argv:
        rows = [
            row
            for symmetric in (True, False)
            for effects in EFFECTS
            if not (symmetric and effects == "correlated")
            for n in SIZES
            for sd in DEVIATIONS
            for row in cell(n, sd, symmetric, effects, gaps=GAPS if effects == "normal" else (0.0,))
        ]
        pl.DataFrame(rows).sort(pl.all().exclude("rate", "n_simulations")).write_csv(RATES)
    text = page(PAGE.read_text(encoding="utf-8"), pl.read_csv(RATES))
    PAGE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
