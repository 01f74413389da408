"""Sentences of a story, and the turn to a new paragraph."""

from __future__ import annotations

from lpact.datasets.simulated.prose import lexicon as lex
from lpact.datasets.simulated.prose.clauses import Clauses
from lpact.datasets.simulated.prose.predicates import Frame
from lpact.datasets.simulated.prose.state import new_things, settings, subjects
from lpact.datasets.simulated.prose.writer import Chooser, Phrase, Word


class Narrator(Clauses):
    """Writes a story, one sentence at a time."""

    def __init__(self, chooser: Chooser) -> None:
        super().__init__(chooser)
        self._since_paragraph = 0

    def write_sentence(self) -> None:
        """Write the next sentence of the story."""
        self.depth = 0
        if not self.tokens:
            self._setting()
        else:
            age = self._since_paragraph
            turn = 0.0 if age < 3 else 1.0 if age >= 7 else 0.12 * (age - 1)
            how = self.choose(
                {
                    "paragraph": turn,
                    "clause": 0.64 * (1.0 - turn),
                    "place": 0.08 * (1.0 - turn) * (self.state.place is not None),
                    "subordinate": 0.12 * (1.0 - turn),
                    "weather": 0.06 * (1.0 - turn),
                    "there": 0.1 * (1.0 - turn),
                }
            )
            writers = {
                "paragraph": self._paragraph,
                "clause": self._clause_sentence,
                "place": self._place,
                "subordinate": self._subordinate,
                "weather": self._weather,
                "there": self._there,
            }
            writers[how]()
        self._since_paragraph += 1
        self.end_sentence()

    def _setting(self) -> None:
        """``A young girl named Mira lived in a small village near the sea.``"""
        noun, _ = self._subject(subjects(self.state, new=1.0))
        self.state.tense = self.choose({"past": 0.6, "present": 0.4})
        root = self.word(self._form(lex.LIVE, plural=False), "VERB")
        root.attach(None, "root")
        noun.attach(root, "nsubj")
        head, _ = self.phrase(settings())
        head.attach(root, "obl")
        self.mark({".": 1.0})

    def _paragraph(self) -> None:
        """``Later, Mira walked to the mill.``"""
        self.paragraph += 1
        self._since_paragraph = 0
        opener, _ = self.phrase([Phrase(1.0, _opener(words), None) for words in lex.OPENERS])
        self.mark({",": 1.0})
        root = self._clause(Frame(), moving=6.0, new=0.5)
        root.attach(None, "root")
        opener.attach(root, "advmod" if opener.upos == "ADV" else "obl")

    def _clause_sentence(self) -> None:
        self._clause(Frame(), new=0.15, weather=0.3).attach(None, "root")

    def _place(self) -> None:
        """``In the garden, Mira sang.``"""
        head = self._whereabouts()
        self.mark({",": 1.0})
        root = self._clause(Frame(placed=True))
        root.attach(None, "root")
        head.attach(root, "obl")

    def _subordinate(self) -> None:
        """``When it rained, Mira ran home.``"""
        inner = self._embedded(Frame("front"))
        root = self._clause(Frame(coordinated=True))
        root.attach(None, "root")
        inner.attach(root, "advcl")

    def _weather(self) -> None:
        """``It rained all day.``"""
        self._impersonal(Frame()).attach(None, "root")

    def _there(self) -> None:
        """``There was a rusty key on the bench.``"""
        there = self.word("there", "PRON")
        root = self.word(lex.BE[self.state.tense][0], "VERB")
        root.attach(None, "root")
        there.attach(root, "expl")
        head, mention = self.phrase(new_things(self.state))
        head.attach(root, "nsubj")
        self.state.mention_thing(mention, self.sentence)
        self._whereabouts().attach(root, "obl")
        self.mark({".": 1.0})


def _opener(words: tuple[str, ...]) -> tuple[Word, ...]:
    if words == ("soon", "after"):
        return (Word("soon", "ADV", "advmod"), Word("after", "ADV"))
    if len(words) == 1:
        return (Word(words[0], "ADV"),)
    one = words[0] == "one"
    first = Word(words[0], "NUM", "nummod") if one else Word(words[0], "DET", "det")
    return (first, Word(words[1], "NOUN"))
