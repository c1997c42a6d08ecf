"""Settings of a tuning run, checked before any work is done."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

from ordinate.classify.class_weights import WEIGHT_STRATEGIES, WeightStrategy
from ordinate.classify.decision_rules import DecodeOption, check_metric
from ordinate.errors import BadOption, shorten, suggest_names
from ordinate.metrics import Metric, find_metric, split_expressions
from ordinate.models.classifiers import MODEL_TYPES
from ordinate.settings import check_choice, check_integer, check_number

VOTE = "vote"
DEFAULT_MODELS = ("logistic", "threshold", "lightgbm")
# What changes when and where the work is done, and no result.
EXECUTION_SETTINGS = ("jobs", "timeout")
# Settings that decide the value of one model on given data.
EVALUATION_SETTINGS = (
    *("metric", "weight_strategy", "weight_alpha", "weight_metric", "decode", "folds", "seed"),
)


@dataclass(frozen=True)
class Settings:
    """Everything that a run is told; errors name the flag.

    >>> Settings(metric="mae", models="logistic,svm").models
    ('logistic', 'svm')
    """

    metric: str = "cem_ord"
    top_k: int = 5
    weight_strategy: WeightStrategy = "equal"
    weight_alpha: float = 1.0
    weight_metric: bool = False
    models: Sequence[str] | str = DEFAULT_MODELS
    decode: DecodeOption = "metric"
    folds: int = 5
    early_discard_threshold: float | None = None
    early_discard_percentile: float | None = None
    feature_pattern: str = "*"
    stage2_trials: int = 20
    timeout: float | None = None  # seconds of a run after which studies get no further batch
    jobs: int = 1
    seed: int = 0
    nested: bool = False
    train: Sequence[str] = ()  # stems of training data; none: all

    def __post_init__(self) -> None:
        """Check everything that can be checked without data."""
        object.__setattr__(self, "models", _parse_models(self.models))
        object.__setattr__(self, "train", tuple(self.train))
        object.__setattr__(self, "metric", _parse_metric(self.metric).expression)
        if isinstance(self.decode, str):  # as flags spell it: rounded-mean
            object.__setattr__(self, "decode", self.decode.replace("-", "_"))
        for name, least in (("top_k", 1), ("folds", 2), ("stage2_trials", 1), ("jobs", 1)):
            check_integer(name, getattr(self, name), least)
        check_integer("seed", self.seed, 0)
        check_choice("weight_strategy", self.weight_strategy, WEIGHT_STRATEGIES)
        check_choice("decode", self.decode, get_args(DecodeOption))
        check_number("weight_alpha", self.weight_alpha, 0.0, 1.0)
        check_number("early_discard_threshold", self.early_discard_threshold, -math.inf, math.inf)
        check_number("early_discard_percentile", self.early_discard_percentile, 0.0, 100.0)
        check_number("timeout", self.timeout, 0.0, math.inf)

    @cached_property
    def measure(self) -> Metric:
        """The metric itself."""
        return find_metric(self.metric)

    @property
    def direction(self) -> Literal["maximize", "minimize"]:
        """Where better values lie, of `measure.size`."""
        return "maximize" if self.measure.direction == "maximize" else "minimize"

    def merit(self, value: float) -> float:
        """Return a number of which the larger are better; values that differ by rounding tie."""
        return round(float(self.measure.merit(value)), 12)

    @property
    def searched_models(self) -> tuple[str, ...]:
        """The model types that are searched; the vote is made of the best of them."""
        return tuple(name for name in self.models if name != VOTE)

    @property
    def includes_vote(self) -> bool:
        """Whether a vote is among the models."""
        return VOTE in self.models

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, by the names of the flags with underscores."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in plain.items()}

    @property
    def result_settings(self) -> dict[str, Any]:
        """What decides the result: everything but the manner of working."""
        return {
            name: value for name, value in self.to_dict().items() if name not in EXECUTION_SETTINGS
        }

    @property
    def evaluation_settings(self) -> dict[str, Any]:
        """What decides the value of one model on given data, and so the name of its study."""
        return {
            name: value for name, value in self.to_dict().items() if name in EVALUATION_SETTINGS
        }


def _parse_metric(given: Any) -> Metric:
    if not isinstance(given, (str, Metric)):
        raise BadOption(f"--metric takes the name of a metric, not {shorten(given)}.")
    if isinstance(given, str) and len(split_expressions(given)) > 1:
        raise BadOption(
            f"Tuning takes one metric, and {shorten(given)} names several. Choose the one that "
            "matters most: evaluate and rank show the others."
        )
    metric = find_metric(given)
    check_metric(metric)
    return metric


def _parse_models(given: Any) -> tuple[str, ...]:
    listed = given.split(",") if isinstance(given, str) else given
    if not isinstance(listed, Iterable):
        raise BadOption(f"--models takes names separated by commas, not {shorten(given)}.")
    models = tuple(dict.fromkeys(str(name).strip() for name in listed))
    known = [*MODEL_TYPES, VOTE]
    for name in models:
        if name not in known:
            near = suggest_names(name, known)
            raise BadOption(f"There is no model {shorten(name)}.{near} Known: {', '.join(known)}.")
        if name != VOTE:
            MODEL_TYPES[name].check()
    if models == (VOTE,):
        raise BadOption(
            "A vote averages the probabilities of other models. Name some of "
            f"{', '.join(MODEL_TYPES)} beside it in --models."
        )
    if not models:
        raise BadOption(f"--models names no model. Known: {', '.join(known)}.")
    return models
