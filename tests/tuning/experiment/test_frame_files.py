"""Data frames as temporary files: errors name the frame and the argument, no file and no flag."""

import pytest

import ordinate
from ordinate.errors import BadInput, OrdinateError
from ordinate.tuning.experiment.frame_files import write_frame

TABLE = {"level": ["A1", "B1"] * 10, "text": [f"text {k}" for k in range(20)]}
NUMBERS = {"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 5.0]}


def tune(data, **options):
    return ordinate.tune(data, models="logistic", trials=1, **options)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: tune({"level": TABLE["level"], "a": TABLE["text"], "b": TABLE["text"]}),
            r"^Which column of the data frame holds the texts\? Name it with text_column=…\. ",
        ),
        (lambda: tune(TABLE, text_column="words"), r"^The data frame has .* \(text_column=…\)"),
        (lambda: tune(TABLE, id_column="nr"), r"^The data frame has .* \(id_column=…\)"),
        (lambda: tune(TABLE, group_column="nr"), r"^The data frame has .* \(group_column=…\)"),
        (
            lambda: tune(TABLE, test={"level": ["A1"], "word": ["x"]}, text_column="text"),
            r"^The data frame of the test has no column 'text' \(text_column=…\)",
        ),
        (lambda: tune(TABLE, scale="B1,C1"), r"of the data frame\) .* \(scale=…\)\.$"),
        (lambda: ordinate.tune_regression(NUMBERS, "c"), r"^The data frame has no column 'c'"),
        (lambda: ordinate.tune_regression([[1, 2]], "c"), r"^list cannot .* columns by name\.$"),
        (lambda: ordinate.tune_regression(iter([1]), "c"), r"^list_iterator cannot .* by name\.$"),
        (
            lambda: ordinate.tune_regression(NUMBERS | {"c": [[1], [1, 2]]}, "c"),
            r"^dict cannot be read as a table\. Pass .* by name: ",
        ),
    ],
    ids=["which", "text", "id", "group", "test", "scale", "target", "list", "iterator", "ragged"],
)
def test_errors_name_the_frame_and_the_argument(call, said):
    with pytest.raises(OrdinateError, match=said) as problem:
        call()
    for word in ("ordinate-", ".csv", ".parquet", "--", "replacement scan"):
        assert word not in str(problem.value)


def test_errors_of_files_name_the_file_and_the_argument(tmp_path):
    (tmp_path / "own.csv").write_text("a,b,level\nx,y,A1\n")
    with pytest.raises(BadInput, match=r"own\.csv has no column 'c' \(text_column=…\)"):
        tune(tmp_path / "own.csv", text_column="c")
    with pytest.raises(BadInput, match=r"^Other\.csv$"), write_frame(NUMBERS):
        raise BadInput("other.csv")


def test_the_test_that_is_made_of_a_frame_is_called_so():
    assert [one.name for one in tune(TABLE, folds=2).tests] == ["test"]
