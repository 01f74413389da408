"""Responses: checked arrays with names, and their constructors."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.ceilings import random_halves
from lpact.errors import InputError, did_you_mean, require_known
from lpact.math.types import FloatArray
from lpact.responses import read
from lpact.responses.read import STIMULUS, as_polars, numbers, places, some, texts

_PER_STIMULUS = ("stimulus_ids", "onset_s", "groups", "metadata")
_PER_UNIT = ("unit_ids", "regions", "coordinates_mm")


@dataclass(frozen=True, eq=False, repr=False)
class Responses:
    """Responses of one subject (or pool of units) to stimuli; checked, and read-only.

    Attributes
    ----------
    values
        [n_stimuli, n_repetitions, n_units], float64. NaN marks a missing value: a rejected trial, or a stimulus that
        was presented less often than others.
    stimulus_ids, unit_ids
        Distinct names of the rows and of the units.
    subject, session
        Whose responses they are. ``pooled`` means units of several subjects.
    regions
        Region of each unit.
    coordinates_mm, coordinate_frame
        [n_units, 3] in mm, NaN for a unit without, and the space they are in (``MNI152NLin2009cAsym``, ``head`` …).
    comparable_units
        Whether a unit of the same name is the same place in another subject, as sensors and regions are.
    onset_s
        [n_stimuli], when each stimulus was (first) presented, in seconds.
    groups
        Story, passage or sentence that each stimulus belongs to: splits keep a group together.
    words
        What was read or heard: columns ``stimulus_id`` (null for a word outside of all stimuli) and ``word``, often
        ``onset_s``, ``offset_s``, ``sentence_id``, ``story_id`` and annotations. A stimulus may have any number of
        words.
    metadata
        One row per stimulus, any columns.
    sampling_rate_hz
        Set where stimuli are consecutive samples of a continuous recording, such as scans.
    physical_unit
        What the numbers are in (``µV``, ``percent signal change`` …).
    """

    values: FloatArray
    stimulus_ids: tuple[str, ...]
    unit_ids: tuple[str, ...]
    subject: str = "01"
    session: str = "1"
    regions: tuple[str, ...] | None = None
    coordinates_mm: FloatArray | None = None
    coordinate_frame: str = ""
    comparable_units: bool = True
    onset_s: FloatArray | None = None
    groups: tuple[str, ...] | None = None
    words: pl.DataFrame | None = None
    metadata: pl.DataFrame | None = None
    sampling_rate_hz: float | None = None
    physical_unit: str = ""

    def __post_init__(self) -> None:
        self._set("values", numbers(self.values, self.where, "values"))
        if self.values.ndim != 3:
            raise self._error(
                "responses need three axes: stimuli, repetitions, units",
                got=f"shape {self.values.shape}",
                remedy="name the time points of the fourth axis: lpact.turing_test(…, lags_ms=…)"
                if self.values.ndim == 4
                else "reshape the array; if an axis of length 1 is missing, values[:, None] adds it",
            )
        if np.isinf(self.values).any():
            raise self._error(
                "responses contain infinite values",
                got=f"{int(np.isinf(self.values).sum())} of {self.values.size} values",
                remedy="correct the values, or set them to NaN if they are missing",
            )
        for name, axis in (("stimulus_ids", 0), ("unit_ids", 2)):
            self._set(name, texts(getattr(self, name)))
            self._check_length(name, axis)
            self._check_distinct(name)
        for name, axis in (("regions", 2), ("groups", 0)):
            if getattr(self, name) is not None:
                self._set(name, texts(getattr(self, name)))
                self._check_length(name, axis)
        for name, axis in (("coordinates_mm", 2), ("onset_s", 0)):
            if getattr(self, name) is not None:
                self._set(name, numbers(getattr(self, name), self.where, name))
                self._check_length(name, axis)
        if self.coordinates_mm is not None and self.coordinates_mm.shape[1:] != (3,):
            raise self._error(
                "coordinates need three columns",
                got=f"shape {self.coordinates_mm.shape}",
                remedy="give x, y and z in mm, NaN if they are unknown",
            )
        if self.metadata is not None:
            self._set("metadata", as_polars(self.metadata))
            self._check_length("metadata", 0)
        if self.words is not None:
            self._set("words", self._checked_words(as_polars(self.words)))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def where(self) -> str:
        """Name of these responses in messages."""
        return f"responses of subject '{self.subject}', session '{self.session}'"

    def _error(self, what: str, **more: object) -> InputError:
        return InputError(what, where=self.where, **more)  # type: ignore[arg-type]

    def _check_length(self, name: str, axis: int) -> None:
        found, expected = len(getattr(self, name)), self.values.shape[axis]
        if found != expected:
            noun = ("stimuli", "repetitions", "units")[axis]
            raise self._error(
                f"'{name}' and the values do not match",
                got=f"{found} entries",
                expected=f"{expected}, one for each of the {noun} (values have shape {self.values.shape})",
                remedy=f"give '{name}' in the order of the {noun}",
            )

    def _check_distinct(self, name: str) -> None:
        repeated = [key for key, n in Counter(getattr(self, name)).items() if n > 1]
        if repeated:
            raise self._error(
                f"'{name}' are not distinct",
                got=some(repeated),
                remedy="stack repeated presentations along the repetition axis"
                if name == "stimulus_ids"
                else "rename the units",
            )

    def _checked_words(self, words: pl.DataFrame) -> pl.DataFrame:
        if "word" not in words.columns:
            raise self._error(
                "the words have no column 'word'",
                got="columns " + ", ".join(words.columns),
                remedy=f"rename the column of the words; {did_you_mean('word', words.columns)}",
            )
        if STIMULUS not in words.columns:
            if words.height != self.n_stimuli:
                raise self._error(
                    "the stimulus of each word is not known",
                    got=f"{words.height} words for {self.n_stimuli} stimuli",
                    remedy=f"add the column '{STIMULUS}'",
                )
            return words.insert_column(0, pl.Series(STIMULUS, self.stimulus_ids, dtype=pl.String))
        words = words.with_columns(pl.col(STIMULUS).cast(pl.String))
        unknown = sorted(set(words[STIMULUS].drop_nulls()) - set(self.stimulus_ids))
        if unknown:
            raise self._error(
                "words belong to stimuli that have no responses",
                got=some(unknown),
                remedy="leave these words out, or set their 'stimulus_id' to null",
            )
        return words

    # Sizes

    @property
    def n_stimuli(self) -> int:
        """Rows."""
        return int(self.values.shape[0])

    @property
    def n_repetitions(self) -> int:
        """Most presentations of a stimulus."""
        return int(self.values.shape[1])

    @property
    def n_units(self) -> int:
        """Units."""
        return int(self.values.shape[2])

    @property
    def n_missing(self) -> int:
        """Values that are NaN."""
        return int(np.isnan(self.values).sum())

    def counts(self) -> npt.NDArray[np.int64]:
        """Count the repetitions with a value, [n_stimuli, n_units]."""
        return np.asarray(np.isfinite(self.values).sum(axis=1), dtype=np.int64)

    # Numbers

    def mean(self) -> FloatArray:
        """Average over the repetitions that have a value, [n_stimuli, n_units]; NaN where none has."""
        return _mean(self.values, np.isfinite(self.values))

    def split_halves(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Average two random halves of the repetitions, [n_stimuli, n_units] each.

        As in `lpact.ceilings.random_halves`: equal numbers of trials, and of an odd number one is left out. Both halves
        are NaN if a stimulus has fewer than two values. The reliability of all n repetitions is
        ``spearman_brown(r, n / (n // 2))`` of the correlation r of the halves; `lpact.ceilings.split_half` averages it
        over draws.
        """
        first, second = random_halves(np.isfinite(self.values), rng)
        return _mean(self.values, first), _mean(self.values, second)

    # Parts

    def select(
        self,
        *,
        regions: str | Iterable[str] | None = None,
        units: str | Iterable[str] | None = None,
        stimuli: str | Iterable[str] | None = None,
    ) -> Responses:
        """Keep some units or stimuli: those of the named regions, and units and stimuli in the order given."""
        kept = self
        if regions is not None:
            if self.regions is None:
                remedy = "give 'regions', one per unit, or select units"
                raise self._error("these responses have no regions", remedy=remedy)
            wanted = self._known("regions", regions)
            kept = kept._take(units=[i for i, r in enumerate(self.regions) if r in set(wanted)])
        if units is not None:
            names = kept._known("unit_ids", units)
            kept = kept._take(units=places(kept.unit_ids, names))
        if stimuli is not None:
            names = kept._known("stimulus_ids", stimuli)
            kept = kept._take(stimuli=places(kept.stimulus_ids, names))
        return kept

    def by_region(self) -> dict[str, Responses]:
        """Split the units by region, in the order in which regions first appear."""
        return {region: self.select(regions=region) for region in dict.fromkeys(self.regions or ())}

    def align(self, other: Responses) -> Responses:
        """Put these responses into the order of another's stimuli; both must have the same stimuli."""
        own, others = set(self.stimulus_ids), set(other.stimulus_ids)
        if own != others:
            lacking = {
                self.where: [i for i in other.stimulus_ids if i not in own],
                other.where: [i for i in self.stimulus_ids if i not in others],
            }
            raise self._error(
                "the two have different stimuli",
                got="; ".join(f"{who} lack {some(ids)}" for who, ids in lacking.items() if ids),
                remedy="keep the shared ones with select(stimuli=…), or use reindex(…) to mark the others as missing",
            )
        return self.select(stimuli=other.stimulus_ids)

    def reindex(self, stimulus_ids: Sequence[str]) -> Responses:
        """Return the responses to these stimuli, in this order; NaN for stimuli without responses."""
        known = self.select(stimuli=[i for i in stimulus_ids if i in set(self.stimulus_ids)])
        values = np.full((len(stimulus_ids), self.n_repetitions, self.n_units), np.nan)
        values[places(stimulus_ids, known.stimulus_ids)] = known.values
        blank = {"onset_s": None, "groups": None, "metadata": None}
        if known.n_stimuli == len(stimulus_ids):
            blank = {}
        return replace(known, values=values, stimulus_ids=tuple(stimulus_ids), **blank)  # type: ignore[arg-type]

    def _known(self, field: str, wanted: str | Iterable[str]) -> list[str]:
        names = [wanted] if isinstance(wanted, str) else [str(name) for name in wanted]
        known = set(getattr(self, field))
        for name in names:
            require_known(name, known, f"entry of {field}", where=self.where)
        return names

    def _take(self, units: Sequence[int] | None = None, stimuli: Sequence[int] | None = None) -> Responses:
        changed: dict[str, Any] = {}
        for axis, rows in ((2, units), (0, stimuli)):
            if rows is None:
                continue
            changed["values"] = np.take(changed.get("values", self.values), rows, axis=axis)
            along = _PER_UNIT if axis else _PER_STIMULUS
            changed |= {name: _at(getattr(self, name), rows) for name in along}
        if stimuli is not None and self.words is not None:
            kept = self.words.with_row_index("_row").join(
                pl.DataFrame(
                    {STIMULUS: changed["stimulus_ids"], "_at": range(len(stimuli))},
                    schema_overrides={STIMULUS: pl.String},
                ),
                on=STIMULUS,
            )
            changed["words"] = kept.sort("_at", "_row").drop("_at", "_row")
        if stimuli is not None and list(stimuli) != list(range(self.n_stimuli)):
            changed["sampling_rate_hz"] = None
        return replace(self, **changed)

    # Display

    def _facts(self) -> dict[str, str]:
        n_regions = len(set(self.regions or ()))
        facts = {
            "stimuli": str(self.n_stimuli),
            "repetitions": str(self.n_repetitions),
            "units": f"{self.n_units}" + (f" in {n_regions} region(s)" if n_regions else ""),
            "subject, session": f"{self.subject}, {self.session}",
            "missing values": f"{self.n_missing} of {self.values.size}",
        }
        if self.groups is not None:
            facts["groups"] = str(len(set(self.groups)))
        if self.words is not None:
            facts["words"] = str(self.words.height)
        return facts

    def __repr__(self) -> str:
        missing = f", {self.n_missing} values missing" if self.n_missing else ""
        return (
            f"Responses({self.n_stimuli} stimuli × {self.n_repetitions} repetitions × "
            f"{self.n_units} units, subject '{self.subject}'{missing})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>Responses</caption>{rows}</table>"

    # Constructors

    @classmethod
    def from_numpy(
        cls,
        values: npt.ArrayLike,
        *,
        stimulus_ids: Sequence[str] | None = None,
        unit_ids: Sequence[str] | None = None,
        **about: Any,
    ) -> Responses:
        """Name the rows and columns of an array.

        Parameters
        ----------
        values
            [n_stimuli, n_units], or [n_stimuli, n_repetitions, n_units].
        stimulus_ids, unit_ids
            Names; by default ``s0``, ``s1`` … and ``u0``, ``u1`` ….
        **about
            Other attributes of `Responses`: ``subject``, ``regions``, ``words`` ….
        """
        array = np.atleast_1d(values)
        if array.ndim == 2:
            array = array[:, None]
        stimuli = [f"s{i}" for i in range(array.shape[0])] if stimulus_ids is None else stimulus_ids
        units = [f"u{i}" for i in range(array.shape[-1])] if unit_ids is None else unit_ids
        return cls(array, texts(stimuli), texts(units), **about)

    @classmethod
    def from_pandas(cls, frame: Any, *, subject: str | None = None, **columns: Any) -> Responses:
        """Read a pandas or Polars table of one subject; the arguments are those of `by_subject`."""
        found = cls.by_subject(frame, subject=subject, **columns)
        if len(found) != 1:
            raise InputError(
                f"'{subject}' has several values" if found else "the table has no rows",
                where="Responses.from_pandas",
                got=some(list(found)),
                remedy="use Responses.by_subject, or select one subject first",
            )
        return next(iter(found.values()))

    @classmethod
    def by_subject(
        cls,
        frame: Any,
        *,
        subject: str | None = "subject",
        stimulus: str = "stimulus",
        unit: str | Sequence[str] = "unit",
        value: str = "value",
        repetition: str | None = None,
        session: str | None = None,
        region: str | None = None,
        group: str | None = None,
        onset: str | None = None,
        metadata: Sequence[str] = (),
        **about: Any,
    ) -> dict[str, Responses]:
        """Read a pandas or Polars table; arguments but ``frame`` and ``about`` name columns.

        Long tables have one row per stimulus and unit (and subject, and repetition): ``unit`` is the column with the
        unit's name, ``value`` the one with the response. Wide tables have one column per unit: ``unit`` lists them.
        All subjects get all stimuli of the table, in rising order where ids are numbers, else as they first appear.
        Combinations without a row, and cells without a number, are NaN. In a wide table without ``repetition``, rows
        of one stimulus are its repetitions, in order.
        """
        columns = {"group": group, "onset": onset, "region": region}
        columns |= {"subject": subject, "session": session, "repetition": repetition}
        named = {role: column for role, column in columns.items() if column is not None}
        found = read.from_table(as_polars(frame), stimulus, unit, value, named, metadata)
        return {name: cls(**(arguments | about)) for name, arguments in found.items()}

    @classmethod
    def from_xarray(
        cls,
        assembly: Any,
        *,
        stimulus: str = "stimulus_id",
        unit: str = "neuroid_id",
        repetition: str | None = "repetition",
        region: str | None = "region",
        subject: str | None = "subject",
        group: str | None = None,
        time_bin: int | None = None,
        **about: Any,
    ) -> Responses:
        """Read an xarray `DataArray` such as Brain-Score's assemblies: presentation × neuroid (× time_bin).

        Arguments name coordinates; those that the assembly lacks are ignored, except ``stimulus``. Units without a
        coordinate ``unit`` are numbered. Without ``repetition``, presentations of one stimulus are its repetitions,
        in order. ``time_bin`` chooses one of several time bins. ``subject=None`` pools the units of all subjects.
        Other coordinates that are the same in all presentations of a stimulus become metadata.
        """
        names = {"unit": unit, "repetition": repetition, "region": region}
        names |= {"subject": subject, "group": group}
        return cls(**(read.from_assembly(assembly, stimulus, names, time_bin) | about))

    @classmethod
    def from_mne_epochs(
        cls,
        epochs: Any,
        *,
        stimulus: str | None = None,
        window_s: tuple[float, float] | None = None,
        picks: Any = "data",
        **about: Any,
    ) -> Responses:
        """Average MNE `Epochs` over a time window; units are channels, in SI units.

        Parameters
        ----------
        epochs
            `mne.Epochs`; rejected ones are left out by MNE.
        stimulus
            Column of ``epochs.metadata`` with stimulus ids, or ``"event"`` for the events' names; epochs of the same
            stimulus are its repetitions. None: every epoch is a stimulus, named by its number among all events, so
            that subjects with different rejected epochs still match.
        window_s
            First and last time after the event; None: the whole epoch.
        picks
            Channels, as MNE names them.
        **about
            Other attributes of `Responses`.
        """
        return cls(**(read.from_epochs(epochs, stimulus, window_s, picks) | about))

    @classmethod
    def from_mne_raw(
        cls,
        raw: Any,
        words: Any,
        *,
        lag_s: float = 0.0,
        window_s: float = 0.2,
        picks: Any = "data",
        **about: Any,
    ) -> Responses:
        """Average an MNE `Raw` over a window after each word: ``[onset + lag, onset + lag + window)``.

        ``words`` is a table with the columns ``word`` and ``onset_s``, in seconds from the first sample. Words whose
        window is outside the recording are NaN.
        """
        return cls(**(read.from_raw(raw, as_polars(words), lag_s, window_s, picks) | about))

    @classmethod
    def from_nilearn(
        cls,
        runs: npt.ArrayLike | Sequence[npt.ArrayLike],
        *,
        tr_s: float,
        words: Any = None,
        labels: Sequence[str] | None = None,
        start_s: float = 0.0,
        **about: Any,
    ) -> Responses:
        """Read time × voxels (or regions), as nilearn's maskers return them; every scan is a stimulus.

        Parameters
        ----------
        runs
            [n_scans, n_units], or a list of such arrays: runs with the same stimulus, which become repetitions.
        tr_s
            Seconds from one scan to the next; scan 0 is at ``start_s``.
        words
            Table with the columns ``word`` and ``onset_s``; a word belongs to the scan in which it begins.
        labels
            Name of each unit, such as the region of an atlas.
        start_s
            Time of scan 0, on the clock of the words.
        **about
            Other attributes of `Responses`.
        """
        table = None if words is None else as_polars(words)
        found = read.from_scans(runs, tr_s, start_s, table)
        return cls.from_numpy(found.pop("values"), unit_ids=labels, **(found | about))


def _mean(values: FloatArray, used: npt.NDArray[np.bool_]) -> FloatArray:
    """Mean over axis 1 of the values that are used; NaN where none is."""
    count = used.sum(axis=1)
    total = np.where(used, values, 0.0).sum(axis=1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _at(values: Any, rows: Sequence[int]) -> Any:
    """Entries of a tuple, array or table at these rows; None stays None."""
    if values is None:
        return None
    return tuple(values[i] for i in rows) if isinstance(values, tuple) else values[list(rows)]
