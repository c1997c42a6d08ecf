"""Servers that tests start themselves, once, and stop at the end: PostgreSQL and Spark."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

SPARK_WORKERS = "local-cluster[2,1,1024]"  # two processes with a core and a gigabyte each
SPARK_THREADS = "local[2]"


def miss_server(what: str) -> NoReturn:
    """Skip a test for want of a server; where CI runs, nothing is skipped for that reason."""
    if os.environ.get("CI"):
        pytest.fail(f"There is no {what}. Install it: CI skips no engine.")
    pytest.skip(f"there is no {what}")


@cache
def start_spark() -> Any:
    """Return a session with two workers."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        miss_server("Java for Spark")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # which has this package, too
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    session = _start_workers(sql.SparkSession, settings)
    atexit.register(session.stop)
    return session


def _start_workers(kind: Any, settings: dict[str, str]) -> Any:
    """Return a session with two workers, or with two threads where no process can be started."""
    builder = kind.builder.config(map=settings)
    try:
        session = builder.master(SPARK_WORKERS).getOrCreate()
        session.range(1).count()  # only now are workers asked for
    except Exception:  # noqa: BLE001 - whatever Java says
        if (broken := kind.getActiveSession()) is not None:
            broken.stop()
        session = builder.master(SPARK_THREADS).getOrCreate()
    return session


@cache
def start_postgres() -> Any:
    """Return a connection to a server of its own, in a temporary folder."""
    psycopg = pytest.importorskip("psycopg")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        miss_server("server of PostgreSQL")
    folder = Path(tempfile.mkdtemp(prefix="ordinate-postgres-"))
    # The server refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres")
    bin_, data = programs[-1].parent, folder / "data"

    def run(program: str, *arguments: Any) -> None:
        command = [*user, bin_ / program, "-D", data, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    run("initdb", "-U", "tester", "-A", "trust")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")

    def stop() -> None:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return psycopg.connect(host=str(folder), user="tester", dbname="postgres")
