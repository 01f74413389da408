"""Two runs side by side: what they were made from, and which claims differ."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from lpact.analyses.base import analyses_of
from lpact.archive.diff.claims import AnalysisComparison, Side, compare_analysis
from lpact.archive.diff.manifests import (
    InputChange,
    OptionChange,
    TableChange,
    VersionChange,
    input_changes,
    option_changes,
    table_changes,
    version_changes,
)
from lpact.archive.diff.text import comparison_json, comparison_text
from lpact.config import study_config
from lpact.store import StoredRun

__all__ = ["Comparison", "comparison_json", "comparison_text", "diff_runs"]


@dataclass(frozen=True)
class Comparison:
    """The differences between two runs, sorted by name.

    ``analyses`` are those of both runs; ``analyses_removed`` are only in the first run, ``analyses_added`` only in the
    second.
    """

    study_before: str
    study_after: str
    options: tuple[OptionChange, ...]
    versions: tuple[VersionChange, ...]
    inputs: tuple[InputChange, ...]
    tables: tuple[TableChange, ...]
    analyses_removed: tuple[str, ...]
    analyses_added: tuple[str, ...]
    analyses: tuple[AnalysisComparison, ...]

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return self.study_before == self.study_after and not any(
            (self.options, self.versions, self.inputs, self.tables)
        )

    def __str__(self) -> str:
        return comparison_text(self)


def diff_runs(
    before: str | Path | StoredRun, after: str | Path | StoredRun, *, rows: bool = True
) -> Comparison:
    """What two finished runs differ in, whatever their datasets and models.

    Parameters
    ----------
    before, after
        Folders of runs, archives of `lpact.archive.export_run`, or open runs.
    rows
        Whether to count the rows that only one run has, which reads every table that differs.
    """
    from lpact.archive.unpack import opened_run

    with ExitStack() as stack:
        first, second = (
            run if isinstance(run, StoredRun) else StoredRun(stack.enter_context(opened_run(run)))
            for run in (before, after)
        )
        options = option_changes(first.manifest.config, second.manifest.config)
        old, new = _sides(first), _sides(second)
        return Comparison(
            study_before=first.manifest.study,
            study_after=second.manifest.study,
            options=options,
            versions=version_changes(first.manifest, second.manifest),
            inputs=input_changes(first.manifest, second.manifest),
            tables=table_changes(first, second, rows=rows),
            analyses_removed=tuple(name for name in old if name not in new),
            analyses_added=tuple(name for name in new if name not in old),
            analyses=tuple(
                compare_analysis(old[name], new[name], options) for name in old if name in new
            ),
        )


def _sides(run: StoredRun) -> dict[str, Side]:
    study = study_config(run.manifest.config, where=f"{run.root}, manifest.json")
    return {name: Side(own, study, run) for name, own in analyses_of(study).items()}
