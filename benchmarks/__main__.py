"""Everything that ``make bench`` measures: the engine, then the relational level."""

from __future__ import annotations

import importlib
import importlib.util
import sys

from benchmarks import engine

if __name__ == "__main__":
    status = engine.main()
    if importlib.util.find_spec("benchmarks.relational") is not None:
        importlib.import_module("benchmarks.relational").main()
    sys.exit(status)
