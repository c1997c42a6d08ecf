"""The model card: what the report of a search, as a file, says to those who are to use the winner.

Its parts follow Mitchell et al., Model Cards (FAccT 2019). As Markdown it begins with the front
matter of the Hugging Face hub, where it can stand as the README of the model.
"""

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ordinate.errors import replace_control_characters
from ordinate.render import Block
from ordinate.tuning.search.tuning_text import describe_bias

if TYPE_CHECKING:
    from ordinate.tuning.search.tuning_result import HeldOutResult, TuningResult

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
