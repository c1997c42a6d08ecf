"""Configuration files: every flag of a search, read, refused and written again."""

import math

import pytest
from command import run

from ordinate.cli import tune, tune_regression
from ordinate.cli.config import format_command, format_toml, merge_flags, read_config
from ordinate.cli.flags import list_flag_types
from ordinate.cli.main import build_parser
from ordinate.cli.search_runs import REPORT_FLAGS
from ordinate.errors import BadInput, BadOption
from ordinate.tuning.classify.settings import Settings as ClassificationSettings
from ordinate.tuning.regress.settings import Settings as RegressionSettings

KINDS = {"top_k": int, "metric": str, "weight_alpha": float, "nested": bool, "train": list}
FLAGS = {
    "tune": tune.DATA_FLAGS | list_flag_types(ClassificationSettings) | REPORT_FLAGS,
    "tune-regression": (
        tune_regression.DATA_FLAGS | list_flag_types(RegressionSettings) | REPORT_FLAGS
    ),
}


@pytest.fixture
def config(tmp_path):
    def make(text: str) -> str:
        path = tmp_path / "tune.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return make


def test_what_is_written_is_read_again(config):
    values = {"top_k": 3, "metric": "weighted_kappa(power=1)", "weight_alpha": 0.1, "nested": False}
    values["train"] = ['a "quoted" name', "ütf\\8", "line\nbreak", "\x7f"]
    assert read_config(config(format_toml(values)), KINDS) == values


@pytest.mark.parametrize("number", [0.1, 1e-300, 1e300, -5.0, math.inf])
def test_numbers_keep_every_digit(config, number):
    assert read_config(config(format_toml({"weight_alpha": number})), KINDS) == {
        "weight_alpha": number
    }


def test_flags_may_be_spelled_with_dashes_or_underscores(config):
    assert (
        read_config(config("top-k = 2"), KINDS)
        == read_config(config("top_k = 2"), KINDS)
        == {"top_k": 2}
    )
    with pytest.raises(BadOption, match="top-k is set twice"):
        read_config(config("top-k = 2\ntop_k = 3"), KINDS)


def test_a_whole_number_will_do_for_a_number_and_one_text_for_a_list(config):
    found = read_config(config('weight-alpha = 1\ntrain = "a"'), KINDS)
    assert found == {"weight_alpha": 1.0, "train": ["a"]}
    assert isinstance(found["weight_alpha"], float)


def test_a_table_may_be_a_string_of_json(config):
    kinds = {"params": dict}
    expected = {"params": {"cost": 5, "kernel": "rbf"}}
    assert read_config(config("params = {cost = 5, kernel = 'rbf'}"), kinds) == expected
    assert read_config(config(format_toml(expected)), kinds) == expected
    with pytest.raises(BadOption, match="params takes a table, such as"):
        read_config(config("params = 3"), kinds)
    with pytest.raises(BadOption, match="params takes a JSON object"):
        read_config(config("params = '[3]'"), kinds)


def test_the_command_line_wins(config):
    path = config('top-k = 2\nmetric = "mae"')
    given = {"top_k": 7, "metric": None, "nested": False, "other": 1}
    assert merge_flags(given, path, KINDS) == {"top_k": 7, "metric": "mae", "nested": False}
    assert merge_flags(given, None, KINDS) == {"top_k": 7, "nested": False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topk = 2", "'topk' is no flag of this command. Did you mean 'top-k'"),
        ("[tune]\ntop-k = 2", "'tune' is no flag"),
        ("top-k = 2.5", "top-k takes an integer, not 2.5"),
        ('top-k = "2"', "top-k takes an integer, not '2'"),
        ("top-k = true", "top-k takes an integer, not True"),
        ("nested = 1", "nested takes true or false, not 1"),
        ("metric = ['mae']", "metric takes a string, not"),
        ("train = [1]", "train takes a string or a list of strings"),
        ("weight-alpha = true", "weight-alpha takes a number, not True"),
        ("top-k = ", "is no TOML: .* Write lines such as seed = 5"),  # a flag of every command
        ("top-k = 1\ntop-k = 2", "is no TOML"),
    ],
)
def test_bad_files_have_one_message_that_names_them(config, text, message):
    with pytest.raises((BadOption, BadInput), match=message) as caught:
        read_config(config(text), KINDS)
    assert "tune.toml" in str(caught.value)


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_config(str(tmp_path / "none.toml"), KINDS)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is no TOML"):
        read_config(str(tmp_path / "binary.toml"), KINDS)


def test_a_command_can_be_given_again():
    text = format_command(
        "tune", {"top_k": 2, "nested": False, "weight_metric": True, "train": ["a b"]}
    )
    assert text == "ordinate tune --top-k 2 --no-nested --weight-metric --train 'a b'"


@pytest.mark.parametrize("command", FLAGS)
def test_the_file_can_set_every_flag_of_the_command(command):
    (commands,) = (one for one in build_parser()._actions if one.dest == "command")
    flags = {one.dest for one in commands.choices[command]._actions}
    assert FLAGS[command].keys() == flags - {"help", "config", "load", "propose_map"}


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_configuration_file_runs_no_python(tmp_path, config, more):
    code = tmp_path / "own.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    path = config(f'experiment = "{tmp_path}"\nload = ["{code}"]')
    ran = run("tune", "--config", path, *more)
    assert (ran.code, ran.out) == (2, "")
    assert "load runs Python code, which no file may ask for. Say --load FILE.py" in ran.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", FLAGS)
def test_no_command_takes_code_from_a_configuration_file(config, command):
    with pytest.raises(BadOption, match="'load' is no flag of this command"):
        read_config(config("load = ['own.py']"), FLAGS[command])
