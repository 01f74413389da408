"""``python -m lpact`` is the command ``lpact``."""

from __future__ import annotations

from lpact.cli import main

if __name__ == "__main__":
    main()
