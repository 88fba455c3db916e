"""MLflow's UI on loopback, for reading: `python -m anon_pipeline.pipeline.web.experiments PORT`.

The server has no login, and MLflow's own server does far more than show runs: it takes uploads, runs jobs, calls models
and serves the files of fitted models, which may reveal people. So this server answers only the requests of the pages
of runs and models. Notes and tags can be written with MLflow's client, in the home itself.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import parse_qs

from anon_pipeline.home import Home
from anon_pipeline.pipeline.tracking.logged_guide import PICKLE
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.pipeline.web.guard import ALLOW_HOSTS, Guard
from anon_pipeline.pipeline.web.guarded import HOST, Guarded

API = r"/ajax-api/[23]\.0/mlflow"
#: Paths that the pages read.
READ = re.compile(
    rf"/|/static-files/.+|/version|/health|/graphql|{API}/server-info|{API}/ui-telemetry|{API}/demo/.*|{API}/.*/?search"
    rf"|{API}/(experiments|runs|metrics|registered-models|model-versions|artifacts|logged-models)/[\w/-]+"
)
#: Paths that they call by POST, all of which only read.
ASKED = re.compile(rf"/graphql|{API}/[\w/-]*search[\w-]*|{API}/(runs/get|metrics)[\w/-]*")
#: Where MLflow serves a file, and the parameters that name it.
FILES = re.compile(rf"/get-artifact|/model-versions/get-artifact|{API}/logged-models/[\w-]+/artifacts/files")
NAMES = ("path", "artifact_file_path")
#: Files of aggregates, and the description of a model; all other files there may reveal people.
SERVED = frozenset(("MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt", "report.html", "class_sizes.svg"))


def refusal(method: str, path: str, query: str) -> str | None:
    """Why a request is refused; None if it is answered.

    Parameters
    ----------
    method, path, query : parts of the HTTP request; the query as it was sent
    """
    if FILES.fullmatch(path):
        named = [value for name, values in parse_qs(query).items() if name in NAMES for value in values]
        if method in ("GET", "HEAD") and len(named) == 1 and PurePosixPath(named[0]).name in SERVED:
            return None
        return f"only {', '.join(sorted(SERVED))} are shown; a fitted model ({PICKLE}) may know people"
    if (method in ("GET", "HEAD") and READ.fullmatch(path)) or (method == "POST" and ASKED.fullmatch(path)):
        return None
    return "this server only shows runs and models; to write, use MLflow's client in the home"


def serve(home: Home, port: int, hosts: Sequence[str] = ()) -> None:
    """Serve MLflow's UI for a home until stopped.

    Parameters
    ----------
    hosts : further names of the server, as for `Guard.at`
    """
    uri = Tracking(home).uri
    Tracking(home).client.search_experiments(max_results=1)  # so that the schema exists before the first request
    os.environ |= {
        "_MLFLOW_SERVER_FILE_STORE": uri,
        "_MLFLOW_SERVER_REGISTRY_STORE": uri,
        "_MLFLOW_SERVER_ARTIFACT_ROOT": (home.private / "mlflow" / "artifacts").as_uri(),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE": "true",  # our guard comes first, and knows our names
        "DO_NOT_TRACK": "true",
    }
    import uvicorn

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what MLflow itself uses
        from mlflow.server.fastapi_app import app

    guarded = Guarded(app, Guard.at(port, hosts), refusal)
    uvicorn.run(guarded, host=HOST, port=port, log_level="warning")


if __name__ == "__main__":
    serve(Home.default().prepare(), int(sys.argv[1]), os.environ.get(ALLOW_HOSTS, "").split(","))
