"""What experiments and searches keep for themselves, by name: no output ever takes its place."""

from pathlib import Path

from ordinate.errors import BadOutput, shorten
from ordinate.experiment.lock import LOCK_FILE as LOCK

# The folders of an experiment.
TRAINING, TEST, FEATURES = "ml-training-data", "ml-test-data", "features"
OUTPUT_FOLDERS = ("models", "predictions", "results", "ho_multifeat_results")
FOLDERS = (TRAINING, TEST, FEATURES, *OUTPUT_FOLDERS)
README = "README.txt"

# The files and folders of a search for a surrogate.
RESULTS, TRIALS, SUMMARY = "results.json", "trials.json", "summary.md"
CONFIG, TEST_PREDICTIONS, STUDIES = "config.toml", "test_predictions.json", "studies.db"
MODELS, RUNS, CHECKPOINTS, LATTICES = "models", "runs", "checkpoints", "lattices"

EXPERIMENT = {*FOLDERS, README, LOCK}
SEARCH = {
    RESULTS,
    TRIALS,
    SUMMARY,
    CONFIG,
    TEST_PREDICTIONS,
    STUDIES,
    MODELS,
    RUNS,
    CHECKPOINTS,
    LATTICES,
    LOCK,
}


def refuse_reserved_path(path: Path) -> None:
    """Refuse to write where an experiment or a search keeps what is its own, and no report."""
    for folder in path.parents:
        name = path.relative_to(folder).parts[0]
        if name in _list_reserved_names(folder):
            raise BadOutput(
                f"{shorten(str(path))} cannot be written: {name} in {shorten(str(folder))} is for "
                "what "
                "Ordinate keeps there. Write the report beside it, or elsewhere."
            )


def _list_reserved_names(folder: Path) -> set[str]:
    """Return what a folder keeps for itself, if it is an experiment or of a search."""
    if (folder / TRAINING).is_dir():
        return EXPERIMENT
    return SEARCH if (folder / RESULTS).exists() and (folder / TRIALS).exists() else set()
