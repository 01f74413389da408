"""Reader of the Natural Stories: what was written, the real tables, and broken files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dataset_writers.natural_stories import NaturalStoriesTruth, write_natural_stories
from lpact import load_study
from lpact.codes import Reason
from lpact.datasets.base import DATASETS, Dataset, RecordingId, Stimulus
from lpact.datasets.natural_stories import AS_READ, OPTIONAL, TIMES, UD, WORDS
from lpact.errors import LPactError, RecordingError, StimulusError
from lpact.features.parsing import Parse, read_parse
from shared_data import shared_data

STIMULUS = "natural_stories"


def opened(folder: Path, **options: object) -> Dataset:
    return DATASETS.build("natural_stories", options).open(name="ns", path=folder, seed=0)


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> NaturalStoriesTruth:
    return write_natural_stories(tmp_path_factory.mktemp("natural_stories"))


@pytest.fixture(scope="module")
def stimulus(truth: NaturalStoriesTruth) -> Stimulus:
    return opened(truth.folder).stimulus(STIMULUS)


def test_words_and_reading_times_are_those_written(truth: NaturalStoriesTruth, stimulus: Stimulus) -> None:
    words = stimulus.words
    assert tuple(words["word"]) == truth.words
    assert tuple(words["story_id"]) == truth.stories
    assert tuple(words["sentence_id"]) == truth.sentence
    assert tuple(words["mean_rt_ms"]) == truth.mean_rt_ms
    assert words["zone"][:3].to_list() == [1, 2, 3]
    assert words["bare_word"][7] == "know"
    assert words["title"][0] == "Boar"
    assert words["n_readers"].to_list() == [80 + i % 9 for i in range(words.height)]


def test_parses_become_trees_over_words(truth: NaturalStoriesTruth, stimulus: Stimulus) -> None:
    words = stimulus.words
    assert tuple(words["head"]) == truth.head
    assert tuple(words["deprel"]) == truth.relation
    assert words["upos"][:8].to_list() == [
        "DET", "NOUN", "VERB", "DET", "ADJ", "NOUN", "PART", "VERB",
    ]  # fmt: skip
    assert isinstance(read_parse(stimulus, None), Parse)


def test_what_was_noticed_is_said(truth: NaturalStoriesTruth, stimulus: Stimulus) -> None:
    findings = {f.reason: f for f in stimulus.findings}
    assert set(findings) == {Reason.SIDECAR_DISAGREES}
    assert "'sawed', not 'saw'" in findings[Reason.SIDECAR_DISAGREES].found
    story, zone = truth.stories[truth.typo], stimulus.words["zone"][truth.typo]
    assert f"word {zone} of story {story}" in findings[Reason.SIDECAR_DISAGREES].found


def test_there_are_no_recordings_and_none_is_made_up(truth: NaturalStoriesTruth) -> None:
    dataset = opened(truth.folder)
    assert dataset.recording_ids() == []
    assert DATASETS.get("natural_stories").role == "diagnostic"
    with pytest.raises(RecordingError, match="there is no recording"):
        dataset.recording(RecordingId("1", "1", "1", STIMULUS))
    with pytest.raises(StimulusError, match="did you mean 'natural_stories'"):
        dataset.stimulus("stories")
    assert [f.path for f in dataset.source_files()] == sorted([WORDS, *OPTIONAL])


def test_a_study_audits_a_dataset_without_recordings(truth: NaturalStoriesTruth) -> None:
    values = {
        "name": "diagnostic",
        "seed": 1,
        "datasets": [{"name": "ns", "reader": "natural_stories", "role": "diagnostic"}],
        "models": [{"name": "none", "layers": [1]}],
    }
    audit = load_study(values | {"lpact": {}}, paths={"ns": truth.folder}).audit()
    assert audit.n_recordings == 0
    (chain,) = audit.tables["audits/lpact_evidence_feasibility"].iter_rows(named=True)
    assert not chain["chain_complete"]


def test_sentences_follow_punctuation_where_there_is_no_parse(tmp_path: Path) -> None:
    truth = write_natural_stories(tmp_path, parses=False)
    stimulus = opened(tmp_path).stimulus(STIMULUS)
    assert tuple(stimulus.words["sentence_id"]) == truth.sentence
    assert "head" not in stimulus.words.columns
    assert Reason.SENTENCES_BY_RULE in {f.reason for f in stimulus.findings}


def test_words_alone_are_enough(tmp_path: Path) -> None:
    truth = write_natural_stories(tmp_path, parses=False)
    for relative in (AS_READ, TIMES):
        (tmp_path / relative).unlink()
    words = opened(tmp_path, word_s=0.5).stimulus(STIMULUS).words
    assert words["word"][truth.typo] == "saw"
    assert "mean_rt_ms" not in words.columns
    assert words["onset_s"][:3].to_list() == [0.0, 0.5, 1.0]


def test_a_parse_that_lacks_words_is_left_out_and_said(tmp_path: Path) -> None:
    write_natural_stories(tmp_path)
    path = tmp_path / UD
    text = path.read_text(encoding="utf-8").rstrip("\n")
    path.write_text("\n\n".join(text.split("\n\n")[:-1]), encoding="utf-8")
    stimulus = opened(tmp_path).stimulus(STIMULUS)
    assert "head" not in stimulus.words.columns
    found = {f.field: f.found for f in stimulus.findings}
    assert "8 of 96 words; first: word 25 of story 3" in found[UD]


def _replace(old: str, new: str, count: int = 1) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, count)


@pytest.mark.parametrize(
    ("relative", "change", "said"),
    [
        (WORDS, _replace("1.2.whole", "1.3.whole"), "line 4"),
        (WORDS, _replace("1.1.whole\tThe", "1.1.whole The"), "line 1"),
        (WORDS, _replace("1.1.whole\tThe", "1.1.whole\tThe\n1.1.whole\tThe"), "every token once"),
        (AS_READ, _replace("The\t1\t1\n", ""), "none for word 1 of story 1"),
        (
            AS_READ,
            _replace("The\t1\t1\n", "The\t1\t1\nThe\t1\t1\n"),
            "every word of words.tsv once",
        ),
        (AS_READ, _replace("word\t", "form\t"), "the column 'word' is missing"),
        (AS_READ, _replace("The\t1\t1\n", "The\t1\t1\nThe\t99\t9\n"), "and no other"),
        (TIMES, _replace("\t100.5", "\tfast"), "column 'sdItemRT'"),
        (TIMES, _replace("know.\t8\t1\t", "knew.\t8\t1\t"), "'know.', as in"),
        (UD, _replace("TokenId=1.1\n", "TokenId=one\n"), "line 1"),
        (UD, _replace("TokenId=1.1\n", "TokenId=7.1\n"), "word 1 of story 7"),
        (UD, _replace("\t2\tdet", "\t77\tdet"), "heads that lead to no root"),
        (UD, _replace("\n2\t", "\n5\t"), "token 2 first"),
    ],
)
def test_broken_files_are_named(relative: str, change: Callable[[str], str], said: str, tmp_path: Path) -> None:
    write_natural_stories(tmp_path)
    path = tmp_path / relative
    before = path.read_text(encoding="utf-8")
    path.write_text(change(before), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != before
    _expect(tmp_path, said, path.name)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    write_natural_stories(folder)
    path = folder / AS_READ
    path.write_bytes(path.read_bytes() + "caf\xe9\t1\t9\n".encode("latin-1"))
    _expect(folder, "UnicodeDecodeError", "all_stories.tok")


def test_the_real_tables_are_read() -> None:
    dataset = opened(shared_data("naturalstories"))
    stimulus = dataset.stimulus(STIMULUS)
    words = stimulus.words
    assert words.height == 10256
    assert words["story_id"].unique(maintain_order=True).to_list() == [str(story) for story in range(1, 11)]
    opening = "If you were to journey to the North of England,"
    assert " ".join(words["word"][:10]) == opening
    assert words["mean_rt_ms"].is_between(200.0, 1500.0).all()
    assert words["mean_rt_ms"][1072] != words["mean_rt_ms"][0]
    # One word was read with a typing error.
    disagreeing = [f for f in stimulus.findings if f.reason is Reason.SIDECAR_DISAGREES]
    assert ["'peaked', not 'peeked'" in f.found for f in disagreeing] == [True]
    # Quotes are part of words, not of the table's format.
    lines = (shared_data("naturalstories") / AS_READ).read_text(encoding="utf-8").splitlines()
    assert words["word"].to_list() == [line.split("\t")[0] for line in lines[1:]]
    assert words["word"].str.starts_with("'").sum() > 50
    # The corpus has 485 sentences; a rule on punctuation alone comes near.
    assert abs(words["sentence_id"].n_unique() - 485) < 15
    # Longer words are read more slowly.
    lengths = words["bare_word"].str.len_chars()
    slow = words.filter(lengths >= 9)["gmean_rt_ms"].mean()
    quick = words.filter(lengths <= 4)["gmean_rt_ms"].mean()
    assert isinstance(slow, float)
    assert isinstance(quick, float)
    assert slow > quick + 5.0


def _expect(folder: Path, *said: str) -> None:
    with pytest.raises(LPactError) as error:
        opened(folder).stimulus(STIMULUS)
    assert isinstance(error.value, StimulusError)
    for part in said:
        assert part in str(error.value)
