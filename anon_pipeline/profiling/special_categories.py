"""Special categories of personal data (GDPR, Art. 9): the names of columns, and the values, that indicate them.

The lists are in English, German, French, Spanish, Italian, Dutch, Polish and Portuguese. They find columns that have
the name of a category; stand-ins with other names are found by their association with these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from anon_pipeline.profiling.column_names import named_by, words_of

#: The share of a column's values that must be on a list, and the least number of distinct ones.
MOST, SEVERAL = 0.5, 2
#: The share of a column's values that must be codes, and how many there must be: a seat or a room may be a B12 too, but
#: hardly an E11.9.
NEARLY_ALL, ENOUGH_CODES, ENOUGH_WITH_A_POINT = 0.9, 10, 3


@dataclass(frozen=True)
class Category:
    """A category of Art. 9: words in the names of its columns, its values, and the form of its codes."""

    name: str
    named: tuple[str, ...]
    values: frozenset[str] = frozenset()
    codes: re.Pattern[str] | None = None


def _values(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(","))


CATEGORIES = (
    Category(
        "health",
        (
            *(
                "health*",
                "medic*",
                "medik*",
                "disease*",
                "illness*",
                "ill",
                "sick*",
                "diagnos*",
                "icd",
                "icd9",
                "symptom*",
            ),
            *(
                "therap*",
                "treatment*",
                "comorbid*",
                "disab*",
                "handicap*",
                "invalid*",
                "hospital*",
                "clinic*",
                "klini*",
            ),
            *("hiv", "aids", "cancer*", "tumor*", "tumour*", "diabet*", "asthma*", "covid*", "depress*", "psychi*"),
            *(
                "pregnan*",
                "allerg*",
                "vaccin*",
                "bmi",
                "blood*",
                "cholesterol*",
                "smok*",
                "alcohol*",
                "addict*",
                "drug*",
            ),
            *(
                "mortalit*",
                "surger*",
                "patholog*",
                "prescription*",
                "gesund*",
                "krank*",
                "befund*",
                "behinder*",
                "arzt*",
            ),
            *("schwanger*", "impf*", "blut*", "pflege*", "sucht*", "sante", "malad*", "medecin*", "sang", "enceinte"),
            *("salud*", "enfermedad*", "discapac*", "embaraz*", "salute", "malatt*", "gravidanza", "sangue", "sangre"),
            *("hauptdiagnos*", "nebendiagnos*", "aufnahmediagnos*", "entlassdiagnos*", "entlassungsdiagnos*"),
            *("erkrankung*", "vorerkrank*", "grunderkrank*", "begleiterkrank*", "schwerbehind*", "medikation*"),
            *("gezondheid*", "ziek*", "zwanger*", "zdrow*", "chorob*", "niepelnospr*", "ciaza", "saude", "doenca*"),
            *("deficiencia", "gravidez", "insulin*", "glucose", "heart rate", "blood pressure"),
        ),
        _values(
            "healthy, ill, sick, disabled, diabetes, asthma, cancer, hypertension, depression, hiv, hiv positive, "
            "covid-19, epilepsy, hepatitis, stroke, pregnant, gesund, krank, behindert, schwanger, sain, malade, "
            "sano, enfermo, malato"
        ),
        re.compile(r"[A-TV-Z][0-9][0-9AB](\.[0-9A-Z]{1,4})?|[A-TV-Z][0-9]{3}"),  # ICD-10
    ),
    Category(
        "racial or ethnic origin",
        (
            *(
                "race",
                "races",
                "racial*",
                "racegrp",
                "racegroup",
                "racecat",
                "raceeth*",
                "drace",
                "mrace",
                "frace",
                "ethni*",
                "tethni*",
                "skin color",
                "skin colour",
                "indigen*",
                "aborigin*",
                "tribe",
                "caste",
            ),
            *(
                "hispan*",
                "hisp",
                "black",
                "white",
                "nonwhite",
                "asian",
                "caucasian",
                "afam",
                "afro*",
                "latino",
                "latina",
                "latinx",
                "rasse*",
                "hautfarbe",
                "migrationshintergrund",
                "volksgruppe",
                "origine ethnique",
            ),
            *(
                "raza",
                "etnia*",
                "etnic*",
                "razza",
                "etni*",
                "ras",
                "huidskleur",
                "rasa",
                "narodowosc",
                "raca",
                "cor da pele",
            ),
        ),
        _values(
            "white, black, asian, hispanic, latino, latina, african american, african-american, caucasian, mixed "
            "race, roma, asian-pac-islander, asian-pacific-islander, asian/pacific islander, amer-indian-eskimo, "
            "native american, american indian, pacific islander, native hawaiian, indigenous, arab, white "
            "british, black african, black caribbean, south asian, east asian, multiracial, non-hispanic, "
            "kaukasisch, mestizo"
        ),
    ),
    Category(
        "religious or philosophical belief",
        (
            *("relig*", "faith", "church*", "belief*", "creed", "denominat*", "philosoph*", "konfession*", "kirche*"),
            *("glaube*", "weltanschauung*", "confession*", "croyance*", "culte", "iglesia", "creencia*", "confessione"),
            *("chiesa", "credo", "kerk*", "geloof*", "godsdienst*", "wyznan*", "wiara", "crenca*", "igreja", "mosque"),
        ),
        _values(
            "christian, catholic, roman catholic, protestant, orthodox, evangelical, lutheran, anglican, baptist, "
            "methodist, muslim, islam, sunni, shia, jewish, judaism, hindu, hinduism, buddhist, buddhism, sikh, "
            "atheist, agnostic, mormon, christianity, katholisch, evangelisch, römisch-katholisch, muslimisch, "
            "jüdisch, konfessionslos, catholique, protestante, musulman, juif, católico, católica, musulmán, "
            "judío, cattolico, katoliek, katolik, ateo"
        ),
    ),
    Category(
        "political opinion",
        (
            *("politic*", "politisch*", "politik*", "politique*", "polity*", "party", "partei*", "parti", "partido*"),
            *("partito", "partij*", "partia", "vote", "votes", "voted", "voting", "voter*", "ballot*", "wahl*"),
            *("ideolog*", "suffrage", "voto", "opinion politique"),
        ),
        _values(
            "democrat, republican, democratic party, republican party, libertarian, labour, conservative, tory, "
            "tories, lib dem, liberal democrat, green party, cdu, csu, spd, fdp, afd, die linke, bündnis 90/die "
            "grünen, cdu/csu, renaissance, rassemblement national, psoe, podemos, vox, left-wing, right-wing, "
            "socialist, communist, pvda, vvd"
        ),
    ),
    Category(
        "trade union membership",
        (
            *(
                "union",
                "unions",
                "trade union",
                "labor union",
                "labour union",
                "unionized",
                "unionised",
                "gewerkschaft*",
            ),
            *("syndicat*", "syndique", "sindicat*", "sindacat*", "vakbond*", "zwiazek zawodowy", "betriebsrat*"),
        ),
        _values(
            "union member, non-union, unionized, gewerkschaftsmitglied, ver.di, ig metall, cgt, cfdt, ugt, ccoo, cgil"
        ),
    ),
    Category(
        "sex life or sexual orientation",
        (
            *(
                "sexual*",
                "sexuel*",
                "sexuell*",
                "sessual*",
                "seksu*",
                "sex life",
                "sex partner*",
                "lgbt*",
                "gay",
                "queer",
            ),
            *("transgender", "sexualpartner*", "orientacion sexual", "std", "sti"),
        ),
        _values(
            "heterosexual, homosexual, bisexual, gay, lesbian, straight, asexual, pansexual, queer, "
            "heterosexuell, homosexuell, bisexuell, hétérosexuel, homosexuel, eterosessuale, omosessuale, "
            "heteroseksueel, homoseksueel"
        ),
    ),
    Category(
        "genetic data",
        (
            *(
                "genom*",
                "genet*",
                "genot*",
                "gene",
                "genes",
                "dna",
                "rna",
                "dns",
                "adn",
                "snp",
                "snps",
                "allel*",
                "haplotyp*",
            ),
            *("exome*", "brca*", "apoe*", "karyotyp*", "chromosom*", "mutation*", "rsid"),
        ),
        codes=re.compile(r"rs[0-9]{3,}|[ACGTUN-]{12,}|[cgp]\.[0-9]+[ACGT_>delinsup0-9]+"),
    ),
    Category(
        "biometric data",
        (
            *(
                "biometr*",
                "fingerprint*",
                "fingerabdr*",
                "empreinte*",
                "huella*",
                "impronta",
                "vingerafdruk*",
                "retina*",
            ),
            *(
                "iris",
                "faceprint*",
                "face id",
                "face embedding*",
                "facial*",
                "voiceprint*",
                "voice print",
                "palmprint*",
            ),
            *("gait", "gesichts*", "handvenen*"),
        ),
    ),
)

#: Words next to which a listed word means something else.
OTHER = {
    "trade union membership": ("european", "credit", "customs"),
    "political opinion": ("third", "birthday", "size"),
    "health": ("insurance",),
    "racial or ethnic origin": ("wine", "box", "cell", "cells", "collar", "noise", "card", "matter", "time", "hat"),
}
#: Categories whose few whole numbers are mostly codes: who is of 2 is not between those of 1 and of 3.
OF_KINDS = frozenset(
    {
        "racial or ethnic origin",
        "religious or philosophical belief",
        "political opinion",
        "sex life or sexual orientation",
    }
)


@dataclass(frozen=True)
class CategoryMatch:
    """A special category that a column seems to have, and the evidence for it: its name or its values."""

    category: str
    by: str


def is_of_kinds(name: str) -> bool:
    """Whether a column has the name of a special category that has kinds and no degrees, such as origin or belief."""
    found = special_category(name, [])
    return found is not None and found.category in OF_KINDS


def special_category(name: str, values: Sequence[str]) -> CategoryMatch | None:
    """The category of Art. 9 that a column seems to have, or None.

    Parameters
    ----------
    values : distinct values of the column, as texts; a few hundred are enough
    """
    words = words_of(name)
    for category in CATEGORIES:
        if named_by(name, category.named) and not set(words) & set(OTHER.get(category.name, ())):
            return CategoryMatch(category.name, "name")
    plain = [value.strip().casefold() for value in values]
    for category in CATEGORIES:
        listed = sum(value in category.values for value in plain)
        coded = [value for value in values if category.codes is not None and category.codes.fullmatch(value.strip())]
        enough = len(coded) >= ENOUGH_CODES or sum("." in code for code in coded) >= ENOUGH_WITH_A_POINT
        if (listed >= SEVERAL and listed >= MOST * len(plain)) or (enough and len(coded) >= NEARLY_ALL * len(plain)):
            return CategoryMatch(category.name, "values")
    return None
