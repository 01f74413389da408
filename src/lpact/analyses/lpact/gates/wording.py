"""Phrases that sentences of the decision share."""

from __future__ import annotations

from lpact.wording import counted, number


def mean_over(n_subject_runs: int, n_left_out: int = 0) -> str:
    """Return what a mean was taken over, and how many subject-runs could not enter it."""
    over = f"mean over {counted(n_subject_runs, 'subject-run')}"
    return f"({over}; {n_left_out} more not computed)" if n_left_out else f"({over})"


def rivalry(model: float | None, rival_name: str, rival: float | None, difference: float) -> str:
    """Return the model's score beside its rival's; the difference shows what rounding would hide."""
    return (
        f"The model scores {number(model)}, {rival_name} {number(rival)}: "
        f"a difference of {number(difference)}"
    )


def joined(prefix: str, sentence: str) -> str:
    """Return ``prefix: sentence`` as one sentence."""
    return f"{prefix}: {sentence[:1].lower()}{sentence[1:]}"


def words(code: str) -> str:
    """A code such as ``run_to_run`` in a sentence."""
    return code.replace("_", " ")
