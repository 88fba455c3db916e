"""The commitment to the source: its published hash, and the opening with which an auditor can check it on the source.

A plain hash of the source would confirm every right guess at it. So a release publishes the HMAC-SHA256 of facts about
the source, with a random secret for this release only. Secret and source hash are the opening. It stays in the private
zone until an auditor is given it. If an opening is deleted, nobody can ever check its commitment again. An opening that
was given away opens no other commitment.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, write_file
from anon_pipeline.release import ledger
from anon_pipeline.release.exported_report import manifest_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.policy import hashes_of_lists

FOLDER = "openings"
HOW = "commitment = HMAC-SHA256, key: the 32 bytes of `secret`, message: json.dumps(opens, sort_keys=True) in ASCII"


@dataclass(frozen=True)
class Opened:
    """The content of a commitment.

    Attributes
    ----------
    dataset, version : the release
    rows : number of rows that were read from the source
    content_hash : hash of the source with the types of the policy, independent of the order of its rows
    query : the query to a database, if any; queries are not published, since they may quote values
    lists : SHA-256 of the files of lists of values that the spec names, by their place in the spec; None if it names
        none
    """

    dataset: str
    version: str
    rows: int
    content_hash: str
    query: str | None
    lists: dict[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """What is committed to; `lists` only where there are some."""
        return {name: value for name, value in asdict(self).items() if name != "lists" or value is not None}


@dataclass(frozen=True)
class Opening:
    """The opening of a commitment.

    Attributes
    ----------
    opens : the content
    secret : 64 hexadecimal digits
    stated : the commitment that its file states, which people compare by eye; None where it states none
    kinds : the kinds in which the source was stored, by column, to know the same people in another export; not part of
        the commitment, and empty where they are not known
    """

    opens: Opened
    secret: str = field(repr=False)
    stated: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def drawn(cls, opens: Opened, kinds: Mapping[str, str] | None = None) -> Opening:
        """An opening with a new secret of 256 random bits, which is used for nothing else."""
        return cls(opens, secrets.token_hex(32), kinds=kinds or {})

    @property
    def commitment(self) -> str:
        """The published commitment: HMAC-SHA256 (RFC 2104), in hexadecimal."""
        message = json.dumps(self.opens.to_json(), sort_keys=True).encode()
        return hmac.digest(bytes.fromhex(self.secret), message, hashlib.sha256).hex()

    def to_json(self) -> dict[str, Any]:
        opens, kinds = self.opens.to_json(), {"kinds": dict(self.kinds)} if self.kinds else {}
        return {"commitment": self.commitment, "secret": self.secret, "opens": opens, "how": HOW, **kinds}

    def keep(self, home: Home) -> None:
        """Write it into the private zone; called before the release appears, so that no release lacks its opening."""
        home.private_folder(FOLDER, self.opens.dataset)
        write_file(_file(home, self.opens.dataset, self.opens.version), json.dumps(self.to_json(), indent=2) + "\n")

    @classmethod
    def read(cls, file: Path) -> Opening:
        """Read an opening that `keep` wrote, here or in another home.

        Raises
        ------
        InputError
            For a file that is not an opening.
        """
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            opens, secret = Opened(**content["opens"]), content["secret"]
            opening = cls(opens, secret, content.get("commitment"), dict(content.get("kinds", {})))
            if len(bytes.fromhex(opening.secret)) != 32:
                raise ValueError
            if not all(re.fullmatch(r"\w+", name) for name in (opening.opens.dataset, opening.opens.version)):
                raise ValueError  # its manifest would be looked for elsewhere than among the releases
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{file}: is no opening, as `anon-pipeline releases open` writes it") from None
        return opening


def opening_of(home: Home, version: str, dataset: str | None = None) -> Opening:
    """The stored opening of a release.

    Raises
    ------
    InputError
        Where there is no such release, it has no opening, or its opening is not in this home.
    Refused
        Where it has none here, and its manifest was altered.
    """
    entry = ledger.published(home, version, dataset)
    file = _file(home, entry.dataset, entry.version)
    try:
        file.stat()  # since Python 3.14 `exists` is false also where nobody but the owner may look
    except FileNotFoundError:
        if "differential_privacy" in manifest_of(home, entry):
            raise InputError(
                f"{entry.dataset}/{version}: has no opening, since noisy figures commit to no source"
            ) from None
        raise InputError(
            f"{entry.dataset}/{entry.version}: its opening is not in this home; only the publisher's private zone has "
            "it, unless it was deleted there"
        ) from None
    return Opening.read(file)


def check_opening(
    opening: Opening, manifest: dict[str, Any], spec: ReleaseSpec, engine: Engine, scratch: Path
) -> list[str]:
    """Compare an opening with the manifest of its release and with a source; returns a sentence per mismatch.

    Parameters
    ----------
    spec : the policy of the release; its `source` names the table to check
    scratch : a private folder to read the source into

    Raises
    ------
    InputError
        If the source cannot be read as the spec says.
    """
    opens, problems = opening.opens, []
    if (manifest.get("dataset"), manifest.get("version")) != (opens.dataset, opens.version):
        problems.append(f"the manifest is not that of {opens.dataset}/{opens.version}, which the opening is about")
    if opening.stated not in (None, opening.commitment):
        problems.append("the commitment that the opening states does not follow from its secret and what it opens")
    if manifest["source"].get("commitment") != opening.commitment:
        problems.append("the opening is not what the manifest commits to")
    if manifest.get("spec_hash") != spec.policy_hash:
        problems.append(
            "the spec is not the policy of the release, so the source may read differently under it; "
            "name the release.yaml as it was when the release was made"
        )
    spec = spec.model_copy(update={"source": spec.source.at(manifest["source"].get("table"))})
    stored = engine.store_source(spec, scratch / "source.parquet")
    if (stored.rows, stored.content_hash) != (opens.rows, opens.content_hash):
        problems.append("the source is not the one that the opening is about")
    if hashes_of_lists(spec) != (opens.lists or {}):
        problems.append("a list that the spec names is not the one of the release")
    return problems


def read_manifest(file: Path) -> dict[str, Any]:
    """A manifest as plain data.

    Raises
    ------
    InputError
        For a file that is none.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("source"), dict):
        raise InputError(f"{file}: is no manifest that can be read; name the release's with --manifest")
    return content


def _file(home: Home, dataset: str, version: str) -> Path:
    return home.private / FOLDER / dataset / f"{version}.json"
