"""So many no-op tasks in one flow, by Prefect. Runs in `.venv-prefect`; prints the seconds.

Its server runs in this process on an SQLite file, which is what `python flow.py` gives who sets up nothing.
"""

import sys
import time

from prefect import flow, task


@task
def nothing(number: int) -> int:
    return number


@flow
def year(tasks: int) -> int:
    return len([future.result() for future in [nothing.submit(number) for number in range(tasks)]])


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    started = time.perf_counter()
    done = year(wanted)
    if done != wanted:
        sys.exit(f"{done} of {wanted} tasks ended well")
    print(time.perf_counter() - started)
