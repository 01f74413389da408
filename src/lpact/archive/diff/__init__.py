"""Two runs side by side: what they were made from, and what came out otherwise."""

from __future__ import annotations

from lpact.archive.diff.claims import claims_of, compare_profiles
from lpact.archive.diff.manifests import (
    input_changes,
    option_changes,
    table_changes,
    version_changes,
)
from lpact.archive.diff.model import (
    ClaimChange,
    Comparison,
    CriterionChange,
    GateFlip,
    InputChange,
    OptionChange,
    ProfileComparison,
    TableChange,
    VersionChange,
)
from lpact.archive.diff.text import comparison_json, comparison_text
from lpact.store import StoredRun

__all__ = [
    "ClaimChange",
    "Comparison",
    "CriterionChange",
    "GateFlip",
    "InputChange",
    "OptionChange",
    "ProfileComparison",
    "TableChange",
    "VersionChange",
    "compare_runs",
    "comparison_json",
    "comparison_text",
]


def compare_runs(before: StoredRun, after: StoredRun) -> Comparison:
    """Return what two finished runs differ in, whatever their datasets and models.

    Claims are the same if dataset, model, layer and mechanism have the same names.
    """
    first, second = claims_of(before), claims_of(after)
    options = option_changes(before.manifest.config, after.manifest.config)
    return Comparison(
        study_before=before.manifest.study,
        study_after=after.manifest.study,
        options=options,
        versions=version_changes(before.manifest, after.manifest),
        inputs=input_changes(before.manifest, after.manifest),
        tables=table_changes(before.manifest, after.manifest),
        claims_removed=tuple(sorted(first - second)),
        claims_added=tuple(sorted(second - first)),
        profiles=compare_profiles(before, after, options),
    )
