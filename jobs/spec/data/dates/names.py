"""Names of months in dates, in English, German, French, Spanish, Italian, Portuguese and Dutch.

No name means different months in two of these languages.
"""

_NAMES: tuple[str, ...] = (
    "jan january januar jänner janv janvier ene enero gen gennaio janeiro januari",
    "feb february februar feber févr fév février febrero febbraio fev fevereiro februari",
    "mar march mär mrz märz mars marzo março mrt maart",
    "apr april avr avril abr abril aprile",
    "may mai mayo mag maggio maio mei",
    "jun june juni juin junio giu giugno junho",
    "jul july juli juil juillet julio lug luglio julho",
    "aug august août aoû ago agosto augustus",
    "sep sept september septembre septiembre set settembre setembro",
    "oct october okt oktober octobre octubre ott ottobre out outubro",
    "nov november novembre noviembre novembro",
    "dec december dez dezember déc décembre dic diciembre dicembre dezembro",
)
MONTHS: dict[str, int] = {
    name: number for number, names in enumerate(_NAMES, start=1) for name in names.split()
}
"""The number of each name, which is in lower case and without a point."""
ENGLISH = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ZONES: dict[int, str] = {
    -8: "PST",
    -7: "MST PDT",
    -6: "CST MDT",
    -5: "EST CDT",
    -4: "EDT",
    0: "UTC GMT UT Z WET",
    1: "WEST CET MEZ",
    2: "CEST MESZ EET",
    3: "EEST MSK",
    9: "JST KST",
    10: "AEST",
    11: "AEDT",
}
ZONES: dict[str, int] = {name: hours for hours, names in _ZONES.items() for name in names.split()}
"""Hours from UTC of the zones of RFC 2822, and of others whose names have one meaning."""


def month_number(name: str) -> int:
    """Return a month's number from 1 to 12 by its name; 0 for another word."""
    return MONTHS.get(name.lower(), 0)
