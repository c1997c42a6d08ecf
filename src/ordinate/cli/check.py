"""`ordinate check`: an experiment folder in, what is missing or odd out."""

import argparse
from typing import Any

from ordinate.cli.options import (
    add_command,
    add_experiment_options,
    add_output_options,
    open_experiment,
    write_report,
)

EXAMPLES = """examples:
  ordinate check -e study
  ordinate check -e study --label-column grade --scale 1..6
  ordinate check -e study --features-base-dir study/features --group-column writer
  ordinate check -e study --format json -o found.json

an experiment folder holds:
  ml-training-data/*.csv             levels, and texts and ids where there are some
  ml-test-data/*.csv                 the same; levels may be missing
  features/SET/DATA/                 features of the file DATA.csv, in one of these forms:
    *.parquet                          a column of ids, the others are features
    *.npz with feature_names.csv       scipy.sparse.save_npz; ids.csv where there are ids
    *.csv with feature_names.csv       features_dense.csv, with a header line
  models/ predictions/ results/      what Ordinate makes

exit codes: 0 nothing is wrong (there may be warnings), 1 internal error, 2 errors were found
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "check",
        "Read an experiment folder and say what is missing or odd, and where: columns, "
        "labels off the scale, rare levels, empty texts, test items that are in the training data, "
        "feature rows that do not match, saved models that were changed. Nothing is written.",
        EXAMPLES,
        exit_codes="",  # its own stand below the examples
    )
    add_experiment_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check, report, and fail where there is an error."""
    from ordinate.tuning.experiment.check import check_experiment

    found = write_report(options, lambda: check_experiment(open_experiment(options), options.scale))
    return 2 if found.errors else 0
