"""Is a model one more brain? Tests of brain–brain against model–brain values that account for pairs sharing subjects.

Every value belongs to a source i and a target j, and all values of a subject share the subject's effects:

    d_ij = μ + s_i + t_j + e_ij        (symmetric measures: s = t, e_ij = e_ji)

A model is another source, d_mj = μ + s_m + t_j + e_mj, and *one more brain* if s_m is drawn like the s_i. Target
effects cancel in the gap, mean_j d_mj − mean_{i≠j} d_ij, since all targets are shared; the draw of s_m does not. Its
variance under the null is, with ρ the correlation of e_ij and e_ji,

    (1 + 1/N) [var(s) + var(e) (N + ρ) / ((N + 1)(N − 1))]

and does not vanish with many pairs, which is why rank-sum and Kolmogorov–Smirnov tests on pairs reject one more brain
far too often. `subject_test_rates` has how often each test does.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from lpact.errors import InputError, require_known
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.stats.intervals import finite_values
from lpact.stats.randomization import ROUNDING, student_tail

if TYPE_CHECKING:
    import polars as pl

TESTS = ("auto", "exact", "approximate")
MIN_SUBJECTS = 3
"""Fewer have no test: with two, only the gap itself shows how much sources differ."""
NOTICED = 0.8
"""Power at which a gap counts as detectable."""
_QUANTILES = 4096
OF_PAIRS = ("subject_share", "rank_sum_p", "rank_sum_false_alarms", "ks_p", "ks_false_alarms")
"""Numbers about tests that take pairs as independent."""
RATES = Path(__file__).with_name("subject_tests.csv")
"""Made by ``tools/simulate_subject_tests.py``."""


@dataclass(frozen=True)
class SubjectTest:
    """Whether a model is one more brain; see `compare_with_subjects`."""

    test: str
    """`exact`, `approximate`, `paired` or `none`."""
    n: int
    """Subjects compared."""
    n_left_out: int
    """Subjects left out because a value of theirs is undefined."""
    gap: float
    """Mean of model–brain values − mean of brain–brain values. NaN without a pair."""
    low: float
    """Lower end of the 1 − alpha interval of the gap; NaN where there is no test."""
    high: float
    """Upper end."""
    p_value: float
    """Two-sided, of the null that the model is one more brain."""
    smallest_p: float
    """Smallest p-value that the test can give: 1/(N + 1) of ranks, 0 of Student's t, 1 without a test."""
    bound: float
    """Gaps up to this size count as none."""
    equivalence_p: float
    """P-value that the gap is outside ± bound, by two one-sided tests."""
    power: float
    """Probability that the test rejects one more brain that is shifted by the bound, given the estimated variance. For
    the exact test that of a t-test at the level that ranks can meet: up to 0.04 too large near 20 subjects.
    """
    detectable_gap: float
    """Shift that would be detected with a probability of 0.8; infinite where none is."""
    subject_share: float
    """Share of the variance between pairs that is due to subjects; NaN below four, and where pairs do not vary."""
    rank_sum_p: float
    """Mann–Whitney test of model–brain against brain–brain pairs, as if pairs were independent."""
    rank_sum_false_alarms: float
    """How often it rejects one more brain at 0.05 for this N and share; interpolated from simulations."""
    ks_p: float
    """Kolmogorov–Smirnov test, likewise."""
    ks_false_alarms: float
    """How often it rejects one more brain at 0.05."""


def compare_with_subjects(
    between: npt.ArrayLike,
    model: npt.ArrayLike,
    *,
    symmetric: bool,
    bound: float,
    alpha: float = 0.05,
    test: str = "auto",
    brief: bool = False,
) -> SubjectTest:
    """Test whether a model is one more brain, and whether it is as close to brains as they are to each other.

    `approximate` is Student's t of one new source against N sources (Crawford & Howell 1998),

        t = gap / √((1 + 1/N) S²),        N − 1 degrees of freedom

    with S² the variance of the N sources' estimated effects. Symmetric measures: of their means over all N others,
    model included, times N/(N − 1); t then has exactly Student's distribution for normal effects. Asymmetric ones: of
    ŝ_i, by least squares from the table without its diagonal; S² is then too large by at most
    var(e) / ((N − 1)(N − 2)), and the test slightly conservative.

    `exact` ranks the model's gap among those of all N + 1 subjects, each taken as the model in turn. It needs no
    distribution, but a symmetric measure. `auto` is exact where that can reject at alpha, from 19 subjects at 0.05,
    else approximate.

    Interval and equivalence are about *this* model (s_m is fixed, subjects are a sample): Student's t with N − 1
    degrees of freedom and the jackknife's standard error, that of the mean of d_mj − ŝ_j − t̂_j over j.

    Where sources do not vary at all, t is undefined: p-values are then those of ranks, 1/(N + 1) or 1.

    Parameters
    ----------
    between
        [N, N], row = source, column = target; the diagonal is not read. Symmetric where the measure is.
    model
        [N], the model as source, for every target.
    symmetric
        Whether the measure has no direction.
    bound
        Largest gap that counts as equivalent, above 0, in units of the measure.
    alpha
        Level of the test; the interval covers 1 − alpha.
    test
        `auto`, `exact` or `approximate`.
    brief
        Leave out the power, the detectable gap and the tests of pairs, which take most of the time: they are NaN.

    Returns
    -------
    SubjectTest
        With `test = "none"` for fewer than three subjects. Subjects whose model value is not finite are left out;
        then, until all pairs are finite, the one with the most pairs that are not (of equals, the last).

    References
    ----------
    Crawford & Howell 1998, The Clinical Neuropsychologist 12; for tables without diagonal Warner, Kenny & Stoto 1979,
    J. Pers. Soc. Psychol. 37.
    """
    d, m = _tables(between, model, symmetric)
    _check(bound, alpha, test, symmetric)
    kept = _complete(d, m)
    d, m = d[np.ix_(kept, kept)], m[kept]
    n = len(m)
    pairs = d[np.triu_indices(n, 1)] if symmetric else d[~np.eye(n, dtype=bool)]
    if n < MIN_SUBJECTS:
        gap = float(m.mean() - pairs.mean()) if pairs.size else np.nan
        paper = {} if brief else _as_in_paper(m, pairs)
        return _result("none", n, len(kept) - n, gap, bound, alpha, paper)
    found = layout(d, m, symmetric)
    rank = float(exact_p_values(d, m)) if symmetric else None
    if test == "auto":
        test = "exact" if symmetric and 1.0 / (n + 1) <= alpha else "approximate"
    paper = {} if brief else _as_in_paper(m, pairs, float(found.share), symmetric)
    gap, null, error = (
        _unless_rounding(v, d, m) for v in (found.gap, np.sqrt(found.null_variance), np.sqrt(found.variance))
    )
    return _result(test, n, len(kept) - n, gap, bound, alpha, paper, null, error, rank)


def compare_with_pooled(
    between: npt.ArrayLike, model: npt.ArrayLike, *, bound: float, alpha: float = 0.05
) -> SubjectTest:
    """Test whether a model is as close to brains as all other brains together are, by a paired t-test over targets.

        t = mean(δ) / (sd(δ) / √N),    δ_j = d_mj − d_pool(j),j,        N − 1 degrees of freedom

    There is one pool, of all other subjects, per target, so it is not known how much pools differ. The null is
    therefore *not* that the model is drawn like a pool, but that its mean over all subjects is exactly that of pools:
    with many targets any difference is found, however small. The test ignores that pools overlap; targets are
    taken as independent and δ as roughly normal. Interval and equivalence are about the same mean.

    ``between`` and ``model`` are [N], one value per target; targets where one is not finite are left out. The share of
    subjects and the false alarms of the pairs' tests are NaN. `test = "none"` for fewer than three targets.
    """
    d, m = (np.asarray(v, dtype=np.float64) for v in (between, model))
    if d.ndim != 1 or d.shape != m.shape:
        raise InputError(
            "pooled values must be one per target, of brains and of the model",
            where="between, model",
            got=f"shapes {d.shape} and {m.shape}",
            expected="[N] and [N]",
        )
    _check(bound, alpha)
    kept = np.isfinite(d) & np.isfinite(m)
    d, m = d[kept], m[kept]
    n, differences = len(d), m - d
    gap = float(differences.mean()) if n else np.nan
    paper = _as_in_paper(m, d)
    if n < MIN_SUBJECTS:
        return _result("none", n, len(kept) - n, gap, bound, alpha, paper)
    gap = _unless_rounding(gap, d, m)
    error = _unless_rounding(differences.std(ddof=1) / np.sqrt(n), d, m)
    return _result("paired", n, len(kept) - n, gap, bound, alpha, paper, error, error)


@cache
def subject_test_rates() -> pl.DataFrame:
    """How often every test rejects one more brain, a shifted one, or covers and bounds a gap; from simulations.

    Columns: `test` (exact, approximate, rank_sum, ks, equivalence, interval), `symmetric`, `n_subjects`, `effects`
    (normal, skewed, correlated), `sd_subject` and `gap` in standard deviations of e, `rate` at 0.05, and
    `n_simulations` that it is a share of. Rows with a gap of 0 are the size of a test. For `equivalence` the gap is the
    bound, and the rate how often equivalence is wrongly claimed; for `interval` the rate is the coverage of 95 %.
    """
    import polars as pl

    return pl.read_csv(RATES)


# --- means over pairs -----------------------------------------------------------------------------


class PairMeans(NamedTuple):
    """Means over ordered pairs of subjects, with their jackknife errors."""

    mean: FloatArray
    """NaN without pairs."""
    error: FloatArray
    """Standard error by leaving one subject out; NaN where no pair is left then."""
    n: IntArray
    """Subjects that are in a pair."""

    @property
    def p_value(self) -> FloatArray:
        """P-values that the mean is not above 0: Student's t with n − 1 degrees of freedom.

        Where pairs do not vary at all, 0 if the mean is above 0, else 1.
        """
        varies = self.error > 0.0
        t = self.mean / np.where(varies, self.error, 1.0)
        p = np.maximum(special.stdtr(self.n - 1.0, -t), np.finfo(np.float64).tiny)
        p = np.where(varies, p, np.where(self.mean > 0.0, 0.0, 1.0))
        return np.where(np.isnan(self.error), np.nan, p)

    def interval(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Ends of the 1 − alpha interval by Student's t."""
        half = special.stdtrit(self.n - 1.0, 1.0 - alpha / 2.0) * self.error
        return self.mean - half, self.mean + half


def pair_means(values: npt.ArrayLike) -> PairMeans:
    """Means over ordered pairs of subjects, [..., N, N] → [...]; the jackknife accounts for shared subjects.

    The diagonal is not read; values that are not finite, and subjects without any other, are left out.
    """
    values = np.asarray(values, dtype=np.float64)
    used = np.isfinite(values) & ~np.eye(values.shape[-1], dtype=bool)
    d = np.where(used, values, 0.0)
    total, count = d.sum(axis=(-2, -1)), used.sum(axis=(-2, -1))
    of_subject = used.sum(axis=-1) + used.sum(axis=-2)
    left = count[..., None] - of_subject
    present, n = of_subject > 0, (of_subject > 0).sum(axis=-1)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    without = (total[..., None] - d.sum(axis=-1) - d.sum(axis=-2)) / np.maximum(left, 1)
    away = np.where(present, np.where(left > 0, without - mean[..., None], np.nan), 0.0)
    error = np.sqrt((n - 1) / np.maximum(n, 1) * (away**2).sum(axis=-1))
    flat = error <= ROUNDING * np.abs(d).max(axis=(-2, -1), initial=0.0)
    return PairMeans(mean, np.where(n > 0, np.where(flat, 0.0, error), np.nan), n)


# --- estimates, for any number of studies at once -------------------------------------------------


class Layout(NamedTuple):
    """What the tests need of [..., N, N] and [..., N] values."""

    gap: FloatArray
    null_variance: FloatArray
    """Of the gap of one more brain."""
    variance: FloatArray
    """Of the gap of this model over samples of subjects."""
    share: FloatArray


def layout(between: FloatArray, model: FloatArray, symmetric: bool) -> Layout:
    """Gap, its variances, and the share of subjects, at least three.

    The table splits into (d_ij + d_ji)/2, with effects u = (s + t)/2, and (d_ij − d_ji)/2, with v = (s − t)/2; their
    least-squares estimates have errors of variance P/(N − 2) and Q/N, where P + Q = var(e).
    """
    n = model.shape[-1]
    off = ~np.eye(n, dtype=bool)
    d = np.where(off, between, 0.0)
    mean = d.sum(axis=(-2, -1)) / (n * (n - 1))
    swapped = d.swapaxes(-2, -1)
    same, other = (d + swapped) / 2.0, (d - swapped) / 2.0
    u = (same.sum(axis=-1) - (n - 1) * mean[..., None]) / (n - 2)
    v = other.sum(axis=-1) / n
    # The means over all others, times N/(N − 1): a contrast of N + 1 exchangeable subjects.
    sources = (d.sum(axis=-1) + model) / (n - 1) if symmetric else u + v
    null = (1.0 + 1.0 / n) * sources.var(axis=-1, ddof=1)
    variance = (model - 2.0 * u).var(axis=-1, ddof=1) / n
    if n < 4:
        share = np.full(mean.shape, np.nan)
    else:
        rest = same - mean[..., None, None] - u[..., :, None] - u[..., None, :]
        p = (np.where(off, rest, 0.0) ** 2).sum(axis=(-2, -1)) / (n * (n - 3))
        rest = other - v[..., :, None] + v[..., None, :]
        q = (rest**2).sum(axis=(-2, -1)) / ((n - 1) * (n - 2))
        subjects = 2.0 * np.maximum(u.var(axis=-1, ddof=1) - p / (n - 2), 0.0)
        subjects += 2.0 * np.maximum(v.var(axis=-1, ddof=1) - q / n, 0.0)
        total = subjects + p + q
        flat = total <= (ROUNDING * np.abs(d).max(axis=(-2, -1))) ** 2
        share = np.where(flat, np.nan, subjects / np.where(flat, 1.0, total))
    return Layout(model.mean(axis=-1) - mean, null, variance, share)


def exact_p_values(between: FloatArray, model: FloatArray) -> FloatArray:
    """Share of the N + 1 subjects whose gap, each as the model, is at least the model's; [..., N, N] and [..., N].

    The gap of k is proportional to its mean over all others − the mean of these.
    """
    n = model.shape[-1]
    d = np.where(np.eye(n, dtype=bool), 0.0, between)
    means = np.concatenate([d.sum(axis=-1) + model, model.sum(axis=-1, keepdims=True)], axis=-1)
    sizes = np.abs(means - means.mean(axis=-1, keepdims=True))
    slack = ROUNDING * np.abs(means).max(axis=-1, keepdims=True)
    p: FloatArray = (sizes >= sizes[..., -1:] - slack).mean(axis=-1)
    return p


# --- steps ----------------------------------------------------------------------------------------


def _result(
    test: str, n: int, n_left_out: int, gap: float, bound: float, alpha: float, paper: dict[str, float],
    null: float = np.nan, error: float = np.nan, rank: float | None = None,
) -> SubjectTest:  # fmt: skip
    """P-values, interval and power, from the gap, its standard deviations and the p-value of ranks.

    Without tests of pairs, neither these nor the power are computed.
    """
    made: dict[str, Any] = {"test": test, "n": n, "n_left_out": n_left_out, "gap": gap}
    made |= dict.fromkeys(OF_PAIRS, np.nan) | paper | {"bound": bound}
    if test == "none":
        made |= {"p_value": 1.0, "smallest_p": 1.0, "equivalence_p": 1.0, "low": np.nan}
        return SubjectTest(**made, high=np.nan, power=0.0, detectable_gap=np.inf)
    by_rank = test == "exact" or not null > 0.0
    smallest, margin = 1.0 / (n + 1), bound - abs(gap)
    if by_rank:
        p = rank if rank is not None else smallest if gap else 1.0
        # Ranks reject at a multiple of 1/(N + 1).
        alpha_met = float(np.floor(alpha * (n + 1) * (1.0 + ROUNDING)) / (n + 1))
    else:
        p, alpha_met = min(1.0, 2.0 * student_tail(abs(gap) / null, n - 1)), alpha
    equivalence = smallest if margin > 0.0 else 1.0
    if error > 0.0:
        equivalence = student_tail(margin / error, n - 1)
    half = float(special.stdtrit(n - 1, 1.0 - alpha / 2.0)) * error
    power, detectable = _power(bound, null, alpha_met, n - 1) if paper else (np.nan, np.nan)
    return SubjectTest(
        **made, low=gap - half, high=gap + half, p_value=p, smallest_p=smallest if by_rank else 0.0,
        equivalence_p=equivalence, power=power, detectable_gap=detectable,
    )  # fmt: skip


def _power(shift: float, spread: float, level: float, degrees: int) -> tuple[float, float]:
    """Power of a two-sided t-test for a shift, and the shift for a power of 0.8: the tails of the noncentral t.

    By averaging normal tails over the distribution of the standard deviation: SciPy's `nctdtr` is NaN for small tails,
    and its inverse may not return.
    """
    from scipy.optimize import brentq

    if not level > 0.0:
        return 0.0, np.inf
    if not spread > 0.0:
        return 1.0, 0.0
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    t = np.sqrt(special.chdtri(degrees, quantiles) / degrees)
    t *= special.stdtrit(degrees, 1.0 - level / 2.0)

    def power(ratio: float) -> float:
        return float(np.mean(special.ndtr(ratio - t) + special.ndtr(-ratio - t)))

    detectable = 0.0
    if power(0.0) < NOTICED:
        detectable = brentq(lambda ratio: power(ratio) - NOTICED, 0.0, float(t.max()) + 9.0)
    return power(shift / spread), spread * float(detectable)


def _as_in_paper(
    model: FloatArray, pairs: FloatArray, share: float = np.nan, symmetric: bool = True
) -> dict[str, float]:
    """Tests that take pairs as independent, with their false alarms."""
    made = dict.fromkeys(("rank_sum_p", "ks_p"), np.nan)
    if model.size and pairs.size:
        from scipy import stats

        made["rank_sum_p"] = float(stats.mannwhitneyu(model, pairs).pvalue)
        with warnings.catch_warnings():  # SciPy warns where rounding takes the exact p-value above 1
            warnings.simplefilter("ignore", RuntimeWarning)
            made["ks_p"] = float(stats.ks_2samp(model, pairs).pvalue)
    rates = {f"{t}_false_alarms": false_alarms(t, len(model), share, symmetric) for t in ("rank_sum", "ks")}
    return {**made, **rates, "subject_share": share}


def false_alarms(test: str, n: int, share: float, symmetric: bool) -> float:
    """Shipped size of a test at 0.05: linear in the share and in log N, as at the ends beyond 4 and 40 subjects."""
    if not np.isfinite(share):
        return np.nan
    sizes, rates = _sizes(test, symmetric)
    return float(np.interp(np.log(n), sizes, [np.interp(share, *row) for row in rates]))


@cache
def _sizes(test: str, symmetric: bool) -> tuple[FloatArray, list[FloatArray]]:
    """Logarithms of N of the shipped table, and of each the [2, k] shares and rates."""
    rows = subject_test_rates().filter(test=test, symmetric=symmetric, effects="normal", gap=0.0)
    parts = rows.sort("n_subjects", "sd_subject").partition_by("n_subjects", maintain_order=True)
    variances = [2.0 * part["sd_subject"].to_numpy() ** 2 for part in parts]
    return np.log([part["n_subjects"][0] for part in parts]), [
        np.stack([v / (1.0 + v), part["rate"].to_numpy()]) for v, part in zip(variances, parts, strict=True)
    ]


def _complete(d: FloatArray, m: FloatArray) -> BoolArray:
    """Subjects that are left when all values must be defined."""
    kept = np.isfinite(m)
    undefined = ~np.isfinite(d)
    np.fill_diagonal(undefined, False)
    undefined |= undefined.T
    while (counts := undefined[:, kept].sum(axis=1) * kept).any():
        kept[np.flatnonzero(counts == counts.max())[-1]] = False
    return kept


def _unless_rounding(value: npt.ArrayLike, d: FloatArray, m: FloatArray) -> float:
    """A gap or standard deviation, 0 where it is that of rounding."""
    largest = max(np.abs(finite_values(d)).max(), np.abs(m).max())
    return float(value) if abs(float(value)) > ROUNDING * largest else 0.0  # type: ignore[arg-type]


def _tables(between: npt.ArrayLike, model: npt.ArrayLike, symmetric: bool) -> tuple[FloatArray, FloatArray]:
    """Brain–brain and model–brain values, as they must be."""
    d, m = np.array(between, dtype=np.float64), np.asarray(model, dtype=np.float64)
    if d.ndim != 2 or d.shape[0] != d.shape[1]:
        raise InputError(
            "brain–brain values must be one per source and target",
            where="between",
            got=f"shape {d.shape}",
            expected="[N, N]",
        )
    np.fill_diagonal(d, np.nan)
    if symmetric and not np.allclose(d, d.T, rtol=1e-6, atol=1e-9, equal_nan=True):
        raise InputError(
            "a symmetric measure gives the same value in both directions",
            where="between",
            got=f"values that differ by up to {np.nanmax(np.abs(d - d.T)):.3g}",
            remedy="fill both triangles, or pass symmetric=False",
        )
    if m.shape != d.shape[:1]:
        raise InputError(
            "the model's values do not fit the subjects",
            where="model",
            got=f"shape {m.shape}",
            expected=f"one value for each of the {len(d)} targets",
        )
    return d, m


def _check(bound: float, alpha: float, test: str = "auto", symmetric: bool = True) -> None:
    """The options are in range, and the test is possible."""
    if not 0.0 < bound < np.inf:
        raise InputError(
            "the bound of equivalence must be above 0",
            where="bound",
            got=bound,
            remedy="choose the largest gap that does not matter, in units of the measure",
        )
    if not 0.0 < alpha < 1.0:
        raise InputError("the level must be between 0 and 1", where="alpha", got=alpha)
    require_known(test, TESTS, "test of subjects", where="test")
    if test == "exact" and not symmetric:
        raise InputError(
            "an exact test needs the model as a target too, which asymmetric measures do not give",
            where="test",
            got="'exact' and symmetric = False",
            remedy="use test = 'auto' or 'approximate'",
        )
