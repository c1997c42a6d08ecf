"""Boosted trees: LightGBM, and histogram gradient boosting of scikit-learn; one thread each."""

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ordinate.tuning.models.base import Floats, Parameter
from ordinate.tuning.models.regressors.regressor import Regressor, RowPair, StepCallback
from ordinate.tuning.models.tree_ensemble import TreeEnsemble

ROUNDS_PER_REPORT = 10  # rounds from one progress callback to the next


class TreeRegressor(Regressor):
    """A model that is stored as a `TreeEnsemble`."""

    stored_by: ClassVar = "numpy"

    def _predict(self, fitted: Any, x: Floats) -> Floats:
        return np.ravel(fitted.predict(x))

    def _is_valid(self, fitted: Any) -> bool:
        right = isinstance(fitted, TreeEnsemble) and fitted.link == "identity"
        return right and (fitted.width, fitted.outputs) == (self.width, 1)


class LightGBM(TreeRegressor):
    """LightGBM with early stopping: the round with the best validation RMSE is the last."""

    name: ClassVar = "lightgbm"
    title: ClassVar = "LightGBM"
    library: ClassVar = "lightgbm"
    iterative: ClassVar = True
    parameters: ClassVar = {  # what LightGBM refuses it prints, too
        "rounds": Parameter(2000, (2000, 2000), taken=(1, 100_000)),
        "patience": Parameter(60, (60, 60), taken=(1, 100_000)),
        "learning_rate": Parameter(0.05, (0.02, 0.2), log=True, taken=(1e-9, 10.0)),
        "num_leaves": Parameter(31, (6, 96), log=True, taken=(2, 131_072)),
        "min_child_samples": Parameter(20, (2, 50), log=True),
        "feature_fraction": Parameter(1.0, (0.5, 1.0), taken=(0.01, 1.0)),
        "bagging_fraction": Parameter(0.9, (0.5, 1.0), taken=(0.01, 1.0)),
        "lambda_l2": Parameter(0.1, (0.001, 30.0), log=True),
    }

    def _fit(self, x: Floats, y: Floats, validation: RowPair | None, progress: StepCallback) -> Any:
        from lightgbm.basic import LightGBMError

        try:
            return self._train_booster(x, y, validation, progress)
        except LightGBMError as problem:  # which is no ValueError, whatever it is about
            raise ValueError(str(problem)) from None

    def _train_booster(
        self, x: Floats, y: Floats, validation: RowPair | None, progress: StepCallback
    ) -> Any:
        import lightgbm

        settings = dict(self.params)
        rounds, patience = int(settings.pop("rounds")), int(settings.pop("patience"))
        # Few rows make no leaf of many: a tree must be able to split at all.
        settings["min_child_samples"] = min(settings["min_child_samples"], max(1, len(y) // 10))
        settings |= {
            "objective": "regression",
            "metric": "rmse",
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
            "bagging_freq": 1,
            "feature_pre_filter": False,
        }
        data = lightgbm.Dataset(x, y, params=settings)
        if validation is None:
            self.steps = rounds
            return lightgbm.train(settings, data, rounds)
        held_out = data.create_valid(*validation)
        ends = [
            lightgbm.early_stopping(patience, verbose=False),
            _create_progress_callback(progress),
        ]
        booster = lightgbm.train(settings, data, rounds, valid_sets=[held_out], callbacks=ends)
        self.steps = booster.best_iteration or booster.current_iteration()
        return booster  # without the rounds after the best one: training cuts them off

    def _save(self, fitted: Any, folder: Path) -> list[str]:
        # not in fitting: it would take a quarter longer, and a search fits far more than it saves
        loaded = isinstance(fitted, TreeEnsemble)
        return super()._save(fitted if loaded else TreeEnsemble.from_lightgbm(fitted), folder)


def _create_progress_callback(progress: StepCallback) -> Any:
    """Return a callback that reports the validation RMSE and stops where it is told to."""
    from lightgbm.callback import EarlyStopException

    def report(state: Any) -> None:
        step = state.iteration + 1
        if step % ROUNDS_PER_REPORT == 0 and progress(
            step, float(state.evaluation_result_list[0][2])
        ):
            raise EarlyStopException(state.iteration, state.evaluation_result_list)

    report.order = 20  # type: ignore[attr-defined] # before early stopping, which is 30
    return report


class HistBoosting(TreeRegressor):
    """Histogram gradient boosting; trees after the best validation error are cut off."""

    name: ClassVar = "hist_boosting"
    title: ClassVar = "Histogram gradient boosting"
    parameters: ClassVar = {
        "rounds": Parameter(1000, (1000, 1000), taken=(1, 100_000)),
        "patience": Parameter(30, (30, 30), taken=(1, 100_000)),
        "learning_rate": Parameter(0.08, (0.03, 0.3), log=True),
        "leaves": Parameter(31, (6, 64), log=True, taken=(2, 131_072)),
        "min_leaf": Parameter(20, (3, 50), log=True, taken=(1, math.inf)),
        "l2": Parameter(0.1, (0.001, 30.0), log=True),
    }

    def _fit(
        self, x: Floats, y: Floats, validation: RowPair | None, _tick: StepCallback
    ) -> TreeEnsemble:
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            max_iter=int(self.params["rounds"]),
            learning_rate=float(self.params["learning_rate"]),
            max_leaf_nodes=int(self.params["leaves"]),
            min_samples_leaf=min(int(self.params["min_leaf"]), max(1, len(y) // 10)),
            l2_regularization=float(self.params["l2"]),
            early_stopping=validation is not None,
            n_iter_no_change=int(self.params["patience"]),
            tol=0.0,
            random_state=self.seed % 2**32,  # it takes no larger one
        )
        held_out = {} if validation is None else {"X_val": validation[0], "y_val": validation[1]}
        model.fit(x, y, **held_out)
        self.steps = model.n_iter_
        if validation is not None:
            self.steps = max(1, int(np.argmax(model.validation_score_)))  # the first has no tree
            # scores are negative losses, which are half the mean squared errors
            self.curve = [
                (step, math.sqrt(max(0.0, -2.0 * float(score))))
                for step, score in enumerate(model.validation_score_)
                if step and step % ROUNDS_PER_REPORT == 0
            ]
        return TreeEnsemble.from_histogram_boosting(model, self.steps)
