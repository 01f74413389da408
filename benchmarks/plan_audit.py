"""A study with very many contexts whose audit is made up: for planning alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

import lpact
from lpact.analyses.base import Audit
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.plan.audit import ContextOffer, RecordingSummary
from lpact.analyses.lpact.plan.sizes import AT_MOST, count_study
from lpact.analyses.lpact.tables.audit import UNIT_INVENTORY
from lpact.config import StudyConfig
from lpact.datasets.base import RecordingId
from lpact.run.audit import StudyAudit

N_SUBJECTS, N_RUNS = 50, 10

TINY: dict[str, Any] = {
    "name": "many",
    "datasets": [
        {
            "name": "one",
            "reader": "simulated",
            "options": {"n_subjects": 1, "n_runs": 1, "n_stories": 3, "n_units": 8},
        }
    ],
    "models": [{"name": "integrated", "layers": [2]}],
    "controls": {"draws": 2},
    "readout": {"folds": 3, "min_train_events": 30},
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {"stripping": {"mismatch_draws": 1}},
}


def made_up_study(n_contexts: int) -> tuple[StudyConfig, StudyAudit]:
    """A study of one real recording, and an audit that says that there are many like it."""
    study = lpact.load_study(TINY)
    audit = study.audit()
    found = audit.of["lpact"]
    ((name, dataset),) = found.detail.items()
    recording, offer = dataset.recordings[0], dataset.contexts[0]
    ids = [
        RecordingId(f"{subject:03}", "1", f"{run:02}", recording.id.stimulus)
        for subject in range(N_SUBJECTS)
        for run in range(N_RUNS)
    ]
    n_each = -(-n_contexts // len(ids))
    many = replace(
        dataset,
        recordings=[_like(recording, own, i) for i, own in enumerate(ids)],
        contexts=list(_contexts(offer, ids, n_each))[:n_contexts],
    )
    tables = dict(audit.tables)
    tables[UNIT_INVENTORY.name] = pl.concat(
        tables[UNIT_INVENTORY.name].with_columns(subject=pl.lit(r.subject), run=pl.lit(r.run)) for r in ids
    )
    made = Audit(tables, detail={name: many})
    rows, claims = count_study(LPactConfig.of(study.config), made)
    own = replace(made, claims=claims, rows=rows, at_most=AT_MOST)
    return study.config, StudyAudit({"lpact": own}, tables, len(ids), audit.seconds * len(ids))


def _like(recording: RecordingSummary, own: RecordingId, number: int) -> RecordingSummary:
    """The same recording under another name, a little longer or shorter."""
    return replace(recording, id=own, n_events=recording.n_events - number % 7)


def _contexts(offer: ContextOffer, ids: list[RecordingId], n_each: int) -> Iterator[ContextOffer]:
    for model in range(n_each):
        for own in ids:
            yield replace(offer, recording=own, model=f"model-{model:04}", layer=2)
