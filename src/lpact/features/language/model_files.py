"""Files of a model: a folder, a GGUF file, or a name on the hub. Nothing is unpickled, and no code is run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from lpact import extras
from lpact.errors import FeatureError
from lpact.store import atomic_write_bytes, file_state, sha256_file

require = partial(extras.require, extra="lm")
"""Import a package that reads language models."""

Kind = Literal["causal", "masked"]

TINY = "lpact-tiny"
"""The small model that comes with lpact."""

_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_MODELS = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", *_MODELS)
_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "vocab.txt", "merges.txt"),
    *_MODELS,
)
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers")
_WIDTH = ("hidden_size", "n_embd", "d_model")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
WANTED = ("config.json", "*.safetensors", "*.safetensors.index.json", *_TOKENIZER_FILES)
"""Files of a hub model that are fetched: configuration, weights, tokenizer."""


@dataclass(frozen=True)
class ModelFolder:
    """Files of one model, all on this machine. ``gguf`` names the file where weights are GGUF."""

    name: str
    path: Path
    revision: str = ""
    gguf: str | None = None

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The model's configuration as it is stored; empty for GGUF."""
        if self.gguf is not None:
            return {}
        return _read_json(self.path / "config.json", self.name)

    @cached_property
    def weights(self) -> tuple[Path, ...]:
        """Weight files, in a fixed order."""
        if self.gguf is not None:
            return (self.path / self.gguf,)
        whole = self.path / "model.safetensors"
        if whole.is_file():
            return (whole,)
        index = self.path / "model.safetensors.index.json"
        places = _read_json(index, self.name).get("weight_map")
        stored = places.values() if isinstance(places, dict) and places else ["nothing"]
        names = sorted({str(name) for name in stored})
        for name in names:
            if Path(name).name != name or not (self.path / name).is_file():
                what = f"the weights of the model '{self.name}' are not complete"
                raise _incomplete(what, index, f"'{name}', which is not a file of the folder")
        return tuple(self.path / name for name in names)

    @cached_property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """Tokenizer files; for GGUF, none: the tokenizer is in the weights."""
        if self.gguf is not None:
            return ()
        return tuple(self.path / n for n in _TOKENIZER_FILES if (self.path / n).is_file())

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that numbers depend on."""
        config = () if self.gguf is not None else (self.path / "config.json",)
        return (*config, *self.tokenizer_files, *self.weights)

    def sizes(self) -> tuple[int, int]:
        """Number of layers after the embedding, and columns of a hidden state, from the configuration alone."""
        config = self.config.get("text_config", self.config)
        layers, width = ([config[n] for n in names if isinstance(config.get(n), int)] for names in (_LAYERS, _WIDTH))
        if layers and width:
            return layers[0], width[0]
        return self._sizes_in_transformers

    @cached_property
    def _sizes_in_transformers(self) -> tuple[int, int]:
        """Cached, since the header of a GGUF file takes seconds."""
        config = read_config(self)
        text = config.get_text_config() if hasattr(config, "get_text_config") else config
        return int(text.num_hidden_layers), int(text.hidden_size)


def declared_kind(architectures: Sequence[object]) -> Kind | None:
    """How a model predicts, by the names of its architectures; None if they do not say."""
    names = " ".join(map(str, architectures))
    if "MaskedLM" in names:
        return "masked"
    return "causal" if "CausalLM" in names or "LMHead" in names else None


def pretrained(folder: ModelFolder) -> dict[str, Any]:
    """Arguments of ``from_pretrained``: files of this machine alone, and no code of the model."""
    place: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    if folder.gguf is not None:
        require("gguf", extra="gguf")
        place["gguf_file"] = folder.gguf
    return {"pretrained_model_name_or_path": str(folder.path), **place}


def read_config(folder: ModelFolder) -> Any:
    """The model's configuration as transformers understands it."""
    return require("transformers").AutoConfig.from_pretrained(**pretrained(folder))


def find_model(name: str, *, revision: str = "", folder: Path | None = None) -> ModelFolder:
    """Find a model by folder, GGUF file, built-in name or hub name.

    A ``folder`` that the user points to wins over the name.
    """
    if folder is not None:
        return _local(name, folder)
    if name == TINY:
        return _local(name, Path(__file__).parent / "tiny")
    path = Path(name).expanduser()
    if path.exists():
        return _local(name, path)
    if not _HUB_NAME.fullmatch(name) or name.endswith(".gguf"):
        raise _no_model(name, path)
    return _from_hub(name, revision)


def missing_here(name: str, *, revision: str = "", folder: Path | None = None) -> str:
    """Say what is missing on this machine before `find_model` finds a model; empty if nothing is."""
    if folder is not None:
        return "" if folder.exists() else f"its folder {folder} does not exist"
    if name == TINY or Path(name).expanduser().exists():
        return ""
    if importlib.util.find_spec("huggingface_hub") is None:
        return "the optional part 'lm' of lpact is not installed: pip install 'lpact[lm]'"
    hub = require("huggingface_hub")
    # A path means that it was fetched before.
    found = hub.try_to_load_from_cache(name, "config.json", revision=revision or None)
    if isinstance(found, str):
        return ""
    if "/" not in name:
        return (
            f"no folder is given for it (--model {name}=FOLDER, or [run.models]); "
            f"a run would ask the hub for a model named '{name}'"
        )
    return f"hub model {name} is not on this machine; a run fetches it"


def _local(name: str, path: Path) -> ModelFolder:
    if path.is_file() and path.suffix == ".gguf":
        return ModelFolder(name, path.parent.resolve(), gguf=path.name)
    if not path.is_dir():
        raise _no_model(name, path)
    found = path.resolve()
    # A snapshot in the hub's local copy is named after its commit.
    snapshot = found.parent.name == "snapshots" and found.parents[1].name.startswith("models--")
    return _checked(ModelFolder(name, found, found.name if snapshot else ""))


def _no_model(name: str, path: Path) -> FeatureError:
    return FeatureError(
        f"the model '{name}' does not exist",
        where=str(path),
        got="a file" if path.exists() else "no such folder or file",
        expected="a folder with config.json and weights in safetensors, a GGUF file, or a hub name",
        remedy="check the path",
    )


def _checked(folder: ModelFolder) -> ModelFolder:
    """The folder with its weights found; pickled weights, adapters and files elsewhere are refused."""
    path, name = folder.path, folder.name
    _refuse_other_files(folder)
    if any((path / n).is_file() for n in ("model.safetensors", "model.safetensors.index.json")):
        if not (path / "config.json").is_file():
            what = f"the folder of the model '{name}' has no configuration"
            raise _incomplete(what, path / "config.json", "no such file")
        if not any((path / n).is_file() for n in _VOCABULARIES):
            what = f"the folder of the model '{name}' has no tokenizer"
            raise _incomplete(what, path, "none of " + ", ".join(_VOCABULARIES))
        return folder
    gguf = sorted(path.glob("*.gguf"))
    if len(gguf) == 1:
        return ModelFolder(name, path, folder.revision, gguf[0].name)
    pickled = sorted(p.name for pattern in _PICKLED for p in path.glob(pattern))
    got = f"{len(gguf)} GGUF files" if gguf else "no weights"
    remedy = "name the GGUF file itself" if gguf else "fetch the model's *.safetensors files"
    if pickled and not gguf:
        got = f"pickled weights only ({', '.join(pickled[:3])}), which can run code when they are read"
        remedy = (
            "fetch a revision with *.safetensors files; or, if you trust the source, load it with transformers "
            "and write the folder with save_pretrained"
        )
    raise FeatureError(
        f"the model '{name}' has no weights that can be read safely",
        where=str(path),
        got=got,
        expected="model.safetensors, or model.safetensors.index.json with its files, or one GGUF file",
        remedy=remedy,
    )


def _refuse_other_files(folder: ModelFolder) -> None:
    """Raise if transformers would read files that are not checked and recorded here: an adapter, or files elsewhere."""
    settings = (("config.json", "transformers_weights"), ("tokenizer_config.json", "fast_tokenizer_files"))
    found = []
    if (folder.path / "adapter_config.json").is_file():
        found.append(("adapter_config.json", "an adapter"))
    for name, option in settings:
        path = folder.path / name
        if path.is_file() and (value := _read_json(path, folder.name).get(option)):
            found.append((f"{name}, '{option}'", repr(value)))
    if found:
        raise FeatureError(
            f"the model '{folder.name}' depends on other files",
            where=str(folder.path / found[0][0]),
            got=found[0][1],
            expected="a whole model: weights in model.safetensors and a tokenizer in tokenizer.json",
            remedy="load the model with transformers, merge an adapter into it, and write the folder with "
            "save_pretrained",
        )


def _from_hub(name: str, revision: str) -> ModelFolder:
    """A local snapshot of a hub model: configuration, tokenizer and safetensors only."""
    hub = require("huggingface_hub")
    try:
        path = hub.snapshot_download(
            name, revision=revision or None, allow_patterns=list(WANTED), ignore_patterns=["*/*", "consolidated*"]
        )
    except Exception as error:  # the library's own, the network's and the disk's
        offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
        at = f" --revision {revision}" if revision else ""
        raise FeatureError(
            f"the model '{name}' is neither a local folder nor available from the hub",
            where=name + (f", revision '{revision}'" if revision else ""),
            got="offline mode (HF_HUB_OFFLINE), no local copy" if offline else _first_line(error),
            expected="a folder, or a hub name that can be fetched or was fetched before",
            remedy=f"on a machine with access, run `hf download {name}{at} --local-dir DIR`, copy DIR here, and name "
            f"it: `--model DIR`, or in a study file `[run.models]` with the model's name",
        ) from error
    snapshot = Path(path)
    return _checked(ModelFolder(name, snapshot, snapshot.name))


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else 'no message'}"


def _read_json(path: Path, name: str) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError(f"{type(values).__name__}, not a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        what = f"a file of the model '{name}' cannot be read"
        raise _incomplete(what, path, _first_line(error)) from error
    return values


def _incomplete(what: str, where: Path, got: str) -> FeatureError:
    return FeatureError(what, where=str(where), got=got, remedy="fetch the model again, with all its files")


class Checksums:
    """SHA-256 of files, cached by path, size and times of change, in memory and in a file of ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "checksums.json"
        self._known: dict[str, str] = {}

    def of(self, files: Sequence[Path]) -> dict[Path, str]:
        """Checksums of files; only unknown ones are computed."""
        found, new, looked = {}, False, False
        for path in files:
            place = "|".join(map(str, (path.resolve(), *file_state(path))))
            if place not in self._known and not looked:
                self._known, looked = self._read() | self._known, True
            if place not in self._known:
                self._known[place] = sha256_file(path)
                new = True
            found[path] = self._known[place]
        if new:
            self._write()
        return found

    def _read(self) -> dict[str, str]:
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(k): str(v) for k, v in stored.items()} if isinstance(stored, dict) else {}

    def _write(self) -> None:
        text = json.dumps(self._read() | self._known, indent=1, sort_keys=True)
        atomic_write_bytes(self._path, text.encode())
