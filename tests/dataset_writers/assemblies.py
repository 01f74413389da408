"""Writers of small assemblies as xarray stores them: Pereira2018, Fedorenko2016 and Blank2014.

The first neuroid of every subject holds, at presentation i in the order of reading, the number i + 1; others hold
autocorrelated noise. Presentations are stored in another order than they were read in, as in the real files: sorted by
``stimulus_id`` as text, where ``10`` comes before ``2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lpact.extras import require
from lpact.math.types import FloatArray

Format = Literal["NETCDF4", "NETCDF3_64BIT"]
Coordinates = Mapping[str, Sequence[Any]]

_NOUNS = [
    "river",
    "engine",
    "violin",
    "teacher",
    "garden",
    "bridge",
    "winter",
    "letter",
    "kitchen",
    "island",
    "market",
    "tower",
]
_VERBS = ["follows", "carries", "opens", "remembers", "measures", "covers", "finds", "repeats"]
_PLACES = [
    "before noon",
    "near the old harbour",
    "under a grey sky",
    "in the valley",
    "after the rain",
]


@dataclass(frozen=True)
class AssemblyTruth:
    """What was written: everything is in the order of reading.

    ``texts`` and ``stories`` have one entry per presentation for each run; ``values`` maps (subject, run) to
    [n_presentations, n_units], and ``units`` the subject to names and regions. ``absent`` are (subject, run) that the
    file holds as NaN. ``rows`` are the places of the presentations in the file.
    """

    path: Path
    texts: Mapping[str, tuple[str, ...]]
    stories: Mapping[str, tuple[str, ...]]
    values: Mapping[tuple[str, str], FloatArray]
    units: Mapping[str, tuple[tuple[str, str], ...]]
    rows: Mapping[str, tuple[int, ...]]
    absent: tuple[tuple[str, str], ...] = ()


def write_assembly(
    path: Path,
    values: FloatArray,
    presentation: Coordinates,
    neuroid: Coordinates,
    *,
    format: Format = "NETCDF4",
    dims: tuple[str, ...] = ("presentation", "neuroid"),
) -> Path:
    """Write one array with its coordinates; ``dims`` names the axes of ``values``."""
    xarray = require("xarray", extra="assemblies")
    coords = {name: ("presentation", np.asarray(cells)) for name, cells in presentation.items()}
    coords |= {name: ("neuroid", np.asarray(cells)) for name, cells in neuroid.items()}
    known = {name: coord for name, coord in coords.items() if coord[0] in dims}
    dataset = xarray.Dataset({"data": (dims, values)}, coords=known)
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "NETCDF4":
        packed = {"data": {"zlib": True, "complevel": 1}}
        dataset.to_netcdf(path, engine="h5netcdf", encoding=packed)
    else:
        dataset.to_netcdf(path, engine="scipy", format=format)
    return path


def write_stimuli(path: Path, columns: Coordinates) -> Path:
    """Write a table of stimuli beside an assembly."""
    import csv

    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_pereira2018(
    folder: Path,
    *,
    seed: int = 0,
    n_passages: tuple[int, int] = (4, 3),
    n_subjects: int = 3,
    n_voxels: int = 3,
    text_in: Literal["assembly", "table"] = "assembly",
    places_mm: FloatArray | None = None,
    format: Format = "NETCDF4",
) -> AssemblyTruth:
    """Write two experiments (passages of 4 sentences, and of 3 or 4); the last subject took part in the first only.

    The first ``n_voxels`` of a subject are of the atlas ``language``, as many more of ``auditory``. ``places_mm``
    [n_neuroids, 3] are x, y and z of all neuroids.
    """
    rng = np.random.default_rng(seed)
    sentences = _passages(rng, n_passages)
    in_file = sorted(sentences, key=lambda s: s.id)
    runs = list(dict.fromkeys(s.run for s in sentences))
    subjects = [f"{i:03d}" for i in range(18, 18 + n_subjects)]
    absent = ((subjects[-1], runs[1]),) if n_subjects > 1 else ()
    places = [
        (subject, atlas, roi, f"{subject}_{atlas}_{voxel}")
        for subject in subjects
        for atlas, roi in (("language", "LPostTemp"), ("auditory", "LTE11"))
        for voxel in range(n_voxels)
    ]
    values = np.full((len(sentences), len(places)), np.nan)
    truth: dict[tuple[str, str], FloatArray] = {}
    rows: dict[str, tuple[int, ...]] = {}
    for run in runs:
        own = [s for s in sentences if s.run == run]
        rows[run] = tuple(in_file.index(s) for s in own)
        for subject in subjects:
            columns = [i for i, place in enumerate(places) if place[0] == subject]
            if (subject, run) not in absent:
                truth[subject, run] = _responses(rng, len(own), len(columns))
                values[np.ix_(rows[run], columns)] = truth[subject, run]
    presentation: dict[str, Sequence[Any]] = {
        "stimulus_id": [s.id for s in in_file],
        "experiment": [s.run for s in in_file],
        "passage_index": [s.passage for s in in_file],
        "passage_label": [_NOUNS[s.passage % len(_NOUNS)] for s in in_file],
        "passage_category": [f"topic{s.passage % 2}" for s in in_file],
    }
    text = {"stimulus_id": presentation["stimulus_id"], "sentence": [s.text for s in in_file]}
    if text_in == "assembly":
        presentation["stimulus"] = text["sentence"]
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_stimuli(folder / "stimulus_Pereira2018.csv", text)
    neuroid: dict[str, Any] = {
        "neuroid_id": [place[3] for place in places],
        "subject": [place[0] for place in places],
        "atlas": [place[1] for place in places],
        "roi": [place[2] for place in places],
        **_axes(places_mm),
    }
    path = write_assembly(folder / "assy_Pereira2018_language.nc", values, presentation, neuroid, format=format)
    return AssemblyTruth(
        path,
        {run: tuple(s.text for s in sentences if s.run == run) for run in runs},
        {run: tuple(f"passage {s.passage}" for s in sentences if s.run == run) for run in runs},
        truth,
        {
            subject: tuple((p[3].removeprefix(f"{subject}_"), p[2]) for p in places if p[0] == subject)
            for subject in subjects
        },
        rows,
        absent,
    )


def _axes(places_mm: FloatArray | None) -> dict[str, FloatArray]:
    return {} if places_mm is None else dict(zip("xyz", places_mm.T, strict=True))


def write_fedorenko2016(
    folder: Path,
    *,
    seed: int = 0,
    n_sentences: int = 12,
    n_electrodes: tuple[int, ...] = (3, 2),
    places_mm: FloatArray | None = None,
    format: Format = "NETCDF4",
) -> AssemblyTruth:
    """Write sentences of 8 words in capitals; their rows are scrambled. ``places_mm``: x, y and z."""
    rng = np.random.default_rng(seed)
    words = [word for _ in range(n_sentences) for word in _eight_words(rng)]
    order = rng.permutation(len(words))
    subjects = [str(i + 1) for i, n in enumerate(n_electrodes) for _ in range(n)]
    values = np.empty((len(words), len(subjects)))
    truth: dict[tuple[str, str], FloatArray] = {}
    for subject in dict.fromkeys(subjects):
        columns = [i for i, s in enumerate(subjects) if s == subject]
        truth[subject, "sentences"] = _responses(rng, len(words), len(columns))
        values[:, columns] = truth[subject, "sentences"]
    presentation: dict[str, Any] = {
        "stimulus_id": order,
        "stimulus": [words[i] for i in order],
        "word": [words[i] for i in order],
        "word_num": order % 8,
        "sentence_id": order // 8,
    }
    neuroid: dict[str, Any] = {
        "neuroid_id": np.arange(len(subjects)),
        "electrode": np.arange(len(subjects)),
        "subject_UID": [int(subject) for subject in subjects],
        **_axes(places_mm),
    }
    path = write_assembly(
        folder / "assy_Fedorenko2016_language.nc",
        values[order],
        presentation,
        neuroid,
        format=format,
    )
    return AssemblyTruth(
        path,
        {"sentences": tuple(words)},
        {"sentences": tuple(f"sentence_{i // 8:02d}" for i in range(len(words)))},
        truth,
        {
            subject: tuple((f"electrode_{i}", "unknown") for i, s in enumerate(subjects) if s == subject)
            for subject in dict.fromkeys(subjects)
        },
        {"sentences": tuple(int(i) for i in np.argsort(order))},
    )


def write_blank2014(
    folder: Path,
    *,
    seed: int = 0,
    n_stories: int = 3,
    n_sentences: int = 12,
    n_subjects: int = 2,
    contradict: bool = False,
    format: Format = "NETCDF4",
) -> AssemblyTruth:
    """Write stories cut into TRs: quotes before a word lie in the TR before, and words with hyphens are cut.

    ``contradict`` turns the coordinates other than ``stimulus_id`` by one presentation, while the responses stay with
    the ids.
    """
    rng = np.random.default_rng(seed)
    parts = [
        (story, sentence, part, text)
        for story in sorted(("Boar", "Aqua", "Elvis", "Tulips")[:n_stories])
        for sentence in range(n_sentences)
        for part, text in enumerate(_cut_sentence(rng, last=sentence == n_sentences - 1))
    ]
    ids = [f"{story}.{sentence}.{part}" for story, sentence, part, _ in parts]
    in_file = sorted(range(len(parts)), key=ids.__getitem__)
    rois = ("01_LH_PostTemp", "02_LH_AntTemp", "03_LH_IFG")
    subjects = ["061", "085", "088", "090", "098"][:n_subjects]
    places = [(roi, subject) for roi in rois for subject in subjects]
    values = np.empty((len(parts), len(places)))
    truth: dict[tuple[str, str], FloatArray] = {}
    for subject in subjects:
        columns = [i for i, place in enumerate(places) if place[1] == subject]
        truth[subject, "stories"] = _responses(rng, len(parts), len(columns))
        values[:, columns] = truth[subject, "stories"]
    turned = [in_file[(i + contradict) % len(in_file)] for i in range(len(in_file))]
    presentation: dict[str, Any] = {
        "stimulus_id": [ids[i] for i in in_file],
        "stimulus": [parts[i][3] for i in turned],
        "story": [parts[i][0] for i in turned],
        "sentence_number_in_story": [parts[i][1] for i in turned],
        "part_number_in_sentence": [parts[i][2] for i in turned],
    }
    neuroid: dict[str, Any] = {
        "fROI_area": [place[0] for place in places],
        "subject_id": [place[1] for place in places],
        "neuroid_id": [f"{subject}.{roi}" for roi, subject in places],
    }
    path = write_assembly(folder / "assy_Blank2014_fROI.nc", values[in_file], presentation, neuroid, format=format)
    return AssemblyTruth(
        path,
        {"stories": tuple(part[3] for part in parts)},
        {"stories": tuple(part[0] for part in parts)},
        truth,
        {subject: tuple((roi, roi) for roi in rois) for subject in subjects},
        {"stories": tuple(in_file.index(i) for i in range(len(parts)))},
    )


@dataclass(frozen=True)
class _Sentence:
    run: str
    id: str
    text: str
    passage: int


def _passages(rng: np.random.Generator, n_passages: tuple[int, int]) -> list[_Sentence]:
    """Sentences of both experiments, in the order of reading."""
    return [
        _Sentence(run, f"{run}.{number}", text, index)
        for run, lengths in (
            ("384sentences", [4] * n_passages[0]),
            ("243sentences", [4 - i % 2 for i in range(n_passages[1])]),
        )
        for number, (text, index) in enumerate(
            (_sentence(rng), passage) for passage, length in enumerate(lengths) for _ in range(length)
        )
    ]


def _responses(rng: np.random.Generator, n_rows: int, n_units: int) -> FloatArray:
    """Unit 0: 1, 2, …; the others: noise that a row shares with the one before."""
    noise = rng.standard_normal((n_rows, n_units))
    for row in range(1, n_rows):
        noise[row] += 0.7 * noise[row - 1]
    noise[:, 0] = np.arange(n_rows) + 1.0
    return noise


def _sentence(rng: np.random.Generator) -> str:
    subject, thing = rng.choice(_NOUNS, 2, replace=False)
    tail = _PLACES[rng.integers(len(_PLACES))] if rng.random() < 0.7 else ""
    return f"The {subject} {rng.choice(_VERBS)} the {thing} {tail}".strip() + "."


def _eight_words(rng: np.random.Generator) -> list[str]:
    subject, thing, third = rng.choice(_NOUNS, 3, replace=False)
    text = f"the {subject} {rng.choice(_VERBS)} the {thing} and the {third}"
    return text.upper().split()


def _cut_sentence(rng: np.random.Generator, *, last: bool) -> list[str]:
    """A sentence in parts, with the blanks between them; joined, the parts of a story are its text."""
    subject, thing = rng.choice(_NOUNS, 2, replace=False)
    end = "" if last else " "
    if rng.random() < 0.5:
        return [f"The {subject} said, '", "Come to the long-", f"lost {thing}.'{end}"]
    return [f"The {subject} {rng.choice(_VERBS)} ", f"the {thing} in the valley.{end}"]
