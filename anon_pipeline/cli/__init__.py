"""The commands: thin, each a few lines that read arguments, call one layer and show what came back.

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
from anon_pipeline.errors import InputError, NotDelivered, Refused
from anon_pipeline.home import Home, out_of_space
from anon_pipeline.imports import keep_imports

DEBUG_VARIABLE = "ANON_PIPELINE_DEBUG"
#: What a command ends with that Ctrl-C, or whoever stops a service, has stopped.
STOPPED = 130
#: What Python ends with when the last of the output could not be written.
LOST_WORDS = 120


def main() -> None:
    """The console script: the command, and then out.

    To take apart all that a run has imported takes Python one or two cpu seconds, in which nothing is done. So the
    process ends as soon as its threads have ended and everything that is to be called at the end was called.
    """
    keep_imports()
    try:
        command()
    except SystemExit as end:
        atexit.register(_leave, end.code if isinstance(end.code, int) else 0)
        raise


def _leave(code: int) -> None:
    atexit.unregister(_leave)
    atexit._run_exitfuncs()  # all others
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # whoever read it has gone, or its disk is full
            code = code or LOST_WORDS
    os._exit(code)


def command() -> None:
    """Run the command that was given: a sentence and an exit code for what the user can mend, never a traceback."""
    _give_a_home()
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # so that every step hears of it
    try:
        code = app(standalone_mode=False, prog_name="anon-pipeline") or 0
        if code == STOPPED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except NotDelivered as error:
        _fail(str(error), NOT_DELIVERED)
    except InputError as error:
        _fail(str(error), BAD_INPUT)
    except Refused as error:
        _fail(str(error), REFUSED)
    except (typer.Abort, KeyboardInterrupt):
        for number in (signal.SIGINT, signal.SIGTERM):  # who asks twice is heard already, and all is being ended
            signal.signal(number, signal.SIG_IGN)
        _fail("stopped", STOPPED)
    except Exception as error:
        show: Callable[..., Any] | None = getattr(error, "show", None)  # click's own usage errors
        if show is not None:
            show()
            _fail_in_json(error.format_message(), BAD_INPUT)  # type: ignore[attr-defined]
            sys.exit(BAD_INPUT)
        if out_of_space(error):
            _fail(f"{Home.default().root}: the disk is full; free or allow disk space", BAD_INPUT)
        if os.environ.get(DEBUG_VARIABLE):
            raise
        _fail(
            f"internal error ({type(error).__name__}); {DEBUG_VARIABLE}=1 tells its story, people's values included", 1
        )


def _give_a_home() -> None:
    """Libraries look for settings in the user's home; who is no user of this machine has that of a container: /."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def _fail(sentence: str, code: int) -> None:
    _fail_in_json(sentence, code)
    err.print(f"anon-pipeline: {sentence}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)


def _fail_in_json(sentence: str, code: int) -> None:
    """The failure as the one object on stdout, for who asked for JSON."""
    if "--json" in sys.argv[1:]:
        print_json({"error": sentence, "exit_code": code})
