"""One of the three processes of a deployment: `python -m anon_pipeline.pipeline.web.serve code|daemon|webserver ...`.

`code` holds the datasets and runs them, and is the only one that needs the home. The `daemon` starts scheduled runs.
The `webserver` shows the pages and listens on loopback. Arguments after the name are passed to Dagster's own command.
"""

import os
import sys

from anon_pipeline.errors import InputError
from anon_pipeline.home import VARIABLE, Home
from anon_pipeline.pipeline.instance import dagster_home
from anon_pipeline.pipeline.runtime import BAD_INPUT

#: The arguments of Python for each of them.
MODULES = {
    "code": ["dagster", "code-server", "start", "-m", "anon_pipeline.definitions"],
    "daemon": ["dagster._daemon", "run"],
    "webserver": ["anon_pipeline.pipeline.web.webserver"],
}


def main(arguments: list[str]) -> None:
    """Write Dagster's settings, and replace this process by the chosen one.

    Raises
    ------
    InputError
        If there is no such process, or Dagster's records are in a database that cannot be used.
    """
    name, *rest = arguments or [""]
    if name not in MODULES:
        raise InputError(f"serve: {name or 'nothing'} is no process of a deployment; say {', '.join(MODULES)}")
    home = Home.default().prepare()
    os.environ |= {VARIABLE: str(home.root), "DAGSTER_HOME": str(dagster_home(home))}
    os.execv(sys.executable, [sys.executable, "-m", *MODULES[name], *rest])  # noqa: S606 (on purpose without a shell)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        print(f"anon-pipeline: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
