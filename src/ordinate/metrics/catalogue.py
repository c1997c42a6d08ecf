"""The catalogue: one declaration makes a metric known everywhere."""

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from importlib import import_module
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from ordinate.errors import (
    BadOption,
    NotApplicable,
    OrdinateError,
    UnknownMetric,
    shorten,
    suggest_names,
)
from ordinate.metrics.arithmetic import Value
from ordinate.summaries import ConfusionMatrix

Direction = Literal["maximize", "minimize", "zero"]
Macro = Literal["mean", "worst", "other"] | None
MetricFunction = Callable[..., Value]
OptionRule = (
    bool | Callable[[Mapping[str, Any]], bool]
)  # a function where it depends on the options

AXES_HINT = (
    "Count axes from the end, such as matrix.counts.sum(axis=(-2, -1)), or declare it with "
    "one_by_one=True, which is slower."
)
OWN_FAMILY = "own"  # the family of metrics that people declare themselves

# The summaries that metrics are functions of, by the name that people use: the class, its module,
# and the families that are loaded when somebody asks for them. Those of labels are always there.
SUMMARY_TYPES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "labels": ("ConfusionMatrix", "confusion", ()),
    "probabilities": ("Reliability", "reliability", ("proper_scores", "calibration")),
    "regression": ("Moments", "regression", ("regression",)),
    "intervals": ("PredictionIntervals", "prediction_intervals", ("prediction_intervals",)),
    "ensembles": ("EnsemblePredictions", "ensemble", ("prediction_intervals",)),
}

CATALOGUE: dict[tuple[str, type], "Metric"] = {}


@dataclass(frozen=True, eq=False)
class Metric:
    """A pure function of a summary, with everything that a reader should know about it.

    `takes_unanswered` metrics count an item without a prediction as the worst one; the others
    refuse it. What is not `ordered` takes the levels as mere names. `linear` metrics are sums
    over the cells with coefficients that depend on the gold totals alone. `levels` are those that
    an average over levels runs over: those of gold, or those of gold or predictions. A `share` is
    a plain share of the items; a `macro` metric gives a rare level as much say as a common one:
    it is the mean of what the gold levels have on their own, the worst of it, or something else;
    what is not `smooth` jumps or bends where levels or paths tie, and has no derivative there. A
    function that takes no batches is called `one_by_one`. `parts` says which parts of a summary
    it reads, given its options, where a summary has parts.
    """

    name: str
    function: MetricFunction = field(repr=False)
    summary: type = field(repr=False)
    family: str
    direction: Direction
    bounds: tuple[float, float]
    formula: str = field(repr=False)
    reference: str = field(repr=False)
    undefined_when: str | None = field(repr=False)
    ordered: bool = field(repr=False)
    equal_steps: OptionRule = field(repr=False)
    linear: bool = field(repr=False)
    takes_unanswered: bool = field(repr=False)
    levels: Literal["gold", "either"] = field(repr=False)
    integer_counts: OptionRule = field(repr=False)
    share: bool = field(repr=False)
    macro: Macro = field(repr=False)
    smooth: bool = field(repr=False)
    one_by_one: bool = field(repr=False)
    parts: "Callable[[Mapping[str, Any]], Any] | None" = field(repr=False)
    aliases: tuple[str, ...] = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    alias_of: str | None = field(default=None, repr=False)

    def __call__(self, summary: Any) -> Value:
        """Return the value for a summary: a float, or one for each summary of a batch."""
        return self.compute_from_expected(summary, summary)

    def compute_from_expected(self, expected: Any, observed: Any) -> Value:
        """Return the value for the counts that are expected in place of the observed ones.

        They need not be integers where the observed ones are.
        """
        self._check_summary(expected)
        if self.required:
            missing = ", ".join(self.required)
            raise BadOption(f"{self.name} needs {missing}: write {self.name}({missing}=…).")
        if self.needs_integer_counts and not observed.has_integer_weights:
            raise NotApplicable("the weights are no integer counts, on which it depends")
        if expected.has_unanswered and not self.takes_unanswered:
            raise NotApplicable("it has no meaning for items without a prediction")
        return self.compute_unchecked(expected)

    def compute_unchecked(self, summary: Any) -> Value:
        """Return the value for a summary that is known to be one of those it is meant for."""
        return self._compute_each(summary) if self.one_by_one else self._compute_together(summary)

    def _check_summary(self, given: object) -> None:
        if not isinstance(given, self.summary):
            raise BadOption(
                f"{self.name} is a metric of {_name_input(self.summary)}: it takes a "
                f"{self.summary.__name__}, not {type(given).__name__}."
            )

    def _compute_together(self, summary: Any) -> Value:
        try:
            value = self.function(summary, **self.options)
            if self.family == OWN_FAMILY:
                value = np.asarray(value, float)[()]
        except OrdinateError:
            raise
        except Exception as problem:
            if self.family != OWN_FAMILY:
                raise
            many, hint = (
                (" for many matrices at once", f" {AXES_HINT}") if summary.shape else ("", "")
            )
            error = f"{type(problem).__name__}: {problem}"
            raise BadOption(f"{self.name} fails{many}: {error}.{hint}") from problem
        if np.shape(value) != summary.shape:
            raise BadOption(
                f"{self.name} must return one number for each matrix: {summary.shape} of them, not "
                f"{np.shape(value)}. {AXES_HINT}"
            )
        return value

    def _compute_each(self, summary: Any) -> Value:
        if not summary.shape:
            return self._compute_together(summary)
        values = np.empty(summary.shape)
        for index in np.ndindex(summary.shape):
            values[index] = self._compute_together(summary[index])
        return values

    def __deepcopy__(self, memo: dict[int, Any]) -> "Metric":
        return self  # nothing in it changes

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a pickle makes it again: from the catalogue, where that has it."""
        options = dict(self.options)
        declared = CATALOGUE.get((self.name, self.summary))
        if declared is not None and declared.function is self.function:
            return _restore_metric, (self.name, self.summary, options, self.function.__module__)
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return partial(Metric, **values | {"options": options}), ()

    @property
    def expression(self) -> str:
        """The name with the options that were set: what JSON shows and `--metrics` takes."""
        if not self.options:
            return self.name
        set_ = ",".join(f"{key}={_format_option(value)}" for key, value in self.options.items())
        return f"{self.name}({set_})"

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return (self.function.__doc__ or self.name).strip().splitlines()[0]

    @property
    def explanation(self) -> str:
        """The docstring without its examples."""
        return inspect.cleandoc(self.function.__doc__ or self.name).split("\n>>>")[0].strip()

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The options of the function, by name."""
        return dict(list(inspect.signature(self.function).parameters.items())[1:])

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The options that have a default, with it."""
        empty = inspect.Parameter.empty
        return {k: p.default for k, p in self.parameters.items() if p.default is not empty}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every option with the value that a call uses."""
        return self.defaults | dict(self.options)

    @cached_property
    def required(self) -> list[str]:
        """The options that have no default and no value."""
        return [name for name in self.parameters if name not in self.settings]

    @property
    def required_parts(self) -> Any:
        """The parts of a summary that it reads; None where a summary has no parts."""
        return None if self.parts is None else self.parts(self.settings)

    @property
    def assumes_equal_steps(self) -> bool:
        """Whether it takes positions for numbers, rather than only for an order."""
        return self._resolve_rule(self.equal_steps)

    @property
    def needs_integer_counts(self) -> bool:
        """Whether it depends on the number of items, and so refuses other weights than counts."""
        return self._resolve_rule(self.integer_counts)

    def _resolve_rule(self, rule: OptionRule) -> bool:
        return rule(self.settings) if callable(rule) else rule

    def with_options(self, **options: Any) -> "Metric":
        """Return the same metric with other options, checked against its signature."""
        for name, value in options.items():
            _check_option(self, name, value)
        return replace(self, options=MappingProxyType({**self.options, **options}))

    def size(self, values: Value) -> Value:
        """Return what is compared: the values, or their distance from 0 where that is best."""
        return np.abs(values) if self.direction == "zero" else values

    def merit(self, values: Value) -> Value:
        """Return numbers of which the larger are better."""
        return self.size(values) if self.direction == "maximize" else -self.size(values)

    def is_better(self, first: Value, second: Value) -> Any:
        """Tell whether the first value is better than the second."""
        if self.direction == "zero":
            return np.abs(first) < np.abs(second)
        return first > second if self.direction == "maximize" else first < second


def metric(
    *,
    direction: Direction,
    family: str = OWN_FAMILY,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    formula: str = "",
    reference: str = "",
    undefined_when: str | None = None,
    ordered: bool = True,
    equal_steps: OptionRule = False,
    linear: bool = False,
    takes_unanswered: bool = False,
    levels: Literal["gold", "either"] = "gold",
    integer_counts: OptionRule = False,
    share: bool = False,
    macro: Macro = None,
    smooth: bool = True,
    one_by_one: bool = False,
    parts: Callable[[Mapping[str, Any]], Any] | None = None,
    aliases: tuple[str, ...] = (),
) -> Callable[[MetricFunction], Metric]:
    """Declare a metric: the summary that it needs comes from the annotation of its argument.

    Without one it is a function of a confusion matrix, or of many at once: count axes from the end.
    The direction is all that has to be said; the rest makes reports and intervals better.

    >>> @metric(direction="minimize")
    ... def far_errors(matrix):
    ...     return 1.0 - find_metric("accuracy_within")(matrix)
    >>> find_metric("far_errors")(ConfusionMatrix.of([1, 2, 3], [1, 4, 3], "1..4")).round(3)
    np.float64(0.333)
    """

    def declare(function: MetricFunction) -> Metric:
        first = next(iter(inspect.signature(function).parameters.values()))
        annotation = first.annotation
        annotated = isinstance(annotation, type) and annotation is not inspect.Parameter.empty
        summary = annotation if annotated else ConfusionMatrix
        declared = Metric(
            name=function.__name__,
            function=function,
            summary=summary,
            family=family,
            direction=direction,
            bounds=bounds,
            formula=formula,
            reference=reference,
            undefined_when=undefined_when,
            ordered=ordered,
            equal_steps=equal_steps,
            linear=linear,
            takes_unanswered=takes_unanswered,
            levels=levels,
            integer_counts=integer_counts,
            share=share,
            macro=macro,
            smooth=smooth,
            one_by_one=one_by_one,
            parts=parts,
            aliases=aliases,
        )
        if direction not in get_args(Direction):
            known = ", ".join(map(repr, get_args(Direction)))
            raise BadOption(f"{declared.name}: direction={direction!r} is not one of {known}.")
        taken = [name for name in (declared.name, *aliases) if (name, summary) in CATALOGUE]
        if taken:
            raise BadOption(f"A metric named {taken[0]!r} is already in the catalogue.")
        CATALOGUE[declared.name, summary] = declared
        for name in aliases:
            CATALOGUE[name, summary] = replace(declared, name=name, alias_of=declared.name)
        return declared

    return declare


def get_summary_type(input_name: str) -> type:
    """Return the summary that the metrics of this input are functions of.

    >>> get_summary_type("regression").__name__
    'Moments'
    """
    name, module, _ = SUMMARY_TYPES[input_name]
    summary: type = getattr(import_module(f"ordinate.summaries.{module}"), name)
    return summary


def _load_families(summary: type) -> type:
    """Load the families of a summary, and return it."""
    for name, _, families in SUMMARY_TYPES.values():
        if name == summary.__name__:
            for family in families:
                import_module(f"ordinate.metrics.{family}")
    return summary


def _name_input(summary: type) -> str:
    """Return what people call the input of a summary."""
    names = {name: called for called, (name, _, _) in SUMMARY_TYPES.items()}
    return names.get(summary.__name__, summary.__name__)


def find_metric(metric: "str | Metric", summary: type = ConfusionMatrix) -> Metric:
    """Return the metric of a name or an expression such as 'weighted_kappa(power=1)'.

    A metric stands for itself, if it is one of this summary.

    >>> find_metric("accuracy_within(n=2)").options["n"]
    2
    """
    if isinstance(metric, Metric):
        if metric.summary is not summary:
            raise BadOption(_name_inputs(metric.name, _name_input(metric.summary), summary))
        return metric
    name, options = _parse_expression(metric)
    if (name, _load_families(summary)) not in CATALOGUE:
        raise UnknownMetric(_describe_unknown(name, summary))
    declared = CATALOGUE[name, summary]
    return declared.with_options(**options) if options else declared


def _describe_unknown(name: str, summary: type) -> str:
    """Say what a metric takes that another summary has, or else which names are alike."""
    others = [input_name for input_name in SUMMARY_TYPES if is_known_metric(name, input_name)]
    if others:
        return _name_inputs(name, " and ".join(others), summary)
    known = {name: m.title for (name, of), m in CATALOGUE.items() if of is summary}
    titled = [other for other, title in known.items() if name.lower() in title.lower()]
    return (
        f"There is no metric {shorten(name)}.{suggest_names(name, [*known], titled)} "
        "`ordinate metrics` lists all."
    )


def _name_inputs(name: str, given: str, summary: type) -> str:
    wanted = _name_input(summary)
    use = " Call evaluate_regression, or `ordinate evaluate-regression`." * (given == "regression")
    return f"{name} is a metric of {given}, and a metric of {wanted} is needed here.{use}"


def _restore_metric(name: str, summary: type, options: dict[str, Any], module: str) -> Metric:
    """Return the metric of a pickle; the module that declares it is imported where need be."""
    if (name, _load_families(summary)) not in CATALOGUE:
        import_module(module)
    declared = find_metric(name, summary)
    return declared.with_options(**options) if options else declared


def list_metrics(summary: type = ConfusionMatrix) -> list[Metric]:
    """Return every metric of a summary, without aliases, in the order of declaration.

    >>> [metric.name for metric in list_metrics()][:3]
    ['cem_ord', 'cem_ord_flat', 'cem_nom']
    >>> from ordinate.metrics import get_summary_type
    >>> len(list_metrics(get_summary_type("ensembles")))
    6
    """
    _load_families(summary)
    return [m for (_, of), m in CATALOGUE.items() if of is summary and m.alias_of is None]


def is_known_metric(name: str, input_name: str) -> bool:
    """Tell whether a metric of this name, or of this expression, takes this input."""
    return (
        name.partition("(")[0].strip(),
        _load_families(get_summary_type(input_name)),
    ) in CATALOGUE


def split_expressions(text: str) -> list[str]:
    """Split at commas outside parentheses and brackets.

    >>> split_expressions("mae, oci(beta1=0.5,gamma=1),accuracy")
    ['mae', 'oci(beta1=0.5,gamma=1)', 'accuracy']
    """
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _parse_expression(expression: str) -> tuple[str, dict[str, Any]]:
    """Return name and options; values are literals, nothing is executed."""
    if re.fullmatch(r"\s*\w+\s*", expression):
        return expression.strip(), {}
    try:
        call = ast.parse(expression.strip(), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise ValueError
        options = {str(k.arg): _parse_literal(k.value) for k in call.keywords}
        if len(options) < len(call.keywords) or "None" in options:  # repeated, or **options
            raise ValueError
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise UnknownMetric(
            f"{shorten(expression)} is not a metric. Write a name, or a name with named options "
            "such as weighted_kappa(power=1) or cem_nom(ties='half')."
        ) from None
    return call.func.id, options


def _parse_literal(value: ast.expr) -> Any:
    """Return a literal; a bare word is a string, because shells eat quotes."""
    return value.id if isinstance(value, ast.Name) else ast.literal_eval(value)


def _check_option(metric: Metric, name: str, value: Any) -> None:
    if name not in metric.parameters:
        known = ", ".join(metric.parameters) or "none"
        raise BadOption(f"{metric.name} has no option {name!r}; its options are: {known}.")
    annotation = metric.parameters[name].annotation
    choices = list_choices(annotation)
    if choices and value not in choices:
        listed = ", ".join(map(repr, choices))
        raise BadOption(f"{metric.name}: {name}={value!r} is not one of {listed}.")
    if annotation in {int, float} and not _is_nonnegative_number(value, annotation):
        expected = "an integer" if annotation is int else "a finite number"
        raise BadOption(f"{metric.name}: {name}={value!r} is not {expected} of at least 0.")


def list_choices(annotation: Any) -> tuple[Any, ...]:
    """Return the values that an option of this annotation takes, if it lists them.

    >>> list_choices(Literal["eps"] | None)
    ('eps', None)
    """
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    parts = (
        get_args(annotation)
        if isinstance(annotation, UnionType) or get_origin(annotation) is Union
        else ()
    )
    listed = [list_choices(part) if part is not NoneType else (None,) for part in parts]
    return tuple(value for values in listed for value in values) if all(listed) else ()


def _is_nonnegative_number(value: Any, annotation: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return bool(0 <= value < float("inf")) and (annotation is float or value == int(value))


def _format_option(value: Any) -> str:
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)
