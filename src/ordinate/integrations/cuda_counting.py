"""Counting on a CUDA device: how often each pair of levels occurs in two tensors.

Small scales are counted by a Triton kernel in one pass over the tensors; large ones, and all where
Triton cannot run, by a histogram of PyTorch. Integers are added up, so that the order of additions
does not matter, and nobody waits for the device.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with the CUDA builds of PyTorch for Linux
    triton = None

BLOCK_BYTES, WARPS, BLOCKS_PER_PROCESSOR = 4096, 4, 16  # as fast as any on an H200
MOST_BINS = 512  # beyond which the kernel is slower than PyTorch
ITEMS_PER_HISTOGRAM = 1 << 26  # whose cells take a quarter of a gigabyte


def add_counts_on_cuda(
    cells: Tensor, gold: Tensor, predicted: Tensor, first: int, ignored: int | None
) -> None:
    """Add to `cells` [K + 1, K + 1] how often each pair of labels first, first + 1, … occurs.

    What is no such label counts in the last row or column, an item whose gold is `ignored` nowhere.
    """
    if _choose_bins(len(cells)).total <= MOST_BINS and can_run_triton():
        _launch_kernel(cells, gold, predicted, first, ignored)
    else:
        _add_histograms(cells, gold, predicted, first, ignored)


@cache
def can_run_triton() -> bool:
    """Tell whether Triton is installed, and the C compiler with which it starts kernels."""
    compilers = (os.environ.get("CC"), "gcc", "clang")
    return triton is not None and any(shutil.which(each) for each in compilers if each)


# --- PyTorch -------------------------------------------------------------------------------------


def _add_histograms(
    cells: Tensor, gold: Tensor, predicted: Tensor, first: int, ignored: int | None
) -> None:
    size = len(cells)
    parts = (torch.split(column, ITEMS_PER_HISTOGRAM) for column in (gold, predicted))
    for rows, columns in zip(*parts, strict=True):
        row, column = _locate_levels(rows, first, size), _locate_levels(columns, first, size)
        cell = torch.add(column, row.int(), alpha=size)
        if ignored is not None:
            cell.masked_fill_(rows.long() == ignored, -1)  # outside of the histogram
        cells += torch.histc(cell, size**2, 0, size**2 - 1).view(size, size)


def _locate_levels(labels: Tensor, first: int, size: int) -> Tensor:
    """Return positions on the scale; -1, the last of `size`, for what is not on it."""
    if first or torch.iinfo(labels.dtype).max < size:
        labels = labels.long() - first
    lowest = max(torch.iinfo(labels.dtype).min, -1)
    return labels.clamp(lowest, size - 1).remainder_(size)


# --- Triton --------------------------------------------------------------------------------------


class _Bins(NamedTuple):
    """The bins of the kernel: `stride` of them for a row of cells, a power of 2 in all."""

    stride: int
    total: int


@cache
def _choose_bins(size: int) -> _Bins:
    """Return the fewest bins; of as many, those whose stride is a power of 2 are found faster."""
    strides = (_round_up_to_power(size), size)
    return min((_Bins(x, _round_up_to_power(size * x)) for x in strides), key=lambda x: x.total)


def _round_up_to_power(number: int) -> int:
    return 1 << (number - 1).bit_length()


def _launch_kernel(
    cells: Tensor, gold: Tensor, predicted: Tensor, first: int, ignored: int | None
) -> None:
    bins = _choose_bins(len(cells))
    block = BLOCK_BYTES // max(gold.itemsize, predicted.itemsize)
    most = BLOCKS_PER_PROCESSOR * _count_processors(gold.device)
    with _select_device(gold.device):
        _count_cells[(min(len(gold) // block + 1, most),)](
            gold,
            predicted,
            cells,
            len(gold),
            first=first,
            ignored=ignored,
            size=len(cells),
            stride=bins.stride,
            bins=bins.total,
            block=block,
            num_warps=WARPS,
        )


def _select_device(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context in which kernels run on the device; one that costs nothing where they do."""
    is_current = device.index == torch.cuda.current_device()
    return nullcontext() if is_current else torch.cuda.device(device)


@cache
def _count_processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def _compile(function: Callable[..., Any]) -> Any:
    return function if triton is None else triton.jit(function)


@_compile
def _count_cells(
    gold: Any,
    predicted: Any,
    cells: Any,
    n: Any,
    first: "tl.constexpr",
    ignored: "tl.constexpr",
    size: "tl.constexpr",
    stride: "tl.constexpr",
    bins: "tl.constexpr",
    block: "tl.constexpr",
) -> None:
    """Count blocks of items in bins of this program, and add these to the cells."""
    program = tl.program_id(0).to(tl.int64)
    whole = n // block * block
    counts = tl.zeros([bins], tl.int32)
    for start in range(program * block, whole, tl.num_programs(0) * block):
        counts += _count_block(
            gold, predicted, start, n, first, ignored, size, stride, bins, block, partial=False
        )
    if program == 0:
        counts += _count_block(
            gold, predicted, whole, n, first, ignored, size, stride, bins, block, partial=True
        )
    row, column = tl.arange(0, bins) // stride, tl.arange(0, bins) % stride
    is_cell = (row < size) & (column < size)
    tl.atomic_add(cells + row * size + column, counts.to(tl.int64), is_cell, sem="relaxed")


@_compile
def _count_block(
    gold: Any,
    predicted: Any,
    start: Any,
    n: Any,
    first: "tl.constexpr",
    ignored: "tl.constexpr",
    size: "tl.constexpr",
    stride: "tl.constexpr",
    bins: "tl.constexpr",
    block: "tl.constexpr",
    partial: "tl.constexpr",  # whether the block ends after the last item
) -> Any:
    """Return how many items are in each bin; those that do not count are put into the first."""
    item = start + tl.arange(0, block)
    counted = item < n
    rows = tl.load(gold + item, counted, other=0) if partial else tl.load(gold + item)
    columns = tl.load(predicted + item, counted, other=0) if partial else tl.load(predicted + item)
    place = _locate_level(rows, first, size) * stride + _locate_level(columns, first, size)
    if ignored is not None:
        counted = counted & (rows.to(tl.int64) != ignored)
    if partial or ignored is not None:
        surplus = block - tl.sum(counted.to(tl.int32))
        counts = tl.histogram(tl.where(counted, place, 0), bins)
        counts -= tl.where(tl.arange(0, bins) == 0, surplus, 0)
    else:
        counts = tl.histogram(place, bins)
    return counts


@_compile
def _locate_level(label: Any, first: "tl.constexpr", size: "tl.constexpr") -> Any:
    """Return a position on the scale; without a sign, labels below the first are too large."""
    if first == 0 and label.dtype.primitive_bitwidth < 64:
        position = label.to(tl.int32).to(tl.uint32, bitcast=True)
    else:
        position = (label.to(tl.int64) - first).to(tl.uint64, bitcast=True)
    return tl.minimum(position, size - 1).to(tl.int32)
