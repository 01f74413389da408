"""The operations of `Backend` in torch, and products on tensor cores.

Tensor cores make a 5-fold ridge of 10,000 × 4,096 × 90,000 (rows × features × targets) 1.5 times as fast as plain
single precision on an H200 (benchmarks/gpu.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lpact.math.ridge.compute import Array, Backend, Coefficients
from lpact.math.types import FloatArray, IntArray


class TorchBackend(Backend):
    """torch on one device."""

    def __init__(self, device: str, precision: str, *, tensor_cores: bool) -> None:
        kind = device.partition(":")[0]
        backends: dict[str, Any] = {"cuda": torch.cuda, "mps": torch.backends.mps}
        if kind in backends and not backends[kind].is_available():
            raise ValueError(f"the device '{device}' is not available: torch finds no {kind.upper()} device")
        on_cpu = kind == "torch"
        self.device = torch.device("cpu" if on_cpu else device)
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        self.wide_dtype = torch.float32 if kind == "mps" else torch.float64
        self.itemsize = self.dtype.itemsize
        self.tile_rows = 128 if on_cpu else 1024
        self.tile_bytes = (2 if on_cpu else 1024) * 2**20
        self.qr_cost = 6.0 if on_cpu else 200.0
        self.split = tensor_cores and kind == "cuda" and precision == "float32" and _half_products(self.device)

    def narrow(self, x: Array) -> Array:
        return torch.as_tensor(_writable(x), dtype=self.dtype, device=self.device).contiguous()

    def wide(self, x: Array) -> Array:
        return torch.as_tensor(_writable(x), dtype=self.wide_dtype, device=self.device)

    def host(self, x: Array) -> FloatArray:
        out: FloatArray = x.detach().cpu().numpy().astype(np.float64, copy=False)
        return out

    def empty(self, *shape: int) -> Array:
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=axis)

    def eigh(self, gram: Array) -> tuple[Array, Array]:
        return tuple(torch.linalg.eigh(gram))

    def svd(self, x: Array) -> tuple[Array, FloatArray, Array]:
        left, values, right = torch.linalg.svd(x, full_matrices=False)
        return left, self.host(values), right.T

    def upper(self, x: Array) -> Array:
        return torch.linalg.qr(x, mode="r").R

    def scaled_upper(self, x: Array) -> Array:
        return self.upper(x)

    def upper_times(self, upper: Array, matrix: Array) -> Array:
        return upper @ matrix

    def triangle(self, upper: Array, cuts: tuple[int, ...]) -> Any:  # noqa: ARG002
        return self.operand(self.narrow(upper.T))

    def pinv(self, gram: Array) -> Array:
        rtol = len(gram) * torch.finfo(gram.dtype).eps
        return torch.linalg.pinv(gram, hermitian=True, rtol=rtol)

    def operand(self, by_axis: Array) -> Any:
        return SplitOperand(by_axis) if self.split else by_axis

    def compared(self, rows: Array, matrix: Array) -> Array:
        if not self.split or matrix.shape[1] == 0:
            return rows @ matrix
        size = _power_of_two(matrix, 1)  # [P, 1]: bring both sides of a product to one size
        rows = rows * size.T
        scale = _power_of_two(rows, 1)
        halves = SplitRows(rows / scale, {}, self.device)
        every = slice(0, matrix.shape[0]), slice(0, matrix.shape[1])
        out = halves.product(SplitOperand(matrix / size), *every)
        out *= scale
        return out

    def coefficients(self, shrinkage: Array, coordinates: Array, buffers: dict[str, Array]) -> Coefficients:
        if self.split:
            return SplitCoefficients(self, shrinkage, coordinates, buffers)
        return super().coefficients(shrinkage, coordinates, buffers)

    def row_dots(self, a: Array, b: Array) -> Array:
        """Σ a·b, without an array of the products."""
        if a is b:
            return torch.linalg.vector_norm(a, dim=-1).square_()
        if a.ndim == 3 and b.ndim == 2:
            return torch.bmm(a.transpose(0, 1), b[:, :, None])[:, :, 0].T
        return torch.linalg.vecdot(a, b)

    def scaled(self, weights: Array, rows: Array, out: Array) -> Array:
        return torch.mul(weights[:, None, :], rows[None], out=out)

    def sums(self, x: Array, axis: int) -> FloatArray:
        return self.host(x.sum(axis, dtype=self.wide_dtype))

    def minmax(self, x: Array, axis: int) -> tuple[FloatArray, FloatArray]:
        low, high = torch.aminmax(x, dim=axis)
        return self.host(low), self.host(high)

    def take(self, x: Array, index: Any, axis: int) -> Array:
        where = _writable(np.asarray(index, dtype=np.int64))
        return x.index_select(axis, torch.as_tensor(where, device=x.device))

    def index(self, places: IntArray) -> Any:
        return torch.as_tensor(_writable(places), device=self.device)

    def all_finite(self, x: Array) -> bool:
        return bool(torch.isfinite(x).all())


def _writable(x: Array) -> Array:
    """A copy of a read-only array: torch has no read-only tensors, and warns."""
    return x.copy() if isinstance(x, np.ndarray) and not x.flags.writeable else x


class SplitOperand:
    """A matrix [k, r] as the sum of two of half precision, columns scaled to one size by powers of two.

    With A = A₁ + A₂ and B = B₁ + B₂, each part of 11 bits, A₁B₁ + A₁B₂ + A₂B₁ misses only A₂B₂, of relative size
    2⁻²². The three products are one product of three times the length, added up in single precision.

    Reference: Ootomo & Yokota (2022), Int. J. High Perform. Comput. Appl. 36:475–491.
    """

    def __init__(self, by_axis: Array) -> None:
        n_columns = by_axis.shape[1]
        if n_columns % _MULTIPLE:
            by_axis = torch.nn.functional.pad(by_axis, (0, _MULTIPLE - n_columns % _MULTIPLE))
        self.scale = _power_of_two(by_axis, 0)  # [1, r]
        scaled = by_axis / self.scale
        first = scaled.half()
        self.stacked = torch.cat([first, (scaled - first).half(), first], 0)  # [3 k, r]


class SplitRows:
    """A matrix [c, k] as the sum of two of half precision, side by side as [A₁, A₁, A₂]; it is overwritten."""

    def __init__(self, rest: Array, buffers: dict[str, Array], device: torch.device) -> None:
        n_rows, self.n_axes = rest.shape
        size = 3 * n_rows * self.n_axes
        if "split" not in buffers or len(buffers["split"]) < size:
            buffers["split"] = torch.empty(size, dtype=torch.float16, device=device)
        parts = buffers["split"][:size].view(n_rows, 3, self.n_axes)
        parts[:, 0] = rest
        parts[:, 1] = parts[:, 0]
        rest -= parts[:, 0]
        parts[:, 2] = rest
        self.values = parts.view(n_rows, 3 * self.n_axes)

    def product(self, operand: SplitOperand, axes: slice, rows: slice) -> Array:
        """Times some rows and columns of an operand [k, r]: [c, rows]."""
        begin, end = rows.start - rows.start % _MULTIPLE, -(-rows.stop // _MULTIPLE) * _MULTIPLE
        right = operand.stacked[:, begin:end]
        if axes == slice(0, self.n_axes):
            out = _single_product(self.values, right)
        else:
            parts = [slice(axes.start + i * self.n_axes, axes.stop + i * self.n_axes) for i in range(3)]
            out = _single_product(self.values[:, parts[0]], right[parts[0]])
            for part in parts[1:]:
                out += _single_product(self.values[:, part], right[part])
        out *= operand.scale[:, begin:end]
        return out[:, rows.start - begin : rows.stop - begin]


class SplitCoefficients(Coefficients):
    """Coefficients [A, q, k] as the sum of two of half precision."""

    def __init__(self, be: TorchBackend, shrinkage: Array, coordinates: Array, buffers: dict[str, Array]) -> None:
        n_alphas, n_columns, n_axes = len(shrinkage), len(coordinates), shrinkage.shape[1]
        self.shape = (n_alphas, n_columns, n_axes)
        by_alpha, by_column = _power_of_two(shrinkage, 1), _power_of_two(coordinates, 1)
        share = 2.0 ** -(_LARGEST // 2)  # of the range, for each of the two: their product must fit
        self.scale = by_alpha[:, None] * by_column[None] / share**2  # [A, q, 1]
        values = be.buffer(buffers, "coefficients", n_alphas * n_columns * n_axes).view(self.shape)
        be.scaled(shrinkage / by_alpha * share, coordinates / by_column * share, values)
        self.halves = SplitRows(values.view(-1, n_axes), buffers, be.device)

    def product(self, operand: Any, axes: slice, rows: slice) -> Array:
        out = self.halves.product(operand, axes, rows)
        return out.reshape(*self.shape[:2], out.shape[1]).mul_(self.scale)


_MULTIPLE = 8
"""Tensor cores need multiples of eight columns."""

_LARGEST = 10
"""Exponent of the largest entry after scaling; half precision ends at 2¹⁶, and small entries keep their digits."""


def _power_of_two(x: Array, dim: int) -> Array:
    """Powers of two that bring the largest entry along ``dim`` to about 2¹⁰."""
    largest = x.abs().amax(dim, keepdim=True)
    exponent = torch.frexp(largest).exponent - _LARGEST
    return torch.ldexp(torch.ones_like(largest), exponent)


def _single_product(a: Array, b: Array) -> Array:
    """Half-precision matrices multiplied, products added up in single precision."""
    if a.device.type == "cpu":
        return a.float() @ b.float()
    return torch.mm(a, b, out_dtype=torch.float32)


def _half_products(device: torch.device) -> bool:
    """Whether this version of torch can return half-precision products in single precision."""
    probe = torch.ones((16, 16), dtype=torch.float16, device=device)
    try:
        _single_product(probe, probe)
    except (TypeError, RuntimeError):
        return False
    return True
