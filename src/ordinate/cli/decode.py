"""`ordinate decode`: predicted probabilities in, the levels that a metric rewards out."""

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import add_column_options
from ordinate.cli.flags import InputPath, add_flags, collect_given, parse_names
from ordinate.cli.options import (
    SCALE_HELP,
    IntervalOptions,
    add_command,
    add_metric_file_option,
    add_metric_option,
    add_output_options,
    list_inputs,
    parse_comparison_settings,
    parse_scale,
    show_report,
)
from ordinate.errors import BadOption
from ordinate.render import FORMATS_BY_SUFFIX

if TYPE_CHECKING:
    from ordinate.metrics import Metric
    from ordinate.postprocess.decoder import Decoder
    from ordinate.results.comparison import Comparison
    from ordinate.results.comparison_settings import ComparisonSettings
    from ordinate.results.decoding import Decoding
    from ordinate.results.probability_rows import ProbabilityRows

EXAMPLES = """examples:
  ordinate decode test.csv --probabilities p_ --fit oof.csv --gold level --metric quadratic_kappa \\
    -o levels.csv
  ordinate decode oof.csv --probabilities p_A1,p_A2,p_B1,p_B2,p_C1,p_C2 --gold level \\
    --metric cem_ord
  ordinate decode test.parquet --probabilities p_ --metric mae --scale 1..5 --id essay -o levels.csv
  ordinate decode test.csv --probabilities p_ --fit oof.csv --gold level --metric macro_mae \\
    --class-weights balanced
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.readers.columns import ItemColumns

    parser = add_command(
        commands,
        "decode",
        "Turn predicted probabilities into levels, as a metric rewards them. Decoding is fitted on "
        "rows with gold levels, whose probabilities should be out of fold. The levels go to FILE, "
        "or to standard output, with the ids or the numbers of the rows; the report shows argmax "
        "beside the decoded levels, because what one metric gains another may lose.",
        EXAMPLES,
    )
    group = parser.add_argument_group("input")
    add = group.add_argument
    add(
        "file",
        metavar="FILE",
        type=InputPath,
        help="CSV, TSV, JSONL, Parquet or XLSX, also gzipped",
    )
    names = ("gold", "probabilities", "id", "renormalize")
    add_column_options(parser, group, ItemColumns, names)
    add("--scale", help=SCALE_HELP)
    add(
        "--fit",
        metavar="FILE",
        type=InputPath,
        help="file to fit on (default: the rows of FILE with gold)",
    )
    add(
        "--class-weights",
        metavar="W",
        help="weights that the model was fitted with, to be undone: balanced, one for each level "
        "in the order of the scale (2,1,1), or by level (low=2,mid=1,high=1)",
    )
    group = parser.add_argument_group("metric and confidence intervals")
    add_metric_option(group)
    add_metric_file_option(group)
    add_flags(group, IntervalOptions)
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decode, write the levels, and report beside argmax."""
    from ordinate.cli.output import check_output_paths, replace_atomically, write_csv
    from ordinate.render.records import render_csv

    _refuse_report_suffix(options.output)
    check_output_paths(list_inputs(options), [options.output])
    with replace_atomically(options.output, force=options.force) as out:
        result, ids = _decode_files(options)
        levels = render_csv(_build_level_rows(result, ids, getattr(options, "id", None)))
        if out is None:
            write_csv(levels, sys.stdout)
            show_report(options, result, sys.stderr)
        else:
            out.write_bytes(levels.encode())
            show_report(options, result, sys.stdout)
    return 0


def _refuse_report_suffix(output: str | None) -> None:
    """Refuse the name of a report for the file of the levels: whoever opens it goes by that."""
    from pathlib import Path

    suffix = "" if output is None else Path(output).suffix.lower()
    if suffix not in {"", ".csv"}:
        report = FORMATS_BY_SUFFIX.get(suffix)
        way = f"-o levels.csv --format {report} > report{suffix}" if report else "-o levels.csv"
        raise BadOption(
            f"-o is for the levels, which are CSV, and not for a report (*{suffix}). The report "
            f"goes to standard output: {way}"
        )


def _decode_files(options: argparse.Namespace) -> "tuple[Decoding, list[Any]]":
    from ordinate.cli.progress import watch_files
    from ordinate.metrics import find_metric
    from ordinate.readers.columns import ItemColumns
    from ordinate.results.decoding import Decoding
    from ordinate.results.probability_rows import read_probability_rows

    metric, settings = find_metric(options.metric), parse_comparison_settings(options)
    weights = _parse_class_weights(options.class_weights)
    given = collect_given(options, ItemColumns)
    if "probabilities" not in given:
        raise BadOption("Name the columns of the probabilities, or their prefix: --probabilities.")
    columns = ItemColumns(**given | {"probabilities": tuple(given["probabilities"])})
    scale = parse_scale(options)
    watch = partial(watch_files, roles=("gold",))
    read = read_probability_rows(options.file, options.fit, columns, scale, watch=watch)
    rows, fitted = read.rows, read.fit
    decoder = _fit_decoder(metric, weights, fitted)
    scored = rows if rows.known.any() else fitted
    result = Decoding(
        metric.expression,
        decoder,
        rows.probabilities.argmax(axis=1),
        decoder.predict_positions(rows.probabilities),
        _compare_with_argmax(scored, decoder, metric, settings) if scored.known.any() else None,
        rows.name,
        fitted.name if decoder.uses_gold_ else "",
        scored.name,
        (*read.notes, *_collect_notes(decoder, rows, fitted, scored)),
    )
    return result, rows.ids


def _fit_decoder(metric: "Metric", weights: Any, rows: "ProbabilityRows") -> "Decoder":
    from ordinate.postprocess.decoder import Decoder, make_label_array

    in_order = rows.scale.labels  # of the columns, as they were read
    decoder = Decoder(metric, rows.scale, class_weights=weights, columns=in_order)
    known = rows.known
    if known.any():
        return decoder.fit(
            rows.probabilities[known], make_label_array(rows.scale)[rows.gold[known]]
        )
    try:
        return decoder.fit()
    except BadOption as problem:
        raise BadOption(
            f"{problem} {rows.name} has no gold levels: name their column with --gold, or a file "
            "that has them with --fit."
        ) from None


def _collect_notes(
    decoder: "Decoder",
    rows: "ProbabilityRows",
    fitted: "ProbabilityRows",
    scored: "ProbabilityRows",
) -> list[str]:
    notes = list(decoder.notes_)
    if fitted is not rows and (shift := decoder.describe_shift(rows.probabilities)) is not None:
        notes.append(shift)
    if decoder.uses_gold_ and scored is fitted:
        notes.append(
            "Decoding was fitted on the rows that it is scored on here, an optimistic bias, and "
            "the more so if the model was trained on them. Out-of-fold probabilities belong "
            "there; or fit on another file with --fit."
        )
    return notes


def _compare_with_argmax(
    rows: "ProbabilityRows", decoder: "Decoder", metric: "Metric", settings: "ComparisonSettings"
) -> "Comparison":
    import numpy as np

    from ordinate.cli.progress import show_share
    from ordinate.results import DEFAULT_METRICS, select_metrics
    from ordinate.results.comparison import Comparison
    from ordinate.results.comparison_settings import resolve_settings
    from ordinate.results.decoding import ARGMAX, DECODED
    from ordinate.results.leaderboard import PanelLeaderboardBuilder
    from ordinate.summaries import Panel
    from ordinate.summaries.panel import sum_single_items

    p = rows.probabilities[rows.known]
    columns = [rows.gold[rows.known], p.argmax(axis=1), decoder.predict_positions(p)]
    levels = np.stack(columns, axis=1).astype(np.int16)
    items = sum_single_items(len(levels), None)
    panel = Panel.from_rows(decoder.scale_, (ARGMAX, DECODED), levels, items)
    settings = resolve_settings(panel.systems, settings)
    others = [
        m for m in select_metrics(",".join(DEFAULT_METRICS)) if m.expression != metric.expression
    ]
    with show_share("comparing") as progress:
        boards = PanelLeaderboardBuilder(panel, [metric, *others], settings, progress).all()
    return Comparison(panel, boards, (), settings)


def _parse_class_weights(text: str | None) -> Any:
    """Return 'balanced', numbers in the order of the scale, or numbers by level."""
    if text is None or text == "balanced":
        return text
    parts = parse_names("--class-weights", text)
    try:
        if any("=" in part for part in parts):
            pairs = [part.rpartition("=") for part in parts]
            return {level: float(weight) for level, _, weight in pairs}
        return [float(part) for part in parts]
    except ValueError:
        raise BadOption(
            f"--class-weights takes balanced, 2,1,1 or low=2,mid=1,high=1, not {text!r}."
        ) from None


def _build_level_rows(
    result: "Decoding", ids: list[Any], named: str | None
) -> list[dict[str, Any]]:
    from ordinate.readers.item_query import make_names_distinct
    from ordinate.results.decoding import ARGMAX, DECODED

    labels = result.scale.labels
    by, *header = make_names_distinct(named or "row", ARGMAX, DECODED)
    return [
        {by: one, header[0]: labels[first], header[1]: labels[second]}
        for one, first, second in zip(ids, result.argmax, result.decoded, strict=True)
    ]
