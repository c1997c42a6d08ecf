import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from ordinate.errors import BadOption
from ordinate.settings import REQUIRED, Setting, check_settings, list_settings


@dataclass
class Example:
    metric: Annotated[str, Setting("name of a metric")]
    folds: Annotated[int, Setting("of cross-validation", metavar="K", least=2)] = 5
    timeout: Annotated[float | None, Setting("seconds", least=0.0)] = None
    decode: Annotated[Literal["metric", "argmax"], Setting("decision rule")] = "metric"
    nested: Annotated[bool, Setting("nested cross-validation")] = False
    models: Annotated[Sequence[str] | str, Setting("model types")] = ("a", "b")
    params: Annotated[Mapping[str, Any], Setting("by model type")] = field(default_factory=dict)
    derived: int = 3


def read(owner):
    return {one.name: one for one in list_settings(owner)}


def test_a_declaration_says_all_that_a_flag_needs():
    declared = read(Example)
    assert "derived" not in declared
    assert {name: one.value_type for name, one in declared.items()} == {
        "metric": str,
        "folds": int,
        "timeout": float,
        "decode": str,
        "nested": bool,
        "models": list,
        "params": dict,
    }
    assert declared["decode"].choices == ("metric", "argmax")
    assert declared["metric"].default is REQUIRED
    assert declared["params"].default == {}
    assert declared["folds"].flag == "--folds"


def test_keyword_arguments_of_a_function_are_settings_too():
    def tune(data: str, *, seed: Annotated[int, Setting("of all draws", least=0)] = 0) -> None:
        del data, seed

    assert [(one.name, one.default) for one in list_settings(tune)] == [("seed", 0)]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"folds": 1}, "--folds takes an integer of at least 2, not 1"),
        ({"folds": 2.5}, "--folds takes an integer"),
        ({"folds": True}, "--folds takes an integer"),
        ({"timeout": math.nan}, "--timeout takes a finite number of at least 0"),
        ({"decode": "agrmax"}, "--decode takes metric or argmax, not 'agrmax'. Did you mean"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_the_name_of_its_flag(values, complaint):
    with pytest.raises(BadOption, match=complaint):
        check_settings(Example("mae", **values))


def test_what_may_be_none_may_be_none():
    check_settings(Example("mae", timeout=None, folds=2))
