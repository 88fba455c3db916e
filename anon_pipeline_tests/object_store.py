"""A server of our own that speaks the protocol of S3, with credentials that nobody else may see."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from anon_pipeline_tests.skips import require_package

#: The access key and the secret that a run is given; what it leaves must not hold them.
ACCESS_KEY, SECRET = "AKIAGEHEIM4711", "geheim-4711-und-mehr"
BUCKET = "clinic"


class ObjectStore:
    """A server that runs in this process, with one bucket."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.files().create_dir(BUCKET)

    @property
    def environment(self) -> Mapping[str, str]:
        """What tools of S3 look for."""
        return {
            "AWS_ENDPOINT_URL": f"http://{self._address}",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def files(self) -> Any:
        """The store for writing, as pyarrow's file system."""
        from pyarrow import fs

        return fs.S3FileSystem(
            endpoint_override=self._address,
            scheme="http",
            region="us-east-1",
            access_key=ACCESS_KEY,
            secret_key=SECRET,
            allow_bucket_creation=True,
            background_writes=False,
        )

    def put(self, key: str, content: bytes) -> str:
        """Write an object; its address."""
        with self.files().open_output_stream(f"{BUCKET}/{key}", compression=None) as stream:
            stream.write(content)
        return f"s3://{BUCKET}/{key}"

    def delete(self, key: str) -> None:
        self.files().delete_file(f"{BUCKET}/{key}")


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    """A store that runs while the block lasts."""
    server_module = require_package("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        yield ObjectStore(f"127.0.0.1:{port}")
    finally:
        server.stop()
