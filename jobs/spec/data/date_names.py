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


def month_number(name: str) -> int:
    """Return a month's number from 1 to 12 by its name; 0 for another word."""
    return MONTHS.get(name.lower(), 0)
