"""``lpact init``: the starter file names every option, and runs as it is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field

import lpact as api
from lpact.analyses.lpact.config import LPactSection
from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
from lpact.config import RunTable, Section, SharedConfig, parse_study
from lpact.controls.base import CONTROLS
from lpact.datasets.simulated.options import SimulatedOptions
from lpact.measures import MEASURES
from lpact.registry import ANALYSES, Entry, Registry
from lpact.run.starter import starter_text, toml_value
from tiny_study import Lpact


def uncommented(text: str) -> str:
    """The file with every option switched on: ``#key = value`` lines, not ``# prose``."""
    lines = []
    inside_array = False
    for line in text.split("\n"):
        prose = line.startswith("# ") and not (inside_array and line.startswith("#  "))
        if line.startswith("#") and not prose:
            line = line[1:]
            inside_array = line.endswith("[") or (inside_array and line != "]")
        lines.append(line)
    return "\n".join(lines)


def test_init_writes_a_file_and_says_what_is_next(lpact: Lpact, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    result = lpact("init", path)
    assert result.exit_code == 0
    assert path.read_text(encoding="utf-8") == starter_text()
    assert f"lpact plan {path}" in result.stdout


def test_init_does_not_overwrite_without_force(lpact: Lpact, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text("mine")
    refused = lpact("init", path)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert path.read_text() == "mine"
    assert lpact("init", path, "--force").exit_code == 0
    assert path.read_text(encoding="utf-8") == starter_text()


@pytest.mark.parametrize("place", ["", "missing/study.toml"])
def test_init_where_no_file_can_be_is_an_error(lpact: Lpact, tmp_path: Path, place: str) -> None:
    result = lpact("init", tmp_path / place, "--force")
    assert result.exit_code == 2
    assert "choose another path" in result.stderr


def test_starter_is_a_valid_study_of_two_datasets() -> None:
    study, _ = parse_study(starter_text(), where="starter")
    assert len(study.datasets) == 2
    assert len(study.models) == 2


def test_options_behind_a_number_sign_are_the_defaults() -> None:
    """Switching every option on changes nothing but the plugin options that are then written out."""
    plain, plain_run = parse_study(starter_text(), where="starter")
    full, full_run = parse_study(uncommented(starter_text()), where="starter")
    assert full_run == plain_run
    dumped, expected = full.model_dump(), plain.model_dump()
    registries: tuple[tuple[str, str, Registry[Any]], ...] = (
        ("controls", "controls", CONTROLS),
        ("lpact", "relational", MEASURES),
        ("lpact", "stripping", STRIPPINGS),
    )
    for table, section, registry in registries:
        written = (dumped[table] if table == section else dumped[table][section]).pop("options")
        (expected[table] if table == section else expected[table][section]).pop("options")
        assert written
        for name, chosen in written.items():
            assert registry.build(name, chosen).options == registry.build(name).options
    reader = SimulatedOptions.model_validate
    for one, other in zip(dumped["datasets"], expected["datasets"], strict=True):
        assert reader(one.pop("options")) == reader(other.pop("options"))
    assert dumped == expected


def test_every_option_is_in_the_starter() -> None:
    lines = starter_text().split("\n")
    tables = {line.lstrip("#") for line in lines if line.lstrip("#").startswith("[")}
    models: list[type[BaseModel]] = [SharedConfig, LPactSection, RunTable, SimulatedOptions]
    seen = set()
    while models:
        for name, field in models.pop().model_fields.items():
            seen.add(name)
            inner = [field.annotation, *getattr(field.annotation, "__args__", ())]
            models += [a for a in inner if isinstance(a, type) and issubclass(a, BaseModel)]
            listed = any(re.match(rf"#?{name} = |# {name} is not set", line) for line in lines)
            table = any(re.fullmatch(rf"\[+(\w+\.)*{name}\]+", t) for t in tables)
            assert listed or table, name
    assert {"seed", "folds", "lags_ms", "snr", "direction_fraction", "patience_s"} <= seen


def test_the_starter_asks_the_chosen_questions(lpact: Lpact, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    assert lpact("init", path, "--analysis", "lpact").exit_code == 0
    assert list(api.load_study(path).analyses) == ["lpact"]
    result = lpact("init", tmp_path / "other.toml", "--analysis", "lpac")
    assert result.exit_code == 2
    assert "did you mean 'lpact'?" in result.stderr
    assert not (tmp_path / "other.toml").exists()


def test_options_of_any_analysis_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class Inner(Section):
        """A table inside."""

        depth: int = Field(2, description="How deep.")

    class Options(Section):
        """What it asks."""

        threshold: float = Field(0.5, description="Lowest value.")
        inner: Inner = Field(default_factory=Inner, description="A table inside.")

    class Other(ANALYSES.get("lpact")):  # type: ignore[misc]
        name = "other"
        kinds: ClassVar[dict[str, Any]] = {}
        starter: ClassVar[dict[str, Any]] = {"inner": {"depth": 3}}

    Other.Options = Options
    monkeypatch.setitem(ANALYSES._entries, "other", Entry("other", "this session", "", lambda: Other, Other))
    text = starter_text(["other"])
    values = tomllib.loads(text)
    assert values["other"] == {"inner": {"depth": 3}}
    assert "lpact" not in values
    assert "# What it asks.\n[other]\n# Lowest value.\n#threshold = 0.5\n" in text


@pytest.mark.parametrize(
    "value",
    [True, 3, 0.1, 1e-300, 'a "quoted" \\ text', (1.0, 2.0), tuple("abcdefghij" * 8), {"a": (1,)}],
)
def test_values_survive_toml(value: object) -> None:
    read = tomllib.loads(f"x = {toml_value(value)}")["x"]
    expected = {"a": [1]} if isinstance(value, dict) else value
    assert read == (list(value) if isinstance(value, tuple) else expected)


def test_starter_can_be_planned_as_it_is(lpact: Lpact, tmp_path: Path) -> None:
    """It is run as the README and the how-to run it, by the tests of these pages."""
    path = tmp_path / "study.toml"
    lpact("init", path)
    result = lpact("plan", path)
    assert result.exit_code == 0, result.output
    assert api.load_study(path).plan().n_claims > 0


@pytest.mark.slow
def test_an_analysis_may_bring_a_starter_study_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = starter_text(("deconstruct",))
    assert "simulated_passages" in text
    assert "[controls]" not in text
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    run = api.load_study(path).run(tmp_path / "run", progress=False)
    assert run.claims()["label"].to_list() == ["adds_to_simple_features"]
