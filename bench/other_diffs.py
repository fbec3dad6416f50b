"""One comparison by somebody else's program. Runs in `.venv-reladiff`; prints seconds, peak and differences.

`frames` writes both tables as Parquet files first, which nobody counts.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path

COLUMNS = ("status", "amount", "updated_at")
# Instants as microseconds: the text that COPY writes is not one that Polars reads.
QUERY = "select id, status, amount, (extract(epoch from updated_at) * 1000000)::bigint from {} order by id"


def frames(dsn: str, folder: Path) -> int:
    import polars as pl
    import psycopg2

    types = {
        "id": pl.Int64,
        "status": pl.String,
        "amount": pl.Decimal(18, 4),
        "updated_at": pl.Int64,
    }
    for table in ("truth", "target"):
        with psycopg2.connect(dsn) as connection, (folder / "rows.csv").open("wb") as file:
            connection.cursor().copy_expert(f"copy ({QUERY.format(table)}) to stdout (format csv)", file)
        frame = pl.read_csv(folder / "rows.csv", has_header=False, schema=types)
        frame = frame.with_columns(pl.col("updated_at").cast(pl.Datetime("us", "UTC")))
        frame.write_parquet(folder / f"{table}.parquet")
    return 0


def reladiff(dsn: str, _folder: Path) -> int:
    from psycopg2.extensions import parse_dsn
    from reladiff import Algorithm, connect_to_table, diff_tables

    server = {"driver": "postgresql", **parse_dsn(dsn)}
    sides = [connect_to_table(dict(server), table, "id", thread_count=2) for table in ("truth", "target")]
    rows = diff_tables(
        *sides, extra_columns=COLUMNS, algorithm=Algorithm.HASHDIFF, threaded=True, max_threadpool_size=2
    )
    return len({row[0] for _, row in rows})


def datacompy(_dsn: str, folder: Path) -> int:
    import polars as pl
    from datacompy import PolarsCompare

    sides = [pl.read_parquet(folder / f"{table}.parquet") for table in ("truth", "target")]
    found = PolarsCompare(*sides, join_columns=["id"])
    only = found.df1_unq_rows.height + found.df2_unq_rows.height
    return only + found.intersect_rows.height - found.count_matching_rows()


def peak_bytes() -> int:
    """The most memory of this process, where the system tells it as Linux does."""
    import resource

    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    marks = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return marks[0] if marks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# What each imports: like our own, a comparison is timed without that.
IMPORTS = {"frames": (), "reladiff": ("psycopg2", "reladiff"), "datacompy": ("datacompy", "polars")}

if __name__ == "__main__":
    for name in IMPORTS[sys.argv[1]]:
        import_module(name)
    work = {"frames": frames, "reladiff": reladiff, "datacompy": datacompy}[sys.argv[1]]
    started = time.perf_counter()
    differences = work(sys.argv[2], Path(sys.argv[3]))
    taken = time.perf_counter() - started
    print(json.dumps({"seconds": taken, "peak": peak_bytes(), "found": differences}))
