"""How the console script ends: with all that was asked to happen at the end, and nothing more."""

import subprocess
import sys

import pytest

ENDING = """
import atexit, os, sys
from anon_pipeline import cli
from anon_pipeline.workers import Workers

class Here:
    def __del__(self):
        os.write(1, b"taken apart;")

here, workers = Here(), Workers(2)
if "--version" in sys.argv:
    workers.warm()
atexit.register(lambda: print("called at the end;", end=""))
sys.argv = ["anon-pipeline", *sys.argv[1:]]
if __name__ == "__main__":
    cli.main()
"""


@pytest.mark.parametrize(("arguments", "code", "said"), [(["--version"], 0, "anon-pipeline "), (["nothing"], 2, "")])
def test_what_was_asked_for_at_the_end_is_done_and_the_interpreter_is_not_taken_apart(
    arguments: list[str], code: int, said: str
) -> None:
    ended = subprocess.run([sys.executable, "-c", ENDING, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert ended.stdout.startswith(said)
    assert ended.stdout.endswith("called at the end;")  # and processes of ours do not keep it waiting
