"""Model folders and hub names: what is read, what is refused, and what an error says."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from small_models import TEXT, write_model

from lpact import extract_features, plan_features
from lpact.errors import FeatureError
from lpact.features.language.feature_set import FeatureSet
from lpact.features.language.model_files import Checksums, find_model

WORDS = pl.DataFrame({"word": TEXT.split()[:30]})


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "gpt2", "gpt2")


@pytest.fixture
def model(gpt2: Path, tmp_path: Path) -> Path:
    """A folder that a test may spoil."""
    return Path(shutil.copytree(gpt2, tmp_path / "model"))


def read(model: Path, **options: object) -> FeatureSet:
    (found,) = extract_features(model, WORDS, model.parent / "out", **options)
    return found


def refused(model: Path, *parts: str) -> FeatureError:
    with pytest.raises(FeatureError) as caught:
        read(model)
    for part in parts:
        assert part in str(caught.value), caught.value
    assert caught.value.remedy
    assert "model" in caught.value.what
    for record in model.parent.glob("out/*/*/set.json"):
        assert json.loads(record.read_text())["n_done"] == 0
    return caught.value


class Bomb:
    """Unpickled, it leaves a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (open, (str(self.mark), "w"))


def test_the_planted_pickle_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(tmp_path / "mark"))).close()
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth", "model.ckpt"])
def test_pickled_weights_alone_are_refused(model: Path, name: str) -> None:
    (model / "model.safetensors").unlink()
    (model / name).write_bytes(pickle.dumps(Bomb(model / "mark")))
    refused(model, name, "pickled", "*.safetensors", "save_pretrained", str(model))
    assert not (model / "mark").exists()


OPENED = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import polars as pl
from lpact import extract_features
from lpact.errors import FeatureError
out, *models = sys.argv[1:]
for model in models:
    opened.clear()
    try:
        extract_features(model, pl.DataFrame({"word": ["The", "sea"]}), out)
        print("read")
    except FeatureError:
        print("refused")
    print(any("model.safetensors" in path for path in opened), any(".bin" in path for path in opened))
"""


def test_a_pickle_beside_good_weights_is_not_opened(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(model / "mark")))
    alone = Path(shutil.copytree(model, model.parent / "alone"))
    (alone / "model.safetensors").unlink()
    args = [sys.executable, "-c", OPENED, *map(str, (model.parent / "out", model, alone))]
    done = subprocess.run(args, capture_output=True, text=True, check=True)
    assert done.stdout == "read\nTrue False\nrefused\nFalse False\n"
    assert not (model / "mark").exists()


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


CODE = {"AutoConfig": "modeling_own.Config", "AutoModelForCausalLM": "modeling_own.Model"}


def plant_code(model: Path) -> None:
    code = f"open({str(model / 'mark')!r}, 'w').close()\nclass Config: pass\nclass Model: pass\nclass Own: pass\n"
    (model / "modeling_own.py").write_text(code)


def test_code_of_an_unknown_architecture_is_never_run(model: Path) -> None:
    plant_code(model)
    edit(model / "config.json", model_type="own", auto_map=CODE)
    refused(model, "its own code, which is never run", "choose another model")
    assert not (model / "mark").exists()


def test_code_beside_a_known_architecture_is_never_run(model: Path, gpt2: Path) -> None:
    plant_code(model)
    edit(model / "config.json", auto_map=CODE)
    tokenizer = {"AutoTokenizer": ["modeling_own.Own", "modeling_own.Own"]}
    edit(model / "tokenizer_config.json", auto_map=tokenizer)
    (plain,) = extract_features(gpt2, WORDS, model.parent / "plain")
    np.testing.assert_array_equal(read(model).hidden(3), plain.hidden(3))
    assert not (model / "mark").exists()


def test_an_unknown_architecture(model: Path) -> None:
    edit(model / "config.json", model_type="nonesuch")
    refused(model, "nonesuch", "newer transformers", str(model))


def test_an_adapter_is_refused(model: Path) -> None:
    (model / "adapter_config.json").write_text('{"base_model_name_or_path": "other/model"}')
    refused(model, "adapter_config.json", "merge an adapter")


def shard(model: Path) -> Path:
    """Store the weights in two files and an index."""
    weights = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    names = sorted(weights)
    places = {n: f"part-{i % 2}.safetensors" for i, n in enumerate(names)}
    for file in ("part-0.safetensors", "part-1.safetensors"):
        own = {n: weights[n].contiguous() for n in names if places[n] == file}
        save_file(own, model / file, metadata={"format": "pt"})
    index = model / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index


def test_weights_in_several_files(model: Path, gpt2: Path) -> None:
    shard(model)
    assert [p.name for p in find_model(str(model)).weights] == [
        "part-0.safetensors",
        "part-1.safetensors",
    ]
    (plain,) = extract_features(gpt2, WORDS, model.parent / "plain")
    found = read(model)
    np.testing.assert_array_equal(found.hidden(2), plain.hidden(2))
    assert len(found.about["files"]["weights"]) == 2


def test_a_whole_file_is_what_counts_beside_an_index(model: Path) -> None:
    """As transformers has it; another file's checksum would not notice a change."""
    whole = (model / "model.safetensors").read_bytes()
    shard(model)
    (model / "model.safetensors").write_bytes(whole)
    assert [p.name for p in find_model(str(model)).weights] == ["model.safetensors"]


@pytest.mark.parametrize(
    ("places", "named"),
    [
        ({"wte.weight": "../x.safetensors"}, "../x.safetensors"),
        ({"wte.weight": "/x.safetensors"}, "/x.safetensors"),
        ({"wte.weight": "part-7.safetensors"}, "part-7.safetensors"),
        ({"wte.weight": 7}, "'7'"),
        ({}, "nothing"),
        ([], "nothing"),
    ],
)
def test_an_index_that_names_other_files(model: Path, places: object, named: str) -> None:
    index = shard(model)
    shutil.copy(model / "part-0.safetensors", model.parent / "x.safetensors")
    index.write_text(json.dumps({"weight_map": places}))
    error = refused(model, named, "fetch the model again")
    assert error.where == str(index)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("name", "spoil", "parts"),
    [
        ("model.safetensors", truncate, ("SafetensorError", "fetch the model again")),
        ("model.safetensors", empty, ("SafetensorError", "fetch the model again")),
        ("model.safetensors", remove, ("no weights", "*.safetensors")),
        ("config.json", truncate, ("config.json", "JSON", "fetch the model again")),
        ("config.json", remove, ("config.json", "no such file", "fetch the model again")),
        ("tokenizer.json", remove, ("tokenizer.json", "fetch the model again")),
        ("tokenizer.json", truncate, ("fetch the model again",)),
    ],
)
def test_damaged_and_missing_files(
    model: Path, name: str, spoil: Callable[[Path], None], parts: tuple[str, ...]
) -> None:
    spoil(model / name)
    refused(model, *parts, str(model))


def test_an_encoder_without_its_tokenizer_is_refused(tmp_path: Path) -> None:
    """Left alone, the library makes up a vocabulary in which every word is unknown."""
    model = write_model(tmp_path / "bert", "bert")
    (model / "tokenizer.json").unlink()
    (model / "tokenizer_config.json").unlink()
    refused(model, "has no tokenizer", "tokenizer.json")


def test_a_tokenizer_in_older_files(model: Path, gpt2: Path) -> None:
    parts = json.loads((model / "tokenizer.json").read_text())["model"]
    (model / "vocab.json").write_text(json.dumps(parts["vocab"]))
    (model / "merges.txt").write_text("\n".join(" ".join(pair) for pair in parts["merges"]))
    (model / "tokenizer.json").unlink()
    (model / "tokenizer_config.json").unlink()
    (plain,) = extract_features(gpt2, WORDS, model.parent / "plain")
    np.testing.assert_array_equal(read(model).surprisal(), plain.surprisal())


def test_a_tokenizer_of_another_model(model: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(model))
    tokenizer.add_tokens(["keeper"])
    tokenizer.save_pretrained(str(model))
    refused(model, "does not fit", "'keeper'", "weights and tokenizer of the same model")


def test_a_layer_without_weights_is_named(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    gone = next(n for n in weights if n.endswith("h.1.mlp.c_fc.weight"))
    del weights[gone]
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    refused(model, "transformer.h.1.mlp.c_fc.weight", "do not fit its configuration")


def test_weights_of_another_shape(model: Path) -> None:
    edit(model / "config.json", n_embd=48)
    parts = ("do not fit", "'transformer.h.0.attn.c_attn.bias': (96,), not (144,)")
    refused(model, *parts, str(model), "fetch the model again")


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_without_its_head_a_model_has_features_and_no_surprisal(tmp_path: Path, family: str) -> None:
    whole = write_model(tmp_path / "whole", family)
    bare = Path(shutil.copytree(whole, tmp_path / "bare"))
    with torch.random.fork_rng():
        network = (
            transformers.AutoModel.from_pretrained(str(whole), add_pooling_layer=False)
            if family == "bert"
            else transformers.AutoModel.from_pretrained(str(whole))
        )
    network.save_pretrained(str(bare))
    assert (
        json.loads((bare / "config.json").read_text())["architectures"]
        != json.loads((whole / "config.json").read_text())["architectures"]
    )
    found = read(bare)
    (complete,) = extract_features(whole, WORDS, tmp_path / "complete")
    for layer in range(4):
        np.testing.assert_allclose(found.hidden(layer), complete.hidden(layer), atol=1e-6)
    assert np.isnan(found.surprisal()).all()
    assert np.isnan(found.entropy()).all()
    assert np.isfinite(complete.surprisal()).all()


def test_a_tied_head_is_there_without_being_stored(model: Path, gpt2: Path) -> None:
    transformers.AutoModel.from_pretrained(str(gpt2)).save_pretrained(str(model))
    (plain,) = extract_features(gpt2, WORDS, model.parent / "plain")
    np.testing.assert_allclose(read(model).surprisal(), plain.surprisal(), atol=1e-5)


@pytest.mark.parametrize("name", ["./nowhere", "a/b/c", "nowhere.gguf", "/tmp/none/none"])
def test_a_path_that_is_not_there(name: str) -> None:
    with pytest.raises(FeatureError) as caught:
        find_model(name)
    assert caught.value.where == str(Path(name))
    assert caught.value.remedy == "check the path"


def test_a_file_is_not_a_folder(model: Path) -> None:
    with pytest.raises(FeatureError, match="does not exist"):
        find_model(str(model / "config.json"))


def test_two_gguf_files_are_ambiguous(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(FeatureError, match="name the GGUF file itself"):
        find_model(str(tmp_path))
    assert find_model(str(tmp_path / "b.gguf")).gguf == "b.gguf"


def test_a_folder_that_the_user_points_to_wins(model: Path) -> None:
    assert find_model("org/name", folder=model).path == model.resolve()


def test_checksums_notice_a_file_changed_in_place(model: Path, tmp_path: Path) -> None:
    path = model / "model.safetensors"
    sums = Checksums(tmp_path / "memo")
    first = sums.of([path])[path]
    assert Checksums(tmp_path / "memo").of([path])[path] == first
    before = path.stat()
    with path.open("r+b") as handle:
        handle.seek(-1, os.SEEK_END)
        last = handle.read(1)
        handle.seek(-1, os.SEEK_END)
        handle.write(bytes([last[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
    assert sums.of([path])[path] != first
    assert Checksums(tmp_path / "memo").of([path])[path] != first


def test_checksums_are_not_computed_twice(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model / "model.safetensors"
    first = Checksums(tmp_path).of([path])
    monkeypatch.setattr("hashlib.file_digest", None)
    assert Checksums(tmp_path).of([path]) == first
    (tmp_path / "checksums.json").write_text("[")
    with pytest.raises(TypeError):
        Checksums(tmp_path).of([path])


HUB = """
import json, socket, sys
def no_network(*args, **kwargs):
    print("NETWORK")
    raise socket.gaierror("no network")
socket.getaddrinfo = socket.socket.connect = no_network
import polars as pl
from lpact import plan_features
from lpact.errors import FeatureError
for name, revision in json.loads(sys.argv[1]):
    try:
        plan = plan_features(name, pl.DataFrame({"word": ["The"]}), sys.argv[2], revision=revision)
        print(json.dumps([plan.folder.revision, str(plan.folder.path), str(plan.sets[0].path), plan.sets[0].about]))
    except FeatureError as error:
        print(json.dumps(str(error)))
"""


def ask_hub(home: Path, out: Path, *asked: tuple[str, str]) -> list[object]:
    """Find models in a process whose hub library knows this cache alone."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGINGFACE"))}
    env |= {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    args = [sys.executable, "-c", HUB, json.dumps(asked), str(out)]
    done = subprocess.run(args, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "NETWORK" not in lines
    return [json.loads(line) for line in lines]


def test_hub_names_without_a_local_copy(tmp_path: Path) -> None:
    plain, revised = ask_hub(tmp_path, tmp_path / "out", ("org/name", ""), ("gpt2", "v2"))
    assert isinstance(plain, str)
    assert "'org/name' is neither a local folder nor available from the hub" in plain
    assert "HF_HUB_OFFLINE" in plain
    assert "`hf download org/name --local-dir DIR`" in plain
    assert "`--model DIR`" in plain
    assert "[run.models]" in plain
    assert isinstance(revised, str)
    assert "revision 'v2'" in revised
    assert "`hf download gpt2 --revision v2 --local-dir DIR`" in revised
    assert not (tmp_path / "out").exists()


FIRST, SECOND = "1" * 40, "2" * 40


def test_a_snapshot_in_the_local_cache_is_found_offline(gpt2: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--org--name"
    for commit, branch in ((FIRST, "main"), (SECOND, "other")):
        shutil.copytree(gpt2, repository / "snapshots" / commit)
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / branch).write_text(commit)
    out = tmp_path / "out"
    asked = [("org/name", r) for r in ("", "main", "other", SECOND, "none")]
    main, named, other, commit, none = ask_hub(tmp_path, out, *asked)
    assert isinstance(main, list)
    assert isinstance(other, list)
    assert main == named
    assert other == commit
    assert main[0] == FIRST
    assert main[1] == str(repository / "snapshots" / FIRST)
    assert Path(main[2]).parent == out / "org--name"
    assert main[3]["revision"] == FIRST
    assert other[0] == SECOND
    assert other[3]["files"] == main[3]["files"]
    assert other[2] != main[2]  # the same bytes under another revision are kept apart
    assert "revision 'none'" in str(none)


def test_a_snapshot_without_safe_weights_is_refused(gpt2: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--org--name"
    snapshot = Path(shutil.copytree(gpt2, repository / "snapshots" / FIRST))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(FIRST)
    (snapshot / "model.safetensors").rename(snapshot / "pytorch_model.bin")
    (said,) = ask_hub(tmp_path, tmp_path / "out", ("org/name", ""))
    assert "pytorch_model.bin" in str(said)
    assert "which can run code" in str(said)


def test_planning_loads_no_model(gpt2: Path, tmp_path: Path) -> None:
    plan = plan_features(gpt2, WORDS, tmp_path, contexts=("full", "untrained"))
    assert plan.folder.sizes() == (3, 32)
    assert [s.n_done for s in plan.unfinished] == [0] * 6
    assert [p.name for p in tmp_path.iterdir()] == ["checksums.json"]
