"""Random generators that depend on a key, never on the order of the work."""

from __future__ import annotations

import hashlib

import numpy as np


def keyed_rng(seed: int, *key: str | int) -> np.random.Generator:
    """Return the generator of the row ``key`` in the study ``seed``.

    The key is hashed, so that any two different keys give independent streams, and the same key gives the same
    stream on every machine, in every process and in every order of work.
    """
    parts = [f"{seed:d}", *(f"{type(part).__name__}:{part}" for part in key)]
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
