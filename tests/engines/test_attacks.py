"""Values and queries that would do more than be read: a file and a table are there afterwards."""

import re
import sqlite3
from contextlib import closing, suppress

import duckdb
import pytest
from command import run

import ordinate
from engines.servers import start_postgres
from ordinate.errors import BadInput, BadOption, BadValues, BadWeights, OffScale, OrdinateError
from ordinate.readers.databases import Query

COLUMNS = {"gold": "level", "predicted": "guess", "interval": None}
TABLE = "create table items (level text, guess text)"


def evaluate(connection, query="select * from items", **options):
    return ordinate.evaluate_sql(connection, query, **{**COLUMNS, "scale": "a,A", **options})


@pytest.fixture
def sqlite():
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


@pytest.fixture
def duck():
    with closing(duckdb.connect()) as connection:
        yield connection


@pytest.fixture
def postgres():
    connection = start_postgres()
    connection.rollback()
    yield connection
    connection.rollback()
    connection.autocommit, connection.prepare_threshold = False, 5
    connection.row_factory = pytest.importorskip("psycopg").rows.tuple_row
    connection.execute("drop schema public cascade")
    connection.execute("create schema public")
    connection.commit()


@pytest.fixture(params=["sqlite", "duck", pytest.param("postgres", marks=pytest.mark.slow)])
def database(request):
    """A database with a table of two rows."""
    connection = request.getfixturevalue(request.param)
    connection.execute(TABLE)
    connection.execute("insert into items values ('a', 'a'), ('A', 'A')")
    connection.commit()
    return connection


def count_rows(connection):
    return connection.execute("select count(*) from items").fetchone()[0]


# --- values --------------------------------------------------------------------------------------


def write_hostile_texts(payload):
    """Return texts whose Python spelling ends a string of SQL, and then any number of brackets."""
    return [f"\"'::text, $$x$$::text{')' * k}; {payload}; --" for k in range(12)]


def test_a_value_of_a_duckdb_file_is_never_run_as_sql(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious.csv").write_text("as it was")
    for k, text in enumerate(write_hostile_texts("copy (select 666) to $$precious.csv$$")):
        with closing(duckdb.connect(f"{k}.duckdb")) as connection:
            connection.execute("create table texts as select $1 as text", [text])
            value = "select row(text, 'x') as level, 'B1' as guess from texts"
            connection.execute(f"create view items as {value}")
        told = ("--query", "select * from items", "--gold", "level", "--predicted", "guess")
        ran = run("evaluate", "--sql", f"duckdb:///{k}.duckdb", *told, "--scale", "cefr")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "is not on the scale" in ran.err
    assert (tmp_path / "precious.csv").read_text() == "as it was"
    assert sorted(x.name for x in tmp_path.glob("*.csv")) == ["precious.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_value_of_postgres_is_never_run_as_sql(postgres, autocommit):
    postgres.execute(f"{TABLE}; create table texts (text text)")
    postgres.commit()
    for text in write_hostile_texts("rollback; drop table items; commit"):
        postgres.rollback()
        postgres.autocommit = False
        postgres.execute("delete from texts")
        postgres.execute("insert into texts values (%s)", [text])
        postgres.commit()
        postgres.autocommit = autocommit
        with pytest.raises(OffScale, match="drop table"):
            evaluate(postgres, "select row(text, 'x'::text) as level, 'a' as guess from texts")
        postgres.rollback()
        assert count_rows(postgres) == 0


@pytest.mark.parametrize("role", ["level", "guess", "who", "writer"])
@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_text_of_any_column_is_only_a_value(database, role, setting):
    if "psycopg" in type(database).__module__:
        database.execute(f"set standard_conforming_strings = {setting}")
    hostile = "\\'; drop table items; -- $1 ? %s {0} \"'"
    cells = {"level": "a", "guess": "A", "who": "x", "writer": "y", role: hostile}
    listed = ", ".join(f"'{cells[x].replace(chr(39), chr(39) * 2)}' as {x}" for x in cells)
    if setting == "off" and "psycopg" in type(database).__module__:
        listed = listed.replace("\\", "\\\\")
    told = {"by": "who", "groups": "writer", "label_map": {"A": None}}
    with pytest.raises(OrdinateError, match=r"not on the scale|missing"):
        evaluate(database, f"select {listed}", **told)
    assert count_rows(database) == 2


def test_a_name_of_any_column_is_only_a_name(database):
    name = "x\"); drop table items; -- ' $1 ? %s"
    quoted = name.replace('"', '""')
    query = f'select level as "{quoted}", guess from items'  # noqa: S608 - the attack
    found = evaluate(database, query, gold=name)
    assert found.confusion_matrix.n == count_rows(database) == 2


def test_bytes_are_refused_and_named(sqlite):
    for role in ("level", "guess", "who"):
        cells = ", ".join(f"{'x' * (x == role)}'aa' as {x}" for x in ("level", "guess", "who"))
        with pytest.raises(BadValues, match=rf"'{role}' .* type bytes: cast them to text"):
            evaluate(sqlite, f"select {cells}", by="who", scale="aa,bb")


@pytest.mark.parametrize("value", [b"a", (1, "a"), type("Text", (str,), {})("a")])
def test_a_constant_that_is_no_text_and_no_number_is_refused(value):
    from ordinate.readers.expressions import DUCKDB, POSTGRES, SQLITE, constant

    for dialect in (DUCKDB, POSTGRES, SQLITE):
        with pytest.raises(BadInput, match=rf"of type {type(value).__name__} cannot"):
            constant(value).to_sql(dialect)


@pytest.mark.parametrize("query", ["select hex(randomblob(8))", "select random()"])
def test_a_label_that_changes_with_each_run_is_refused(sqlite, query):
    with pytest.raises(OffScale, match="a row of column 'level'"):
        evaluate(sqlite, f"{query} as level, 'a' as guess")


def test_a_name_that_sqlite_cuts_off_is_no_text():
    options = sqlite3.PARSE_COLNAMES
    with closing(sqlite3.connect(":memory:", detect_types=options)) as connection:
        query = "select 'a' as level, 'a' as guess, 'x' as \"who [text]\""
        with pytest.raises(BadInput, match=r"no such column: .*who"):
            evaluate(connection, query, by="who")


@pytest.mark.parametrize("weight", ["'abc'", "'1,5'", "x'31'"])
def test_a_weight_of_sqlite_that_is_no_number_is_refused(sqlite, weight):
    query = f"select 'a' as level, 'a' as guess, {weight} as w union all select 'A', 'A', 2"
    with pytest.raises(BadWeights, match="a row of column 'w'"):
        evaluate(sqlite, query, weights="w")


def test_a_large_integer_of_sqlite_is_a_number(sqlite):
    query = ordinate.Query(sqlite, f"select {2**53 + 1} as target, {2**53 - 1} as guess")
    found = ordinate.evaluate_regression(query, target="target", predicted="guess", interval=None)
    assert found.metrics["mae"].value == pytest.approx(2, abs=1)


# --- queries -------------------------------------------------------------------------------------

MORE_THAN_ONE = [
    "select * from items; drop table items",
    "select * from items; commit; drop table items",
    "select * from items) as asked; drop table items; select * from (select 1",
    "select * from items) as asked; commit; drop table items; --",
]
NOT_READING = [
    "drop table items",
    "delete from items returning *",
    "with gone as (delete from items returning *) select * from gone",
    "create table more as select * from items",
    "select * from items) as asked into more; --",
    "",
    "-- nothing",
]


@pytest.mark.parametrize("query", [*MORE_THAN_ONE, *NOT_READING])
def test_a_query_is_one_select(database, query):
    for _ in range(2):
        with pytest.raises(BadInput, match=r"^the query .* failed: "):
            evaluate(database, query)
    assert count_rows(database) == 2


@pytest.mark.parametrize(
    "query", ["select * from items where level <> ';--';", "select * from items -- all"]
)
def test_what_stands_in_texts_and_comments_ends_no_query(database, query):
    assert evaluate(database, query).confusion_matrix.n == 2


def test_a_row_of_dashes_is_answered(database):
    with pytest.raises(BadInput, match="has no column 'level'"):
        evaluate(database, "select ';'" + "-" * 100_000)


@pytest.mark.parametrize(
    "query",
    [
        "copy items to 'out.csv'",
        "with out as (copy items to 'out.csv') select * from items",
        "select * from read_csv('precious.csv')",
        "select * from 'precious.csv'",
        "select * from glob('*')",
        "select 'a' as level, 'a' as guess from enable_logging(storage='file', storage_path='out')",
        "select 'a' as level, 'a' as guess from enable_profiling(save_location='out.json')",
        "select 'a' as level, 'a' as guess from force_checkpoint()",
        "select 'a' as level, 'a' as guess from sql_auto_complete('x')",  # an extension's
        "select * from outside",
        "select * from logged",
        "attach 'out.db'",
        "install httpfs",
        "load httpfs",
        "select * from 'https://example.invalid/x.csv'",
        "set threads = 1",
        "select nextval('numbers') as level, 'a' as guess",
        "select * from options",  # a name of Python's
    ],
)
def test_a_query_of_a_duckdb_file_reads_that_file(tmp_path, monkeypatch, query):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious.csv").write_text("level,guess\na,a\n")
    with closing(duckdb.connect("runs.duckdb")) as connection:
        connection.execute(f"{TABLE}; create sequence numbers")
        connection.execute("create view outside as select * from 'precious.csv'")
        logged = "select 'a' as level, 'a' as guess from enable_logging(storage_path='out')"
        connection.execute(f"create view logged as {logged}")
    before = (tmp_path / "runs.duckdb").read_bytes()
    told = ("--gold", "level", "--predicted", "guess", "--scale", "a,A")
    ran = run("evaluate", "--sql", "duckdb:///runs.duckdb", "--query", query, *told)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "the query" in ran.err
    assert sorted(x.name for x in tmp_path.iterdir()) == ["precious.csv", "runs.duckdb"]
    assert (tmp_path / "runs.duckdb").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [5, None])
@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("pending", [False, True])
def test_postgres_reads_only_whatever_a_query_sets(postgres, threshold, autocommit, pending):
    postgres.execute(f"{TABLE}; create sequence numbers")
    postgres.commit()
    postgres.prepare_threshold, postgres.autocommit = threshold, autocommit
    if pending:
        postgres.execute("insert into items values ('a', 'a')")
    attacks = [
        "select set_config('transaction_read_only', 'off', true) as level, 'a' as guess",
        "select nextval('numbers')::text as level, 'a' as guess",
        "select * from items for update",
        "select lo_create(77)::text as level, 'a' as guess",
        "select lo_from_bytea(78, 'x')::text as level, 'a' as guess",
        "select set_config('search_path', 'elsewhere', false) as level, 'a' as guess",
    ]
    for attack in [*attacks, *MORE_THAN_ONE]:
        with pytest.raises(OrdinateError, match=r"failed|not on the scale"):
            evaluate(postgres, attack)
    state = "select (select count(*) from items), (select count(*) from pg_largeobject_metadata), "
    state += "(select is_called from numbers), current_setting('search_path')"
    assert postgres.execute(state).fetchone() == (int(pending), 0, False, '"$user", public')


@pytest.mark.parametrize("kind", ["create_engine", "adbc", "ibis", "cursor"])
def test_other_connections_are_told_to_pass_a_frame(kind, sqlite):
    connection = {
        "create_engine": lambda: pytest.importorskip("sqlalchemy").create_engine("sqlite://"),
        "adbc": lambda: pytest.importorskip("adbc_driver_sqlite.dbapi").connect(),
        "ibis": pytest.importorskip("ibis").sqlite.connect,
        "cursor": sqlite.cursor,
    }[kind]()
    with pytest.raises(
        BadOption, match=r"pass its rows as a frame .* Ibis table or an Arrow reader"
    ):
        evaluate(connection)
    if kind == "adbc":
        connection.close()


@pytest.mark.parametrize("query", [None, 5, b"select 1", ["select 1"]])
def test_a_query_that_is_no_string_is_refused(database, query):
    with pytest.raises(BadOption, match=f"not {type(query).__name__}"):
        evaluate(database, query)


# --- the session of the user ---------------------------------------------------------------------


def test_temporary_tables_and_registered_frames_of_duckdb_are_seen(duck):
    import pandas as pd

    frame = pd.DataFrame({"level": ["a", "A"], "guess": ["a", "a"]}, dtype=object)
    duck.register("frame", frame)
    duck.execute("create temp table items as select * from frame")
    for query in ("select * from items", "select * from frame"):
        assert evaluate(duck, query).confusion_matrix.n == 2


def test_an_open_transaction_of_duckdb_stays_open(duck):
    duck.execute(TABLE)
    duck.begin()
    duck.execute("insert into items values ('a', 'a')")
    assert evaluate(duck).confusion_matrix.n == 1
    with pytest.raises(OffScale, match="'a'"):
        evaluate(duck, scale="b,B")
    duck.rollback()
    assert count_rows(duck) == 0


def test_rows_of_duckdb_that_are_not_fetched_yet_stay(duck):
    duck.execute("select * from range(5)")
    assert duck.fetchone() == (0,)
    with suppress(BadInput):  # newer versions ask to fetch them first
        evaluate(duck, "select 'a' as level, 'a' as guess")
    assert duck.fetchall() == [(1,), (2,), (3,), (4,)]


def test_a_query_writes_no_sequence_of_duckdb(duck):
    duck.execute("create sequence numbers")
    with pytest.raises(BadInput, match="read-only"):
        evaluate(duck, "select nextval('numbers') as level, 'a' as guess")
    assert duck.execute("select nextval('numbers')").fetchone() == (1,)


def test_a_session_of_sqlite_stays_as_it_was(sqlite):
    sqlite.execute(TABLE)
    sqlite.row_factory, sqlite.text_factory = sqlite3.Row, bytes
    sqlite.execute("insert into items values ('a', 'a')")
    rows = sqlite.execute("select 1 union all select 2")
    assert rows.fetchone()[0] == 1
    assert evaluate(sqlite).confusion_matrix.n == 1
    with pytest.raises(BadInput, match="failed"):
        evaluate(sqlite, "select * from nowhere")
    assert (sqlite.row_factory, sqlite.text_factory) == (sqlite3.Row, bytes)
    assert sqlite.execute("pragma query_only").fetchone()[0] == 0
    assert rows.fetchone()[0] == 2
    assert sqlite.in_transaction


def test_a_session_of_sqlite_that_allows_no_pragma_stays_as_it_was(sqlite):
    def forbid(action, _, value, *__):
        set_it = action == sqlite3.SQLITE_PRAGMA and value is not None
        return sqlite3.SQLITE_DENY if set_it else sqlite3.SQLITE_OK

    sqlite.text_factory = bytes
    sqlite.set_authorizer(forbid)
    with pytest.raises(BadInput, match="not authorized"):
        evaluate(sqlite, "select 'a' as level, 'a' as guess")
    assert sqlite.text_factory is bytes


def test_a_function_of_the_user_writes_nothing_in_sqlite(sqlite):
    sqlite.execute(TABLE)
    sqlite.create_function("drop_it", 0, lambda: sqlite.execute("drop table items") and "a")
    with pytest.raises(BadInput, match="failed"):
        evaluate(sqlite, "select drop_it() as level, 'a' as guess")
    assert count_rows(sqlite) == 0


@pytest.mark.slow
def test_a_session_of_postgres_stays_as_it_was(postgres):
    postgres.execute("create temp table mine (level text, guess text)")
    postgres.execute("insert into mine values ('a', 'a')")
    rows = pytest.importorskip("psycopg").rows
    postgres.row_factory = rows.dict_row
    status = postgres.info.transaction_status
    assert evaluate(postgres, "select * from mine").confusion_matrix.n == 1
    with pytest.raises(BadInput, match="failed"):
        evaluate(postgres, "select * from nowhere")
    assert (postgres.row_factory, postgres.info.transaction_status) == (rows.dict_row, status)
    assert postgres.execute("select count(*) as n from pg_prepared_statements").fetchone()["n"] == 0


@pytest.mark.slow
def test_a_prepared_statement_of_postgres_stays(postgres):
    postgres.prepare_threshold = 0  # whatever runs is prepared
    postgres.execute("prepare mine as select 1", prepare=False)
    postgres.commit()
    assert evaluate(postgres, "select 'a' as level, 'a' as guess").confusion_matrix.n == 1
    names = postgres.execute("select name from pg_prepared_statements", prepare=False)
    assert names.fetchall() == [("mine",)]


# --- collations and types ------------------------------------------------------------------------

TEXTS = [("a", "a", "x"), ("a", "A", "X"), ("A", "a", "x"), ("A", "A", "X")]


def check_told_apart(table):
    for query in table if isinstance(table, list) else [table]:
        told = {**COLUMNS, "scale": "a,A", "by": "who"}
        found = ordinate.evaluate(query, **told)
        assert found.confusion_matrix.counts.tolist() == [[1, 1], [1, 1]]
        assert set(found.by) == {"x", "X"}
        told |= {"groups": told.pop("by"), "interval": 0.9}
        assert ordinate.evaluate(query, **told).groups == 2
        with pytest.raises(OffScale, match="'A'"):
            ordinate.evaluate(query, **COLUMNS, scale="a,b")


@pytest.mark.parametrize("collation", ["nocase", "rtrim"])
def test_a_collation_of_sqlite_merges_no_labels(sqlite, collation):
    column = f"text collate {collation}"
    sqlite.execute(f"create table items (level {column}, guess {column}, who {column})")
    sqlite.executemany("insert into items values (?, ?, ?)", TEXTS)
    check_told_apart(Query(sqlite, "select * from items"))


@pytest.mark.parametrize("default", ["", "nocase"])
def test_a_collation_of_duckdb_merges_no_labels(duck, default):
    duck.execute(f"set default_collation = '{default}'")
    column = f"text {'' if default else 'collate nocase'}"
    duck.execute(f"create table items (level {column}, guess {column}, who {column})")
    duck.executemany("insert into items values (?, ?, ?)", TEXTS)
    check_told_apart([Query(duck, "select * from items"), duck.table("items")])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["text collate blind", "citext"])
def test_a_collation_of_postgres_merges_no_labels(postgres, kind):
    blind = "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    postgres.execute(f"create collation blind {blind}")
    postgres.execute("create extension citext schema public")
    postgres.execute(f"create table items (level {kind}, guess {kind}, who {kind})")
    postgres.cursor().executemany("insert into items values (%s, %s, %s)", TEXTS)
    check_told_apart(Query(postgres, "select * from items"))


LABELS = {
    "char(5)": "ab",
    "uuid": "11111111-1111-1111-1111-111111111111",
    "date": "2020-01-02",
    "timestamp": "2020-01-02 03:04:05",
    "time": "03:04:05",
    "varchar": "ab",
    "boolean": "True",
    "integer": "2",
    "bigint": "9007199254740993",
    "numeric(20, 2)": "2",
    "double precision": "2",
    "mood": "ab",
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["duck", pytest.param("postgres", marks=pytest.mark.slow)])
def test_labels_of_any_type_are_read_or_named(name, kind, request):
    connection = request.getfixturevalue(name)
    connection.execute("create type mood as enum ('ab', 'cd')")
    label = LABELS[kind]
    query = f"select '{label}'::{kind} as level, '{label}'::{kind} as guess"
    told = {"scale": [label, "other"], "by": "level", "groups": "guess"}
    assert evaluate(connection, query, **told).confusion_matrix.counts.tolist() == [[1, 0], [0, 0]]
    with pytest.raises(OffScale, match=re.escape(label)):
        evaluate(connection, query)
    missing = query.replace(f"'{label}'", "null", 1)
    with pytest.raises(ordinate.errors.MissingLabels, match=r"gold labels are missing\. "):
        evaluate(connection, missing, scale=[label, "other"])
