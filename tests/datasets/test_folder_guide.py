"""The how-to page on bringing one's own arrays runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from lpact import load_study
from lpact.datasets.base import DATASETS

PAGE = Path(__file__).parents[2] / "docs/how-to/bring-your-own-arrays.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_folder_of_the_page_makes_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = (block for block in blocks("python") if "my-data" in block and "mkdir" in block)
    exec(code, {"np": np, "rng": np.random.default_rng(0)})
    (text,) = blocks("toml")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    plan = load_study("study.toml").plan()
    chain = plan.audit.tables["audits/lpact_evidence_feasibility"].row(0, named=True)
    assert chain["chain_complete"]
    dataset = DATASETS.build("folder").open(name="mine", path=Path("my-data"), seed=0)
    assert len(dataset.recording_ids()) == 3
