"""Stories and transcripts: words are found where they were planted."""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lpact.errors import StimulusError
from lpact.features.language.text import Story, read_stories
from lpact.features.language.transcript import locate

VOCABULARY = (
    "the", "a", "he", "ran", "over", "hill", "Straße", "Müller", "laughed", "softly", "café", "naïve",
    "where", "brought", "eleven", "42", "été", "où", "l'eau", "garçon", "мама", "мыла", "раму", "ελληνικά",
    "σοφός", "हिन्दी", "पढ़ता", "हूँ", "أحب", "القراءة", "istanbul", "tomorrow", "to", "in", "interest",
    "morning", "I", "it's", "o'clock", "again", "window", "river", "stone", "今日",
)  # fmt: skip
CONTRACTIONS = (
    (("do", "n't"), "don't"),
    (("it", "'s"), "it's"),
    (("can", "not"), "cannot"),
    (("they", "'re"), "they're"),
)
APART = (("gonna", "gon na"), ("cannot", "can not"), ("wanna", "wan na"))
DIRECTIONS = (
    "[laughs]", "(he coughs, twice)", "[the hill]", "<noise/>", "*sighs*", "\nJOHN:", "\nMary Ann (softly):",
    "[applause] [the crowd leaves]", "\nNARRATOR\n", "（笑）",
)  # fmt: skip
ASIDE = "here follows something quite different that nobody says"
BLANKS = (" ", "  ", "\n", " \t ", "\u00a0", "\r\n\r\n")
SIGNS = ("", "", ",", ".", "!", "…", ";", "”", "?!")


def surface(draw, word):
    """The same word in another case, Unicode form or with another apostrophe."""
    word = draw(st.sampled_from((str, str.upper, str.lower, str.title)))(word)
    word = word.replace("'", draw(st.sampled_from("'’ʼ")))
    return unicodedata.normalize(draw(st.sampled_from(("NFC", "NFD"))), word)


@st.composite
def transcripts(draw):
    """Cells of a words table, a transcript of them, and the span of each cell in it."""
    cells, spans, text = [], [], draw(st.sampled_from(("", "“", "\n ", "— ")))
    since_aside = 0
    for kind in draw(st.lists(st.integers(0, 11), min_size=1, max_size=30)):
        if kind == 0:
            together, whole = draw(st.sampled_from(CONTRACTIONS))
            cells += together
            at = len(text)
            cut = at + len(together[0])
            spans += [(at, cut), (cut, at + len(whole))]
            text += whole.replace("'", draw(st.sampled_from("'’")))
        elif kind == 1:
            cell, apart = draw(st.sampled_from(APART))
            cells.append(cell)
            spans.append((len(text), len(text) + len(apart)))
            text += apart.upper()
        else:
            cell = draw(st.sampled_from(VOCABULARY))
            cells.append(cell)
            written = surface(draw, cell)
            spans.append((len(text), len(text) + len(written)))
            text += written
        since_aside += 1
        text += draw(st.sampled_from(SIGNS)) + draw(st.sampled_from(BLANKS))
        if draw(st.integers(0, 5)) == 0:
            text += draw(st.sampled_from(DIRECTIONS)) + draw(st.sampled_from(BLANKS))
        elif since_aside > 12 and draw(st.integers(0, 5)) == 0:
            text += ASIDE + " "
            since_aside = 0
    return cells, text, spans


def starts_ends(passage):
    return list(zip(passage.starts.tolist(), passage.ends.tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(transcripts())
def test_words_are_found_where_they_were_planted(planted):
    cells, text, spans = planted
    # An aside near the end has too few words after it to be told from a wrong place.
    after = [cell for cell, (start, _) in zip(cells, spans, strict=True) if start > text.rfind(ASIDE)]
    assume(ASIDE not in text or len(fold_slowly("".join(after))) > 24)
    passage, skipped = locate(cells, text, where="words.tsv")
    assert passage.text == text
    assert starts_ends(passage) == spans
    covered = "".join(text[start:end] for start, end in skipped)
    outside = list(text)
    for start, end in spans:
        outside[start:end] = " " * (end - start)
    # Everything with letters that is in no word is told.
    for direction in ("laughs", "coughs", "noise", "JOHN", "NARRATOR", "笑", "nobody"):
        assert "".join(outside).count(direction) == covered.count(direction)


@settings(max_examples=200, deadline=None)
@given(transcripts(), st.data())
def test_a_removed_word_is_the_one_that_the_error_names(planted, data):
    cells, text, spans = planted
    assume(ASIDE not in text and len(cells) > 1)
    gone = data.draw(st.integers(0, len(cells) - 1))
    start, end = spans[gone]
    # Where the word comes again after a direction, that place is as good as the one it was taken from.
    rest = text[:start] + " " + text[end:]
    again = [fold_slowly(piece) for piece in rest.replace("’", "'").split()]
    assume(fold_slowly(cells[gone]) not in again and cells.count(cells[gone]) == 1)
    without = text[:start] + text[end:]
    with pytest.raises(StimulusError) as error:
        locate(cells, without, where="words.tsv", first_row=100)
    blamed = int(error.value.where.split("row ")[1].split(",")[0]) - 101
    assert blamed == gone
    assert repr(cells[gone]) in error.value.what
    assert error.value.remedy


def fold_slowly(text):
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(c for c in apart if c.isalnum() and c != "ʼ")


def nfd(text):
    return unicodedata.normalize("NFD", text)


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        (["Hello,", "world"], "hello, “world”!", ["hello,", "world"]),
        (["hello", "world"], "Hello, world!", ["Hello", "world"]),
        (["Hello,", "there"], "Hello; there", ["Hello", "there"]),
        (["(so)", "it", "goes..."], "(so) it goes…", ["(so)", "it", "goes…"]),
        (["well--", "known"], "well—known", ["well—", "known"]),
        (["he", "--", "ran", "..."], "he — ran . . .", ["he", "—", "ran", ". . ."]),
        (["``", "yes", "''", "-LRB-", "no", "-RRB-"], '"yes" (no)', ['"', "yes", '"', "(", "no", ")"]),
        (["dogs'", "tails"], "dogs’ tails", ["dogs’", "tails"]),
        (["don", "'t"], "don’t", ["don", "’t"]),
        (["Strasse", "STRAẞE", "fine", "ﬂow"], "straße Strasse ﬁne flow", ["straße", "Strasse", "ﬁne", "flow"]),
        (["İSTANBUL", "ışık"], "istanbul IŞIK", ["istanbul", "IŞIK"]),
        (["cafe", "resume\u0301"], "cafe\u0301 résumé", ["cafe\u0301", "résumé"]),
        (["我", "喜欢", "读书"], "我喜欢读书。", ["我", "喜欢", "读书"]),
        (["我", "喜欢"], "（笑）我喜欢。", ["我", "喜欢"]),
        (["カフェ", "ＡＢＣ"], "ｶﾌｪ abc", ["ｶﾌｪ", "abc"]),
        (["가", "나라"], nfd("가 나라"), [nfd("가"), nfd("나라")]),
        (["น้ำ", "ใส"], "น้ำใส", ["น้ำ", "ใส"]),
        (["שלום", "עולם"], "שָׁלוֹם עוֹלָם", ["שָׁלוֹם", "עוֹלָם"]),
        (["so", "😀", "❤️"], "so 😀, ❤️!", ["so", "😀", "❤️"]),
        (["exam-ple", "one"], "exam-\nple one", ["exam-\nple", "one"]),
        (["10", "%", "&", "5"], "10 % & 5", ["10", "%", "&", "5"]),
    ],
)  # fmt: skip
def test_spelling_that_does_not_count(words, text, found):
    passage, skipped = locate(words, text, where="words.tsv")
    assert passage.words() == found
    assert skipped == [(0, 3)] * text.startswith("（笑）")


def test_marks_that_are_parts_of_letters_count():
    with pytest.raises(StimulusError, match="'की'"):
        locate(["की"], "के", where="words.tsv")


@pytest.mark.parametrize(
    ("words", "text", "skipped"),
    [
        ("a man spoke", "[applause] a man spoke", ["[applause]"]),
        ("he ran", "[he nods] He [he sighs] ran", ["[he nods]", "[he sighs]"]),
        ("Hi Hi Bye", "JOHN: Hi.\nMARY (softly): Hi.\nJOHN: Bye.", ["JOHN:", ".\nMARY (softly):", ".\nJOHN:"]),
        ("Hi Hi Bye", "JOHN\nHi\nMARY\nHi\nJOHN\nBye", ["JOHN", "MARY", "JOHN"]),
        ("he said (softly) come in", "he said (softly) come in", []),
        ("l is here", "[laughs] l is here", ["[laughs]"]),
        ("good morning to everyone here today", "Chapter One of the book good morning to everyone here today the end",
         ["Chapter One of the book", "the end"]),
        ("and amen", "and then amen", ["then"]),
    ],
)  # fmt: skip
def test_stretches_in_no_word_are_told(words, text, skipped):
    passage, found = locate(words.split(), text, where="words.tsv")
    assert [text[start:end] for start, end in found] == skipped
    assert [w.lower() for w in passage.words()] == [w.lower() for w in words.split()]


@pytest.mark.parametrize(
    ("words", "text", "blamed"),
    [
        ("he ran to tomorrow", "he ran tomorrow", "'to'"),
        ("a cat sat", "a cat", "'sat'"),
        ("he -- ran", "he ran", "'--'"),
        ("he ran 20 miles", "he ran twenty miles", "'20'"),
        # The word comes later, but what follows it does not.
        ("he went home to the old house by the sea", "he went to the old house by the sea home", "'home'"),
        ("go on", "", "'go'"),
    ],
)  # fmt: skip
def test_a_word_that_is_not_there_is_named(words, text, blamed):
    with pytest.raises(StimulusError) as error:
        locate(words.split(), text, where="words.tsv, transcript of story 's'")
    row = [repr(w) for w in words.split()].index(blamed) + 1
    assert f"row {row}, word {blamed}" in error.value.where
    assert "transcript" in error.value.remedy


def test_a_long_text_with_many_directions():
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(rng.choice(letters, n)) for n in rng.integers(1, 9, size=2000)]
    words = [vocabulary[i] for i in rng.integers(0, 2000, size=20_000)]
    pieces, starts, at = [], [], 0
    for i, word in enumerate(words):
        starts.append(at)
        extra = " [laughs a lot]" if rng.random() < 0.05 else ",  " if rng.random() < 0.1 else ""
        extra += " so said somebody else" if i % 97 == 50 else ""
        pieces.append(word.title() + extra + " ")
        at += len(pieces[-1])
    text = "".join(pieces)
    passage, skipped = locate(words, text, where="words.tsv")
    assert passage.starts.tolist() == starts
    assert (passage.ends - passage.starts).tolist() == [len(word) for word in words]
    assert sum("so said" in text[a:b] for a, b in skipped) == text.count("so said somebody else")


def table(**columns):
    return pl.DataFrame(columns)


def test_words_are_joined_as_the_cells_are():
    words = table(
        word=["Hello,", " big ", "wide", "world"],
        story_id=["b", "b", "b", "a"],
        sentence_id=[7, 7, 8, 9],
    )
    first, second = read_stories(words, where="words.tsv")
    assert (first.id, first.first_row, first.words) == ("b", 0, ("Hello,", " big ", "wide"))
    assert first.passage.text == "Hello,  big  wide"
    assert first.passage.words() == ["Hello,", "big", "wide"]
    assert first.sentence.tolist() == [7, 7, 8]
    assert (second.id, second.first_row, second.passage.text) == ("a", 3, "world")


@pytest.mark.parametrize(
    ("extra", "joiner", "text"),
    [
        ({}, " ", "a b c"),
        ({}, "", "abc"),
        ({"space_after": ["no", None, "yes"]}, " ", "ab c"),
        ({"space_after": [False, True, False]}, " ", "ab c"),
        ({"space_after": [0, 1, 1]}, "", "ab c"),
        ({"misc": ["x=1|SpaceAfter=No", "_", None]}, " ", "ab c"),
        ({"misc": ["SpaceAfter=No", "SpaceAfter=No", "_"], "space_after": ["yes", "", ""]}, " ", "a bc"),
    ],
)  # fmt: skip
def test_what_stands_after_a_word(extra, joiner, text):
    (story,) = read_stories(table(word=["a", "b", "c"], **extra), where="w", joiner=joiner)
    assert (story.id, story.sentence, story.passage.text) == ("story", None, text)
    assert story.passage.words() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("words", "transcripts", "says"),
    [
        (table(token=["a"]), None, "no column 'word'"),
        (table(word=["a", " "]), None, "row 2"),
        (table(word=["a", None]), None, "row 2"),
        (table(word=["a", "b", "c"], story_id=["x", "y", "x"]), None, "returns after"),
        (table(word=["a", "b"], story_id=["x", None]), None, "'story_id'"),
        (table(word=["a", "b"], space_after=["maybe", "no"]), None, "'maybe'"),
        (table(word=["a"], story_id=["x"]), {"x": "a", "y": "b"}, "story 'y'"),
        (table(word=["a", "b"], story_id=["x", "y"]), {"x": "a"}, "no transcript of story 'y'"),
        (table(word=["a", "b"], story_id=["x", "y"]), {"x": "a", "y": "c"}, "row 2, word 'b'"),
    ],
)
def test_tables_that_cannot_be_read(words, transcripts, says):
    with pytest.raises(StimulusError, match=says):
        read_stories(words, where="words.tsv", transcripts=transcripts)


def test_a_table_without_words_has_no_stories():
    assert read_stories(table(word=pl.Series([], dtype=pl.String)), where="w") == []


def test_a_transcript_is_what_is_read():
    words = table(word=["hello", "world", "bye"], story_id=["x", "x", "y"])
    first, second = read_stories(words, where="w", transcripts={"y": "Bye!", "x": "[music] Hello, World."})
    assert first.passage.text == "[music] Hello, World."
    assert first.passage.words() == ["Hello", "World"]
    assert first.skipped == ((0, 7),)
    assert second.passage.words() == ["Bye"]


def story_of(text, words):
    (story,) = read_stories(table(word=words), where="w", transcripts={"story": text})
    return story


def test_a_piece_keeps_the_punctuation_between_words():
    story = story_of("So: “Hello, world,” he said.", ["so", "hello", "world", "he", "said"])
    piece = story.piece(1, 4)
    assert piece.text == "Hello, world,” he"
    assert piece.words() == ["Hello", "world", "he"]
    assert story.piece(0, 5).text == "So: “Hello, world,” he said"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.sampled_from((" ", "", " / ")))
def test_arranged_words_are_slices_of_the_text(order, joiner):
    base = story_of("So: “Hello, world,” he said.", ["So:", "hello", "world,”", "he", "said"])
    story = Story(base.id, 0, base.words, None, base.passage, joiner)
    cells = ["So:", "Hello", "world,”", "he", "said"]
    around = [("", ""), ("“", ","), ("", ""), ("", ""), ("", ".")]
    passage = story.arranged(np.array(order, dtype=np.int64))
    pieces = [around[i][0] + cells[i] + around[i][1] for i in order[:-1]]
    last = order[-1]
    # Every word but the last has a blank after it in the story, which stays whatever the joiner.
    glue = [joiner if i == 4 else " " for i in order[:-1]]
    text = "".join(piece + space for piece, space in zip(pieces, glue, strict=True))
    assert passage.text == text + around[last][0] + cells[last]
    assert passage.words() == [cells[i] for i in order]
