"""Rows of a database in place of files: counted there, read only, its password in no message."""

import json
import sqlite3
from contextlib import closing

import duckdb
import pytest
from command import run
from evaluate_reports import PAIRS, close, report, write

pytestmark = pytest.mark.usefixtures("here")
ROWS = [("A1", "A1", "A2"), ("B1", "B2", "B1"), ("C1", "B2", "C1")]
QUERY = ("--query", "select * from items", "--gold", "gold")
TWO = ("--systems", "predicted,rival", "--metrics", "mae", "--resamples", "100")
PASSWORDS = ("open/sesame@1", "open%2Fsesame%401", "//sesame")


def make_sqlite():
    with closing(sqlite3.connect("runs.db")) as connection:
        connection.execute("create table items (gold text, predicted text, rival text)")
        connection.executemany("insert into items values (?, ?, ?)", ROWS)
        connection.commit()
    return "sqlite:///runs.db"


def make_duckdb():
    with closing(duckdb.connect("runs.duckdb")) as connection:
        connection.execute("create table items (gold text, predicted text, rival text)")
        connection.executemany("insert into items values (?, ?, ?)", ROWS)
    return "duckdb:///runs.duckdb"


def write_rows():
    lines = [",".join(row) for row in [("gold", "predicted", "rival"), *ROWS]]
    return write("rows.csv", "\n".join([*lines, ""]))


@pytest.mark.parametrize("make", [make_sqlite, make_duckdb])
def test_a_database_is_evaluated_as_a_file_is(make):
    found = report("--sql", make(), *QUERY, "--predicted", "predicted")
    usual = report(write("pairs.csv", PAIRS))
    assert found["confusion_matrix"] == usual["confusion_matrix"]
    assert close(found["metrics"], usual["metrics"])


@pytest.mark.parametrize("make", [make_sqlite, make_duckdb])
def test_the_systems_of_a_database_are_compared_as_those_of_a_file_are(make):
    reports = [
        run("compare", *rows, *TWO, "--format", "json")
        for rows in (("--sql", make(), *QUERY), (write_rows(), "--gold", "gold"))
    ]
    assert [ran.err for ran in reports] == ["", ""]
    found, usual = (json.loads(ran.out) for ran in reports)
    assert close(found["metrics"], usual["metrics"])


@pytest.mark.parametrize("make", [make_sqlite, make_duckdb])
def test_a_database_is_only_read(make):
    address = make()
    ran = run("evaluate", "--sql", address, "--query", "drop table items", "--gold", "gold")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert report("--sql", address, *QUERY, "--predicted", "predicted")["n"] == len(ROWS)


@pytest.mark.parametrize("address", ["sqlite:///nowhere.db", "duckdb:///nowhere.db"])
def test_a_database_that_is_not_there_is_named_and_not_made(here, address):
    ran = run("evaluate", "--sql", address, *QUERY)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"{address} cannot be opened: " in ran.err
    assert list(here.iterdir()) == []


# --- regression ----------------------------------------------------------------------------------

NUMBER_COLUMNS = ("--target", "gold", "--predicted", "guess", "--lower", "low", "--upper", "high")
SUMMED = (*NUMBER_COLUMNS, "--by", "by_", "--train-mean", "2", "--train-std", "1")


def make_numbers(make):
    """Add a table of numbers to a database, and write the same as a file."""
    address, rows = make(), [(1, 1.5, 0, 2, "a"), (2.5, 2, 1, 4, "b"), (4, 3, 3.5, 3.75, "a")]
    connect = sqlite3.connect if address.startswith("sqlite") else duckdb.connect
    with closing(connect(address.partition("///")[2])) as connection:
        columns = "gold double precision, guess double precision, low double precision"
        connection.execute(f"create table numbers ({columns}, high double precision, by_ text)")
        connection.executemany("insert into numbers values (?, ?, ?, ?, ?)", rows)
        connection.commit()
    lines = [",".join(map(str, row)) for row in [("gold", "guess", "low", "high", "by_"), *rows]]
    return address, write("numbers.csv", "\n".join([*lines, ""]))


@pytest.mark.parametrize("make", [make_sqlite, make_duckdb])
def test_a_regression_of_a_database_is_that_of_a_file(make):
    address, path = make_numbers(make)
    asked = (*SUMMED, "--interval-method", "t", "--fail-under", "interval_coverage=0.1")
    reports = [
        run("evaluate-regression", *rows, *asked, "--format", "json")
        for rows in (("--sql", address, "--query", "select * from numbers"), (path,))
    ]
    assert [(ran.code, ran.err) for ran in reports] == [(0, ""), (0, "")]
    found, usual = (json.loads(ran.out) for ran in reports)
    for part in ("metrics", "prediction_intervals", "baselines", "by"):
        assert close(found[part], usual[part]), part


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--residuals",), "--residuals reads the items twice, so it needs a file, not a database"),
        (("--interval-method", "studentized"), "studentized reads the items twice"),
        (("--order", "low"), "--order is for files, not for the rows of a database"),
        (("--shifted", "numbers.csv"), "--shifted is for files"),
        (("numbers.csv",), "Name files, or a database with --sql, not both"),
    ],
)
def test_what_needs_the_items_of_a_regression_is_refused_for_a_database(asked, told):
    address, _ = make_numbers(make_sqlite)
    rows = ("--sql", address, "--query", "select * from numbers")
    ran = run("evaluate-regression", *asked, *rows, *NUMBER_COLUMNS)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert told in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "--gold", "typo", "--predicted", "guess"),
        ("evaluate", "--gold", "gold", "--predicted", "typo", "--scale", "1..2"),
        ("evaluate", "--gold", "gold", "--predicted", "guess", "--by", "typo", "--scale", "1..2"),
        ("evaluate", "--gold", "gold", "--probabilities", "low,typo", "--scale", "1..2"),
        ("compare", "--gold", "gold", "--systems", "guess,typo", "--scale", "1..2"),
        ("compare", "--gold", "typo", "--systems", "guess,low"),
        ("evaluate-regression", "--target", "gold", "--predicted", "typo"),
        ("evaluate-regression", "--target", "gold", "--predicted", "guess", "--groups", "typo"),
    ],
)
def test_a_mistyped_column_of_a_query_is_named(arguments):
    address, _ = make_numbers(make_sqlite)
    ran = run(*arguments, "--sql", address, "--query", "select * from numbers")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "has no column 'typo'" in ran.err


# --- passwords -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "mysql://ann:{}@host/essays",
        "postgres//ann:{}@host/essays",
        "postgres:ann:{}@host/essays",
        "mysql://host/essays?user=ann&password={}&x=1",
        "mysql://host/essays?PASSWORD={}",
        "mysql://host/essays?passwd={}",
        "postgresql://127.0.0.1:1/essays?Pwd={}",
        "postgresql://127.0.0.1:1/essays?%70assword={}",
        "mysql://h/essays?sslp%41ssword={}",
        "postgresql://ann:{}@127.0.0.1:1/essays",
        "postgresql://127.0.0.1:1/essays?user=ann&password={}",
        "postgresql://ann:{}@127.0.0.1:port/essays",
        "host=127.0.0.1 port=1 password={}",
        "password={} host=127.0.0.1 port=1",
    ],
)
@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_is_in_no_message(address, password):
    ran = run("evaluate", "--sql", address.format(password), *QUERY)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "sesame" not in ran.err


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "{}"),
        ("evaluate", "rows.csv", "--gold-file", "{}", "--id", "id"),
        ("evaluate-regression", "{}"),
        ("compare", "{}", "--systems", "predicted,rival"),
        ("decode", "{}", "--probabilities", "p_"),
        ("meta", "gold.csv", "{}", "--id", "id"),
    ],
)
@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:{}@host/essays", "mysql://host/x?password={}", "postgres:ann:{}@h"],
)
def test_an_address_in_place_of_a_file_shows_no_password(arguments, address, password):
    write_rows()
    write("gold.csv", "id,gold\n1,A1\n")
    given = address.format(password)
    ran = run(*(given if argument == "{}" else argument for argument in arguments))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "There is no file" in ran.err
    assert "sesame" not in ran.err
    assert ("--sql URL --query" in ran.err) == ("://" in given)


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--sqll", "{}"),
            "unrecognized arguments: --sqll postgresql://ann@h/d. Did you mean --sql?",
        ),
        (("--url={}",), "unrecognized arguments: --url=postgresql://ann@h/d"),
        (("-o", "{}"), "'postgresql://ann@h/d' cannot be written"),
        (("--map", "{}"), "The map postgresql"),
        (("--scale", "{}"), "'postgresql://ann@h/d' is not a scale"),
        (("--interval-method", "{}"), "invalid choice: 'postgresql://ann@h/d'"),
    ],
)
def test_an_address_at_the_wrong_flag_shows_no_password(arguments, said, password):
    write_rows()
    address = f"postgresql://ann:{password}@h/d"
    ran = run("evaluate", "rows.csv", *(x.format(address) for x in arguments))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err
    assert "sesame" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "{}", "--train", "rows.csv"),
        ("tune", "-e", "{}"),
        ("check", "-e", "{}"),
        ("features", "tfidf", "-e", "{}"),
        ("analyze-search", "-e", "{}"),
        ("features", "{}"),
        ("features", "tfidf", "-e", ".", "-o", "{}"),
        ("predict-regression", "-e", ".", "{}"),
        ("tune-regression", "{}", "-e", "new", "--target", "gold"),
        ("rank-models", "rows.csv", "-e", "{}"),
        ("metrics", "{}"),
    ],
)
@pytest.mark.parametrize("password", PASSWORDS)
def test_an_address_in_place_of_a_folder_shows_no_password(here, arguments, password):
    write_rows()
    (here / "postgresql:" / "ann:").mkdir(parents=True)
    address = f"postgresql://ann:{password}@h/d"
    ran = run(*(x.format(address) for x in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert "sesame" not in ran.err
    assert sorted(x.name for x in here.iterdir()) == ["postgresql:", "rows.csv"]


@pytest.mark.parametrize(
    "path", ["C:/Users/ann@corp.com/a.csv", r"C:\Users\ann@corp.com", "12/at 9:30/ann@corp.csv"]
)
def test_a_plain_path_is_named_as_it_is(path):
    ran = run("evaluate", path)
    assert f"There is no file {path!r}" in ran.err
