"""``lpact power`` before and after a run: verdicts, tables and errors."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from power_studies import SMALL, small_settings, small_study
from typer.testing import CliRunner

from lpact.analyses.lpact.calibration.power import (
    SIMULATED,
    Question,
    Settings,
    assess_power,
    layer_rows,
    run_ceilings,
    run_claims,
    spread_rows,
)
from lpact.analyses.lpact.calibration.power_design import Ceiling
from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.tables.calibration import (
    LAYER_DETECTABILITY,
    MINIMUM_DETECTABLE_EFFECT,
    STUDY_DESIGN,
)
from lpact.cli import app
from lpact.codes import Reason
from lpact.errors import ConfigError
from lpact.run.progress import Reporter
from lpact.run.starter import toml_value
from lpact.store import frame, read_table
from lpact.study import Run, load_study

RUNNER = CliRunner()
MODELS = ("integrated", "drift")


def power(*args: object):
    result = RUNNER.invoke(app, ["power", *(str(arg) for arg in args)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def study_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("study") / "small.toml", snr=2.0, models=MODELS)


def write_study(path: Path, **settings: object) -> Path:
    """A study file from settings."""
    lines = [f"{key} = {toml_value(value)}" for key, value in small_settings(**settings).items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run_folder(study_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "small"
    return load_study(study_file).run(out, progress=False).root


def test_the_verdict_comes_first_and_the_design_last(study_file):
    result = power(study_file, "--quick", "--no-progress")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("small: sim, calibrated: The smallest effect that passes the gate")
    assert lines[1].startswith("small: sim, paper: ")
    assert "80% power" in lines[0]
    assert "(closed form)" in lines[0]
    assert result.stdout.index("Smallest effects") < result.stdout.index("\nDesign\n")
    assert "studies of this design are simulated" in lines[-1]


def test_json_holds_the_tables(study_file, tmp_path):
    out = tmp_path / "power"
    result = power(study_file, "--quick", "--no-progress", "--json", "--out", out)
    answer = json.loads(result.stdout)
    assert answer["study"] == "small"
    assert answer["target_power"] == 0.8
    assert {row["model"] for row in answer["study_design"]} == set(MODELS)
    effects = read_table(out, MINIMUM_DETECTABLE_EFFECT)
    assert effects.to_dicts() == answer["minimum_detectable_effect"]
    assert (out / f"{STUDY_DESIGN.name}.csv").is_file()
    assert read_table(out, LAYER_DETECTABILITY).is_empty()
    again = power(study_file, "--quick", "--out", out)
    assert again.exit_code == 2
    assert "it is not empty" in again.stderr


def test_more_power_needs_a_larger_effect(study_file):
    deltas = {}
    for target in (0.5, 0.8, 0.95):
        result = power(study_file, "--quick", "--no-progress", "--json", "--target", target)
        rows = json.loads(result.stdout)["minimum_detectable_effect"]
        deltas[target] = next(r["delta"] for r in rows if r["gate_profile"] == "calibrated")
    assert deltas[0.5] < deltas[0.8] < deltas[0.95]


def test_after_a_run_every_layer_has_its_verdict(study_file, run_folder):
    result = power(study_file, "--quick", "--no-progress", "--run", run_folder)
    assert result.exit_code == 0, result.output
    assert "sim/integrated/2, paper: Found: the gate predictive passes." in result.stdout
    (failed,) = [x for x in result.stdout.splitlines() if x.startswith("  sim/drift/2, paper: ")]
    assert "Could have found it and did not: a contrast of " in failed
    assert "is found in 80% of such studies; observed -" in failed


def test_a_run_alone_is_enough(study_file, run_folder):
    alone = json.loads(power(run_folder, "--quick", "--no-progress", "--json").stdout)
    both = power(study_file, "--quick", "--no-progress", "--json", "--run", run_folder)
    assert alone == json.loads(both.stdout)


def test_tables_of_a_run_say_what_its_sources_are_not_needed_for(run_folder):
    run = Run(run_folder)
    report = assess_power(LPactConfig.of(run.config), None, Settings(), run=run)
    assert report.tables[STUDY_DESIGN.name].is_empty()
    effects = report.tables[MINIMUM_DETECTABLE_EFFECT.name]
    assert set(effects["method"]) == {"observed_spread"}
    layers = report.tables[LAYER_DETECTABILITY.name]
    observed = run.table("predictive/predictive_control_deltas").filter(metric="pearson", model="drift")
    row = layers.filter(model="drift", gate_profile="paper").row(0, named=True)
    assert row["score"] == pytest.approx(observed["real_score"].mean())
    means = [observed[c].mean() for c in ("delta_nuisance", "delta_control")]
    assert row["delta"] == pytest.approx(min(means))
    assert row["detectable_score"] == pytest.approx(row["score"] - row["delta"] + row["detectable_delta"])


def test_an_effect_above_the_ceiling_could_not_have_been_found(run_folder):
    """The same run under a low and a high ceiling: only the ceiling differs."""
    run = Run(run_folder)
    verdicts = {}
    for limit in (0.01, 0.99):
        ceilings = {"sim": Ceiling("run_to_run", limit)}
        effects = spread_rows(run, "pearson", Question(LPactConfig.of(run.config).gates, 0.8), ceilings)
        made = frame(LAYER_DETECTABILITY, layer_rows(run, "pearson", effects, 0.8))
        layers = made.filter(gate_profile="paper")
        verdicts[limit] = dict(layers.select("model", "verdict").iter_rows())
        sentences = dict(layers.select("model", "sentence").iter_rows())
        told = "no score above 0.010 can be expected" in sentences["drift"]
        assert told == (limit == 0.01)
    # What was found stays found.
    assert verdicts[0.01] == {"integrated": "found", "drift": "could_not_have_found"}
    assert verdicts[0.99] == {"integrated": "found", "drift": "could_have_found"}
    assert run_ceilings(run)["sim"] is not None


def verdict_of(run_folder, *, model="integrated", limit=None, **changes):
    """Verdict on a layer at the gate `integrated`, which no layer of this run passes with two draws."""
    run = Run(run_folder)
    ceiling = None if limit is None else Ceiling("run_to_run", limit)
    place = ("sim", "calibrated", "integrated", SIMULATED, ceiling)
    needed = Question(GatesConfig(), 0.8).row(*place, **{"reason": Reason.OK, **changes})
    (row,) = (r for r in layer_rows(run, "pearson", [needed], 0.8) if r["model"] == model)
    assert row["gate"] == "integrated"
    return row


NEVER = {"reason": Reason.NEVER_DETECTED}
NEEDS = {"score": 0.4, "delta": 0.4, "score_low": 0.3}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        (NEEDS | {"limit": 0.5}, "could_have_found"),
        (NEEDS | {"limit": 0.5, "simulated_size": "smaller"}, "could_have_found"),
        (NEEDS | {"limit": 0.5, "simulated_size": "larger"}, "not_known"),
        (NEEDS | {"limit": 0.2}, "could_not_have_found"),
        (NEEDS | {"limit": 0.35}, "not_known"),  # within the interval of the needed score
        (NEEDS | {"limit": 0.2, "simulated_size": "smaller"}, "not_known"),
        (NEEDS | {"limit": 0.2, "simulated_size": "larger"}, "could_not_have_found"),
        (NEVER, "could_not_have_found"),
        (NEVER | {"simulated_size": "smaller"}, "not_known"),
        (NEVER | {"simulated_size": "mixed"}, "not_known"),
        (NEVER | {"enough_trials": False}, "not_known"),
        ({"reason": Reason.ALWAYS_DETECTED}, "could_have_found"),
        ({"reason": Reason.ALWAYS_DETECTED, "simulated_size": "larger"}, "not_known"),
    ],
)
def test_gates_beyond_level_1_are_judged_by_simulated_studies(run_folder, changes, verdict):
    row = verdict_of(run_folder, **changes)
    assert row["verdict"] == verdict
    starts = {"not_known": "Not known: ", "could_not_have_found": "Could not have found it: "}
    assert row["sentence"].startswith(starts.get(verdict, "Could have found it and did not: "))


def test_the_observed_score_is_shown_and_does_not_enter_the_verdict(run_folder):
    """One model scores well above and one well below what is needed: the design is the same."""
    rows = [verdict_of(run_folder, model=model, **NEEDS, limit=0.9) for model in MODELS]
    high, low = (row["score"] for row in rows)
    assert low < 0.4 < high
    assert [row["verdict"] for row in rows] == ["could_have_found"] * 2
    assert all(f"observed {row['score']:.3f}" in row["sentence"] for row in rows)


def test_claims_of_a_run_are_counted_where_they_are_confirmatory(run_folder):
    """Two models, one layer each, two mechanisms."""
    assert run_claims(Run(run_folder)) == 4


def test_a_run_of_another_study_is_refused(run_folder, tmp_path):
    other = write_study(tmp_path / "other.toml", models=("integrated",))
    result = power(other, "--quick", "--no-progress", "--run", run_folder)
    assert result.exit_code == 2
    assert "the run belongs to another study" in result.stderr
    assert "models: drift, integrated" in result.stderr
    named = write_study(tmp_path / "named.toml", models=MODELS, name="renamed")
    assert power(named, "--quick", "--no-progress", "--run", run_folder).exit_code == 2


@pytest.mark.parametrize("target", [0.0, 1.0, -2.0, 1.5])
def test_a_target_that_is_no_power_is_refused(study_file, target):
    result = power(study_file, "--quick", "--target", target)
    assert result.exit_code == 2
    assert "the target power is not between 0 and 1" in result.stderr
    with pytest.raises(ConfigError):
        Settings(target=target)


def test_a_study_with_nothing_usable_is_refused(tmp_path):
    nothing = write_study(tmp_path / "nothing.toml", n_stories=1, sentences_per_story=4)
    result = power(nothing, "--quick", "--no-progress")
    assert result.exit_code == 2
    assert "power cannot be estimated for any dataset" in result.stderr


def test_one_draw_can_never_be_significant():
    """With one draw of each surrogate the calibrated profile detects nothing; with two it does."""
    for draws, reason in ((1, "too_few_draws"), (2, "ok")):
        study = small_study(draws=draws)
        report = assess_power(LPactConfig.of(study.config), study.run_config, Settings(quick=True))
        rows = report.tables[MINIMUM_DETECTABLE_EFFECT.name]
        assert rows.filter(gate_profile="calibrated")["reason"].to_list() == [reason]
        assert rows.filter(gate_profile="paper")["reason"].to_list() == ["ok"]


def test_an_interrupted_simulation_goes_on_where_it_stopped(tmp_path):
    """Two studies: Ctrl-C after the first leaves it in the folder, and the next call adds the other."""

    class Interrupting(Reporter):
        def __init__(self) -> None:
            self.steps: list[int] = []

        def stage(self, name: str, total: int) -> None:
            self.steps = []
            self.simulating = name.startswith("simulated")

        def advance(self, steps: int = 1) -> None:
            self.steps.append(steps)
            if self.simulating and self.steps == [0, 1]:
                raise KeyboardInterrupt

    study = small_study()
    settings = Settings(trials=1, ratios=(0.1, 1.6), effort=SMALL, kept=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        assess_power(LPactConfig.of(study.config), study.run_config, settings, reporter=Interrupting())
    told, forecasts = Interrupting(), []
    report = assess_power(
        LPactConfig.of(study.config),
        study.run_config,
        settings,
        reporter=told,
        show_forecast=forecasts.append,
    )
    # The first of those that are left is timed; none is left after it.
    assert told.steps == [2]
    assert [(f.name, f.n_left) for f in forecasts] == [("simulated studies of sim", 0)]
    assert forecasts[0].seconds_each > 0
    rows = report.tables[MINIMUM_DETECTABLE_EFFECT.name]
    simulated = rows.filter(method="simulated")
    assert set(simulated["gate_profile"]) == {"paper", "calibrated"}
    assert simulated["n_trials"].unique().to_list() == [2]
    assert rows.filter(pl.col("method") == "closed_form").height == 2
    assert list(report.caps) == ["sim"]
    # One model, one layer, two mechanisms.
    assert (report.n_claims, report.largest_p) == (2, 0.025)
    integrated = simulated.filter(gate_profile="calibrated", gate="integrated")
    assert integrated["alpha"].to_list() == [0.025]
