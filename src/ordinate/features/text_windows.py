"""Long texts in windows, and windows in batches whose shape does not depend on one another.

Sums of floats depend on the order in which a kernel takes them, and kernels choose that by the
shape of a batch. So a window is padded to a width that its own length decides, and stands in a
batch of as many rows as that width decides; rows that are missing are copies. Whatever stands
beside it, a window then goes through the same sums, and gives the same bits. (On one machine with
one number of threads: others may sum in another order.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WIDTH_STEP = 16  # widths are multiples of it
BATCH_TOKENS = 256  # of a batch, unless one window alone has more


@dataclass(frozen=True)
class WindowBatch:
    """Some windows of one shape; `places` says which, in the first rows."""

    places: tuple[int, ...]
    ids: NDArray[np.int64]
    mask: NDArray[np.int64]


def choose_batch_shape(length: int, limit: int) -> tuple[int, int]:
    """Return rows and width of the batch that a window of this length stands in.

    >>> choose_batch_shape(7, 256), choose_batch_shape(100, 256), choose_batch_shape(250, 254)
    ((16, 16), (2, 112), (1, 254))
    """
    width = min(-(-length // WIDTH_STEP) * WIDTH_STEP, limit)
    return max(1, BATCH_TOKENS // width), width


def batch_windows(windows: Sequence[Sequence[int]], limit: int, pad: int) -> Iterator[WindowBatch]:
    """Give the windows in batches, from the shortest ones; none may be longer than the limit."""
    by_width: dict[tuple[int, int], list[int]] = {}
    for place, window in enumerate(windows):
        by_width.setdefault(choose_batch_shape(len(window), limit), []).append(place)
    for (rows, width), places in sorted(by_width.items(), key=lambda one: one[0][1]):
        for start in range(0, len(places), rows):
            some = places[start : start + rows]
            yield _pad_batch([windows[place] for place in some], some, rows, width, pad)


def _pad_batch(
    windows: list[Sequence[int]], places: list[int], rows: int, width: int, pad: int
) -> WindowBatch:
    ids = np.full((rows, width), pad, np.int64)
    mask = np.zeros((rows, width), np.int64)
    for row in range(rows):
        window = windows[min(row, len(windows) - 1)]
        ids[row, : len(window)], mask[row, : len(window)] = window, 1
    return WindowBatch(tuple(places), ids, mask)


@dataclass(frozen=True)
class Span:
    """A window on a sequence from start to stop, in which what comes from `first` is new."""

    start: int
    first: int
    stop: int


def split_into_spans(length: int, window: int, stride: int) -> list[Span]:
    """Return windows that move on by a stride, so that all new ones but the first see the past.

    >>> split_into_spans(8, 6, 3)
    [Span(start=0, first=0, stop=6), Span(start=3, first=6, stop=8)]
    """
    found, start, seen = [], 0, 0
    while seen < length:
        stop = min(start + window, length)
        found.append(Span(start, seen, stop))
        start, seen = start + stride, stop
    return found
