"""Accumulator: summaries of batches, added up as they come."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial, reduce
from operator import add
from typing import Any

from ordinate.errors import BadOption, NoItems
from ordinate.scale import Scale
from ordinate.summaries.base import Summary
from ordinate.summaries.confusion import ConfusionMatrix

Count = Callable[..., Summary]


class Accumulator:
    """The summary of a stream, at any moment: of everything, of a window, or of what is recent.

    It is made of a scale, for batches of gold and predicted labels; or of any function that makes
    a summary of a batch, such as `Moments.of`. `window` is how many of the last batches count;
    with `decay`, a batch weighs that much less with each one that comes after it.

    >>> stream = Accumulator("low,mid,high", window=2)
    >>> for gold, predicted in [(["low"], ["high"]), (["mid"], ["mid"]), (["high"], ["mid"])]:
    ...     stream.add(gold, predicted)
    >>> stream.summary().counts.tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    >>> stream.batches
    3
    """

    def __init__(
        self,
        count: "Scale | str | Iterable[Hashable] | Count",
        *,
        window: int | None = None,
        decay: float | None = None,
    ) -> None:
        if window is not None and decay is not None:
            raise BadOption("Take a window, or a decay, not both.")
        if window is not None and window < 1:
            raise BadOption(f"A window has at least one batch, not {window}.")
        if decay is not None and not 0.0 < decay <= 1.0:
            raise BadOption(f"decay={decay} is not above 0, and at most 1.")
        self._count: Count = (
            count if callable(count) else partial(ConfusionMatrix.of, scale=Scale.of(count))
        )
        self._decay = decay
        self._parts: deque[Summary] = deque(maxlen=window)
        self.keeps_parts = window is not None
        self.batches = 0

    def add(self, *batch: Any, **options: Any) -> None:
        """Count a batch: its columns, and options such as `weights` and `missing`."""
        self.merge(self._count(*batch, **options))

    def merge(self, summary: Any) -> None:
        """Add a batch that is counted already."""
        if not self.keeps_parts and self._parts:
            before = self._parts.pop()
            summary = (before if self._decay is None else self._discount(before)) + summary
        self._parts.append(summary)
        self.batches += 1

    def _discount(self, before: Summary) -> Any:
        if not isinstance(before, ConfusionMatrix):
            raise BadOption(f"A {type(before).__name__} has no decay: take a window.")
        return before.discount(self._decay or 1.0)

    def summary(self) -> Any:
        """Return the summary of the batches that count."""
        if not self._parts:
            raise NoItems("No batch has been added yet.")
        return reduce(add, self._parts)
