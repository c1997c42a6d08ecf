"""What experiments and searches keep for themselves, by name: no output ever takes its place."""

from collections.abc import Collection
from pathlib import Path

from ordinate.errors import BadInput, BadOutput, shorten

# The folders of an experiment.
TRAINING, TEST, FEATURES = "ml-training-data", "ml-test-data", "features"
MODELS, PREDICTIONS, RESULTS = "models", "predictions", "results"  # of any search
OUTPUT_FOLDERS = (MODELS, PREDICTIONS, RESULTS)
FOLDERS = (TRAINING, TEST, FEATURES, *OUTPUT_FOLDERS)
README = "README.txt"
EXPERIMENT_FILE = "experiment.json"  # which columns and which scale an experiment was laid out with
LOCK_FILE = ".lock"
HOLDER_FILE = ".lock.json"  # who holds it: on Windows nobody else can read a locked file

# What a search writes into its results: the latest run, every run, and what the next goes on from.
RESULTS_FILE, TRIALS_FILE, SUMMARY_FILE = "results.json", "trials.json", "summary.md"
TEST_PREDICTIONS_FILE, CONFIG_FILE = "test_predictions.json", "config.toml"
STUDIES, RUNS, CHECKPOINTS = "studies.db", "runs", "checkpoints"
LATEST_FILES = (RESULTS_FILE, TRIALS_FILE, SUMMARY_FILE, TEST_PREDICTIONS_FILE)

RESERVED = {*FOLDERS, README, EXPERIMENT_FILE, LOCK_FILE, HOLDER_FILE}


def refuse_reserved_path(
    path: Path, stores: Collection[Path] = (), *, allowed: str | None = None
) -> None:
    """Refuse to write where an experiment or a search keeps what is its own, and no report.

    `stores` are folders that are known to be such; others are recognised by what they hold. Files
    may be written into the one folder of them that is `allowed`, but not into folders in it.
    """
    for folder in path.parents:
        name, *rest = path.relative_to(folder).parts
        reserved = name in RESERVED and (folder in stores or is_store(folder))
        if reserved and not (name == allowed and len(rest) == 1):
            raise BadOutput(
                f"{shorten(str(path))} cannot be written: {name} in {shorten(str(folder))} is for "
                "what Ordinate keeps there. Write to another place in it, or elsewhere."
            )


def is_store(folder: Path) -> bool:
    """Tell whether a folder is an experiment, or that of a search."""
    own = [folder / TRAINING, folder / TEST]
    return any(path.is_dir() for path in own) or holds_search(folder)


def holds_search(folder: Path) -> bool:
    """Tell whether a search wrote into a folder."""
    return (folder / RESULTS / RUNS).is_dir() or (folder / RESULTS / STUDIES).exists()


def refuse_foreign_files(root: Path) -> None:
    """Refuse a folder for a search whose results hold files of these names from elsewhere."""
    folder = root / RESULTS
    foreign = [name for name in LATEST_FILES if (folder / name).exists()]
    if foreign and not holds_search(root):
        raise BadOutput(
            f"{folder / foreign[0]} was not written by a search, which would replace it. Move it, "
            "or name another folder with -e."
        )


def check_search_folder(root: Path) -> None:
    """Refuse a file in the place of the folder of a search."""
    if root.is_file():
        raise BadInput(
            f"{root} is a file, and the folder of a search is needed: what was given to ordinate "
            "tune or tune-regression as -e DIR."
        )
