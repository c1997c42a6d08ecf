"""`ordinate power`: a pilot in, the number of items that a difference takes out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import open_source
from ordinate.cli.flags import add_flags, collect_given, parse_names
from ordinate.cli.options import (
    add_command,
    add_metric_file_option,
    add_metric_option,
    add_output_options,
    add_system_options,
    collect_columns,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.results.sample_size import SampleSizePlan

EXAMPLES = """examples:
  ordinate power pilot.csv --gold level --systems a,b --metric cem_ord --difference 0.02
  ordinate power pilot.csv --gold level --systems a --metric mae --sizes 500,1000,5000
  ordinate power gold.csv a.csv b.csv --id essay --gold level --predicted answer --difference 0.03
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.results.sample_size import SampleSizeSettings

    parser = add_command(
        commands,
        "power",
        "Plan from a pilot: how many items it takes to see a difference between two systems like "
        "these, and how wide their confidence intervals will be.",
        EXAMPLES,
    )
    add_system_options(parser)
    group = parser.add_argument_group("plan")
    add_metric_option(group)
    add_flags(group, SampleSizeSettings)
    group.add_argument(
        "--sizes", metavar="N,N", help="numbers of items to look at (default: around the pilot's)"
    )
    add_metric_file_option(group)
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plan, and write the report."""
    write_report(options, lambda: _plan_sample_size(options))
    return 0


def _plan_sample_size(options: argparse.Namespace) -> "SampleSizePlan":
    from ordinate.results.sample_size import SampleSizeSettings, power

    given = collect_given(options, SampleSizeSettings)
    if "level" in given:
        given["interval"] = given.pop("level")
    sizes = _parse_sizes(options.sizes)
    with open_source(options, ("predicted",)) as source:
        return power(
            source,
            metric=options.metric,
            scale=options.scale,
            missing=options.missing,
            items=sizes,
            **given,
            **collect_columns(options),
        )


def _parse_sizes(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        return tuple(int(part.replace("_", "")) for part in parse_names("--sizes", text))
    except ValueError:
        raise BadOption(f"--sizes takes integers, such as 500,1000, not {text!r}.") from None
