"""Extraction never computes twice what is there, and never takes for the same what is not."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_models import TEXT, write_model

from lpact import extract_features, plan_features
from lpact.errors import RunError
from lpact.features.language import extraction, feature_set, reader
from lpact.features.language.feature_set import FeatureSetWriter, open_set
from lpact.features.language.language_model import LanguageModel
from lpact.store import storage_errors

ALL = ("full", "sentence_reset", "reversed", "shuffled", "untrained", "static", "fixed-5")
OPTIONS = {"untrained_seeds": 2, "window_tokens": 48, "word_context_tokens": 32}


def table(text: str = TEXT) -> pl.DataFrame:
    """A words table of two stories, with sentences and times."""
    words = text.split()
    ends = np.array([word.endswith(".") for word in words])
    sentence = np.concatenate([[0], np.cumsum(ends)[:-1]])
    n = len(words)
    return pl.DataFrame(
        {
            "word": words,
            "story_id": ["a"] * (n // 2) + ["b"] * (n - n // 2),
            "sentence_id": sentence,
            "onset_s": np.arange(n) * 0.3,
        }
    )


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "gpt2", "gpt2")


class Passes:
    """Passes through a model since the last look."""

    def __init__(self) -> None:
        self.count = 0

    def take(self) -> int:
        count, self.count = self.count, 0
        return count


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    counted = Passes()
    forward, embed = LanguageModel.forward, LanguageModel.embed

    def counting(self: LanguageModel, *args: object) -> object:
        counted.count += 1
        return forward(self, *args)  # type: ignore[arg-type]

    def counting_embed(self: LanguageModel, ids: object) -> object:
        counted.count += ids.numel() > 1  # type: ignore[attr-defined]
        return embed(self, ids)

    monkeypatch.setattr(LanguageModel, "forward", counting)
    monkeypatch.setattr(LanguageModel, "embed", counting_embed)
    return counted


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "checksums.json"
    }


# -- what the numbers depend on --------------------------------------------------------------------


def test_nothing_is_computed_twice(gpt2: Path, tmp_path: Path, passes: Passes) -> None:
    first = extract_features(gpt2, table(), tmp_path, contexts=ALL, **OPTIONS)
    assert passes.take() > len(ALL)
    assert [s.n_done for s in first] == [table().height] * 8
    before = contents(tmp_path)
    again = extract_features(gpt2, table(), tmp_path, contexts=ALL, **OPTIONS)
    assert passes.take() == 0
    assert [s.path for s in again] == [s.path for s in first]
    assert contents(tmp_path) == before


def change_weights(model: Path, words: pl.DataFrame, options: dict[str, object]) -> None:
    path = model / "model.safetensors"
    stored = bytearray(path.read_bytes())
    stored[-2] ^= 1
    path.write_bytes(stored)


def change_tokenizer(model: Path, words: pl.DataFrame, options: dict[str, object]) -> None:
    path = model / "tokenizer.json"
    path.write_text(path.read_text() + "\n")


def change_config(model: Path, words: pl.DataFrame, options: dict[str, object]) -> None:
    path = model / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layer_norm_epsilon": 1e-4}))


def replaced(words: pl.DataFrame, row: int, column: str, value: object) -> pl.DataFrame:
    values = words[column].to_list()
    values[row] = value
    return words.with_columns(pl.Series(column, values))


def letter(words: pl.DataFrame) -> pl.DataFrame:
    return replaced(words, 80, "word", "bread.")


def sentence_boundary(words: pl.DataFrame) -> pl.DataFrame:
    """One word goes over to the sentence before."""
    row = int(np.flatnonzero(np.diff(words["sentence_id"]))[0]) + 1
    return replaced(words, row, "sentence_id", words["sentence_id"][row - 1])


def story_boundary(words: pl.DataFrame) -> pl.DataFrame:
    return replaced(words, words.height // 2, "story_id", "a")


def same_text(words: pl.DataFrame) -> pl.DataFrame:
    return words.with_columns(
        onset_s=pl.col("onset_s") + 1.0,
        sentence_id=pl.col("sentence_id") * 2 + 10,
        speaker=pl.lit("keeper"),
    )


BY_WORD = {"reversed", "shuffled", "fixed-5"}
CHANGES = {
    "one bit of the weights": (change_weights, set(ALL) - {"untrained"}),
    "tokenizer": (change_tokenizer, set(ALL)),
    "configuration": (change_config, set(ALL)),
    "one letter": (letter, set(ALL)),
    "a sentence boundary": (sentence_boundary, {"sentence_reset"}),
    "a story boundary": (story_boundary, set(ALL)),
    "joiner": ({"joiner": "  "}, set(ALL)),
    "pooling": ({"pooling": "mean"}, set(ALL)),
    "precision": ({"precision": "bfloat16"}, set(ALL)),
    "window": ({"window_tokens": 64}, set(ALL) - {"static"}),
    "stride": ({"stride_tokens": 8}, set(ALL) - {"static"}),
    "context of a word": ({"word_context_tokens": 24}, BY_WORD),
    "words before": ({"context_words": 4}, set(ALL) - {"static", "fixed-5"}),
    "times, further columns, names of sentences": (same_text, set()),
    "batch": ({"batch_tokens": 64}, set()),
    "more draws": ({"shuffled_draws": 3, "untrained_seeds": 4}, set()),
    "less context asked for": ({"min_context_tokens": 4}, set()),
    "an option of masked models": ({"future": "seen"}, set()),
    "precision by its name": ({"precision": "float32"}, set()),
}


def planned(model: Path, words: pl.DataFrame, out: Path, options: Mapping[str, object]) -> dict[tuple[str, int], Path]:
    plan = plan_features(model, words, out, contexts=ALL, name="m", **options)
    return {(s.context, s.draw): s.path for s in plan.sets}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_concerns_the_sets_that_it_changes(gpt2: Path, tmp_path: Path, what: str) -> None:
    change, concerned = CHANGES[what]
    before = planned(gpt2, table(), tmp_path, OPTIONS)
    assert len(set(before.values())) == len(before) == 8
    model, words, options = gpt2, table(), dict(OPTIONS)
    if isinstance(change, dict):
        options |= change
    elif change in (change_weights, change_tokenizer, change_config):
        model = Path(shutil.copytree(gpt2, tmp_path / "model"))
        change(model, words, options)
    else:
        words = change(words)
    after = planned(model, words, tmp_path, options)
    assert {c for (c, d), path in before.items() if after[c, d] != path} == concerned


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        ({"future": "seen"}, {"full", "reversed"}),
        ({"word_context_tokens": 24}, {"full", "reversed"}),
    ],
)
def test_masked_models_depend_on_what_they_see(tmp_path: Path, change: dict[str, object], concerned: set[str]) -> None:
    model = write_model(tmp_path / "bert", "bert")
    contexts = ("full", "reversed", "static")
    plans = [
        plan_features(model, table(), tmp_path, contexts=contexts, **options).sets
        for options in (OPTIONS, OPTIONS | change)
    ]
    moved = {a.context for a, b in zip(*plans, strict=True) if a.path != b.path}
    assert moved == concerned


def test_a_changed_model_is_read_again_and_the_old_numbers_stay(gpt2: Path, tmp_path: Path, passes: Passes) -> None:
    model = Path(shutil.copytree(gpt2, tmp_path / "model"))
    (old,) = extract_features(model, table(), tmp_path / "out", **OPTIONS)
    n_passes = passes.take()
    before = contents(old.path)
    path = model / "model.safetensors"
    stored = bytearray(path.read_bytes())
    stored[-1] ^= 0x40  # the exponent of the last number of the file
    path.write_bytes(stored)
    (new,) = extract_features(model, table(), tmp_path / "out", **OPTIONS)
    assert passes.take() == n_passes
    assert new.path != old.path
    assert contents(old.path) == before
    differs = [not np.array_equal(new.hidden(i), old.hidden(i)) for i in range(old.n_layers)]
    assert any(differs)


def test_a_moved_sentence_recomputes_sentences_alone(gpt2: Path, tmp_path: Path, passes: Passes) -> None:
    contexts = ("full", "sentence_reset")
    old = extract_features(gpt2, table(), tmp_path, contexts=contexts, **OPTIONS)
    passes.take()
    words = sentence_boundary(table())
    new = extract_features(gpt2, words, tmp_path, contexts=contexts, **OPTIONS)
    assert passes.take() > 0
    assert new[0].path == old[0].path
    differs = (new[1].hidden(3) != old[1].hidden(3)).any(axis=1)
    edges = np.flatnonzero(np.diff(table()["sentence_id"])) + 1
    # The word that went over, and the words of the sentence that it left.
    assert 0 < differs.sum() <= edges[1] - edges[0]
    assert set(np.flatnonzero(differs)) <= set(range(edges[0], edges[1]))


# -- interruption ----------------------------------------------------------------------------------

BLOCKS = {"BLOCK_BATCHES": 1, "FEWEST_BLOCK_WORDS": 10}
SMALL_BATCHES: dict[str, object] = {
    "window_tokens": 32,
    "stride_tokens": 16,
    "word_context_tokens": 16,
    "batch_tokens": 64,
    "untrained_seeds": 2,
}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of some words; a chunk holds 12 words, so that blocks end inside chunks."""
    for name, value in BLOCKS.items():
        monkeypatch.setattr(reader, name, value)
    monkeypatch.setattr(feature_set, "CHUNK_BYTES", 12 * 32 * 4)
    monkeypatch.setattr(feature_set, "COMMIT_S", 0.0)


class StopsAt:
    """Progress that is interrupted at its n-th message."""

    def __init__(self, n: int) -> None:
        self.left = n

    def stage(self, name: str, total: int) -> None:
        self.total, self.done = total, 0

    def advance(self, steps: int = 1) -> None:
        self.done += steps
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("context", ["full", "reversed", "untrained"])
def test_an_interrupted_extraction_goes_on(gpt2: Path, tmp_path: Path, passes: Passes, context: str) -> None:
    def plan(out: str) -> extraction.Extraction:
        contexts = (context,)
        return plan_features(gpt2, long, tmp_path / out, contexts=contexts, name="m", **SMALL_BATCHES)

    long = table(f"{TEXT} {TEXT}")
    plan("whole").run(StopsAt(0))
    n_passes = passes.take()
    for stop in (1, 2, 4):
        out = f"stopped-{stop}"
        stopped = plan(out)
        with pytest.raises(KeyboardInterrupt):
            stopped.run(StopsAt(stop))
        before = passes.take()
        done = stopped.sets[0].n_done
        assert (0 < done < long.height) == (before > 0)
        assert (before > 0) == (stop > 1)
        told = StopsAt(0)
        again = plan(out)
        assert again.sets[0].n_done == done
        again.run(told)
        assert told.done == told.total == long.height
        assert before + passes.take() == n_passes
        assert contents(tmp_path / out) == contents(tmp_path / "whole")


@pytest.mark.usefixtures("small_blocks")
def test_interrupted_again_and_again(gpt2: Path, tmp_path: Path, passes: Passes) -> None:
    """Three steps at a time, in whatever set they fall."""

    def plan(out: str) -> extraction.Extraction:
        contexts = ("sentence_reset", "shuffled", "untrained")
        return plan_features(gpt2, table(), tmp_path / out, contexts=contexts, name="m", **SMALL_BATCHES)

    plan("whole").run(StopsAt(0))
    n_passes = passes.take()
    for _ in range(100):
        try:
            plan("stopped").run(StopsAt(3))
            break
        except KeyboardInterrupt:
            continue
    assert passes.take() == n_passes
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


@pytest.mark.usefixtures("small_blocks")
def test_words_that_wait_are_kept_when_interrupted(
    gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: Passes
) -> None:
    monkeypatch.setattr(feature_set, "COMMIT_S", 1e9)

    def plan(out: str) -> extraction.Extraction:
        return plan_features(gpt2, table(), tmp_path / out, contexts=("full",), name="m", **SMALL_BATCHES)

    plan("whole").run(StopsAt(0))
    n_passes = passes.take()
    with pytest.raises(KeyboardInterrupt):
        plan("stopped").run(StopsAt(3))
    assert 0 < plan("stopped").sets[0].n_done < table().height
    plan("stopped").run(StopsAt(0))
    assert passes.take() == n_passes
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("context", ["full", "reversed"])
def test_resumed_with_other_batches(gpt2: Path, tmp_path: Path, context: str) -> None:
    """Blocks end elsewhere then; words that are written stay, and none is written in another's place."""
    contexts = (context,)
    (whole,) = extract_features(gpt2, table(), tmp_path / "whole", contexts=contexts, **SMALL_BATCHES)
    stopped = plan_features(gpt2, table(), tmp_path / "out", contexts=contexts, **SMALL_BATCHES)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(StopsAt(2))
    done = stopped.sets[0].n_done
    assert 0 < done < table().height
    other = SMALL_BATCHES | {"batch_tokens": 100}
    (found,) = extract_features(gpt2, table(), tmp_path / "out", contexts=contexts, **other)
    for layer in range(found.n_layers):
        np.testing.assert_array_equal(found.hidden(layer)[:done], whole.hidden(layer)[:done])
        np.testing.assert_allclose(found.hidden(layer), whole.hidden(layer), atol=1e-5)
    np.testing.assert_allclose(found.surprisal(), whole.surprisal(), atol=1e-4)
    np.testing.assert_allclose(found.entropy(), whole.entropy(), atol=1e-4)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("failing", "at"), [("append", 2), ("append", 4), ("_record", 4)])
def test_a_full_disk_mixes_nothing_up(
    gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, at: int
) -> None:
    """Blocks that wait behind one that failed are not written in its place."""
    extract_features(gpt2, table(), tmp_path / "whole", contexts=("reversed",), **SMALL_BATCHES)
    honest = getattr(FeatureSetWriter, failing)
    calls = 0

    def full_once(self: FeatureSetWriter, *block: np.ndarray) -> None:
        nonlocal calls
        calls += 1
        if calls != at:
            honest(self, *block)
            return
        if block:  # the first array is written, and no other
            self._arrays["hidden"][:, self.n_done : self.n_done + block[0].shape[1]] = block[0]
        with storage_errors(self.path, "features cannot be written"):
            raise OSError(errno.ENOSPC, "no space left on device", str(self.path))

    monkeypatch.setattr(FeatureSetWriter, failing, full_once)
    out = tmp_path / "out"
    with pytest.raises(RunError, match="features cannot be written") as caught:
        extract_features(gpt2, table(), out, contexts=("reversed",), **SMALL_BATCHES)
    assert "free disk space" in str(caught.value)
    (path,) = out.glob("*/reversed-*")
    stopped = open_set(path)
    assert stopped is not None
    assert 0 < stopped.n_done < stopped.n_words
    assert not (path / "lock").exists()
    extract_features(gpt2, table(), out, contexts=("reversed",), **SMALL_BATCHES)
    assert contents(out) == contents(tmp_path / "whole")


# -- a process that is killed ----------------------------------------------------------------------

KILLED = """
import contextlib, os, signal, sys
from pathlib import Path
import polars as pl
import torch
torch.set_num_threads(1)
from lpact import extract_features
from lpact.features.language import feature_set, reader

model, words, out, moment, n = sys.argv[1:]
for name, value in BLOCKS.items():
    setattr(reader, name, value)
feature_set.CHUNK_BYTES, feature_set.COMMIT_S = 12 * 32 * 4, 0.0
left = int(n)

def die():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

if moment == "half a chunk":
    from zarr.storage import _local
    honest = _local._atomic_write
    @contextlib.contextmanager
    def torn(path, mode, exclusive=False):
        with honest(path, mode, exclusive) as handle:
            handle.write(b"torn")
            handle.flush()
            die()
            handle.seek(0)
            yield handle
    _local._atomic_write = torn
else:
    record = feature_set.FeatureSetWriter._record
    def dying(self):
        die()
        record(self)
    feature_set.FeatureSetWriter._record = dying
extract_features(model, pl.read_csv(words), out, contexts=("full", "reversed"), name="m", **OPTIONS)
"""


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("moment", "n"),
    [
        ("half a chunk", 70),
        pytest.param("before the record", 9, marks=pytest.mark.stress),
    ],
)
def test_a_killed_process_costs_one_block_at_most(gpt2: Path, tmp_path: Path, moment: str, n: int) -> None:
    words = tmp_path / "words.csv"
    table().write_csv(words)
    script = KILLED.replace("BLOCKS.items", f"{BLOCKS}.items").replace("OPTIONS", str(SMALL_BATCHES))
    args = [
        sys.executable,
        "-c",
        script,
        str(gpt2),
        str(words),
        str(tmp_path / "out"),
        moment,
        str(n),
    ]
    killed = subprocess.run(args, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = {p.parent.name: json.loads(p.read_text())["n_done"] for p in tmp_path.rglob("set.json")}
    assert left
    assert sum(left.values()) > 0
    assert bool(list(tmp_path.rglob("*.partial"))) == (moment == "half a chunk")
    read = pl.read_csv(words)
    for out in ("out", "whole"):
        extract_features(gpt2, read, tmp_path / out, contexts=("full", "reversed"), name="m", **SMALL_BATCHES)
    ours, whole = contents(tmp_path / "out"), contents(tmp_path / "whole")
    assert {k: v for k, v in ours.items() if not k.endswith(".tmp")} == whole
