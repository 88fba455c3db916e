"""The addresses in a spec of tables that are not files of this machine."""

from __future__ import annotations

import re

#: Object stores by the beginning of an address: Amazon's and compatible ones, Google's, Microsoft's.
STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
#: A table of Iceberg in a catalogue: its name there, below the name of the catalogue in pyiceberg's configuration.
IN_CATALOGUE = re.compile(r"\w[\w-]*(\.\w[\w-]*){2,}")
#: Ending of the file that describes a state of an Iceberg table.
ICEBERG_METADATA = ".metadata.json"
ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<bucket>[^/]*)(/(?P<key>.*))?", re.DOTALL)
#: The account in an address of Microsoft: a container and a host.
CONTAINER = re.compile(r"[a-z0-9$-]+@[a-z0-9]+\.(dfs|blob)\.core\.windows\.net")
WHERE_SECRETS_LIE = "the credentials of a store lie where its own tools look for them (docs/sources.md)"


def is_address(place: str) -> bool:
    """Whether a place is an address and no file of this machine."""
    return ADDRESS.match(place) is not None


def parts_of(address: str) -> tuple[str, str, str]:
    """Store, bucket and key of an address in an object store; the key may be a prefix.

    Raises
    ------
    ValueError
        For a malformed address, or one that holds a secret. The sentence does not quote it.
    """
    found = ADDRESS.fullmatch(address)
    if found is None or found["scheme"].lower() not in STORES:
        known = ", ".join(f"{scheme}://" for scheme in STORES)
        raise ValueError(
            f"lies at an address of a kind that is not read; a file is named by its path, an object {known}"
        )
    scheme, bucket, key = STORES[found["scheme"].lower()], found["bucket"], found["key"] or ""
    if "@" in bucket and not (scheme == "az" and CONTAINER.fullmatch(bucket)):
        raise ValueError(f"holds a user, or the host of another; take it out: {WHERE_SECRETS_LIE}")
    if re.search(r"[?#\x00-\x1f\x7f\\]", address):
        raise ValueError(f"ends with the key of an object; take out what begins with ? or #: {WHERE_SECRETS_LIE}")
    if not bucket or not key.strip("/"):
        raise ValueError(f"names no object; write one as {found['scheme']}://bucket/people.parquet")
    if {".", "..", ""} & set(key.rstrip("/").split("/")):
        raise ValueError("has a part of its key that is empty, . or ..; write the key as the store has it")
    return scheme, bucket, key
