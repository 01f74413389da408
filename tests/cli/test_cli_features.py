"""`lpact features`: from a words table and a model to feature sets, at the prompt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import lpact as api
from tiny_study import Lpact

TEXT = (
    "The old keeper opened the door of the lighthouse and looked at the sea. It was calm, and the boats came home. "
    "His daughter read a book about whales, and she laughed at the pictures. Nobody slept that night."
)
PATIENCE_S = 120.0


def write_words(path: Path, text: str = TEXT, *, stories: int = 1, columns: bool = True) -> Path:
    """A words table with sentences; every story has the same words."""
    lines = ["word\tsentence_id\tstory_id" if columns else "word"]
    sentence = 0
    for story in range(stories):
        for word in text.split():
            lines.append(f"{word}\t{sentence}\tpart-{story}" if columns else word)
            sentence += word.endswith(".")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return write_words(tmp_path / "words.tsv")


def sets(out: Path) -> dict[str, dict[str, object]]:
    return {p.parent.name: json.loads(p.read_text()) for p in out.rglob("set.json")}


def test_features_and_a_table(lpact: Lpact, words: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "out", tmp_path / "surprisal.tsv"
    args = ("features", "--model", "lpact-tiny", "--words", words, "--out", out, "--table", table)
    result = lpact(*args, COLUMNS="200")
    assert result.exit_code == 0, result.output
    n_words = len(TEXT.split())
    assert f"{words}: {n_words} words in 1 story" in result.stdout
    assert "lpact-tiny: causal" in result.stdout
    assert "1 feature set to extract" in result.stdout
    assert f"lpact-tiny, full: {n_words}/{n_words}" in result.stderr
    ((name, record),) = sets(out).items()
    assert record["n_done"] == n_words
    assert str(out / "lpact-tiny" / name) in result.stdout.replace("\n", "")
    (found,) = api.extract_features("lpact-tiny", words, out)
    assert f"{found.surprisal().mean():.2f}" in result.stdout
    written = pl.read_csv(table, separator="\t", quote_char=None)
    assert written.columns == ["story_id", "word", "surprisal_bits_full", "entropy_bits_full"]
    assert written["word"].to_list() == TEXT.split()
    np.testing.assert_array_equal(written["surprisal_bits_full"], found.surprisal())
    np.testing.assert_array_equal(written["entropy_bits_full"], found.entropy())


def test_what_is_there_is_said_and_kept(lpact: Lpact, words: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = ("features", "--model", "lpact-tiny", "--words", words, "--out", out)
    assert lpact(*args).exit_code == 0
    files = [p for p in out.rglob("*") if p.is_file() and p.name != "checksums.json"]
    before = {p: p.stat().st_mtime_ns for p in files}  # checksums of a new set are added to the others
    again = lpact(*args)
    assert again.exit_code == 0
    assert "1 feature set of 1 already extracted." in again.stdout
    assert "to extract" not in again.stdout
    assert again.stderr == ""
    more = lpact(*args, "--contexts", "full,static", "--no-progress")
    assert "1 feature set of 2 already extracted." in more.stdout
    assert more.stderr == ""
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert len(sets(out)) == 2


def test_a_plan_computes_nothing(lpact: Lpact, words: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = ("features", "--model", "lpact-tiny", "--words", words, "--out", out)
    result = lpact(*args, "--contexts", "full, reversed", "--plan", COLUMNS="200")
    assert result.exit_code == 0, result.output
    assert "2 feature sets to extract" in result.stdout
    assert "tokens, " in result.stdout
    assert "on disk" in result.stdout
    assert sets(out) == {}


def test_all_contexts(lpact: Lpact, words: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "out", tmp_path / "table.tsv"
    draws = ("--untrained-seeds", 2, "--shuffled-draws", 2)
    result = lpact(
        *("features", "--model", "lpact-tiny", "--words", words, "--out", out, "--name", "mine"),
        *("--contexts", "all", "--table", table, "--no-progress", *draws),
    )
    assert result.exit_code == 0, result.output
    found = sets(out / "mine")
    assert sorted(str(record["about"]["context"]) for record in found.values()) == [  # type: ignore[index]
        "full",
        "reversed",
        "sentence_reset",
        "shuffled",
        "shuffled",
        "static",
        "untrained",
        "untrained",
    ]
    written = pl.read_csv(table, separator="\t")
    n_words = len(TEXT.split())
    assert written.height == n_words
    assert written.width == 2 + 2 * 8
    assert "entropy_bits_untrained_draw_1" in written.columns
    assert written["surprisal_bits_static"].null_count() == n_words
    complete = [c for c in written.columns if "static" not in c]
    assert written.select(complete).null_count().sum_horizontal().item() == 0


def test_a_window_of_words_is_a_context(lpact: Lpact, words: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = ("features", "--model", "lpact-tiny", "--words", words, "--out", out)
    assert lpact(*args, "--contexts", "fixed-3").exit_code == 0
    ((name, _),) = sets(out).items()
    assert name.startswith("fixed-3-")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--pooling", "median"), ("pooling", "median")),
        (("--window", 4), ("window_tokens", "4")),
        (("--window", 16, "--stride", 32), ("stride_tokens", "window_tokens")),
        (("--window", 10_000), ("window_tokens", "10000", "lpact-tiny")),
        (("--min-context", 9999), ("min_context_tokens", "9999")),
        (("--word-context", 1), ("word_context_tokens", "1")),
        (("--untrained-seeds", 0), ("untrained_seeds", "0")),
        (("--shuffled-draws", 101), ("shuffled_draws", "101")),
        (("--kind", "seq2seq"), ("kind", "seq2seq")),
        (("--future", "unknown"), ("future", "unknown")),
        (("--joiner", "123456789"), ("joiner", "123456789")),
        (("--device", "tpu"), ("device", "tpu")),
        (("--precision", "int8"), ("precision", "int8")),
        (("--batch-tokens", 0), ("batch_tokens", "0")),
        (("--contexts", "fulll"), ("contexts", "fulll", "did you mean 'full'?")),
        (("--contexts", "fixed-0"), ("contexts", "fixed-0")),
        (("--contexts", ","), ("contexts", "no context is given")),
    ],
)
def test_a_bad_option_is_named(
    lpact: Lpact, words: Path, tmp_path: Path, options: tuple[object, ...], named: tuple[str, ...]
) -> None:
    args = ("features", "--model", "lpact-tiny", "--words", words, "--out", tmp_path / "out")
    result = lpact(*args, *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "study file" not in result.stderr.splitlines()[0]
    for part in named:
        assert part in result.stderr
    assert "Traceback" not in result.stderr
    assert sets(tmp_path / "out") == {}


def test_a_number_that_is_none(lpact: Lpact, words: Path, tmp_path: Path) -> None:
    args = ("features", "--model", "lpact-tiny", "--words", words, "--out", tmp_path / "out")
    result = lpact(*args, "--window", "many")
    assert result.exit_code == 2
    assert "--window" in result.stderr


@pytest.mark.parametrize("left_out", ["--model", "--words", "--out"])
def test_what_must_be_given(lpact: Lpact, left_out: str) -> None:
    given = {"--model": "lpact-tiny", "--words": "w.tsv", "--out": "out"}
    args = [part for pair in given.items() if pair[0] != left_out for part in pair]
    result = lpact("features", *args)
    assert result.exit_code == 2
    assert left_out in result.stderr


TABLES = {
    "no column 'word'": ("token\tstory_id\nThe\ta\n", ("'word'",)),
    "nothing": ("", ()),
    "a header alone": ("word\tstory_id\n", ()),
    "an empty word": ("word\tstory_id\nThe\ta\n\ta\nsea\ta\n", ("word",)),
    "a blank word": ("word\tstory_id\nThe\ta\n \ta\nsea\ta\n", ("word",)),
    "a story that comes back": ("word\tstory_id\na\tx\nb\ty\nc\tx\n", ("story_id", "'x'")),
    "a line that is short": ("word\tstory_id\na\tx\nb\n", ()),
}


@pytest.mark.parametrize("what", TABLES)
def test_a_bad_words_table(lpact: Lpact, tmp_path: Path, what: str) -> None:
    text, named = TABLES[what]
    path = tmp_path / "words.tsv"
    path.write_text(text)
    result = lpact("features", "--model", "lpact-tiny", "--words", path, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert str(path) in result.stderr
    assert "remedy:" in result.stderr
    for part in named:
        assert part in result.stderr
    assert "Traceback" not in result.stderr
    assert sets(tmp_path / "out") == {}


def test_a_words_table_that_is_not_there(lpact: Lpact, tmp_path: Path) -> None:
    path = tmp_path / "none.tsv"
    result = lpact("features", "--model", "lpact-tiny", "--words", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert str(path) in result.stderr


def test_sentences_are_asked_for_before_anything_is_computed(lpact: Lpact, tmp_path: Path) -> None:
    path = write_words(tmp_path / "words.tsv", columns=False)
    out = tmp_path / "out"
    args = ("features", "--model", "lpact-tiny", "--words", path, "--out", out)
    result = lpact(*args, "--contexts", "all")
    assert result.exit_code == 2
    assert "'sentence_id'" in result.stderr
    assert sets(out) == {}
    assert lpact(*args).exit_code == 0


def test_transcripts(lpact: Lpact, tmp_path: Path) -> None:
    bare = TEXT.replace(",", "").replace(".", "").lower()
    one = write_words(tmp_path / "one.tsv", bare)
    two = write_words(tmp_path / "two.tsv", bare, stories=2)
    file = tmp_path / "text.txt"
    file.write_text(TEXT)
    folder = tmp_path / "texts"
    folder.mkdir()
    for story in ("part-0", "part-1"):
        (folder / f"{story}.txt").write_text(TEXT)

    def features(words: Path, transcripts: Path, out: str) -> tuple[int, str]:
        args = ("features", "--model", "lpact-tiny", "--words", words, "--out", tmp_path / out)
        result = lpact(*args, "--transcripts", transcripts, "--no-progress")
        return result.exit_code, result.stderr

    assert features(one, file, "a") == (0, "")
    assert features(two, folder, "b") == (0, "")
    (by_file,) = api.extract_features("lpact-tiny", one, tmp_path / "a", transcripts={"part-0": TEXT})
    (by_folder,) = api.extract_features("lpact-tiny", two, tmp_path / "b", transcripts={"part-0": TEXT, "part-1": TEXT})
    assert len(sets(tmp_path / "a")) == len(sets(tmp_path / "b")) == 1
    n_words = len(TEXT.split())
    for part in (by_folder.hidden(1)[:n_words], by_folder.hidden(1)[n_words:]):
        np.testing.assert_allclose(part, by_file.hidden(1), atol=1e-5)
    (joined,) = api.extract_features("lpact-tiny", one, tmp_path / "c")
    assert not np.allclose(joined.surprisal(), by_file.surprisal())

    code, said = features(two, file, "d")
    assert code == 2
    assert "several stories need one transcript each" in said
    (folder / "part-1.txt").unlink()
    code, said = features(two, folder, "d")
    assert code == 2
    assert "'part-1'" in said
    file.write_text(TEXT.replace("whales", "snails"))
    code, said = features(one, file, "d")
    assert code == 2
    assert "whales" in said
    code, said = features(one, tmp_path / "none.txt", "d")
    assert code == 2
    assert "none.txt" in said
    assert sets(tmp_path / "d") == {}


def test_a_device_that_is_not_there(lpact: Lpact, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    args = ("features", "--model", "lpact-tiny", "--words", words, "--out", tmp_path / "out")
    for device in ("cuda", "cuda:1", "mps"):
        result = lpact(*args, "--device", device)
        assert result.exit_code == 2
        assert "option 'device'" in result.stderr
        assert device in result.stderr
        assert 'choose "cpu"' in result.stderr
    assert lpact(*args, "--device", "auto").exit_code == 0


def test_a_model_that_is_refused(lpact: Lpact, words: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "pytorch_model.bin").write_bytes(b"\x80\x04N.")
    result = lpact("features", "--model", model, "--words", words, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pytorch_model.bin" in result.stderr
    assert "safetensors" in result.stderr
    assert not (tmp_path / "out").exists()


LIGHT = """
import sys
from lpact.cli import app
try:
    app(["features", "--help"], prog_name="lpact")
except SystemExit as end:
    assert end.code == 0
heavy = {"torch", "transformers", "zarr", "tokenizers", "huggingface_hub", "safetensors", "polars"}
print(sorted(heavy & set(sys.modules)))
"""


def test_help_is_light() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    *told, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    for option in ("--model", "--words", "--contexts", "--transcripts", "--table", "--plan"):
        assert any(option in line for line in told)


EAGER = """
import torch
torch.set_num_threads(1)
from lpact.cli import main
from lpact.features.language import feature_set
feature_set.COMMIT_S = 0.0
main()
"""


def n_done(out: Path) -> int:
    return sum(int(str(record["n_done"])) for record in sets(out).values())


@pytest.mark.stress
def test_interrupted_killed_and_resumed_to_the_same_bytes(lpact: Lpact, tmp_path: Path) -> None:
    words = write_words(tmp_path / "words.tsv", " ".join([TEXT] * 24))
    options = ("--contexts", "reversed", "--word-context", 64, "--batch-tokens", 256)

    def args(out: str) -> tuple[object, ...]:
        start = ("features", "--model", "lpact-tiny", "--words", words, "--out", tmp_path / out)
        return (*start, *options)

    def stop_after(progress: int, by: signal.Signals) -> tuple[int, str]:
        process = subprocess.Popen(
            [sys.executable, "-c", EAGER, *map(str, args("out"))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + PATIENCE_S
        while n_done(tmp_path / "out") <= progress:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "nothing was saved in time"
            time.sleep(0.005)
        os.kill(process.pid, by)
        _, errors = process.communicate(timeout=PATIENCE_S)
        return process.returncode, errors

    code, errors = stop_after(0, signal.SIGINT)
    assert code == 130
    assert errors.endswith("interrupted; run the same command again to continue\n")
    assert "Traceback" not in errors
    first = n_done(tmp_path / "out")
    code, errors = stop_after(first, signal.SIGKILL)
    assert code == -signal.SIGKILL
    second = n_done(tmp_path / "out")
    n_words = 24 * len(TEXT.split())
    assert 0 < first < second < n_words

    again = lpact(*args("out"))
    assert again.exit_code == 0, again.output
    assert n_done(tmp_path / "out") == n_words
    assert lpact(*args("whole")).exit_code == 0
    ours, whole = (
        {
            str(p.relative_to(tmp_path / out)): p.read_bytes()
            for p in sorted((tmp_path / out).rglob("*"))
            if p.is_file() and p.suffix != ".tmp" and p.name != "checksums.json"
        }
        for out in ("out", "whole")
    )
    assert ours == whole
