"""Progress: how far a search is, as it is told while it runs."""

from collections.abc import Mapping

from ordinate.regress.bench import Bench
from ordinate.regress.fitting import FitProgress
from ordinate.search.studies import Study

STAGE = "searching"


class SearchProgress:
    """Trials that are made, the part of a batch that is made, and the latest word of a fit."""

    def __init__(self, bench: Bench, studies: Mapping[str, Study]) -> None:
        self._bench, self._studies = bench, studies
        self._wanted = sum(map(bench.settings.count_trials, studies))
        self.made()

    def made(self) -> None:
        """Count the trials of all studies, by model type."""
        count = self._bench.settings.count_trials
        found = {model_type: study.trials for model_type, study in self._studies.items()}
        self._done = sum(
            min(len(trials), count(model_type)) for model_type, trials in found.items()
        )
        values = [trial.value for trials in found.values() for trial in trials]
        known = [value for value in values if value is not None]
        self._best = f"best RMSE {self._bench.format_in_unit(min(known))}" if known else ""
        self.begun(0.0)

    def begun(self, trials: float) -> None:
        """Take how much of a batch is made, in trials."""
        self._begun = trials
        self._show_progress()

    def report_fit(self, step: FitProgress) -> None:
        """Take how far a fit is."""
        self._show_progress(self._bench.format_step(step))

    def _show_progress(self, now: str = "") -> None:
        share = min(1.0, (self._done + self._begun) / self._wanted)
        self._bench.tell(STAGE, share, "; ".join(filter(None, (self._best, now))))
