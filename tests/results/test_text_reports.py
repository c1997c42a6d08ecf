"""The classification report: scikit-learn's numbers, and the order of the levels beside them."""

import inspect
import re

import numpy as np
import pytest
import sklearn.exceptions
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

import ordinate
from ordinate.errors import BadOption, BadScale, MissingLabels, OffScale, OrdinateError
from ordinate.integrations import sklearn as ordinate_sklearn

CEFR = ["A1", "A2", "B1", "B2", "C1", "C2"]
RULE = "=" * 80
HEADER = ["precision", "recall", "f1-score", "support"]
GOLD = ["A1", "A1", "A2", "B1", "B1", "B1", "B2", "C1", "C2", "C2"]
PREDICTED = ["A1", "A2", "A2", "B1", "B2", "C1", "B2", "B2", "C2", "A1"]


def rows(report: str) -> dict[str, list[str]]:
    """Return the cells of each row by its name: levels and averages have four, totals two."""
    found = {}
    for line in report.splitlines():
        cells = re.fullmatch(r"\s*(\S.*?)((?:\s+(?:\d+\.\d+|\d+|n/a))+)", line)
        if cells:
            found[cells[1]] = cells[2].split()
    return found


def both(gold: list, predicted: list, digits: int = 2, **names) -> tuple[dict, dict]:
    """Return the rows of both reports where every level occurs on both sides."""
    levels = sorted(set(gold))
    assert set(predicted) == set(levels)
    ours = ordinate.classification_report(gold, predicted, levels, digits=digits, **names)
    theirs = sklearn.metrics.classification_report(
        gold, predicted, labels=levels, digits=digits, **names
    )
    return rows(ours), rows(theirs)


@given(data=st.data(), size=st.integers(2, 6), digits=st.integers(1, 6))
@examples(60)
def test_the_numbers_are_those_of_scikit_learn_where_every_level_occurs(data, size, digits):
    level = st.sampled_from(CEFR[:size])
    pairs = data.draw(st.lists(st.tuples(level, level), max_size=40))
    gold = [g for g, _ in pairs] + CEFR[:size]
    predicted = [p for _, p in pairs] + data.draw(st.permutations(CEFR[:size]))
    ours, theirs = both(gold, predicted, digits)
    assert theirs.keys() == {*CEFR[:size], "macro avg", "weighted avg", "accuracy"}
    for name, cells in theirs.items():
        # Both round; a value on the edge between two roundings may go either way.
        assert float(ours[name][-1]) == float(cells[-1]), name
        for mine, other in zip(ours[name][:-1], cells[:-1], strict=True):
            assert len(mine) == len(other), name
            assert float(mine) == pytest.approx(float(other), abs=1.01 * 10**-digits), name


def test_the_numbers_are_to_the_digit_those_of_scikit_learn():
    ours, theirs = both(GOLD, PREDICTED, 4)
    assert {name: ours[name] for name in theirs} == theirs


def test_the_averages_are_those_of_scikit_learn_where_levels_are_absent():
    gold, predicted = ["A1", "A1", "B1", "C2"], ["A1", "A2", "A2", "C2"]
    ours = rows(ordinate.classification_report(gold, predicted, digits=4))
    theirs = rows(sklearn.metrics.classification_report(gold, predicted, digits=4, zero_division=0))
    for name in ("macro avg", "weighted avg", "accuracy"):
        assert ours[name] == theirs[name]


def lines_of_both(report: str) -> list[str]:
    """Return the lines that scikit-learn's report has, too."""
    lines = report.splitlines()[3:]
    return [line for line in lines if not line.strip().startswith("adjacent")]


@given(data=st.data(), size=st.integers(2, 6), digits=st.integers(0, 14))
@examples(60)
def test_the_text_is_line_by_line_that_of_scikit_learn(data, size, digits):
    level = st.sampled_from(CEFR[:size])
    pairs = data.draw(st.lists(st.tuples(level, level), max_size=30))
    # One prediction is right: without any, scikit-learn writes its counts as 1.0.
    gold = [g for g, _ in pairs] + [*CEFR[:size], "A1"]
    predicted = [p for _, p in pairs] + [*data.draw(st.permutations(CEFR[:size])), "A1"]
    weights = data.draw(
        st.none() | st.lists(st.integers(1, 8), min_size=len(gold), max_size=len(gold))
    )
    options = {"digits": digits, "sample_weight": weights}
    ours = ordinate.classification_report(gold, predicted, CEFR[:size], **options)
    theirs = sklearn.metrics.classification_report(gold, predicted, **options)
    for mine, other in zip(lines_of_both(ours), theirs.splitlines(), strict=True):
        # Both round, and a value on the edge may go either way: digits are compared above.
        numbers = [re.sub(r"\d", "0", line) for line in (mine, other)]
        assert numbers[0] == numbers[1]


@pytest.mark.parametrize("zero_division", [0, 1, np.nan])
@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 1.0, 10)])
@pytest.mark.parametrize("digits", [2, 12])
@pytest.mark.parametrize("names", [None, ["a name that is longer than any other", *"bcd"]])
def test_the_text_is_scikit_learns_to_the_letter(zero_division, weights, digits, names):
    gold = ["A1", "A1", "A2", "B1", "B1", "B1", "A1", "A2", "B1", "A1"]
    predicted = ["A1", "A2", "A2", "A1", "B2", "A1", "A1", "B2", "A2", "A1"]  # never B1, B2 no gold
    options = {"digits": digits, "sample_weight": weights, "target_names": names}
    options["zero_division"] = zero_division
    ours = ordinate.classification_report(gold, predicted, ["A1", "A2", "B1", "B2"], **options)
    theirs = sklearn.metrics.classification_report(gold, predicted, **options)
    assert lines_of_both(ours) == theirs.splitlines()


@pytest.mark.parametrize("seed", [6, 12, 14])
def test_sums_of_weights_have_every_digit_of_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    gold, predicted = rng.integers(0, 3, (2, 30))
    weights = rng.random(30)
    ours = ordinate.classification_report(gold, predicted, "0..2", sample_weight=weights)
    theirs = sklearn.metrics.classification_report(gold, predicted, sample_weight=weights)
    assert lines_of_both(ours) == theirs.splitlines()


@pytest.mark.parametrize("zero_division", [0, 1, np.nan])
@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 1.0, 10)])
def test_the_dictionary_is_scikit_learns_and_adjacent_accuracy(zero_division, weights):
    options = {"zero_division": zero_division, "sample_weight": weights, "output_dict": True}
    ours = ordinate.cefr_classification_report(GOLD, PREDICTED, **options)
    theirs = sklearn.metrics.classification_report(GOLD, PREDICTED, **options)
    near = ordinate.score("accuracy_within", GOLD, PREDICTED, scale="cefr", weights=weights)
    assert ours.pop("adjacent accuracy") == pytest.approx(near)
    assert list(ours) == list(theirs)
    for name, numbers in theirs.items():
        assert ours[name] == pytest.approx(numbers, nan_ok=True), name


ABSENT = {  # levels that are declared, and occur on neither side
    "1..4": (ordinate.classification_report, [1, 2, 3, 4], [1, 2, 3, 3], [1, 2, 3, 2]),
    "words": (ordinate.classification_report, ["low", "mid", "high"], ["mid"] * 4, ["high"] * 4),
    "CEFR": (ordinate.cefr_classification_report, CEFR, ["A1", "A1", "B1", "C2"], ["A1"] * 4),
    "undeclared": (ordinate.classification_report, None, ["A1", "B1", "B1"], ["A1", "A1", "B1"]),
}


@pytest.mark.parametrize("zero_division", [0, 1, 0.0, np.nan])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", ABSENT)
def test_with_a_number_for_undefined_absent_levels_are_as_in_scikit_learn(
    case, weighted, zero_division
):
    report, labels, gold, predicted = ABSENT[case]
    options = {"zero_division": zero_division, "labels": labels}
    if weighted:
        options["sample_weight"] = np.linspace(0.5, 2, len(gold))
    ours = report(gold, predicted, **options, output_dict=True)
    theirs = sklearn.metrics.classification_report(gold, predicted, **options, output_dict=True)
    for name, numbers in theirs.items():
        assert ours[name] == pytest.approx(numbers, nan_ok=True), name
    lines = sklearn.metrics.classification_report(gold, predicted, **options).splitlines()
    shared = lines_of_both(report(gold, predicted, **options))
    if labels is None:
        assert {*lines} <= {*shared}
    elif "low" not in labels:  # where no prediction is right, it writes counts as 1.0
        assert shared == lines


def test_without_one_they_are_no_part_of_averages():
    ours = ordinate.classification_report([1, 2, 3, 3], [1, 2, 3, 2], "1..4", output_dict=True)
    assert np.isnan(ours["4"]["f1-score"])
    assert ours["macro avg"]["f1-score"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)


@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.0]])
def test_averages_of_levels_without_support_are_scikit_learns(weights):
    gold, predicted = ["A1", "A1", "A1"], ["A2", "B1", "B1"]  # no precision of the only gold level
    options = {"zero_division": np.nan, "sample_weight": weights, "output_dict": True}
    ours = ordinate.classification_report(gold, predicted, ["A1", "A2", "B1"], **options)
    theirs = sklearn.metrics.classification_report(gold, predicted, **options)
    assert theirs["weighted avg"]["precision"] == 0.0
    for name in ("macro avg", "weighted avg"):
        assert ours[name] == pytest.approx(theirs[name], nan_ok=True)


def test_by_default_what_is_undefined_is_said_and_averages_are_scikit_learns():
    gold, predicted = ["A1", "A1", "B1", "C2"], ["A1", "A2", "A2", "C2"]
    ours = ordinate.classification_report(gold, predicted, output_dict=True)
    assert np.isnan(ours["B1"]["precision"])
    assert np.isnan(ours["A2"]["recall"])
    with pytest.warns(sklearn.exceptions.UndefinedMetricWarning, match="ill-defined"):
        theirs = sklearn.metrics.classification_report(gold, predicted, output_dict=True)
    for name in ("accuracy", "macro avg", "weighted avg"):
        assert ours[name] == pytest.approx(theirs[name])


@pytest.mark.parametrize("value", [2, "none", None, -1.0])
def test_another_zero_division_is_refused(value):
    with pytest.raises(BadOption, match=r"zero_division=.* is none of 'warn', 0, 1 and nan"):
        ordinate.classification_report(GOLD, PREDICTED, zero_division=value)


def test_a_cefr_report_has_every_level_and_takes_no_other_label():
    report = ordinate.cefr_classification_report(["A1", "A2"], ["A1", "A1"])
    assert list(rows(report))[:6] == CEFR
    assert report == ordinate.classification_report(["A1", "A2"], ["A1", "A1"], "cefr")
    with pytest.raises(OffScale, match="Label 'B3'"):
        ordinate.cefr_classification_report(["A1"], ["B3"])


def test_sections_and_columns_come_in_the_usual_order():
    lines = ordinate.classification_report(GOLD, PREDICTED).splitlines()
    assert lines[:3] == [RULE, "CLASSIFICATION REPORT", RULE]
    assert lines[3].split() == HEADER
    names = [*CEFR, "accuracy", "adjacent accuracy", "macro avg", "weighted avg"]
    assert list(rows("\n".join(lines[4:]))) == names
    filled = [line for line in lines[4:] if line.strip()]
    assert len(filled) == len(names)


def test_every_number_stands_under_its_header():
    lines = ordinate.classification_report(GOLD, PREDICTED).splitlines()
    ends = {name: lines[3].index(name) + len(name) for name in HEADER}
    for line in lines[4:]:
        if line.strip().startswith((*CEFR, "macro", "weighted")):
            cells = [match.end() for match in re.finditer(r"\S+", line)][-4:]
            assert cells == list(ends.values()), line
        elif line.strip():
            cells = [match.end() for match in re.finditer(r"\S+", line)][-2:]
            assert cells == [ends["f1-score"], ends["support"]], line


@pytest.mark.parametrize("digits", [2, 5, 6, 12])
@pytest.mark.parametrize("names", [None, ["a name that is longer than any other", *"bcdef"]])
def test_every_number_has_a_space_before_it(digits, names):
    report = ordinate.classification_report(GOLD, PREDICTED, None, names, digits)
    found = rows(report)
    assert [len(cells) for cells in found.values()] == [4] * 6 + [2] * 2 + [4] * 2
    assert list(found)[6:8] == ["accuracy", "adjacent accuracy"]


def test_the_report_is_a_text_that_ends_with_its_last_line():
    report = ordinate.classification_report(GOLD, PREDICTED)
    assert isinstance(report, str)
    assert report.endswith("\n")
    assert not report.endswith("\n\n")
    assert max(map(len, report.splitlines())) == 80


def test_support_is_the_number_of_gold_items():
    found = rows(ordinate.classification_report(GOLD, PREDICTED))
    assert [int(found[level][3]) for level in CEFR] == [GOLD.count(level) for level in CEFR]
    for name in ("macro avg", "weighted avg", "accuracy", "adjacent accuracy"):
        assert int(found[name][-1]) == len(GOLD)


def test_accuracies_are_those_of_the_catalogue():
    found = rows(ordinate.classification_report(GOLD, PREDICTED, digits=4))
    exact = ordinate.score("accuracy", GOLD, PREDICTED, scale="cefr")
    near = ordinate.score("accuracy_within", GOLD, PREDICTED, scale="cefr")
    assert float(found["accuracy"][0]) == pytest.approx(exact, abs=1e-4)
    assert float(found["adjacent accuracy"][0]) == pytest.approx(near, abs=1e-4)
    steps = [abs(CEFR.index(g) - CEFR.index(p)) for g, p in zip(GOLD, PREDICTED, strict=True)]
    assert float(found["adjacent accuracy"][0]) == pytest.approx(np.mean(np.array(steps) <= 1))


@pytest.mark.parametrize("digits", [0, 1, 3, 8])
def test_digits_are_the_places_after_the_point(digits):
    report = ordinate.classification_report(GOLD, PREDICTED, digits=digits)
    line = next(x for x in report.splitlines() if x.strip().startswith("B1"))
    for cell in line.split()[1:4]:
        assert len(cell.partition(".")[2]) == digits


def test_target_names_replace_the_labels():
    names = ["breakthrough", "waystage", "threshold", "vantage", "proficiency", "a very long name"]
    report = ordinate.classification_report(GOLD, PREDICTED, target_names=names)
    plain = ordinate.classification_report(GOLD, PREDICTED)
    assert list(rows(report))[:6] == names
    assert list(rows(report).values()) == list(rows(plain).values())
    theirs = sklearn.metrics.classification_report(GOLD, PREDICTED, target_names=names)
    assert {k: v for k, v in rows(report).items() if k != "adjacent accuracy"} == rows(theirs)


def test_names_that_are_too_few_are_refused():
    with pytest.raises(BadScale, match="2 display names for 6 levels"):
        ordinate.classification_report(GOLD, PREDICTED, target_names=["a", "b"])


def test_a_name_cannot_drive_the_terminal():
    names = ["\x1b[31mred", "new\nline", "c", "d", "e", "f"]
    report = ordinate.classification_report(GOLD, PREDICTED, target_names=names)
    assert not [x for x in report if not x.isprintable() and x != "\n"]
    plain = ordinate.classification_report(GOLD, PREDICTED)
    assert len(report.splitlines()) == len(plain.splitlines())


def test_absent_levels_are_shown_and_what_is_undefined_is_not_0():
    gold, predicted = ["A1", "A1", "B1", "C2"], ["A1", "A2", "A2", "C2"]
    found = rows(ordinate.classification_report(gold, predicted))
    assert found["A1"] == ["1.00", "0.50", "0.67", "2"]
    assert found["A2"] == ["0.00", "n/a", "0.00", "0"]  # predicted, and never gold
    assert found["B1"] == ["n/a", "0.00", "0.00", "1"]  # gold, and never predicted
    assert found["B2"] == found["C1"] == ["n/a", "n/a", "n/a", "0"]
    assert found["C2"] == ["1.00", "1.00", "1.00", "1"]


def test_labels_are_the_scale_lowest_first():
    gold, predicted = ["low", "mid", "high"], ["high", "mid", "high"]
    rising = ordinate.classification_report(gold, predicted, labels=["low", "mid", "high"])
    other = ordinate.classification_report(gold, predicted, labels=["mid", "low", "high"])
    assert list(rows(rising))[:3] == ["low", "mid", "high"]
    assert list(rows(other))[:3] == ["mid", "low", "high"]
    assert rows(rising)["adjacent accuracy"] == ["0.67", "3"]
    assert rows(other)["adjacent accuracy"] == ["1.00", "3"]  # low and high are neighbours now
    for name in ("low", "mid", "high", "macro avg", "weighted avg", "accuracy"):
        assert rows(rising)[name] == rows(other)[name]


@pytest.mark.parametrize("labels", ["low,mid,high", ordinate.Scale(["low", "mid", "high"])])
def test_a_scale_is_declared_as_everywhere_else(labels):
    report = ordinate.classification_report(["low", "high"], ["mid", "high"], labels)
    assert list(rows(report))[:3] == ["low", "mid", "high"]


def test_numbers_are_levels_too():
    found = rows(ordinate.classification_report([1, 2, 3, 3], [1, 2, 3, 1], "1..3"))
    assert found["3"] == ["1.00", "0.50", "0.67", "2"]


def test_without_labels_only_a_preset_of_words_is_a_scale():
    assert list(rows(ordinate.classification_report(["A1"], ["A1"])))[:6] == CEFR
    with pytest.raises(BadScale, match="No scale was declared for the labels 1, 2"):
        ordinate.classification_report([1, 2], [1, 2])


def test_a_cefr_report_of_other_labels_is_refused():
    with pytest.raises(
        OffScale, match=r"Label 'B3' \(row 2 of predicted\) is not on the scale A1 <"
    ):
        ordinate.classification_report(["A1", "A2"], ["A1", "B3"], labels="cefr")


def test_a_missing_prediction_is_refused():
    with pytest.raises(MissingLabels, match=r"1 of 2 predictions are missing \(row 2\)"):
        ordinate.classification_report(["A1", "A2"], ["A1", None])


ADVISED = re.compile(r"\b(\w+)=")
FLAT = [[1 / 3] * 3] * 3


@pytest.mark.parametrize(
    ("function", "columns", "declared"),
    [
        (ordinate.classification_report, ([0, 1, 2], [0, 1, 1]), {}),
        (ordinate.classification_report, ([0, None, 2], [0, 1, 1]), {"labels": "0..2"}),
        (ordinate.classification_report, ([0, 1, 2], [0, None, 1]), {"labels": "0..2"}),
        (ordinate.classification_report, ([0, 0.5, 2], [0, 1, 1]), {"labels": "0..2"}),
        (ordinate.calibration_report, ([0, 1, 2], FLAT), {}),
        (ordinate.calibration_report, ([0, 1, 2], FLAT), {"labels": "0..2", "n_bins": 0}),
        (ordinate.calibration_report, ([0, None, 2], FLAT), {"labels": "0..2"}),
        (ordinate.calibration_report, ([0, 1, 2], [[0.3, 0.3, 0.39]] * 3), {"labels": "0..2"}),
        (ordinate_sklearn.cem_ord, ([0, 1, 2], [0, 1, 1]), {}),
        (ordinate_sklearn.quadratic_kappa, ([0, None, 2], [0, 1, 1]), {"labels": "0..2"}),
        (ordinate_sklearn.rps, ([0, 1, 2], FLAT), {}),
        (ordinate_sklearn.rps, ([0, None, 2], FLAT), {"labels": "0..2"}),
    ],
)
def test_an_error_advises_only_arguments_that_the_function_has(function, columns, declared):
    with pytest.raises(OrdinateError, match=r"labels|levels|first|bins") as caught:
        function(*columns, **declared)
    assert set(ADVISED.findall(str(caught.value))) <= set(inspect.signature(function).parameters)
