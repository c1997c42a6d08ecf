"""`ordinate card`: one page on a tuned model, for those who are to use it."""

import argparse
from pathlib import Path
from typing import Any

from ordinate.cli.flags import InputPath
from ordinate.cli.options import (
    add_command,
    add_folder_option,
    add_metric_file_option,
    add_output_options,
    write_report,
)
from ordinate.errors import BadInput, shorten

EXAMPLES = """examples:
  ordinate card -e study -o card.html
  ordinate card -e study --intended-use use.txt -o card.md
  ordinate card -e study --by writer
  ordinate card -e found --by substance --table densities.csv

The card is of the winner of the latest run of `ordinate tune` or `ordinate tune-regression`. Its
numbers are those of the test data, as the run predicted them.

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "card",
        "Write the model card of a tuned model: intended use, data, evaluation on the test data "
        "with baselines, calibration and subgroups, how the model was chosen, and hashes.",
        EXAMPLES,
    )
    add_folder_option(parser)
    add = parser.add_argument
    add("--by", metavar="COL", help="column of subgroups, each evaluated on its own")
    add(
        "--table",
        metavar="TABLE",
        type=InputPath,
        help="of a regression: the table that was learned from (default: where it was)",
    )
    add(
        "--intended-use",
        metavar="FILE",
        type=InputPath,
        help="text file that says what the model is for (default: a placeholder)",
    )
    add_metric_file_option(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the card, and write it."""
    write_report(options, lambda: _make_card(options))
    return 0


def _make_card(options: argparse.Namespace) -> Any:
    from ordinate.tuning.search.model_card import make_model_card

    use = None if options.intended_use is None else _read_text(options.intended_use)
    return make_model_card(options.experiment, by=options.by, table=options.table, intended_use=use)


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no UTF-8 text"
        raise BadInput(f"{shorten(path)} cannot be read: {reason}.") from None
