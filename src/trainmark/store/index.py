"""The index: every trial of every run as a row in DuckDB, rebuilt whenever the folders have changed."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmark.base.text import one_line
from trainmark.store.files import StoreError
from trainmark.store.overview import trial_rows
from trainmark.store.run import all_runs
from trainmark.workloads import registry

INDEX = "index.duckdb"
TABLES_VERSION = 6
TYPES = {
    "VARCHAR": "run case outcome detail node workload framework framework_version variant precision"
    " loss_scale layout compiler data device recipe loader dataset target unit verdict doubts environment"
    " commit conventions",
    "BIGINT": "repeat batch_per_device nodes devices_per_node steps warmup_steps memory_bytes"
    " host_memory_bytes retries threads epochs_to_target",
    "DOUBLE": "throughput low high step_seconds first_step_seconds data_wait_share communication_share"
    " samples_per_joule joules_per_sample memory_share mfu hfu time2train airank_seconds train_rate"
    " whole_rate started seconds created",
    "BOOLEAN": "reached",
}
COLUMNS = {name: kind for kind, names in TYPES.items() for name in names.split()}
TIME_ZONE = "WITH TIME ZONE"
AXIS_TYPES: dict[type, str] = {int: "BIGINT", float: "DOUBLE"}


def build(runs: Path) -> int:
    """Reads every finished trial below `runs` into a new index and puts it in place; returns how many."""
    duckdb = _duckdb()
    run_folders, count = all_runs(runs), 0
    columns = {
        **COLUMNS,
        **{axis.name: _axis_type(axis.default) for axis in registry.axes().values()},
        **{f"best_{name}": "DOUBLE" for name in registry.metrics()},
    }
    with tempfile.TemporaryDirectory(dir=runs, prefix=".index-") as folder:
        rows = Path(folder) / "rows.ndjson"
        # DuckDB takes no half of a surrogate pair, not even as an escape.
        with rows.open("w", encoding="utf-8", errors="replace") as file:
            for run in run_folders:
                for row in trial_rows(run, run.records()):
                    for name in row.keys() - columns.keys():
                        columns[name] = _axis_type(row[name])
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                    count += 1
        part = Path(folder) / INDEX
        with duckdb.connect(str(part)) as connection:
            connection.execute(
                "CREATE TABLE trials AS SELECT * FROM"
                " read_json($rows, format='newline_delimited', columns=$columns)",
                {"rows": str(rows), "columns": columns},
            )
            connection.execute("CREATE TABLE damaged (run VARCHAR, sentence VARCHAR)")
            for run in run_folders:
                for damage in run.damaged.values():
                    cells = [one_line(run.path.name), one_line(damage.sentence)]
                    connection.execute("INSERT INTO damaged VALUES (?, ?)", cells)
            connection.execute("CREATE TABLE built (state VARCHAR)")
            connection.execute("INSERT INTO built VALUES (?)", [state(runs)])
        part.replace(runs / INDEX)
    return count


def _axis_type(value: Any) -> str:
    return AXIS_TYPES.get(type(value), "VARCHAR")


def damaged(runs: Path) -> list[tuple[str, str]]:
    """Each run of the index with a sentence for each of its files that could not be used."""
    with _duckdb().connect(str(runs / INDEX), read_only=True) as connection:
        rows: list[tuple[str, str]] = connection.execute("SELECT * FROM damaged").fetchall()
    return rows


def query(runs: Path, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Asks the index, which is brought up to date first and cannot be changed this way."""
    duckdb = _duckdb()
    if not runs.is_dir():
        raise StoreError(f"there are no runs in {runs}; make one with `trainmark run quick`.")
    if not _current(runs):
        build(runs)
    settings = {"enable_external_access": "false"}
    try:
        with duckdb.connect(str(runs / INDEX), read_only=True, config=settings) as connection:
            answer = connection.execute(sql)
            if answer is None:
                raise StoreError("the query was refused: it holds no statement.")
            columns = [(name, str(kind)) for name, kind, *_ in answer.description or ()]
            if any(TIME_ZONE in kind for _, kind in columns):
                answer = connection.cursor().sql(sql).project(_without_time_zones(columns))
            return [name for name, _ in columns], answer.fetchall()
    except duckdb.Error as error:
        raise StoreError(f"the query was refused: {str(error).splitlines()[0]}.") from error


def _without_time_zones(columns: Sequence[tuple[str, str]]) -> str:
    """Return the columns by number, those of times with a zone as text: DuckDB needs pytz to fetch them."""
    return ", ".join(
        f"#{number}::VARCHAR" if TIME_ZONE in kind else f"#{number}"
        for number, (_, kind) in enumerate(columns, 1)
    )


def state(runs: Path) -> str:
    """What the index was built from: changes whenever a trial is added, removed or set aside."""
    seen = []
    for run in all_runs(runs):
        if run.trials.is_dir():
            with os.scandir(run.trials) as cases:
                seen += [f"{run.path.name}/{case.name}@{case.stat().st_mtime_ns}" for case in cases]
    return json.dumps([TABLES_VERSION, *sorted(seen)])


def _current(runs: Path) -> bool:
    duckdb = _duckdb()
    with contextlib.suppress(duckdb.Error, OSError):
        with duckdb.connect(str(runs / INDEX), read_only=True) as connection:
            row = connection.execute("SELECT state FROM built").fetchone()
        return bool(row and row[0] == state(runs))
    return False


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise StoreError("the index needs DuckDB; pip install duckdb.") from error
    return duckdb
