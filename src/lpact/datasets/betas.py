"""Readers of responses per trial (betas) with a table of trials: GLMsingle's or nilearn's output, and BOLD Moments.

Stimuli are items in sets (training, test); the k-th presentations of a set's items to a subject are a recording.
docs/how-to/datasets/betas.md shows the folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import polars as pl
from pydantic import model_validator

from lpact.codes import Reason
from lpact.datasets._bids import DESCRIPTION, entities, read_description
from lpact.datasets._files.stored import StoredArray
from lpact.datasets._files.strict import MISSING, TextTable, invalid
from lpact.datasets._fmri import elsewhere, named_file
from lpact.datasets._fmri_volumes import INDIVIDUAL, BoldHeader, BoldSeries, Parcels, Space, UnitFiles, read_bold_header
from lpact.datasets._folder_dataset import UNKNOWN, FolderDataset, check_known, no_audio
from lpact.datasets._vertex_labels import HEMI, HEMISPHERES, read_surface, read_vertex_labels
from lpact.datasets.arrays.formats import open_array_file
from lpact.datasets.base import (
    ITEM,
    DatasetInfo,
    Epochs,
    Findings,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    Units,
    items_table,
)
from lpact.datasets.catalogue import Expected, optional, published, required
from lpact.datasets.folder import offered_features
from lpact.errors import ConfigError, InputError, RecordingError, StimulusError, require_known
from lpact.math.columns import mean_of_finite
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions

SUBJECT, SET = "subject", "set"
PLACES = (SUBJECT, "session", "run", SET)
"""Placeholders in the names of files of betas."""

STIMULI = "stimuli"
"""Set of all items where none is named."""

READ_BYTES = 64 * 2**20
"""Bytes of an array to read at a time."""

_DIGITS = re.compile(r"(\d+)")
_PLACE = re.compile(r"\{(\w*)\}")
_GLM = (
    "derivatives/versionB/fsLR32k/GLM/sub-{subject}/prepared_betas/sub-{subject}_organized_betas_task-{set}_normalized"
)
_HEMISPHERE = re.compile(r"^(?:[LR]|[lr]h)[_-]|[_-](?:[LR]|[lr]h)$|_ROI$")


class BetasOptions(PluginOptions):
    """Where betas and trials are, and which units are read."""

    files: str = ""
    """Files of betas, from the dataset's folder: `glm/sub-{subject}_ses-{session}_betas.npy`. `{subject}` is needed;
    `{session}`, `{run}` and `{set}` (train, test) may be parts of the name. Arrays (NumPy, HDF5, MATLAB, Zarr), or
    images with one volume per trial (`.nii`, `.nii.gz`).
    """
    trials: str = ""
    """Tables of trials (TSV, or CSV by its ending), with the placeholders of `files`, and `*`: the tables that match
    for a file of betas follow each other, `run-2` before `run-10`. One row per trial, in the order of the betas.
    """
    item_column: str = ITEM
    """Column of the tables with the name of the stimulus. Rows without one (`n/a`) are not trials."""
    set_column: str = ""
    """Column with the set of the stimulus. Empty: `{set}` in `files`, or else all stimuli are one set, `stimuli`."""
    axes: Literal["trial,unit", "unit,trial", "item,repetition,unit"] = "trial,unit"
    """Axes of arrays; others must have the length 1. With `item,repetition,unit`, tables have a row per item."""
    key: str = ""
    """Name of the array in its file, such as GLMsingle's `betasmd`. Empty: the only one."""
    atlas: str = ""
    """Regions of the units, from the dataset's folder or absolute; `{subject}` is that of the betas. For arrays,
    `.dlabel.nii`, `.label.gii` (`{hemi}` is L, then R), or a table with one row per unit and the column `region`; for
    volumes, a label image. Units without a region are left out.
    """
    atlas_labels: str = ""
    """Table with the columns `index` and `name` for a label image. Empty: regions are called `label-<index>`."""
    surface: str = ""
    """Surface of the vertices of arrays, `.surf.gii` with `{hemi}` in its name, in the space of the atlas: where units
    are on maps.
    """
    mask: str = ""
    """Mask image: the voxels of volumes that are units. Empty: those of the atlas."""
    resample_atlas: bool = False
    """Bring atlas and mask to the grid of the volumes by nearest neighbours. Otherwise another grid is an error."""
    merge_hemispheres: bool = False
    """Call regions `L_V1_ROI`, `R_V1_ROI`, `lh-V1` and the like `V1`."""
    regions: tuple[str, ...] = ()
    """Regions to read. Empty: all."""
    subjects: tuple[str, ...] = ()
    """Subjects to read, as in `{subject}`. Empty: all."""
    space: str = ""
    """Space of the units, such as `fsLR32k`. Empty: `space-` in the names of files. Units of a standard space are
    comparable between subjects; without a space, or in a subject's own (`T1w`), they are not.
    """
    normalise: Literal["none", "session", "run"] = "none"
    """`session`, `run`: from every unit its mean over the trials of a session (or run) is subtracted, and the rest is
    divided by its standard deviation over them; `{session}` (or `{run}`) must be in `files`.
    """
    normalise_set: str = ""
    """Set whose trials give these means and deviations, such as `train`. Empty: all sets."""

    @model_validator(mode="after")
    def _check(self) -> BetasOptions:
        if self.surface and HEMI not in self.surface:
            raise ValueError("surface lacks {hemi}, which is L, then R, in the names of the two files")
        if self.surface and self.files.endswith((".nii", ".nii.gz")):
            raise ValueError("surface is for arrays of vertices, and these files are volumes; leave it out")
        if self.normalise_set and self.normalise == "none":
            raise ValueError('normalise_set without normalise; set normalise = "session" or "run"')
        return self


@dataclass(frozen=True, eq=False)
class BetaArray:
    """An array of betas; ``axes`` are the places of its row, repetition (if any) and unit axis."""

    stored: StoredArray
    axes: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Length of the axis of trials or items."""
        return self.stored.shape[self.axes[0]]

    @property
    def n_repetitions(self) -> int:
        """Length of the axis of repetitions; 1 without one."""
        return self.stored.shape[self.axes[1]] if len(self.axes) == 3 else 1

    @property
    def n_units(self) -> int:
        """Length of the axis of units."""
        return self.stored.shape[self.axes[-1]]

    def __str__(self) -> str:
        return f"{self.n_units} units"

    def read(self, rows: IntArray, repetition: int, columns: IntArray) -> FloatArray:
        """Return the betas of these rows and columns, reading the file in pieces along its first axis."""
        stored, (row_axis, *_, unit_axis) = self.stored, self.axes
        index = [slice(None)] * len(stored.shape)
        if len(self.axes) == 3:
            index[self.axes[1]] = slice(repetition, repetition + 1)
        by_row = row_axis < unit_axis
        wanted, others = (rows, columns) if by_row else (columns, rows)
        first_axis, last_axis = sorted((row_axis, unit_axis))
        out = np.empty((wanted.size, others.size))
        n = stored.shape[first_axis]
        step = n if stored.whole else max(1, READ_BYTES * n // max(1, stored.n_bytes))
        for first in range(0, n, step):
            inside = np.flatnonzero((wanted >= first) & (wanted < first + step))
            if inside.size:
                index[first_axis] = slice(first, min(first + step, n))
                part = stored.read(tuple(index)).reshape(-1, stored.shape[last_axis])
                out[inside] = part[np.ix_(wanted[inside] - first, others)]
        return out if by_row else out.T


@dataclass(frozen=True, eq=False)
class BetaFile:
    """A file of betas, its tables, and (item, set) of every row."""

    path: Path
    places: Mapping[str, str]
    """Placeholders of its name."""
    tables: tuple[Path, ...]
    trials: tuple[tuple[str, str], ...]
    data: BetaArray | BoldHeader

    @property
    def subject(self) -> str:
        """Whose betas they are."""
        return self.places[SUBJECT]

    @property
    def n_repetitions(self) -> int:
        """Repetitions in each row."""
        return self.data.n_repetitions if isinstance(self.data, BetaArray) else 1


Rows: TypeAlias = dict[tuple[BetaFile, int], list[tuple[int, int]]]
"""Rows of a recording: by file and repetition, (item's index in its set, row of the file)."""


def _in_order(paths: Iterable[Path]) -> list[Path]:
    """Paths in the order of their numbers: ``run-2`` before ``run-10``."""

    def key(path: Path) -> list[str | int]:
        return [int(part) if part.isdecimal() else part for part in _DIGITS.split(str(path))]

    return sorted(paths, key=key)


class Betas(FolderDataset["BetasOptions", Rows]):
    """Responses per trial with a table of trials; see docs/how-to/datasets/betas.md."""

    name = "betas"
    summary = "responses per trial (GLMsingle, nilearn) with tables of trials, and an atlas"
    Options = BetasOptions
    contents = "files of betas, and tables of their trials"
    chosen_by = "files and subjects"
    extra = "fmri"
    layout: ClassVar[tuple[Expected, ...]] = (
        required("betas", "**/*.nii*", "**/*.npy", "**/*.h*5", "**/*.npz", "**/*.mat", "**/*.zarr"),
        required("trials", "**/*.tsv", "**/*.csv"),
        optional("description", DESCRIPTION),
    )
    published_info: ClassVar = DatasetInfo("betas per trial", "not stated", "not stated")

    def _open(self) -> None:
        self.info = read_description(self.folder, self.published_info)
        self._files = [self._beta_file(path, places) for path, places in self._matching()]
        self._first = {file.subject: file for file in reversed(self._files)}
        self._units: dict[str, tuple[Units, IntArray, Parcels | None, Findings]] = {}
        self._scales: dict[tuple[str, ...], tuple[FloatArray, FloatArray]] = {}
        self._items = self._sets()
        self._check_normalise()
        seen = Counter[tuple[str, str]]()
        found: dict[RecordingId, Rows] = {}
        for file in self._files:
            for row, (item, name) in enumerate(file.trials):
                for repetition in range(file.n_repetitions):
                    seen[file.subject, item] += 1
                    run = f"{name}-{seen[file.subject, item]:02d}"
                    rows = found.setdefault(RecordingId(file.subject, "1", run, name), {})
                    pair = (self._items[name][item], row)
                    rows.setdefault((file, repetition), []).append(pair)
        self._set_recordings(found.items())

    # --- files and trials ---

    def _matching(self) -> Iterator[tuple[Path, dict[str, str]]]:
        """Yield the files of betas of the chosen subjects, with the placeholders of their names."""
        template, options = self.options.files, self.options
        names = _PLACE.findall(template)
        if SUBJECT not in names or not {*names} <= {*PLACES}:
            expected = "a path with {subject}, and {session}, {run} and {set} if files differ in them"
            raise self._wrong_option("files", template, expected)
        pattern = re.escape(template).replace(r"\*", "[^/]*")
        for name in {*names}:
            place = re.escape(f"{{{name}}}")
            pattern = pattern.replace(place, f"(?P<{name}>[^/_]+)", 1)
            pattern = pattern.replace(place, f"(?P={name})")
        glob = _PLACE.sub("*", template)
        paths = _in_order(self.folder.glob(glob, RecordingError))
        fits = ((path, re.fullmatch(pattern, self.folder.relative(path))) for path in paths)
        found = [(path, fit.groupdict()) for path, fit in fits if fit]
        if not found:
            raise self._no_files(glob)
        known = {places[SUBJECT] for _, places in found}
        check_known(options.subjects, known, option="subjects", folder=self.folder)
        for path, places in found:
            if places[SUBJECT] in (options.subjects or known):
                yield path, places

    def _no_files(self, glob: str) -> InputError:
        found, remedy = "no such file", "download the files, or change the option files"
        if pickled := self.folder.glob(str(Path(glob).with_suffix(".pkl"))):
            found = f"{len(pickled)} pickled file(s), such as {pickled[0].name}"
            remedy = (
                "a pickled file can run code when it is opened, so none is read: if you trust them, convert them "
                "once, as the how-to of the reader shows"
            )
        expected = "files of betas that fit the option files"
        return invalid(self.folder.root / glob, found, expected, InputError, remedy)

    def _beta_file(self, path: Path, places: Mapping[str, str]) -> BetaFile:
        pattern = self._filled("trials", places)
        tables = _in_order(self.folder.glob(pattern, RecordingError))
        if not tables:
            expected = f"a table of its trials, {pattern}"
            remedy = "add the table, or change the option trials"
            raise invalid(f"{path}, option 'trials'", "no such table", expected, remedy=remedy)
        trials = [trial for table in tables for trial in self._trials(table, places)]
        data = self._open_betas(path)
        array = isinstance(data, BetaArray)
        n_rows = data.n_rows if isinstance(data, BetaArray) else data.n_volumes
        if n_rows != len(trials):
            row = "item" if array and self.options.axes.startswith("item") else "trial"
            shape = f" (shape {data.stored.shape})" if isinstance(data, BetaArray) else ""
            raise invalid(
                f"{path} and {', '.join(table.name for table in tables)}",
                f"{n_rows} {row}s in the file{shape}, {len(trials)} rows with a stimulus in the table",
                f"one row per {row}, in the same order",
                remedy="correct the table, or the options axes, trials and item_column",
            )
        return BetaFile(path, places, tuple(tables), tuple(trials), data)

    def _open_betas(self, path: Path) -> BetaArray | BoldHeader:
        if path.name.endswith((".nii", ".nii.gz")):
            return read_bold_header(path)
        names = self.options.axes.split(",")
        stored = open_array_file(path).array(self.options.key or None)
        axes = list(range(len(stored.shape)))
        if len(axes) > len(names):
            axes = [axis for axis in axes if stored.shape[axis] > 1]
        if len(axes) != len(names):
            raise invalid(
                stored.where,
                f"shape {stored.shape}",
                f"axes {self.options.axes}, and others of length 1 only",
                remedy="set the option axes, or name another array in the option key",
            )
        return BetaArray(stored, tuple(axes[::-1] if names[0] == "unit" else axes))

    def _trials(self, path: Path, places: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield item and set of every trial of a table."""
        items, sets = self.options.item_column, self.options.set_column
        table = TextTable(path, RecordingError)
        table.require([name for name in (items, sets) if name])
        cells = table.cells(sets) if sets else [places.get(SET, STIMULI)] * table.n_rows
        for row, (item, own) in enumerate(zip(table.cells(items), cells, strict=True)):
            if item not in MISSING:
                if own in MISSING:
                    raise table.wrong(sets, row, "the set of the stimulus")
                yield item, own

    def _sets(self) -> dict[str, dict[str, int]]:
        """Return the items of every set, sorted, with their indices."""
        set_of: dict[str, str] = {}
        for file in self._files:
            for item, name in file.trials:
                if set_of.setdefault(item, name) != name:
                    raise invalid(
                        ", ".join(map(str, file.tables)),
                        f"the stimulus '{item}' in the sets '{set_of[item]}' and '{name}'",
                        "one set per stimulus",
                        remedy="correct the tables, or the options set_column and files",
                    )
        found: dict[str, dict[str, int]] = {}
        for item in sorted(set_of):
            own = found.setdefault(set_of[item], {})
            own[item] = len(own)
        return found

    def _filled(self, option: str, places: Mapping[str, str]) -> str:
        """Fill what the placeholders of a file of betas are into an option."""
        template: str = getattr(self.options, option)
        filled = _PLACE.sub(lambda match: places.get(match[1], match[0]), template)
        if _PLACE.search(filled) or not template:
            expected = "a path; its placeholders may be " + ", ".join(f"{{{p}}}" for p in places)
            raise self._wrong_option(option, template, expected)
        return filled

    def _wrong_option(self, option: str, template: str, expected: str) -> ConfigError:
        return ConfigError(
            "the name of a file lacks a placeholder, or has an unknown one",
            where=f"dataset '{self.folder.name}', option '{option}'",
            got=repr(template),
            expected=expected,
            remedy="fix the option",
        )

    # --- units ---

    def _units_of(self, subject: str) -> tuple[Units, IntArray, Parcels | None, Findings]:
        """Units of a subject, their columns in the files, their voxels, and what was left out; read once."""
        if subject in self._units:
            return self._units[subject]
        options, file = self.options, self._first[subject]
        findings = Findings(self.folder.where(file.path))
        frame = options.space or entities(file.path).get("space", "")
        parcels: Parcels | None = None
        if isinstance(file.data, BetaArray):
            n_all = file.data.n_units
            ids, regions = tuple(f"u{i}" for i in range(n_all)), (UNKNOWN,) * n_all
            if options.atlas:
                labels = read_vertex_labels(self._named("atlas", subject))
                ids, regions = labels.of_columns(n_all, file.path)
            places = read_surface(self._named("surface", subject), ids) if options.surface else None
            units = Units(ids, regions, places, frame, frame not in INDIVIDUAL)
        else:
            # Without a mask, units are the voxels of the atlas.
            atlas, table, mask = (
                next(iter(self._named(name, subject)), None) for name in ("atlas", "atlas_labels", "mask")
            )
            made = UnitFiles(atlas, table, mask or atlas, options.resample_atlas, self.folder.name)
            parcels = made.parcels(file.data.space, file.path, frame)
            units, n_all = parcels.units, len(parcels.units.ids)
            findings += parcels.findings
        if options.merge_hemispheres:
            merged = tuple(_HEMISPHERE.sub("", name) for name in units.regions)
            units = replace(units, regions=merged)
        check_known(options.regions, units.regions, option="regions", folder=self.folder)
        named = {*units.regions} - ({UNKNOWN} if options.atlas else set())
        wanted = set(options.regions) or named
        kept = [i for i, region in enumerate(units.regions) if region in wanted]
        if not options.regions and len(kept) < n_all:
            findings.excluded(
                "region",
                Reason.UNIT_WITHOUT_PLACE,
                f"{n_all - len(kept)} of {n_all} units without a region in {Path(options.atlas).name}",
                "a region for every unit",
                "they are left out; name them in the atlas to keep them",
            )
        found = units.take(kept), np.array(kept, dtype=np.int64), parcels, findings
        self._units[subject] = found
        return found

    def _named(self, option: str, subject: str) -> tuple[Path, ...]:
        """Return the files of an option for a subject: one per hemisphere if ``{hemi}`` is in the name."""
        template = getattr(self.options, option)
        sides = HEMISPHERES if HEMI in template else ("",)
        places = [{SUBJECT: subject, "hemi": side} for side in sides]
        names = [self._filled(option, own) for own in places] if template else []
        return tuple(path for name in names if (path := named_file(self.folder, name)) is not None)

    # --- recordings and stimuli ---

    def _recording(self, recording_id: RecordingId, files: Rows) -> Recording:
        units, columns, parcels, left_out = self._units_of(recording_id.subject)
        n_items = len(self._items[recording_id.stimulus])
        values = np.full((n_items, len(units.ids)), np.nan)
        for (file, repetition), pairs in files.items():
            items, rows = np.array(pairs, dtype=np.int64).T
            values[items] = self._normalised(file, rows, repetition, columns, parcels)
        findings = Findings(self.folder.where(next(iter(files))[0].path))
        if n_missing := n_items - sum(map(len, files.values())):
            findings.note(
                ITEM,
                Reason.MISSING_SAMPLES,
                f"{n_missing} of {n_items} stimuli have fewer presentations, and no value here",
                "as many presentations of every stimulus of a set",
                'set preprocess.missing = "keep"; by default, units with missing values are left out',
            )
        signal = Epochs(values[None], (0.0,), "a.u.")
        where = f"{findings.where}, {recording_id.run}"
        return Recording(recording_id, signal, units, where, findings=(*findings, *left_out))

    def _raw(
        self,
        file: BetaFile,
        rows: IntArray,
        repetition: int,
        columns: IntArray,
        parcels: Parcels | None,
    ) -> FloatArray:
        """Betas as they are in the file."""
        self._check_units(file)
        if isinstance(file.data, BetaArray):
            return file.data.read(rows, repetition, columns)
        assert parcels is not None
        return BoldSeries(file.path, file.data, parcels).read(columns.tolist())[rows]

    def _normalised(
        self,
        file: BetaFile,
        rows: IntArray,
        repetition: int,
        columns: IntArray,
        parcels: Parcels | None,
    ) -> FloatArray:
        """Betas, less the mean of their session or run and divided by its standard deviation, if asked."""
        values = self._raw(file, rows, repetition, columns, parcels)
        if self.options.normalise == "none":
            return values
        group, wanted = self._group(file), self.options.normalise_set
        if group not in self._scales:
            parts = [
                self._raw(own, np.array(chosen, dtype=np.int64), k, columns, parcels)
                for own in self._files
                if self._group(own) == group
                for k in range(own.n_repetitions)
                if (chosen := [i for i, (_, name) in enumerate(own.trials) if wanted in ("", name)])
            ]
            if not parts:
                raise invalid(
                    file.path,
                    f"no trial of '{wanted}' in this {self.options.normalise}",
                    "trials that give the mean and the deviation",
                    remedy="change the option normalise_set, or leave it out",
                )
            trials = np.concatenate(parts)
            mean = mean_of_finite(trials)
            deviation = np.sqrt(mean_of_finite((trials - mean) ** 2))
            # A unit that is constant has no scale: its values are missing, and analyses count it as such.
            constant = (trials == trials[0]).all(axis=0)
            self._scales[group] = mean, np.where(constant, np.nan, deviation)
        mean, deviation = self._scales[group]
        return (values - mean) / deviation

    def _group(self, file: BetaFile) -> tuple[str, ...]:
        """The session or run of a file."""
        upto = PLACES.index(self.options.normalise) + 1
        return tuple(file.places.get(name, "") for name in PLACES[:upto])

    def _check_normalise(self) -> None:
        """Raise if options of `normalise` name a placeholder or set that there is not."""
        options = self.options
        if options.normalise != "none" and f"{{{options.normalise}}}" not in options.files:
            expected = f"{{{options.normalise}}} in the names of files, since normalise is '{options.normalise}'"
            raise self._wrong_option("files", options.files, expected)
        if options.normalise_set:
            where = f"dataset '{self.folder.name}', option 'normalise_set'"
            require_known(options.normalise_set, self._items, "set of stimuli", where=where)

    def _check_units(self, file: BetaFile) -> None:
        """Raise unless a file has the units of the first file of its subject."""
        own, first = (
            str(data) if isinstance(data, BetaArray) else data.space
            for data in (file.data, self._first[file.subject].data)
        )
        same = own.same(first) if isinstance(own, Space) and isinstance(first, Space) else own == first
        if not same:
            raise invalid(file.path, str(own), f"the units of the subject's other files: {first}")

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        items = pl.DataFrame({ITEM: list(self._items[stimulus_id])})
        table, unknown = items_table(items.with_columns(story_id=pl.lit(stimulus_id)), stimulus_id)
        home = self.folder.root / "stimuli" / stimulus_id
        files = {path.relative_to(home).as_posix(): path for path in self._features(stimulus_id)}
        return Stimulus(
            stimulus_id,
            table,
            f"dataset '{self.folder.name}', items of '{stimulus_id}'",
            features=offered_features(files),
            unknown=unknown,
            **no_audio(Reason.MEDIA_NOT_OFFERED, "the tables of trials name stimuli only"),
        )

    def _features(self, stimulus_id: str) -> list[Path]:
        return self.folder.glob(f"stimuli/{escape(stimulus_id)}/features/*/*/*.npy", StimulusError)

    def _unit_paths(self) -> set[Path]:
        options = ("atlas", "atlas_labels", "mask", "surface")
        return {p for subject in self._first for name in options for p in self._named(name, subject)}

    def _paths(self) -> Iterable[Path | None]:
        files = [path for file in self._files for path in (file.path, *file.tables)]
        features = [path for name in self._items for path in self._features(name)]
        units = [path for path in self._unit_paths() if path.is_relative_to(self.folder.root)]
        return [*files, *features, *units, self.folder.optional(DESCRIPTION)]

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read, with its checksum; an atlas from elsewhere by its name."""
        return super().source_files() + elsewhere(self.folder, self._unit_paths())


class BoldMomentsOptions(BetasOptions):
    """Where the converted betas and the atlas are."""

    files: str = f"{_GLM}.npy"
    """Files of betas, converted as the how-to shows."""
    trials: str = f"{_GLM}.tsv"
    """Tables of the videos of every set."""
    axes: Literal["trial,unit", "unit,trial", "item,repetition,unit"] = "item,repetition,unit"
    """Axes of arrays."""
    merge_hemispheres: bool = True
    """Call regions `L_V1_ROI` and `R_V1_ROI` `V1`."""
    space: str = "fsLR32k"
    """Space of the units."""


class BoldMoments(Betas):
    """The BOLD Moments Dataset (Lahner et al., 2024); see docs/how-to/datasets/bold_moments.md."""

    name = "bold_moments"
    summary = "BOLD Moments: fMRI of ten people who saw 1,102 short videos, 3 or 10 times each"
    Options = BoldMomentsOptions
    role = "secondary"
    layout, download = published("bold_moments")
    published_info = DatasetInfo("BOLD Moments", download.version, download.licence)
