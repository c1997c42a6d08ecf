"""`ordinate init`: an experiment folder to begin with, from labelled texts."""

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, StorePath, add_flags, collect_given
from ordinate.cli.options import (
    SCALE_HELP,
    IntervalOptions,
    add_command,
    add_map_proposal_option,
)
from ordinate.errors import replace_control_characters
from ordinate.render import find_terminal_width
from ordinate.render.estimates import join_names
from ordinate.render.text import PAGE_WIDTH, wrap_words

if TYPE_CHECKING:
    from ordinate.tuning.experiment.folder import Experiment
    from ordinate.tuning.features import ExtractionResult

EXAMPLES = """examples:
  ordinate init first
  ordinate init study --train essays.csv
  ordinate init study --train essays.csv --test more.csv --label-column grade --scale 1..6
  ordinate init study --train essays.csv --group-column writer --seed 5
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.tuning.experiment.data_columns import DataColumns
    from ordinate.tuning.features.lexical import Lexical

    parser = add_command(
        commands,
        "init",
        "Lay out an experiment folder with labelled texts, split into training and test data, and "
        "with feature sets: TF-IDF of words and characters, and lexical features where "
        "'ordinate[features]' is installed. Without --train, the texts are those that ship with "
        "Ordinate, and the sets TF-IDF alone. A killed run is taken up by the same command; a "
        "folder with anything else in it is refused.",
        EXAMPLES,
    )
    add = parser.add_argument
    add("folder", metavar="DIR", type=StorePath, help="a new or empty folder")
    add(
        "--train",
        metavar="FILE",
        type=InputPath,
        help="labelled texts to learn from: CSV, TSV, JSONL, Parquet or XLSX, also gzipped",
    )
    add(
        "--test",
        metavar="FILE",
        type=InputPath,
        help="labelled texts to test on (default: about a fifth of each level of --train is set "
        "aside; groups stay whole)",
    )
    add_flags(parser, DataColumns)
    add_flags(parser, Lexical)
    add("--scale", help=SCALE_HELP)
    add_map_proposal_option(parser)
    add_flags(parser, IntervalOptions, ("seed",))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Lay out the folder, and say what is in it."""
    from ordinate.tuning.experiment.data_columns import DataColumns
    from ordinate.tuning.experiment.new_experiment import lay_out_experiment

    made: list[ExtractionResult] = []
    notes: list[str] = []
    experiment = lay_out_experiment(
        options.folder,
        options.train,
        options.test,
        columns=DataColumns(**collect_given(options, DataColumns)),
        scale=options.scale,
        seed=getattr(options, "seed", 0),
        extract=lambda experiment: made.extend(_extract_features(experiment, options, notes)),
    )
    print(_describe_folder(options.folder, experiment, made, notes))
    return 0


def _extract_features(
    experiment: "Experiment", options: argparse.Namespace, notes: list[str]
) -> "list[ExtractionResult]":
    from ordinate.cli.progress import show_share
    from ordinate.tuning.features import extract_default_features

    with show_share("making features") as progress:
        return extract_default_features(
            experiment,
            progress,
            lexical=options.train is not None,
            language=getattr(options, "language", None),
            explain=notes.append,
        )


def _describe_folder(
    folder: str,
    experiment: "Experiment",
    made: "list[ExtractionResult]",
    notes: list[str],
) -> str:
    rows = {one.dataset: one.rows for one in made[0].datasets}
    both = (experiment.training, experiment.tests)
    training, test = (sum(rows[stem] for stem in stems) for stems in both)
    sets = join_names(f"{one.name} ({one.datasets[0].features:,} features)" for one in made)
    where = replace_control_characters(folder)
    said = shlex.join(["-e", where])
    lacking = [f"No lexical features, which often help: {note}" for note in notes]
    sentences = (
        f"{where} is laid out: {training} training texts, {test} test texts, feature sets {sets}.",
        *(note for one in made for note in one.notes),
        *(f"{note.rstrip('.')}, then: ordinate features lexical {said}" for note in lacking),
    )
    width = min(find_terminal_width(), PAGE_WIDTH)
    lines = [line for one in sentences for line in wrap_words(one, width)]
    return "\n".join([*lines, f"Next: ordinate check {said}, ordinate tune {said}"])
