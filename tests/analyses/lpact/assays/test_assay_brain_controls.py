"""Controls on measured brains: they pass where brains agree, and fail or say why where they do not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from brain_studies import brain_controls, measured_brains, study_config
from scipy.spatial.distance import cosine
from scipy.stats import pearsonr, spearmanr

from lpact.analyses.lpact.assays import brain_as_model, reliability
from lpact.analyses.lpact.assays.brain_as_model import (
    RecordingPatterns,
    profile_order,
    random_orders,
    read_patterns,
    shuffled_similarities,
)
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES, ProfileSimilarity
from lpact.analyses.lpact.tables.assay import (
    BRAIN_AS_MODEL,
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    BRAIN_RELIABILITY,
    PROFILE_ORDER,
)
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, BRAIN_PATTERNS
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.store import frame

ORACLES = {
    "pearson": lambda a, b: pearsonr(a, b).statistic,
    "spearman": lambda a, b: spearmanr(a, b).statistic,
    "cosine": lambda a, b: 1 - cosine(a, b),
}


@pytest.fixture(scope="module")
def planted():
    return brain_controls(study_config())


@pytest.fixture(scope="module")
def nothing():
    """No signal, and no noise that units share: nothing repeats."""
    return brain_controls(study_config(snr=0.0, shared_noise=0.0))


def patterns(rng, n=9, *, mean=0.0):
    return rng.standard_normal((n, n)) + mean


# --- Shuffled unit orders ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORACLES)
def test_shuffled_patterns_are_compared_as_scipy_does(name):
    rng = np.random.default_rng(0)
    target, source = patterns(rng), patterns(rng)
    orders = random_orders(8, 4, rng)
    found = shuffled_similarities(PROFILES.build(name), target, source, orders)
    for p, order in enumerate(orders):
        for i in range(9):
            others = [j for j in range(9) if j != i]
            expected = ORACLES[name](target[i, others], source[i, others][order])
            assert found[p, i] == pytest.approx(expected)


def test_a_pattern_that_does_not_vary_has_no_similarity_and_spoils_no_other():
    rng = np.random.default_rng(1)
    target, source = patterns(rng), patterns(rng)
    orders = random_orders(8, 3, rng)
    whole = shuffled_similarities(PROFILES.build("pearson"), target, source, orders)
    flat = source.copy()
    flat[2] = 1.0
    found = shuffled_similarities(PROFILES.build("pearson"), target, flat, orders)
    assert np.isnan(found[:, 2]).all()
    np.testing.assert_allclose(np.delete(found, 2, axis=1), np.delete(whole, 2, axis=1))


def test_a_similarity_of_another_package_is_shuffled_too():
    class Nearness(ProfileSimilarity):
        name = "nearness"
        summary = "minus the mean absolute difference"

        def compare(self, brain, patterns):
            far = np.abs(brain - patterns[..., None, :])
            return -np.nanmean(np.where(np.eye(len(brain), dtype=bool), np.nan, far), axis=-1)

    rng = np.random.default_rng(2)
    target, source = patterns(rng), patterns(rng)
    order = random_orders(8, 1, rng)
    found = shuffled_similarities(Nearness(), target, source, order)
    others = [j for j in range(9) if j != 4]
    assert found[0, 4] == pytest.approx(-np.abs(target[4, others] - source[4, others][order[0]]).mean())


# --- Brain–brain reliability ---------------------------------------------------------------------


def ceiling_row(run, mode, profile, value, reason=Reason.OK, kind="profile"):
    return {
        "dataset": "d",
        "subject": "1",
        "session": "a",
        "run": run,
        "mode": mode,
        "kind": kind,
        "alignment": "cka",
        "profile": profile,
        "valid": value is not None,
        "reason": reason,
        "reliability": value,
        "reliability_spearman_brown": None,
        "n_partners": 1,
        "n_units_shared": 9,
        "alone": False,
    }


def reliability_rows(values):
    rows = [
        ceiling_row(str(run), "split_half", profile, value)
        for profile, own in values.items()
        for run, value in enumerate(own)
    ]
    rows += [
        ceiling_row(str(run), mode, "pearson", None, reason)
        for mode, reason in (
            ("run_to_run", Reason.SINGLE_RUN),
            ("session_to_session", Reason.SINGLE_SESSION),
            ("subject_to_subject", Reason.SINGLE_SUBJECT),
        )
        for run in range(3)
    ]
    table = reliability.summarise_reliability(frame(BRAIN_CEILING, rows), {"d": "secondary"}, GatesConfig())
    return {(r["mode"], r["kind"]): r for r in table.iter_rows(named=True)}


def test_reliability_is_counted_row_by_row():
    rows = reliability_rows({"pearson": [0.05, 0.3, 0.2], "spearman": [0.4, 0.1, 0.6]})
    half = rows["split_half", "profile"]
    assert (half["n_recordings"], half["n_rows"], half["n_valid"], half["n_reliable"]) == (
        3,
        6,
        6,
        5,
    )
    assert half["median_reliability"] == pytest.approx(0.25)
    assert half["reliable_share"] == pytest.approx(5 / 6)
    assert half["weakest_profile_share"] == pytest.approx(2 / 3)
    assert half["gate_pass"]
    assert half["split_half_alone"]
    assert half["interpretation"].startswith("secondary dataset: ")
    between = rows["subject_to_subject", "profile"]
    assert between["reason"] == Reason.SINGLE_SUBJECT
    assert (between["n_rows"], between["n_valid"], between["median_reliability"]) == (3, 0, None)
    assert not between["gate_pass"]
    assert rows["run_to_run", "response"]["reason"] == Reason.DATASET_HAS_NO_RECORDING


def test_cosine_does_not_carry_correlations_that_fail():
    rows = reliability_rows({"cosine": [0.9, 0.9, 0.9, 0.9], "pearson": [0.0, -0.1, 0.2]})
    half = rows["split_half", "profile"]
    assert half["reliable_share"] == pytest.approx(5 / 7)  # more than 0.6 of all rows
    assert not half["gate_pass"]


def test_reliability_passes_where_runs_share_signal_and_fails_where_nothing_repeats(planted, nothing):
    def passing(frames, kind):
        table = frames[BRAIN_RELIABILITY.name].filter(pl.col("kind") == kind, pl.col("n_valid") > 0)
        return dict(table.select("mode", "gate_pass").iter_rows())

    modes = ("run_to_run", "subject_to_subject")
    assert passing(planted, "profile") == dict.fromkeys((*modes, "split_half"), True)
    assert passing(planted, "response") == dict.fromkeys(modes, True)
    assert passing(nothing, "profile") == dict.fromkeys((*modes, "split_half"), False)
    assert passing(nothing, "response") == dict.fromkeys(modes, False)
    other = planted[BRAIN_RELIABILITY.name].filter(mode="session_to_session")
    assert set(other["reason"]) == {Reason.SINGLE_SESSION}


# --- Brain as model ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    id: RecordingId
    comparable: bool = True


def named(*places, comparable=True):
    return [Named(RecordingId(*place, "s"), comparable) for place in places]


def test_two_recordings_make_one_pair():
    config = study_config()
    recordings = named(("1", "a", "1"), ("1", "a", "2"), ("1", "b", "1"), ("2", "a", "1"))
    found = {c: brain_as_model.pairs(config, "d", c, recordings) for c in brain_as_model.COMPARISONS}
    assert found["run_to_run"] == ([(0, 1)], 1)
    assert found["session_to_session"] == ([(0, 2), (1, 2)], 2)
    assert found["subject_to_subject"] == ([(0, 3), (1, 3), (2, 3)], 3)
    strangers = named(("1", "a", "1"), ("1", "a", "2"), ("2", "a", "1"), comparable=False)
    assert brain_as_model.pairs(config, "d", "subject_to_subject", strangers) == ([], 0)
    assert brain_as_model.pairs(config, "d", "run_to_run", strangers) == ([(0, 1)], 1)


def test_of_very_many_pairs_some_are_drawn():
    config = study_config()
    many = named(*((str(i), "a", "1") for i in range(20)))
    chosen, possible = brain_as_model.pairs(config, "d", "subject_to_subject", many)
    assert possible == 20 * 19 / 2
    assert len(set(chosen)) == len(chosen) == brain_as_model.MAX_PAIRS
    assert chosen == sorted(chosen)
    assert (chosen, possible) == brain_as_model.pairs(config, "d", "subject_to_subject", many)


def test_rows_hold_the_similarity_of_a_unit_with_itself_elsewhere(planted):
    config = study_config()
    audit, measured = measured_brains(config)
    first, second, *_ = read_patterns(measured[BRAIN_PATTERNS.name], audit.of["lpact"].detail["sim"].recordings)
    unit = first.unit_ids[3]
    row = (
        planted[BRAIN_AS_MODEL.name]
        .filter(
            source=str(first.id),
            target=str(second.id),
            unit=unit,
            alignment="rsa",
            profile="pearson",
        )
        .row(0, named=True)
    )
    others = [j for j in range(10) if j != 3]
    expected = pearsonr(first.matrices["rsa"][3, others], second.matrices["rsa"][3, others])
    assert row["comparison"] == "run_to_run"
    assert row["similarity"] == pytest.approx(expected.statistic)
    assert row["delta"] == pytest.approx(row["similarity"] - row["shuffled_similarity"])
    assert row["n_permutations"] == config.assay.unit_permutations
    assert row["split_half_reliability"] == pytest.approx(
        min(first.reliability["rsa"][3], second.reliability["rsa"][3])
    )


def test_a_row_passes_if_it_beats_the_shuffle_and_its_pattern_is_reliable(planted, nothing):
    rows = pl.concat([planted[BRAIN_AS_MODEL.name], nothing[BRAIN_AS_MODEL.name]])
    above, reliable = rows["delta"] > 0, rows["split_half_reliability"] >= 0.1
    assert (above & ~reliable).any()
    assert (~above & reliable).any()
    assert (rows["gate_pass"] == (above & reliable)).all()


def summaries(frames, comparison):
    return frames[BRAIN_AS_MODEL_SUMMARY.name].filter(comparison=comparison)


@pytest.mark.parametrize("comparison", ["run_to_run", "subject_to_subject"])
def test_a_brain_in_a_models_place_passes_where_signal_is_planted_and_not_where_it_is_not(planted, nothing, comparison):
    assert summaries(planted, comparison)["gate_pass"].to_list() == [True] * 9
    assert summaries(planted, comparison)["mean_delta"].min() > 0.05
    assert summaries(nothing, comparison)["gate_pass"].to_list() == [False] * 9
    assert summaries(nothing, comparison)["pass_share"].max() < 0.5
    assert set(summaries(nothing, comparison)["reason"]) == {Reason.OK}


def test_the_oracle_asks_for_both_gates(planted, nothing):
    found = {row["comparison"]: row for row in planted[BRAIN_ORACLE.name].iter_rows(named=True)}
    for comparison in ("run_to_run", "subject_to_subject"):
        assert found[comparison]["n_joint_pass"] == 9
        assert found[comparison]["gate_pass"]
    assert found["session_to_session"]["reason"] == Reason.SINGLE_SESSION
    assert not found["session_to_session"]["gate_pass"]
    empty = nothing[BRAIN_ORACLE.name].filter(comparison="run_to_run").row(0, named=True)
    assert (empty["n_summaries"], empty["n_joint_pass"], empty["gate_pass"]) == (9, 0, False)
    # The same passing summaries, with ceilings that bound nothing.
    low = planted[BRAIN_AS_MODEL_SUMMARY.name].with_columns(ceiling=pl.lit(0.05))
    row = brain_as_model.oracle(low, GatesConfig()).filter(comparison="run_to_run").row(0, named=True)
    assert (row["n_relational_pass"], row["n_ceiling_valid"], row["gate_pass"]) == (9, 0, False)


def test_units_of_other_subjects_are_not_compared_where_they_are_others():
    frames = brain_controls(study_config(shared_units=False, relational={"alignments": ["cka"]}))
    between = summaries(frames, "subject_to_subject")
    assert between["n_rows"].to_list() == [0, 0, 0]
    assert set(between["reason"]) <= {Reason.TOO_FEW_SHARED_UNITS, Reason.UNITS_NOT_COMPARABLE}
    assert not between["gate_pass"].any()
    assert summaries(frames, "run_to_run")["gate_pass"].all()


def test_recordings_with_other_unit_names_say_so():
    config = study_config(relational={"alignments": ["cka"], "profiles": ["pearson"]})
    audit, measured = measured_brains(config)
    recordings = [replace(r, comparable=False) for r in audit.of["lpact"].detail["sim"].recordings]
    brains = read_patterns(measured[BRAIN_PATTERNS.name], recordings)
    rows = brain_as_model.compare_brains(config, "sim", brains)
    assert set(rows["comparison"]) == {"run_to_run"}
    table = brain_as_model.summarise_comparisons(
        config,
        "sim",
        "primary",
        recordings,
        rows=rows,
        tests=brain_as_model.unit_order_tests(config, "sim", brains),
        ceilings=measured[BRAIN_CEILING.name],
    )
    reasons = dict(table.select("comparison", "reason").iter_rows())
    assert reasons == {
        "run_to_run": Reason.OK,
        "session_to_session": Reason.SINGLE_SESSION,
        "subject_to_subject": Reason.UNITS_NOT_COMPARABLE,
    }
    assert table.filter(comparison="run_to_run")["gate_pass"].all()


def test_a_recording_with_its_units_in_another_order_no_longer_passes():
    """The planted signal is there as before; only the names of the units in one run of every subject are exchanged."""
    config = study_config(relational={"alignments": ["cka"], "profiles": ["pearson", "spearman"]})
    audit, measured = measured_brains(config)
    brains = read_patterns(measured[BRAIN_PATTERNS.name], audit.of["lpact"].detail["sim"].recordings)
    straight = brain_as_model.compare_brains(config, "sim", brains)
    rng = np.random.default_rng(4)
    mixed = [mislabelled(b, rng) if b.id.run == "02" else b for b in brains]
    moved = brain_as_model.compare_brains(config, "sim", mixed)

    def passes(rows):
        own = rows.filter(comparison="run_to_run", profile="pearson")
        return own["gate_pass"].mean() >= 0.6, own["delta"].mean()

    assert passes(straight)[0]
    assert passes(straight)[1] > 0.7
    assert not passes(moved)[0]
    assert passes(moved)[1] < 0.2


def mislabelled(brain: RecordingPatterns, rng: np.random.Generator) -> RecordingPatterns:
    order = rng.permutation(len(brain.unit_ids))
    return replace(brain, matrices={name: m[np.ix_(order, order)] for name, m in brain.matrices.items()})


def test_too_few_units_are_a_reason_not_a_failure():
    config = study_config(relational={"min_units": 11, "alignments": ["cka"], "profiles": ["pearson"]})
    frames = brain_controls(config)
    rows = frames[BRAIN_AS_MODEL.name]
    assert rows.height == 15 * 10
    assert set(rows["reason"]) == {Reason.TOO_FEW_UNITS}
    assert rows["delta"].is_null().all()
    assert set(summaries(frames, "run_to_run")["reason"]) == {Reason.TOO_FEW_UNITS}
    assert set(frames[PROFILE_ORDER.name]["reason"]) == {Reason.TOO_FEW_UNITS}


# --- Profile order -------------------------------------------------------------------------------


def order_rows(mean):
    config = study_config()
    rng = np.random.default_rng(5)
    brain = RecordingPatterns(
        tuple(f"u{i}" for i in range(12)),
        {name: patterns(rng, 12, mean=mean) for name in ("linear", "rsa", "cka")},
        {name: np.ones(12) for name in ("linear", "rsa", "cka")},
        RecordingId("1", "a", "1", "s"),
        True,
    )
    table = profile_order(config, "d", "primary", [brain])
    return {(r["alignment"], r["profile"]): r for r in table.iter_rows(named=True)}


def test_correlations_notice_the_order_of_units_and_the_cosine_of_positive_patterns_does_not():
    positive, centred = order_rows(5.0), order_rows(0.0)
    for row in (*positive.values(), *centred.values()):
        assert row["n_rows"] == 12
        assert row["median_similarity"] == pytest.approx(1.0)
        assert row["median_delta"] == pytest.approx(1.0 - row["median_shuffled"], abs=1e-9)
    for profile in ("pearson", "spearman"):
        assert positive["cka", profile]["gate_pass"]
        assert positive["cka", profile]["median_delta"] == pytest.approx(1.0, abs=0.1)
    # cos of two patterns of mean 5 and variance 1 is about 25 / 26.
    assert positive["cka", "cosine"]["median_shuffled"] == pytest.approx(25 / 26, abs=0.03)
    assert not positive["cka", "cosine"]["gate_pass"]
    assert centred["cka", "cosine"]["gate_pass"]


def test_patterns_that_do_not_vary_have_no_order():
    config = study_config()
    flat = RecordingPatterns(
        tuple(f"u{i}" for i in range(9)),
        {name: np.ones((9, 9)) for name in ("linear", "rsa", "cka")},
        {name: np.full(9, np.nan) for name in ("linear", "rsa", "cka")},
        RecordingId("1", "a", "1", "s"),
        True,
    )
    table = profile_order(config, "d", "primary", [flat])
    assert set(table.filter(profile="pearson")["reason"]) == {Reason.UNDEFINED_SCORE}
    cosines = table.filter(profile="cosine")
    assert set(cosines["reason"]) == {Reason.OK}
    assert not cosines["gate_pass"].any()
    nobody = profile_order(config, "d", "primary", [])
    assert set(nobody["reason"]) == {Reason.DATASET_HAS_NO_RECORDING}
