"""A run compared with a registration: what is the same counts as followed, and every planted change is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lpact
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    UNIT_INVENTORY,
)
from lpact.errors import ConfigError, RunError
from lpact.report.page import followed
from lpact.run.preregistration.compare import DEPOSITED, check_run, run_items
from lpact.run.preregistration.earlier import Reused, register
from lpact.run.preregistration.record import (
    Content,
    Registration,
    new_registration,
    read_registration,
    write_registration,
)
from lpact.store import Provenance, RunTables, build_manifest, write_manifest, write_table
from lpact.study import Run, Study
from lpact.tables import BEFORE_RESULTS, BEFORE_RUN, DIGEST, PREREGISTRATION_ITEMS
from small_study import SMALL

Plain = dict[str, Any]
UNITS, ROLES, CONTROLS = (table.name for table in (UNIT_INVENTORY, EVIDENCE_FEASIBILITY, CONTROL_AVAILABILITY))


@pytest.fixture(scope="module")
def study() -> Study:
    return lpact.load_study(SMALL)


@pytest.fixture(scope="module")
def registration(study: Study) -> Registration:
    return register(study.config, study.audit())


def changed(registration: Registration, change: Callable[[Plain], object]) -> Registration:
    """What would have been registered had the study been another."""
    plain = registration.registered.model_dump(mode="json")
    change(plain)
    return new_registration(Content.model_validate_json(json.dumps(plain)))


def made_from(run: Run) -> Provenance:
    manifest = run.manifest
    return Provenance(manifest.study, manifest.seed, manifest.config, manifest.inputs, manifest.plugins)


def items(registration: Registration, run: Run, **more: Any) -> pl.DataFrame:
    n_rows = {table.name: run.n_rows(table.name) for table in run.tables()}
    return run_items(registration, made_from(run), RunTables(run), n_rows, **more)


def missed(frame: pl.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    rows = frame.filter(~pl.col("followed"))
    return {(row["item_group"], row["item"]): (row["registered"], row["found"]) for row in rows.iter_rows(named=True)}


def test_a_run_of_the_registered_study_follows_every_item(registration: Registration, small_run: Run) -> None:
    frame = items(registration, small_run)
    assert missed(frame) == {}
    groups = dict(frame.group_by("item_group").len().iter_rows())
    assert groups["rows"] == len(small_run.tables())
    # Three tables of two datasets each.
    assert groups["audit"] == 3 * 2
    assert groups["datasets"] == groups["models"] == 2
    assert groups["seed"] == groups["claims"] == 1
    assert followed(frame).sentence.startswith(f"Preregistered (digest {registration.digest}): ")


def test_claims_and_rows_are_those_of_the_run(registration: Registration, small_run: Run) -> None:
    planned = registration.registered.claims
    judged = small_run.claims().select("dataset", "model", "layer", "mechanism").iter_rows()
    assert planned.keys() == {"lpact"}
    assert set(planned["lpact"]) == {"/".join(map(str, row)) for row in judged}
    for table, own in registration.registered.rows.items():
        found = small_run.table(table).height
        assert found <= own.n_rows if own.at_most else found == own.n_rows, table


def first(values: list[Plain], **wanted: object) -> Plain:
    return next(v for v in values if all(v[name] == value for name, value in wanted.items()))


PLANTED: dict[str, tuple[Callable[[Plain], object], tuple[str, str]]] = {
    "seed": (lambda p: p.update(seed=12), ("seed", "seed")),
    "option": (
        lambda p: p["config"]["readout"].update(folds=4),
        ("configuration", "readout.folds"),
    ),
    "option of a dataset": (
        lambda p: p["config"]["datasets"][0]["options"].update(snr=3.0),
        ("configuration", "datasets[planted].options.snr"),
    ),
    "order of models": (
        lambda p: p["config"]["models"].reverse(),
        ("configuration", "models"),
    ),
    "section that is gone": (
        lambda p: p["config"].update(novel={"x": 1}),
        ("configuration", "novel"),
    ),
    "gate": (
        lambda p: p["config"]["lpact"]["gates"].update(min_ceiling_fraction=0.99),
        ("configuration", "lpact.gates.min_ceiling_fraction"),
    ),
    "file of a dataset": (
        lambda p: p["inputs"][0].update(sha256="0" * 64),
        ("datasets", "empty, file generated:simulated"),
    ),
    "file of a model": (
        lambda p: p["inputs"].append({"dataset": "model drift", "path": "w.bin", "n_bytes": 1, "sha256": "1" * 64}),
        ("models", "drift, file w.bin"),
    ),
    "recording": (
        lambda p: first(p["audit"][UNITS], dataset="empty").update(used=False, reason="empty_run"),
        ("audit", "lpact_dataset_unit_inventory, empty/01/01/01"),
    ),
    "events": (
        lambda p: first(p["audit"][UNITS], dataset="empty").update(n_events=3),
        ("audit", "lpact_dataset_unit_inventory, empty/01/01/01"),
    ),
    "unit order": (
        lambda p: first(p["audit"][UNITS], dataset="empty").update(unit_order_hash="other"),
        ("audit", "lpact_dataset_unit_inventory, empty/01/01/01"),
    ),
    "role": (
        lambda p: first(p["audit"][ROLES], dataset="empty").update(role="primary"),
        ("audit", "lpact_evidence_feasibility, empty"),
    ),
    "draws of a control": (
        lambda p: first(p["audit"][CONTROLS], dataset="planted", model="drift").update(draws=7),
        ("audit", "lpact_control_availability, planted/drift/2/circular_shift"),
    ),
    "claim that was not planned": (
        lambda p: p["claims"]["lpact"].remove("empty/drift/2/surprisal"),
        ("claims", "empty/drift/2/surprisal"),
    ),
    "claim that is not judged": (
        lambda p: p["claims"]["lpact"].append("empty/drift/2/novel"),
        ("claims", "empty/drift/2/novel"),
    ),
    "rows": (
        lambda p: p["rows"]["predictive/predictive_scores"].update(n_rows=1),
        ("rows", "predictive/predictive_scores"),
    ),
    "bound of rows": (
        lambda p: p["rows"]["causal/causal_block_drops"].update(n_rows=1),
        ("rows", "causal/causal_block_drops"),
    ),
    "table that is not written": (
        lambda p: p["rows"].update(novel={"n_rows": 0, "at_most": False}),
        ("rows", "novel"),
    ),
    "table that was not planned": (
        lambda p: p["rows"].pop("predictive/predictive_scores"),
        ("rows", "predictive/predictive_scores"),
    ),
    "version": (lambda p: p.update(lpact_version="9"), ("software", "lpact")),
    "code": (lambda p: p.update(lpact_code="9"), ("software", "lpact's code")),
    "library": (lambda p: p["versions"].update(numpy="0"), ("software", "numpy")),
    "plugin": (lambda p: p["plugins"].append("other 1.0"), ("software", "plugin packages")),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_change_is_the_one_deviation(registration: Registration, small_run: Run, what: str) -> None:
    change, item = PLANTED[what]
    frame = items(changed(registration, change), small_run)
    found = missed(frame)
    assert list(found) == [item]
    then, now = found[item]
    assert then != now
    assert not frame["followed"][0], "deviations come first"


def test_fewer_rows_than_a_bound_are_no_deviation(registration: Registration, small_run: Run) -> None:
    def raise_bounds(plain: Plain) -> None:
        for own in plain["rows"].values():
            own["n_rows"] += 5 if own["at_most"] else 0

    assert missed(items(changed(registration, raise_bounds), small_run)) == {}


def test_an_edited_file_is_named_and_not_followed(registration: Registration, small_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "registered.json"
    text = registration.text()
    path.write_text(text.replace('"seed": 11', '"seed": 12'), encoding="utf-8")
    read = read_registration(path)
    assert not read.intact
    frame = items(read, small_run)
    assert {("registration", DIGEST), ("seed", "seed")} <= missed(frame).keys()
    assert "edited" in followed(frame).sentence
    path.write_text(text, encoding="utf-8")
    assert read_registration(path).intact
    assert "edited" not in followed(items(read_registration(path), small_run)).sentence


def test_an_edited_time_is_named_and_not_followed(registration: Registration, small_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "registered.json"
    values = json.loads(registration.text())
    values["registered_at"] = "2001-01-01T00:00:00Z"
    path.write_text(json.dumps(values), encoding="utf-8")
    read = read_registration(path)
    assert not read.intact
    assert read.digest == read.found_digest
    frame = items(read, small_run)
    assert list(missed(frame)) == [("registration", DIGEST)]
    assert "the time in the file" in frame.filter(item=DIGEST)["detail"].item()
    assert "a time that was edited" in frame.filter(item=BEFORE_RUN)["registered"].item()
    assert "edited" in followed(frame).sentence
    assert "edited" not in str(items(registration, small_run).rows())


def test_a_file_made_anew_is_not_the_deposited_one(registration: Registration, small_run: Run, tmp_path: Path) -> None:
    """An edit with new digests passes for itself; the digest that was deposited finds it."""
    anew = changed(registration, lambda p: p["config"]["readout"].update(folds=4))
    assert anew.intact
    made = with_table(small_run, tmp_path / "made", items(registration, small_run))
    for own, matches in ((registration, True), (anew, False)):
        frame = check_run(own, made, deposited=registration.digest.upper())
        assert (("registration", DEPOSITED) in missed(frame)) is not matches
        assert frame.filter(item=DEPOSITED)["followed"].item() is matches
    assert missed(check_run(registration, made, deposited=registration.digest)) == {}
    with pytest.raises(ConfigError, match="not the digest"):
        check_run(registration, made, deposited=registration.digest[:12])


def test_another_digest_is_refused_before_anything_is_computed(
    study: Study, registration: Registration, tmp_path: Path
) -> None:
    path, anew = tmp_path / "r.json", tmp_path / "anew.json"
    write_registration(registration, path)
    write_registration(changed(registration, lambda p: p.update(seed=12)), anew)
    assert study.registration(path, registration.digest) == registration
    out = tmp_path / "run"
    with pytest.raises(RunError, match="not the one that was deposited"):
        study.run(out, preregistration=anew, registered_digest=registration.digest)
    with pytest.raises(ConfigError, match="not the digest"):
        study.run(out, preregistration=path, registered_digest="abc")
    with pytest.raises(ConfigError, match="without a registration"):
        study.run(out, registered_digest=registration.digest)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["anew.json", "r.json"]


def test_after_the_fact_is_said_ever_after(study: Study, small_run: Run) -> None:
    late = register(study.config, study.audit(), runs=[small_run.root], after_the_fact=True)
    frame = items(late, small_run)
    assert list(missed(frame)) == [("registration", BEFORE_RESULTS)]
    assert followed(frame).sentence.startswith("Registered after results existed")
    detail = frame.filter(item=BEFORE_RESULTS)["detail"].item()
    assert "planted/integrated" in detail


REUSED = Reused(3, "3 under none")


def test_results_not_made_under_it_are_a_deviation(registration: Registration, small_run: Run) -> None:
    frame = items(registration, small_run, reused=REUSED)
    assert list(missed(frame)) == [("registration", BEFORE_RUN)]
    assert "3 result" in frame.filter(item=BEFORE_RUN)["found"].item()
    assert "made before the run is not shown" in followed(frame).sentence


def with_table(run: Run, folder: Path, frame: pl.DataFrame) -> Run:
    """The run as it would be had it been made with the registration."""
    shutil.copytree(run.root, folder)
    write_table(frame, PREREGISTRATION_ITEMS, folder)
    write_manifest(folder, build_manifest(folder, made_from(run)))
    return Run(folder)


def test_a_finished_run_says_itself_what_it_was_made_with(
    registration: Registration, small_run: Run, tmp_path: Path
) -> None:
    assert list(missed(check_run(registration, small_run))) == [("registration", BEFORE_RUN)]
    frame = items(registration, small_run)
    made = with_table(small_run, tmp_path / "made", frame)
    assert check_run(registration, made).equals(frame)
    other = changed(registration, lambda p: p.update(lpact_code="9"))
    assert ("registration", BEFORE_RUN) in missed(check_run(other, made))
    older = items(registration, small_run, reused=REUSED)
    made = with_table(small_run, tmp_path / "older", older)
    assert check_run(registration, made).equals(older)
