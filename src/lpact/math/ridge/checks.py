"""Checks of a readout's inputs; each error names the input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lpact.math.ridge.compute import Array
from lpact.math.ridge.results import METRICS
from lpact.math.splits import BlockedFolds
from lpact.math.types import IntArray

_KEEP = ("predictions", "weights")
_FORMS = ("auto", "primal", "kernel")


def check_inputs(
    responses: Array,
    folds: BlockedFolds,
    *,
    metrics: Sequence[str] = (),
    keep: Sequence[str] = (),
    unpenalised: Array | None = None,
    form: str = "auto",
    fewest_blocks: int,
) -> None:
    """Raise `ValueError` where shapes, folds, metrics or names do not fit."""
    if getattr(responses, "ndim", 0) != 3:
        shape = tuple(getattr(responses, "shape", ())) or type(responses).__name__
        raise ValueError(f"responses must be an array [n_lags, n, t], got {shape}")
    n_lags, n_rows, n_targets = responses.shape
    if n_lags == 0 or n_targets == 0:
        raise ValueError(
            f"responses must have a lag and a target at least, got {n_lags} lags and {n_targets} targets"
        )
    if folds.n_rows != n_rows:
        raise ValueError(f"folds cover {folds.n_rows} rows, responses have {n_rows}")
    if folds.n_blocks < fewest_blocks:
        needs = {
            2: "cross-validation needs at least two",
            3: "nested selection needs at least three",
        }
        raise ValueError(f"{needs[fewest_blocks]} blocks, got {folds.n_blocks}")
    if unpenalised is not None and (unpenalised.ndim != 2 or unpenalised.shape[0] != n_rows):
        raise ValueError(
            f"unpenalised columns must be [{n_rows}, m], got shape {tuple(unpenalised.shape)}"
        )
    for what, given, known in (
        ("metric", metrics, METRICS),
        ("thing to keep", keep, _KEEP),
        ("form", (form,), _FORMS),
    ):
        if isinstance(given, str):
            raise ValueError(f"give a list of every {what}, not the text '{given}'")
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"unknown {what} '{unknown[0]}'; known: {', '.join(known)}")


def check_orders(orders: Iterable[IntArray | None], n_rows: int) -> list[IntArray | None]:
    """Row orders as integers; raises `ValueError` where one is no permutation."""
    checked: list[IntArray | None] = []
    for order in orders:
        if order is None:
            checked.append(None)
            continue
        own = np.asarray(order)
        whole = own.ndim == 1 and np.issubdtype(own.dtype, np.integer)
        if not whole or not np.array_equal(np.sort(own), np.arange(n_rows)):
            raise ValueError(
                f"an order must be a permutation of the row numbers 0 to {n_rows - 1}, as integers, got "
                f"shape {own.shape} of {own.dtype}"
            )
        checked.append(own.astype(np.int64))
    return checked
