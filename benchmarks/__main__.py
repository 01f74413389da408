"""Everything that ``make bench`` measures: the engine, the relational level, language models."""

from __future__ import annotations

import sys

from benchmarks import engine, language, relational

if __name__ == "__main__":
    status = engine.main()
    rows = relational.main()
    slow = [row for row in rows if row["target_s"] and row["seconds"] > row["target_s"]]
    language.main()
    sys.exit(status or bool(slow))
