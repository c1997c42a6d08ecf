"""`ordinate init`: an experiment folder to begin with, laid out with the texts of the package."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import add_command
from ordinate.errors import BadOutput, replace_control_characters, shorten

if TYPE_CHECKING:
    from ordinate.features import ExtractionResult

EXAMPLES = """examples:
  ordinate init first
  ordinate check -e first

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""
TRAINING_FILE, TEST_FILE = "ml-training-data/texts.csv", "ml-test-data/texts_test.csv"
FEATURE_SETS = ("tfidf-word", "tfidf-char")
# How the names begin of what a killed run leaves.
LEFTOVER_PREFIXES = (".ordinate-", ".ordinate.", ".making-", ".lock")
README_TEXT = """An experiment folder of Ordinate.

ml-training-data/  labelled texts to learn from: CSV files with id, level and text
ml-test-data/      labelled texts to test on, never used to choose anything
features/          feature sets, a folder for each, with a folder for each data file in it
models/, predictions/, results/, ho_multifeat_results/ are made by ordinate tune and predict.

The texts are those that ship with Ordinate: short English texts on everyday and other topics,
written for it, 42 for each CEFR level; no learner wrote them. Each third text of a level is in
the test file. Replace them with your own, and make features again:

  ordinate check -e .
  ordinate features tfidf -e .
  ordinate features tfidf -e . --analyzer char
  ordinate features list -e .
  ordinate tune -e .
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "init",
        "Lay out an experiment folder with the texts that ship with Ordinate, split "
        "into training and test data, and with TF-IDF feature sets of words and characters. A "
        "killed run is taken up by the same command; a folder with anything else in it is refused.",
        EXAMPLES,
    )
    parser.add_argument("folder", metavar="DIR", help="a new or empty folder")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Lay out the folder, and say what is in it."""
    from ordinate.examples import split_texts
    from ordinate.experiment.layout import README
    from ordinate.experiment.safe_files import write_text

    root = Path(options.folder)
    texts = dict(zip((TRAINING_FILE, TEST_FILE), split_texts(), strict=True))
    _refuse_used_folder(root, texts)
    for name, text in texts.items():
        write_text(root / name, text)
    made = _extract_features(root)
    write_text(root / README, README_TEXT)  # last: without it, the folder is not finished
    sys.stdout.write(_describe_folder(options.folder, made))
    return 0


def _extract_features(root: Path) -> "list[ExtractionResult]":
    from ordinate.cli.progress import show_share
    from ordinate.experiment.folder import Experiment
    from ordinate.features import extract_features
    from ordinate.features.tfidf import Tfidf

    experiment = Experiment.open(root)
    with show_share("making features") as progress:
        return [
            extract_features(experiment, one, progress=progress)
            for one in (Tfidf(), Tfidf(analyzer="char"))
        ]


def _refuse_used_folder(root: Path, texts: dict[str, str]) -> None:
    """Refuse a folder that holds anything but what an unfinished run of this command left."""
    try:
        if root.exists() and not root.is_dir():
            raise BadOutput(f"{shorten(str(root))} is a file. Name a new or empty folder.")
        found = sorted(root.rglob("*"))
        foreign = [path for path in found if not _is_ours(path, root, texts)]
    except (OSError, ValueError) as problem:
        if isinstance(problem, BadOutput):
            raise
        reason = getattr(problem, "strerror", None) or "it is no path"
        raise BadOutput(f"{shorten(str(root))} cannot be used: {reason}.") from None
    if foreign:
        shown = shorten(str(foreign[0].relative_to(root)))
        raise BadOutput(
            f"{shorten(str(root))} is not empty: it holds {shown}. Nothing was written. Name a new "
            "or empty folder."
        )


def _is_ours(path: Path, root: Path, texts: dict[str, str]) -> bool:
    place = path.relative_to(root)
    if any(part.startswith(LEFTOVER_PREFIXES) for part in place.parts):
        return True
    if place.parts[0] == "features":
        return path.is_dir() if len(place.parts) == 1 else place.parts[1] in FEATURE_SETS
    if path.is_dir():
        return any(Path(name).parent == place for name in texts)
    text = texts.get(place.as_posix())
    return text is not None and path.read_bytes() == text.encode()


def _describe_folder(folder: str, made: "list[ExtractionResult]") -> str:
    rows = {one.dataset: one.rows for one in made[0].datasets}
    sets = " and ".join(f"{one.name} ({one.datasets[0].features:,} features)" for one in made)
    where, said = (
        replace_control_characters(folder),
        shlex.quote(replace_control_characters(folder)),
    )
    return (
        f"{where} is laid out: {rows['texts']} training texts, {rows['texts_test']} test texts, "
        f"feature sets {sets}.\nNext: ordinate check -e {said}, ordinate tune -e {said}\n"
    )
