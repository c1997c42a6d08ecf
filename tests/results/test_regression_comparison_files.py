"""Regression models in files: what is a number there, and what is missing."""

import pytest

import ordinate
from ordinate.errors import BadValues, MissingLabels


def write(path, *, target="1.5", predicted="2", mark="."):
    rows = [(f"{k}.5", f"{k}", f"{k + k % 3}.25") for k in range(12)]
    rows += [(target, predicted, "1"), ("3", "-", "4"), ("5", "6", "n/a"), ("", "6", "7")]
    lines = [";".join(cells).replace(".", mark) for cells in (("t", "a", "b"), *rows)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("mark", [".", ","])
def test_what_people_write_where_there_is_no_number_is_missing(tmp_path, mark):
    path = write(tmp_path / "some.csv", mark=mark)
    files = ordinate.Files(path, decimal="," if mark == "," else None)
    with pytest.raises(MissingLabels, match="1 of 16 targets are missing"):
        ordinate.compare(files, ["a", "b"], target="t")
    found = ordinate.compare(files, ["a", "b"], target="t", missing="drop", resamples=100)
    assert (found.n, found.dropped) == (13, 3)


@pytest.mark.parametrize("cells", [{"target": "inf"}, {"predicted": "-inf"}])
def test_infinity_is_refused_and_never_left_out(tmp_path, cells):
    path = write(tmp_path / "some.csv", **cells)
    with pytest.raises(BadValues, match="inf, not a finite number"):
        ordinate.compare(path, ["a", "b"], target="t", missing="drop")
