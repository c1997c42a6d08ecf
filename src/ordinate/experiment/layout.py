"""What experiments and searches keep for themselves, by name: no output ever takes its place."""

from collections.abc import Collection
from pathlib import Path

from ordinate.errors import BadOutput, shorten

# The folders of an experiment.
TRAINING, TEST, FEATURES = "ml-training-data", "ml-test-data", "features"
OUTPUT_FOLDERS = ("models", "predictions", "results", "ho_multifeat_results")
FOLDERS = (TRAINING, TEST, FEATURES, *OUTPUT_FOLDERS)
README = "README.txt"
LOCK_FILE = ".lock"
HOLDER_FILE = ".lock.json"  # who holds it: on Windows nobody else can read a locked file

# The files and folders of a search for a surrogate.
RESULTS, TRIALS, SUMMARY = "results.json", "trials.json", "summary.md"
CONFIG, TEST_PREDICTIONS, STUDIES = "config.toml", "test_predictions.json", "studies.db"
MODELS, RUNS, CHECKPOINTS, LATTICES = "models", "runs", "checkpoints", "lattices"

LATEST_FILES = (RESULTS, TRIALS, SUMMARY, TEST_PREDICTIONS)  # of a search, replaced by the next

EXPERIMENT = {*FOLDERS, README, LOCK_FILE, HOLDER_FILE}
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
    LOCK_FILE,
    HOLDER_FILE,
}


def refuse_reserved_path(
    path: Path, stores: Collection[Path] = (), *, allowed: str | None = None
) -> None:
    """Refuse to write where an experiment or a search keeps what is its own, and no report.

    `stores` are folders that are known to be such; others are recognised by what they hold. Files
    may be written into the one folder of them that is `allowed`, but not into folders in it.
    """
    for folder in path.parents:
        name, *rest = path.relative_to(folder).parts
        reserved = EXPERIMENT | SEARCH if folder in stores else _list_reserved_names(folder)
        if name in reserved and not (name == allowed and len(rest) == 1):
            raise BadOutput(
                f"{shorten(str(path))} cannot be written: {name} in {shorten(str(folder))} is for "
                "what Ordinate keeps there. Write to another place in it, or elsewhere."
            )


def refuse_foreign_files(root: Path) -> None:
    """Refuse a folder for the results of a search that holds files of these names already."""
    foreign = [name for name in LATEST_FILES if (root / name).exists()]
    if foreign and not (root / RUNS).is_dir():
        raise BadOutput(
            f"{root / foreign[0]} was not written by a search, which would replace it. Move it, or "
            "name another folder with -o."
        )


def _list_reserved_names(folder: Path) -> set[str]:
    """Return what a folder keeps for itself, if it is an experiment or of a search."""
    if (folder / TRAINING).is_dir() or (folder / TEST).is_dir():
        return EXPERIMENT
    searched = (folder / RESULTS).exists() and (folder / RUNS).is_dir()
    return SEARCH if searched or (folder / STUDIES).exists() else set()
