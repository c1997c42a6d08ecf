"""The dry run: what a tuning run would do; data are read, and nothing is written."""

from dataclasses import dataclass
from typing import Any

from ordinate.classify.settings import Settings
from ordinate.classify.training_data import FeatureSet, TrainingData, TrainingDataSummary
from ordinate.classify.tuning import load_training_data
from ordinate.experiment.folder import Experiment
from ordinate.render import Document, Grid
from ordinate.results.base import Result


@dataclass(frozen=True, repr=False, eq=False)
class DryRun(Result):
    """The feature sets, the models and the number of fits that a run would take at most."""

    settings: Settings
    source: TrainingDataSummary
    sets: tuple[FeatureSet, ...]
    tests: tuple[str, ...]

    @property
    def fits(self) -> dict[str, int]:
        """How many models each stage fits at most; fewer where trials are pruned or cached."""
        settings = self.settings
        studies = min(settings.top_k, len(self.sets)) * len(settings.searched_models)
        stages = {
            "screening": len(self.sets) * settings.folds,
            "search": studies * settings.stage2_trials * settings.folds,
            "finalists": studies * (settings.folds + 1),
        }
        if settings.nested:
            stages["nested"] = settings.folds * (sum(stages.values()) - studies + 1)
        return stages

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "task": "tune, dry run",
            "settings": self.settings.to_dict(),
            "data": self.source.to_dict(),
            "sets": [
                {"set": one.name, "features": len(one.names), "matched": one.matched}
                for one in self.sets
            ],
            "tests": list(self.tests),
            "fits": self.fits,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each feature set."""
        return [
            {
                "set": one.name,
                "items": self.source.n,
                "features": len(one.names),
                "matched": one.matched,
            }
            for one in self.sets
        ]

    def document(self) -> Document:
        """Return the plan for people."""
        settings, source = self.settings, self.source
        rows = tuple((x.name, source.n, len(x.names), x.matched) for x in self.sets)
        counts = zip(source.scale.names, source.counts, strict=True)
        levels = ", ".join(f"{name} {count}" for name, count in counts)
        data = f"Training data: {', '.join(source.training)} ({levels}). "
        data += f"Test data: {', '.join(self.tests) or 'none'}."
        sets = f"the best {min(settings.top_k, len(self.sets))} of {len(self.sets)} feature sets"
        jobs = f"{settings.jobs} process{'' if settings.jobs == 1 else 'es'}"
        models = f"Models: {', '.join(settings.models)}, {settings.stage2_trials} trials each for "
        models += f"{sets},"
        models += f" in {settings.folds} folds, with {jobs}."
        stages = ", ".join(f"{count:,} for {stage}" for stage, count in self.fits.items())
        fits = f"At most {sum(self.fits.values()):,} fits: {stages}. Nothing was written."
        grid = Grid("Feature sets", ("set", "items", "features", "rows matched"), rows)
        title = f"Plan: tune for {settings.metric} on {source.scale}"
        return Document(title, (data, grid, models, fits))


def plan_run(
    experiment: Experiment, settings: Settings | None = None, *, scale: str | None = None
) -> DryRun:
    """Read and check everything that a run would, and say what it would do."""
    settings = settings or Settings()
    training: TrainingData = load_training_data(experiment, settings, scale)
    sets = tuple(training.sets.values())
    return DryRun(settings, training.source, sets, tuple(experiment.tests))
