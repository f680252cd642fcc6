"""Files: compression, workbooks, indices, titles above the header, encodings."""

import bz2
import datetime
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Sequence
from functools import partial
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
from openpyxl.worksheet.worksheet import Worksheet

from jobs.spec.data.columns import ColumnRequest
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

PLAIN = csv_rows("a,b,y", "1,x,0", "2,z,1", "3,x,0")
READ = {
    "a": ExpectedColumn("integer", "feature", values=(1, 2, 3)),
    "b": ExpectedColumn("category", "feature", values=("x", "z", "x")),
    "y": ExpectedColumn("integer", "target", values=(0, 1, 0)),
}
INDEX = ExpectedColumn("integer", "id")
case = partial(TableCase, source=None)
FRAME = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "z", "x"], "y": [0, 1, 0]})


def zstd(body: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(body)
    return bytes(sink.getvalue())


def zipped(hidden: str = "", **files: bytes) -> bytes:
    """Return a zip archive; in its names, __ is a slash and _ is a point.

    Args:
        hidden: the name of one more file.
        files: the others.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        if hidden:
            archive.writestr(hidden, b"hidden")
        for name, body in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), body)
    return target.getvalue()


def tarred(name: str, body: bytes, mode: Any = "w:gz") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(body)
        archive.addfile(member, io.BytesIO(body))
    return target.getvalue()


def workbook(*rows: Sequence[Any], other: Sequence[Sequence[Any]] = ()) -> bytes:
    """Return a workbook with a sheet Data, and a sheet Other if it has rows."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "Data"
    for row in rows:
        sheet.append(list(row))
    if other:
        sheet = book.create_sheet("Other")
        for row in other:
            sheet.append(list(row))
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def parquet(frame: pd.DataFrame) -> bytes:
    target = io.BytesIO()
    frame.to_parquet(target)
    return target.getvalue()


def text(*rows: str, encoding: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode(encoding)


COMPRESSED = (
    case("table.csv.gz", gzip.compress(PLAIN), READ, file={"format": "CSV", "compression": "gzip"}),
    case("table.csv.bz2", bz2.compress(PLAIN), READ, file={"compression": "bzip2"}),
    case("table.csv.xz", lzma.compress(PLAIN), READ, file={"compression": "xz"}),
    case("table.csv.zst", zstd(PLAIN), READ, file={"compression": "zstd"}),
    case("table.tsv.gz", gzip.compress(PLAIN.replace(b",", b"\t")), READ),
    case("table.jsonl.gz", gzip.compress(FRAME.to_json(orient="records", lines=True).encode()), READ),
    case("table.parquet.gz", gzip.compress(parquet(FRAME)), READ, file={"format": "Parquet"}),
    case("name_without_a_format.gz", gzip.compress(PLAIN), READ),
    case("compressed_under_another_name.csv", gzip.compress(PLAIN), READ),
    case("unpacked_by_a_browser.csv.gz", PLAIN, READ, file={"compression": None}),
    case("cut.csv.gz", gzip.compress(PLAIN)[:-9], refusal="is not a readable gzip file"),
    case("kaggle.zip", zipped(train_csv=PLAIN), READ, file={"archive": "zip", "members": ("train.csv",)}),
    case(
        "macintosh.zip", zipped(t_csv=PLAIN, hidden="__MACOSX/._t.csv", README_md=b"x", _DS_Store=b"x"), READ
    ),
    case("with_notes.zip", zipped(bank_csv=PLAIN, notes_txt=b"About the bank", bank_names=b"x"), READ),
    case("twice_compressed.zip", zipped(train_csv_gz=gzip.compress(PLAIN)), READ),
    case("excel.zip", zipped(train_xlsx=workbook(*map(list, [FRAME.columns, *FRAME.values]))), READ),
    case(
        "parts.zip",
        zipped(in__1_csv=csv_rows("a,b,y", "1,x,0"), in__2_csv=csv_rows("b,a,y", "z,2,1", "x,3,0")),
        READ,
        findings=("have the same columns and were read as one table: in/1.csv, in/2.csv",),
    ),
    case(
        "competition.zip",
        zipped(train_csv=PLAIN, test_csv=csv_rows("a,b", "1,x")),
        refusal="2 tables with different columns: test.csv, train.csv. Unpack it",
    ),
    case("database.zip", zipped(x_sqlite=b"SQLite format 3\0"), refusal="'x.sqlite' is an SQLite database"),
    case(
        "nothing.zip",
        zipped(a__x_bin=b"\0\2", b_exe=b"\2"),
        refusal="no images and no table; it has a/x.bin, b.exe",
    ),
    case("table.tar.gz", tarred("data/x.csv", PLAIN), READ, file={"archive": "tar.gz"}),
    case(
        "table.tar.bz2",
        tarred("x.csv", PLAIN, "w:bz2"),
        READ,
        file={"compression": "bzip2", "archive": "tar"},
    ),
)
HEADER = ["a", "b", "y"]
WORKBOOKS = (
    case(
        "workbook.xlsx",
        workbook(HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0]),
        READ,
        file={"format": "Excel workbook", "sheet": "Data"},
    ),
    case("workbook_under_an_old_name.xls", workbook(HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0]), READ),
    case("text_of_a_web_page.xls", PLAIN.replace(b",", b"\t"), READ),
    case(
        "workbook_with_a_title.xlsx",
        workbook(["Report of 2024"], [], HEADER, [1, "x", 0], [2, "z", 1], [], [3, "x", 0]),
        READ,
        findings=("A line that is no row was left out: 'Report of 2024'",),
        dialect={"skip_lines": 2},
    ),
    case(
        "workbook_that_begins_in_the_second_column.xlsx",
        workbook([None, *HEADER], [None, 1, "x", 0], [None, 2, "z", 1], [None, 3, "x", 0]),
        READ,
    ),
    case(
        "workbook_of_two_sheets.xlsx",
        workbook(HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0], other=[["no"]]),
        READ,
        findings=("The workbook has 2 sheets; 'Data' was read, and not 'Other'",),
    ),
    case(
        "workbook_whose_first_sheet_is_empty.xlsx",
        workbook(other=[HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0]]),
        READ,
    ),
    case(
        "types_of_cells.xlsx",
        workbook(
            ["day", "at", "ok", "rate", "code", "y"],
            [datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5, 10, 30), True, 0.25, "007", 0],
            [datetime.date(2024, 2, 5), datetime.datetime(2024, 1, 6), False, "#DIV/0!", "010", 1],
            [None, datetime.datetime(2024, 1, 7, 8), True, 3, "011", 0],
        ),
        {
            "day": ExpectedColumn(
                "date", missing=1, values=("2024-01-05T00:00:00.000000", "2024-02-05T00:00:00.000000", None)
            ),
            "at": ExpectedColumn(
                "date",
                values=(
                    "2024-01-05T10:30:00.000000",
                    "2024-01-06T00:00:00.000000",
                    "2024-01-07T08:00:00.000000",
                ),
            ),
            "ok": ExpectedColumn("boolean", values=(True, False, True)),
            "rate": ExpectedColumn("number", missing=1, values=(0.25, None, 3.0)),
            "code": ExpectedColumn("category", values=("007", "010", "011")),
        },
        findings=("One cell has an error in place of a value, which is then missing; D3 has #DIV/0!",),
    ),
    case(
        "formulas_that_were_never_computed.xlsx",
        workbook(HEADER, [1, "=A2", 0], [2, "=A3", 1], [3, "x", 0]),
        {"b": ExpectedColumn("category", missing=2)},
        findings=("2 formulas have no stored result",),
    ),
    case("empty.xlsx", workbook(), refusal="has no values in 'Data'"),
    case("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), refusal="save it as .xlsx"),
    case("document.xlsx", zipped(word__document_xml=b"x"), refusal="'word/document.xml' is XML"),
)
JSON = (
    case("array.json", FRAME.to_json(orient="records").encode(), READ, file={"format": "JSON"}),
    case("pretty.json", json.dumps(FRAME.to_dict("records"), indent=2).encode(), READ),
    case(
        "objects_that_follow_each_other.json",
        b"\n".join(json.dumps(row, indent=1).encode() for row in FRAME.to_dict("records")),
        READ,
    ),
    case(
        "lines.json",
        FRAME.to_json(orient="records", lines=True).encode(),
        READ,
        file={"format": "JSON Lines"},
    ),
    case("pandas.json", FRAME.to_json().encode(), READ, findings=("its inner keys, such as '0'",)),
    case("lists.json", json.dumps(FRAME.to_dict("list")).encode(), READ),
    case("split.json", FRAME.to_json(orient="split").encode(), READ),
    case(
        "rows.json",
        FRAME.set_index(pd.Index(["p", "q", "r"])).to_json(orient="index").encode(),
        {**READ, "index": ExpectedColumn("category", "id", values=("p", "q", "r"))},
    ),
    case(
        "answer.json",
        json.dumps({"count": 3, "results": FRAME.to_dict("records")}).encode(),
        READ,
        findings=("The rows are the objects in 'results'; 'count' was not read",),
    ),
    case(
        "of_python.json",
        b'[{"a": NaN, "b": "x", "y": 0}, {"a": 2, "b": "z", "y": 1}]',
        {"a": ExpectedColumn("number", missing=1, values=(None, 2.0))},
    ),
    case("under_another_name.txt", FRAME.to_json(orient="records").encode(), READ),
    case("of_a_shell.json", FRAME.to_json(orient="records").encode("utf-16"), READ),
    case("numbers_alone.json", b"[1, 2, 3]", refusal="a JSON array without objects; a table is"),
    case(
        "configuration.json",
        b'{"name": {"x": 1}, "version": 3, "list": [1]}',
        refusal="no table: it has 'name'",
    ),
    case("cut.json", b'[{"a": 1}, {"a": ', refusal="it ends within an object"),
)
INDICES = (
    case("to_csv.csv", FRAME.to_csv().encode(), {**READ, "index": INDEX}, findings=("it is called 'index'",)),
    case(
        "write_csv.csv",
        csv_rows('"","a","b","y"', '"Mazda RX4",1,"x",0', '"Datsun",2,"z",1', '"Fiat",3,"x",0'),
        {**READ, "index": ExpectedColumn("category", "id", values=("Mazda RX4", "Datsun", "Fiat"))},
    ),
    case(
        "saved_twice.csv",
        csv_rows(",Unnamed: 0,a,b,y", "0,0,1,x,0", "1,1,2,z,1", "2,2,3,x,0"),
        {**READ, "index": INDEX, "index_2": INDEX},
    ),
    case(
        "unnamed.csv",
        csv_rows("Unnamed: 0,a,b,y", "0,1,x,0", "1,2,z,1", "2,3,x,0"),
        {**READ, "index": INDEX},
    ),
    case(
        "requested_by_its_old_name.csv",
        csv_rows("Unnamed: 0,a,b,y", "5,1,x,0", "6,2,z,1", "7,3,x,0"),
        {**READ, "index": ExpectedColumn("integer", "feature", values=(5, 6, 7))},
        requests=(ColumnRequest(name="Unnamed: 0", role="feature"),),
    ),
    case(
        "taken.csv",
        csv_rows(",index,a,b,y", "7,5,1,x,0", "8,6,2,z,1", "9,7,3,x,0"),
        {**READ, "index": ExpectedColumn("integer", values=(5, 6, 7)), "index_2": INDEX},
    ),
    case(
        "two_levels.csv",
        csv_rows(",,a,b,y", "p,0,1,x,0", "p,1,2,z,1", "q,0,3,x,0"),
        {**READ, "index": ExpectedColumn("category", "id"), "index_2": INDEX},
    ),
    case(
        "dates_as_index.csv",
        csv_rows(",a,b,y", "2024-01-01,1,x,0", "2024-01-02,2,z,1", "2024-01-03,3,x,0"),
        {**READ, "index": ExpectedColumn("date", "feature")},
    ),
    case(
        "write_table.txt",
        csv_rows('"a" "b" "y"', '"Mazda RX4" 1 "x" 0', '"Datsun" 2 "z" 1', '"Fiat" 3 "x" 0'),
        {**READ, "index": ExpectedColumn("category", "id", values=("Mazda RX4", "Datsun", "Fiat"))},
        findings=("The rows have a field more than the header",),
    ),
    case(
        "write_table.tsv",
        csv_rows("a\tb\ty", "1\t1\tx\t0", "2\t2\tz\t1", "3\t3\tx\t0"),
        {**READ, "index": INDEX},
    ),
    case("named_index.parquet", parquet(FRAME.set_index("a")), READ),
    case("levels.parquet", parquet(FRAME.set_index(["a", "b"])), READ),
    case(
        "named_range.parquet",
        parquet(FRAME.set_index(pd.RangeIndex(1, 7, 2, name="row"))),
        {**READ, "row": ExpectedColumn("integer", values=(1, 3, 5))},
    ),
    case(
        "texts_as_index.parquet",
        parquet(FRAME.set_index(pd.Index(["p", "q", "r"]))),
        {**READ, "index": ExpectedColumn("category", "id", values=("p", "q", "r"))},
    ),
    case(
        "unnamed.parquet",
        parquet(FRAME.assign(**{"Unnamed: 0": [0, 1, 2]})),
        {**READ, "index": INDEX},
        target="y",
    ),
)
HEADERS = (
    case(
        "repeated_names.csv",
        csv_rows("a,a,b,b_2,b,y", "1,5,x,1,p,0", "2,6,z,2,p,1", "3,7,x,3,q,0"),
        {
            **READ,
            "a_2": ExpectedColumn("integer", "feature", values=(5, 6, 7)),
            "b_3": ExpectedColumn("category", values=("p", "p", "q")),
        },
        findings=("The header has 'a' 2 times; the further ones are called 'a_2'",),
    ),
    case(
        "a_name_missing.csv",
        csv_rows("a,,b,y", "1,5,x,0", "2,6,z,1", "3,7,x,0"),
        {**READ, "column_2": ExpectedColumn("integer", "feature")},
        findings=("The header has no name for 'column_2'",),
    ),
    case(
        "years_as_names.csv",
        csv_rows("b,2019,2020,y", "x,1,4,0", "z,2,5,1", "x,3,6,0"),
        {"2019": ExpectedColumn("integer", values=(1, 2, 3))},
    ),
    case(
        "title.csv",
        b"Sales of 2024\n\n" + PLAIN,
        READ,
        findings=("left out: 'Sales of 2024'",),
        dialect={"skip_lines": 2},
    ),
    case("title_of_a_workbook.csv", b"Sales,,\n,,\n" + PLAIN, READ, dialect={"skip_lines": 2}),
    case("facts_above.csv", b"Station,Berlin\nHeight,34\n\n" + PLAIN, READ, dialect={"skip_lines": 3}),
    case(
        "stated_delimiter.csv",
        b"sep=;\n" + PLAIN.replace(b",", b";"),
        READ,
        dialect={"delimiter": ";", "skip_lines": 1},
    ),
    case(
        "comments.csv",
        b"# made by hand\n#, twice\n" + PLAIN + b"# the end\n",
        READ,
        findings=("3 lines that are no rows were left out",),
    ),
    case("comment_between.csv", csv_rows("a,b,y", "1,x,0", "# checked until here", "2,z,1", "3,x,0"), READ),
    case("header_in_a_comment.csv", csv_rows("# a,b,y", "1,x,0", "2,z,1", "3,x,0"), READ),
    case(
        "numbers_with_a_sign.csv",
        csv_rows("#,a,b,y", "1,1,x,0", "2,2,z,1", "3,3,x,0"),
        {**READ, "#": ExpectedColumn("integer")},
    ),
    case(
        "colours.csv",
        csv_rows("colour,y", "#ff0000,0", "#00ff00,1", "#0000ff,0"),
        {"colour": ExpectedColumn("category", values=("#ff0000", "#00ff00", "#0000ff"))},
    ),
    case(
        "total.csv",
        csv_rows("b,a,y", "x,1,0", "z,2,1", "x,3,0", "Total,6,1"),
        READ,
        findings=("left out: 'Total,6,1'",),
    ),
    case(
        "total_that_is_none.csv",
        csv_rows("b,a,y", "x,1,0", "z,2,1", "Total,9,0"),
        {"b": ExpectedColumn("category", values=("x", "z", "Total"))},
        findings=("The last row begins with 'Total'",),
    ),
    case(
        "notes_below.csv",
        PLAIN + b"\nSource: Ministry\n* provisional\n",
        READ,
        findings=("'Source: Ministry'",),
    ),
    case("cut_row.csv", PLAIN + b"4", refusal="line 5 of cut_row.csv has 1 fields instead of 3"),
)
DELIMITERS = (
    case("blanks.txt", csv_rows("a b   y", "1 x 0", "2   z 1", "3 x  0"), READ, dialect={"delimiter": " "}),
    case(
        "blanks_and_tabs.data",
        csv_rows("1   2.5\tx", "2   3.5\tz", "3   4.5\tx"),
        {"column_2": ExpectedColumn("number", values=(2.5, 3.5, 4.5))},
        dialect={"delimiter": " ", "header": False},
    ),
    case(
        "decimal_commas_between_blanks.txt",
        csv_rows("a y", "1,5 0", "2,5 1", "3,5 0"),
        {"a": ExpectedColumn("number", values=(1.5, 2.5, 3.5))},
    ),
    case("bars.csv", PLAIN.replace(b",", b"|"), READ),
    case("double_colons.dat", PLAIN.replace(b",", b"::"), READ),
    case("carets.csv", PLAIN.replace(b",", b"^"), READ),
    case("control_signs.csv", PLAIN.replace(b",", b"\1"), READ),
    case("macintosh.csv", PLAIN.replace(b"\n", b"\r"), READ),
    case("zero_bytes.csv", PLAIN.replace(b"x", b"x\0\0"), READ, findings=("4 zero bytes were removed",)),
    case("one_column.csv", csv_rows("y", "1", "2"), refusal="has only one column"),
    case("vectors.txt", csv_rows("1 1:0.5 3:2", "0 2:1 3:1"), refusal="is LIBSVM"),
)
RUSSIAN = ("город,имя,y", "Москва,Иван,0", "Казань,Ольга,1", "Тула,Пётр,0")
CHINESE = ("城市,姓名,y", "北京,张伟,0", "上海,王芳,1", "广州,李娜,0")
JAPANESE = ("店舗,商品,y", "東京,りんご,0", "大阪,みかん,1", "名古屋,バナナ,0")
CZECH = ("město,jméno,y", "Plzeň,Jiří,0", "Brno,Tomáš,1", "Děčín,Božena,0")
HUNGARIAN = ("város,név,y", "Győr,Lőrinc,0", "Pécs,Gergő,1", "Szűcsi,Réka,0")
TURKISH = ("şehir,isim,y", "İstanbul,Ayşe,0", "Muğla,Işıl,1", "Diyarbakır,Çağla,0")
CHINESE_OF_TAIWAN = ("城市,姓名,y", "臺北,張偉,0", "高雄,王芳,1", "臺中,李娜,0")
KOREAN = ("도시,이름,y", "서울,김철수,0", "부산,이영희,1", "대구,박민수,0")
FRENCH = ("ville,nom,y", "Orléans,José,0", "Nîmes,Zoë,1", "Besançon,Andrée,0")


def of_language(name: str, rows: Sequence[str], codec: str, encoding: str, label: str = "") -> TableCase:
    """Return the case of a file in an encoding that must be detected."""
    columns = {
        column: ExpectedColumn("category", values=tuple(row.split(",")[at] for row in rows[1:]))
        for at, column in enumerate(rows[0].split(",")[:-1])
    }
    findings = (f"was read as {label}",) if label else ()
    return case(name, text(*rows, encoding=codec), columns, dialect={"encoding": encoding}, findings=findings)


ENCODINGS = (
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
)
CASES = (*COMPRESSED, *WORKBOOKS, *JSON, *INDICES, *HEADERS, *DELIMITERS, *ENCODINGS)
