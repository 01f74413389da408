"""Where the products run and in which precision: NumPy, or torch on a CPU, a CUDA card or Apple's MPS.

The engine is written once, on the operations that NumPy arrays and torch tensors share, and on the few of `Backend`
that they spell differently. In ``float32`` the large products are in single precision; Gram matrices and their
decompositions stay in double wherever the device has it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.linalg import blas, lapack

from lpact.math.types import FloatArray, IntArray

Array: TypeAlias = Any
"""A NumPy array or a torch tensor, as the backend has it."""

GIB = 2**30


class TooLittleMemory(ValueError):
    """Not even one target fits into the working memory; ``needed_bytes`` would do."""

    def __init__(
        self, memory_bytes: int, fixed_bytes: int, per_target_bytes: int, what: str
    ) -> None:
        super().__init__(
            f"memory_bytes = {memory_bytes} is too little: {what} take about {fixed_bytes}, one target "
            f"{per_target_bytes}; give more memory"
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
        Of the large products. ``"float32"`` is about twice as fast on a CPU; see the explanation of the engine for
        its error.
    memory_bytes
        Working memory to stay under, beside the arrays given and returned. Targets are worked on in chunks that fit.
    tensor_cores
        In ``float32`` on a CUDA card, compare settings by products of 22 bits that tensor cores put together from
        three of 11 bits. Weights and predictions are not touched by it.
    """

    device: str = "cpu"
    precision: Literal["float64", "float32"] = "float64"
    memory_bytes: int = 2 * GIB
    tensor_cores: bool = True

    def __post_init__(self) -> None:
        kind, _, number = self.device.partition(":")
        if kind not in ("cpu", "torch", "cuda", "mps") or (number and not number.isdigit()):
            raise ValueError(
                f"unknown device '{self.device}'; known: cpu, torch (torch on the CPU), cuda, cuda:N, mps"
            )
        if self.precision not in ("float64", "float32"):
            raise ValueError(f"unknown precision '{self.precision}'; known: float64, float32")
        if kind == "mps" and self.precision == "float64":
            raise ValueError("the device 'mps' has no float64; choose precision 'float32'")
        if self.memory_bytes <= 0:
            raise ValueError(f"memory_bytes must be positive, got {self.memory_bytes}")

    @property
    def tie_tolerance(self) -> float:
        """Scores that differ by less are ties: what another order of additions may change."""
        return 1e-9 if self.precision == "float64" else 1e-6

    def open(self) -> Backend:
        """The backend for these settings; raises if the device is not there."""
        if self.device == "cpu":
            return NumpyBackend(self.precision)
        return _torch_backend(self.device, self.precision, self.tensor_cores)


class Backend(ABC):
    """Operations that NumPy and torch spell differently. ``narrow`` is the working precision, ``wide`` the best."""

    tile_rows: int
    """Rows of a triangle handled at a time."""
    tile_bytes: int
    """Size of the weights handled at a time."""
    qr_cost: float
    """Operations of a matrix product that take as long as QR of [r, k], divided by r k²."""
    itemsize: int

    @property
    def coefficients_type(self) -> type[Coefficients]:
        """How coefficients meet operands here."""
        return Coefficients

    @abstractmethod
    def narrow(self, x: Array) -> Array:
        """As a C-contiguous array of the working precision on the device."""

    @abstractmethod
    def wide(self, x: Array) -> Array:
        """As an array of the best precision on the device."""

    @abstractmethod
    def host(self, x: Array) -> FloatArray:
        """As a NumPy array of float64."""

    @abstractmethod
    def empty(self, *shape: int) -> Array:
        """An array of the working precision, not filled."""

    @abstractmethod
    def concatenate(self, parts: list[Array], axis: int) -> Array:
        """Joined along an axis."""

    @abstractmethod
    def eigh(self, gram: Array) -> tuple[Array, Array]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, which may be overwritten."""

    @abstractmethod
    def upper(self, x: Array) -> Array:
        """The factor R [min(r, k), k] of x = QR, upper triangular."""

    def scaled_upper(self, x: Array) -> Array:
        """The same where columns are of about one size, so that errors of xᵀx do not matter."""
        return self.upper(x)

    def upper_times(self, upper: Array, matrix: Array) -> Array:
        """An upper triangular matrix times another."""
        return upper @ matrix

    @abstractmethod
    def pinv(self, gram: Array) -> Array:
        """Pseudo-inverse of a symmetric positive semi-definite matrix."""

    def operand(self, by_axis: Array) -> Any:
        """A matrix [k, r] in the form in which coefficients meet it."""
        return by_axis

    def triangle(self, upper: Array, cuts: tuple[int, ...]) -> Any:  # noqa: ARG002
        """An upper triangle [r, k] in the form in which `Coefficients.power` takes it."""
        return self.operand(self.narrow(upper.T))

    def compared(self, rows: Array, matrix: Array) -> Array:
        """A product that settings are only compared by."""
        return rows @ matrix

    def coefficients(
        self, shrinkage: Array, coordinates: Array, room: dict[str, Array]
    ) -> Coefficients:
        """Shrinkage [A, k] times coordinates [q, k], every pair; ``room`` is memory to be used again."""
        n_alphas, n_columns, n_axes = len(shrinkage), len(coordinates), shrinkage.shape[1]
        flat = self.room(room, "coefficients", n_alphas * n_columns * n_axes)
        shape = (n_alphas, n_columns, n_axes)
        return self.coefficients_type(self.scaled(shrinkage, coordinates, flat.reshape(shape)))

    def room(self, room: dict[str, Array], name: str, size: int) -> Array:
        """The first ``size`` numbers of a piece of memory that is kept for a purpose."""
        if name not in room or len(room[name]) < size:
            room[name] = self.empty(size)
        return room[name][:size]

    @abstractmethod
    def row_dots(self, a: Array, b: Array) -> Array:
        """Σ over the last axis of a·b, broadcast over the others."""

    @abstractmethod
    def scaled(self, weights: Array, rows: Array, out: Array) -> Array:
        """Weights [A, k] times rows [q, k], every pair: [A, q, k], into ``out`` where it can be."""

    @abstractmethod
    def sums(self, x: Array, axis: int) -> FloatArray:
        """Sums along an axis, added up in the best precision, on the host."""

    @abstractmethod
    def minmax(self, x: Array, axis: int) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value along an axis, on the host."""

    @abstractmethod
    def take(self, x: Array, index: Any, axis: int) -> Array:
        """Entries of an axis by their places."""

    @abstractmethod
    def index(self, places: IntArray) -> Any:
        """Places, as an index into an array of this backend."""

    @abstractmethod
    def all_finite(self, x: Array) -> bool:
        """Whether nothing is NaN or infinite."""


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
        """‖Rc‖² of the first ``cut`` coefficients, [A, q], for an upper triangle R [n_rows, k].

        It comes from `Backend.triangle`. Row i of R meets coefficients from i on.
        """
        total: Array = 0.0
        for first in range(0, min(n_rows, cut), be.tile_rows):
            rows = slice(first, min(first + be.tile_rows, n_rows, cut))
            product = self.product(triangle, slice(first, cut), rows)
            total = total + be.row_dots(product, product)
        return total


@dataclass(frozen=True)
class NumpyTriangle:
    """An upper triangle: its leading squares, by size."""

    squares: dict[int, Array]


class NumpyCoefficients(Coefficients):
    """Coefficients that meet triangles in BLAS's own triangular product."""

    def power(self, triangle: Any, n_rows: int, cut: int, be: Backend) -> Array:
        """In place on a copy of the coefficients."""
        if not isinstance(triangle, NumpyTriangle):
            return super().power(triangle, n_rows, cut, be)
        product = np.array(self.flat[:, :cut], order="C")
        trmm = blas.dtrmm if product.itemsize == 8 else blas.strmm
        product = trmm(1.0, triangle.squares[cut], product.T, overwrite_b=1).T
        return be.row_dots(product, product).reshape(self.shape[:2])


class NumpyBackend(Backend):
    """NumPy on the CPU."""

    tile_rows = 128
    tile_bytes = 2 * 2**20
    qr_cost = 6.0

    def __init__(self, precision: str) -> None:
        self.dtype = np.dtype(precision)
        self.itemsize = self.dtype.itemsize

    @property
    def coefficients_type(self) -> type[Coefficients]:
        """With triangular products by BLAS."""
        return NumpyCoefficients

    def narrow(self, x: Array) -> Array:
        """As a C-contiguous array of the working precision."""
        if isinstance(x, np.ndarray) and x.dtype == self.dtype and x.flags.c_contiguous:
            return x
        return np.ascontiguousarray(_from_torch(x), dtype=self.dtype)

    def wide(self, x: Array) -> Array:
        """As float64."""
        if isinstance(x, np.ndarray) and x.dtype == np.float64:
            return x
        return np.asarray(_from_torch(x), dtype=np.float64)

    def host(self, x: Array) -> FloatArray:
        """As float64."""
        return np.asarray(x, dtype=np.float64)

    def empty(self, *shape: int) -> Array:
        """Not filled."""
        return np.empty(shape, dtype=self.dtype)

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        """Joined along an axis."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)

    def eigh(self, gram: Array) -> tuple[Array, Array]:
        """LAPACK's divide and conquer, in double."""
        if len(gram) == 0:
            return np.empty(0), np.empty((0, 0))
        values, vectors, info = lapack.dsyevd(gram, compute_v=1, lower=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(f"the eigenvalues did not converge (dsyevd: {info})")
        return values, vectors

    def upper(self, x: Array) -> Array:
        """LAPACK's Householder QR, without forming Q."""
        short = min(x.shape)
        if short == 0:
            return x[:0]
        geqrf = lapack.dgeqrf if self.itemsize == 8 else lapack.sgeqrf
        factor, _, _, info = geqrf(np.asfortranarray(x))
        if info:
            raise np.linalg.LinAlgError(f"no QR decomposition (geqrf: {info})")
        return np.triu(factor[:short])

    def scaled_upper(self, x: Array) -> Array:
        """By Cholesky where that is possible."""
        if x.shape[0] < x.shape[1] or x.shape[1] == 0:
            return self.upper(x)
        wide = self.wide(x)
        factor, info = lapack.dpotrf(wide.T @ wide, lower=0, clean=1, overwrite_a=1)
        return self.upper(x) if info else factor.astype(self.dtype, copy=False)

    def upper_times(self, upper: Array, matrix: Array) -> Array:
        """By BLAS's triangular product."""
        if upper.shape[0] != upper.shape[1]:
            return upper @ matrix
        trmm = blas.dtrmm if self.itemsize == 8 else blas.strmm
        product = np.array(matrix, order="C").T
        return trmm(1.0, np.asfortranarray(upper), product, side=1, trans_a=1, overwrite_b=1).T

    def triangle(self, upper: Array, cuts: tuple[int, ...]) -> Any:
        """The leading square for every cut, as BLAS likes it; a trapezoid is multiplied in tiles."""
        if upper.shape[0] < upper.shape[1]:
            return self.narrow(upper.T)
        return NumpyTriangle({k: np.asfortranarray(upper[:k, :k]) for k in cuts})

    def pinv(self, gram: Array) -> Array:
        """Pseudo-inverse."""
        return np.linalg.pinv(gram, hermitian=True, rcond=len(gram) * np.finfo(np.float64).eps)

    def row_dots(self, a: Array, b: Array) -> Array:
        """Sums of products, along contiguous memory."""
        return np.einsum("...r,...r->...", a, b)

    def scaled(self, weights: Array, rows: Array, out: Array) -> Array:
        """Into ``out``."""
        return np.multiply(weights[:, None, :], rows[None], out=out)

    def sums(self, x: Array, axis: int) -> FloatArray:
        """In double."""
        return np.asarray(x.sum(axis=axis, dtype=np.float64))

    def minmax(self, x: Array, axis: int) -> tuple[FloatArray, FloatArray]:
        """Along an axis."""
        return self.host(x.min(axis=axis)), self.host(x.max(axis=axis))

    def take(self, x: Array, index: Any, axis: int) -> Array:
        """Entries of an axis."""
        return np.take(x, index, axis=axis)

    def index(self, places: IntArray) -> Any:
        """As they are."""
        return places

    def all_finite(self, x: Array) -> bool:
        """Whether nothing is NaN or infinite."""
        return bool(np.isfinite(x).all())


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
