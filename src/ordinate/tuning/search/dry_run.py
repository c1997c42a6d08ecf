"""The dry run: what a search would do; data are read, and nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordinate.render import Document, Grid
from ordinate.results.base import Record, Result
from ordinate.tuning.search.settings import ScreeningSettings, SearchSettings
from ordinate.tuning.search.task import Task


@dataclass(frozen=True, repr=False, eq=False)
class DryRun(Result):
    """The inputs, the models and the number of fits that a search would take at most."""

    metric: str
    settings: SearchSettings
    source: Any
    inputs: tuple[Record, ...]
    tests: tuple[str, ...]
    folds: int
    notes: tuple[str, ...] = ()  # on the columns of a table

    @property
    def searched_inputs(self) -> int:
        """How many inputs are searched."""
        if isinstance(self.settings, ScreeningSettings):
            return min(self.settings.top_k, len(self.inputs))
        return len(self.inputs)

    @property
    def fits(self) -> dict[str, int]:
        """How many models each stage fits at most; fewer where trials are pruned or cached."""
        settings, inputs = self.settings, self.searched_inputs
        models = settings.model_types
        trials = sum(settings.count_trials(model_type) for model_type in models)
        stages = {
            "search": inputs * trials * self.folds,
            "finalists": inputs * len(models) * (self.folds + 1),
        }
        if isinstance(settings, ScreeningSettings):
            stages = {"screening": len(self.inputs) * self.folds} | stages
        if settings.nested:
            outer = sum(stages.values()) - inputs * len(models) + 1
            stages["nested"] = self.folds * outer
        return stages

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "task": "tune, dry run",
            "settings": self.settings.to_dict(),
            "data": self.source.to_dict(),
            "sets": list(self.inputs),
            "tests": list(self.tests),
            "fits": self.fits,
            "notes": list(self.notes),
        }

    def rows(self) -> list[Record]:
        """Return one flat record for each input."""
        return [{"items": self.source.n} | one for one in self.inputs]

    def document(self) -> Document:
        """Return the plan for people."""
        settings = self.settings
        jobs = f"{settings.jobs} process{'' if settings.jobs == 1 else 'es'}"
        stages = ", ".join(f"{count:,} for {stage}" for stage, count in self.fits.items())
        verdict = f"At most {sum(self.fits.values()):,} fits: {stages}. Nothing was written."
        trials = sum(settings.count_trials(model_type) for model_type in settings.model_types)
        models = (
            f"Models: {', '.join(settings.models)}, {trials} trials in all for each of "
            f"{self.searched_inputs} of {len(self.inputs)} inputs, in {self.folds} folds, with "
            f"{jobs}."
        )
        tests = f"{self.source.n:,} items. Test data: {', '.join(self.tests) or 'none'}."
        header = tuple(self.inputs[0])
        rows = tuple(tuple(one.values()) for one in self.inputs)
        return Document(
            f"Plan: tune for {self.metric}",
            (Grid("Inputs", header, rows), models, tests),
            verdict,
            self.notes,
        )


def plan_search(task: Task, source: Any, tests: Sequence[str], notes: Sequence[str] = ()) -> DryRun:
    """Say what a search would do."""
    inputs = tuple(task.describe_input(name) for name in task.inputs)
    return DryRun(
        task.metric, task.settings, source, inputs, tuple(tests), len(task.folds), tuple(notes)
    )
