"""Direct identifiers: the values, and the names of columns, that show that a column names people.

Numbers with check digits are checked by python-stdnum, which has each country's published rule. A random number meets
such a rule by chance: one in ten meets a usual rule, and one in seven of nine digits meets the Czech rule. So a column
counts only where nine in ten of its values meet the same rule. Then, of columns with ten random numbers (the fewest
that are judged), less than one in a million is taken for identifiers. At worst it is 2.9e-7, for nine digits (binomial
tails summed over the rules).
"""

from __future__ import annotations

import importlib
import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from anon_pipeline.profiling.column_names import named_by, words_of

#: How many distinct values of a column are examined, and how many a column must have at least for a rule to count.
LOOKED_AT, FEWEST = 200, 10
#: A longer text, such as a list of numbers, is no identifier; a rule would take minutes for a column of such texts.
LONGEST = 500
#: Above the first share of distinct values a column is nearly unique per person; below the second it numbers nobody.
NEAR_UNIQUE, REPEATS = 0.95, 0.02
#: Shares of values that must meet a rule: a rule that nothing else meets, one that much resembles, one met by chance.
CERTAIN, LIKELY, CHANCE = 0.1, 0.5, 0.9

EMAIL = re.compile(r"(mailto:)?[^@\s<>]+@[^@\s<>]+\.[^@\s<>]{2,}|.*<[^@\s<>]+@[^@\s<>]+\.[^@\s<>]{2,}>")
UUID = re.compile(r"\{?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?", re.IGNORECASE)
#: An address on the web that names a user: /users/17, /@ada, ?uid=17, or a page of a social network.
USER_URL = re.compile(
    r"(https?://)?\S+\.\S+("
    r"/(users?|u|profiles?|members?|people|person|accounts?|in|~|id)/\S+|/@\S+|/~\S+|[?&](user|uid|user_?id|id|member)=\S+"
    r")|(https?://)?(www\.)?(facebook|instagram|twitter|x|github|gitlab|tiktok)\.com/\S+",
    re.IGNORECASE,
)
PHONE = re.compile(r"(\+|00?)?[\s(]*[0-9][0-9\s().\-/]{5,20}[0-9](\s*(x|ext\.?)\s*[0-9]{1,5})?", re.IGNORECASE)
#: Digits with separators that are no phone number: a date, a long postal code, a number with a fraction.
NO_PHONE = re.compile(r"\d{1,4}([-/. ])\d{1,2}\1\d{1,4}|\d{5}-\d{4}|[1-9][0-9]*|[0-9]+\.[0-9]+")
#: Two numbers that may be the ends of a range.
RANGE = re.compile(r"([0-9]+) ?[-/] ?([0-9]+)")
#: The British national insurance number (HMRC, National Insurance Manual, NIM39110); it has no check digit.
NINO = re.compile(r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]")
#: The American number is recognized by its hyphens, since nine plain digits nearly always meet its rule.
SSN = re.compile(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}")
CARD = re.compile(r"[2-6][0-9]{3}([ -]?[0-9]{2,6}){2,4}")

#: National numbers with check digits, by their names in python-stdnum.
NATIONAL = {
    "at.vnr": "Austrian social insurance number",
    "au.tfn": "Australian tax file number",
    "be.nn": "Belgian national number",
    "bg.egn": "Bulgarian personal number",
    "br.cpf": "Brazilian CPF",
    "ca.sin": "Canadian social insurance number",
    "ch.ssn": "Swiss AHV number",
    "cl.rut": "Chilean RUT",
    "cn.ric": "Chinese identity number",
    "cz.rc": "Czech or Slovak birth number",
    "de.idnr": "German tax number",
    "dk.cpr": "Danish CPR number",
    "ee.ik": "Estonian personal number",
    "es.dni": "Spanish DNI",
    "es.nie": "Spanish NIE",
    "fi.hetu": "Finnish personal number",
    "fr.nir": "French NIR",
    "gb.nhs": "British NHS number",
    "gr.amka": "Greek AMKA",
    "hr.oib": "Croatian OIB",
    "ie.pps": "Irish PPS number",
    "il.idnr": "Israeli identity number",
    "in_.aadhaar": "Indian Aadhaar number",
    "in_.pan": "Indian PAN",
    "is_.kennitala": "Icelandic kennitala",
    "it.codicefiscale": "Italian codice fiscale",
    "kr.rrn": "Korean resident number",
    "lt.asmens": "Lithuanian personal number",
    "mx.curp": "Mexican CURP",
    "nl.bsn": "Dutch BSN",
    "no.fodselsnummer": "Norwegian birth number",
    "pl.pesel": "Polish PESEL",
    "pt.cc": "Portuguese citizen card",
    "ro.cnp": "Romanian CNP",
    "se.personnummer": "Swedish personal number",
    "th.pin": "Thai personal number",
    "tr.tckimlik": "Turkish identity number",
    "za.idnr": "South African identity number",
}

#: Names of columns that hold people's names; "name" alone, or beside a word for a person, is one too.
NAMES_OF_PEOPLE = (
    *("surname*", "lastname", "last name", "firstname", "first name", "forename*", "given name", "givenname"),
    *("family name", "middle name", "maiden name", "full name", "fullname", "initials"),
    *("vorname*", "nachname*", "familienname*", "geburtsname", "prenom*", "nom de famille", "nom", "nombre", "nombres"),
    *("apellido*", "cognome*", "nome", "nomi", "voornaam", "achternaam", "naam", "imie", "nazwisko", "sobrenome"),
)
#: Names of columns of values that reach or name one person.
NAMING = (
    *("email*", "e mail", "mail", "mailadresse", "courriel", "correo"),
    *("phone*", "telephone*", "telefon*", "mobile", "handy*", "cell phone", "cellphone", "fax", "tel"),
    *("address", "street", "adresse", "anschrift", "strasse", "rue", "calle", "domicilio", "indirizzo", "adres"),
    *("ssn", "social security", "nino", "national insurance", "nir", "bsn", "pesel", "dni", "nie", "codice fiscale"),
    *(
        "ahv*",
        "steuer id",
        "steuernummer",
        "sozialversicherung*",
        "personnummer",
        "cpr",
        "cpf",
        "passport*",
        "reisepass*",
    ),
    *("passeport", "pasaporte", "driver license", "driving licence", "license plate", "licence plate", "kennzeichen"),
    *("iban", "bic iban", "konto", "kontonummer", "account number", "account no", "card number", "credit card"),
    *("kreditkarte*", "username", "user name", "login", "nickname", "password", "passwort", "uuid", "guid", "vin"),
    *("ip", "ip address", "ipaddress", "mac address", "device id", "cookie*", "imei", "imsi", "medical record", "mrn"),
)
PERSON = (
    *("person*", "people", "patient*", "customer*", "client*", "user*", "employee*", "staff", "member*", "student*"),
    *(
        "subject*",
        "citizen*",
        "resident*",
        "participant*",
        "contact*",
        "owner*",
        "holder*",
        "insured",
        "kunde*",
        "kunden*",
    ),
    *("mitarbeiter*", "versicherte*", "usager*", "salarie*", "cliente*", "paciente*", "paziente*", "klant*", "klient*"),
    *("pacjent*", "respondent*", "donor*", "author*", "doctor", "physician", "emergency", "mother", "father", "spouse"),
)
#: Names that are a person's number by themselves, in a table of people.
ALONE = (["id"], ["identifier"], ["pid"])
#: Names of one person that are their number, too; in the plural they would be how many people there are.
ONE_PERSON = (
    *("person", "patient", "customer", "client", "user", "employee", "member", "student", "participant", "respondent"),
    *("kunde", "mitarbeiter", "cliente", "paciente", "paziente", "klant", "klient", "pacjent"),
)
NUMBERING = ("id", "ids", "no", "nr", "num", "number", "nummer", "numero", "key", "code", "identifier", "pid", "record")
#: The reason where the name of a column tells it.
OF_A_PERSON = "its name is that of a person's number"


@dataclass(frozen=True)
class Rule:
    """The form of one kind of identifier, and the share of a column's values that must have it."""

    kind: str
    meets: Callable[[str], bool]
    least: float
    of_one_person: bool = False


@dataclass(frozen=True)
class Identified:
    """The reason why a column seems to name people directly.

    `of_one_person`: each value belongs to one person, so that it repeats only where this person has several rows.
    `shared`: different people may have the same value, as they have the same name.
    """

    why: str
    of_one_person: bool
    shared: bool = False


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, the most certain first; python-stdnum is imported when it is needed."""
    return (
        Rule("an e-mail address", lambda value: EMAIL.fullmatch(value) is not None, CERTAIN, True),
        Rule("a UUID", lambda value: UUID.fullmatch(value) is not None, CERTAIN),
        Rule("an IBAN", partial(_valid, "iban"), CERTAIN),
        Rule("a web address that names a user", lambda value: USER_URL.fullmatch(value) is not None, CERTAIN),
        Rule("an IP address", _is_ip, LIKELY),
        Rule("a hardware (MAC) address", partial(_valid, "mac"), LIKELY),
        Rule("a payment card number", _is_card, CHANCE),
        Rule("an American social security number", _is_ssn, CHANCE, True),
        Rule(
            "a British national insurance number", lambda value: NINO.fullmatch(value.upper()) is not None, CHANCE, True
        ),
        *(
            Rule(f"{'an' if kind[0] in 'AEI' else 'a'} {kind}", partial(_is_national, number), CHANCE, True)
            for number, kind in NATIONAL.items()
        ),
        Rule("a phone number", _is_phone, LIKELY),
    )


def by_values(values: Sequence[str]) -> Identified | None:
    """The kind of direct identifier that a column's values look like; None where they do not.

    Parameters
    ----------
    values : distinct values of the column; LOOKED_AT of them, evenly chosen, are examined
    """
    step = max(1, len(values) // LOOKED_AT)
    chosen = [value.strip() for value in values[::step][:LOOKED_AT]]
    if len(chosen) < FEWEST:
        return None
    for rule in rules():
        allowed = int((1 - rule.least) * len(chosen))
        failed = 0
        for value in chosen:
            failed += len(value) > LONGEST or not rule.meets(value)
            if failed > allowed:
                break
        else:
            if rule.meets is _is_phone and _are_ranges(chosen):
                return None
            return Identified(f"its values look like {rule.kind}", rule.of_one_person)
    return None


def names_somebody(value: str) -> bool:
    """Whether a single value certainly names somebody, so that it is no name of a column."""
    value = value.strip()
    return len(value) <= LONGEST and any(rule.meets(value) for rule in rules() if rule.least == CERTAIN)


def by_name(name: str, unique: float) -> Identified | None:
    """The kind of direct identifier that a column's name announces; None where it does not.

    Parameters
    ----------
    unique : share of distinct values among the known ones; a name such as "id" counts only where it is nearly 1
    """
    words = words_of(name)
    if named_by(name, NAMING):
        return Identified("its name is that of something that reaches or names one person", False)
    of_people = named_by(name, PERSON)
    alone = words in (["name"], ["names"], ["first"], ["last"])
    if named_by(name, NAMES_OF_PEOPLE) or alone or ("name" in words and of_people):
        return Identified("its name is that of people's names", False, shared=True)
    if numbers_by_name(name):
        if unique > NEAR_UNIQUE:
            return Identified("it numbers the rows, and nearly every row has a value of its own", False)
        if (of_people or words in ALONE) and unique > REPEATS:
            return Identified(OF_A_PERSON, True)
    elif len(words) == 1 and words[0] in ONE_PERSON and unique > REPEATS:
        return Identified(OF_A_PERSON, True)
    return None


def numbers_by_name(name: str) -> bool:
    """Whether a column has the name of a number that somebody or something was given."""
    words = words_of(name)
    numbering = any(word in NUMBERING or word.endswith(("nummer", "nr")) for word in words)
    return numbering or any(word.endswith("id") and named_by(word, PERSON) for word in words)


def _valid(number: str, value: str) -> bool:
    """Whether a value meets a rule of python-stdnum."""
    try:
        return bool(importlib.import_module(f"stdnum.{number}").is_valid(value))
    except (LookupError, ValueError, TypeError):  # some rules fail on other values (cn.ric of 2.2 on unknown places)
        return False


def _is_national(number: str, value: str) -> bool:
    """As `_valid`, but only for values as long as a national number, since some rules add leading zeros."""
    return 8 <= len(value) <= 22 and _valid(number, value)


def _is_card(value: str) -> bool:
    """Whether a value is a card number: digits of an issuer, of the right length, with Luhn's check digit."""
    digits = re.sub("[ -]", "", value)
    return CARD.fullmatch(value) is not None and 13 <= len(digits) <= 19 and _valid("luhn", digits)


def _is_ssn(value: str) -> bool:
    return SSN.fullmatch(value) is not None and _valid("us.ssn", value.replace(" ", "-"))


def _is_phone(value: str) -> bool:
    """Whether a value is a phone number: 7 to 15 digits (ITU-T E.164) with a plus, a leading zero, or gaps."""
    digits = sum(sign.isdigit() for sign in value)
    return 7 <= digits <= 20 and PHONE.fullmatch(value) is not None and NO_PHONE.fullmatch(value) is None


def _are_ranges(values: Sequence[str]) -> bool:
    """Whether values such as 2500-5000 and 5000-7500 are ranges: most begin where another ends, or one above it."""
    ends = [(int(found[1]), int(found[2])) for value in values if (found := RANGE.fullmatch(value)) is not None]
    tops = {top + gap for low, top in ends for gap in (0, 1) if low < top}
    return 2 * sum(low in tops for low, _ in ends) >= len(values)


def _is_ip(value: str) -> bool:
    if value.count(".") != 3 and value.count(":") < 2:
        return False
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
