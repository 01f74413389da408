"""From the sources of a study to its registration. Sizes are counted; no response is held against any feature."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from lpact.config import StudyConfig
from lpact.run.audit import StudyAudit
from lpact.run.preregistration.content import gather, software_now
from lpact.run.preregistration.earlier import look_for_results, refuse_results
from lpact.run.preregistration.own_tasks import look_into_store
from lpact.run.preregistration.planned import planned_claims, planned_rows
from lpact.run.preregistration.record import Registration, new_registration
from lpact.run.provenance import provenance


def register(
    config: StudyConfig,
    audit: StudyAudit,
    *,
    runs: Iterable[Path] = (),
    kept: str = "",
    after_the_fact: bool = False,
    now: datetime | None = None,
) -> Registration:
    """Freeze what a study will do; ``config`` has every plugin option spelt out, as `lpact.study.Study` has it.

    ``runs`` are folders of finished or interrupted runs to look for results in, ``kept`` is the study's own place for
    results of tasks (``[run] tasks``). Where some are found of the same datasets and models, a `RunError` is raised,
    unless the registration is made ``after_the_fact``, which it then says.
    """
    made_from = provenance(config, audit)
    claims = planned_claims(config, audit)
    pairs = {(claim.dataset, claim.model) for claim in claims}
    earlier = [found for run in runs for found in look_for_results(run, made_from.inputs, pairs)]
    if kept:
        earlier += look_into_store(kept, config, audit, made_from.inputs, pairs)
    if not after_the_fact:
        refuse_results(earlier)
    content = gather(
        made_from,
        software_now(made_from.config),
        audit.tables,
        rows=planned_rows(config, audit),
        claims=claims,
        after_the_fact=after_the_fact,
        earlier_runs=earlier,
    )
    return new_registration(content, now)
