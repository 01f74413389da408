"""Words and tokens, with tokenizers trained here, against a plain loop over characters."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.errors import FeatureError
from lpact.features.language.text import match_tokens, tokenise
from lpact.features.language.transcript import Passage, locate

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

SENTENCES = (
    "The old man went down to the river, and he didn't look back.",
    'In the end it\'s  what   you do, not what you say: "well" -- so they said…',
    "Das Mädchen läuft über die Straße nach Hause; größer wird's nicht.",
    "L'été où naïvement il mangea l'œuf, ça n'allait pas.",
    "我喜欢读书。 他 昨天 去 了 北京 。",
    "今日は 天気が いい。 カフェに 行きます。",
    "मैं हिन्दी पढ़ता हूँ। वह घर गया।",
    "أنا أحب القراءة في المساء.",
    "I love it 👩‍👩‍👧 😀 ok ❤️ !",
    "ﬁne İstanbul cafe\u0301 ＡＢＣ x²",
)
WORDS = tuple(word for sentence in SENTENCES for word in sentence.split())
BLANKS = (" ", "  ", "\n", "\t ", "\u00a0", " \u3000", "\u200b")


def byte_level(*, add_prefix_space, trim_offsets):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.post_processor = tokenizers.processors.ByteLevel(trim_offsets=trim_offsets)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    return tokenizer, tokenizers.trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)


def word_piece():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    return tokenizer, tokenizers.trainers.WordPieceTrainer(
        vocab_size=300, special_tokens=["[UNK]"], show_progress=False
    )


def unigram():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
    spaces = tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
    tokenizer.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    return tokenizer, tokenizers.trainers.UnigramTrainer(
        vocab_size=250, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )


def byte_fallback(*, metaspace):
    model = tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    tokenizer = tokenizers.Tokenizer(model)
    if metaspace:
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
        tokenizer.decoder = tokenizers.decoders.Metaspace()
    else:
        prepend = tokenizers.normalizers.Prepend("▁")
        replace = tokenizers.normalizers.Replace(" ", "▁")
        tokenizer.normalizer = tokenizers.normalizers.Sequence([prepend, replace])
        tokenizer.decoder = tokenizers.decoders.Sequence(
            [
                tokenizers.decoders.Replace("▁", " "),
                tokenizers.decoders.ByteFallback(),
                tokenizers.decoders.Fuse(),
                tokenizers.decoders.Strip(" ", 1, 0),
            ]
        )
    special = ["<unk>", *(f"<0x{i:02X}>" for i in range(256))]
    return tokenizer, tokenizers.trainers.BpeTrainer(
        vocab_size=520, special_tokens=special, limit_alphabet=40, show_progress=False
    )


def across_words():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    return tokenizer, tokenizers.trainers.BpeTrainer(vocab_size=420, special_tokens=["<unk>"], show_progress=False)


KINDS = {
    "byte_level": lambda: byte_level(add_prefix_space=False, trim_offsets=False),
    "byte_level_trimmed": lambda: byte_level(add_prefix_space=False, trim_offsets=True),
    "byte_level_prefix": lambda: byte_level(add_prefix_space=True, trim_offsets=False),
    "byte_level_prefix_trimmed": lambda: byte_level(add_prefix_space=True, trim_offsets=True),
    "word_piece": word_piece,
    "unigram": unigram,
    "metaspace": lambda: byte_fallback(metaspace=True),
    "prepended": lambda: byte_fallback(metaspace=False),
    "across_words": across_words,
}
BYTE_LEVEL = tuple(kind for kind in KINDS if kind.startswith("byte_level"))


@cache
def trained(kind):
    tokenizer, trainer = KINDS[kind]()
    tokenizer.train_from_iterator([*SENTENCES, *["in the end"] * 30], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def joined(words, blanks):
    text, starts = "", []
    for word, blank in zip(words, blanks, strict=True):
        starts.append(len(text))
        text += word + blank
    starts = np.array(starts, dtype=np.int64)
    return Passage(text, starts, starts + np.array([len(w) for w in words], dtype=np.int64))


def is_blank(character):
    return character.isspace() or character in "\u200b\u2060\ufeff"


def slow_match(passage, offsets):
    """First, last and lead of every word, by a loop over words, tokens and characters."""
    solid = [{k for k in range(start, end) if not is_blank(passage.text[k])} for start, end in offsets]
    result, previous = [], -1
    for start, end in zip(passage.starts.tolist(), passage.ends.tolist(), strict=True):
        mine = [t for t, covered in enumerate(solid) if covered & set(range(start, end))]
        lead = mine[0]
        while lead - 1 > previous and not solid[lead - 1]:
            lead -= 1
        result.append((mine[0], mine[-1], lead))
        previous = mine[-1]
    return result


def offsets_of(tokenizer, text):
    """Offsets of the tokenizers package itself; a blank put before the text covers nothing."""
    encoding = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    offsets = list(encoding.offsets)
    own = not text or not is_blank(text[0])
    if own and encoding.tokens and set(encoding.tokens[0]) <= set("▁Ġ"):
        offsets[0] = (0, 0)
    return encoding.ids, offsets


@st.composite
def passages(draw, words=WORDS):
    chosen = draw(st.lists(st.sampled_from(words), min_size=1, max_size=12))
    blanks = draw(st.lists(st.sampled_from((*BLANKS, " ", " ")), min_size=len(chosen), max_size=len(chosen)))
    return joined(chosen, blanks)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(drawn=st.lists(passages(), min_size=1, max_size=3))
def test_tokens_of_words_are_those_of_a_loop_over_characters(kind, drawn):
    tokenizer = trained(kind)
    many = tokenise(tokenizer, drawn, where="tokenizer")
    for passage, tokens in zip(drawn, many, strict=True):
        ids, offsets = offsets_of(tokenizer, passage.text)
        assert tokens.ids.tolist() == ids
        found = zip(tokens.first.tolist(), tokens.last.tolist(), tokens.lead.tolist(), strict=True)
        assert list(found) == slow_match(passage, offsets)
        assert (np.diff(tokens.first) >= 0).all()
        assert (np.diff(tokens.last) >= 0).all()
        assert (tokens.lead <= tokens.first).all()
        assert (tokens.first <= tokens.last).all()


@pytest.mark.parametrize("kind", ["byte_level", "byte_level_prefix", "metaspace", "prepended"])
@settings(max_examples=60, deadline=None)
@given(passage=passages())
def test_every_character_of_a_word_is_covered_by_its_tokens(kind, passage):
    tokenizer = trained(kind)
    (tokens,) = tokenise(tokenizer, [passage], where="tokenizer")
    _, offsets = offsets_of(tokenizer, passage.text)
    for i, word in enumerate(passage.words()):
        covered = set()
        for start, end in offsets[tokens.first[i] : tokens.last[i] + 1]:
            covered |= set(range(start, end))
        span = range(passage.starts[i], passage.ends[i])
        assert covered >= set(span), word


@pytest.mark.parametrize("kind", BYTE_LEVEL)
@settings(max_examples=60, deadline=None)
@given(passage=passages())
def test_decoded_tokens_of_a_word_contain_it(kind, passage):
    tokenizer = trained(kind)
    (tokens,) = tokenise(tokenizer, [passage], where="tokenizer")
    for i, word in enumerate(passage.words()):
        decoded = tokenizer.decode(tokens.ids[tokens.first[i] : tokens.last[i] + 1].tolist())
        assert word in decoded
        assert decoded.strip() == decoded.lstrip()  # no token of the blanks after it


@pytest.mark.parametrize("kind", KINDS)
def test_whole_texts_in_several_languages(kind):
    tokenizer = trained(kind)
    many = [locate(sentence.split(), sentence, where="w")[0] for sentence in SENTENCES]
    for passage, tokens in zip(many, tokenise(tokenizer, many, where="t"), strict=True):
        _, offsets = offsets_of(tokenizer, passage.text)
        found = zip(tokens.first.tolist(), tokens.last.tolist(), tokens.lead.tolist(), strict=True)
        assert list(found) == slow_match(passage, offsets)


def test_words_without_blanks_between_them():
    text = "我喜欢读书"
    passage, _ = locate(["我", "喜欢", "读书"], text, where="w")
    (tokens,) = tokenise(trained("byte_level"), [passage], where="t")
    for i, word in enumerate(passage.words()):
        ids = tokens.ids[tokens.first[i] : tokens.last[i] + 1].tolist()
        assert word in trained("byte_level").decode(ids)


def test_a_token_over_several_words_belongs_to_each():
    passage = joined(["in", "the", "end"], [" ", " ", ""])
    (tokens,) = tokenise(trained("across_words"), [passage], where="t")
    assert len(tokens.ids) == 1
    assert (tokens.first.tolist(), tokens.last.tolist()) == ([0, 0, 0], [0, 0, 0])


def match(text, words, offsets):
    passage, _ = locate(words, text, where="w")
    tokens = match_tokens(passage, range(len(offsets)), offsets, where="tokenizer")
    return tokens.first.tolist(), tokens.last.tolist(), tokens.lead.tolist()


@pytest.mark.parametrize(
    ("text", "words", "offsets", "expected"),
    [
        # The blank before a word inside its token, or outside.
        ("a bc", ["a", "bc"], [(0, 1), (1, 3), (3, 4)], ([0, 1], [0, 2], [0, 1])),
        ("a bc", ["a", "bc"], [(0, 1), (2, 3), (3, 4)], ([0, 1], [0, 2], [0, 1])),
        # Blanks of their own, with offsets or with none.
        ("a  b", ["a", "b"], [(0, 1), (1, 2), (2, 3), (3, 4)], ([0, 3], [0, 3], [0, 1])),
        ("a  b", ["a", "b"], [(0, 0), (0, 1), (2, 2), (3, 3), (3, 4)], ([1, 4], [1, 4], [0, 2])),
        # Punctuation between words belongs to none, and ends the lead.
        ("a, b", ["a", "b"], [(0, 1), (1, 2), (2, 3), (3, 4)], ([0, 3], [0, 3], [0, 2])),
        ("a ,b", ["a", "b"], [(0, 1), (1, 2), (2, 3), (3, 4)], ([0, 3], [0, 3], [0, 3])),
        # Punctuation in the word's own token.
        ("a, b", ["a", "b"], [(0, 2), (2, 4)], ([0, 1], [0, 1], [0, 1])),
        # One token over both; then one over the end of the first and the second.
        ("a b", ["a", "b"], [(0, 3)], ([0, 0], [0, 0], [0, 0])),
        ("aa b", ["aa", "b"], [(0, 1), (1, 4)], ([0, 1], [1, 1], [0, 1])),
        ("a b c", ["a", "b", "c"], [(0, 5)], ([0, 0, 0], [0, 0, 0], [0, 0, 0])),
        # Bytes of one character, and bytes of two words in one token.
        ("é b", ["é", "b"], [(0, 1), (0, 1), (1, 3)], ([0, 2], [1, 2], [0, 2])),
        ("今日", ["今", "日"], [(0, 1), (0, 2), (1, 2)], ([0, 1], [1, 2], [0, 1])),
        # Blanks at the end are nobody's.
        ("a b ", ["a", "b"], [(0, 1), (1, 3), (3, 4)], ([0, 1], [0, 1], [0, 1])),
    ],
)
def test_tokens_by_hand(text, words, offsets, expected):
    assert match(text, words, offsets) == expected


def test_a_word_with_a_blank_inside_takes_the_tokens_between():
    passage = Passage("New York x", np.array([0, 9]), np.array([8, 10]))
    tokens = match_tokens(passage, [5, 6, 7, 8], [(0, 3), (3, 4), (4, 8), (8, 10)], where="t")
    assert (tokens.first.tolist(), tokens.last.tolist()) == ([0, 3], [2, 3])


def test_a_passage_without_words():
    empty = Passage("", np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    (tokens,) = tokenise(trained("byte_level"), [empty], where="t")
    assert [len(a) for a in (tokens.ids, tokens.first, tokens.last, tokens.lead)] == [0, 0, 0, 0]
    assert tokenise(trained("byte_level"), [], where="t") == []


def test_a_word_without_a_token_is_named():
    passage = joined(["one", "\u0301\u0300", "two"], [" ", " ", ""])
    with pytest.raises(FeatureError) as error:
        tokenise(trained("word_piece"), [passage], where="tokenizer 'm'", rows=[[7, 41, 9]])
    assert "tokenizer 'm', row 42" in error.value.where
    assert "U+0301 U+0300" in error.value.where
    assert "one" in error.value.got
    assert "two" in error.value.got
    assert error.value.remedy


def test_offsets_that_go_back_are_refused():
    passage = joined(["a", "b"], [" ", ""])
    with pytest.raises(FeatureError, match="reading order"):
        match_tokens(passage, [0, 1], [(2, 3), (0, 1)], where="t")


def test_a_tokenizer_without_offsets_is_refused():
    slow = transformers.CanineTokenizer()  # code points, without a file of its own
    with pytest.raises(FeatureError, match="no character offsets") as error:
        tokenise(slow, [joined(["a"], [""])], where="t")
    assert error.value.got == "CanineTokenizer"


def test_nothing_is_cut_padded_added_or_warned_about():
    """A tokenizer whose file asks for truncation, padding and special tokens, and has a short limit."""
    tokenizer, trainer = KINDS["byte_level"]()
    trainer.special_tokens = ["<s>", "<pad>"]
    tokenizer.train_from_iterator(SENTENCES, trainer)
    plain = tokenizer.encode(SENTENCES[0]).ids
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=64, pad_token="<pad>")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=4, pad_token="<pad>", bos_token="<s>"
    )
    words = SENTENCES[0].split()
    passage = joined(words, [" "] * (len(words) - 1) + [""])
    short = joined(["The"], [""])
    long_tokens, short_tokens = tokenise(fast, [passage, short], where="t")
    assert long_tokens.ids.tolist() == plain
    assert len(long_tokens.ids) > 4 > len(short_tokens.ids)
    assert fast.decode(short_tokens.ids.tolist()) == "The"
