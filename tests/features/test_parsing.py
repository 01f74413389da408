"""Parses from columns and from pipelines; tokens collapsed to words."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpact.datasets.base import Stimulus
from lpact.errors import ConfigError, StimulusError
from lpact.features.mechanisms import Missing
from lpact.features.parsing import (
    NoToken,
    Pipeline,
    Token,
    collapse,
    parse_with,
    read_parse,
    spacy_tokens,
    spans_of,
    stanza_tokens,
)
from lpact.math.dependencies import ROOT, unrooted


def make_stimulus(sentences, **columns):
    words = [word for sentence in sentences for word in sentence]
    n = len(words)
    table = pl.DataFrame(
        {
            "word": words,
            "onset_s": np.arange(n, dtype=float),
            "offset_s": np.arange(n) + 0.5,
            "sentence_id": [i for i, sentence in enumerate(sentences) for _ in sentence],
            "story_id": ["a"] * n,
        },
        schema_overrides={"word": pl.String, "sentence_id": pl.Int64, "story_id": pl.String},
    ).with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    return Stimulus("stim", table, "words.tsv")


# --- Columns -------------------------------------------------------------------------------------

TWO = [["Dogs", "bark"], ["A", "cat", "sleeps"]]
HEADS, LABELS = [2, 0, 2, 3, 0], ["nsubj", "root", "det", "nsubj", "root"]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Int8, pl.UInt32])
def test_positions_become_rows(dtype):
    stimulus = make_stimulus(TWO, head=pl.Series(HEADS, dtype=dtype), deprel=LABELS)
    parse = read_parse(stimulus, None)
    assert parse.head.dtype == np.int64
    assert parse.head.tolist() == [1, -1, 3, 4, -1]
    assert parse.relation == tuple(LABELS)
    assert parse.upos is None
    assert parse.where == "words.tsv, columns 'head' and 'deprel'"
    tagged = make_stimulus(TWO, head=HEADS, deprel=LABELS, upos=list("NVDNV"))
    assert read_parse(tagged, None).upos == ("N", "V", "D", "N", "V")


def test_without_columns_the_parse_is_missing():
    none = read_parse(make_stimulus(TWO), None)
    assert isinstance(none, Missing)
    assert "no column 'head' and no column 'deprel', and no parser is named" in none.detail
    half = read_parse(make_stimulus(TWO, head=HEADS), None)
    assert "(words.tsv) has no column 'deprel', and" in half.detail


@pytest.mark.parametrize(
    ("head", "row", "word", "found"),
    [
        ([2, 0, 4, 3, 0], 3, "A", "4"),
        ([2, 0, 2, -1, 0], 4, "cat", "-1"),
        ([2, None, 2, 3, 0], 2, "bark", "nothing"),
        ([2, 1, 2, 3, 0], 1, "Dogs", "0 words with head 0 in sentence 0"),
        ([2, 0, 0, 0, 0], 4, "cat", "3 words with head 0 in sentence 1"),
        ([2, 0, 2, 1, 0], 3, "A", "'A', whose heads lead back to it"),
        ([1, 0, 2, 3, 0], 1, "Dogs", "'Dogs', whose heads lead back to it"),
    ],
)
def test_a_bad_head_is_named_with_its_word(head, row, word, found):
    with pytest.raises(StimulusError) as error:
        read_parse(make_stimulus(TWO, head=head, deprel=LABELS), None)
    assert error.value.where == f"words.tsv, column 'head', row {row}, word '{word}'"
    assert error.value.got == found


@pytest.mark.parametrize("column", ["deprel", "upos"])
@pytest.mark.parametrize("empty", [None, "", "  "])
def test_a_missing_label_is_named_with_its_word(column, empty):
    labels = {"deprel": LABELS, "upos": LABELS} | {column: [*LABELS[:3], empty, LABELS[4]]}
    with pytest.raises(StimulusError) as error:
        read_parse(make_stimulus(TWO, head=HEADS, **labels), None)
    assert error.value.where == f"words.tsv, column '{column}', row 4, word 'cat'"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"head": [2.0, 0, 2, 3, 0], "deprel": LABELS}, "does not contain whole numbers"),
        ({"head": [str(h) for h in HEADS], "deprel": LABELS}, "does not contain whole numbers"),
        ({"head": HEADS, "deprel": HEADS}, "does not contain text"),
        ({"head": HEADS, "deprel": LABELS, "upos": HEADS}, "does not contain text"),
    ],
)
def test_columns_of_another_type_are_refused(columns, expected):
    with pytest.raises(StimulusError, match=expected):
        read_parse(make_stimulus(TWO, **columns), None)


def test_no_words_have_an_empty_parse():
    empty = pl.Series([], dtype=pl.Int64)
    stimulus = make_stimulus([], head=empty, deprel=pl.Series([], dtype=pl.String))
    assert read_parse(stimulus, None).head.shape == (0,)
    assert parse_with(stimulus, Pipeline("none", lambda texts: iter(()))).relation == ()


# --- Tokens to words -----------------------------------------------------------------------------


def tokenised(text, *tokens):
    """Tokens from (form, head, relation, upos), found one after the other in the text."""
    found, at = [], 0
    for form, head, relation, upos in tokens:
        start = text.index(form, at)
        found.append(Token(start, start + len(form), head, relation, upos))
        at = start + len(form)
    return found


def collapsed(words, *tokens):
    text, spans = spans_of(words.split(" "))
    assert [text[a:b] for a, b in spans] == words.split(" ")
    tree = collapse(spans, tokenised(text, *tokens))
    return tree.head.tolist(), list(tree.relation), list(tree.upos)


def test_contractions_and_punctuation_join_their_word():
    assert collapsed(
        '"I don\'t know," he said.',
        ('"', 4, "punct", "PUNCT"),
        ("I", 4, "nsubj", "PRON"),
        ("do", 4, "aux", "AUX"),
        ("n't", 4, "advmod", "PART"),
        ("know", 8, "ccomp", "VERB"),
        (",", 8, "punct", "PUNCT"),
        ('"', 8, "punct", "PUNCT"),
        ("he", 8, "nsubj", "PRON"),
        ("said", -1, "root", "VERB"),
        (".", 8, "punct", "PUNCT"),
    ) == (
        [2, 2, 4, 4, -1],
        ["nsubj", "aux", "ccomp", "nsubj", "root"],
        ["PRON", "AUX", "VERB", "PRON", "VERB"],
    )


def test_punctuation_as_a_word_of_its_own_stays_one():
    assert collapsed(
        "Yes , sir",
        ("Yes", -1, "root", "INTJ"),
        (",", 2, "punct", "PUNCT"),
        ("sir", 0, "vocative", "NOUN"),
    ) == ([-1, 2, 0], ["root", "punct", "vocative"], ["INTJ", "PUNCT", "NOUN"])


def test_the_token_nearest_to_the_root_stands_for_its_word():
    # "What" hangs on "like", "like" on "'s": the first token's head would close a circle.
    assert collapsed(
        "What's it like",
        ("What", 3, "pobj", "PRON"),
        ("'s", -1, "root", "AUX"),
        ("it", 1, "nsubj", "PRON"),
        ("like", 1, "prep", "ADP"),
    ) == ([-1, 0, 0], ["root", "nsubj", "prep"], ["AUX", "PRON", "ADP"])


def test_heads_that_are_punctuation_inside_a_word_are_climbed_over():
    assert collapsed(
        "well, go",
        ("well", 2, "discourse", "INTJ"),
        (",", 2, "punct", "PUNCT"),
        ("go", -1, "root", "VERB"),
    )[0] == [1, -1]
    assert collapsed(
        "so well, go",
        ("so", 2, "advmod", "ADV"),
        ("well", 3, "discourse", "INTJ"),
        (",", 3, "punct", "PUNCT"),
        ("go", -1, "root", "VERB"),
    )[0] == [2, 2, -1]


def test_later_roots_hang_on_the_first():
    assert collapsed(
        "Go. Run. Hide",
        ("Go", -1, "root", "VERB"),
        (".", 0, "punct", "PUNCT"),
        ("Run", -1, "root", "VERB"),
        (".", 2, "punct", "PUNCT"),
        ("Hide", -1, "root", "VERB"),
    )[:2] == ([-1, 0, 0], ["root", "parataxis", "parataxis"])


def test_a_token_over_two_words_belongs_to_the_first():
    assert collapsed(
        "about 10 000 men",
        ("about", 1, "advmod", "ADV"),
        ("10 000", 2, "nummod", "NUM"),
        ("men", -1, "root", "NOUN"),
    ) == (
        [1, 3, 1, -1],
        ["advmod", "nummod", "goeswith", "root"],
        ["ADV", "NUM", "X", "NOUN"],
    )


def test_a_word_without_a_token_is_found():
    with pytest.raises(NoToken) as error:
        collapsed("a b c", ("a", -1, "root", "X"), ("c", 0, "dep", "X"))
    assert error.value.args[0] == 1
    with pytest.raises(NoToken) as error:
        collapse(spans_of(["a", "", "c"])[1], [Token(0, 4, -1, "root", "X")])
    assert error.value.args[0] == 1


def test_tokens_in_a_circle_are_refused():
    with pytest.raises(ValueError, match="cycle"):
        collapsed("a b", ("a", 1, "dep", "X"), ("b", 0, "dep", "X"))


@st.composite
def token_forests(draw):
    """Words of one to three tokens, and a random forest over all tokens, punctuation anywhere."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=7))
    words = ["abc"[:size] for size in sizes]
    spans = spans_of(words)[1]
    n = sum(sizes)
    order = draw(st.permutations(range(n)))
    heads = [ROOT] * n
    for position, token in enumerate(order):
        choice = draw(st.integers(-1, position - 1)) if position else -1
        heads[token] = order[choice] if choice >= 0 else ROOT
    relations = draw(st.lists(st.sampled_from(("dep", "punct")), min_size=n, max_size=n))
    places = [(start + i, start + i + 1) for start, stop in spans for i in range(stop - start)]
    tokens = [
        Token(*place, head, relation, str(i))
        for i, (place, head, relation) in enumerate(zip(places, heads, relations, strict=True))
    ]
    return spans, tokens


@given(token_forests())
def test_any_forest_of_tokens_becomes_one_tree_of_words(drawn):
    spans, tokens = drawn
    tree = collapse(spans, tokens)
    assert (tree.head == ROOT).sum() == 1
    assert not unrooted(tree.head).any()
    owner = [word for word, (start, stop) in enumerate(spans) for _ in range(stop - start)]
    for word, label in enumerate(tree.upos):
        token = tokens[int(label)]
        inside = [t for t, w in zip(tokens, owner, strict=True) if w == word]
        assert token in inside
        assert token.relation != "punct" or all(t.relation == "punct" for t in inside)


@given(token_forests())
def test_words_of_one_token_keep_their_heads(drawn):
    _, tokens = drawn
    spans = [(token.start, token.stop) for token in tokens]
    heads = [token.head for token in tokens]
    root = heads.index(ROOT)
    expected = [root if h == ROOT and i != root else h for i, h in enumerate(heads)]
    assert collapse(spans, tokens).head.tolist() == expected


# --- Pipelines -----------------------------------------------------------------------------------


def first_word_rules(texts):
    """Every text's first token is its root; a full stop is a token."""
    for text in texts:
        forms = text.replace(".", " .").split()
        yield tokenised(
            text,
            *(
                (form, 0 if i else ROOT, "punct" if form == "." else "dep" if i else "root", "X")
                for i, form in enumerate(forms)
            ),
        )


def test_sentences_are_parsed_one_by_one():
    stimulus = make_stimulus([["Go", "now."], ["It", "is", "late."]])
    parse = parse_with(stimulus, Pipeline("rules", first_word_rules))
    assert parse.head.tolist() == [-1, 0, -1, 2, 2]
    assert parse.relation == ("root", "dep", "root", "dep", "dep")
    assert parse.upos is None
    assert parse.where == "rules"


def test_a_named_parser_goes_before_the_columns_and_says_so():
    stimulus = make_stimulus(TWO, head=HEADS, deprel=LABELS)
    parse = parse_with(stimulus, Pipeline("rules", first_word_rules))
    assert parse.head.tolist() == [-1, 0, -1, 2, 2]
    assert parse.where == "rules, in place of the columns 'head' and 'deprel' of words.tsv"


def test_a_word_in_which_the_parser_finds_nothing_is_named():
    stimulus = make_stimulus([["Go"], ["It", "", "ends"]])
    with pytest.raises(StimulusError) as error:
        parse_with(stimulus, Pipeline("rules", first_word_rules))
    assert error.value.where == "words.tsv, column 'word', row 3, word ''"


@pytest.mark.parametrize("parser", ["spcy:en_core_web_sm", "en_core_web_sm", "spacy", "stanza:"])
def test_an_unknown_parser_is_refused(parser):
    with pytest.raises(ConfigError, match="no parser named") as error:
        read_parse(make_stimulus(TWO), parser, where="option 'parser'")
    assert error.value.where == "option 'parser'"
    assert "such as 'spacy:en_core_web_sm'" in error.value.remedy


@pytest.mark.parametrize("package", ["spacy", "stanza"])
def test_a_package_that_is_not_installed_is_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(ConfigError, match="is not installed") as error:
        read_parse(make_stimulus(TWO), f"{package}:nowhere", where="option 'parser'")
    assert f"`pip install {package}`" in error.value.remedy


# Words, heads (from 1), relations and parts of speech of a small language that a parser can learn.
NOUN_PHRASES = ("the dog", "a cat", "the man", "a bird", "the girl", "a fish")
VERBS = ("sees", "likes", "hears")


def training_sentences():
    for i, subject in enumerate(NOUN_PHRASES):
        for j, verb in enumerate(VERBS):
            forms = [*subject.split(), verb, *NOUN_PHRASES[(i + j + 1) % 6].split(), "."]
            yield (
                forms,
                [1, 2, 2, 4, 2, 2],
                ["det", "nsubj", "ROOT", "det", "obj", "punct"],
                ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"],
            )


@pytest.fixture(scope="module")
def spacy_folder(tmp_path_factory):
    """A spaCy pipeline with tagger and parser, trained here, as a folder on disk."""
    spacy = pytest.importorskip("spacy", reason="spaCy is for those who name it")
    from spacy.tokens import Doc
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("morphologizer")
    nlp.add_pipe("parser", config={"min_action_freq": 1})  # rarer labels would become "dep"
    examples = []
    for forms, heads, labels, tags in training_sentences():
        gold = Doc(nlp.vocab, words=forms, heads=heads, deps=labels, pos=tags, morphs=[""] * 6)
        examples.append(Example(nlp.make_doc(" ".join(forms)), gold))
    spacy.util.fix_random_seed(0)
    nlp.initialize(lambda: examples)
    for _ in range(15):
        nlp.update(examples)
    folder = tmp_path_factory.mktemp("spacy") / "tiny"
    nlp.to_disk(folder)
    return folder


def test_a_spacy_pipeline_parses_words(spacy_folder):
    words = [["the", "girl", "sees", "a", "bird."], ["a", "fish", "hears", "the", "man."]]
    parse = read_parse(make_stimulus(words), f"spacy:{spacy_folder}")
    assert parse.head.tolist() == [1, 2, -1, 4, 2, 6, 7, -1, 9, 7]
    assert parse.relation == ("det", "nsubj", "root", "det", "obj") * 2
    assert parse.upos == ("DET", "NOUN", "VERB", "DET", "NOUN") * 2
    assert parse.where.startswith("spaCy 3.")
    assert parse.where.endswith(f"pipeline '{spacy_folder}'")


def test_a_spacy_pipeline_that_does_not_parse_is_refused(tmp_path):
    spacy = pytest.importorskip("spacy", reason="spaCy is for those who name it")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ConfigError, match="does not parse") as error:
        read_parse(make_stimulus(TWO), f"spacy:{tmp_path / 'blank'}", where="option 'parser'")
    assert error.value.where == "option 'parser'"


@pytest.mark.parametrize("name", ["xx_no_such_pipeline", "folder"])
def test_a_spacy_pipeline_that_is_not_there_is_named(name, tmp_path):
    pytest.importorskip("spacy", reason="spaCy is for those who name it")
    name = str(tmp_path) if name == "folder" else name  # a folder without a pipeline
    with pytest.raises(ConfigError, match="cannot be opened") as error:
        read_parse(make_stimulus(TWO), f"spacy:{name}")
    assert f"python -m spacy download {name}" in error.value.remedy


def test_tokens_of_spacy():
    spacy = pytest.importorskip("spacy", reason="spaCy is for those who name it")
    from spacy.tokens import Doc

    doc = Doc(
        spacy.blank("en").vocab,
        words=["I", "do", "n't", "know", "who", "left", "."],
        spaces=[True, False, True, True, True, False, False],
        heads=[3, 3, 3, 3, 5, 3, 3],
        deps=["nsubj", "aux", "neg", "ROOT", "nsubj", "relcl", "punct"],
        pos=["PRON", "AUX", "PART", "VERB", "PRON", "VERB", "PUNCT"],
    )
    assert doc.text == "I don't know who left."
    tokens = spacy_tokens(doc)
    assert [doc.text[t.start : t.stop] for t in tokens] == [t.text for t in doc]
    assert [t.head for t in tokens] == [3, 3, 3, -1, 5, 3, 3]
    assert [t.relation for t in tokens][3:6] == ["root", "nsubj", "acl:relcl"]
    assert [t.upos for t in tokens][:2] == ["PRON", "AUX"]


def conllu(*words):
    """Words of one Stanza sentence: (id, text, head, relation, tag, start, end); a pair of ids is one token."""
    rows = []
    for ids, text, head, relation, tag, start, end in words:
        row = {"id": ids, "text": text}
        if start is not None:
            row |= {"start_char": start, "end_char": end}
        if head is not None:
            row |= {"head": head, "deprel": relation, "upos": tag}
        rows.append(row)
    return rows


def test_tokens_of_stanza():
    pytest.importorskip("stanza", reason="Stanza is for those who name it")
    from stanza.models.common.doc import Document

    text = "Il va au parc. Oui."
    document = Document(
        [
            conllu(
                ((1,), "Il", 2, "nsubj", "PRON", 0, 2),
                ((2,), "va", 0, "root", "VERB", 3, 5),
                ((3, 4), "au", None, None, None, 6, 8),
                ((3,), "à", 5, "case", "ADP", None, None),
                ((4,), "le", 5, "det", "DET", None, None),
                ((5,), "parc", 2, "obl", "NOUN", 9, 13),
                ((6,), ".", 2, "punct", "PUNCT", 13, 14),
            ),
            conllu(
                ((1,), "Oui", 0, "root", "INTJ", 15, 18),
                ((2,), ".", 1, "punct", "PUNCT", 18, 19),
            ),
        ],
        text=text,
    )
    tokens = stanza_tokens(document)
    assert [text[t.start : t.stop] for t in tokens] == [
        *("Il", "va", "au", "au", "parc", ".", "Oui", "."),
    ]
    assert [t.head for t in tokens] == [1, -1, 4, 4, 1, 1, -1, 6]
    tree = collapse(spans_of(text.split(" "))[1], tokens)
    assert tree.head.tolist() == [1, -1, 3, 1, 1]
    assert tree.relation == ("nsubj", "root", "case", "obl", "parataxis")
    assert tree.upos == ("PRON", "VERB", "ADP", "NOUN", "INTJ")


@pytest.mark.parametrize("name", ["xx", "folder"])
def test_a_stanza_pipeline_that_is_not_there_is_named(name, tmp_path):
    pytest.importorskip("stanza", reason="Stanza is for those who name it")
    folder = tmp_path / "fr"
    folder.mkdir()
    name = str(folder) if name == "folder" else name
    with pytest.raises(ConfigError, match="cannot be opened") as error:
        read_parse(make_stimulus(TWO), f"stanza:{name}")
    assert "stanza.download(" in error.value.remedy
    assert "resources.json" in error.value.expected
