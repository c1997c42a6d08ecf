"""Settings of tuning a classifier, checked before any work is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from ordinate.errors import BadOption, shorten
from ordinate.metrics import Metric, find_metric, split_expressions
from ordinate.settings import Setting
from ordinate.tuning.classify.class_weights import WEIGHT_STRATEGIES, WeightStrategy
from ordinate.tuning.classify.decision_rules import DecodeOption, check_metric
from ordinate.tuning.models.classifiers import MODEL_TYPES, create_classifier
from ordinate.tuning.search.settings import Preset, ScreeningSettings
from ordinate.tuning.search.studies import Direction

VOTE = "vote"
# Settings that decide the value of one model on given data.
EVALUATION_SETTINGS = (
    *("metric", "weight_strategy", "weight_alpha", "weight_metric", "decode", "folds", "seed"),
)


@dataclass(frozen=True, kw_only=True)
class Settings(ScreeningSettings):
    """Everything that tuning a classifier is told; errors name the flag.

    >>> Settings(metric="mae", models="logistic,svm").models
    ('logistic', 'svm')
    """

    PRESETS: ClassVar[Mapping[str, Preset]] = {
        "minimal": Preset(("logistic",), 4, 3),
        "balanced": Preset(("logistic", "threshold", "lightgbm"), 20, 5),
        "thorough": Preset(
            ("logistic", "threshold", "frank_hall", "svm", "forest", "lightgbm", VOTE), 50, 5
        ),
    }
    ENSEMBLES: ClassVar[tuple[str, ...]] = (VOTE,)

    metric: Annotated[
        str, Setting("name or expression of one metric of labels", metavar="METRIC")
    ] = "cem_ord"
    decode: Annotated[
        DecodeOption,
        Setting(
            "decision rule from probabilities to levels: metric-optimal, the most probable level, "
            "or the rounded mean"
        ),
    ] = "metric"
    weight_strategy: Annotated[WeightStrategy, Setting("weights of levels in fitting")] = "equal"
    weight_alpha: Annotated[
        float,
        Setting("from 0, equal weights, to 1, the strategy", metavar="A", least=0.0, most=1.0),
    ] = 1.0
    weight_metric: Annotated[bool, Setting("weigh items in the metric, too")] = False
    feature_pattern: Annotated[
        str, Setting("feature sets to use, such as 'tfidf-*'", metavar="GLOB")
    ] = "*"
    training_sets: Annotated[
        Sequence[str], Setting("training data to use, by name", metavar="NAME", default="all")
    ] = ()

    def __post_init__(self) -> None:
        """Check everything that can be checked without data."""
        self._set("training_sets", tuple(self.training_sets))
        self._set("metric", _parse_metric(self.metric).expression)
        if isinstance(self.decode, str):  # as flags spell it: rounded-mean
            self._set("decode", self.decode.replace("-", "_"))
        super().__post_init__()
        if self.weight_strategy == "equal":
            self._refuse_without_strategy()
        if not self.folds:
            raise BadOption("--folds takes 2 or more: levels are calibrated out of fold.")

    def _refuse_without_strategy(self) -> None:
        """Refuse what says how levels are weighed, where they are not."""
        asked = {"--weight-alpha": self.weight_alpha != 1.0, "--weight-metric": self.weight_metric}
        for flag, given in asked.items():
            if given:
                known = " or ".join(WEIGHT_STRATEGIES[1:])
                raise BadOption(
                    f"{flag} is of the weights of a strategy, and all levels weigh the same: add "
                    f"--weight-strategy ({known}), or leave it out."
                )

    @classmethod
    def list_model_types(cls) -> Sequence[str]:
        """Return the names of all classifiers."""
        return list(MODEL_TYPES)

    @classmethod
    def check_model_type(cls, name: str) -> None:
        """Complain if the library of a classifier is not installed."""
        MODEL_TYPES[name].check()

    def complete_params(self, model_type: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return given hyperparameters with the defaults of the others, all checked."""
        return dict(create_classifier(model_type, dict(params), size=2).params)

    @cached_property
    def measure(self) -> Metric:
        """The metric itself."""
        return find_metric(self.metric)

    @property
    def direction(self) -> Direction:
        """Where better values lie, of `measure.size`."""
        return "maximize" if self.measure.direction == "maximize" else "minimize"

    def merit(self, value: float) -> float:
        """Return a number of which the larger are better; values that differ by rounding tie."""
        return round(float(self.measure.merit(value)), 12)

    @property
    def includes_vote(self) -> bool:
        """Whether a vote is among the models."""
        return VOTE in self.models

    @property
    def evaluation_settings(self) -> dict[str, Any]:
        """What decides the value of one model on given data, and so the name of its study."""
        return {name: x for name, x in self.to_dict().items() if name in EVALUATION_SETTINGS}


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
