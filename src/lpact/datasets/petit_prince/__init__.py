"""Reader of Le Petit Prince (OpenNeuro ds003643): an audiobook in nine sections, functional MRI, three languages.

::

    annotation/<L>/lpp<L>_word_information.csv      index, word, lemma, onset, offset, logfreq, pos, section, …
    annotation/<L>/lpp<L>_tree.csv                  optional: one bracketed tree per sentence
    annotation/<L>/lpp<L>_dependency.csv            optional: relation(head-i, word-j), sentences apart by empty lines
    stimuli/task-lpp<L>_section-<n>.wav             optional
    derivatives/sub-<L><nnn>/func/
        sub-<L><nnn>_task-lpp<L>_run-<label>_space-MNIColin27_desc-preproc_bold.nii.gz

``<L>`` is EN, CN or FR. Run labels are those of the scanner: a subject's nine runs, sorted, are sections 1 to 9. Each
section is a stimulus with its own clock, and its audio starts with the first volume.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._fmri.bids import entities
from lpact.datasets._fmri.dataset import (
    ABOUT,
    FmriDataset,
    FmriOptions,
    Scan,
    no_such_stimulus,
    selected,
)
from lpact.datasets.base import (
    AbsentMedium,
    DatasetInfo,
    DatasetReader,
    RecordingId,
    Stimulus,
)
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.petit_prince.words import N_SECTIONS, Annotation
from lpact.datasets.validate import check_stimulus
from lpact.errors import InputError, RecordingError

TR_S = 2.0


class PetitPrinceOptions(FmriOptions):
    """Options of the reader."""

    language: Literal["EN", "CN", "FR"] = Field("EN", description="Language of the audiobook.")
    space: str = Field("MNIColin27", description="Value of `space-` in file names.")
    audio_onset_s: float = Field(
        0.0, description="Seconds from the start of the first volume to the start of the audio."
    )


class PetitPrinceDataset(FmriDataset[PetitPrinceOptions]):
    """The opened dataset, in one language."""

    published = DatasetInfo("OpenNeuro ds003643 (Le Petit Prince)", "not stated", "CC0")
    published_tr_s = TR_S

    @cached_property
    def _annotation(self) -> Annotation:
        options = self._options
        return Annotation(self._folder, options.language, options.sentence_pause_s)

    def stimulus_onset_s(self, recording_id: RecordingId, scan: Scan) -> float:  # noqa: ARG002
        """Return when the audio of a section starts."""
        return self._options.audio_onset_s

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one section."""
        sections = {stimulus_name(self._options.language, n): n for n in range(1, N_SECTIONS + 1)}
        if stimulus_id not in sections:
            raise no_such_stimulus(self._folder, stimulus_id, sections)
        number = sections[stimulus_id]
        section = self._annotation.section(number)
        audio = self._audio(number)
        absent = AbsentMedium(Reason.MEDIA_NOT_OFFERED, f"no audio of section {number} in stimuli/")
        stimulus = Stimulus(
            id=stimulus_id,
            words=section.words,
            where=f"{self._folder.where(self._annotation.path)}, section {number}",
            media={} if audio is None else {"audio": self._folder.relative(audio)},
            media_root=self._folder.root,
            media_absent={} if audio is not None else {"audio": absent},
            findings=section.findings,
        )
        check_stimulus(stimulus)
        return stimulus

    def stimulus_paths(self) -> Iterable[Path]:
        """Return the annotation and the audio."""
        audio = [self._audio(number) for number in range(1, N_SECTIONS + 1)]
        return [path for path in (*self._annotation.paths(), *audio) if path is not None]

    def _audio(self, number: int) -> Path | None:
        pattern = f"stimuli/task-lpp{self._options.language}_section[-_]{number}.wav"
        found = self._folder.glob(pattern)
        return found[0] if found else None


def stimulus_name(language: str, section: int) -> str:
    """Name of a section in tables."""
    return f"lpp{language}-section{section}"


class PetitPrince(DatasetReader):
    """Le Petit Prince; the module's docstring describes the layout."""

    name = "petit_prince"
    summary = "Le Petit Prince (ds003643): fMRI of an audiobook in English, Chinese or French"
    Options = PetitPrinceOptions
    options: PetitPrinceOptions
    role = "secondary"
    extra = "fmri"
    layout: ClassVar[tuple[Expected, ...]] = (
        Expected("words with times", ("annotation/*/lpp*_word_information.csv",)),
        Expected(
            "volumes in a standard space",
            ("derivatives/sub-*/func/*_task-lpp*_run-*_desc-preproc_bold.nii.gz",),
        ),
        Expected("parse trees", ("annotation/*/lpp*_tree.csv",), needed=False),
        Expected("dependencies", ("annotation/*/lpp*_dependency.csv",), needed=False),
        Expected("audio of the sections", ("stimuli/task-lpp*_section*.wav",), needed=False),
        *ABOUT,
    )
    download = Download(
        method="openneuro",
        identifier="ds003643",
        version="2.0.7",
        size="see the page: the derivatives are the larger part",
        licence="CC0",
        homepage="https://openneuro.org/datasets/ds003643",
        include=("annotation/EN/*", "stimuli/*", "derivatives/sub-EN*/func/*"),
        citation="Li et al. (2022), Scientific Data 9, 530",
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> PetitPrinceDataset:  # noqa: ARG002
        """Find the runs of every subject; no volume is read."""
        expected = "annotation/ and derivatives/ of ds003643"
        folder = SourceFolder(path, name=name, expected=expected)
        language = self.options.language
        pattern = (
            f"derivatives/sub-{language}*/func/*_task-lpp{language}_run-*_"
            f"space-{self.options.space}_desc-preproc_bold.nii.gz"
        )
        found = folder.glob(pattern, RecordingError)
        if not found:
            raise InputError(
                "there are no volumes to read",
                where=str(folder.root / pattern),
                got="no file",
                expected="preprocessed volumes of the language and space that the options name",
                remedy="download derivatives/, or change the options language and space",
            )
        runs: dict[str, list[Path]] = {}
        for bold in selected(found, self.options.subjects, folder):
            runs.setdefault(entities(bold)["sub"], []).append(bold)
        scans = [
            (
                RecordingId(subject, "1", str(section), stimulus_name(language, section)),
                _scan(folder, bold),
            )
            for subject, paths in sorted(runs.items())
            for section, bold in enumerate(_nine(subject, paths, folder), start=1)
        ]
        return PetitPrinceDataset(folder, self.options, scans)


def _scan(folder: SourceFolder, bold: Path) -> Scan:
    sidecar = folder.optional(folder.relative(bold).replace(".nii.gz", ".json"), RecordingError)
    return Scan(bold=bold, sidecars=() if sidecar is None else (sidecar,))


def _nine(subject: str, paths: list[Path], folder: SourceFolder) -> list[Path]:
    """Return a subject's runs in the order of their labels; raises unless they are nine."""
    labels = [entities(path)["run"] for path in paths]
    if len(set(labels)) == N_SECTIONS == len(labels) and all(x.isdecimal() for x in labels):
        return [path for _, path in sorted(zip(map(int, labels), paths, strict=True))]
    raise RecordingError(
        f"the subject '{subject}' does not have nine runs, so that their sections are not known",
        where=f"dataset '{folder.name}', {paths[0].parent}",
        got=f"{len(labels)} file(s) with run labels " + ", ".join(sorted(labels)),
        expected="nine runs with different numbers; sorted, they are sections 1 to 9",
        remedy="download all runs of the subject, or list others in the option subjects",
    )
