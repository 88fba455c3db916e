"""Ways to ruin a run from inside its own process, each at a named point; handed to `harness.Command`."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anon_pipeline import home
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.pipeline import execution, stages
from anon_pipeline.pipeline.steps import utility
from anon_pipeline.release import ledger
from anon_pipeline.spec import ReleaseSpec

SECRET_IN_ERROR = "Conversion Error: could not read the row 'Zebulon Quackenbush', 918273645"


def die() -> None:
    """Leave as a process does that the kernel kills: no `finally`, no flush, no goodbye."""
    os.kill(os.getpid(), signal.SIGKILL)


def _before_rename(condition: Callable[[Path], bool]) -> None:
    rename = os.replace

    def replace(source: Any, destination: Any) -> None:
        if condition(Path(destination)):
            die()
        rename(source, destination)

    os.replace = replace


def the_source_is_gone_when_it_is_read() -> None:
    store = DuckDBEngine.store_source

    def store_source(self: Any, spec: ReleaseSpec, *arguments: Any) -> Any:
        spec.source_path.unlink()
        return store(self, spec, *arguments)

    DuckDBEngine.store_source = store_source


def while_raw_data_is_written() -> None:
    store = DuckDBEngine.store_source

    def store_source(self: Any, *arguments: Any) -> Any:
        store(self, *arguments)
        die()

    DuckDBEngine.store_source = store_source


def after_trained_model() -> None:
    store = stages.Stages.store

    @contextmanager
    def stored(self: Any, name: str, *arguments: Any) -> Iterator[Path]:
        with store(self, name, *arguments) as folder:
            yield folder
        if name == "trained_model":
            die()

    stages.Stages.store = stored


def between_a_stage_and_its_pointer() -> None:
    _before_rename(lambda to: to.name == "current" and to.parent.name == "anonymizer_tree")


def between_the_measurements_and_their_pointer() -> None:
    _before_rename(lambda to: to.name == "current" and to.parent.name == "dp_measurements")


def while_the_candidate_is_written() -> None:
    def write_release(self: Any, *arguments: Any) -> None:
        Path(arguments[-1]).write_bytes(b"PAR1 half a table")
        die()

    DuckDBEngine.write_release = write_release


def while_the_checks_answer() -> None:
    execution.keep_answers = lambda *_: die()


def while_utility_is_measured() -> None:
    utility.measure_utility = lambda *_: die()


def before_the_release_is_renamed() -> None:
    _before_rename(lambda to: to.parent.parent.name == "releases")


def between_the_rename_and_the_ledger() -> None:
    ledger.append = lambda *_, **__: die()


def while_the_ledger_is_written() -> None:
    _before_rename(lambda to: to.name == "ledger.jsonl")


def _stop(by: signal.Signals) -> Any:
    def stopped(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), by)

    return stopped


def _hear_ctrl_c() -> None:
    """As at a terminal, also where the tests themselves run in the background of a script, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ctrl_c_while_the_spec_is_read() -> None:
    _hear_ctrl_c()
    ReleaseSpec.load = _stop(signal.SIGINT)  # type: ignore[method-assign]


def sigterm_while_the_spec_is_read() -> None:
    ReleaseSpec.load = _stop(signal.SIGTERM)  # type: ignore[method-assign]


def sigterm_while_utility_is_measured() -> None:
    utility.measure_utility = _stop(signal.SIGTERM)


def the_engine_quotes_a_row() -> None:
    def classes(self: Any, *_: Any) -> Any:
        raise RuntimeError(SECRET_IN_ERROR)

    DuckDBEngine.classes = classes


def the_engine_quotes_a_row_in_a_cause() -> None:
    def classes(self: Any, *_: Any) -> Any:
        try:
            raise ValueError(SECRET_IN_ERROR)
        except ValueError as error:
            raise RuntimeError("could not count") from error

    DuckDBEngine.classes = classes


def the_disk_is_full_at_the_release() -> None:
    from anon_pipeline.release import publish

    copy, releases = publish.shutil.copyfile, home.Home.default().releases

    def full(source: Any, target: Any, **how: Any) -> Any:
        if releases in Path(target).parents:
            raise OSError(28, "No space left on device", str(target))
        return copy(source, target, **how)

    publish.shutil.copyfile = full


#: After the point, what of a release may be visible: nothing, or a whole folder that the ledger does not know yet.
KILLS: dict[Callable[[], None], int] = {
    while_raw_data_is_written: 0,
    after_trained_model: 0,
    between_a_stage_and_its_pointer: 0,
    while_the_candidate_is_written: 0,
    while_the_checks_answer: 0,
    while_utility_is_measured: 0,
    before_the_release_is_renamed: 0,
    between_the_rename_and_the_ledger: 1,
    while_the_ledger_is_written: 1,
}


def _no_memory_for_a_library(*_: Any, **__: Any) -> Any:
    try:
        raise ImportError("/lib/lib.so: failed to map segment from shared object")
    except ImportError as error:
        raise RuntimeError("what uses the library") from error


def sigterm_in_the_background_while_the_spec_is_read() -> None:
    """A shell without job control starts what it puts into the background with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sigterm_while_the_spec_is_read()


def sigterm_in_the_background_in_a_step() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    DuckDBEngine.store_source = _stop(signal.SIGTERM)  # type: ignore[method-assign]


def ctrl_c_while_a_compiled_library_is_imported() -> None:
    _hear_ctrl_c()

    def load(*_: Any, **__: Any) -> Any:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as stopped:
            raise ImportError("initialization failed") from stopped

    ReleaseSpec.load = load


def no_memory_to_begin() -> None:
    ReleaseSpec.load = _no_memory_for_a_library


def no_memory_in_a_step() -> None:
    DuckDBEngine.store_source = _no_memory_for_a_library  # type: ignore[method-assign]
