"""One BLAS thread a task: sums in another order would differ in their last digits, and cores run other tasks."""

from __future__ import annotations

import sys

from threadpoolctl import threadpool_limits

VARIABLES = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}
"""What keeps a process to one thread from its first moment."""


class OneThread:
    """Keeps this process to one BLAS thread, until `restore`.

    Looking through the loaded libraries takes milliseconds, so it is done again only when modules have been imported
    since, which may have brought further libraries.
    """

    def __init__(self) -> None:
        self._limits: list[threadpool_limits] = []
        self._n_modules = 0

    def hold(self) -> None:
        """Limit every library that is loaded by now; call it before each task."""
        if len(sys.modules) != self._n_modules:
            self._limits.append(threadpool_limits(1))
            self._n_modules = len(sys.modules)

    def restore(self) -> None:
        """Give the libraries back the threads that they had."""
        while self._limits:
            self._limits.pop().restore_original_limits()
        self._n_modules = 0
