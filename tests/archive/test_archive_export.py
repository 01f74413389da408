"""An archive of a locked run: the same bytes, described as an RO-Crate, and verified without unpacking by hand."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from rocrate.rocrate import ROCrate
from tampering import sha256

from lpact.archive import Exported, export_run, opened_run, read_lock, verify_run
from lpact.errors import ConfigError, RunError
from lpact.store import read_manifest
from lpact.study import open_run

if TYPE_CHECKING:
    from lpact.study import Run

Copy = Callable[[], Path]


@pytest.fixture(scope="module")
def exported(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    out = tmp_path_factory.mktemp("exported") / "small.zip"
    return export_run(locked, out, date="2026-01-31", licence="CC-BY-4.0")


@pytest.fixture(scope="module")
def graph(exported: Exported) -> dict[str, dict[str, Any]]:
    with zipfile.ZipFile(exported.path) as archive:
        document = json.loads(archive.read("ro-crate-metadata.json"))
    assert document["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities: list[dict[str, Any]] = document["@graph"]
    found = {entity["@id"]: entity for entity in entities}
    assert len(found) == len(entities), "every identifier once"
    return found


def test_the_same_run_gives_the_same_bytes(exported: Exported, locked: Path, copy: Copy, tmp_path: Path) -> None:
    again = export_run(locked, tmp_path / "again.zip", date="2026-01-31", licence="CC-BY-4.0")
    elsewhere = export_run(copy(), tmp_path / "b.zip", date="2026-01-31", licence="CC-BY-4.0")
    assert exported.sha256 == again.sha256 == elsewhere.sha256 == sha256(exported.path)
    other = export_run(locked, tmp_path / "other.zip", date="2026-02-01", licence="CC-BY-4.0")
    assert other.sha256 != exported.sha256
    assert other.digest == exported.digest


def test_it_holds_the_files_of_the_run_and_a_description(exported: Exported, locked: Path) -> None:
    with zipfile.ZipFile(exported.path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        content = {name: archive.read(name) for name in names}
    assert names == sorted(names)
    own = {p.relative_to(locked).as_posix() for p in locked.rglob("*") if p.is_file()}
    assert set(names) == own | {"ro-crate-metadata.json"}
    assert all(content[name] == (locked / name).read_bytes() for name in own)


def test_the_archive_verifies(exported: Exported, locked: Path) -> None:
    found = verify_run(exported.path, digest=read_lock(locked).root_digest)
    assert found.ok, found.problems
    assert found.locked


def test_a_run_can_be_read_from_it(exported: Exported, locked: Path) -> None:
    with opened_run(exported.path) as root:
        place = root
        assert open_run(root).claims().equals(open_run(locked).claims())
    assert not place.exists()


def test_a_changed_description_is_found(exported: Exported, locked: Path, copy: Copy) -> None:
    root = copy()
    with zipfile.ZipFile(exported.path) as archive:
        text = archive.read("ro-crate-metadata.json").decode()
    (root / "ro-crate-metadata.json").write_text(text, encoding="utf-8")
    assert verify_run(root, report=False).ok
    (root / "ro-crate-metadata.json").write_text(
        text.replace("lpact, paper: outcome", "lpact, paper: result"), encoding="utf-8"
    )
    (problem,) = verify_run(root, report=False).problems
    assert problem.kind == "crate"
    assert "result" in problem.what
    (root / "ro-crate-metadata.json").write_text("{}")
    assert [p.kind for p in verify_run(root, report=False).problems] == ["crate"]


def test_descriptor_and_root_are_as_the_specification_asks(
    graph: dict[str, dict[str, Any]], exported: Exported
) -> None:
    descriptor, root = graph["ro-crate-metadata.json"], graph["./"]
    assert descriptor["@type"] == "CreativeWork"
    assert descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["@type"] == "Dataset"
    assert root["datePublished"] == "2026-01-31"
    assert root["identifier"] == f"sha256:{exported.digest}"
    assert root["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    assert "small" in root["name"]
    assert "outcome" in root["description"]


def test_every_file_is_an_entity_with_size_format_and_checksum(graph: dict[str, dict[str, Any]], locked: Path) -> None:
    parts = [part["@id"] for part in graph["./"]["hasPart"]]
    files = {p.relative_to(locked).as_posix(): p for p in locked.rglob("*") if p.is_file()}
    assert sorted(unquote(part) for part in parts) == sorted(files)
    for part in parts:
        entity, path = graph[part], files[unquote(part)]
        assert entity["@type"] == "File"
        assert entity["sha256"] == sha256(path)
        assert entity["contentSize"] == str(path.stat().st_size)
        assert "/" in entity["encodingFormat"]


def test_every_reference_resolves(graph: dict[str, dict[str, Any]]) -> None:
    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [value["@id"]]
        return [name for part in value for name in references(part)] if isinstance(value, list) else []

    outside = {"https://w3id.org/ro/crate/1.1"}
    named = {
        name
        for entity in graph.values()
        for key, value in entity.items()
        if not key.startswith("@")
        for name in references(value)
    }
    assert len(named) > 100
    assert named - graph.keys() == outside


def test_the_run_links_sources_software_and_results(graph: dict[str, dict[str, Any]], locked: Path) -> None:
    action, manifest = graph["#run"], read_manifest(locked)
    assert action["@type"] == "CreateAction"
    assert action["result"] == {"@id": "./"}
    software = graph[action["instrument"]["@id"]]
    assert software["@type"] == "SoftwareApplication"
    assert software["version"] == manifest.lpact_version
    sources = [graph[source["@id"]] for source in action["object"]]
    assert [source["sha256"] for source in sources] == [file.sha256 for file in manifest.inputs]
    assert len(sources) > 1
    found = [graph[own["@id"]] for own in graph["./"]["variableMeasured"]]
    outcomes = open_run(locked).conclusion().outcomes
    assert [own["value"] for own in found] == [own.code for own in outcomes]
    assert len(found) == 2
    labels = open_run(locked).claims(profile="paper")["label"]
    (paper,) = (own for own in found if own["@id"] == "#outcome/lpact/paper")
    assert f"{(labels == labels[0]).sum()} {labels[0]}" in paper["description"]
    assert f"{labels.len()} claims" in paper["description"]


def test_the_rocrate_package_reads_it(exported: Exported, graph: dict[str, dict[str, Any]], locked: Path) -> None:
    crate = ROCrate(exported.path)
    assert crate.root_dataset["identifier"] == f"sha256:{exported.digest}"
    assert {entity.id for entity in crate.get_entities()} == graph.keys()
    n_files = sum(path.is_file() for path in locked.rglob("*"))
    parts = crate.root_dataset["hasPart"]
    assert len(parts) == n_files
    assert all(part.type == "File" for part in parts)
    action = crate.dereference("#run")
    assert action["instrument"]["name"] == "lpact"
    assert action["result"].id == "./"


def test_without_licence_none_is_stated_and_the_day_is_that_of_the_lock(locked: Path, tmp_path: Path) -> None:
    made = export_run(locked, tmp_path / "plain.zip")
    assert made.licence is None
    assert made.date == read_lock(locked).locked_on
    with zipfile.ZipFile(made.path) as archive:
        entities = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    (root,) = (entity for entity in entities if entity["@id"] == "./")
    assert "license" not in root
    assert root["datePublished"] == made.date


def test_a_run_that_is_not_locked_is_refused_with_the_remedy(small_run: Run, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="lock it first: lpact lock"):
        export_run(small_run.root, tmp_path / "x.zip")
    assert not list(tmp_path.iterdir())
    with pytest.raises(RunError, match="the folder is not a finished run"):
        export_run(tmp_path, tmp_path / "x.zip")


def test_a_changed_run_and_a_taken_place_are_refused(copy: Copy, tmp_path: Path) -> None:
    root, out = copy(), tmp_path / "out" / "x.zip"
    (root / "log.jsonl").write_text("")
    with pytest.raises(RunError, match=r"log\.jsonl: has changed"):
        export_run(root, out)
    assert not out.parent.exists()
    taken = tmp_path / "taken.zip"
    taken.write_text("mine")
    with pytest.raises(RunError, match="the archive exists already"):
        export_run(root, taken)
    with pytest.raises(RunError, match="the run is locked"):
        export_run(root, root / "x.zip")
    with pytest.raises(ConfigError, match=r"call it study\.zip"):
        export_run(root, tmp_path / "study.tar")
    assert taken.read_text() == "mine"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"date": "yesterday"}, "--date"),
        ({"licence": "javascript://x"}, "--licence"),
        ({"licence": "CC BY"}, "--licence"),
        ({"licence": ""}, "--licence"),
    ],
)
def test_invalid_options_are_refused(more: dict[str, str], named: str, locked: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named):
        export_run(locked, tmp_path / "x.zip", **more)
