"""Finds the files of a dataset folder without reading arrays; what is unknown is an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lpact.datasets._files.strict import NAME_PATTERN, ErrorType
from lpact.datasets.base import FeatureKey
from lpact.errors import FeatureError, InputError, RecordingError, StimulusError, did_you_mean

CONTEXTS = ("full", "sentence_reset", "reversed", "shuffled", "untrained", "static")
TABLES = ("words.tsv", "items.tsv")
STIMULUS_FILES = (*TABLES, "mechanisms.tsv", "envelope.npy", "envelope.toml", "audio.toml")
RECORDING_FILES = ("recording.toml", "neural.npy", "units.tsv")
MEDIA = ("audio", "video")
_FEATURE_FILE = re.compile(r"layer-(0|[1-9][0-9]{0,5})(?:_draw-(0|[1-9][0-9]{0,5}))?\.npy")


@dataclass(frozen=True)
class StimulusFiles:
    """Files of one stimulus, by name; feature files by key; media files by kind; transcripts by story."""

    folder: Path
    files: dict[str, Path]
    features: dict[FeatureKey, Path]
    media: dict[str, Path]
    transcripts: dict[str, Path]

    @property
    def table(self) -> Path:
        """``words.tsv``, or ``items.tsv`` for items that are not words."""
        return next(self.files[name] for name in TABLES if name in self.files)

    def all_files(self) -> list[Path]:
        """Return every file."""
        return [
            *self.files.values(),
            *self.features.values(),
            *self.media.values(),
            *self.transcripts.values(),
        ]


@dataclass(frozen=True)
class RecordingFiles:
    """Files of one recording, by name."""

    folder: Path
    files: dict[str, Path]


@dataclass(frozen=True)
class FolderLayout:
    """All files of a dataset folder."""

    root: Path
    dataset_toml: Path
    stimuli: dict[str, StimulusFiles]
    recordings: tuple[RecordingFiles, ...]

    def all_files(self) -> list[Path]:
        """Return every file that the dataset is made of."""
        files = [self.dataset_toml]
        for stimulus in self.stimuli.values():
            files += stimulus.all_files()
        for recording in self.recordings:
            files += recording.files.values()
        return files


def find_layout(root: Path) -> FolderLayout:
    """Find all files below the resolved folder ``root``.

    Other files may lie beside ``dataset.toml``; inside ``stimuli`` and ``recordings`` every name is
    part of the layout, so that a misspelt one is not overlooked. Names that start with a dot are
    ignored.
    """
    finder = _Finder(root)
    top = finder.entries(root, InputError)
    for name in ("dataset.toml", "stimuli", "recordings"):
        if name not in top:
            raise _missing(root / name, top, InputError)
    finder.require_kind(top["dataset.toml"], is_folder=False, error=InputError)
    return FolderLayout(
        root=root,
        dataset_toml=top["dataset.toml"],
        stimuli={
            folder.name: finder.stimulus(folder)
            for folder in finder.folders(top["stimuli"], StimulusError)
        },
        recordings=tuple(
            finder.recording(folder) for folder in finder.folders(top["recordings"], RecordingError)
        ),
    )


class _Finder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def entries(self, folder: Path, error: ErrorType) -> dict[str, Path]:
        """Return what lies in ``folder``, by name, sorted; nothing may lead out of the root."""
        self.require_kind(folder, is_folder=True, error=error)
        found = {}
        for path in sorted(folder.iterdir()):
            if path.name.startswith("."):
                continue
            target = _resolve(path)
            if target is None or not target.is_relative_to(self.root):
                raise error(
                    "a link leads out of the dataset's folder",
                    where=str(path),
                    got=f"a link to {target or 'itself'}",
                    expected=f"a file inside {self.root}",
                    remedy="copy the file into the folder",
                )
            found[path.name] = path
        return found

    def require_kind(self, path: Path, *, is_folder: bool, error: ErrorType) -> None:
        if path.is_dir() != is_folder or not path.exists():
            raise error(
                f"a {'folder' if is_folder else 'file'} was expected here",
                where=str(path),
                got="a folder" if path.is_dir() else "a file" if path.exists() else "a broken link",
                expected="a folder" if is_folder else "a file",
                remedy="see docs/how-to/bring-your-own-arrays.md for the layout",
            )

    def folders(self, parent: Path, error: ErrorType) -> list[Path]:
        """Return the folders in ``parent``, whose names can stand in tables."""
        folders = list(self.entries(parent, error).values())
        for folder in folders:
            self.require_kind(folder, is_folder=True, error=error)
            if not NAME_PATTERN.fullmatch(folder.name):
                raise error(
                    "the name of a folder is not valid",
                    where=str(folder),
                    got=folder.name,
                    expected="letters, digits, '.', '_' and '-'; at most 80",
                    remedy="rename the folder",
                )
        return folders

    def recording(self, folder: Path) -> RecordingFiles:
        entries = self.entries(folder, RecordingError)
        self._require(folder, entries, RECORDING_FILES, RecordingError)
        self._refuse_others(folder, entries, RECORDING_FILES, RecordingError)
        return RecordingFiles(folder, entries)

    def stimulus(self, folder: Path) -> StimulusFiles:
        entries = self.entries(folder, StimulusError)
        features = self._features(entries.pop("features")) if "features" in entries else {}
        transcripts = (
            self._transcripts(entries.pop("transcripts")) if "transcripts" in entries else {}
        )
        media: dict[str, Path] = {}
        for name in list(entries):
            kind = Path(name).stem
            is_medium = kind in MEDIA and Path(name).suffix and name not in STIMULUS_FILES
            if is_medium and kind not in media:
                media[kind] = entries.pop(name)
                self.require_kind(media[kind], is_folder=False, error=StimulusError)
        self._refuse_others(folder, entries, STIMULUS_FILES, StimulusError)
        pair = ("envelope.npy", "envelope.toml")
        table = "items.tsv" if "items.tsv" in entries else "words.tsv"
        needed = (table, *(pair if any(name in entries for name in pair) else ()))
        if all(name in entries for name in TABLES):
            raise StimulusError(
                "a stimulus has a table of words and a table of items",
                where=str(folder),
                got=", ".join(TABLES),
                expected="one of them",
                remedy="keep words.tsv where the items are words, items.tsv where they are not",
            )
        self._require(folder, entries, needed, StimulusError)
        if "audio.toml" in entries and "audio" not in media:
            raise _missing(folder / "audio.wav", entries, StimulusError)
        return StimulusFiles(folder, entries, features, media, transcripts)

    def _transcripts(self, parent: Path) -> dict[str, Path]:
        """Texts of the stories, one file each, named after the story."""
        found = {}
        for path in self.entries(parent, StimulusError).values():
            self.require_kind(path, is_folder=False, error=StimulusError)
            if path.suffix != ".txt":
                raise StimulusError(
                    "a transcript is not a text file",
                    where=str(path),
                    got=path.name,
                    expected="<story_id>.txt for each story",
                    remedy="rename or remove the file",
                )
            found[path.stem] = path
        return found

    def _features(self, parent: Path) -> dict[FeatureKey, Path]:
        found: dict[FeatureKey, Path] = {}
        for model in self.folders(parent, FeatureError):
            for context in self.folders(model, FeatureError):
                if context.name not in CONTEXTS:
                    raise FeatureError(
                        "a context of features is unknown",
                        where=str(context),
                        got=context.name,
                        expected="one of " + ", ".join(CONTEXTS),
                        remedy=did_you_mean(context.name, CONTEXTS),
                    )
                for path in self.entries(context, FeatureError).values():
                    key = self._feature_key(model.name, context.name, path)
                    if key in found:
                        raise FeatureError(
                            "two files hold the same features",
                            where=str(path),
                            got=f"{found[key].name} and {path.name}",
                            expected="one file for draw 0",
                            remedy="remove one of them",
                        )
                    found[key] = path
        return found

    def _feature_key(self, model: str, context: str, path: Path) -> FeatureKey:
        self.require_kind(path, is_folder=False, error=FeatureError)
        match = _FEATURE_FILE.fullmatch(path.name)
        if match is None:
            raise FeatureError(
                "the name of a feature file is not valid",
                where=str(path),
                got=path.name,
                expected="layer-<number>.npy or layer-<number>_draw-<number>.npy",
                remedy="rename the file",
            )
        return FeatureKey(model, int(match[1]), context, int(match[2] or 0))

    def _require(
        self, folder: Path, entries: dict[str, Path], names: Sequence[str], error: ErrorType
    ) -> None:
        for name in names:
            if name not in entries:
                raise _missing(folder / name, entries, error)

    def _refuse_others(
        self, folder: Path, entries: dict[str, Path], known: Sequence[str], error: ErrorType
    ) -> None:
        for name, path in entries.items():
            if name not in known:
                raise error(
                    "a file is not part of the layout",
                    where=str(folder / name),
                    got=name,
                    expected="only " + ", ".join(known),
                    remedy=f"rename or remove it; {did_you_mean(name, known)}",
                )
            self.require_kind(path, is_folder=False, error=error)


def _resolve(path: Path) -> Path | None:
    """Return what ``path`` leads to, or None for links in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return None


def _missing(path: Path, entries: dict[str, Path], error: ErrorType) -> InputError:
    return error(
        f"'{path.name}' is missing",
        where=str(path),
        got="here: " + (", ".join(entries) or "nothing"),
        expected=f"'{path.name}'",
        remedy=f"add it; here, {did_you_mean(path.name, entries)}",
    )
