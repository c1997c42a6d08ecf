"""Settings: what a run of tuning is asked for, checked before any work is done."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

from ordinate.classify.class_weights import WEIGHT_STRATEGIES, WeightStrategy
from ordinate.classify.decision_rules import DecodeOption, check_metric
from ordinate.errors import BadOption, shorten, suggest_names
from ordinate.experiment.settings_checks import check_choice, check_integer, check_number
from ordinate.metrics import Metric, find_metric, split_expressions

VOTE = "vote"
DEFAULT_MODELS = ("logistic", "threshold", "lightgbm")
# What changes when and where the work is done, and nothing that is found.
EXECUTION_SETTINGS = ("jobs", "timeout")


@dataclass(frozen=True)
class Settings:
    """Everything that a run is asked for; errors name the flag.

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
    def searched(self) -> tuple[str, ...]:
        """The kinds of models that are searched; the vote is made of what they find."""
        return tuple(kind for kind in self.models if kind != VOTE)

    @property
    def votes(self) -> bool:
        """Whether a vote is asked for."""
        return VOTE in self.models

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, by the names of the flags with underscores."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in plain.items()}

    @property
    def asked(self) -> dict[str, Any]:
        """What decides the result: everything but the manner of working."""
        return {
            name: value for name, value in self.to_dict().items() if name not in EXECUTION_SETTINGS
        }

    @property
    def judging(self) -> dict[str, Any]:
        """What decides the value of one model on given data, and so the name of its study."""
        names = ("metric", "weight_strategy", "weight_alpha", "weight_metric", "decode", "folds")
        return {name: value for name, value in self.to_dict().items() if name in (*names, "seed")}


def _parse_metric(wanted: Any) -> Metric:
    if not isinstance(wanted, (str, Metric)):
        raise BadOption(f"--metric takes the name of a metric, not {shorten(wanted)}.")
    if isinstance(wanted, str) and len(split_expressions(wanted)) > 1:
        raise BadOption(
            f"Tuning takes one metric, and {shorten(wanted)} names several. Choose the one that "
            "matters most: evaluate and rank show the others."
        )
    metric = find_metric(wanted)
    check_metric(metric)
    return metric


def _parse_models(wanted: Any) -> tuple[str, ...]:
    from ordinate.models.classifiers import MODEL_TYPES  # noqa: PLC0415 - models are not needed to be told of

    listed = wanted.split(",") if isinstance(wanted, str) else wanted
    if not isinstance(listed, Iterable):
        raise BadOption(f"--models takes names separated by commas, not {shorten(wanted)}.")
    models = tuple(dict.fromkeys(str(one).strip() for one in listed))
    known = [*MODEL_TYPES, VOTE]
    for one in models:
        if one not in known:
            near = suggest_names(one, known)
            raise BadOption(f"There is no model {shorten(one)}.{near} Known: {', '.join(known)}.")
        if one != VOTE:
            MODEL_TYPES[one].check()
    if models == (VOTE,):
        raise BadOption(
            "A vote averages the probabilities of other models. Name some of "
            f"{', '.join(MODEL_TYPES)} "
            "beside it in --models."
        )
    if not models:
        raise BadOption(f"--models names no model. Known: {', '.join(known)}.")
    return models
