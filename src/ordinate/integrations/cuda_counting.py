"""Counting on a CUDA device: how often each pair of levels occurs in two tensors.

Small scales are counted by a Triton kernel in one pass over the tensors; large ones, and all where
Triton cannot run, by a histogram of PyTorch. Integers are added up, so that the order of additions
does not matter, and nobody waits for the device.
"""

import os
import shutil
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with the CUDA builds of PyTorch for Linux
    triton = None

BLOCK, WARPS, BLOCKS_PER_PROCESSOR = 8192, 8, 16  # the fastest on an H200
MOST_BINS = 512  # beyond which the kernel is slower than PyTorch
ITEMS_PER_HISTOGRAM = 1 << 26  # whose cells take a quarter of a gigabyte


def add_counts_on_cuda(
    cells: Tensor, gold: Tensor, predicted: Tensor, first: int, ignored: int | None
) -> None:
    """Add to `cells` [K + 1, K + 1] how often each pair of labels first, first + 1, … occurs.

    What is no such label counts in the last row or column, an item whose gold is `ignored` nowhere.
    """
    bins = 1 << (len(cells) ** 2).bit_length()  # a power of 2 with room for what is not counted
    if bins <= MOST_BINS and can_run_triton():
        _launch_kernel(cells, gold, predicted, first, ignored, bins)
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
        cell = _locate_levels(rows, first, size) * size + _locate_levels(columns, first, size)
        if ignored is not None:
            cell.masked_fill_(rows.long() == ignored, -1)  # outside of the histogram
        cells += torch.histc(cell, size**2, 0, size**2 - 1).view(size, size)


def _locate_levels(labels: Tensor, first: int, size: int) -> Tensor:
    """Return positions on the scale; the last of `size` for what is not on it."""
    position = labels.long() - first
    last = size - 1
    return torch.where((position < 0) | (position > last), last, position).int()


# --- Triton --------------------------------------------------------------------------------------


def _launch_kernel(
    cells: Tensor, gold: Tensor, predicted: Tensor, first: int, ignored: int | None, bins: int
) -> None:
    most = BLOCKS_PER_PROCESSOR * _count_processors(gold.device)
    programs = min(len(gold) // BLOCK + 1, most)
    with torch.cuda.device(gold.device):
        _count_cells[(programs,)](
            gold,
            predicted,
            cells,
            len(gold),
            first=first,
            size=len(cells),
            ignored=ignored,
            bins=bins,
            block=BLOCK,
            num_warps=WARPS,
        )


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
    size: "tl.constexpr",
    ignored: "tl.constexpr",
    bins: "tl.constexpr",
    block: "tl.constexpr",
) -> None:
    """Count every so many blocks of items in a histogram of its own, and add that to the cells."""
    program = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, block)
    whole = n // block * block
    counts = tl.zeros([bins], tl.int32)
    for start in range(program * block, whole, tl.num_programs(0) * block):
        rows, columns = tl.load(gold + start + row), tl.load(predicted + start + row)
        counts += tl.histogram(_locate_cell(rows, columns, first, size, ignored, bins), bins)
    if program == 0:
        inside = whole + row < n
        rows = tl.load(gold + whole + row, inside, other=0)
        columns = tl.load(predicted + whole + row, inside, other=0)
        cell = _locate_cell(rows, columns, first, size, ignored, bins)
        counts += tl.histogram(tl.where(inside, cell, bins - 1), bins)
    cell = tl.arange(0, bins)
    tl.atomic_add(cells + cell, counts.to(tl.int64), cell < size * size, sem="relaxed")


@_compile
def _locate_cell(
    gold: Any,
    predicted: Any,
    first: "tl.constexpr",
    size: "tl.constexpr",
    ignored: "tl.constexpr",
    bins: "tl.constexpr",
) -> Any:
    """Return row * size + column; the last bin, which is no cell, for what is ignored."""
    cell = _locate_level(gold, first, size) * size + _locate_level(predicted, first, size)
    if ignored is not None:
        cell = tl.where(gold.to(tl.int64) == ignored, bins - 1, cell)
    return cell


@_compile
def _locate_level(label: Any, first: "tl.constexpr", size: "tl.constexpr") -> Any:
    """Return a position on the scale; without a sign, labels below the first are too large."""
    if first == 0 and label.dtype.primitive_bitwidth < 64:
        position = label.to(tl.int32).to(tl.uint32, bitcast=True)
    else:
        position = (label.to(tl.int64) - first).to(tl.uint64, bitcast=True)
    return tl.minimum(position, size - 1).to(tl.int32)
