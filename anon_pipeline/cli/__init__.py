"""The commands: each is a few lines that read arguments, call one layer and show the result.

Progress and errors go to stderr; stdout has the summary, or with --json one JSON object and nothing else.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

# Each module adds its commands, which --help lists in this order.
# isort: off
from anon_pipeline.cli import runs, judging, datasets, masking, estimates, published, standing, openings, queries  # noqa: F401
from anon_pipeline.cli import delivering, upkeep, tools  # noqa: F401

# isort: on
from anon_pipeline.cli.app import BAD_INPUT, NOT_DELIVERED, REFUSED, app, err, print_json
from anon_pipeline.cli.streams import be_patient, lost_output
from anon_pipeline.errors import InputError, NotDelivered, Refused
from anon_pipeline.home import NO_MEMORY, Home, fault_of_records, out_of_memory, out_of_space
from anon_pipeline.imports import keep_imports

DEBUG_VARIABLE = "ANON_PIPELINE_DEBUG"
#: Exit code of a command that was stopped by Ctrl-C or by the operator of a service.
STOPPED = 130
#: Python's exit code if the last output could not be written.
LOST_WORDS = 120


def main() -> None:
    """The console script: run the command, then end the process at once.

    Python would take one or two cpu seconds to free everything that a run has imported, without any use. So the process
    ends as soon as its threads have ended and all exit functions have been called.
    """
    keep_imports()
    be_patient()
    try:
        command()
    except SystemExit as end:
        atexit.register(_leave, end.code if isinstance(end.code, int) else 0)
        raise


def _leave(code: int) -> None:
    atexit.unregister(_leave)
    atexit._run_exitfuncs()  # all other exit functions
    lost = lost_output()
    if lost is not None:
        code = code or LOST_WORDS
    if lost:
        err.print(f"anon-pipeline: {lost}", highlight=False, soft_wrap=True)
    os._exit(code)


def command() -> None:
    """Run the given command; an error that the user can correct gives a sentence and an exit code, not a traceback."""
    _give_a_home()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False, prog_name="anon-pipeline") or 0
        if code == STOPPED:  # typer's exit code after Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except NotDelivered as error:
        _fail(str(error), NOT_DELIVERED)
    except InputError as error:
        _fail(str(error), BAD_INPUT)
    except Refused as error:
        _fail(str(error), REFUSED)
    except (typer.Abort, KeyboardInterrupt):
        _end_stopped()
    except Exception as error:
        show: Callable[..., Any] | None = getattr(error, "show", None)  # click's own usage errors
        if show is not None:
            show()
            _fail_in_json(error.format_message(), BAD_INPUT)  # type: ignore[attr-defined]
            sys.exit(BAD_INPUT)
        _fail_unexpectedly(error)


def _interrupt(*_: object) -> None:
    """Interrupt the command at SIGTERM as Ctrl-C does, so that every step ends.

    A script's shell lets the commands that it starts in the background ignore Ctrl-C; they end at SIGTERM all the same.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def _end_stopped() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # all is being ended already, so more signals are ignored
        signal.signal(number, signal.SIG_IGN)
    _fail("stopped", STOPPED)


def _is_of_an_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is among the causes: in the import of a compiled library it becomes an ImportError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _fail_unexpectedly(error: Exception) -> None:
    """Tell what the machine refuses, with the exit code of bad input, and all else as an error of our own."""
    if _is_of_an_interrupt(error):
        _end_stopped()
    if out_of_space(error):
        _fail(f"{Home.default().root}: the disk is full; free or allow disk space", BAD_INPUT)
    if out_of_memory(error):
        _fail(NO_MEMORY, BAD_INPUT)
    if (fault := fault_of_records(error)) is not None:
        _fail(f"{Home.default().root}: {fault}", BAD_INPUT)
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    if isinstance(error, OSError) and error.strerror and not isinstance(error, ConnectionError):
        _fail(_refused_by_the_system(error), BAD_INPUT)
    if isinstance(error, UnicodeEncodeError) and _in_a_path(error):
        _fail(
            "a path has letters that are no UTF-8, or that the locale lacks; rename it, or set LC_ALL=C.UTF-8",
            BAD_INPUT,
        )
    _fail(
        f"internal error ({type(error).__name__}); {DEBUG_VARIABLE}=1 shows the traceback, with people's values",
        1,
    )


def _in_a_path(error: UnicodeEncodeError) -> bool:
    """Whether it is about bytes of a path that are no text: Python writes them as surrogates, here or in any locale."""
    return "\udc80" <= error.object[error.start] <= "\udcff" or sys.getfilesystemencoding() != "utf-8"


def _refused_by_the_system(error: OSError) -> str:
    if error.filename is None:  # such as where there is no folder for temporary files
        return f"the system refuses what the command needs: {error.strerror}"
    home = Home.default()
    if Path(str(error.filename)).is_relative_to(home.private) and home.private.exists() and not home.is_own:
        return home.of_another_user
    return f"{error.filename}: cannot be read or written ({error.strerror})"


def _give_a_home() -> None:
    """Set HOME, where libraries look for settings, to / if this user has no home, as in a container."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def _fail(sentence: str, code: int) -> None:
    _fail_in_json(sentence, code)
    err.print(f"anon-pipeline: {sentence}", highlight=False, soft_wrap=True)
    sys.exit(code)


def _fail_in_json(sentence: str, code: int) -> None:
    """Print the failure as the only object on stdout, if JSON was requested."""
    if "--json" in sys.argv[1:]:
        print_json({"error": sentence, "exit_code": code})
