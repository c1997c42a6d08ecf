"""Linear models: logistic regression, the ordinal ones, linear SVM, ridge, naive Bayes.

They are made with scikit-learn: features scaled where that helps, then an estimator.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput
from ordinate.tuning.models.base import Floats, Parameter
from ordinate.tuning.models.classifiers.classifier import Classifier

MOST_STEPS = 1000  # of a solver, before it gives up with a note


class PipelineClassifier(Classifier):
    """A classifier around a scikit-learn estimator.

    Dense features are scaled first. Sparse ones are taken as they are: to centre them would fill
    them, and those of texts are made on one scale.
    """

    scaling: ClassVar[Literal["standard", "positive"]] = "standard"

    @abstractmethod
    def _create_estimator(self) -> Any:
        """Return an estimator that has learned nothing yet."""

    def _fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> Any:
        from sklearn.pipeline import Pipeline

        pipeline = Pipeline(self._create_steps())
        return pipeline.fit(matrix, targets, model__sample_weight=weights)

    def _predict(self, fitted: Any, rows: Any) -> NDArray[Any]:
        return fitted.predict_proba(rows)

    def _is_valid(self, fitted: Any) -> bool:
        from sklearn.pipeline import Pipeline

        types = [
            [type(step) for _, step in steps] for steps in (fitted.steps, self._create_steps())
        ]
        if type(fitted) is not Pipeline or types[0] != types[1]:
            return False
        if any(step.n_features_in_ != self.width for _, step in fitted.steps):
            return False
        return not hasattr(fitted, "classes_") or len(fitted.classes_) == len(self.present)

    def _create_steps(self) -> list[tuple[str, Any]]:
        from sklearn.preprocessing import MinMaxScaler, StandardScaler

        # clip: a test value below all of training would be negative, and negative counts are none
        scaler = MinMaxScaler(clip=True) if self.scaling == "positive" else StandardScaler()
        model = ("model", self._create_estimator())
        return [model] if self.sparse else [("scale", scaler), model]


class Logistic(PipelineClassifier):
    """Logistic regression of several classes."""

    name: ClassVar = "logistic"
    title: ClassVar = "Logistic regression"
    likelihood: ClassVar = True
    parameters: ClassVar = {
        "C": Parameter(1.0, (0.001, 1000.0), log=True, taken=(1e-9, 1e9)),
    }

    def _create_estimator(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(**self.params, max_iter=MOST_STEPS, random_state=self.seed)


class Threshold(PipelineClassifier):
    """Ordinal regression with thresholds, as latent scores."""

    name: ClassVar = "threshold"
    title: ClassVar = "Ordinal regression with thresholds"
    output_type: ClassVar = "scores"
    parameters: ClassVar = {
        "penalty": Parameter(1.0, (0.001, 1000.0), log=True),
        "loss": Parameter("proportional_odds", ["proportional_odds", "all_threshold"]),
    }

    def _create_estimator(self) -> Any:
        from ordinate.integrations.sklearn.ordinal_regression import OrdinalThresholdClassifier

        return OrdinalThresholdClassifier(**self.params, max_iter=MOST_STEPS)

    def _predict(self, fitted: Any, rows: Any) -> NDArray[Any]:
        """Return latent scores: with many features, cuts that fit training items fit no others."""
        scaled = fitted[:-1].transform(rows) if len(fitted) > 1 else rows
        return fitted[-1].predict_latent(scaled)


class FrankHallDecomposition(PipelineClassifier):
    """A logistic regression for each "above this level"."""

    name: ClassVar = "frank_hall"
    title: ClassVar = "Frank–Hall decomposition"
    likelihood: ClassVar = True
    parameters: ClassVar = {
        "penalty": Parameter(1.0, (0.001, 1000.0), log=True),
    }

    def _create_estimator(self) -> Any:
        from ordinate.integrations.sklearn.ordinal_regression import FrankHallClassifier

        return FrankHallClassifier(**self.params, max_iter=MOST_STEPS)


class NaiveBayes(PipelineClassifier):
    """Naive Bayes, whose features are counts, or shares of them."""

    name: ClassVar = "naive_bayes"
    title: ClassVar = "Naive Bayes"
    calibrated: ClassVar = False
    scaling: ClassVar = "positive"
    parameters: ClassVar = {
        "variant": Parameter("multinomial", ["multinomial", "complement"]),
        "alpha": Parameter(1.0, (0.001, 10.0), log=True),
    }

    def _create_estimator(self) -> Any:
        from sklearn.naive_bayes import ComplementNB, MultinomialNB

        variant = MultinomialNB if self.params["variant"] == "multinomial" else ComplementNB
        return variant(alpha=self.params["alpha"])

    def _fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> Any:
        if self.sparse and matrix.nnz and matrix.data.min() < 0:
            raise BadInput(
                "Naive Bayes takes counts, and these sparse features have negative values. Leave "
                "naive_bayes out for this feature set, or store it as a dense one: that is scaled "
                "to values from 0 to 1."
            )
        return super()._fit(matrix, targets, weights)


class SVM(PipelineClassifier):
    """Linear support vector machine, one level against the others."""

    name: ClassVar = "svm"
    title: ClassVar = "Linear support vector machine"
    calibrated: ClassVar = False
    parameters: ClassVar = {
        "C": Parameter(1.0, (0.001, 100.0), log=True, taken=(1e-9, 1e9)),
        "loss": Parameter("squared_hinge", ["squared_hinge", "hinge"]),
    }

    def _create_estimator(self) -> Any:
        from sklearn.svm import LinearSVC

        return LinearSVC(**self.params, max_iter=MOST_STEPS, random_state=self.seed)

    def _predict(self, fitted: Any, rows: Any) -> NDArray[Any]:
        """Return decision values as if they were logits, to be recalibrated on held-out items."""
        from scipy.special import softmax

        values = fitted.decision_function(rows)
        if values.ndim == 1:  # of two levels, the value of the higher one
            values = np.column_stack([-values, values])
        return softmax(values, axis=1)


class RidgeWithCuts(PipelineClassifier):
    """Ridge regression on positions of levels, whose scores are cut."""

    name: ClassVar = "regression"
    title: ClassVar = "Ridge regression with cut points"
    output_type: ClassVar = "scores"
    cut: ClassVar = True
    parameters: ClassVar = {
        "alpha": Parameter(1.0, (0.001, 10000.0), log=True),
    }

    def _create_estimator(self) -> Any:
        from sklearn.linear_model import Ridge

        # sparse_cg is what 'auto' takes for sparse features with an intercept; a fixed one is the
        # same for all versions. Conjugate gradients need no more steps than there are items.
        steps = {"solver": "sparse_cg", "tol": 1e-8, "max_iter": MOST_STEPS}
        return Ridge(**self.params, **steps, random_state=self.seed)

    def _predict(self, fitted: Any, rows: Any) -> NDArray[Any]:
        return fitted.predict(rows)
