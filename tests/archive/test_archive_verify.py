"""Every kind of tampering is found, and named."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tampering import (
    edit_manifest,
    edit_parquet,
    edit_table,
    rehash_lock,
    rehash_manifest,
    writable_copy,
)

from lpact.archive import Problem, Verification, lock_run, read_lock, verify_run
from lpact.archive.lock import lock_bytes, make_lock
from lpact.archive.problems import MOST_CELLS, frame_problems
from lpact.errors import ConfigError, RunError
from lpact.store import read_table
from lpact.tables import Column, Table, find_table

if TYPE_CHECKING:
    from lpact.study import Run

Copy = Callable[[], Path]
DECISIONS = "decisions/lpact_decision_table"
INDEX = "relational/brain_unit_index"
SCORES = "predictive/predictive_scores"
FILES = (
    "manifest.json",
    "lock.json",
    "log.jsonl",
    f"{DECISIONS}.parquet",
    f"{DECISIONS}.csv",
)


def verify(root: Path, **more: Any) -> Verification:
    return verify_run(root, report=False, **more)


def texts(found: Verification) -> str:
    return "\n".join(problem.text for problem in found.problems)


def named(found: Verification, kind: str) -> list[Problem]:
    return [problem for problem in found.problems if problem.kind == kind]


def test_an_untouched_run_is_right(locked: Path) -> None:
    found = verify_run(locked, digest=read_lock(locked).root_digest)
    assert found.problems == ()
    assert found.ok
    assert found.locked
    assert any("lpact was decided again from the stored tables" in text for text in found.checked)
    assert "The run has no report." in found.checked


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found_in_every_kind_of_file(name: str, copy: Copy) -> None:
    root = copy()
    content = bytearray((root / name).read_bytes())
    content[len(content) // 2] ^= 1
    (root / name).write_bytes(content)
    found = verify(root)
    assert name in {problem.where for problem in found.problems}, texts(found)


def test_a_random_byte_in_random_files_is_always_found(copy: Copy) -> None:
    """One copy; the byte is restored after each verification."""
    root = copy()
    assert verify(root).ok
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    chance = random.Random(8)
    for path in chance.sample(files, 4):
        before = path.read_bytes()
        content = bytearray(before)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        name = path.relative_to(root).as_posix()
        assert name in {problem.where for problem in verify(root).problems}, name
        path.write_bytes(before)
    assert verify(root).ok


@pytest.mark.parametrize("offset", [3, -1])
def test_no_byte_of_the_lock_can_change(offset: int, copy: Copy) -> None:
    """Also spaces, which JSON ignores, and the day, which the root digest does not cover."""
    root = copy()
    path = root / "lock.json"
    content = path.read_bytes()
    day = content.index(read_lock(root).locked_on.encode())
    for place in (offset % len(content), day + 3):
        changed = bytearray(content)
        changed[place] = ord("\t") if chr(changed[place]).isspace() else changed[place] ^ 1
        path.write_bytes(changed)
        found = verify(root)
        assert "lock.json" in {problem.where for problem in named(found, "lock")}, place


def _one_more(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame, frame.tail(1).with_columns(model=pl.lit("[red]zz\n"))])


def _other_label(frame: pl.DataFrame) -> pl.DataFrame:
    first = pl.int_range(pl.len()) == 0
    return frame.with_columns(label=pl.when(first).then(pl.lit("integrated_candidate")).otherwise("label"))


def test_a_change_of_one_file_is_named_with_its_line(copy: Copy) -> None:
    root = copy()
    edit_parquet(root, DECISIONS, _other_label)
    (problem,) = named(verify(root), "table")
    assert problem.where == f"{DECISIONS}.parquet"
    assert "instead of" in problem.what
    assert "integrated_candidate" in problem.what


def test_a_cell_changed_in_csv_is_named_with_its_line(copy: Copy) -> None:
    root = copy()
    path = root / f"{INDEX}.csv"
    region = read_table(root, find_table(INDEX))["region"][2]
    lines = path.read_text().splitlines(keepends=True)
    assert region in lines[3]
    lines[3] = lines[3].replace(region, "elsewhere", 1)
    path.write_text("".join(lines))
    (problem,) = named(verify(root), "table")
    assert problem.where == f"{INDEX}.csv"
    assert "line 4 reads" in problem.what
    assert "elsewhere" in problem.what


def test_a_row_added_to_both_files_is_found_by_deciding_again(copy: Copy) -> None:
    root = copy()
    edit_table(root, DECISIONS, _one_more)
    found = verify(root)
    assert {p.where for p in named(found, "file")} == {f"{DECISIONS}.parquet", f"{DECISIONS}.csv"}
    added = [p for p in named(found, "decision") if p.what == "the row was added"]
    assert [p.row["model"] for p in added] == ["[red]zz\n"]
    assert "model='[red]zz\\n'" in added[0].text


def test_a_row_added_is_named_though_the_manifest_matches(copy: Copy) -> None:
    root = copy()
    edit_table(root, DECISIONS, _one_more)
    rehash_manifest(root)
    found = texts(verify(root))
    assert f"{DECISIONS}.parquet: has changed" in found
    assert "manifest.json: has changed" in found


def test_only_the_quoted_digest_shows_a_change_that_manifest_and_lock_match(copy: Copy) -> None:
    """A measured number, which nothing stored can give again."""
    root = copy()
    quoted = read_lock(root).root_digest
    edit_table(root, "brain_half_patterns", lambda f: f.filter(pl.col("half") == 0))
    rehash_manifest(root)
    digest = rehash_lock(root)
    assert verify(root).ok, "only the digest differs"
    found = verify(root, digest=quoted)
    assert [problem.kind for problem in found.problems] == ["lock"]
    assert quoted in texts(found)
    assert digest in texts(found)
    assert verify(root, digest=digest.upper()).ok
    with pytest.raises(ConfigError, match="64 hexadecimal digits"):
        verify(root, digest=digest[:12])


def test_an_edited_lock_is_found_by_its_own_digest(copy: Copy) -> None:
    root = copy()
    path = root / "lock.json"
    values = json.loads(path.read_text())
    values["content"]["seed"] += 1
    path.write_text(json.dumps(values, sort_keys=True, indent=1, ensure_ascii=False) + "\n")
    assert "lock.json: was edited: its content has the root digest" in texts(verify(root))


def _lower(values: dict[str, Any]) -> None:
    values["config"]["lpact"]["gates"]["fdr"] = 0.9


def test_an_edited_threshold_is_named_with_its_option(copy: Copy) -> None:
    root = copy()
    before = read_lock(root).content.config["lpact"]["gates"]["fdr"]
    edit_manifest(root, _lower)
    (option,) = named(verify(root), "option")
    assert (option.where, option.old, option.new) == ("lpact.gates.fdr", before, 0.9)
    assert option.text == f"lpact.gates.fdr: {before} → 0.9"


def test_an_edited_threshold_is_named_though_the_manifest_matches_itself(copy: Copy) -> None:
    root = copy()
    edit_manifest(root, _lower)
    rehash_manifest(root)
    assert [p.where for p in named(verify(root), "option")] == ["lpact.gates.fdr"]


def test_an_edited_threshold_shows_in_the_decision_though_all_checksums_match(
    copy: Copy,
) -> None:
    root = copy()

    gates = read_lock(root).content.config["lpact"]["gates"]
    option = next(name for name in gates if isinstance(gates[name], float) and name != "fdr")

    def move(values: dict[str, Any]) -> None:
        values["config"]["lpact"]["gates"][option] = 0.777

    edit_manifest(root, move)
    rehash_manifest(root)
    rehash_lock(root)
    found = verify(root)
    assert not named(found, "file")
    thresholds = [p for p in named(found, "decision") if p.column == "threshold"]
    assert thresholds, texts(found)
    assert {p.old for p in thresholds} == {0.777}


def test_an_edited_input_is_named(copy: Copy) -> None:
    root = copy()
    edit_manifest(root, lambda values: values["inputs"][0].update(sha256="0" * 64))
    first = read_lock(root).content.inputs[0]
    (problem,) = named(verify(root), "input")
    assert problem.where == f"{first.dataset}: {first.path}.sha256"
    assert (problem.old, problem.new) == (first.sha256, "0" * 64)


def _swap_units(frame: pl.DataFrame) -> pl.DataFrame:
    """Two units of the first recording change places."""
    first = frame.row(0, named=True)
    own = pl.all_horizontal(pl.col(name) == first[name] for name in ("dataset", "subject", "session", "run"))
    place = pl.col("unit_index")
    swapped = pl.when(place == 0).then(1).when(place == 1).then(0).otherwise(place)
    return frame.with_columns(unit_index=pl.when(own).then(swapped).otherwise(place))


@pytest.mark.parametrize("fits", [False, True], ids=["plain", "checksums match"])
def test_swapped_units_are_named_with_their_recording(fits: bool, copy: Copy) -> None:
    root = copy()
    first = read_table(root, find_table(INDEX)).row(0, named=True)
    edit_table(root, INDEX, _swap_units)
    if fits:
        rehash_manifest(root)
        rehash_lock(root)
    found = named(verify(root), "consistency")
    assert found
    recording = ", ".join(f"{k}={first[k]!r}" for k in ("dataset", "subject", "session", "run"))
    assert all(recording in problem.what for problem in found)
    assert any("unit_order_hash is" in problem.what for problem in found)


def test_units_swapped_in_pattern_rows_are_named(copy: Copy) -> None:
    """Patterns of two units change places; all checksums match."""
    root = copy()
    name = "relational/brain_alignment_patterns"
    table = find_table(name)
    frame = read_table(root, table)
    first = frame.filter(pl.col("unit_index") < 2).head(2)
    patterns = dict(zip(first["unit"], reversed(first["pattern"].to_list()), strict=True))
    key = [k for k in table.key if k != "unit"]

    def swap(frame: pl.DataFrame) -> pl.DataFrame:
        rows = []
        for row in frame.iter_rows(named=True):
            own = all(row[k] == first[k][0] for k in key) and row["unit"] in patterns
            rows.append(patterns[row["unit"]] if own else row["pattern"])
        return frame.with_columns(pl.Series("pattern", rows, dtype=pl.List(pl.Float64)))

    edit_table(root, name, swap)
    rehash_manifest(root)
    rehash_lock(root)
    found = named(verify(root), "consistency")
    assert len(found) == len(patterns)
    for unit in patterns:
        assert [problem for problem in found if f"unit={unit!r}" in problem.what]
    assert all("a number at the unit itself" in problem.what for problem in found)


def test_a_label_is_found_by_deciding_again_though_all_checksums_match(copy: Copy) -> None:
    root = copy()
    before = read_table(root, find_table(DECISIONS)).row(0, named=True)
    edit_table(root, DECISIONS, _other_label)
    rehash_manifest(root)
    rehash_lock(root)
    (cell,) = verify(root).problems
    assert cell.kind == "decision"
    assert (cell.where, cell.column) == (DECISIONS, "label")
    assert (cell.old, cell.new) == (before["label"], "integrated_candidate")
    assert cell.row["dataset"] == before["dataset"]


@pytest.mark.parametrize("name", ["predictive_scores", "predictive_control_nulls"])
def test_draws_that_the_study_does_not_ask_for_are_named(copy: Copy, name: str) -> None:
    """More draws than `controls.draws`, and everything made to match: a p-value could be as small as one likes."""
    root, column = copy(), "draw" if name == "predictive_scores" else "n_draws"
    edit_table(root, name, lambda f: _with_more_draws(f, column))
    rehash_manifest(root)
    rehash_lock(root)
    found = [p.what for p in named(verify(root), "consistency")]
    assert found
    assert all("more draws than the study asks for" in what for what in found)


def _with_more_draws(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    if column == "n_draws":
        return frame.with_columns(n_draws=pl.col("n_draws") + 5)
    last = frame.filter(condition="circular_shift", draw=frame["draw"].max())
    return pl.concat([frame, last.with_columns(draw=pl.col("draw") + 1)])


def test_a_seed_that_is_not_that_of_the_configuration_is_named(copy: Copy) -> None:
    root = copy()
    edit_manifest(root, lambda values: values.update(seed=12))
    rehash_lock(root)
    assert "seed 12, and 11 in its configuration" in texts(verify(root))


def test_a_run_under_another_name_is_not_locked(copy: Copy) -> None:
    root = copy()
    edit_manifest(root, lambda values: values.update(study="another"))
    (root / "lock.json").unlink()
    with pytest.raises(RunError, match="names the study another"):
        lock_run(root)


def test_a_lock_that_contradicts_its_configuration_is_named(copy: Copy) -> None:
    root = copy()
    lock = read_lock(root)
    content = lock.content.model_copy(update={"seed": 12})
    (root / "lock.json").write_bytes(lock_bytes(make_lock(content, locked_on=lock.locked_on)))
    assert "its study or seed is not that of its configuration" in texts(verify(root))


def test_a_deleted_file_is_named(copy: Copy) -> None:
    root = copy()
    (root / f"{INDEX}.csv").unlink()
    (root / "log.jsonl").unlink()
    missing = {p.where for p in named(verify(root), "file") if p.what == "is missing"}
    assert missing == {f"{INDEX}.csv", "log.jsonl"}


def test_a_table_deleted_in_both_files_is_named(copy: Copy) -> None:
    root = copy()
    (root / f"{DECISIONS}.csv").unlink()
    (root / f"{DECISIONS}.parquet").unlink()
    found = texts(verify(root))
    assert f"{DECISIONS}: cannot be compared: no readable table" in found
    (root / f"{SCORES}.csv").unlink()
    (root / f"{SCORES}.parquet").unlink()
    assert f"cannot be recomputed: no readable table '{SCORES}'" in texts(verify(root))


def test_added_files_and_links_are_named(copy: Copy) -> None:
    root = copy()
    (root / "audits" / "more\x1b[31m.csv").write_text("x")
    (root / "link").symlink_to("/etc/passwd")
    inside = root / f"{DECISIONS}.csv"
    kept = inside.with_suffix(".kept")
    inside.rename(kept)
    inside.symlink_to(kept.name)
    os.mkfifo(root / "pipe")
    found = texts(verify(root))
    assert "audits/more\\x1b[31m.csv: was added" in found
    assert "link: was added: a link to '/etc/passwd'" in found
    assert f"{DECISIONS}.csv: was replaced by a link to" in found
    assert "pipe: was added: not a regular file" in found


def test_a_lock_that_is_gone_or_a_link_is_named(copy: Copy, locked: Path) -> None:
    root = copy()
    (root / "lock.json").unlink()
    found = verify(root, digest=read_lock(locked).root_digest)
    assert not found.locked
    assert "the run has no readable lock" in texts(found)
    (root / "lock.json").symlink_to(locked / "lock.json")
    assert "lock.json is a link" in texts(verify(root))


@pytest.mark.parametrize("content", [b"[]", b'{"format_version": 3}', b"[" * 100_000])
def test_a_lock_that_is_none_is_a_problem(content: bytes, copy: Copy) -> None:
    root = copy()
    (root / "lock.json").write_bytes(content)
    assert "lock.json: the lock is damaged" in texts(verify(root))


@pytest.mark.parametrize("depth", [150, 900, 100_000])
def test_a_manifest_or_lock_that_is_nested_deeply_is_named(depth: int, copy: Copy) -> None:
    for name, path in (("manifest.json", ("config",)), ("lock.json", ("content", "config"))):
        root = copy()
        values = json.loads((root / name).read_text())
        place = values
        for step in path:
            place = place[step]
        place["deep"] = "HERE"
        deep = "[" * depth + "]" * depth
        (root / name).write_text(json.dumps(values).replace('"HERE"', deep))
        assert name in {problem.where for problem in verify(root).problems}


@pytest.mark.parametrize("name", ["lock.json", "manifest.json"])
def test_json_beyond_the_size_limit_is_not_parsed(name: str, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copy()
    (root / name).write_bytes(b" " * 2**22 + (root / name).read_bytes())
    monkeypatch.setattr("lpact.archive.lock.MOST_JSON_BYTES", 2**22)
    assert f"{name}: the file is too large" in texts(verify(root))


def test_a_manifest_of_a_run_that_is_not_locked_is_said_to_be_damaged(copy: Copy) -> None:
    root = copy()
    (root / "lock.json").unlink()
    (root / "manifest.json").write_text('{"format_version":' + "[" * 100_000)
    with pytest.raises(RunError, match="the manifest is damaged"):
        verify(root)


def test_what_is_neither_file_nor_folder_is_not_waited_for(tmp_path: Path, locked: Path) -> None:
    pipe = tmp_path / "pipe.zip"
    os.mkfifo(pipe)
    (tmp_path / "link.zip").symlink_to(pipe)
    for path in (pipe, tmp_path / "link.zip", Path("/dev/zero")):
        with pytest.raises(RunError, match="a run is a folder or an archive"):
            verify(path)
    # The positive twin: a link to a run is followed.
    (tmp_path / "run").symlink_to(locked)
    assert verify(tmp_path / "run").ok


def test_a_lock_that_names_files_elsewhere_reads_none_of_them(copy: Copy) -> None:
    root = copy()
    values = json.loads((root / "lock.json").read_text())
    values["content"]["files"]["../../../etc/passwd"] = {"n_bytes": 1, "sha256": "0"}
    (root / "lock.json").write_text(json.dumps(values))
    assert "../../../etc/passwd: is missing" in texts(verify(root))


def test_a_run_that_is_not_locked_is_compared_with_its_manifest(small_run: Run, tmp_path: Path) -> None:
    root = writable_copy(small_run.root, tmp_path / "run")
    found = verify_run(root)
    assert found.ok
    assert not found.locked
    assert found.digest is None
    assert any("not locked" in note for note in found.notes)
    edit_parquet(root, DECISIONS, _other_label)
    (problem,) = named(verify(root), "table")
    assert "integrated_candidate" in problem.what
    with pytest.raises(RunError, match="not a finished run"):
        verify(tmp_path)


def test_another_code_is_named(copy: Copy) -> None:
    root = copy()
    lock = read_lock(root)
    values = lock.model_dump(mode="json")
    values["content"]["software"]["locked_by_code"] = "feedfeedfeedfeed"
    values["content"]["software"]["distributions"]["numpy"] = "0.1"
    (root / "lock.json").write_text(json.dumps(values))
    notes = " ".join(verify(root).notes)
    assert "feedfeedfeedfeed" in notes
    assert "may be due to that" in notes
    assert "numpy 0.1 (here " in notes


def test_many_changed_cells_are_counted() -> None:
    """A shortened list says how much it leaves out."""
    table = Table("x/t", "A table.", ("key",), (Column("key", "int", "Key."), Column("v", "int", "Value.")))
    n = MOST_CELLS + 5
    old = pl.DataFrame({"key": range(n), "v": [0] * n})
    cells = frame_problems(table, old, old.with_columns(v=pl.lit(1, pl.Int64)), kind="decision")
    assert len(cells) == MOST_CELLS + 1
    assert cells[-1].what == "5 more cells differ"


@pytest.mark.stress
def test_an_edited_sentence_of_the_report_is_named_and_all_else_is_the_same_bytes(
    small_run: Run, small_report: Path, tmp_path: Path
) -> None:
    root = writable_copy(small_run.root, tmp_path / "run")
    writable_copy(small_report, root / "report")
    lock_run(root)
    for path in (root, root / "report", root / "report" / "methods.md"):
        path.chmod(0o755)
    text = (root / "report" / "methods.md").read_text(encoding="utf-8")
    line = next(i for i, own in enumerate(text.splitlines(), start=1) if "fold" in own)
    (root / "report" / "methods.md").write_text(text.replace("fold", "leaf", 1), encoding="utf-8")
    rehash_lock(root)
    found = verify_run(root)
    assert [problem.where for problem in found.problems] == ["report/methods.md"]
    assert f"line {line} reads" in found.problems[0].what
    assert "leaf" in found.problems[0].what
    assert any("The report was recreated" in text for text in found.checked)
