"""Markdown, LaTeX and plain text: what is read, where it stands, and what is left out."""

from __future__ import annotations

import pytest

from lpact.analyses.lpact.claims import Verdicts
from lpact.claim_audit import Format, check_text, unread_files
from lpact.claim_audit.readers import LONGEST_SENTENCE, READERS, Block, BlockKind, split_sentences
from lpact.errors import InputError

CLAIM = "GPT-2 is brain-like."
WEAK = Verdicts.of_label("control_explained")

MARKDOWN = f"""---
title: "Brain-like models"
author: A. Brain-like
---

# {CLAIM}

Plain. **{CLAIM}** See [here](https://brain-like.org).

```python
text = "{CLAIM}"
```

> {CLAIM}
> {CLAIM}

- first item
- {CLAIM}

| model | verdict |
|-------|---------|
| GPT-2 | it is brain-like |

Code `{CLAIM}` and <!-- {CLAIM} --> end.

    {CLAIM}

Setext: GPT-2 is brain-like
---------------------------
"""

LATEX = rf"""\documentclass{{article}}
\newcommand{{\x}}{{{CLAIM}}}
\title{{Brain-like language models}}
\begin{{document}}
\maketitle
% {CLAIM}
\begin{{abstract}}
{CLAIM}
\end{{abstract}}
\section{{GPT-2 is \emph{{brain-like}}}}
It is 100\% true. {CLAIM} % {CLAIM}
\begin{{quote}}
{CLAIM}
\end{{quote}}
\begin{{verbatim}}
{CLAIM}
\end{{verbatim}}
Some text\footnote{{{CLAIM}}} goes on, ``GPT-2 is brain-like'', they say \enquote{{GPT-2 is brain-like}}.
\begin{{figure}}
\includegraphics{{brain-like}}
\caption{{{CLAIM}}}
\end{{figure}}
\begin{{itemize}}
\item {CLAIM}
\end{{itemize}}
\begin{{equation}}
brain-like = 1
\end{{equation}}
\input{{sections/methods}}
% \input{{sections/unused}}
\end{{document}}
{CLAIM}
"""


def lines(text: str, format: Format) -> list[int]:
    return [found.line for found in check_text(text, format, WEAK)]


def expected(text: str, starts: tuple[str, ...]) -> list[int]:
    """Lines that begin with one of ``starts``, in the order of the text."""
    return [i for i, line in enumerate(text.splitlines(), 1) if line.startswith(starts)]


def test_markdown_prose_is_read_and_the_rest_is_not() -> None:
    starts = ("title:", "# ", "Plain.", "- GPT", "| GPT", "Setext:")
    assert lines(MARKDOWN, "markdown") == expected(MARKDOWN, starts)


def test_latex_prose_is_read_and_the_rest_is_not() -> None:
    found = lines(LATEX, "latex")
    starts = (r"\title", CLAIM, r"\section", "It is", "Some", r"\caption", r"\item GPT")
    wanted = expected(LATEX, starts)
    # The bare claim stands in the abstract, the quotation, the listing and after the end; only the first is read.
    bare = [i for i, line in enumerate(LATEX.splitlines(), 1) if line == CLAIM]
    assert len(bare) == 4
    assert found == [line for line in wanted if line not in bare[1:]]


def test_columns_are_those_of_the_file() -> None:
    (found,) = check_text(f"Text. *{CLAIM}*", "markdown", WEAK)
    assert (found.line, found.column) == (1, 8)
    (found,) = check_text(rf"Text. \textbf{{{CLAIM}}}", "latex", WEAK)
    assert (found.line, found.column) == (1, len(r"Text. \textbf{") + 1)


def test_included_files_are_named() -> None:
    line = expected(LATEX, (r"\input",))
    assert unread_files(LATEX, "latex") == [(line[0], "sections/methods")]
    assert unread_files(LATEX, "markdown") == []


@pytest.mark.parametrize("format", list(READERS))
@pytest.mark.parametrize("text", [MARKDOWN, LATEX, "", "\n\n", "{", "```", r"\begin{quote}", "|", "> ", "$"])
def test_readers_never_move_a_character(format: Format, text: str) -> None:
    for block in READERS[format](text):
        assert block.start + len(block.text) <= len(text)
        for offset, character in enumerate(block.text):
            if character.isalnum():
                assert text[block.start + offset] == character


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("See Smith et al. (2020) for this. Then that.", 2),
        ("Scores (cf. Fig. 2) rose by 0.3 vs. 0.2 in all. End.", 2),
        ("This holds, e.g. GPT-2, i.e. a model. And more.", 2),
        ("J. R. Smith said so. We did not.", 2),
        ("Is it so? Yes! “It is.” Then we left.", 4),
        ("One sentence only", 1),
        ("The value was 3.14. It rose.", 2),
    ],
)
def test_sentences(text: str, n: int) -> None:
    assert len(list(split_sentences(Block(BlockKind.PROSE, 0, text)))) == n


def test_a_long_sentence_is_read_in_pieces_that_leave_nothing_out() -> None:
    # Without pieces, the scope of every match is the whole sentence: these lines would take many minutes.
    text = f"the cortex and {CLAIM[:-1]}, " * 1000
    assert 30_000 < len(text) < LONGEST_SENTENCE
    pieces = list(split_sentences(Block(BlockKind.PROSE, 0, text)))
    assert max(len(piece.text) for piece in pieces) <= 2000
    assert "".join("".join(p.text for p in pieces).split()) == "".join(text.split())
    assert [text[p.start : p.end] for p in pieces] == [p.text for p in pieces]
    assert len(check_text(text, "text", WEAK)) == len(pieces)


def test_a_sentence_of_megabytes_is_an_error_that_quotes_its_beginning() -> None:
    text = f"Fine so far. {CLAIM[:-1]} and " + '"word (1990) and ' * 200_000
    with pytest.raises(InputError, match="too long to be checked") as caught:
        check_text(text, "text", WEAK)
    assert "GPT-2" in str(caught.value)


def test_a_sentence_over_lines_is_one() -> None:
    text = "GPT-2 is,\nas we found,\nbrain-like.\n\n> GPT-2 is brain-like.\n"
    (found,) = check_text(text, "text", WEAK)
    assert (found.line, found.sentence) == (1, "GPT-2 is, as we found, brain-like.")


def test_citations_in_the_sentence_attribute_it() -> None:
    own = r"GPT-2 is brain-like~\citep{smith}."
    others = r"\citet{smith} argue that GPT-2 is brain-like."
    assert lines(own, "latex") == [1]
    assert lines(others, "latex") == []
    assert lines("@smith2020 argue that GPT-2 is brain-like.", "markdown") == []
    assert lines("GPT-2 is brain-like [@smith2020].", "markdown") == [1]


def test_a_box_set_as_a_quotation_is_the_texts_own() -> None:
    assert lines(f"> **Key finding:** {CLAIM}\n", "markdown") == [1]
    assert lines(f"> [!NOTE]\n> {CLAIM}\n", "markdown") == [1]
    assert lines(f"> {CLAIM}\n", "markdown") == []


def test_names_of_models_set_as_code_are_read() -> None:
    claim = "`{}` is aligned with the brain."
    assert lines(claim.format("gpt2-xl"), "markdown") == [1]
    assert lines("It processes speech like `GPT-2 is brain-like`.", "markdown") == []


def test_a_label_makes_the_next_sentence_a_hypothesis() -> None:
    assert lines(f"*Hypothesis 2.* {CLAIM}", "markdown") == []
    assert lines(f"*Result 2.* {CLAIM}", "markdown") == [1]


def test_two_names_before_a_verb_of_saying_are_authors_but_models_are_not() -> None:
    assert lines("Toneva and Wehbe reported that GPT-2 is brain-like.", "text") == []
    assert lines("Bert and Llama show that machines are brain-like.", "text") == [1]


@pytest.mark.parametrize(
    ("format", "mark"),
    [
        ("latex", "\\begin{equation}"),
        ("latex", "\\begin{tabular}"),
        ("latex", "\\begin{quote}"),
        ("latex", "\\item["),
        ("latex", "\\("),
        ("latex", "\\["),
        ("markdown", "<!--"),
        ("markdown", "[^"),
        ("markdown", "<https://"),
    ],
)
def test_marks_without_an_end_are_read_in_linear_time(format: Format, mark: str) -> None:
    """In quadratic time each of these takes minutes."""
    text = mark * 20_000 + "\n\n" + CLAIM
    blocks = READERS[format](text)
    assert CLAIM in "".join(block.text for block in blocks)


def test_environments_end_where_their_own_end_is() -> None:
    text = r"\begin{align} a \begin{align*} b \end{align} Read. \begin{quote}Said.\end{quote} \end{align*} End."
    words = [(block.kind, word) for block in READERS["latex"](text) for word in block.text.split()]
    assert (BlockKind.QUOTE, "Said.") in words
    assert [word for kind, word in words if kind == BlockKind.PROSE] == ["\ue002", "Read.", "End."]
