"""Texts in other encodings than UTF-8, and damaged ones."""

from collections.abc import Sequence

from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows
from tests.engine.data.collection.contents import PLAIN, READ, case

RUSSIAN = ("город,имя,y", "Москва,Иван,0", "Казань,Ольга,1", "Тула,Пётр,0")
CHINESE = ("城市,姓名,y", "北京,张伟,0", "上海,王芳,1", "广州,李娜,0")
JAPANESE = ("店舗,商品,y", "東京,りんご,0", "大阪,みかん,1", "名古屋,バナナ,0")
CZECH = ("město,jméno,y", "Plzeň,Jiří,0", "Brno,Tomáš,1", "Děčín,Božena,0")
HUNGARIAN = ("város,név,y", "Győr,Lőrinc,0", "Pécs,Gergő,1", "Szűcsi,Réka,0")
TURKISH = ("şehir,isim,y", "İstanbul,Ayşe,0", "Muğla,Işıl,1", "Diyarbakır,Çağla,0")
CHINESE_OF_TAIWAN = ("城市,姓名,y", "臺北,張偉,0", "高雄,王芳,1", "臺中,李娜,0")
KOREAN = ("도시,이름,y", "서울,김철수,0", "부산,이영희,1", "대구,박민수,0")
FRENCH = ("ville,nom,y", "Orléans,José,0", "Nîmes,Zoë,1", "Besançon,Andrée,0")


def text(*rows: str, encoding: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode(encoding)


def of_language(name: str, rows: Sequence[str], codec: str, encoding: str, label: str = "") -> TableCase:
    """Return the case of a file in an encoding that must be detected."""
    columns = {
        column: ExpectedColumn("category", values=tuple(row.split(",")[at] for row in rows[1:]))
        for at, column in enumerate(rows[0].split(",")[:-1])
    }
    findings = (f"was read as {label}",) if label else ()
    return case(name, text(*rows, encoding=codec), columns, dialect={"encoding": encoding}, findings=findings)


CASES = (
    of_language("windows_1251.csv", RUSSIAN, "cp1251", "windows-1251", "Windows-1251 (Cyrillic)"),
    of_language("koi8.csv", RUSSIAN, "koi8_r", "koi8-r", "KOI8-R"),
    of_language("gbk.csv", CHINESE, "gbk", "gbk", "GBK"),
    of_language("shift_jis.csv", JAPANESE, "cp932", "shift-jis", "Shift JIS"),
    of_language("euc_jp.csv", JAPANESE, "euc_jp", "euc-jp", "EUC-JP"),
    of_language("windows_1250.csv", CZECH, "cp1250", "windows-1250", "Windows-1250"),
    of_language("latin_1.csv", FRENCH, "cp1252", "latin-1", "Latin-1"),
    of_language("mac_roman.csv", FRENCH, "mac_roman", "mac-roman", "Mac Roman"),
    of_language("windows_1250_of_hungary.csv", HUNGARIAN, "cp1250", "windows-1250"),
    of_language("windows_1254.csv", TURKISH, "cp1254", "windows-1254"),
    of_language("big5.csv", CHINESE_OF_TAIWAN, "big5", "big5"),
    of_language("euc_kr.csv", KOREAN, "euc-kr", "euc-kr"),
    of_language("utf_8_with_a_mark.csv", RUSSIAN, "utf-8-sig", "utf-8"),
    of_language("utf_16.csv", RUSSIAN, "utf-16", "utf-16"),
    case(
        "utf_16_without_a_mark.csv", PLAIN.decode().encode("utf-16-le"), READ, dialect={"encoding": "utf-16"}
    ),
    case(
        "utf_16_of_the_other_order.csv",
        PLAIN.decode().encode("utf-16-be"),
        READ,
        dialect={"encoding": "utf-16"},
    ),
    case(
        "encoding_far_behind.csv",
        csv_rows("b,y", *["x,1"] * 30_000) + text("Москва,0", "Казань,1", encoding="cp1251"),
        {"b": ExpectedColumn("category")},
        dialect={"encoding": "windows-1251"},
    ),
    case(
        "one_damaged_character.csv",
        csv_rows("b,y", *["Orléans,1"] * 20) + b"Bourg\xe9,0\nd\xc3\xa9j\xc3\xa0,1\n",
        {"b": ExpectedColumn("category", values=(*["Orléans"] * 20, "Bourg\ufffd", "déjà"))},
        findings=("One character does not exist in UTF-8",),
        dialect={"encoding": "utf-8"},
    ),
    case("garbled_accents.csv", csv_rows("b,y", "CafÃ©,0", "MÃ¼ller,1", "x,0"), findings=("'CafÃ©'",)),
    case(
        "lost_letters.csv", csv_rows("b,y", "Caf\ufffd,0", "M\ufffdller,1", "x,0"), findings=("'Caf\ufffd'",)
    ),
    case("accents.csv", csv_rows("b,y", "Café,0", "Ärzte,1", "São,0"), absent=("garbled",)),
    TableCase(
        "an_inch_far_from_quotes_in_utf_16.csv",
        csv_rows("a,y", 'abc" x\\" y,1', '"z",0').decode().encode("utf-16"),
        {"a": ExpectedColumn("category")},
    ),
)
