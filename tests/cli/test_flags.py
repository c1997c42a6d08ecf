"""Flags that come from settings: name, type, default and help from one declaration."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from ordinate.cli.config import merge_flags
from ordinate.cli.flags import InputPath, StorePath, add_flags, collect_given, list_flag_types
from ordinate.cli.options import HelpFormatter
from ordinate.errors import BadOption
from ordinate.settings import Setting


@dataclass
class Example:
    metric: Annotated[str, Setting("name of a metric")]
    folds: Annotated[int, Setting("of 100 % of the rows", metavar="K", least=2)] = 5
    timeout: Annotated[float | None, Setting("of the run", metavar="SECONDS")] = None
    decode: Annotated[Literal["metric", "rounded_mean"], Setting("decision rule")] = "metric"
    nested: Annotated[bool, Setting("nested estimate")] = False
    models: Annotated[Sequence[str], Setting("model types")] = ("a", "b")
    params: Annotated[Mapping[str, Any], Setting("by name")] = field(default_factory=dict)
    folder: Annotated[str | None, Setting("to read", letter="-e", path="folder")] = None
    file: Annotated[str | None, Setting("to read", default="the first", path="file")] = None


def make_parser(**further):
    parser = argparse.ArgumentParser(formatter_class=HelpFormatter)
    add_flags(parser, Example, **further)
    return parser


def read(line, **further):
    return collect_given(make_parser(**further).parse_args(line.split()), Example)


def test_only_what_was_given_is_there_and_the_class_fills_the_rest():
    assert read("--metric mae") == {"metric": "mae"}
    assert Example(**read("--metric mae --folds 3")) == Example("mae", folds=3)


def test_every_type_of_setting_has_its_flag():
    line = "--metric m --folds 3 --timeout 2 --decode rounded-mean --no-nested --models x,y"
    assert read(line) == {
        "metric": "m",
        "folds": 3,
        "timeout": 2.0,
        "decode": "rounded_mean",
        "nested": False,
        "models": ["x", "y"],
    }
    assert read('--metric m --params {"a":1} --nested') == {
        "metric": "m",
        "params": {"a": 1},
        "nested": True,
    }


def test_a_list_may_be_repeated():
    assert read("--metric m --models a,b --models c")["models"] == ["a", "b", "c"]


def test_paths_are_known_to_be_read():
    found = read("--metric m -e here --file there.csv")
    assert (type(found["folder"]), type(found["file"])) == (StorePath, InputPath)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--metric m --models a,,b", "--models takes names separated by commas"),
        ("--metric m --params [1]", "--params takes a JSON object, not"),
        ("--metric m --params {", "--params takes a JSON object, and that is none"),
    ],
)
def test_what_cannot_be_parsed_is_refused_with_one_message(line, complaint):
    with pytest.raises(BadOption, match=complaint):
        read(line)


@pytest.mark.parametrize("line", ["", "--metric m --folds x", "--metric m --decode other"])
def test_argparse_refuses_what_it_can(line, capsys):
    with pytest.raises(SystemExit):
        read(line)
    assert "error" in capsys.readouterr().err


def test_what_is_required_may_come_from_a_file(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('metric = "mae"\nfolds = 7\nfolder = "x"\nmodels = "a"\n')
    given = read("--folds 3", config=True)
    found = merge_flags(given, str(path), list_flag_types(Example))
    assert Example(**found) == Example("mae", folds=3, folder="x", models=["a"])
    assert type(found["folder"]) is StorePath


def test_help_shows_the_default_of_the_declaration():
    shown = " ".join(make_parser().format_help().split())
    assert "--metric METRIC name of a metric --folds K of 100 % of the rows (default: 5)" in shown
    assert "--timeout SECONDS of the run --decode {metric,rounded_mean}" in shown
    assert "--[no-]nested nested estimate (default: no)" in shown
    assert "--models A,B,… model types (default: a,b) --params JSON by name -e" in shown
    assert "-e FOLDER, --folder FOLDER to read" in shown
    assert shown.endswith("to read (default: the first)")


def test_some_of_the_flags_can_be_had():
    assert read("--folds 3", only=("folds",)) == {"folds": 3}
    assert read("--folds 3", without=("metric",)) == {"folds": 3}
