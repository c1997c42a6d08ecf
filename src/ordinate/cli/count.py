"""`ordinate count`: files in, a shard out, which `ordinate merge` reads."""

import argparse
import sys
from typing import Any

from ordinate.cli.file_options import LABEL_COLUMNS, add_column_options, open_rows
from ordinate.cli.flags import collect_given
from ordinate.cli.options import (
    add_command,
    add_file_option,
    add_file_output_options,
    add_label_options,
    choose_missing_policy,
    list_inputs,
    parse_scale,
    read_renamed_labels,
    read_systems,
)
from ordinate.errors import BadOption

EXAMPLES = """examples:
  ordinate count monday.parquet --gold level --predicted guess -o shard-1.json
  ordinate count tuesday.parquet --gold level --predicted guess -o shard-2.json
  ordinate merge shard-1.json shard-2.json
  ordinate count part-7.csv --gold level --systems model_a,model_b --groups writer -o shard-7.json

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.readers.columns import ItemColumns

    parser = add_command(
        commands,
        "count",
        "Count items into a shard: a small file from which `ordinate merge` reports, alone or "
        "with shards that were counted on other machines and days. Predictions of one system, "
        "or of several with --systems.",
        EXAMPLES,
    )
    group = parser.add_argument_group("input")
    add_file_option(group, "; several files, patterns, or - for standard input", nargs="*")
    names, without = (*LABEL_COLUMNS, "systems"), ("probabilities",)
    apart = add_column_options(parser, group, ItemColumns, names, without=without, databases=True)
    add_label_options(group, apart)
    add_file_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Count, and write the shard."""
    from ordinate.cli.output import check_output_paths, replace_atomically
    from ordinate.results.shards import write_shard

    check_output_paths(list_inputs(options), [options.output])
    with replace_atomically(options.output, force=options.force) as path:
        if path is None:
            raise BadOption("A shard is a file: name it with -o shard.json.")
        count = read_systems if hasattr(options, "systems") else _count_labels
        items = write_shard(count(options), path)
    sys.stdout.write(f"{options.output}: {items:,} items.\n")
    return 0


def _count_labels(options: argparse.Namespace) -> Any:
    from ordinate.cli.progress import watch_files
    from ordinate.readers.columns import ItemColumns
    from ordinate.readers.confusion import count_files, count_table

    given = collect_given(options, ItemColumns)
    columns = ItemColumns(**given, renamed=read_renamed_labels(options))
    scale = parse_scale(options)
    missing = choose_missing_policy(options)
    with open_rows(options) as table:
        if table is not None:
            return count_table(table, columns.arguments, scale, missing, columns.renamed)
        return count_files(options.files, columns, scale, missing, watch=watch_files)
