"""The timeout of a search: which trials there is time for, and when no fit begins any more."""

import math
import time
from collections.abc import Callable, Hashable

TIME_SAFETY_FACTOR = 1.25  # a trial may take so much longer than those before


class TimeBudget:
    """Tells how many trials of a study there is time for, going by those that were made.

    The last fits of the best trials need their time, too, which is set aside.
    """

    def __init__(
        self,
        seconds: float | None = None,
        folds: int = 1,
        jobs: int = 1,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.clock = clock or time.monotonic
        self._start = self.clock()
        self.seconds = seconds
        self._folds, self._jobs = folds, jobs
        self._took: dict[Hashable, float] = {}  # seconds of a trial, by study
        self._fits = 0  # that were made, or found

    @property
    def deadline(self) -> float | None:
        """When the time is over: no fit begins after it, but the last one of a winner."""
        return None if self.seconds is None else self._start + self.seconds

    @property
    def end(self) -> float | None:
        """When the last fits must begin."""
        return None if self.deadline is None else self.deadline - self._estimate_final_fits()

    @property
    def is_over(self) -> bool:
        """Whether there is no time left for anything but the last fits."""
        return self.end is not None and self.clock() >= self.end

    def count_affordable_trials(self, study: Hashable, requested: int) -> int:
        """Return how many of the trials there is time for; that of the first is unknown."""
        if self.end is None:
            return requested
        left, took = self.end - self.clock(), self._took.get(study)
        if took is None:
            return min(requested, int(left > 0.0))
        return min(requested, max(0, int(left / (TIME_SAFETY_FACTOR * took))))

    def record_trial(self, study: Hashable, seconds: float) -> None:
        """Take how long a trial took; the longest so far counts, for it may be the best."""
        self._took[study] = max(seconds, self._took.get(study, 0.0))

    def record_fits(self, count: int) -> None:
        """Take how many fits were made."""
        self._fits += count

    def estimate_seconds(self, fits: int) -> float:
        """Return how long so many fits take at most; nan where none was made.

        Those that were made took less than all the time so far, in which data were read, too.
        """
        return fits * (self.clock() - self._start) / self._fits if self._fits else math.nan

    def forget_trials(self) -> None:
        """Set no more time aside: the last fits of what was searched are made."""
        self._took.clear()

    def _estimate_final_fits(self) -> float:
        fits = [took / self._folds for took in self._took.values()]
        return self._estimate_fit_ratio() * max(sum(fits), self._jobs * max(fits, default=0.0))

    def _estimate_fit_ratio(self) -> float:
        """Return how much longer a fit on all folds takes than one on all but one.

        Gaussian processes grow with the cube of their rows. One part is no fold: the last fit is
        on the rows of the trial.
        """
        return 1.0 if self._folds < 2 else (self._folds / (self._folds - 1)) ** 3
