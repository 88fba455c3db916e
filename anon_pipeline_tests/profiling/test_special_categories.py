"""Special categories of Art. 9 GDPR are found by the column's name in eight languages, or by its values."""

from __future__ import annotations

import pytest

from anon_pipeline.profiling.special_categories import CATEGORIES, special_category

NAMED = {
    "health": [
        "diagnosis",
        "Diagnose",
        "maladie_chronique",
        "estado_de_salud",
        "malattia",
        "ziekte",
        "choroba",
        "doenca",
        "hivStatus",
        "Behinderungsgrad",
        "Hauptdiagnose",
        "Vorerkrankungen",
    ],
    "racial or ethnic origin": [
        "race",
        "ethnicity",
        "Rasse",
        "origine_ethnique",
        "raza",
        "etnia",
        "etniciteit",
        "narodowosc",
        "raca",
        "white",
        "black",
        "nonwhite",
        "hispan",
        "hispanic",
        "Hispanic_origin",
        "racegrp",
        "race_eth",
        "ethnic",
        "tethnicity1",
        "asian",
    ],
    "religious or philosophical belief": [
        "religion",
        "Konfession",
        "croyance",
        "iglesia",
        "chiesa",
        "geloof",
        "wyznanie",
        "crenca",
    ],
    "political opinion": [
        "political_party",
        "Partei",
        "parti_politique",
        "partido",
        "partito",
        "partij",
        "partia",
        "voto",
    ],
    "trade union membership": ["union_member", "Gewerkschaft", "syndicat", "sindicato", "sindacato", "vakbond"],
    "sex life or sexual orientation": [
        "sexual_orientation",
        "SexuelleOrientierung",
        "orientation_sexuelle",
        "orientamento_sessuale",
        "seksualnosc",
    ],
    "genetic data": ["genotype", "genome", "donnees_genetiques", "BRCA1", "snp_17"],
    "biometric data": [
        "fingerprint",
        "Fingerabdruck",
        "empreinte_digitale",
        "huella_dactilar",
        "impronta",
        "vingerafdruk",
    ],
}
VALUES = {
    "health": [f"{letter}{number}.{number % 10}" for letter in "EIJ" for number in range(10, 20)],
    "racial or ethnic origin": ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"],
    "religious or philosophical belief": ["evangelisch", "katholisch", "muslimisch", "konfessionslos", "sonstige"],
    "political opinion": ["SPD", "CDU/CSU", "FDP", "keine"],
    "sex life or sexual orientation": ["Heterosexual", "Bisexual", "unknown"],
    "genetic data": [f"rs{number}" for number in range(12_000, 12_040)],
}
OTHER = [
    "age",
    "sex",
    "gender",
    "income",
    "hours_per_week",
    "education",
    "general_rating",
    "particulier",
    "participants",
    "category",
    "genre",
    "grace",
    "trace_id",
    "politeness",
    "credit_union",
    "insurance_medical_premium",
    "birthday_party_size",
    "country",
    "generation",
    "white_wine",
    "black_box",
    "white_cell_count",
    "race_time",
    "tracer",
    "natrace",
]


@pytest.mark.parametrize(("category", "name"), [(one, name) for one, names in NAMED.items() for name in names])
def test_a_name_of_a_special_category_is_overlooked(category: str, name: str) -> None:
    found = special_category(name, [])
    assert found is not None
    assert (found.category, found.by) == (category, "name")


@pytest.mark.parametrize("category", VALUES)
def test_values_of_a_special_category_are_overlooked(category: str) -> None:
    found = special_category("v17", VALUES[category])
    assert found is not None
    assert (found.category, found.by) == (category, "values")


@pytest.mark.parametrize("name", OTHER)
def test_another_name_is_taken_for_a_special_category(name: str) -> None:
    assert special_category(name, ["red", "green", "blue", "black", "white"]) is None


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["I10", "E11.9", "J45.0", "F32.1"], True),
        (["I10", "E11.9", "J45.0", "other"], False),
        (["B12", "C07", "D31", "A01"], False),
        (["A12.1", "B01", "C02"], False),
    ],
)
def test_a_few_codes_of_diagnoses_are_told_from_seats(values: list[str], found: bool) -> None:
    """Ten different ones were needed, which a table of a few diagnoses does not have."""
    assert (special_category("v17", values) is not None) == found


def test_every_category_of_the_article_is_looked_for() -> None:
    assert {one.name for one in CATEGORIES} == set(NAMED)


def test_a_listed_value_can_never_be_met() -> None:
    for category in CATEGORIES:
        assert all(value == value.casefold().strip() and value for value in category.values), category.name
