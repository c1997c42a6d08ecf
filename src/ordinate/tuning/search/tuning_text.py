"""The report of a tuning run: the verdict, the tables behind it, and how they came about."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ordinate.errors import replace_control_characters
from ordinate.inference.estimates import Estimate
from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell, join_bounds
from ordinate.render.estimates import (
    format_estimate_interval,
    format_headline,
    format_interval_head,
    format_number,
    join_names,
)

if TYPE_CHECKING:
    from ordinate.tuning.search.tuning_result import Finalist, HeldOutResult, TuningResult

CI_HEAD = format_interval_head(0.95)
OPTIMISM_NOTE = (
    "The best of many is optimistically biased: each value was selected among others on the same "
    "items, so expect less of new ones"
)


def describe_tuning(result: "TuningResult") -> Document:
    """Return the report: who won, by how much, what was tried, and what to keep in mind."""
    report = result.report
    sound = any(one.evaluation and not report.count_seen_items(result, one) for one in result.tests)
    blocks: list[str | Grid] = [
        _build_search_grid(result),
        *report.build_test_blocks(result),
        *_build_nested_blocks(result),
        *_build_screening_blocks(result),
    ]
    notes = [
        *result.notes,
        *(f"{one.name}: {note}" for one in result.tests for note in one.notes),
        *report.describe_source(result),
        f"{OPTIMISM_NOTE}{', and go by the test' if sound else ''}.",
        *report.describe_methods(result),
        *explain_missing_intervals(result.summarize()),
    ]
    return Document(
        report.describe_title(result),
        tuple(blocks),
        describe_winner(result),
        tuple(notes),
        (_build_finalist_grid(result),),
    )


def describe_winner(result: "TuningResult") -> str:
    """Return who won, by cross-validation and on the tests, and what it is not better than."""
    winner, report = result.winner, result.report
    value = _format_value(result, winner.evaluation, report.metric)
    weakness = report.describe_weakness(winner.evaluation)
    said = f"The best model is {winner.title}: {value} {report.basis}"
    sentences = [
        f"{', '.join(filter(None, (said, weakness)))}.",
        _describe_timeout(result),
        _describe_nested(result),
        *(_describe_test(result, one) for one in result.tests),
    ]
    return " ".join(filter(None, sentences))


def _describe_timeout(result: "TuningResult") -> str:
    """Say how many trials the timeout left, and which model types without any."""
    requested = sum(study.requested for study in result.studies)
    made = sum(len(study.trials) for study in result.studies)
    if made == requested:
        return ""
    tried = {study.model_type for study in result.studies if study.trials}
    rest = [study.model_type for study in result.studies if study.model_type not in tried]
    verb = "was" if len(set(rest)) == 1 else "were"
    untried = f": {join_names(list(dict.fromkeys(rest)))} {verb} not tried" if rest else ""
    return f"The timeout ended the search after {made:,} of {requested:,} trials{untried}."


def _describe_nested(result: "TuningResult") -> str:
    if result.nested is None:
        return ""
    value = _format_value(result, result.nested.evaluation)
    said = f"The nested estimate, without the bias of selecting it, is {value}"
    weakness = result.report.describe_weakness(result.nested.evaluation)
    return f"{', '.join(filter(None, (said, weakness)))}."


def _describe_test(result: "TuningResult", test: "HeldOutResult") -> str:
    """Return what a test says: beside cross-validation only where it is a test, and has a range."""
    if test.evaluation is None:
        return f"Nothing was tested on {test.name}."
    report = result.report
    estimate = report.get_estimate(test.evaluation)
    value = _format_value(result, test.evaluation)
    if seen := report.count_seen_items(result, test):
        said = f"On {test.name} it has {value}, which is {describe_bias(seen, test.n)}."
        weakness = report.describe_weakness(test.evaluation)
        return f"{said} Even so it is {weakness}." if weakness else said
    said = f"On {test.name}, by which nothing was selected, it has {value}"
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{said}, which has no confidence interval."
    parts = (_describe_optimism(result, test.optimism), report.describe_weakness(test.evaluation))
    return f"{': '.join(filter(None, (said, ', '.join(filter(None, parts)))))}."


def describe_bias(seen: int, n: int) -> str:
    """Return why a test is optimistically biased: of so many items some were learned from."""
    share = "all" if seen == n else f"{seen:,} of"
    return f"optimistically biased: it has learned from {share} its {n:,} items"


def _describe_optimism(result: "TuningResult", optimism: float) -> str:
    if math.isnan(optimism):
        return ""
    if optimism == 0:
        return f"the same as {result.report.basis}"
    side = "worse" if optimism > 0 else "better"
    return f"{_add_unit(result, abs(optimism))} {side} than {result.report.basis}"


def _format_value(result: "TuningResult", evaluation: Any, name: str = "") -> str:
    """Return the value of the metric with its interval, behind a steadier one where it needs it."""
    report = result.report
    named = [(name, report.get_estimate(evaluation))]
    if steadier := report.get_steadier_estimate(evaluation):
        named = [steadier, (report.metric, named[0][1])]
    return " and ".join(
        " ".join(filter(None, (name, _add_interval(result, one)))) for name, one in named
    )


def _add_interval(result: "TuningResult", estimate: Estimate) -> str:
    interval = join_bounds(estimate.low, estimate.high, result.report.format_value)
    return format_headline(_add_unit(result, estimate.value), interval, 0.95)


def _add_unit(result: "TuningResult", value: float) -> str:
    return " ".join(filter(None, (result.report.format_value(value), result.report.unit)))


# --- tables --------------------------------------------------------------------------------------


def _build_search_grid(result: "TuningResult") -> Grid:
    report = result.report
    header = ("model", *report.value_header, "trials", "pruned", "failed")
    rows: list[tuple[Cell, ...]] = []
    for study in result.studies:
        complete, *others = study.counts.values()
        cells = report.build_value_cells(study.best.evaluation if study.best else None)
        ended = (count or None for count in others)
        rows.append((study.title, *cells, f"{complete} of {study.requested}", *ended))
    if result.ensemble:
        cells = report.build_value_cells(result.ensemble.evaluation)
        rows.append((result.ensemble.model_type, *cells, None, None, None))
    title = f"Search: the best trial of each study, {report.basis}, with {CI_HEAD}"
    optional = ("failed", "pruned", "chance", "best constant")
    return Grid(title, header, tuple(rows), optional=optional).drop_empty_columns()


def _build_screening_blocks(result: "TuningResult") -> list[str | Grid]:
    if not result.screened:
        return []
    header = ("set", "features", *result.report.value_header, "searched")
    rows = tuple(
        (
            one.set,
            one.features,
            *result.report.build_value_cells(one.evaluation),
            "yes" if one.shortlisted else "no",
        )
        for one in result.screened
    )
    title = f"Screening: each feature set with {result.screening_model}"
    lines = [
        f"{one.set} failed: {one.failed}"
        if one.failed and one.failed != one.discard_reason
        else f"{one.set} is not searched: {one.discard_reason}."
        for one in result.screened
        if one.discard_reason
    ]
    grid = Grid(title, header, rows, optional=("chance", "best constant", "features"))
    return [grid.drop_empty_columns(), *([" ".join(lines)] if lines else [])]


def _build_finalist_grid(result: "TuningResult") -> Grid:
    """Return the full names of saved models, and their hyperparameters."""
    titles = {one.name: one.title for one in result.finalists}
    rows = tuple(
        (one.title, one.name, format_hyperparameters(_get_hyperparameters(one, titles)))
        for one in result.finalists
    )
    header = ("model", "saved as", "hyperparameters")
    return Grid("Finalists: their names and hyperparameters", header, rows, left=3)


def _get_hyperparameters(one: "Finalist", titles: Mapping[str, str]) -> Mapping[str, Any]:
    if not one.members:
        return one.params
    members = [titles[name] for name in one.members]
    if one.weights:
        return dict(zip(members, one.weights, strict=True))
    return {"members": join_names(members)}


def format_hyperparameters(params: Mapping[str, Any]) -> str:
    """Return hyperparameters in one line."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _build_nested_blocks(result: "TuningResult") -> list[str | Grid]:
    if result.nested is None:
        return []
    report = result.report
    rows = (
        ("cross-validation", *report.build_value_cells(result.winner.evaluation)),
        ("nested", *report.build_value_cells(result.nested.evaluation)),
    )
    title = f"Nested cross-validation: the whole selection in each outer fold, with {CI_HEAD}"
    counts = Counter(result.nested.selected)
    selected = ", ".join(f"{name} ({count} of {counts.total()})" for name, count in counts.items())
    grid = Grid(title, ("estimate", *report.value_header), rows)
    return [grid.drop_empty_columns(), f"The outer folds selected {selected}."]


# --- summaries from plain values -----------------------------------------------------------------


def build_summary_grid(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Return metrics with their intervals, from plain values."""
    found = [(row, parse_estimate(row)) for row in rows]
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (row["title"], format_number(one.value), format_estimate_interval(one), row["unit"])
        for row, one in found
    )
    return Grid("Summary", ("metric", "value", CI_HEAD, "unit"), cells).drop_empty_columns()


def explain_missing_intervals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say why metrics have no interval, or one that is open, where that is so."""
    found = [(row["title"], parse_estimate(row)) for row in rows]
    return [
        f"The confidence interval of {title} is {one.note}."
        if one.is_open
        else f"No confidence interval of {title}: {one.note}."
        for title, one in found
        if one.note and (one.is_open or format_estimate_interval(one) is None)
    ]


def parse_estimate(row: Mapping[str, Any]) -> Estimate:
    """Return a value with its confidence interval, from plain values."""
    value = math.nan if row["value"] is None else row["value"]
    open_ends = (math.nan, math.nan) if row["method"] is None else (-math.inf, math.inf)
    low, high = (
        end if row[key] is None else row[key]
        for key, end in zip(("low", "high"), open_ends, strict=True)
    )
    return Estimate(value, low, high, row["method"], note=row["note"])


# --- the model card ------------------------------------------------------------------------------

PLACEHOLDER = (
    "Intended use: [TO FILL IN] Who is to use this model, for what, and for what not? Whom could "
    "its errors harm?"
)
WEIGHT_NOTE = (
    "The search weighted its metric by class weights, which the evaluation on the tests does not."
)


def describe_model_card(result: "TuningResult") -> list[Block]:
    """Return what users need beside the search: use, all metrics of the tests, and origins."""
    name, task = result.winner.name, result.report.task
    command = task.replace("tune", "predict").replace("_", "-")
    blocks: list[Block] = [PLACEHOLDER]
    for test in result.tests:
        if (found := result.evaluations.get(test.name)) is not None:
            document = found.document()
            verdict = f"On {test.name}, {_describe_selection(result, test)}: {document.verdict}"
            notes = " ".join(document.list_notes())
            blocks += [replace(document, verdict=verdict), notes]
    if getattr(result.settings, "weight_metric", False) and result.evaluations:
        blocks.append(WEIGHT_NOTE)
    origin = (
        f"Predict with: ordinate {command} --model {name}. models/{name}/manifest.json has the "
        "command, the versions of libraries, the seed, and the SHA-256 of data and files."
    )
    return [*blocks, origin]


def _describe_selection(result: "TuningResult", test: "HeldOutResult") -> str:
    seen = result.report.count_seen_items(result, test)
    return describe_bias(seen, test.n) if seen else "by which nothing was selected"


def format_front_matter(result: "TuningResult") -> str:
    """Return the facts that the Hugging Face hub reads, as YAML; its values are written as JSON."""
    report = result.report
    facts: dict[str, Any] = {
        "library_name": "ordinate",
        "pipeline_tag": report.pipeline_tag,
        "tags": ["ordinate", result.winner.model_type],
        "metrics": [report.metric],
        "model-index": [
            {
                "name": result.winner.title,
                "results": [
                    {
                        "task": {"type": report.pipeline_tag},
                        "dataset": {"name": name, "type": name},
                        "metrics": _list_metrics(evaluation.metrics),
                    }
                    for name, evaluation in result.evaluations.items()
                ],
            }
        ],
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(map(replace_control_characters, lines))


def _list_metrics(metrics: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": name, "value": float(one.value)}
        for name, one in metrics.items()
        if math.isfinite(one.value)
    ]
