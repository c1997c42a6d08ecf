"""How intervals were found, in words."""

from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.results.report_parts import describe_interval_methods


def make_estimate(method: str, note: str | None = None) -> Estimate:
    return Estimate(0.5, 0.4, 0.6, method, note=note)


def test_each_method_and_each_doubt_is_said_once_with_those_it_is_about():
    few = "unsure: 3 clusters only"
    found = {
        "mae": make_estimate("jackknife", f"{few}; covered as little as 76 % in a study"),
        "bias": make_estimate("jackknife", f"{few}; covered as little as 93 % in a study"),
        "accuracy": make_estimate("wilson", few),
        "f1": make_estimate("jackknife", f"{few}; fewer than 10 items of A1"),
    }
    expected = "Intervals by the jackknife over clusters: mae, bias, f1; by Wilson: accuracy."
    methods, doubts = describe_interval_methods(found)
    assert methods == expected
    assert doubts == (
        "Keep in mind: 3 clusters only; covered as little as 76 to 93 % in a "
        "study (mae, bias); fewer than 10 items of A1 (f1)."
    )


def test_what_has_no_interval_is_in_no_list_of_methods():
    found = {"mae": make_estimate("delta"), "max": make_point_estimate(1.0, "no method covers it")}
    assert describe_interval_methods(found) == [
        "Intervals by the delta method: mae.",
        "No interval for max: no method covers it.",
    ]
    assert describe_interval_methods({"mae": make_estimate("delta")}) == [
        "Intervals by the delta method."
    ]
