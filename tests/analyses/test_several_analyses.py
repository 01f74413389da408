"""Several analyses in one session: names, tables, stages and claims never mix, and a broken one stops no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import lpact
from lpact.analyses.base import Frames
from lpact.cli import app
from lpact.config import StudyConfig
from lpact.errors import ConfigError, RegistryError, RunError, TableError
from lpact.registry import ANALYSES, Entry, PluginOptions
from lpact.store.code import SHARED
from lpact.tables import Column, Table, declared_tables, find_table
from toy_analysis import Toy, toy_registered

PACKAGE = Path(lpact.__file__).parent
STUDY = {
    "name": "two",
    "datasets": [
        {"name": "sim", "reader": "simulated", "options": {"n_subjects": 1, "n_units": 8}},
        {"name": "other", "reader": "simulated", "options": {"n_subjects": 1, "n_units": 8}},
    ],
    "toy": {},
}


@pytest.fixture
def toy():
    with toy_registered():
        yield


def test_a_table_of_the_study_file_is_no_name_for_an_analysis() -> None:
    class Readout(Toy):
        name = "readout"

    with pytest.raises(RegistryError, match="cannot be the name"):
        ANALYSES.register(Readout)


def test_an_analysis_that_is_registered_later_is_found_with_its_tables(toy: None) -> None:
    assert find_table("toy/name_lengths").name in declared_tables()
    assert find_table("name_lengths").name == "toy/name_lengths"


def test_a_broken_analysis_that_nobody_asked_for_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> None:
        raise ImportError("no such module")

    entry = Entry("aaa_broken", "elsewhere 1.0", "there", broken)
    monkeypatch.setitem(ANALYSES._entries, "aaa_broken", entry)
    assert find_table("predictive_scores").name == "predictive/predictive_scores"
    assert lpact.Study("x", [lpact.Dataset(name="d", reader="simulated")],
                       [lpact.Model(name="integrated", layers=(2,))], analyses=[lpact.LPact()])  # fmt: skip
    with pytest.raises(RegistryError, match="aaa_broken"):
        ANALYSES.entries()


def test_a_short_name_of_two_tables_must_name_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    column = (Column("dataset", "str", "Dataset."),)

    class Twin(Toy):
        name = "twin"
        tables = (Table("twin/predictive_scores", "A twin.", ("dataset",), column),)

    monkeypatch.setitem(ANALYSES._entries, "twin", Entry("twin", "here", "", lambda: Twin, Twin))
    with pytest.raises(TableError, match="fits several tables"):
        find_table("predictive_scores")


def test_two_sections_of_one_analysis_are_an_error(toy: None) -> None:
    datasets = [lpact.Dataset(name="d", reader="simulated")]
    with pytest.raises(ConfigError, match="two sections"):
        lpact.Study("x", datasets, analyses=[lpact.LPact(), lpact.LPact()])

    class Foreign(PluginOptions):
        pass

    with pytest.raises(ConfigError, match="does not belong to any analysis"):
        lpact.Study("x", datasets, analyses=[Foreign()])


def test_one_section_needs_no_list() -> None:
    dataset = lpact.Dataset(name="d", reader="simulated", path="folder")
    model = lpact.Model(name="integrated", layers=(2,))
    one = lpact.Study("x", dataset, model, analyses=lpact.LPact(), seed=3, readout=lpact.Readout())
    several = lpact.Study("x", [dataset], [model], analyses=[lpact.LPact()], seed=3)
    assert one.config == several.config
    assert one.config.seed == 3
    assert one.run_config == several.run_config


def test_claims_of_every_analysis_are_found(toy: None, tmp_path: Path) -> None:
    run = lpact.load_study(STUDY).run(tmp_path / "run", progress=False)
    assert run.claim("other").label == "long_name"
    assert run.claim(["sim"]).label == "short_name"
    with pytest.raises(RunError, match="did you mean 'other'"):
        run.claim("othr")
    assert run.decide()["toy/name_lengths"].sort("dataset").equals(run.table("toy/name_lengths"))


def test_an_undeclared_label_is_refused_and_nothing_is_published(tmp_path: Path) -> None:
    class Typo(Toy):
        def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
            made = super().decide(study, tables)
            labels = pl.col("label").replace("long_name", "lonng_name")
            return {name: table.with_columns(labels) for name, table in made.items()}

    with toy_registered(Typo), pytest.raises(TableError, match="does not declare") as caught:
        lpact.load_study(STUDY).run(tmp_path / "run", progress=False)
    assert "'toy'" in caught.value.what
    assert caught.value.got == "lonng_name"
    assert caught.value.expected == "one of long_name, short_name"
    assert not (tmp_path / "run").exists()


def test_commands_of_an_analysis_that_nobody_asked_say_so(toy: None, tmp_path: Path) -> None:
    study, run = tmp_path / "toy.toml", tmp_path / "run"
    study.write_text('name = "two"\ndatasets = [{name = "sim", reader = "simulated"}]\n[toy]\n')
    lpact.load_study(STUDY).run(run, progress=False)
    for error, *command in (
        ("no analysis 'lpact'", "power", study, "--quick"),
        ("no analysis 'lpact'", "assay", study),
        ("no statement depends on", "claims", run),
        ("no statement depends on", "claims", "check", "paper.md", "--run", run),
        ("no statement depends on", "claims", run, "--analysis", "toy"),
        ("'lpact'", "claims", run, "--analysis", "lpact"),
    ):
        result = CliRunner().invoke(app, [str(part) for part in command])
        assert result.exit_code == 2, command
        assert error in result.stderr


def test_a_run_of_an_analysis_that_is_gone_says_what_to_install(tmp_path: Path) -> None:
    with toy_registered():
        lpact.load_study(STUDY).run(tmp_path / "run", progress=False)
    with pytest.raises(RunError, match="not installed"):
        lpact.open_run(tmp_path / "run").tables()


def test_everything_that_keys_share_exists() -> None:
    assert [part for part in SHARED if not (PACKAGE / part).exists()] == []
