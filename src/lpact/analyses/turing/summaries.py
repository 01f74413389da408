"""From pairs to scores, growth, instances and verdicts; tables alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.turing import tables
from lpact.analyses.turing.config import (
    ABOVE,
    BELOW,
    CANNOT_REJECT,
    CONVERGES,
    INCONCLUSIVE,
    NO_AGREEMENT,
    UNKNOWN,
    TuringSection,
    short,
)
from lpact.analyses.turing.jobs import BRAIN, MODEL, POOLED, TRIALS, finite
from lpact.ceilings import extrapolate
from lpact.codes import Reason
from lpact.math.columns import mean_of_finite, median_of_finite
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.measures import MEASURES
from lpact.stats import (
    SubjectTest,
    compare_with_pooled,
    compare_with_subjects,
    pair_means,
    student_tail,
)
from lpact.stats.subjects import MIN_SUBJECTS
from lpact.store import frame
from lpact.wording import fixed, number, percent

Row = dict[str, Any]
Tables = Mapping[str, pl.DataFrame]
PLACE = ["dataset", "region", "time", "measure"]
LEVELLED_OFF, GROWING, UNCLEAR = "levelled_off", "growing", "unclear"
N_PERMUTATIONS = 9_999
FEWER_COLUMNS = (
    " It has fewer columns than other sources have units, which alone can lower agreement: to compare equally many of "
    "every source, set turing.source_units."
)


def _reason(value: object) -> str:
    return (Reason.UNDEFINED_SCORE if value is None else Reason.OK).value


def _values(cell: Any) -> FloatArray:
    """A list cell as numbers, NaN where null."""
    return np.array([np.nan if v is None else v for v in cell], dtype=np.float64)


def places(rows: pl.DataFrame) -> list[tuple[Row, pl.DataFrame]]:
    """Rows of every place, with its columns."""
    parts = rows.partition_by(PLACE, maintain_order=True)
    return [(own.select(*PLACE, "lag_ms").row(0, named=True), own) for own in parts]


# --- layers ---------------------------------------------------------------------------------------


def model_pairs(pairs: pl.DataFrame, options: TuringSection) -> pl.DataFrame:
    """Agreement of every model with every target, at the layers that were chosen."""
    made: list[Row] = []
    for place, own in places(pairs.filter(pl.col("kind").is_in([MODEL, TRIALS]))):
        for (model,), rows in own.group_by(["source"], maintain_order=True):
            chosen = _layers(rows.filter(kind=MODEL), options)
            optimistic = options.split_by == "random" or (
                options.layer_choice == "best_on_test" and rows["layer"].n_unique() > 1
            )
            for (kind, target), of_target in rows.group_by(["kind", "target"], maintain_order=True):
                made.append(
                    {**place, "kind": kind, "model": model, "target": target, "layers": chosen}
                    | {"optimistic": optimistic}
                    | _at_layers(of_target, chosen)
                )
    return frame(tables.MODEL_PAIRS, made)


def _layers(rows: pl.DataFrame, options: TuringSection) -> list[int]:
    """Layer of every fold: by training or test score, mean over targets; ties go to the first."""
    layers = rows["layer"].unique(maintain_order=True).to_list()
    sizes = rows.select(pl.col("by_fold").list.len(), pl.col("by_unit").list.len()).rows()
    n_folds = max((folds // max(1, units) for folds, units in sizes), default=1)
    if len(layers) == 1:
        return layers * max(1, n_folds)
    scores = np.full((len(layers), max(1, n_folds)), -np.inf)
    for i, layer in enumerate(layers):
        own = rows.filter(layer=layer)
        if options.layer_choice == "nested":
            found = np.stack([_values(cell) for cell in own["training"]])
        else:
            found = np.repeat(_values(own["value"])[:, None], scores.shape[1], axis=1)
        scores[i] = np.nan_to_num(mean_of_finite(found), nan=-np.inf)
    return [layers[i] for i in scores.argmax(axis=0)]  # fmt: skip


def _at_layers(rows: pl.DataFrame, chosen: list[int]) -> Row:
    """Values of one target: mean over folds, each at its layer; then the median over units."""
    by_layer = {row["layer"]: row for row in rows.iter_rows(named=True)}
    used = [by_layer[layer] for layer in dict.fromkeys(chosen)]
    common = {name: sum(row[name] for row in used) for name in ("n_undefined", "n_values")}
    if not all(row["by_unit"] for row in used):
        return {"value": None, "above_chance": None, "by_unit": [], **common, "reason": used[0]["reason"]}
    if len(used) == 1:
        by_unit, above = _values(used[0]["by_unit"]), used[0]["above_chance"]
    else:
        folds = [_values(by_layer[k]["by_fold"]).reshape(len(chosen), -1)[f] for f, k in enumerate(chosen)]
        by_unit = mean_of_finite(np.stack(folds))
        above = _above_chance([by_layer[k] for k in chosen], folds)
    value = finite(median_of_finite(by_unit))
    if not any(row["chance"] for row in used):
        above = value
    return {"value": value, "above_chance": above, "by_unit": by_unit, **common, "reason": _reason(value)}


def _above_chance(chosen: list[Row], folds: list[FloatArray]) -> float | None:
    """Mean over folds, each at its layer: that of all folds of a layer would count those that the layer was chosen on.

    With chance c of a layer, a fold is as much above that of all its folds as its value is, divided by 1 − c.
    """
    if any(row["above_chance"] is None for row in chosen):
        return None
    above = [
        row["above_chance"] + (median_of_finite(own) - row["value"]) / (1.0 - row["chance"])
        for row, own in zip(chosen, folds, strict=True)
    ]
    return finite(float(mean_of_finite(np.array(above))))


# --- scores ---------------------------------------------------------------------------------------


def between_of(pairs: pl.DataFrame) -> tuple[list[str], FloatArray]:
    """Subjects, and the agreement above chance of every source (row) with every target; NaN on the diagonal.

    For a symmetric measure, both directions have the mean of those that were computed.
    """
    rows = pairs.filter(kind=BRAIN)
    names = list(dict.fromkeys([*rows["source"], *rows["target"]]))
    place = {name: i for i, name in enumerate(names)}
    matrix = np.full((len(names), len(names)), np.nan)
    for source, target, value in rows.select("source", "target", "above_chance").iter_rows():
        matrix[place[source], place[target]] = np.nan if value is None else value
    if is_symmetric(pairs["measure"][0]):
        matrix = mean_of_finite(np.stack([matrix, matrix.T]))
    return names, matrix


def is_symmetric(measure: str) -> bool:
    """Whether a measure has no direction."""
    return bool(MEASURES.get(measure).symmetric)


def scores(pairs: pl.DataFrame, models: pl.DataFrame) -> pl.DataFrame:
    """The score of brains, and of every model, at every place."""
    made: list[Row] = []
    for place, own in places(pairs):
        brains = own.filter(pl.col("kind").is_in([BRAIN, POOLED]))
        rows = brains.select(
            "target",
            "value",
            "chance",
            "above_chance",
            "by_unit",
            "n_undefined",
            "n_values",
            "reliability_target",
        )
        if brains.height and brains["kind"][0] == BRAIN and is_symmetric(place["measure"]):
            other = brains.select(
                pl.col("source").alias("target"), "value", "chance", "above_chance", "by_unit",
                n_undefined=pl.lit(0, pl.Int64), n_values=pl.lit(0, pl.Int64),
                reliability_target="reliability_source",
            )  # fmt: skip
            rows = pl.concat([rows, other])
        of_targets = rows.group_by("target", maintain_order=True).agg(pl.col("reliability_target").mean())
        ceiling = of_targets["reliability_target"].clip(lower_bound=0.0).sqrt().mean()
        common = {"noise_ceiling": ceiling, "corrected": bool(brains["corrected"].all())}
        kind = brains["kind"][0] if brains.height else BRAIN
        made.append({**place, "kind": kind, "source": "brains", **common, **_score(rows)})
        for (kind, model), of_model in models.filter(**{name: place[name] for name in PLACE}).group_by(
            ["kind", "model"], maintain_order=True
        ):
            corrected = own.filter(kind=kind, source=model)["corrected"].all()
            row = {**place, "kind": kind, "source": model, "noise_ceiling": ceiling}
            made.append({**row, "corrected": bool(corrected), **_score(of_model)})
    return frame(tables.SCORES, made)


def _score(rows: pl.DataFrame) -> Row:
    """Mean over sources for every unit of every target; then median and standard error over all of them."""
    units = [
        mean_of_finite(np.stack([_values(cell) for cell in own["by_unit"]]))
        for own in rows.filter(pl.col("by_unit").list.len() > 0).partition_by("target", maintain_order=True)
    ]  # fmt: skip
    values = np.concatenate(units) if units else np.empty(0)
    kept = values[np.isfinite(values)]
    median = finite(median_of_finite(values))
    per_target = rows.group_by("target", maintain_order=True).agg(pl.col("value", "above_chance").mean())
    above, as_it_is = per_target["above_chance"].mean(), rows["value"].equals(rows["above_chance"])
    return {
        "score": median,
        "sem": float(kept.std(ddof=1) / np.sqrt(kept.size)) if kept.size > 1 else None,
        "n": kept.size,
        "mean_of_pairs": per_target["value"].mean(),
        "above_chance": median if as_it_is else above,
        "n_undefined": int(rows["n_undefined"].sum()),
        "n_values": int(rows["n_values"].sum()),
        "reason": _reason(median),
    }


# --- growth and instances -------------------------------------------------------------------------


def growth_fits(growth: pl.DataFrame) -> pl.DataFrame:
    """Does agreement still grow with the data?"""
    made: list[Row] = []
    for place, own in places(growth):
        for (over,), rows in own.group_by(["over"], maintain_order=True):
            rows = rows.sort("size")
            values = np.stack([_values(cell) for cell in rows["by_target"]])
            unfitted = not MEASURES.get(place["measure"]).needs_fit
            noisy = over == "repetitions" and not rows["corrected"].all()
            both = noisy or (unfitted and over != "stimuli")
            found = extrapolate(rows["size"].to_numpy(), values, both_sides=both)
            verdict = {True: LEVELLED_OFF, False: GROWING, None: UNCLEAR}[found.levelled_off]
            last = rows["value"][-1]
            made.append(
                {
                    **place,
                    "over": over,
                    "value": last,
                    "per_doubling": finite(found.per_doubling),
                    "at_infinity": finite(found.at_infinity),
                    "low": finite(found.low),
                    "high": finite(found.high),
                    "reaches_one_at": finite(found.reaches_one_at),
                    "verdict": verdict,
                    "reason": _reason(last),
                }
            )
    return frame(tables.GROWTH_FITS, made)


def instances(pairs: pl.DataFrame, all_models: pl.DataFrame, options: TuringSection, seed: int) -> pl.DataFrame:
    """Table ``turing/instances``: do instances of a model vary as brains do?"""
    from scipy.stats import permutation_test

    def spread(a: FloatArray, b: FloatArray, axis: int = -1) -> Any:
        both = [np.abs(x - np.median(x, axis, keepdims=True)).mean(axis) for x in (a, b)]
        return np.log(np.maximum(both[0], 1e-300)) - np.log(np.maximum(both[1], 1e-300))

    def mean(a: FloatArray, b: FloatArray, axis: int = -1) -> Any:
        return a.mean(axis) - b.mean(axis)

    made: list[Row] = []
    for place, own in places(pairs) if options.instances else []:
        _, matrix = between_of(own)
        brains = mean_of_finite(matrix, 1)
        brains = brains[np.isfinite(brains)]
        models = all_models.filter(**{name: place[name] for name in PLACE})
        kind = tested_kind(models)
        for group, names in options.instances.items():
            tested = models.filter(kind=kind)
            per = [tested.filter(model=name)["above_chance"].mean() for name in names]
            values = np.array([v for v in per if v is not None], dtype=np.float64)
            row = {**place, "group": group, "of_instances": values, "of_brains": brains}
            row |= {"sd_instances": None, "sd_brains": None, "p_spread": None, "p_mean": None}
            row |= {"smallest_p": 1.0, "reason": Reason.UNDEFINED_SCORE.value}
            if len(values) > 1 and len(brains) > 1:
                tests = {}
                for name, statistic in (("p_spread", spread), ("p_mean", mean)):
                    centred = [v - np.median(v) if name == "p_spread" else v for v in (values, brains)]
                    rng = keyed_rng(seed, "turing instances", group, name, *map(str, place.values()))
                    found = permutation_test(centred, statistic, n_resamples=N_PERMUTATIONS, rng=rng)
                    tests[name] = float(found.pvalue)
                    smallest = 2.0 / min(N_PERMUTATIONS + 1, len(found.null_distribution))
                row |= {
                    "sd_instances": float(values.std(ddof=1)),
                    "sd_brains": float(brains.std(ddof=1)),
                }
                row |= {**tests, "smallest_p": min(1.0, smallest), "reason": Reason.OK.value}
            made.append(row)
    return frame(tables.INSTANCES, made)  # fmt: skip


# --- verdicts -------------------------------------------------------------------------------------


def tested_kind(models: pl.DataFrame) -> str:
    """With simulated trials where there are some, else without noise."""
    return TRIALS if TRIALS in models["kind"] else MODEL


def test_of(pairs: pl.DataFrame, model: FloatArray, options: TuringSection) -> tuple[SubjectTest | None, float]:
    """The test of one model, and the p-value that brains do not agree; no test if they do not agree on average."""
    pooled = pairs.filter(kind=POOLED)
    if pooled.height:
        values = _values(pooled["above_chance"])
        kept = values[np.isfinite(values)]
        spread = kept.std(ddof=1) / np.sqrt(kept.size) if kept.size > 1 else 0.0
        agreement = student_tail(float(kept.mean() / spread), kept.size - 1) if spread > 0 else 1.0
        bound = options.equivalence_bound * float(kept.mean()) if kept.size else np.nan
        if not bound > 0:
            return None, agreement
        return compare_with_pooled(values, model, bound=bound, alpha=options.alpha), agreement
    _, matrix = between_of(pairs)
    agreement = float(pair_means(matrix).p_value)
    bound = options.equivalence_bound * float(np.nanmean(matrix)) if np.isfinite(matrix).any() else np.nan
    if not bound > 0:
        return None, agreement
    symmetric = is_symmetric(pairs["measure"][0])
    found = compare_with_subjects(
        matrix, model, symmetric=symmetric, bound=bound, alpha=options.alpha, test=options.test
    )
    return found, agreement


def claims(frames: Tables, options: TuringSection) -> pl.DataFrame:
    """One verdict per place and model."""
    made: list[Row] = []
    pairs, scored = frames[tables.PAIRS.name], frames[tables.SCORES.name]
    fits = frames[tables.GROWTH_FITS.name].filter(over="units", verdict=LEVELLED_OFF)
    for place, models in places(frames[tables.MODEL_PAIRS.name]):
        at = {name: place[name] for name in PLACE}
        own = pairs.filter(**at)
        kind = tested_kind(models)
        here: list[Row] = []
        for (model,), rows in models.group_by(["model"], maintain_order=True):
            tested = rows.filter(kind=kind)
            found = {r["kind"]: r for r in scored.filter(source=model, **at).iter_rows(named=True)}
            brains = scored.filter(source="brains", **at).row(0, named=True)
            score, between = found[kind]["score"], brains["score"]
            more = _more_columns(own, tested)
            levelled_off = fits.filter(**at).height > 0 and not _chance(own)
            row: Row = {
                **place,
                "model": model,
                "score": score,
                "score_without_noise": found[MODEL]["score"],
                "between": between,
                "fraction_of_between": _share(found[kind]["above_chance"], brains["above_chance"]),
                "comparable": more <= 0 or levelled_off,
                "layers": tested["layers"][0],
                "optimistic": bool(tested["optimistic"].any()),
                "corrected": bool(brains["corrected"] and found[kind]["corrected"]),
                "n_undefined": brains["n_undefined"] + found[kind]["n_undefined"],
                "n_values": brains["n_values"] + found[kind]["n_values"],
                "saturated": False,
            }
            said = {"fewer_columns": more < 0 and not levelled_off, "chance": _chance(own)}
            here.append(row | _verdict(row | said, own, tested, options))
        saturated = any(row["label"] in (CONVERGES, ABOVE) for row in here)
        made += [row | {"saturated": saturated} for row in here]
    return frame(tables.CLAIMS, made)


NUMBERS = (
    "gap", "gap_low", "gap_high", "p_value", "smallest_p", "bound", "equivalence_p", "power", "detectable_gap",
    "agreement_p", "subject_share", "rank_sum_p", "rank_sum_false_alarms", "ks_p", "ks_false_alarms",
)  # fmt: skip
GATES = ("agrees", "could_reject", "not_rejected", "equivalent")


def _verdict(row: Row, pairs: pl.DataFrame, tested: pl.DataFrame, options: TuringSection) -> Row:
    """Test, gates, label and reason of a claim."""
    subjects = _subjects(pairs)
    by_target = dict(tested.select("target", "above_chance").iter_rows())
    model = np.array([np.nan if by_target.get(s) is None else by_target[s] for s in subjects])
    made: Row = dict.fromkeys(NUMBERS) | dict.fromkeys(GATES, False)
    made |= {"position": "", "test": "none", "n_subjects": len(subjects), "n_left_out": 0}
    made |= {"converges_in_paper": False, "label": UNKNOWN}
    test: SubjectTest | None = None
    if row["between"] is not None and len(subjects) >= MIN_SUBJECTS:
        test, agreement = test_of(pairs, model, options)
        made |= {"agreement_p": finite(agreement), "agrees": bool(agreement <= options.alpha)}
        if test is None or not made["agrees"]:
            made |= {"label": NO_AGREEMENT, "fraction_of_between": None}
            return {**made, "reason": sentence({**row, **made}, NO_AGREEMENT)}
    if row["score"] is None or row["between"] is None:
        undefined = pairs.filter(pl.col("value").is_null(), pl.col("detail") != "")
        own = undefined.filter(source=row["model"])
        detail = next(iter([*own["detail"], *undefined["detail"]]), "the agreement is undefined")
        return {**made, "reason": f"Not computed: {detail}."}
    if test is None:
        return {**made, "label": CANNOT_REJECT, "reason": sentence({**row, **made}, CANNOT_REJECT)}
    names = {"gap_low": "low", "gap_high": "high"}
    made |= {n: finite(getattr(test, names.get(n, n))) for n in NUMBERS if n != "agreement_p"}
    made |= {"test": test.test, "n_subjects": test.n, "n_left_out": test.n_left_out}
    could = test.test != "none" and test.smallest_p <= options.alpha
    rejected = could and test.p_value <= options.alpha
    equivalent = bool(test.equivalence_p <= options.alpha)
    made |= {
        "could_reject": could,
        "not_rejected": could and not rejected,
        "equivalent": equivalent,
    }
    if could:
        made["position"] = "within" if not rejected else "above" if test.gap > 0 else "below"
    made["converges_in_paper"] = bool(test.rank_sum_p > options.alpha)
    label = _label(row | made)
    return {**made, "label": label, "reason": sentence({**row, **made}, label)}  # fmt: skip


def _share(score: float | None, between: float | None) -> float | None:
    """Score of a model as a fraction of that of brains, if these agree."""
    return score / between if score is not None and between is not None and between > 0.0 else None


def _chance(pairs: pl.DataFrame) -> bool:
    """Whether the agreement of brains is partly that of chance, which grows with units too."""
    return pairs.filter(pl.col("kind").is_in([BRAIN, POOLED]), pl.col("chance") != 0.0).height > 0


def _more_columns(pairs: pl.DataFrame, tested: pl.DataFrame) -> float:
    """How many more columns a model has than a typical brain has units; 0 of answers."""
    if MEASURES.get(pairs["measure"][0]).behavioural:
        return 0.0
    brains = pairs.filter(pl.col("kind").is_in([BRAIN, POOLED]))
    columns = pairs.filter(
        pl.col("layer").is_in(tested["layers"][0].to_list()),
        kind=tested["kind"][0],
        source=tested["model"][0],
    )["n_source_units"]
    # Each brain counts once; of symmetric measures, one is a target alone.
    sizes = pl.concat([
        brains.select(who="source" if brains["kind"][0] == BRAIN else "target", n="n_source_units"),
        brains.filter(kind=BRAIN).select(who="target", n="n_units"),
    ]).unique("who", keep="first", maintain_order=True)["n"]  # fmt: skip
    return max(columns, default=0) - float(np.median(sizes))


def _subjects(pairs: pl.DataFrame) -> list[str]:
    pooled = pairs.filter(kind=POOLED)
    return pooled["target"].to_list() if pooled.height else between_of(pairs)[0]


def _label(made: Row) -> str:
    if not made["could_reject"]:
        return CANNOT_REJECT
    if not made["not_rejected"]:
        if made["position"] == "below":
            return BELOW
        return ABOVE if made["comparable"] else INCONCLUSIVE
    return CONVERGES if made["equivalent"] and made["comparable"] else INCONCLUSIVE


def interval(row: Mapping[str, Any]) -> str | None:
    """The interval of the gap in words."""
    if row["gap"] is None:
        return None
    return f"{fixed(row['gap_low'], sign=True)} to {fixed(row['gap_high'], sign=True)}"


def sentence(row: Mapping[str, Any], label: str) -> str:
    """The verdict in one sentence."""
    model, measure = f"'{row['model']}'", row["measure"]
    if label == NO_AGREEMENT:
        p = "too few defined pairs for a test" if row["agreement_p"] is None else f"p = {number(row['agreement_p'])}"
        return (
            f"No evidence that brains agree with each other by {measure} ({fixed(row['between'])}, {p}): "
            f"{model} has nothing to be compared with."
        )
    share = f"mean gap {fixed(row['gap'], sign=True)} ({interval(row)})"
    if row["fraction_of_between"] is not None:
        its = "its score above chance" if row["chance"] else "its score"
        share = f"{its} is {percent(row['fraction_of_between'])} of that of brains; {share}"
    p, bound = f"p = {number(row['p_value'], 2)}", f"±{fixed(row['bound'])}"
    if label == CONVERGES:
        said = f"{model} {short(label, row['test'])} by {measure} on these data"
        return f"{said}: {share}, {p}, equivalent within {bound}."
    if label == INCONCLUSIVE and not row["comparable"] and (row["equivalent"] or not row["not_rejected"]):
        return (
            f"{model} has more columns than a typical brain has units, and it is not shown that agreement by {measure} "
            f"has levelled off with units: {share}. To compare equally many units of every source, set "
            "turing.source_units."
        )
    if label == INCONCLUSIVE:
        return (
            f"{measure} neither distinguishes {model} from a brain nor shows it to be equivalent within {bound}: "
            f"{share}, {p}; a gap of {fixed(row['bound'])} would be detected with a probability of "
            f"{number(row['power'], 2)}."
        )
    if label == CANNOT_REJECT:
        if row["gap"] is None:
            return (
                f"With {row['n_subjects']} subjects no test by {measure} could tell {model} from a brain; "
                f"at least {MIN_SUBJECTS} are needed."
            )
        return (
            f"With {row['n_subjects']} subjects the {row['test']} test by {measure} can reject no model (smallest p = "
            f"{number(row['smallest_p'], 2)}). {model}: {share}."
        )
    said = f"{model} {short(label, row['test'])} by {measure}: {share}, {p}."
    return said + FEWER_COLUMNS if label == BELOW and row["fewer_columns"] else said
