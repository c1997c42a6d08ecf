"""Options of commands that work in an experiment folder."""

import argparse
from typing import TYPE_CHECKING

from ordinate.cli.options import InputPath, StorePath, add_text_file_options, parse_delimiter

if TYPE_CHECKING:
    from ordinate.experiment.folder import Experiment


def add_experiment_options(
    parser: argparse.ArgumentParser, *, required: bool = True, labels: bool = True
) -> None:
    """Add the options that say where an experiment lies and what its columns are.

    A command that has --scale, --delimiter and --encoding already passes `labels=False`.
    """
    add = parser.add_argument
    add(
        "-e",
        "--experiment",
        metavar="DIR",
        type=StorePath,
        required=required,
        help="folder of the experiment, as `ordinate init` lays it out",
    )
    add(
        "--features-base-dir",
        metavar="DIR",
        type=InputPath,
        help="folder of the feature sets (default: features in the experiment)",
    )
    add("--label-column", metavar="COL", help="column of the levels (default: by its name)")
    add("--text-column", metavar="COL", help="column of the texts (default: by its name)")
    add("--id-column", metavar="COL", help="column of the ids (default: by its name)")
    add("--group-column", metavar="COL", help="column of items that belong together (writers, …)")
    if labels:
        add(
            "--scale",
            help="a preset (cefr, likert5, likert7, stars5, sentiment3, sentiment5), integers "
            "(1..6), or labels from lowest to highest (low,mid,high); default: the preset that "
            "fits the training data",
        )
        add_text_file_options(parser)


def open_experiment(options: argparse.Namespace) -> "Experiment":
    """Return the experiment that the options name."""
    from ordinate.experiment.dataset import DataColumns
    from ordinate.experiment.folder import Experiment

    columns = DataColumns(
        options.label_column,
        options.text_column,
        options.id_column,
        options.group_column,
        parse_delimiter(options.delimiter),
        options.encoding,
    )
    return Experiment.open(
        options.experiment, features_dir=options.features_base_dir, columns=columns
    )
