"""Which metric to report: what follows from the answers to five questions, and why.

`advice.csv` is the table of rules. Each row holds for the answers that it names, and always where
it names none: it says what an answer means, gives a metric a role, asks for a formal property,
describes the scale, or adds a note. Of the metrics for one role the first that holds counts.
"""

import csv
import io
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, NamedTuple

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.interval_methods import choose_interval_method
from ordinate.meta.properties import PROPERTIES
from ordinate.meta.property_verdicts import NO_PROOF
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.known_properties import VERDICT_NAMES, find_properties, format_counterexample
from ordinate.metrics.references import REFERENCES
from ordinate.render import Document
from ordinate.render.estimates import join_names
from ordinate.render.tables import NAME, Column, Kind, Table
from ordinate.results.arguments import ScaleDeclaration
from ordinate.results.base import BETTER_VALUES, SCHEMA, Record, Result
from ordinate.results.provenance import VERSION
from ordinate.results.report_parts import METHOD_NAMES
from ordinate.scale import Scale
from ordinate.settings import Setting, format_flag, list_settings

QUESTIONS = {
    "levels": "What do the levels mean?",
    "equal_distances": "Are the distances between neighbouring levels equal?",
    "rare_levels": "Do rare levels matter as much as common ones?",
    "ties": "Are items ranked by their levels, and does the order within ties matter?",
    "reader": "What do your readers know?",
}
OF_ORDERED_LEVELS = ("equal_distances", "ties")
ROLES = {
    "first": "report it first",
    "reader": "readers know it",
    "ranking": "the order of the items",
}
Answers = dict[str, Any]


class Rule(NamedTuple):
    """A row of the table: what follows from some answers, and the sentence that says why."""

    kind: str  # a role of a metric, or answer, property, scale or note
    when: dict[str, list[str]]
    name: str  # of what follows
    sentence: str


@cache
def list_rules() -> tuple[Rule, ...]:
    """Return the table of rules."""
    with files(__package__).joinpath("advice.csv").open(encoding="utf-8") as table:
        rows = [list(row.values()) for row in csv.DictReader(table)]
    names = [*QUESTIONS, "positions"]
    return tuple(
        Rule(kind, {x: y.split("|") for x, y in zip(names, answers, strict=True) if y}, name, why)
        for kind, *answers, name, why in rows
    )


def list_meanings(question: str) -> dict[str, str]:
    """Return the answers to a question as people write them, and what each means."""
    rules = [rule for rule in list_rules() if (rule.kind, rule.name) == ("answer", question)]
    return {rule.when[question][0]: rule.sentence for rule in rules}


def list_open_questions(answers: Answers) -> list[str]:
    """Return the questions that need an answer and have none: names have neither gaps nor ties."""
    needless = OF_ORDERED_LEVELS if answers.get("levels") == "names" else ()
    return [name for name in QUESTIONS if answers.get(name) is None and name not in needless]


def spell_answer(answer: Any) -> str:
    """Return an answer as people write it.

    >>> spell_answer(True), spell_answer("not_ranked")
    ('yes', 'not-ranked')
    """
    return {True: "yes", False: "no"}.get(answer, str(answer).replace("_", "-"))


def _ask(name: str) -> Setting:
    meanings = "; ".join(f"{answer}: {what}" for answer, what in list_meanings(name).items())
    return Setting(f"{QUESTIONS[name]} {meanings}")


def advise(
    levels: Annotated[Literal["names", "order", "numbers"], _ask("levels")],
    *,
    equal_distances: Annotated[bool | None, _ask("equal_distances")] = None,
    rare_levels: Annotated[bool, _ask("rare_levels")],
    ties: Annotated[Literal["not_ranked", "ignore", "count"] | None, _ask("ties")] = None,
    reader: Annotated[
        Literal["shares", "classification", "agreement", "correlation"], _ask("reader")
    ],
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
    said = (levels, equal_distances, rare_levels, ties, reader)
    answers = dict(zip(QUESTIONS, said, strict=True))
    for one in list_settings(advise):
        one.check(answers[one.name])
    if lacking := list_open_questions(answers):
        raise BadOption(f"The advice needs {join_names(map(format_flag, lacking))} as well.")
    declared = None if scale is None else Scale.of(scale)
    if declared is not None and equal_distances and not declared.equal_steps:
        raise BadOption(
            "The positions of the scale are not one step apart, so the distances between its "
            "levels are not equal. Pass equal_distances=False."
        )
    return MetricAdvice(answers, declared)


def _name(name: str) -> str:
    return name.replace("_", " ")


METRIC_COLUMNS = (
    Column("metric", kind=NAME, get=lambda row: row[1].name),
    Column("direction", "better", Kind(BETTER_VALUES.get, words=True), lambda x: x[1].direction),
    Column("role", "for", Kind(ROLES.get, words=True), lambda row: row[0].kind),
    Column("reason", "why", NAME, lambda row: row[0].sentence),
    Column("title", get=lambda row: row[1].title, shown=False),
    Column("interval_method", get=lambda row: choose_interval_method(row[1]), shown=False),
    Column("reference", get=lambda row: REFERENCES.get(row[1].reference, ""), shown=False),
)
NEED_COLUMNS = (
    Column("name", "property", Kind(_name, words=True)),
    Column("sentence", "why", NAME),
)
PROPERTY_COLUMNS = (
    Column("metric", kind=NAME),
    Column("property", kind=Kind(_name, words=True)),
    Column("verdict", kind=NAME),
    Column("counterexample", kind=NAME),
)
ANSWER_COLUMNS = (
    Column("question", kind=NAME, get=lambda rule: QUESTIONS[rule.name]),
    Column("answer", kind=NAME, get=lambda rule: rule.when[rule.name][0]),
    Column("meaning", kind=NAME, get=lambda rule: rule.sentence),
)


@dataclass(frozen=True, repr=False, eq=False)
class MetricAdvice(Result):
    """The metrics to report by the answers, what they have and lack, and the methods section."""

    answers: Answers
    scale: Scale | None = None

    def list_rules(self, kind: str) -> list[Rule]:
        """Return the rules of a kind that hold for the answers."""
        placed = self.scale is not None and not self.scale.equal_steps
        known = {x: spell_answer(y) for x, y in {**self.answers, "positions": placed}.items()}
        rules = [rule for rule in list_rules() if rule.kind == kind]
        return [r for r in rules if all(known[name] in r.when[name] for name in r.when)]

    @property
    def metrics(self) -> list[Metric]:
        """The metrics to report, the first one first."""
        return [metric for _, metric in self._choose_metrics()]

    def _choose_metrics(self) -> list[tuple[Rule, Metric]]:
        rules = [rule for role in ROLES for rule in self.list_rules(role)[:1]]
        return [(rule, find_metric(rule.name)) for rule in rules]

    @property
    def references(self) -> list[str]:
        """The papers of the metrics."""
        return list(dict.fromkeys(REFERENCES[x.reference] for x in self.metrics if x.reference))

    @property
    def methods_section(self) -> str:
        """The sentence for the methods section."""
        methods: dict[str, list[str]] = {}
        for metric in self.metrics:
            method = METHOD_NAMES[choose_interval_method(metric)]
            methods.setdefault(method, []).append(metric.name)
        named = [f"{x} ({join_names(y)})" if len(methods) > 1 else x for x, y in methods.items()]
        scale, what = self.scale, self.list_rules("scale")[0].sentence
        if scale is not None and not scale.equal_steps:
            what += f" ({', '.join(f'{x:g}' for x in scale.at)})"
        return (
            f"We report {join_names(map(_describe_metric, self.metrics))} on the scale "
            f"{scale or '[your levels, lowest to highest]'}, {what}, with "
            f"{100 * ConfidenceIntervals().level:g} % confidence intervals by {join_names(named)}, "
            f"computed with Ordinate {VERSION}."
        )

    @property
    def command(self) -> str:
        """The command that gives the same advice without a question."""
        words = ["ordinate", "advise"]
        for name, answer in self.answers.items():
            if isinstance(answer, bool):
                words.append(format_flag(name if answer else f"no_{name}"))
            elif answer is not None:
                words += [format_flag(name), spell_answer(answer)]
        if self.scale is not None and self.scale.equal_steps:
            labels = io.StringIO()  # one with a comma stands in quotes
            csv.writer(labels, lineterminator="").writerow(self.scale.names)
            words += ["--scale", self.scale.preset or labels.getvalue()]
        return shlex.join(words)

    def tables(self) -> Iterable[Table]:
        """Return the metrics, and what the answers ask for, the metrics have, and was answered."""
        asks, chosen = self.list_rules("property"), self._choose_metrics()
        pairs = [(metric, rule.name) for _, metric in chosen for rule in asks]
        verdicts = [row for pair in pairs for row in _list_verdicts(*pair)]
        yield Table("metrics", "Metrics", METRIC_COLUMNS, chosen)
        yield Table("needs", "What your answers ask for", NEED_COLUMNS, asks)
        yield Table("properties", "What the metrics have and lack", PROPERTY_COLUMNS, verdicts)
        yield Table("answers", "Your answers", ANSWER_COLUMNS, self.list_rules("answer"))

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "schema": SCHEMA,
            "answers": self.answers,
            "scale": None if self.scale is None else list(self.scale.names),
            "metrics": self.get_table("metrics").to_list(),
            "properties": self.get_table("properties").to_list(),
            "methods_section": self.methods_section,
            "references": self.references,
            "command": self.command,
        }

    def document(self) -> Document:
        """Return the metrics with the reasons, the methods section, and the counterexamples."""
        metrics, *further = (grid for table in self.tables() for grid in table.grids())
        laws = [rule.name for rule in self.list_rules("property")]
        first, *others = self.metrics
        known = find_properties(first)
        kept = [_name(law) for law in laws if known[law]["verdict"] == "not_violated"]
        has = f" No small case violates what your answers ask for: {join_names(kept)}."
        names = ",".join(metric.name for metric in self.metrics)
        return Document(
            "Which metric should I report?",
            (
                metrics,
                f"For the methods section: {self.methods_section}",
                *self.references,
                *further,
            ),
            f"Report {first.name}, and beside it {join_names(metric.name for metric in others)}."
            f"{has if kept else ''}",
            (
                NO_PROOF,
                *(f"{_name(law)}: {PROPERTIES[law].statement}" for law in laws),
                *dict.fromkeys(rule.sentence for rule in self.list_rules("note")),
                f"`ordinate evaluate FILE --metrics {names}` computes them.",
                f"The same advice without a question: `{self.command}`.",
            ),
        )


def _list_verdicts(metric: Metric, name: str) -> list[Record]:
    """Return what is on file about a property of a metric, and for gold without some levels."""
    found = find_properties(metric)[name]
    cases = {"": "", "_with_empty_levels": " where gold lacks levels"}
    return [
        {
            "metric": metric.name,
            "property": name,
            "verdict": VERDICT_NAMES[found[f"verdict{case}"]] + where,
            "counterexample": example and format_counterexample(example),
        }
        for case, where in cases.items()
        for example in [found[f"counterexample{case}"]]
        if not case or found[f"verdict{case}"] != found["verdict"]
    ]


def _describe_metric(metric: Metric) -> str:
    """Return a metric as a methods section names it, with its authors.

    >>> _describe_metric(find_metric("accuracy_within"))
    'accuracy_within (Share of items at most n levels off, n=1; Gaudette and Japkowicz, 2009)'
    """
    what = re.split(r"[:.](?: |$)", metric.title)[0]
    options = [f"{name}={value}" for name, value in metric.settings.items()]
    authors, _, rest = REFERENCES.get(metric.reference, "").partition(" (")
    names = authors.split(", ")
    cited = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    source = f"; {cited}, {rest[:4]}" if metric.reference else ""
    return f"{metric.name} ({', '.join([what, *options])}{source})"
