"""Feature sets on disk: what is written is what is read, and damage never passes for numbers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zarr
from small_models import TEXT, write_model

from lpact import extract_features
from lpact.errors import FeatureError, RunError
from lpact.features.language import feature_set
from lpact.features.language.feature_set import FeatureSet, FeatureSetWriter, open_set
from lpact.features.language.model_files import Checksums

N_LAYERS, N_WORDS, N_COLUMNS = 3, 50, 6
ABOUT = {"context": "full", "draw": 0}


def values(dtype: str = "float32") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    hidden = rng.normal(size=(N_LAYERS, N_WORDS, N_COLUMNS)).astype(dtype)
    return hidden, rng.gamma(2.0, size=N_WORDS), rng.gamma(3.0, size=N_WORDS)


def writer(path: Path, *, key: str = "k", dtype: str = "float32") -> FeatureSetWriter:
    shape = (N_LAYERS, N_WORDS, N_COLUMNS)
    return FeatureSetWriter(path, key=key, about=ABOUT, shape=shape, dtype=dtype)


def write(path: Path, *, stops: tuple[int, ...] = (N_WORDS,), dtype: str = "float32") -> FeatureSet:
    """Write a set in parts that end at ``stops``."""
    hidden, surprisal, entropy = values(dtype)
    with writer(path, dtype=dtype) as to:
        for first, stop in zip((0, *stops), stops, strict=False):
            to.append(hidden[:, first:stop], surprisal[first:stop], entropy[first:stop])
    found = open_set(path)
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight words per chunk: seven chunks per layer, the last not full."""
    monkeypatch.setattr(feature_set, "CHUNK_BYTES", 1)


def assert_right(found: FeatureSet, dtype: str = "float32") -> None:
    hidden, surprisal, entropy = values(dtype)
    for layer in range(N_LAYERS):
        np.testing.assert_array_equal(found.hidden(layer), hidden[layer].astype(np.float64))
    np.testing.assert_array_equal(found.surprisal(), surprisal)
    np.testing.assert_array_equal(found.entropy(), entropy)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("stops", [(50,), (1, 2, 50), (8, 16, 50), (7, 9, 25, 50), (16, 40, 48, 49, 50)])
def test_what_is_written_is_read(tmp_path: Path, stops: tuple[int, ...], dtype: str) -> None:
    found = write(tmp_path / "set", stops=stops, dtype=dtype)
    assert found.complete
    assert_right(found, dtype)
    assert not (tmp_path / "set" / "lock").exists()


@pytest.mark.parametrize("stop", [1, 8, 11, 47])
def test_a_set_is_taken_up_where_it_stopped(tmp_path: Path, stop: int) -> None:
    path = tmp_path / "set"
    assert write(path, stops=(stop,)).n_done == stop
    hidden, surprisal, entropy = values()
    with writer(path) as again:
        assert again.n_done == stop
        again.append(hidden[:, stop:], surprisal[stop:], entropy[stop:])
    found = open_set(path)
    assert found is not None
    assert_right(found)


def test_words_that_the_record_does_not_count_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "set"
    write(path, stops=(10,))
    hidden, surprisal, entropy = values()
    killed = writer(path)
    monkeypatch.setattr(killed, "_record", fail)
    monkeypatch.setattr(feature_set, "COMMIT_S", 0.0)
    with pytest.raises(MemoryError):
        killed.append(hidden[:, :30] * 0 + 7, surprisal[:30], entropy[:30])
    killed.close()
    with writer(path) as again:
        assert again.n_done == 10
        again.append(hidden[:, 10:], surprisal[10:], entropy[10:])
    found = open_set(path)
    assert found is not None
    assert_right(found)


def fail() -> None:
    raise MemoryError


def test_another_key_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "set"
    write(path, stops=(10,))
    with writer(path, key="other") as again:
        assert again.n_done == 0
    found = open_set(path)
    assert found is not None
    assert (found.key, found.n_done) == ("other", 0)


def test_an_unfinished_set_is_not_read(tmp_path: Path) -> None:
    found = write(tmp_path / "set", stops=(20,))
    for read in (found.surprisal, found.entropy, lambda: found.hidden(0)):
        with pytest.raises(FeatureError, match="20 of 50 words") as caught:
            read()
        assert caught.value.where == str(tmp_path / "set")
        assert "it resumes" in str(caught.value)


@pytest.mark.parametrize("layer", [-1, 3, 99])
def test_a_layer_that_is_not_there(tmp_path: Path, layer: int) -> None:
    with pytest.raises(FeatureError, match="0 to 2"):
        write(tmp_path / "set").hidden(layer)


def test_zarr_opens_the_group_by_itself(tmp_path: Path) -> None:
    found = write(tmp_path / "set")
    group = zarr.open_group(str(found.path / "features.zarr"), mode="r")
    assert sorted(group.array_keys()) == ["entropy", "hidden", "surprisal"]
    assert list(group.group_keys()) == []
    assert dict(group.attrs) == ABOUT
    hidden, surprisal, entropy = values()
    assert group["hidden"].metadata.dimension_names == ("layer", "word", "feature")
    assert group["hidden"].dtype == np.float32
    assert group["hidden"].chunks == (1, 8, N_COLUMNS)
    np.testing.assert_array_equal(group["hidden"][:], hidden)
    np.testing.assert_array_equal(group["hidden"][1, 5:17, 2], hidden[1, 5:17, 2])
    for name, expected in (("surprisal", surprisal), ("entropy", entropy)):
        assert group[name].metadata.dimension_names == ("word",)
        assert group[name].attrs["units"] == "bit"
        np.testing.assert_array_equal(group[name][:], expected)


def data_files(path: Path) -> list[Path]:
    return [p for p in sorted(path.rglob("*")) if p.is_file() and p.parent.name != path.name and "c" in p.parts]


def damage(found: FeatureSet) -> FeatureError | None:
    """What reading all of it says; numbers that are read must be right."""
    try:
        assert_right(found)
    except FeatureError as error:
        return error
    return None


def test_a_flipped_bit_is_found_or_harmless(tmp_path: Path) -> None:
    """Every eleventh byte of every file with numbers, one after the other."""
    found = write(tmp_path / "set")
    files = data_files(found.path)
    assert len(files) == 7 * N_LAYERS + 2
    n_found = 0
    for file in (files[0], files[1], files[-2], files[-1]):
        whole = file.read_bytes()
        for place in range(0, len(whole), 11):
            spoilt = bytearray(whole)
            spoilt[place] ^= 0x10
            file.write_bytes(spoilt)
            error = damage(found)
            if error is not None:
                assert error.where == str(found.path)
                assert "damaged" in error.what
                assert "remove the folder" in str(error.remedy)
                n_found += 1
        file.write_bytes(whole)
    assert n_found > 100
    assert_right(found)


@pytest.mark.parametrize("array", ["hidden", "surprisal", "entropy"])
@pytest.mark.parametrize("how", ["truncated", "gone"])
def test_a_file_that_was_not_copied(tmp_path: Path, array: str, how: str) -> None:
    found = write(tmp_path / "set")
    file = next(p for p in data_files(found.path) if array in p.parts)
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FeatureError, match="stored features are damaged"):
        found.hidden(0) if array == "hidden" else getattr(found, array)()


def test_a_damaged_chunk_is_found_when_a_set_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "set"
    write(path, stops=(20,))
    (file,) = [p for p in data_files(path) if p.parts[-4:] == ("c", "1", "2", "0")]
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)
    hidden, surprisal, entropy = values()
    with pytest.raises(FeatureError, match="damaged"), writer(path) as again:
        again.append(hidden[:, 20:], surprisal[20:], entropy[20:])
    assert not (path / "lock").exists()


RECORDS = {
    "truncated": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "a list": lambda text: "[]",
    "another format": lambda text: json.dumps(json.loads(text) | {"format": 99}),
    "without its key": lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "key"}),
    "without a number": lambda text: json.dumps(json.loads(text) | {"n_words": None}),
}


@pytest.mark.parametrize("how", RECORDS)
def test_a_damaged_record(tmp_path: Path, how: str) -> None:
    found = write(tmp_path / "set")
    record = found.path / "set.json"
    record.write_text(RECORDS[how](record.read_text()))
    with pytest.raises(FeatureError, match="stored features are damaged") as caught:
        open_set(found.path)
    assert caught.value.where == str(record)
    assert "remove the folder" in str(caught.value.remedy)


def test_there_is_no_set(tmp_path: Path) -> None:
    assert open_set(tmp_path) is None
    assert open_set(tmp_path / "none") is None


# -- two processes ---------------------------------------------------------------------------------

HOLDER = """
import sys
from pathlib import Path
from lpact.features.language import feature_set
feature_set.CHUNK_BYTES = 1
with feature_set.FeatureSetWriter(Path(sys.argv[1]), key="k", about={}, shape=(3, 50, 6), dtype="float32"):
    print("writing", flush=True)
    sys.stdin.readline()
"""


def test_one_process_writes_a_set(tmp_path: Path) -> None:
    path = tmp_path / "set"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "writing\n"
        with pytest.raises(RunError, match="another process is extracting these features") as caught:
            writer(path)
        assert caught.value.got == f"a lock held by process {holder.pid}"
        assert "wait for it" in str(caught.value.remedy)
        assert writer(tmp_path / "other").n_done == 0
    finally:
        holder.communicate("\n")
    assert holder.returncode == 0
    assert_right(write(path))


def test_a_set_is_locked_within_a_process_too(tmp_path: Path) -> None:
    with writer(tmp_path / "set"), pytest.raises(RunError, match=f"process {os.getpid()}"):
        writer(tmp_path / "set")


# -- memory ----------------------------------------------------------------------------------------

PEAK = """
import resource, sys
from pathlib import Path
import polars as pl
import torch
torch.set_num_threads(1)
from lpact import extract_features
from lpact.features.language import feature_set, reader
reader.BLOCK_BYTES, feature_set.CHUNK_BYTES = 2**20, 2**19
text = Path(sys.argv[2]).read_text().split()
for n_words in (1500, 4500):
    words = pl.DataFrame({"word": (text * 100)[:n_words]})
    options = {"window_tokens": 128, "stride_tokens": 96, "batch_tokens": 128}
    (found,) = extract_features(sys.argv[1], words, sys.argv[3], **options)
    on_disk = sum(p.stat().st_size for p in found.path.rglob("*") if p.is_file())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, on_disk // 1024)
"""


@pytest.mark.stress
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """A cheap model with wide states: features of the long text are far larger than what memory grows by."""
    import transformers
    from small_models import metaspace_tokenizer

    tokenizer = metaspace_tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=1024,
        head_dim=8,
        num_attention_heads=1,
        num_key_value_heads=1,
        intermediate_size=8,
        num_hidden_layers=12,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = tmp_path / "wide"
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(str(model))
    tokenizer.save_pretrained(str(model))
    (tmp_path / "text.txt").write_text(TEXT)
    args = [
        sys.executable,
        "-c",
        PEAK,
        str(model),
        str(tmp_path / "text.txt"),
        str(tmp_path / "out"),
    ]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (short_peak, short), (long_peak, long) = (map(int, line.split()) for line in done.stdout.splitlines())
    shutil.rmtree(tmp_path / "out")
    assert long > 200_000  # KiB
    assert long > 2.5 * short
    assert long_peak - short_peak < (long - short) / 2


def test_a_set_tells_what_it_is(tmp_path: Path) -> None:
    model = write_model(tmp_path / "gpt2", "gpt2")
    words = pl.DataFrame({"word": TEXT.split()})
    (found,) = extract_features(model, words, tmp_path / "out", pooling="mean")
    about = found.about
    assert about["context"] == "full"
    assert about["pooling"] == "mean"
    assert about["model"] == str(model)
    assert about["model_kind"] == "causal"
    assert set(about["files"]) == {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "weights",
    }
    assert {"torch", "transformers", "precision", "device"} < set(about)
    group = zarr.open_group(str(found.path / "features.zarr"), mode="r")
    assert dict(group.attrs) == dict(about)
    assert (found.n_layers, found.n_words, found.n_columns) == (4, words.height, 32)


# -- the digest of a set ---------------------------------------------------------------------------


def recorded(found: FeatureSet) -> str | None:
    digest = json.loads((found.path / "set.json").read_text()).get("sha256")
    assert digest == found.sha256
    return digest


def test_a_set_has_a_digest_once_it_is_complete(tmp_path: Path) -> None:
    assert recorded(write(tmp_path / "part", stops=(20,))) is None
    whole = write(tmp_path / "whole")
    # Independent of the writer: names and checksums of all files of the arrays.
    root = whole.path / "features.zarr"
    files = sorted(p for n in ("hidden", "surprisal", "entropy") for p in (root / n).rglob("*"))
    pairs = [
        [p.relative_to(whole.path).as_posix(), hashlib.sha256(p.read_bytes()).hexdigest()] for p in files if p.is_file()
    ]
    assert len(pairs) == 7 * N_LAYERS + 2 + 3  # chunks, headers
    assert recorded(whole) == hashlib.sha256(json.dumps(sorted(pairs)).encode()).hexdigest()
    assert whole.verify(Checksums(tmp_path)) == whole.sha256
    assert recorded(write(tmp_path / "in parts", stops=(13, 30, N_WORDS))) == whole.sha256


@pytest.mark.parametrize("name", ["hidden", "surprisal", "entropy"])
def test_other_numbers_in_whole_files_are_noticed(tmp_path: Path, name: str) -> None:
    found = write(tmp_path / "set")
    array = zarr.open_array(str(found.path / "features.zarr" / name), mode="r+")
    array[:] = array[:][..., ::-1]
    with pytest.raises(FeatureError, match="have changed since they were extracted") as caught:
        found.verify(Checksums(tmp_path))
    assert caught.value.where == str(found.path)
    assert "extract the features again" in str(caught.value.remedy)
    assert found.sha256 in str(caught.value.expected)


def test_headers_of_the_group_do_not_stand_in_for_those_of_the_arrays(tmp_path: Path) -> None:
    found = write(tmp_path / "set")
    root = found.path / "features.zarr" / "zarr.json"
    group = json.loads(root.read_text())
    header = json.loads((root.parent / "surprisal" / "zarr.json").read_text())
    other = header | {"data_type": "int64", "fill_value": 0}
    group["consolidated_metadata"] = {
        "kind": "inline",
        "must_understand": False,
        "metadata": {"surprisal": other},
    }
    root.write_text(json.dumps(group))
    np.testing.assert_array_equal(found.surprisal(), values()[1])
