"""The column technique that puts a made-up but realistic value in a real one's place."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import Applied, Columns, Context
from anon_pipeline.masking.pseudonyms import PSEUDONYMOUS, KeyedTechnique, digests_of

Kind = Literal[
    "name",
    "first_name",
    "last_name",
    "email",
    "user_name",
    "phone_number",
    "street_address",
    "address",
    "city",
    "postcode",
    "country",
    "company",
    "job",
    "iban",
    "uuid4",
]


class Fake(KeyedTechnique):
    """Values become made-up ones of the same kind, one for one: who was one person stays one person.

    Faker (https://faker.readthedocs.io) with the HMAC-SHA256 of the value as its seed. Different values can get the
    same fake, and a fake can happen to be somebody's name. Another version of Faker makes other fakes; the report names
    it.
    """

    technique: Literal["fake"] = "fake"
    kind: Kind = Field(description="what is made up")
    locale: str = Field(default="en_US", pattern=r"^[a-z]{2,3}(_[A-Z][A-Za-z]+)?$", description="of which country")

    meaning: ClassVar[str] = "shows a made-up but realistic value, the same wherever the value stands"
    use_when: ClassVar[str] = (
        "a demonstration or a test system must look real; never where readers could take it as true"
    )

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        maker, version = self._maker(context.place)
        key = context.secrets.key(self.key)
        digests, code = digests_of(column, key.derived("fake", self.domain_of(name)))
        make = getattr(maker, self.kind)
        fakes = []
        for digest in digests:
            maker.seed_instance(int.from_bytes(digest.tobytes(), "big"))
            fakes.append(str(make()).replace("\n", ", "))
        masked = pa.DictionaryArray.from_arrays(code, pa.array(fakes, pa.string())).cast(pa.string())
        facts: dict[str, float | int | str | bool] = {
            "key_id": key.id,
            "faker": version,
            "values": len(fakes),
            "distinct_fakes": len(set(fakes)),
        }
        return Applied({name: masked}, facts=facts, notes=(PSEUDONYMOUS,))

    def _maker(self, place: str) -> tuple[Any, str]:
        try:
            import faker
        except ImportError:
            raise InputError(
                f"{place}: fake needs the package faker; run `pip install 'anon-pipeline[masking]'`"
            ) from None
        try:
            maker = faker.Faker(self.locale, use_weighting=True)
            getattr(maker, self.kind)
        except AttributeError:
            raise InputError(f"{place}.locale: Faker makes up no {self.kind} for {self.locale}; take en_US") from None
        return maker, str(faker.VERSION)
