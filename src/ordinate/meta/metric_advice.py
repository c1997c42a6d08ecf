"""Which metric to report: two or three of the catalogue, why, and the methods section."""

import csv
import io
import re
import shlex
from dataclasses import dataclass
from typing import Annotated

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.interval_methods import choose_interval_method
from ordinate.meta.advice_rules import (
    METRIC_RULES,
    NAMES,
    PROPERTY_RULES,
    QUESTIONS,
    SCALE_RULES,
    Answers,
    LevelMeaning,
    MetricRule,
    PropertyRule,
    ReaderKnowledge,
    TieTreatment,
    describe_question,
    fits_answers,
    format_answer,
    list_open_questions,
)
from ordinate.meta.properties import PROPERTIES
from ordinate.meta.property_verdicts import NO_PROOF
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.known_properties import (
    VERDICT_NAMES,
    PropertyRecord,
    find_properties,
    format_counterexample,
)
from ordinate.metrics.references import REFERENCES
from ordinate.render import Document, Grid
from ordinate.render.estimates import join_names
from ordinate.results.arguments import ScaleDeclaration
from ordinate.results.base import BETTER_VALUES, Record, Result
from ordinate.results.interval_methods_text import METHOD_NAMES
from ordinate.results.provenance import VERSION
from ordinate.scale import Scale
from ordinate.settings import Setting, format_flag, list_settings

ROLE_NAMES = {
    "first": "report it first",
    "reader": "readers know it",
    "ranking": "the order of the items",
}
UNNAMED_SCALE = "[your levels, lowest to highest]"
OTHER_INTERVALS = (
    "Items in clusters, fractional weights and few items have other interval methods: the report "
    "of `ordinate evaluate` says which it used."
)
POSITIONS_HINT = (
    "Declare where the levels stand: Scale(labels, positions=[…]). Without positions every step is "
    "of the same size."
)


def advise(
    levels: Annotated[LevelMeaning, Setting(describe_question("levels"))],
    *,
    equal_distances: Annotated[bool | None, Setting(describe_question("equal_distances"))] = None,
    rare_levels: Annotated[bool, Setting(describe_question("rare_levels"))],
    ties: Annotated[TieTreatment | None, Setting(describe_question("ties"))] = None,
    reader: Annotated[ReaderKnowledge, Setting(describe_question("reader"))],
    scale: ScaleDeclaration = None,
) -> "MetricAdvice":
    """Advise which metrics to report, by what the levels mean and what readers know.

    `equal_distances` and `ties` are asked of levels with an order; the scale only stands in the
    sentence for the methods section.

    >>> found = advise("order", equal_distances=False, rare_levels=True, ties="not_ranked",
    ...                reader="shares", scale="cefr")
    >>> [metric.name for metric in found.metrics]
    ['cem_ord', 'accuracy_within']
    """
    answers = {
        "levels": levels,
        "equal_distances": equal_distances,
        "rare_levels": rare_levels,
        "ties": ties,
        "reader": reader,
    }
    _check_answers(answers)
    declared = None if scale is None else Scale.of(scale)
    if declared is not None and equal_distances and not declared.equal_steps:
        raise BadOption(
            "The positions of the scale are not one step apart, so the distances between its "
            "levels are not equal. Pass equal_distances=False."
        )
    return MetricAdvice(answers, declared)


def _check_answers(answers: Answers) -> None:
    """Refuse answers that are none, and levels with an order of which too little is said."""
    for one in list_settings(advise):
        one.check(answers[one.name])
    if lacking := list_open_questions(answers):
        flags = join_names(format_flag(question.name) for question in lacking)
        raise BadOption(f"The advice needs {flags} as well.")


@dataclass(frozen=True, repr=False, eq=False)
class MetricAdvice(Result):
    """The metrics to report by the answers, what they have and lack, and the methods section."""

    answers: Answers
    scale: Scale | None = None

    @property
    def rules(self) -> tuple[MetricRule, ...]:
        """The rows of the table that the answers select, one for each role."""
        selected: dict[str, MetricRule] = {}
        for rule in METRIC_RULES:
            if fits_answers(rule.when, self.answers):
                selected.setdefault(rule.role, rule)
        return tuple(selected.values())

    @property
    def metrics(self) -> list[Metric]:
        """The metrics to report, the first one first."""
        return [find_metric(rule.metric) for rule in self.rules]

    @property
    def properties(self) -> tuple[PropertyRule, ...]:
        """The formal properties that the answers ask for, with the reasons."""
        return tuple(rule for rule in PROPERTY_RULES if fits_answers(rule.when, self.answers))

    @property
    def methods_section(self) -> str:
        """The sentence for the methods section."""
        level = ConfidenceIntervals().level
        return (
            f"We report {join_names(map(_describe_metric, self.metrics))} on the scale "
            f"{self._describe_scale()}, with {100 * level:g} % confidence intervals by "
            f"{_describe_intervals(self.metrics)}, computed with Ordinate {VERSION}."
        )

    @property
    def command(self) -> str:
        """The command that gives the same advice without a question."""
        words = ["ordinate", "advise"]
        for one in list_settings(advise):
            answer = self.answers[one.name]
            if one.value_type is bool and answer is not None:
                words.append(one.flag if answer else one.flag.replace("--", "--no-", 1))
            elif answer is not None:
                words += [one.flag, format_answer(answer)]
        if self.scale is not None and self.scale.equal_steps:
            words += ["--scale", self.scale.preset or _join_labels(self.scale)]
        return shlex.join(words)

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "schema": 1,
            "answers": dict(self.answers),
            "scale": None if self.scale is None else list(self.scale.names),
            "metrics": self.rows(),
            "properties": self._list_property_records(),
            "methods_section": self.methods_section,
            "references": self._list_references(),
            "command": self.command,
        }

    def rows(self) -> list[Record]:
        """Return one flat record for each metric."""
        return [
            {
                "metric": metric.name,
                "role": rule.role,
                "reason": rule.reason,
                "title": metric.title,
                "direction": metric.direction,
                "interval_method": choose_interval_method(metric),
                "reference": REFERENCES.get(metric.reference, ""),
            }
            for rule, metric in zip(self.rules, self.metrics, strict=True)
        ]

    def list_tables(self) -> dict[str, list[Record]]:
        """Return the metrics, and the verdicts on their properties."""
        return {self.table_name: self.rows(), "properties": self._list_property_records()}

    def document(self) -> Document:
        """Return the metrics with the reasons, the methods section, and the counterexamples."""
        return Document(
            "Which metric should I report?",
            (
                self._build_metric_grid(),
                f"For the methods section: {self.methods_section}",
                *self._list_references(),
                self._build_need_grid(),
                self._build_property_grid(),
                self._build_answer_grid(),
            ),
            verdict=self._state_verdict(),
            notes=self._list_notes(),
        )

    def _state_verdict(self) -> str:
        first, *others = (metric.name for metric in self.metrics)
        cells = find_properties(find_metric(first))
        kept = [
            rule.property_name
            for rule in self.properties
            if cells[rule.property_name]["verdict"] == "not_violated"
        ]
        named = join_names(map(_format_name, kept)) if kept else ""
        has = f" No small case violates what your answers ask for: {named}." if kept else ""
        return f"Report {first}, and beside it {join_names(others)}.{has}"

    def _build_metric_grid(self) -> Grid:
        rows = tuple(
            (metric.name, BETTER_VALUES[metric.direction], ROLE_NAMES[rule.role], rule.reason)
            for rule, metric in zip(self.rules, self.metrics, strict=True)
        )
        return Grid("Metrics", ("metric", "better", "for", "why"), rows, left=4)

    def _build_need_grid(self) -> Grid:
        rows = tuple((_format_name(rule.property_name), rule.reason) for rule in self.properties)
        return Grid("What your answers ask for", ("property", "why"), rows, left=2)

    def _build_property_grid(self) -> Grid:
        header = ("metric", "property", "verdict", "counterexample")
        rows = tuple(
            (
                row["metric"],
                _format_name(row["property"]),
                row["verdict"],
                row["counterexample"] or "",
            )
            for row in self._list_property_records()
        )
        return Grid("What the metrics have and lack", header, rows, left=4)

    def _build_answer_grid(self) -> Grid:
        rows = tuple(
            (question.text, format_answer(answer), question.meanings[answer])
            for name, question in QUESTIONS.items()
            if (answer := self.answers[name]) is not None
        )
        return Grid("Your answers", ("question", "answer", "meaning"), rows, left=3)

    def _list_property_records(self) -> list[Record]:
        """Return what is on file about each metric and property that the answers ask for."""
        return [
            {"metric": metric.name, "property": rule.property_name} | record
            for metric in self.metrics
            for rule in self.properties
            for record in _list_verdicts(find_properties(metric)[rule.property_name])
        ]

    def _list_references(self) -> list[str]:
        keys = dict.fromkeys(metric.reference for metric in self.metrics if metric.reference)
        return [REFERENCES[key] for key in keys]

    def _list_notes(self) -> tuple[str, ...]:
        laws = (PROPERTIES[rule.property_name] for rule in self.properties)
        names = ",".join(metric.name for metric in self.metrics)
        return (
            NO_PROOF,
            *(f"{_format_name(law.name)}: {law.statement}" for law in laws),
            *([POSITIONS_HINT] if self._lacks_positions() else []),
            *(["Names have neither distances nor ties."] if self._says_too_much() else []),
            OTHER_INTERVALS,
            f"`ordinate evaluate FILE --metrics {names}` computes them.",
            f"The same advice without a question: `{self.command}`.",
        )

    def _lacks_positions(self) -> bool:
        """Tell whether distances differ and no scale says how large they are."""
        numbers = fits_answers({"levels": "numbers", "equal_distances": False}, self.answers)
        return numbers and (self.scale is None or self.scale.equal_steps)

    def _says_too_much(self) -> bool:
        """Tell whether something was said of names that they do not have."""
        asked = (name for name, question in QUESTIONS.items() if question.of_ordered_levels)
        return fits_answers(NAMES, self.answers) and any(self.answers[x] is not None for x in asked)

    def _describe_scale(self) -> str:
        clause = next(rule.clause for rule in SCALE_RULES if fits_answers(rule.when, self.answers))
        if self.scale is None:
            return f"{UNNAMED_SCALE}, {clause}"
        if self.scale.equal_steps:
            return f"{self.scale}, {clause}"
        return f"{self.scale}, {clause} ({', '.join(f'{x:g}' for x in self.scale.at)})"


def _format_name(name: str) -> str:
    return name.replace("_", " ")


def _list_verdicts(cell: PropertyRecord) -> list[Record]:
    """Return the verdict with its counterexample, and that for gold without some levels."""
    verdicts = [(VERDICT_NAMES[cell["verdict"]], cell["counterexample"])]
    if cell["verdict_with_empty_levels"] != cell["verdict"]:
        differing = VERDICT_NAMES[cell["verdict_with_empty_levels"]]
        example = cell["counterexample_with_empty_levels"]
        verdicts.append((f"{differing} where gold lacks levels", example))
    return [
        {"verdict": verdict, "counterexample": example and format_counterexample(example)}
        for verdict, example in verdicts
    ]


def _join_labels(scale: Scale) -> str:
    """Return labels as `--scale` takes them: one with a comma stands in quotes."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(scale.names)
    return line.getvalue()


# --- the methods section -------------------------------------------------------------------------


def _describe_metric(metric: Metric) -> str:
    """Return a metric as a methods section names it, from the catalogue.

    >>> _describe_metric(find_metric("accuracy_within"))
    'accuracy_within (Share of items at most n levels off, n=1; Gaudette and Japkowicz, 2009)'
    """
    what = re.split(r"[:.](?: |$)", metric.title)[0]
    options = [f"{name}={value}" for name, value in metric.settings.items()]
    cited = [format_citation(REFERENCES[metric.reference])] if metric.reference else []
    return f"{metric.name} ({'; '.join([', '.join([what, *options]), *cited])})"


def format_citation(reference: str) -> str:
    """Return the authors and the year of a reference.

    >>> format_citation("Cohen (1968). Weighted kappa: nominal scale agreement.")
    'Cohen, 1968'
    >>> format_citation("Kumar, Liang, Ma (2019). Verified uncertainty calibration.")
    'Kumar et al., 2019'
    """
    authors, _, rest = reference.partition(" (")
    names = authors.split(", ")
    return f"{f'{names[0]} et al.' if len(names) > 2 else ' and '.join(names)}, {rest[:4]}"


def _describe_intervals(metrics: list[Metric]) -> str:
    """Return the interval methods that the coverage study chose for the metrics."""
    methods: dict[str, list[str]] = {}
    for metric in metrics:
        methods.setdefault(METHOD_NAMES[choose_interval_method(metric)], []).append(metric.name)
    if len(methods) == 1:
        return next(iter(methods))
    return join_names(f"{method} ({join_names(names)})" for method, names in methods.items())
