"""A study in a few lines of Python: write it, plan it, run it, read its tables."""

from __future__ import annotations

import sys

import lpact

STUDY = {
    "name": "from-python",
    "seed": 7,
    "datasets": [
        {
            "name": "sim",
            "reader": "simulated",
            "grid": {"lags_ms": [100.0]},
            "options": {"n_runs": 1, "sentences_per_story": 8, "n_units": 10},
        }
    ],
    "models": [
        {"name": "integrated", "layers": [2]},
        {"name": "lexical", "layers": [2]},
    ],
    "readout": {"alphas": [10.0, 1000.0]},
    "controls": {"draws": 2},
    "stripping": {"mechanisms": ["surprisal", "context_update"], "mismatch_draws": 1},
}


def main(out: str) -> None:
    """Run the study into the folder ``out``, or open it if it is there."""
    study = lpact.load_study(STUDY)
    plan = study.plan()
    print(f"{plan.n_claims} claims from {plan.n_fits} readouts, about {plan.seconds:.0f} s")

    run = study.run(out)
    print(run.claims().select("model", "mechanism", "raw_score", "label", "beaten_by"))
    print(run.claim("sim/lexical/2/surprisal").explain())

    scores = run.table("predictive_scores")  # any table, as a Polars data frame
    print(scores.filter(metric="pearson", draw=0).head())
    print("outcome", run.conclusion().outcome().code)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/from-python")
