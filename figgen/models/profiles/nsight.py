"""Converts an SQLite export of Nsight Systems to the events of a profiler's trace.

`nsys export --type sqlite` writes a table for each kind of activity, with times in nanoseconds and
names as ids in `StringIds`. A report may hold several GPUs and processes. NVTX ranges whose text
counts steps ("step 12", "iteration 3") are steps.
Source: NVIDIA Nsight Systems user guide, "SQLite Schema Reference".
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figgen.errors import InputError
from figgen.models.profiles.trace_kinds import STEP

MAGIC = b"SQLite format 3\x00"
"""The first bytes of an SQLite file."""

COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""CUPTI's codes for the directions of a copy."""
STEP_RANGE = re.compile(
    r"^(?:profilerstep#|(?:train(?:ing)?[ _-]?)?(?:step|iter(?:ation)?))[ _#:=-]*(\d*)$"
)
"""Matches the lower-case texts of NVTX ranges that mark a step."""

Row = dict[str, Any]
Found = tuple[dict[str, Any], dict[str, Any]]


def nsight_events(path: str) -> Iterator[Found]:
    """Yield kernels, copies, launches and steps of the file, each with a header.

    Raises InputError for a file that has no kernels or cannot be read.
    """
    uri = Path(path).resolve().as_uri()
    try:
        connection = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
        try:
            yield from _events(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InputError(
            "report", expected="a readable SQLite export", got=f"{path}: {error}"
        ) from None


def _events(connection: sqlite3.Connection, path: str) -> Iterator[Found]:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
        expected = "a table CUPTI_ACTIVITY_KIND_KERNEL: record with --trace=cuda,nvtx"
        raise InputError(f"report {path}", expected=expected, got=sorted(tables)[:8])
    names = {}
    if "StringIds" in tables:
        names = dict(connection.execute("SELECT id, value FROM StringIds"))
    devices = _devices(connection, tables)
    ranks: dict[int, set[int]] = {}
    several = _several(connection)
    for category, table in (
        ("kernel", "CUPTI_ACTIVITY_KIND_KERNEL"),
        ("gpu_memcpy", "CUPTI_ACTIVITY_KIND_MEMCPY"),
        ("gpu_memset", "CUPTI_ACTIVITY_KIND_MEMSET"),
    ):
        for row in _rows(connection, tables, table):
            device = int(row.get("deviceId") or 0)
            ranks.setdefault(_process(row), set()).add(device)
            yield _header(device, devices, several), _device_event(category, row, names)
    for row in _rows(connection, tables, "CUPTI_ACTIVITY_KIND_RUNTIME"):
        for device in ranks.get(_process(row), {0}):
            yield _header(device, devices, several), _launch(row, names)
    for number, row in enumerate(_steps(connection, tables, names)):
        for device in ranks.get(_process(row), {0}):
            yield _header(device, devices, several), _step(row, number)


def _rows(connection: sqlite3.Connection, tables: set[str], table: str) -> Iterator[Row]:
    """Yield the rows of a table in order of time, or nothing if the report lacks the table."""
    if table not in tables:
        return
    found = connection.execute(f"SELECT * FROM {table} WHERE end IS NOT NULL ORDER BY start")
    columns = [column[0] for column in found.description]
    for row in found:
        yield dict(zip(columns, row, strict=True))


def _devices(connection: sqlite3.Connection, tables: set[str]) -> dict[int, str]:
    if "TARGET_INFO_GPU" not in tables:
        return {}
    return {
        int(row["id"]): str(row["name"])
        for row in map(dict, _all(connection, "TARGET_INFO_GPU"))
        if row.get("id") is not None
    }


def _all(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    found = connection.execute(f"SELECT * FROM {table}")
    columns = [column[0] for column in found.description]
    for row in found:
        yield dict(zip(columns, row, strict=True))


def _several(connection: sqlite3.Connection) -> bool:
    """Whether the report has kernels of more than one device."""
    columns = [
        row[1] for row in connection.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")
    ]
    if "deviceId" not in columns:
        return False
    counted = "SELECT COUNT(DISTINCT deviceId) FROM CUPTI_ACTIVITY_KIND_KERNEL"
    return int(connection.execute(counted).fetchone()[0]) > 1


def _process(row: Row) -> int:
    """Return the process of a row: the upper bits of Nsight's global process or thread id."""
    return int(row.get("globalPid") or row.get("globalTid") or 0) >> 24


def _header(device: int, devices: dict[int, str], several: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"deviceProperties": [{"name": devices.get(device, "")}]}
    return found | {"gpu": device} if several else found


def _device_event(category: str, row: Row, names: dict[int, str]) -> dict[str, Any]:
    name = "Memset (Device)"
    if category == "kernel":
        number = row.get("demangledName") or row.get("shortName")
        name = str(names.get(int(number or 0), "kernel"))
    elif category == "gpu_memcpy":
        name = f"Memcpy {COPY_KINDS.get(int(row.get('copyKind') or 0), 'other')}"
    return _event(category, name, row, int(row.get("streamId") or 0))


def _launch(row: Row, names: dict[int, str]) -> dict[str, Any]:
    name = str(names.get(int(row.get("nameId") or 0), "")).partition("_v")[0]
    return _event("cuda_runtime", name, row, int(row.get("globalTid") or 0))


def _event(category: str, name: str, row: Row, thread: int) -> dict[str, Any]:
    start, end = int(row["start"]), int(row["end"])
    args: dict[str, Any] = {"bytes": row.get("bytes", 0)}
    if row.get("correlationId") is not None:
        # Correlation ids are unique per process only; the process makes them unique in the report.
        args["correlation"] = (_process(row) % 2**20 << 32) + int(row["correlationId"])
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": int(row.get("deviceId") or 0),
        "tid": thread,
        "ts": start / 1e3,
        "dur": max(0, end - start) / 1e3,
        "args": args,
    }


def _steps(
    connection: sqlite3.Connection, tables: set[str], names: dict[int, str]
) -> Iterator[Row]:
    """Yield the NVTX ranges whose text counts steps."""
    for row in _rows(connection, tables, "NVTX_EVENTS"):
        text = row.get("text") or names.get(int(row.get("textId") or 0), "")
        if STEP_RANGE.match(str(text).strip().lower()):
            yield row


def _step(row: Row, number: int) -> dict[str, Any]:
    return _event("user_annotation", f"{STEP}{number}", row, int(row.get("globalTid") or 0))
