"""A `python` that has imported everything: whoever starts it gets a fork of the tests' fork server within moments.

It is a program like any other: it takes a command line (`-m`, `-c`, a file), an environment, a folder and open files,
has an exit code, obeys signals, and dies with whoever kills it. In it `sys.executable` is the same program, so that
servers that start servers are spared their imports, too: Dagster's UI is six processes. How each of them is imported
into a new interpreter is tested where the UI is opened with the ordinary one (end_to_end/test_ui.py).
"""

from __future__ import annotations

import array
import atexit
import fcntl
import gc
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import forkserver, process, resource_tracker, spawn
from pathlib import Path
from typing import Any

from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.watchdog import tree

#: What the program does: it hands all it was given to the server of forks, passes signals on, and ends as told.
PROGRAM = """
import _socket, array, fcntl, marshal, os, signal, sys
def is_handed_on(number):
    try:
        return not fcntl.fcntl(number, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    except OSError:
        return False
files = [number for number in map(int, os.listdir("/proc/self/fd")) if is_handed_on(number)]
server = _socket.socket(_socket.AF_UNIX)
server.connect(sys.argv[1])
asked = marshal.dumps((sys.argv[2:], dict(os.environ), os.getcwd(), files))
rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", files))]
server.sendmsg([len(asked).to_bytes(8, "big")], rights)
server.sendall(asked)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: server.send(bytes([number])))
ended = server.recv(8)
code = int.from_bytes(ended, "big", signed=True) if ended else -signal.SIGKILL
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""
MOST_FILES = 200
#: What servers alone need.
SERVERS = ("dagster._cli.code_server", "dagster._cli.dev", "dagster_webserver.cli")


@contextmanager
def warm_python() -> Iterator[Path]:
    """The program; whatever it started is gone afterwards."""
    folder = harness.scratch()
    address, program = folder / "forks", folder / "python"
    (folder / "program.py").write_text(PROGRAM)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -ISE "{folder}/program.py" "{address}" "$@"\n')
    program.chmod(0o700)
    server = harness.forked(_serve, str(address), str(program))
    while not address.exists():
        assert server.is_alive()
        time.sleep(0.01)
    try:
        yield program
        while len(list(tree(server.pid))) > 1:  # those that were killed a moment ago
            time.sleep(0.05)
    finally:
        server.kill()
        server.join()
        shutil.rmtree(folder)


def _serve(address: str, program: str) -> None:
    """Fork for everybody who asks, until killed or until the tests have ended."""
    for name in SERVERS:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{address}.bound")
    listener.listen(64)
    os.rename(f"{address}.bound", address)
    tests = process.parent_process().sentinel
    while tests not in select.select([listener, tests], [], [])[0]:
        asked, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _attend(asked, program)
        asked.close()


def _attend(asked: socket.socket, program: str) -> None:
    """Fork once more, pass signals on to that process, and tell how it ended; if nobody waits any more, end it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, rights, *_ = asked.recvmsg(8, socket.CMSG_SPACE(MOST_FILES * array.array("i").itemsize))
    received = array.array("i", rights[0][2])
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += asked.recv(1 << 20)
    arguments, environment, folder, files = marshal.loads(text)
    child = os.fork()
    if child == 0:
        os.setsid()
        asked.close()
        _become(program, arguments, environment, folder, dict(zip(files, received, strict=True)))
    for number in received:
        os.close(number)
    ended = os.pidfd_open(child)
    while ended not in select.select([asked, ended], [], [])[0]:
        told = asked.recv(1)
        if told:
            os.kill(child, told[0])
            continue
        with suppress(ProcessLookupError):  # where it has no group of its own yet
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
        break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(OSError):
        asked.sendall(code.to_bytes(8, "big", signed=True))
    os._exit(0)


def _become(
    program: str, arguments: list[str], environment: dict[str, str], folder: str, files: dict[int, int]
) -> None:
    """Be the process that was asked for, and leave as it does."""
    _take(files)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.executable = program
    spawn.set_executable(program)
    process.current_process().name, process._parent_process = "MainProcess", None  # type: ignore[attr-defined]
    for started in (forkserver._forkserver, resource_tracker._resource_tracker):  # they are another process's
        started.__init__()  # type: ignore[attr-defined,misc]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()
    code = _code(arguments)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _take(files: dict[int, int]) -> None:
    """Have the files under their numbers; first out of the way of each other."""
    above = max(*files, *files.values()) + 1
    moved = {number: fcntl.fcntl(received, fcntl.F_DUPFD, above) for number, received in files.items()}
    for number, received in moved.items():
        os.dup2(received, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in files:
            with suppress(OSError):
                os.close(number)


def _code(arguments: list[str]) -> int:
    """Run what a command line of Python says; its exit code."""
    try:
        _run(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0) & 255
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        traceback.print_exc()
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run(arguments: list[str]) -> None:
    while arguments and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
        option, *arguments = arguments
        if option == "-W":
            warnings._setoption(arguments.pop(0))  # type: ignore[attr-defined]
    main: Any = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    how, *rest = arguments
    if how == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv = rest
        sys.modules.pop(rest[0], None) if not hasattr(sys.modules.get(rest[0]), "__path__") else None
        runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined]
    elif how == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [how, *rest]
        runpy.run_path(how, run_name="__main__")
