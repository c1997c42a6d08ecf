"""Metrics, and the results that hold them, can be pickled."""

import pickle
import sys

import pytest

import ordinate
from ordinate.metrics import find_metric, list_metrics
from ordinate.metrics.catalogue import CATALOGUE, SUMMARY_TYPES, get_summary_type, metric

GOLD, PREDICTED = [1, 2, 3, 1, 2], [1, 2, 2, 1, 3]
ROWS = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.5, 0.4], [0.9, 0.1, 0.0], [0.2, 0.2, 0.6]]
RESULTS = {
    "evaluation": lambda: ordinate.evaluate(GOLD, PREDICTED, "1..3"),
    "evaluation with probabilities": lambda: ordinate.evaluate(
        GOLD, PREDICTED, "1..3", probabilities=ROWS
    ),
    "comparison": lambda: ordinate.compare(
        GOLD, {"a": PREDICTED, "b": GOLD}, "1..3", metrics="mae,weighted_kappa(power=1)"
    ),
    "regression": lambda: ordinate.evaluate_regression([1.0, 2.0, 4.0], [1.5, 2.0, 3.0]),
}
OWN_MODULE = """
from ordinate.metrics.catalogue import metric

@metric(direction="minimize")
def own_in_a_module(matrix, power: float = 1.0):
    return 1.0 - matrix.share[..., 0, 0] ** power
"""


def copy(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - of our own


@pytest.mark.parametrize("name", SUMMARY_TYPES)
def test_a_metric_of_the_catalogue_is_the_same_after_a_pickle(name):
    for each in list_metrics(get_summary_type(name)):
        assert copy(each) is each


def test_options_and_aliases_survive_a_pickle():
    found = copy(find_metric("weighted_kappa(power=1)"))
    assert found.expression == "weighted_kappa(power=1)"
    alias = next(m for m in CATALOGUE.values() if m.alias_of is not None)
    assert copy(alias).name == alias.name


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("avgrec", "macro_accuracy"),
        ("average_recall", "macro_accuracy"),
        ("maac", "macro_accuracy"),
        ("ordinal_classification_index", "oci"),
        ("1_minus_normalized_mse", "ordinal_distance_quadratic"),
    ],
)
def test_metrics_are_found_under_the_names_of_the_documents(called, name):
    assert find_metric(called).alias_of == name
    matrix = ordinate.ConfusionMatrix.of(GOLD, PREDICTED, "1..3")
    assert find_metric(called)(matrix) == find_metric(name)(matrix)


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_a_result_survives_a_pickle(make):
    result = make()
    again = copy(result)
    assert again.to_dict() == result.to_dict()
    assert str(again) == str(result)


def test_a_metric_of_a_module_is_declared_anew_where_it_is_not_known(tmp_path, monkeypatch):
    (tmp_path / "own_metrics_module.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    own = __import__("own_metrics_module").own_in_a_module.with_options(power=2.0)
    stored = pickle.dumps(own)
    del CATALOGUE[own.name, own.summary], sys.modules["own_metrics_module"]
    assert pickle.loads(stored).expression == "own_in_a_module(power=2.0)"  # noqa: S301 - our own
    del CATALOGUE[own.name, own.summary], sys.modules["own_metrics_module"]


def test_a_metric_of_a_function_that_cannot_be_imported_says_so():
    @metric(direction="minimize")
    def own_inside_a_function(matrix):
        return 1.0 - matrix.share[..., 0, 0]

    del CATALOGUE[own_inside_a_function.name, own_inside_a_function.summary]
    with pytest.raises((pickle.PicklingError, AttributeError), match="own_inside_a_function"):
        pickle.dumps(own_inside_a_function)
