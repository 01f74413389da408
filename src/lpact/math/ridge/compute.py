"""Where products run and in which precision: NumPy, or torch on a CPU, a CUDA device or Apple's MPS.

The engine uses operations that NumPy arrays and torch tensors share, and the methods of `Backend` where they differ.
With ``float32``, the large products are in single precision; Gram matrices and their decompositions stay in double
precision wherever the device has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.linalg import blas, lapack

from lpact.math.types import FloatArray, IntArray

Array: TypeAlias = Any
"""A NumPy array or a torch tensor, depending on the backend."""


class TooLittleMemory(ValueError):
    """Not even one target fits into the working memory; ``needed_bytes`` would be enough."""

    def __init__(self, memory_bytes: int, fixed_bytes: int, per_target_bytes: int) -> None:
        super().__init__(
            f"memory_bytes = {memory_bytes} is too little: features and decompositions take about {fixed_bytes}, "
            f"one target {per_target_bytes}; increase it"
        )
        self.memory_bytes = memory_bytes
        self.needed_bytes = fixed_bytes + per_target_bytes


@dataclass(frozen=True)
class Compute:
    """Device, precision and memory of a computation.

    Attributes
    ----------
    device
        ``"cpu"``: NumPy. ``"torch"``: torch on the CPU. ``"cuda"``, ``"cuda:1"``, ``"mps"``: torch on that device.
    precision
        Of the large products. ``"float32"`` is about twice as fast on a CPU (errors: docs/explanation/engine.md).
    memory_bytes
        Limit of the working memory, in addition to input and output arrays. Targets are processed in chunks that fit.
    tensor_cores
        In ``float32`` on a CUDA device, compare settings with products of 22 bits on tensor cores. Weights and
        predictions do not depend on it.
    """

    device: str = "cpu"
    precision: Literal["float64", "float32"] = "float64"
    memory_bytes: int = 2 * 2**30
    tensor_cores: bool = True

    def __post_init__(self) -> None:
        kind, _, number = self.device.partition(":")
        if kind not in ("cpu", "torch", "cuda", "mps") or (number and not number.isdigit()):
            raise ValueError(f"unknown device '{self.device}'; known: cpu, torch (torch on the CPU), cuda, cuda:N, mps")
        if self.precision not in ("float64", "float32"):
            raise ValueError(f"unknown precision '{self.precision}'; known: float64, float32")
        if kind == "mps" and self.precision == "float64":
            raise ValueError("the device 'mps' has no float64; choose precision 'float32'")
        if self.memory_bytes <= 0:
            raise ValueError(f"memory_bytes must be positive, got {self.memory_bytes}")

    @property
    def tie_tolerance(self) -> float:
        """Scores that differ by less are ties: another order of summation can change them by as much."""
        return 1e-9 if self.precision == "float64" else 1e-6

    def open(self) -> Backend:
        """The backend for these settings; raises an error if the device is not available."""
        if self.device == "cpu":
            return Backend(self.precision)
        return _torch_backend(self.device, self.precision, self.tensor_cores)


class Backend:
    """NumPy on the CPU, and the interface that other backends override.

    ``narrow`` is the working precision, ``wide`` the best of the device.

    Attributes
    ----------
    tile_rows, tile_bytes
        Rows of a triangle, and size of the coefficients, that are multiplied at a time.
    qr_cost
        Time of a QR decomposition of [r, k], in multiplications of a matrix product, divided by r k².
    """

    tile_rows = 128
    tile_bytes = 2 * 2**20
    qr_cost = 6.0
    itemsize: int

    def __init__(self, precision: str) -> None:
        self.dtype: Any = np.dtype(precision)
        self.itemsize = self.dtype.itemsize

    def narrow(self, x: Array) -> Array:
        """``x`` as a C-contiguous array of the working precision on the device."""
        if isinstance(x, np.ndarray) and x.dtype == self.dtype and x.flags.c_contiguous:
            return x
        return np.ascontiguousarray(_from_torch(x), dtype=self.dtype)

    def wide(self, x: Array) -> Array:
        """``x`` as an array of the best precision on the device."""
        return np.asarray(_from_torch(x), dtype=np.float64)

    def host(self, x: Array) -> FloatArray:
        """``x`` as a NumPy array of float64."""
        return np.asarray(x, dtype=np.float64)

    def empty(self, *shape: int) -> Array:
        """A new array of the working precision."""
        return np.empty(shape, dtype=self.dtype)

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        """Arrays joined along an axis."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)

    def eigh(self, gram: Array) -> tuple[Array, Array]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, which may be overwritten."""
        if len(gram) == 0:
            return np.empty(0), np.empty((0, 0))
        values, vectors, info = lapack.dsyevd(gram, compute_v=1, lower=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(f"the eigenvalues did not converge (dsyevd: {info})")
        return values, vectors

    def svd(self, x: Array) -> tuple[Array, FloatArray, Array]:
        """Left singular vectors [n, k], singular values on the host [k], descending, and right vectors [p, k]."""
        left, values, right = np.linalg.svd(x, full_matrices=False)
        return left, self.host(values), right.T

    def upper(self, x: Array) -> Array:
        """The upper triangular factor R [min(r, k), k] of x = QR."""
        short = min(x.shape)
        if short == 0:
            return x[:0]
        geqrf = lapack.dgeqrf if self.itemsize == 8 else lapack.sgeqrf
        factor, _, _, info = geqrf(np.asfortranarray(x))
        if info:
            raise np.linalg.LinAlgError(f"no QR decomposition (geqrf: {info})")
        return np.triu(factor[:short])

    def scaled_upper(self, x: Array) -> Array:
        """The same for columns of similar size, by Cholesky where possible: errors of xᵀx do not matter there."""
        if x.shape[0] < x.shape[1] or x.shape[1] == 0:
            return self.upper(x)
        wide = self.wide(x)
        factor, info = lapack.dpotrf(wide.T @ wide, lower=0, clean=1, overwrite_a=1)
        return self.upper(x) if info else factor.astype(self.dtype, copy=False)

    def upper_times(self, upper: Array, matrix: Array) -> Array:
        """An upper triangular matrix times another matrix."""
        if upper.shape[0] != upper.shape[1]:
            return upper @ matrix
        trmm = blas.dtrmm if self.itemsize == 8 else blas.strmm
        product = np.array(matrix, order="C").T
        return trmm(1.0, np.asfortranarray(upper), product, side=1, trans_a=1, overwrite_b=1).T

    def triangle(self, upper: Array, cuts: tuple[int, ...]) -> Any:
        """An upper triangle [r, k] as `Coefficients.power` needs it: for BLAS, its leading squares by size."""
        if upper.shape[0] < upper.shape[1]:
            return self.narrow(upper.T)
        return {k: np.asfortranarray(upper[:k, :k]) for k in cuts}

    def pinv(self, gram: Array) -> Array:
        """Pseudo-inverse of a symmetric positive semi-definite matrix."""
        return np.linalg.pinv(gram, hermitian=True, rcond=len(gram) * np.finfo(np.float64).eps)

    def operand(self, by_axis: Array) -> Any:
        """A matrix [k, r] as `Coefficients.product` needs it."""
        return by_axis

    def compared(self, rows: Array, matrix: Array) -> Array:
        """A product that is only used to compare settings."""
        return rows @ matrix

    def coefficients(self, shrinkage: Array, coordinates: Array, buffers: dict[str, Array]) -> Coefficients:
        """Shrinkage [A, k] times coordinates [q, k], every pair; ``buffers`` are used again by the next call."""
        shape = (len(shrinkage), len(coordinates), shrinkage.shape[1])
        out = self.buffer(buffers, "coefficients", shape[0] * shape[1] * shape[2]).reshape(shape)
        return Coefficients(self.scaled(shrinkage, coordinates, out))

    def buffer(self, buffers: dict[str, Array], name: str, size: int) -> Array:
        """The first ``size`` numbers of a named buffer."""
        if name not in buffers or len(buffers[name]) < size:
            buffers[name] = self.empty(size)
        return buffers[name][:size]

    def row_dots(self, a: Array, b: Array) -> Array:
        """Σ over the last axis of a·b, broadcast over the others."""
        return np.einsum("...r,...r->...", a, b)

    def scaled(self, weights: Array, rows: Array, out: Array) -> Array:
        """Weights [A, k] times rows [q, k], every pair, into ``out`` [A, q, k]."""
        return np.multiply(weights[:, None, :], rows[None], out=out)

    def sums(self, x: Array, axis: int) -> FloatArray:
        """Sums along an axis in the best precision, on the host."""
        return np.asarray(x.sum(axis=axis, dtype=np.float64))

    def minmax(self, x: Array, axis: int) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value along an axis, on the host."""
        return self.host(x.min(axis=axis)), self.host(x.max(axis=axis))

    def take(self, x: Array, index: Any, axis: int) -> Array:
        """Entries of an axis by their indices."""
        return np.take(x, index, axis=axis)

    def index(self, places: IntArray) -> Any:
        """Indices into an array of this backend."""
        return places

    def all_finite(self, x: Array) -> bool:
        """Whether nothing is NaN or infinite."""
        return bool(np.isfinite(x).all())


class Coefficients:
    """Coefficients [A, q, k] of every penalty and column."""

    def __init__(self, values: Array) -> None:
        self.shape: tuple[int, int, int] = tuple(values.shape)
        self.flat = values.reshape(self.shape[0] * self.shape[1], self.shape[2])

    def product(self, operand: Any, axes: slice, rows: slice) -> Array:
        """Sum over some axes of coefficients times some columns of an operand [k, r]: [A, q, rows]."""
        product = self.flat[:, axes] @ operand[axes, rows]
        return product.reshape(*self.shape[:2], product.shape[1])

    def power(self, triangle: Any, n_rows: int, cut: int, be: Backend) -> Array:
        """‖Rc‖² of the first ``cut`` coefficients, [A, q], for a triangle R [n_rows, k] of `Backend.triangle`."""
        if isinstance(triangle, dict):
            product = np.array(self.flat[:, :cut], order="C")
            trmm = blas.dtrmm if product.itemsize == 8 else blas.strmm
            product = trmm(1.0, triangle[cut], product.T, overwrite_b=1).T
            return be.row_dots(product, product).reshape(self.shape[:2])
        total: Array = 0.0
        for first in range(0, min(n_rows, cut), be.tile_rows):  # row i of R is zero before column i
            rows = slice(first, min(first + be.tile_rows, n_rows, cut))
            product = self.product(triangle, slice(first, cut), rows)
            total = total + be.row_dots(product, product)
        return total


def _from_torch(x: Array) -> Array:
    return x.detach().cpu().numpy() if hasattr(x, "detach") else x


@cache
def _torch_backend(device: str, precision: str, tensor_cores: bool) -> Backend:
    try:
        from lpact.math.ridge._torch import TorchBackend
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the device '{device}' needs PyTorch, which is not installed: pip install 'lpact[torch]'"
        ) from error
    return TorchBackend(device, precision, tensor_cores=tensor_cores)
