from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, zscore

from lpact.analyses.lpact.levels import ceiling
from lpact.analyses.lpact.levels.ceiling import BrainOnGrid
from lpact.analyses.lpact.levels.pairing import paired
from lpact.codes import Reason
from lpact.datasets.base import RecordingId

N = 9


def brain(subject, session, run, *, stimulus="s", seed=0, units=None, rng=None):
    rng = rng or np.random.default_rng(seed)
    units = units or tuple(f"u{i}" for i in range(N))
    matrices = {name: rng.standard_normal((len(units), len(units))) for name in ("linear", "rsa", "cka")}
    halves = tuple({name: m + rng.standard_normal(m.shape) for name, m in matrices.items()} for _ in range(2))
    return BrainOnGrid(
        id=RecordingId(subject, session, run, stimulus),
        unit_ids=units,
        onset_s=np.arange(30.0),
        first_word=np.arange(30),
        comparable=True,
        responses=rng.standard_normal((30, len(units))),
        patterns=matrices,
        halves=halves,
    )


def get(table, **key):
    return table.filter(**key).row(0, named=True)


@pytest.fixture(scope="module")
def config(make_study):
    return make_study()


def test_modes_pair_what_they_say():
    a = RecordingId("1", "a", "1", "s")
    same = {"run": RecordingId("1", "a", "2", "s"), "session": RecordingId("1", "b", "1", "s")}
    other = RecordingId("2", "a", "1", "s")
    assert paired("run_to_run", a, same["run"])
    assert not paired("run_to_run", a, same["session"])
    assert paired("session_to_session", a, same["session"])
    assert not paired("session_to_session", a, other)
    assert paired("subject_to_subject", a, other)
    assert not paired("subject_to_subject", a, same["run"])
    with pytest.raises(KeyError):
        paired("twin_to_twin", a, other)


def test_every_recording_has_a_row_for_every_mode_and_summary(config):
    table = ceiling.measure_ceilings(
        config=config, dataset="d", brains=[brain("1", "a", "1"), brain("2", "a", "1", seed=1)]
    )
    assert table.height == 2 * 4 * (9 + 2)
    invalid = table.filter(~pl.col("valid"))
    assert invalid["reliability"].is_null().all()
    assert (invalid["reason"] != Reason.OK).all()


def test_profile_reliability_is_the_median_over_units_of_pattern_similarity(config):
    a, b, c = (brain("1", "a", str(i), seed=i) for i in range(3))
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, b, c])

    def median(x, y):
        rows = []
        for i in range(N):
            keep = [j for j in range(N) if j != i]
            rows.append(pearsonr(x[i, keep], y[i, keep]).statistic)
        return np.median(rows)

    row = get(table, run="0", mode="run_to_run", alignment="cka", profile="pearson")
    expected = np.mean([median(a.patterns["cka"], other.patterns["cka"]) for other in (b, c)])
    assert row["reliability"] == pytest.approx(expected)
    assert row["reliability_spearman_brown"] == pytest.approx(2 * expected / (1 + expected))
    assert row["n_partners"] == 2
    half = get(table, run="0", mode="split_half", alignment="rsa", profile="pearson")
    assert half["reliability"] == pytest.approx(median(a.halves[0]["rsa"], a.halves[1]["rsa"]))


def test_impossible_modes_say_why(config):
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[brain("1", "a", "1")])
    reasons = {
        row["mode"]: row["reason"] for row in table.filter(alignment="rsa", profile="cosine").iter_rows(named=True)
    }
    assert reasons == {
        "split_half": Reason.OK,
        "run_to_run": Reason.SINGLE_RUN,
        "session_to_session": Reason.SINGLE_SESSION,
        "subject_to_subject": Reason.SINGLE_SUBJECT,
    }
    half = get(table, mode="split_half", alignment="rsa", profile="cosine")
    assert half["alone"]
    response = get(table, mode="split_half", kind="response")
    assert response["reason"] == Reason.NO_REPEATED_MEASURE


def test_units_are_matched_by_name_not_by_place(config):
    """A partner with its units in another order gives the same reliability; a missing unit is left out."""
    a = brain("1", "a", "1", seed=1)
    order = np.random.default_rng(3).permutation(N)
    b = brain("1", "a", "2", seed=2)
    shuffled = BrainOnGrid(
        id=b.id,
        unit_ids=tuple(b.unit_ids[i] for i in order),
        onset_s=b.onset_s,
        first_word=b.first_word,
        comparable=True,
        responses=b.responses[:, order],
        patterns={k: m[np.ix_(order, order)] for k, m in b.patterns.items()},
        halves=b.halves,
    )
    straight = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, b])
    moved = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, shuffled])
    for kind in ("profile", "response"):
        key = {"run": "1", "mode": "run_to_run", "kind": kind}
        np.testing.assert_allclose(
            straight.filter(**key)["reliability"].to_numpy(),
            moved.filter(**key)["reliability"].to_numpy(),
        )
    fewer = brain("1", "a", "2", units=tuple(f"u{i}" for i in range(1, N)))
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, fewer])
    assert get(table, run="1", mode="run_to_run", alignment="cka", profile="cosine")["n_units_shared"] == N - 1
    strangers = brain("1", "a", "2", units=tuple(f"v{i}" for i in range(N)))
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, strangers])
    row = get(table, run="1", mode="run_to_run", alignment="cka", profile="cosine")
    assert row["reason"] == Reason.TOO_FEW_SHARED_UNITS


def test_response_reliability_needs_the_same_stimulus_and_events(config):
    a = brain("1", "a", "1", seed=1)
    b = brain("1", "a", "2", seed=2)
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, b])
    row = get(table, run="1", mode="run_to_run", kind="response")
    expected = np.median([pearsonr(a.responses[:, u], b.responses[:, u]).statistic for u in range(N)])
    assert row["reliability"] == pytest.approx(expected)
    other = brain("1", "a", "2", stimulus="t")
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, other])
    assert get(table, run="1", mode="run_to_run", kind="response")["reason"] == Reason.DIFFERENT_STIMULUS
    late = replace(b, onset_s=b.onset_s + 0.5)
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, late])
    assert get(table, run="1", mode="run_to_run", kind="response")["reason"] == Reason.DIFFERENT_EVENTS


def test_responses_are_compared_over_the_events_that_both_hold(config):
    a, b = brain("1", "a", "1", seed=1), brain("1", "a", "2", seed=2)
    kept = np.setdiff1d(np.arange(len(a.onset_s)), [0, 4, 7])
    fewer = replace(b, onset_s=b.onset_s[kept], first_word=kept, responses=b.responses[kept])
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, fewer])
    for run in ("1", "2"):
        row = get(table, run=run, mode="run_to_run", kind="response")
        expected = np.median([pearsonr(a.responses[kept, u], b.responses[kept, u]).statistic for u in range(N)])
        assert row["reliability"] == pytest.approx(expected)


def test_words_at_one_time_are_told_apart(config):
    """Two speakers at once: the partner lost the first word of each pair, and is compared over the second ones."""
    a = replace(brain("1", "a", "1", seed=1), onset_s=np.repeat(np.arange(15.0), 2))
    second = np.arange(1, 30, 2)
    b = replace(
        a,
        id=RecordingId("1", "a", "2", "s"),
        onset_s=a.onset_s[second],
        first_word=second,
        responses=2.0 * a.responses[second] + 1.0,
    )
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=[a, b])
    row = get(table, run="1", mode="run_to_run", kind="response")
    assert row["reliability"] == pytest.approx(1.0)


def test_electrodes_of_one_name_are_not_paired_between_subjects(config):
    brains = [
        replace(brain(subject, "a", run, seed=int(subject + run)), comparable=False)
        for subject in ("1", "2", "3")
        for run in ("1", "2")
    ]
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=brains)
    between = table.filter(mode="subject_to_subject")
    assert not between["valid"].any()
    assert set(between["reason"]) == {Reason.UNITS_NOT_COMPARABLE}
    within = table.filter(mode="run_to_run", kind="profile")
    assert within["valid"].all()


def test_many_listeners_who_each_miss_some_words_have_a_mean(config):
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((30, N))
    listeners = []
    for i in range(12):
        kept = np.sort(rng.choice(30, 24, replace=False))
        whole = brain(str(i), "a", "1", seed=i)
        noisy = shared[kept] + 0.1 * rng.standard_normal((24, N))
        listeners.append(replace(whole, onset_s=whole.onset_s[kept], first_word=kept, responses=noisy))
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=listeners)
    rows = table.filter(mode="subject_to_subject", kind="response_to_mean")
    assert rows["valid"].all()
    assert rows["reliability"].min() > 0.9


def test_leave_one_out_correlates_with_the_mean_of_the_others(config):
    brains = [brain(str(i), "a", "1", seed=i) for i in range(4)]
    table = ceiling.measure_ceilings(config=config, dataset="d", brains=brains)
    row = get(table, subject="0", mode="subject_to_subject", kind="response_to_mean")
    others = np.mean([zscore(other.responses, axis=0) for other in brains[1:]], axis=0)
    expected = np.median([pearsonr(brains[0].responses[:, u], others[:, u]).statistic for u in range(N)])
    assert row["reliability"] == pytest.approx(expected)
    assert (row["n_partners"], row["n_units_shared"]) == (3, N)
    assert row["reliability_spearman_brown"] is None
    pair = ceiling.measure_ceilings(config=config, dataset="d", brains=brains[:2])
    row = get(pair, subject="0", mode="subject_to_subject", kind="response_to_mean")
    assert row["reason"] == Reason.SINGLE_PARTNER


def test_normalising_takes_the_strictest_valid_mode():
    recording = {"dataset": "d", "subject": "1", "session": "a", "run": "1"}
    ceilings = pl.DataFrame(
        [
            {
                **recording,
                "mode": mode,
                "kind": "profile",
                "alignment": "cka",
                "profile": "cosine",
                "valid": valid,
                "reliability": r,
                "alone": False,
                "reason": "ok",
            }
            for mode, valid, r in (
                ("split_half", True, 0.9),
                ("run_to_run", True, 0.5),
                ("subject_to_subject", False, None),
            )
        ]
    )
    deltas = pl.DataFrame(
        [
            {
                **recording,
                "model": "m",
                "layer": 1,
                "unit": "u",
                "alignment": "cka",
                "profile": "cosine",
                "real_similarity": 0.4,
                "delta_rel": -0.1,
                "confirmatory": True,
                "reason": "ok",
            }
        ]
    )
    row = ceiling.normalize_relational(ceilings, deltas).row(0, named=True)
    assert row["mode"] == "run_to_run"
    assert row["fraction_of_ceiling"] == pytest.approx(0.8)
    assert row["delta_fraction"] == pytest.approx(-0.2)
    negative = ceilings.with_columns(reliability=-pl.col("reliability"))
    row = ceiling.normalize_relational(negative, deltas).row(0, named=True)
    assert row["reason"] == Reason.NONPOSITIVE_RELIABILITY
    assert row["fraction_of_ceiling"] is None
    row = ceiling.normalize_relational(ceilings.filter(mode="subject_to_subject"), deltas).row(0, named=True)
    assert row["reason"] == Reason.NO_VALID_CEILING
    assert row["mode"] is None
