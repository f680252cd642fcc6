"""Names of months in dates, with their abbreviations and the forms that they have behind a day.

English, German, French, Spanish, Italian, Portuguese, Dutch, Danish, Norwegian, Swedish, Finnish, Polish,
Czech, Romanian, Turkish, Russian, Ukrainian and Greek. No name means different months in two of them.
"""

_LATIN: tuple[str, ...] = (
    "jan january januar jänner janv janvier ene enero gen gennaio janeiro januari",
    "feb february februar feber févr fév février febrero febbraio fev fevereiro februari",
    "mar march mär mrz märz mars marzo março mrt maart marts",
    "apr april avr avril abr abril aprile",
    "may mai mayo mag maggio maio mei maj",
    "jun june juni juin junio giu giugno junho",
    "jul july juli juil juillet julio lug luglio julho",
    "aug august août aoû ago agosto augustus augusti",
    "sep sept september septembre septiembre set settembre setembro",
    "oct october okt oktober octobre octubre ott ottobre out outubro",
    "nov november novembre noviembre novembro",
    "dec december dez dezember déc décembre dic diciembre dicembre dezembro des desember",
)
_OTHERS: tuple[str, ...] = (
    "tammikuuta stycznia styczeń ledna leden ianuarie ocak oca января январь янв січня січень ιανουαρίου ιαν",
    "helmikuuta lutego luty února únor februarie şubat şub февраля февраль фев лютого лютий φεβρουαρίου φεβ",
    "maaliskuuta marca marzec března březen martie mart марта март мар березня березень μαρτίου μαρ",
    "huhtikuuta kwietnia kwiecień dubna duben aprilie nisan nis апреля апрель апр квітня квітень "
    "απριλίου απρ",
    "toukokuuta maja května květen mayıs мая май травня травень μαΐου μάιος",
    "kesäkuuta czerwca czerwiec června červen iunie haziran haz июня июнь июн червня червень ιουνίου ιουν",
    "heinäkuuta lipca lipiec července červenec iulie temmuz tem июля июль июл липня липень ιουλίου ιουλ",
    "elokuuta sierpnia sierpień srpna srpen ağustos ağu августа август авг серпня серпень αυγούστου αυγ",
    "syyskuuta września wrzesień září septembrie eylül eyl сентября сентябрь сен сент вересня вересень "
    "σεπτεμβρίου σεπ",
    "lokakuuta października październik října říjen octombrie ekim eki октября октябрь окт жовтня жовтень "
    "οκτωβρίου οκτ",
    "marraskuuta listopada listopad listopadu noiembrie kasım kas ноября ноябрь ноя нояб листопада "
    "νοεμβρίου νοε",
    "joulukuuta grudnia grudzień prosince prosinec decembrie aralık ara декабря декабрь дек грудня грудень "
    "δεκεμβρίου δεκ",
)
MONTHS: dict[str, int] = {
    name: number
    for number, names in enumerate(zip(_LATIN, _OTHERS, strict=True), start=1)
    for name in " ".join(names).split()
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
