"""``import lpact`` and ``lpact --help`` import nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "polars", "pyarrow", "scipy", "pydantic", "pandas", "sklearn", "torch", "rich"}

LIST_IMPORTED = """
import sys
try:
    {code}
except SystemExit as end:
    assert not end.code, end.code
print(*sorted({{name.split(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def imported_by(code: str) -> set[str]:
    """Top-level packages in ``sys.modules`` after ``code`` has run in a new interpreter."""
    result = subprocess.run(
        [sys.executable, "-c", LIST_IMPORTED.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import lpact",
        "import lpact; lpact.__version__",
        "sys.argv = ['lpact', '--help']; from lpact.cli import main; main()",
        "sys.argv = ['lpact', '--version']; from lpact.cli import main; main()",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    imported = imported_by(code)
    assert "lpact" in imported
    assert imported & HEAVY == set()


def test_help_of_a_command_is_nearly_as_light() -> None:
    # Typer checks ranges of numbers with pydantic.
    code = "sys.argv = ['lpact', 'run', '--help']; from lpact.cli import main; main()"
    assert imported_by(code) & HEAVY <= {"pydantic"}


def test_heavy_imports_would_be_seen() -> None:
    assert {"numpy", "polars", "pydantic"} <= imported_by("import lpact; lpact.load_study")
