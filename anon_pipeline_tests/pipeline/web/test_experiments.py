"""MLflow's UI shows runs and the description of models, and nothing that may know people, nor takes any order.

The attacker is another user of the machine, who reaches every port on loopback, and knows MLflow's interface.
"""

import pytest

from anon_pipeline.pipeline.web.experiments import refusal

API = "/ajax-api/2.0/mlflow"


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/", ""),
        ("GET", "/static-files/static/js/main.js", ""),
        ("GET", f"{API}/experiments/search", "max_results=25"),
        ("POST", f"{API}/runs/search", ""),
        ("POST", f"{API}/logged-models/search", ""),
        ("POST", "/graphql", ""),
        ("GET", f"{API}/artifacts/list", "run_uuid=a"),
        ("GET", "/get-artifact", "path=report.html&run_uuid=a"),
        ("GET", "/model-versions/get-artifact", "path=MLmodel&name=people-guide&version=1"),
        ("GET", f"{API}/logged-models/m-1/artifacts/files", "artifact_file_path=MLmodel"),
    ],
)
def test_pages_read_what_they_show(method: str, path: str, query: str) -> None:
    assert refusal(method, path, query) is None


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/model-versions/get-artifact", "path=model.pkl&name=people-guide&version=1"),
        ("GET", "/get-artifact", "path=../models/m-1/artifacts/model.pkl&run_uuid=a"),
        ("GET", "/get-artifact", "path=report.html&path=model.pkl&run_uuid=a"),
        ("GET", "/get-artifact", "path=report.html&artifact_file_path=model.pkl"),
        ("GET", "/get-artifact", "path=report.html%2F..%2Fmodel.pkl"),
        ("GET", "/get-artifact", ""),
        ("GET", f"{API}/logged-models/m-1/artifacts/files", "artifact_file_path=model%2Epkl"),
        ("GET", "/api/2.0/mlflow-artifacts/artifacts/models/m-1/artifacts/model.pkl", ""),
        ("GET", f"{API}-artifacts/artifacts/models/m-1/artifacts/model.pkl", ""),
        ("GET", f"{API}/get-trace-artifact", "request_id=../../x"),
        ("GET", f"{API}/gateway-proxy", "gateway_path=x"),
        ("GET", "/ajax-api/3.0/mlflow/assistant/config", ""),
        ("POST", f"{API}/runs/create", ""),
        ("POST", f"{API}/runs/delete", ""),
        ("POST", f"{API}/model-versions/create", ""),
        ("POST", f"{API}/upload-artifact", ""),
        ("POST", "/api/2.0/mlflow/runs/search", ""),
        ("PATCH", f"{API}/registered-models/update", ""),
        ("DELETE", f"{API}/registered-models/delete", ""),
        ("PUT", "/api/2.0/mlflow-artifacts/artifacts/x", ""),
    ],
)
def test_whatever_else_mlflow_can_do_is_refused(method: str, path: str, query: str) -> None:
    assert refusal(method, path, query) is not None
