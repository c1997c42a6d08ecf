"""Sources that break: one error that names them, and nothing written."""

import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from command import run

import ordinate
from engines.servers import start_postgres, start_spark
from ordinate.errors import BadInput, OffScale

N = 2_000
LABELS = {"level": [str(k % 3) for k in range(N)], "guess": [str(k % 2) for k in range(N)]}
TOLD = {"gold": "level", "predicted": "guess", "scale": "0..2", "interval": None}


def write_corrupt(path: Path) -> Path:
    """Write a file whose second row group is no Parquet, though its footer is whole."""
    pq.write_table(pa.table(LABELS), path, row_group_size=N // 2, use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    content, size = bytearray(path.read_bytes()), column.total_compressed_size
    content[column.data_page_offset : column.data_page_offset + size] = b"\xff" * size
    path.write_bytes(content)
    return path


def write_partitions(folder: Path) -> str:
    """Write two partitions, the second of which has other columns."""
    pq.write_table(pa.table(LABELS), folder / "part-0.parquet")
    other = {"level": LABELS["level"], "answer": LABELS["guess"]}
    pq.write_table(pa.table(other), folder / "part-1.parquet")
    return str(folder / "part-*.parquet")


# --- frames --------------------------------------------------------------------------------------


def scan_polars(pattern):
    return pytest.importorskip("polars").scan_parquet(pattern)


def scan_duckdb(pattern):
    return duckdb.read_parquet(str(pattern))


def scan_ibis(pattern):
    return pytest.importorskip("ibis").duckdb.connect().read_parquet(str(pattern))


def scan_dask(pattern):
    return pytest.importorskip("dask.dataframe").read_parquet(str(pattern))


def scan_spark(pattern):
    return start_spark().read.parquet(str(pattern))


def scan_batches(pattern):
    return pyarrow.dataset.dataset(str(pattern)).scanner().to_reader()


# Ibis calls what DuckDB has deprecated, and Dask passes what pandas has.
OLD_CALLS = pytest.mark.filterwarnings(r"ignore:fetch_arrow_table\(\) is deprecated")
OLD_OPTION = pytest.mark.filterwarnings("ignore:The inplace keyword")
LAZY = [
    pytest.param(scan_polars, "the polars frame", id="Polars"),
    pytest.param(scan_duckdb, "the duckdb frame", id="DuckDB"),
    pytest.param(scan_ibis, "the ibis frame", id="Ibis", marks=OLD_CALLS),
    pytest.param(scan_dask, "the dask frame", id="Dask", marks=[pytest.mark.slow, OLD_OPTION]),
]


@pytest.mark.parametrize(
    ("scan", "name"),
    [
        *LAZY,
        pytest.param(scan_batches, "the pyarrow frame", id="batches"),
        pytest.param(scan_spark, "the pyspark frame", id="PySpark", marks=pytest.mark.slow),
    ],
)
def test_a_corrupt_row_group_is_an_error_of_the_frame(scan, name, tmp_path):
    with pytest.raises(BadInput, match=f"^{name} cannot be read: "):
        ordinate.evaluate(scan(write_corrupt(tmp_path / "items.parquet")), **TOLD)


@pytest.mark.parametrize(("scan", "name"), LAZY)
def test_a_partition_with_another_schema_is_an_error_of_the_frame(scan, name, tmp_path):
    with pytest.raises(BadInput, match=f"^{name} cannot be read: .*(guess|answer)"):
        ordinate.evaluate(scan(write_partitions(tmp_path)), **TOLD)


def test_batches_that_end_half_way_are_an_error():
    table = pa.table(LABELS)

    def send():
        yield table.to_batches()[0]
        raise OSError("the connection was reset")

    reader = pa.RecordBatchReader.from_batches(table.schema, send())
    with pytest.raises(
        BadInput, match=r"^the pyarrow frame cannot be read: .*connection was reset"
    ):
        ordinate.evaluate(reader, **TOLD)


def test_a_file_that_is_none_is_an_error_when_its_columns_are_asked_for(tmp_path):
    (tmp_path / "items.parquet").write_text("level,guess\n1,1\n")
    with pytest.raises(BadInput, match=r"^the polars frame cannot be read: "):
        ordinate.evaluate(scan_polars(tmp_path / "items.parquet"), **TOLD)


def test_a_relation_whose_connection_is_closed_is_an_error():
    connection = duckdb.connect()
    relation = connection.sql("select '1' as level, '2' as guess")
    connection.close()
    with pytest.raises(BadInput, match=r"^the duckdb frame cannot be read: .*closed"):
        ordinate.evaluate(relation, **TOLD)


@pytest.mark.parametrize("label", ["date '0044-03-15 (BC)'", "'infinity'::date"])
def test_a_date_that_python_has_not_is_an_error(label):
    table = duckdb.sql(f"select {label} as level, '1' as guess")
    with pytest.raises(BadInput, match=r"^the duckdb frame cannot be read: .*OverflowError"):
        ordinate.evaluate(table, **TOLD)


@pytest.mark.parametrize("label", ["uuid()", "'101'::bit", "time '03:04:05'"])
def test_a_label_that_cannot_be_looked_up_is_off_the_scale(label):
    table = duckdb.sql(f"select {label} as level, '1' as guess")
    with pytest.raises(OffScale, match="a row of column 'level'"):
        ordinate.evaluate(table, **TOLD)


def test_an_engine_without_what_is_needed_is_an_error():
    connection = pytest.importorskip("ibis").sqlite.connect()
    connection.raw_sql("create table items (level text, guess text, weight real)")
    with pytest.raises(BadInput, match=r"^the ibis frame cannot be read: .*IsInf.* not defined"):
        ordinate.evaluate(connection.table("items"), weights="weight", **TOLD)


# --- databases -----------------------------------------------------------------------------------


def forbid_sums(action, _, function, *__):
    allowed = action != sqlite3.SQLITE_FUNCTION or function != "sum"
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def test_a_database_without_the_aggregate_is_an_error():
    connection = sqlite3.connect(":memory:")
    connection.set_authorizer(forbid_sums)
    query = "select '1' as level, '1' as guess, 0.5 as weight"
    with pytest.raises(BadInput, match=r"^the query .* failed: .*not authorized .*sum\.$"):
        ordinate.evaluate_sql(connection, query, weights="weight", **TOLD)
    connection.close()


def test_a_closed_connection_is_an_error():
    connection = sqlite3.connect(":memory:")
    connection.close()
    with pytest.raises(BadInput, match=r"^the query .* failed: .*closed database\.$"):
        ordinate.evaluate_sql(connection, "select '1' as level, '1' as guess", **TOLD)


def check_refused(tmp_path, url, query, reason):
    """Hold that commands say what is wrong in one line, and leave what was written before."""
    old = tmp_path / "old.json"
    old.write_text("as it was")
    sql = ("--sql", url, "--query", query, "--gold", "level", "--scale", "0..2")
    for command, more in (
        ("evaluate", ("--predicted", "guess")),
        ("compare", ("--systems", "guess,rival")),
    ):
        for output in (tmp_path / "new.json", old):
            ran = run(command, *sql, *more, "-o", output, "--force")
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            assert "the query" in ran.err
            assert reason in ran.err
    assert old.read_text() == "as it was"
    assert [x.name for x in tmp_path.glob("*.json")] == ["old.json"]


def test_a_query_that_fails_half_way_leaves_nothing_half_written(tmp_path):
    connection = sqlite3.connect(tmp_path / "runs.db")
    connection.execute("create table items (level text, document text)")
    rows = [("1", '{"guess": "2"}')] * N
    connection.executemany("insert into items values (?, ?)", [*rows, ("1", "{broken")])
    connection.commit()
    connection.close()
    guess = "json_extract(document, '$.guess')"
    query = f"select level, {guess} as guess, {guess} as rival from items"  # noqa: S608 - a test's
    check_refused(tmp_path, f"sqlite:///{tmp_path / 'runs.db'}", query, "malformed JSON")


@pytest.mark.slow
def test_a_server_that_ends_the_connection_leaves_nothing_half_written(tmp_path):
    server = start_postgres().info
    url = f"postgresql://{server.user}@/{server.dbname}?host={server.host}"
    lost = "case when k = 1500 then pg_terminate_backend(pg_backend_pid())::text else '1' end"
    query = f"select '1' as level, {lost} as guess, '2' as rival from generate_series(1, {N}) as k"  # noqa: S608 - a test's
    check_refused(tmp_path, url, query, "terminating connection")


@pytest.mark.slow
def test_a_server_is_only_read(tmp_path):
    server = start_postgres()
    server.execute("create table if not exists kept as select '1' as level, '2' as guess")
    server.commit()
    url = f"postgresql://{server.info.user}@/{server.info.dbname}?host={server.info.host}"
    server.execute(
        "create or replace function forget() returns text language sql as "
        "$$ delete from kept; select '1' $$"
    )
    server.commit()
    query = "select level, forget() as guess, guess as rival from kept"
    check_refused(tmp_path, url, query, "read-only transaction")
    assert server.execute("select count(*) from kept").fetchone() == (1,)
    server.rollback()


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", ["tester:sesame@/postgres?", "/postgres?user=tester&password=sesame&"]
)
def test_a_password_is_in_no_report_and_in_no_message(place, tmp_path):
    address = f"postgresql://{place}host={start_postgres().info.host}"
    query = ("--query", "select '1' as level, '2' as guess from generate_series(1, 3) as k")
    told = ("--gold", "level", "--predicted", "guess", "--scale", "0..2")
    for k, form in enumerate(("text", "json", "html")):
        ran = run(
            "evaluate", "--sql", address, *query, *told, "--format", form, "-o", tmp_path / f"r{k}"
        )
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    written = [path.read_text() for path in tmp_path.iterdir()]
    assert len(written) == 3
    for url, other in ((address, ("--query", "select no")), (f"{address}/nowhere", query)):
        ran = run("evaluate", "--sql", url, *other, *told)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        written.append(ran.err)
    assert not any("sesame" in text for text in written)
