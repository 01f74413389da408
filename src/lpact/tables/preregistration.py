"""The table of what was registered before a run, and whether the run followed it."""

from __future__ import annotations

from lpact.tables._declare import Column, Table

DIGEST = "digest"
BEFORE_RESULTS = "made before results were looked at"
BEFORE_RUN = "made before the run"
"""Items of the group `registration`."""

AFTER_THE_FACT = "after the fact"
"""What is found of a registration that was made although results existed."""

PREREGISTRATION_ITEMS = Table(
    "audits/preregistration_items",
    "One row an item of the preregistration: what was registered, what the run has, and whether that is the same. "
    "Items that were not followed come first.",
    ("followed", "item_group", "item"),
    (
        Column(
            "followed",
            "bool",
            "Whether the run has what was registered, or stays within its bound.",
        ),
        Column(
            "item_group",
            "str",
            "`registration`, `seed`, `configuration`, `gates`, `datasets`, `models`, `recordings`, `units`, "
            "`roles`, `controls`, `claims`, `rows` or `software`.",
        ),
        Column("item", "str", "What was registered, by its name in the study file or the run."),
        Column("registered", "str", "What the preregistration says."),
        Column("found", "str", "What the run has."),
        Column("detail", "str", "The comparison in words; empty where both columns say it all."),
    ),
)

TABLES = (PREREGISTRATION_ITEMS,)
