from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform

import pytest
from store_examples import EVERY_TYPE, provenance, row

from lpact.errors import RunError
from lpact.store import (
    InputFile,
    build_manifest,
    code_digest,
    differences,
    frame,
    read_manifest,
    sha256_file,
    write_manifest,
    write_table,
)
from lpact.validation import json_digest


@pytest.fixture
def run(tmp_path):
    write_table(frame(EVERY_TYPE, [row()]), EVERY_TYPE, tmp_path)
    write_manifest(tmp_path, build_manifest(tmp_path, provenance()))
    return tmp_path


def test_the_manifest_says_what_the_run_was_made_from(run) -> None:
    values = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    config = {"name": "tiny", "seed": 3, "alphas": [1.0, 10.0]}
    assert values.pop("lpact_version")
    assert values.pop("lpact_code") == code_digest()
    assert values == {
        "format_version": 4,
        "study": "tiny",
        "seed": 3,
        "config": config,
        "config_digest": json_digest(config),
        "plugins": [],
        "plugin_code": {},
        "versions": {
            "python": platform.python_version(),
            **{p: importlib.metadata.version(p) for p in ("numpy", "scipy", "polars", "pyarrow")},
        },
        "inputs": [{"dataset": "d", "path": "x.npy", "n_bytes": 4, "sha256": "00" * 32}],
        "outputs": [
            {
                "path": f"audits/every_type.{suffix}",
                "n_bytes": (run / f"audits/every_type.{suffix}").stat().st_size,
                "sha256": hashlib.sha256((run / f"audits/every_type.{suffix}").read_bytes()).hexdigest(),
            }
            for suffix in ("csv", "parquet")
        ],
    }


def test_the_text_is_canonical(run) -> None:
    text = (run / "manifest.json").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def test_the_bytes_depend_on_neither_place_nor_order(tmp_path) -> None:
    files = tuple(InputFile(dataset=d, path=p, n_bytes=1, sha256="ab") for d, p in (("e", "a"), ("d", "z")))
    contents = []
    for name, inputs, config in (
        ("one", files, {"a": 1, "b": {"c": 2.5, "d": "é"}}),
        ("two", files[::-1], {"b": {"d": "é", "c": 2.5}, "a": 1}),
    ):
        root = tmp_path / name
        write_table(frame(EVERY_TYPE, [row()]), EVERY_TYPE, root)
        manifest = build_manifest(root, provenance(inputs=inputs, config=config))
        contents.append(write_manifest(root, manifest).read_bytes())
    assert contents[0] == contents[1]


def test_round_trip(run) -> None:
    assert read_manifest(run) == build_manifest(run, provenance())


def test_a_version_from_a_source_tree_is_said_to_be_one(run, monkeypatch) -> None:
    def version(name: str) -> str:
        if name == "lpact":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert build_manifest(run, provenance()).lpact_version == "not installed"


def test_a_folder_without_manifest_is_no_run(tmp_path) -> None:
    with pytest.raises(RunError, match="not a finished run") as caught:
        read_manifest(tmp_path)
    assert caught.value.where == str(tmp_path)
    assert caught.value.remedy


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b"\xff\xfe", b'{"format_version": 4}'])
def test_a_damaged_manifest_is_refused(run, content) -> None:
    (run / "manifest.json").write_bytes(content)
    with pytest.raises(RunError, match="the manifest is damaged"):
        read_manifest(run)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": "3"},
        {"extra": 1},
        {"outputs": [{"path": "x"}]},
        {"config": {"name": "tiny", "seed": 4}},
    ],
)
def test_an_edited_manifest_is_refused(run, changes) -> None:
    path = run / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(RunError, match="the manifest is damaged"):
        read_manifest(run)


def test_another_format_version_is_refused(run) -> None:
    path = run / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 1}))
    with pytest.raises(RunError, match="another version of lpact") as caught:
        read_manifest(run)
    assert caught.value.got == "format version 1"


def test_the_report_is_not_a_table(run) -> None:
    (run / "report").mkdir()
    (run / "report" / "figure.csv").write_text("a\n")
    assert all(not f.path.startswith("report") for f in build_manifest(run, provenance()).outputs)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), {1, 2}, object()])
def test_a_configuration_that_is_not_json_is_refused_at_once(value) -> None:
    with pytest.raises(RunError, match="cannot be written as JSON"):
        provenance(config={"alpha": value})


def test_the_checksum_is_sha256_of_the_whole_file(tmp_path) -> None:
    content = bytes(range(256)) * 20_000
    (tmp_path / "big").write_bytes(content)
    assert sha256_file(tmp_path / "big") == hashlib.sha256(content).hexdigest()
    with pytest.raises(RunError, match="cannot be read"):
        sha256_file(tmp_path / "absent")


def test_whatever_changed_since_a_run_was_made_is_named(run) -> None:
    manifest = read_manifest(run)
    assert differences(manifest, provenance()) == []
    moved = InputFile(dataset="d", path="x.npy", n_bytes=4, sha256="11" * 32)
    assert differences(manifest, provenance(inputs=(moved,))) == ["input file 'x.npy' of dataset 'd'"]
    assert len(differences(manifest, provenance(inputs=()))) == 1
    assert "configuration" in differences(manifest, provenance(config={"seed": 4}))[0]
    older = manifest.model_copy(update={"lpact_code": "0" * 16})
    assert "lpact's code" in differences(older, provenance())[0]


def test_the_code_of_plugins_is_kept_and_compared(run) -> None:
    code = {"control mine": "ab" * 32, "measure mine": "cd" * 32}
    write_manifest(run, build_manifest(run, provenance(plugin_code=code)))
    manifest = read_manifest(run)
    assert manifest.plugin_code == code
    assert differences(manifest, provenance(plugin_code=code)) == []
    other = {"control mine": "ef" * 32, "profile new": "cd" * 32}
    assert differences(manifest, provenance(plugin_code=other)) == [
        f"code of the plugin 'control mine': {'ab' * 8} then, {'ef' * 8} now",
        f"code of the plugin 'measure mine': {'cd' * 8} then, unknown now",
        f"code of the plugin 'profile new': unknown then, {'cd' * 8} now",
    ]


def test_a_folder_that_is_not_there_is_said_so(tmp_path) -> None:
    with pytest.raises(RunError) as missing:
        read_manifest(tmp_path / "gone")
    assert missing.value.got == "no such folder"
    with pytest.raises(RunError) as empty:
        read_manifest(tmp_path)
    assert empty.value.got == "no manifest.json"
