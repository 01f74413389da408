"""Which claims of a run a sentence names: models, datasets, layers and mechanisms."""

from __future__ import annotations

import re

from lpact.analyses.lpact.claim_audit.verdicts import Verdict, Verdicts

_BESIDE = r"(?:models?|layers?|features|embeddings|network|dataset|data|recordings|study|corpus)"
_LAYERS = re.compile(r"\blayers?\s+(\d+)(?:\s*(?:,|and|or|to|-|–)\s*(\d+))*", re.IGNORECASE)


def named_claims(sentence: str, verdicts: Verdicts) -> tuple[Verdict, ...] | None:
    """Claims that a sentence is about, or None where it names nothing of the run.

    A name that is a plain lower-case word (``drift``) counts only beside a noun such as *model* or *dataset*, or with a
    capital inside the sentence; names with digits, marks or capitals count wherever they stand. A name of one field
    narrows that field only: the other fields stay open.
    """
    chosen: list[set[str | int]] = []
    for field in (0, 1, 3):
        known = sorted({v.claim[field] for v in verdicts.claims if v.claim is not None}, key=str)
        found = {n for n in known if _is_named(str(n), sentence, mechanism=field == 3)}
        chosen.append(set(found) or set(known))
    layers = {
        int(number) for m in _LAYERS.finditer(sentence) for number in re.findall(r"\d+", m[0])
    }
    known_layers = {v.claim[2] for v in verdicts.claims if v.claim is not None}
    layers = layers & known_layers or known_layers
    datasets, models, mechanisms = chosen
    claims = tuple(
        v
        for v in verdicts.claims
        if v.claim is not None
        and v.claim[0] in datasets
        and v.claim[1] in models
        and v.claim[2] in layers
        and v.claim[3] in mechanisms
    )
    return claims if 0 < len(claims) < len(verdicts.claims) else None


def mechanism_expressions(verdicts: Verdicts) -> tuple[str, ...]:
    """The run's mechanisms as expressions over normalised words."""
    names = sorted({v.claim[3] for v in verdicts.claims if v.claim is not None} - {"none"})
    return tuple(rf"{re.escape(name.replace('_', ' ').lower())}s?" for name in names)


def _is_named(name: str, sentence: str, *, mechanism: bool) -> bool:
    """Whether a sentence holds a name, however its parts are joined: gpt2, GPT-2, gpt_2."""
    parts = re.findall(r"[A-Za-z]+|\d+", name)
    if not parts or name == "none":
        return False
    joined = r"[\s_\-–/.]*".join(re.escape(part) for part in parts)
    pattern = re.compile(rf"(?<![\w]){joined}(?:s|es)?(?![\w])", re.IGNORECASE)
    plain = name.isalpha() and name.islower() and not mechanism
    for match in pattern.finditer(sentence):
        if not plain:
            return True
        capital = match.start() > 0 and match[0][0].isupper()
        before, after = sentence[: match.start()], sentence[match.end() :]
        beside = re.match(rf"[`'\"*]*\s+{_BESIDE}\b", after) or re.search(
            rf"\b{_BESIDE}\s+[`'\"*]*$", before
        )
        coded = before.endswith(("`", "texttt{", "emph{"))
        if capital or beside or coded:
            return True
    return False
