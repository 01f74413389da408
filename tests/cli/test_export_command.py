"""``lpact export``: an archive that ``lpact verify`` takes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tiny_study import Lpact, TinyRun


def test_export_and_verify(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    root, archive = tmp_path / "tiny", tmp_path / "out" / "tiny.zip"
    shutil.copytree(tiny_run.folder, root)
    refused = lpact("export", root, archive)
    assert refused.exit_code == 2
    assert f"lock it first: lpact lock {root}" in refused.stderr
    assert not archive.exists()
    assert lpact("lock", root).exit_code == 0
    result = lpact("export", root, archive, "--date", "2026-01-31")
    assert result.exit_code == 0, result.output
    assert "dated 2026-01-31" in result.stdout
    assert "does not cover" not in result.stdout
    assert "No licence is stated" in result.stdout
    command = result.stdout.splitlines()[-1].split()
    assert command[-4:-1] == ["verify", str(archive), "--digest"]
    verified = lpact("verify", archive, "--digest", command[-1], "--no-report")
    assert verified.exit_code == 0, verified.output
    undated = lpact("export", root, tmp_path / "undated.zip")
    assert "which the root digest does not cover" in " ".join(undated.stdout.split())
    again = lpact("export", root, archive)
    assert again.exit_code == 2
    assert "the archive exists already" in again.stderr
