"""Natural Stories (Futrell et al. 2021): ten stories, self-paced reading times and parses; no brain data.

::

    words.tsv                                   <story>.<word>.<part>, token; no header
    naturalstories_RTS/all_stories.tok          optional: word, zone, item, as they were read
    naturalstories_RTS/processed_wordinfo.tsv   optional: word, zone, item, nItem, meanItemRT, …
    parses/ud/stories-aligned.conllx            optional: Universal Dependencies, TokenId=<story>.<word>…
    parses/penn/all-parses-aligned.txt.penn     optional: Penn trees, leaves <token>/<story>.<word>…

``item`` is the story and ``zone`` the word in it, both from 1. There are no recordings: reading times are behaviour,
and are columns of the words table (``n_readers``, ``mean_rt_ms``, ``sd_rt_ms``, ``gmean_rt_ms``, ``gsd_rt``).
Words keep their punctuation. Times are nominal: one word after the other, at a fixed rate.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies.presented import plain_table
from lpact.datasets._files.sentences import sentences_by_punctuation
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile, read_text
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    AbsentMedium,
    Dataset,
    DatasetInfo,
    DatasetReader,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
)
from lpact.datasets.catalogue import Download, Expected, RemoteFile
from lpact.datasets.natural_stories.parses import Code, read_constituents, read_dependencies
from lpact.datasets.validate import check_stimulus
from lpact.errors import RecordingError, StimulusError
from lpact.registry import PluginOptions

STIMULUS = "natural_stories"
LICENCE = "CC BY-NC-SA 4.0"
WORDS = "words.tsv"
AS_READ = "naturalstories_RTS/all_stories.tok"
TIMES = "naturalstories_RTS/processed_wordinfo.tsv"
UD = "parses/ud/stories-aligned.conllx"
PENN = "parses/penn/all-parses-aligned.txt.penn"
OPTIONAL = (AS_READ, TIMES, UD, PENN)
TITLES = (
    "Boar", "Aqua", "MatchstickSeller", "KingOfBirds", "Elvis", "MrSticky", "HighSchool", "Roswell", "Tulips",
    "Tourette",
)  # fmt: skip
"""Names of stories 1 to 10, as Blank et al. (2014) use them."""

READING = {
    "nItem": "n_readers",
    "meanItemRT": "mean_rt_ms",
    "sdItemRT": "sd_rt_ms",
    "gmeanItemRT": "gmean_rt_ms",
    "gsdItemRT": "gsd_rt",
}
_REPOSITORY = "https://raw.githubusercontent.com/languageMIT/naturalstories/HEAD"
_CODE = re.compile(r"([0-9]+)\.([0-9]+)\.(whole|word|[0-9]+)")


class NaturalStoriesOptions(PluginOptions):
    """The nominal clock."""

    word_s: float = Field(
        0.35, gt=0, description="Nominal time of a word, in seconds; readers set their own pace."
    )


class NaturalStoriesDataset(Dataset):
    """The opened corpus: one stimulus, no recordings."""

    def __init__(self, name: str, path: Path | None, options: NaturalStoriesOptions) -> None:
        self._options = options
        self.info = DatasetInfo("Natural Stories Corpus, Futrell et al. 2021", "as found", LICENCE)
        self._source = SourceFolder(path, name=name, expected=f"a folder with {WORDS}")
        self._words_path = self._source.file(WORDS, StimulusError)
        self._found = {
            relative: file
            for relative in OPTIONAL
            if (file := self._source.optional(relative, StimulusError)) is not None
        }

    def recording_ids(self) -> list[RecordingId]:
        """Return nothing: the corpus has no brain data."""
        return []

    def recording(self, recording_id: RecordingId) -> Recording:
        """Raise: the corpus has no brain data."""
        raise RecordingError(
            "the corpus has no recordings",
            where=str(self._source.root),
            got=str(recording_id),
            expected="no recording: reading times are columns of the words table",
            remedy="use the dataset as a stimulus",
        )

    def stimulus_ids(self) -> list[str]:
        """Return the one stimulus, of all stories."""
        return [STIMULUS]

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return all stories, with reading times and parses where they are in the folder."""
        if stimulus_id != STIMULUS:
            raise StimulusError(
                "the corpus has no such stimulus",
                where=str(self._source.root),
                got=stimulus_id,
                expected=STIMULUS,
                remedy=f"did you mean '{STIMULUS}'?",
            )
        findings: list[Finding] = []
        codes, words, bare = self._read_words()
        if AS_READ in self._found:
            words = self._as_read(codes, words, findings)
        stories = [str(story) for story, _ in codes]
        step_s = self._options.word_s
        table = plain_table(
            {
                "word": words,
                "onset_s": [step_s * i for i in range(len(words))],
                "offset_s": [step_s * (i + 1) for i in range(len(words))],
                "sentence_id": [0] * len(words),
                "story_id": stories,
            }
        ).with_columns(
            pl.Series("title", [_title(story) for story, _ in codes], dtype=pl.String),
            pl.Series("zone", [zone for _, zone in codes], dtype=pl.Int64),
            pl.Series("bare_word", bare, dtype=pl.String),
        )
        table = table.with_columns(self._reading_times(codes, words, findings))
        table = table.with_columns(self._parses(codes, words, stories, findings))
        stimulus = Stimulus(
            id=STIMULUS,
            words=table,
            where=self._source.where(self._words_path),
            media_absent={
                "audio": AbsentMedium(
                    Reason.MEDIA_NOT_OFFERED,
                    "stories were read; recordings of them are in audio/ of the repository, and are not read",
                )
            },
            findings=tuple(findings),
        )
        check_stimulus(stimulus)
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return every file of the corpus that is read."""
        paths = [self._words_path, *self._found.values()]
        return self._source.source_files(paths, self.info.licence)

    def _read_words(self) -> tuple[list[Code], list[str], list[str]]:
        """Return the code of every word, the word with its punctuation, and without."""
        path = self._words_path
        whole: dict[Code, str] = {}
        bare: dict[Code, str] = {}
        last: Code | None = None
        for line, text in enumerate(read_text(path, StimulusError).splitlines(), start=1):
            name, tab, token = text.partition("\t")
            match = _CODE.fullmatch(name)
            if match is None or not tab or not token.strip():
                raise _wrong_line(
                    path, line, repr(text[:80]), "<story>.<word>.<part>, a tab, and a token"
                )
            code = (int(match[1]), int(match[2]))
            kept = {"whole": whole, "word": bare}.get(match[3])
            if kept is None:
                continue
            if code in kept:
                raise _wrong_line(path, line, f"{name} once more", "every token once")
            if kept is whole:
                if last is not None and code not in ((last[0], last[1] + 1), (last[0] + 1, 1)):
                    raise _wrong_line(
                        path, line, f"{name} after {last[0]}.{last[1]}", "words in order"
                    )
                last = code
            kept[code] = token.replace(" ", "")
        codes = list(whole)
        return codes, list(whole.values()), [bare.get(code, whole[code]) for code in codes]

    def _keyed(self, relative: str, codes: list[Code]) -> tuple[CsvFile, list[int]]:
        """Return a table by story and word, and the row of every word in it."""
        table = CsvFile(self._found[relative], StimulusError, delimiter="\t")
        table.require(["word", "zone", "item"])
        row_of: dict[Code, int] = {}
        for row, code in enumerate(
            zip(table.integers("item"), table.integers("zone"), strict=True)
        ):
            if code in row_of:
                raise table.wrong("zone", row, f"every word of story {code[0]} once")
            row_of[code] = row
        for code in codes:
            if code not in row_of:
                raise StimulusError(
                    "a table does not have every word",
                    where=str(table.path),
                    got=f"no line for word {code[1]} of story {code[0]}; {len(row_of)} lines",
                    expected=f"the {len(codes)} words of {WORDS}",
                    remedy="download both files again, from the same version",
                )
        if len(row_of) != len(codes):
            extra = next(code for code in row_of if code not in set(codes))
            raise table.wrong("zone", row_of[extra], f"words that {WORDS} has")
        return table, [row_of[code] for code in codes]

    def _as_read(self, codes: list[Code], words: list[str], findings: list[Finding]) -> list[str]:
        """Return the words as they were shown to readers; where that differs, it is noted."""
        table, rows = self._keyed(AS_READ, codes)
        cells = table.text("word")
        shown = [cells[row] for row in rows]
        other = [i for i, (a, b) in enumerate(zip(shown, words, strict=True)) if a != b]
        if other:
            story, zone = codes[other[0]]
            findings.append(
                Finding(
                    field="word",
                    reason=Reason.SIDECAR_DISAGREES,
                    severity="note",
                    where=self._source.where(table.path),
                    found=f"{len(other)} word(s) other than in {WORDS}; first: word {zone} of story {story}, "
                    f"{shown[other[0]]!r}, not {words[other[0]]!r}",
                    expected="the same words in both",
                    remedy="none needed: the words are those that were read, typing errors included",
                )
            )
        return shown

    def _reading_times(
        self, codes: list[Code], words: list[str], findings: list[Finding]
    ) -> list[pl.Series]:
        if TIMES not in self._found:
            return []
        table, rows = self._keyed(TIMES, codes)
        table.require(list(READING))
        cells = table.text("word")
        for row, word in zip(rows, words, strict=True):
            if AS_READ in self._found and cells[row] != word:
                raise table.wrong("word", row, f"{word!r}, as in {AS_READ}")
        if rows != sorted(rows):
            findings.append(
                Finding(
                    field="processed_wordinfo.tsv",
                    reason=Reason.SOURCE_ROWS_SORTED,
                    severity="note",
                    where=self._source.where(table.path),
                    found="lines in alphabetical order",
                    expected="the order of the stories",
                    remedy="none needed: lines are found by 'item' and 'zone'",
                )
            )
        series = []
        for column, name in READING.items():
            values = table.numbers(column)
            picked = pl.Series(name, [values[row] for row in rows], dtype=pl.Float64)
            series.append(picked.cast(pl.Int64) if name == "n_readers" else picked)
        return series

    def _parses(
        self, codes: list[Code], words: list[str], stories: list[str], findings: list[Finding]
    ) -> list[pl.Series]:
        """Return sentences, by the parse where it covers all words and otherwise by punctuation, and the parses."""
        series: list[pl.Series] = []
        tree = read_dependencies(self._found[UD], codes) if UD in self._found else "no such file"
        if isinstance(tree, str):
            sentence = sentences_by_punctuation(words, stories)
            findings.append(self._no_parse(UD, tree, Reason.SENTENCES_BY_RULE))
        else:
            sentence = tree.sentence
            series += [
                pl.Series("head", tree.head, dtype=pl.Int64),
                pl.Series("deprel", tree.relation, dtype=pl.String),
                pl.Series("upos", tree.upos, dtype=pl.String),
                pl.Series("xpos", tree.tag, dtype=pl.String),
            ]
        if PENN in self._found:
            phrases = read_constituents(self._found[PENN], codes)
            if isinstance(phrases, str):
                findings.append(self._no_parse(PENN, phrases, Reason.SOURCE_ROWS_LEFT_OUT))
            else:
                opening, closing = phrases
                series += [pl.Series("n_opening", opening), pl.Series("n_closing", closing)]
        return [pl.Series("sentence_id", sentence, dtype=pl.Int64), *series]

    def _no_parse(self, relative: str, found: str, reason: Reason) -> Finding:
        return Finding(
            field=relative,
            reason=reason,
            severity="note",
            where=self._source.where(self._words_path),
            found=f"{relative}: {found}",
            expected="a parse of every word",
            remedy="download the parses into the folder; without them sentences end with their punctuation",
        )


def _title(story: int) -> str:
    return TITLES[story - 1] if 1 <= story <= len(TITLES) else ""


def _wrong_line(path: Path, line: int, got: str, expected: str) -> StimulusError:
    return StimulusError(
        "a line is not valid",
        where=f"{path}, line {line}",
        got=got,
        expected=expected,
        remedy="download the file again",
    )


class NaturalStories(DatasetReader):
    """The Natural Stories corpus; the module's docstring describes the layout."""

    name = "natural_stories"
    summary = "Natural Stories: words, self-paced reading times and parses, without brain data"
    Options = NaturalStoriesOptions
    role = "diagnostic"
    layout = (
        Expected("the words", (WORDS,)),
        Expected("the words as they were read", (AS_READ,), needed=False),
        Expected("mean reading times", (TIMES,), needed=False),
        Expected("Universal Dependencies", (UD,), needed=False),
        Expected("Penn trees", (PENN,), needed=False),
        Expected(
            "brain recordings",
            ("recordings",),
            needed=False,
            boundary="the corpus holds stimuli and behaviour only; blank2014 has fMRI of eight of its stories",
        ),
    )
    download = Download(
        method="https",
        identifier="languageMIT/naturalstories",
        version="HEAD",
        size="about 4 MB",
        licence=LICENCE,
        homepage="https://github.com/languageMIT/naturalstories",
        files=tuple(
            RemoteFile(f"{_REPOSITORY}/{relative}", relative) for relative in (WORDS, *OPTIONAL)
        ),
        citation="Futrell, R. et al. (2021). The Natural Stories corpus: a reading-time corpus of English texts "
        "containing rare syntactic constructions. Language Resources and Evaluation 55, 63-77.",
    )
    options: NaturalStoriesOptions

    def open(self, *, name: str, path: Path | None, seed: int) -> NaturalStoriesDataset:  # noqa: ARG002
        """Open the corpus in the folder ``path``."""
        return NaturalStoriesDataset(name, path, self.options)
