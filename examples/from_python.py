"""A study in a few lines of Python: write it, plan it, run it, read its tables."""

from __future__ import annotations

import sys

import lpact

STUDY = lpact.Study(
    name="from-python",
    seed=7,
    datasets=[
        lpact.Dataset(
            name="sim",
            reader="simulated",
            grid=lpact.Grid(lags_ms=(100.0,)),
            options={"n_runs": 1, "sentences_per_story": 8, "n_units": 10},
        )
    ],
    models=[
        lpact.Model(name="integrated", layers=(2,)),
        lpact.Model(name="lexical", layers=(2,)),
    ],
    readout=lpact.Readout(alphas=(10.0, 1000.0)),
    controls=lpact.Controls(draws=2),
    mechanisms=lpact.Mechanisms(include=("surprisal", "context_update")),
    analyses=[lpact.LPact()],
)


def main(out: str) -> None:
    """Run the study into the folder ``out``, or open it if it is finished."""
    plan = STUDY.plan()
    print(f"{plan.n_claims} claims from {plan.n_tasks} tasks, about {plan.seconds_with(1):.0f} s")

    run = STUDY.run(out)
    print(run.claims().select("model", "mechanism", "raw_score", "label", "beaten_by"))
    print(run.claim("sim/lexical/2/surprisal").explain())

    scores = run.table("predictive_scores")  # any table, as a Polars data frame
    print(scores.filter(metric="pearson", draw=0).head())
    print(run.conclusion().headline)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/from-python")
