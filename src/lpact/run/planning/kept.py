"""The estimate of a run, kept in its working folder: a resumed run need not calibrate again to know what it costs."""

from __future__ import annotations

import platform
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from lpact.run.plan import Plan
from lpact.run.planning.costs import StageCost
from lpact.run.planning.estimate import Estimate
from lpact.run.planning.machine import usable_cores
from lpact.store import atomic_write_bytes, code_digest
from lpact.store.rundir import PLAN_NAME


class _Kept(BaseModel):
    """Contents of ``plan.json``; an estimate of another configuration, machine or code is not taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    config_digest: str
    code: str
    machine: str
    n_contexts: int
    n_feature_sets: int
    stages: tuple[StageCost, ...]
    extrapolated: bool


def keep_estimate(folder: Path, plan: Plan) -> None:
    """Write what a plan expects into a working folder."""
    kept = _Kept(
        config_digest=plan.config_digest,
        code=code_digest(),
        machine=_machine(),
        n_contexts=plan.n_contexts,
        n_feature_sets=plan.extraction.n_sets,
        stages=plan.stages,
        extrapolated=plan.estimate.extrapolated,
    )
    atomic_write_bytes(folder / PLAN_NAME, kept.model_dump_json(indent=1).encode())


def recall_estimate(folder: Path, plan: Plan) -> bool:
    """Let a plan take over what an earlier attempt at the same run expected; says whether there was such a thing."""
    try:
        kept = _Kept.model_validate_json((folder / PLAN_NAME).read_bytes())
    except (OSError, ValidationError):
        return False
    same = (
        kept.config_digest == plan.config_digest
        and kept.code == code_digest()
        and kept.machine == _machine()
        and kept.n_contexts == plan.n_contexts
        and kept.n_feature_sets == plan.extraction.n_sets
    )
    if not same:
        return False
    plan.take(Estimate(kept.stages, kept.extrapolated))
    return True


def _machine() -> str:
    return f"{platform.node()}, {platform.machine()}, {usable_cores()} cores"
