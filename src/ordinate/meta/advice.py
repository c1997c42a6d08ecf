"""Which metric to report: what follows from the answers to five questions, and why.

`advice.csv` is the table of rules. Each row holds for the answers that it names, and always where
it names none: it says what an answer means, gives a metric a role, asks for a formal property,
describes the scale, or adds a note. Of the metrics for one role the first that holds counts.
"""

import csv
import io
import re
import shlex
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
from ordinate.render import Document, Grid
from ordinate.render.estimates import join_names
from ordinate.results.arguments import ScaleDeclaration
from ordinate.results.base import BETTER_VALUES, SCHEMA, Record, Result
from ordinate.results.interval_methods_text import METHOD_NAMES
from ordinate.results.provenance import VERSION
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
        return [find_metric(row["metric"]) for row in self.rows()]

    @property
    def methods_section(self) -> str:
        """The sentence for the methods section."""
        methods: dict[str, list[str]] = {}
        for row in self.rows():
            methods.setdefault(METHOD_NAMES[row["interval_method"]], []).append(row["metric"])
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

    def rows(self) -> list[Record]:
        """Return one flat record for each metric."""
        rules = [rule for role in ROLES for rule in self.list_rules(role)[:1]]
        return [
            {
                "metric": metric.name,
                "role": rule.kind,
                "reason": rule.sentence,
                "title": metric.title,
                "direction": metric.direction,
                "interval_method": choose_interval_method(metric),
                "reference": REFERENCES.get(metric.reference, ""),
            }
            for rule, metric in ((rule, find_metric(rule.name)) for rule in rules)
        ]

    def list_tables(self) -> dict[str, list[Record]]:
        """Return the metrics, and the verdicts on the properties that the answers ask for."""
        wanted = [rule.name for rule in self.list_rules("property")]
        pairs = [(metric, name) for metric in self.metrics for name in wanted]
        verdicts = [row for pair in pairs for row in _list_verdicts(*pair)]
        return {self.table_name: self.rows(), "properties": verdicts}

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "schema": SCHEMA,
            "answers": self.answers,
            "scale": None if self.scale is None else list(self.scale.names),
            **self.list_tables(),
            "methods_section": self.methods_section,
            "references": list(dict.fromkeys(filter(None, (x["reference"] for x in self.rows())))),
            "command": self.command,
        }

    def document(self) -> Document:
        """Return the metrics with the reasons, the methods section, and the counterexamples."""
        values, wanted = self.to_dict(), self.list_rules("property")
        first, *others = (row["metric"] for row in values["metrics"])
        known = find_properties(find_metric(first))
        kept = [_name(x.name) for x in wanted if known[x.name]["verdict"] == "not_violated"]
        has = f" No small case violates what your answers ask for: {join_names(kept)}."
        metrics = [
            (row["metric"], BETTER_VALUES[row["direction"]], ROLES[row["role"]], row["reason"])
            for row in values["metrics"]
        ]
        verdicts = [
            (row["metric"], _name(row["property"]), row["verdict"], row["counterexample"] or "")
            for row in values["properties"]
        ]
        answers = [
            (QUESTIONS[rule.name], *rule.when[rule.name], rule.sentence)
            for rule in self.list_rules("answer")
        ]
        asks = [(_name(rule.name), rule.sentence) for rule in wanted]
        named = ("metric", "property", "verdict", "counterexample")
        return Document(
            "Which metric should I report?",
            (
                Grid("Metrics", ("metric", "better", "for", "why"), tuple(metrics), left=4),
                f"For the methods section: {self.methods_section}",
                *values["references"],
                Grid("What your answers ask for", ("property", "why"), tuple(asks), left=2),
                Grid("What the metrics have and lack", named, tuple(verdicts), left=4),
                Grid("Your answers", ("question", "answer", "meaning"), tuple(answers), left=3),
            ),
            f"Report {first}, and beside it {join_names(others)}.{has if kept else ''}",
            (
                NO_PROOF,
                *(f"{_name(rule.name)}: {PROPERTIES[rule.name].statement}" for rule in wanted),
                *dict.fromkeys(rule.sentence for rule in self.list_rules("note")),
                f"`ordinate evaluate FILE --metrics {','.join([first, *others])}` computes them.",
                f"The same advice without a question: `{self.command}`.",
            ),
        )


def _name(name: str) -> str:
    return name.replace("_", " ")


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
