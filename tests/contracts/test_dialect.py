"""The dialect of a text table is detected from the file's start."""

import pytest

from jobs.spec.data.dialect import Dialect, DialectRequest, detect_dialect

GERMAN = "Straße;Fläche;Preis\nAm Wall;1.234,5;99,90 €\nMarkt;80,25;1.100,00 €\n"


def dialect_of(text: str, encoding: str = "utf-8", **fields: object) -> Dialect:
    return detect_dialect(
        text.encode(encoding), is_all=True, request=DialectRequest.model_validate(fields)
    ).dialect


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n3,1;4,0\n", ";"),
        ("a\tb, c\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('name,text\nx,"one; two; three"\ny,"a; b; c"\n', ","),
        ("only\n1\n2\n", ","),
        ("", ","),
    ],
)
def test_the_delimiter_divides_most_rows_alike(text: str, delimiter: str) -> None:
    assert dialect_of(text).delimiter == delimiter


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("cp1252", "latin-1"), ("utf-16", "utf-16")],
)
def test_the_encoding_is_detected_and_the_names_are_read(encoding: str, expected: str) -> None:
    sample = detect_dialect(GERMAN.encode(encoding), is_all=True)
    assert sample.dialect == Dialect(delimiter=";", encoding=expected, decimal=",", header=True)
    assert sample.rows[0] == ["Straße", "Fläche", "Preis"]
    assert sample.rows[1][2] == "99,90 €"


def test_a_character_that_the_end_of_the_sample_divides_is_still_utf_8() -> None:
    text = "a;b\n1;ü\n".encode()
    assert detect_dialect(text[:-2], is_all=False).dialect.encoding == "utf-8"
    assert detect_dialect(text[:-2], is_all=True).dialect.encoding == "latin-1"


@pytest.mark.parametrize("start", [b"", b"a", b"#", b"#a\n\n", b"a,b\n1,2\n", b"\xff", b"\xd8\x00\xd8"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize("is_all", [True, False])
def test_any_bytes_have_a_dialect_in_any_encoding(start: bytes, encoding: str, is_all: bool) -> None:
    request = DialectRequest.model_validate({"encoding": encoding})
    assert detect_dialect(start, is_all=is_all, request=request).dialect.encoding == encoding


def test_an_incomplete_last_row_is_not_part_of_the_sample() -> None:
    assert detect_dialect(b"a,b\n1,2\n3", is_all=False).rows == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a,b\n1,2\n", True),
        ("1,2\n3,4\n", False),
        ("2019,2020,y\n1,2,0\n3,4,1\n", True),
        ("red,1\ngreen,2\n", False),
        ("colour,size\nred,\ngreen,2\n", True),
        ("colour,shape\nred,round\n", True),
        ("a,b\n", True),
    ],
)
def test_a_header_is_a_first_row_without_numbers_above_numbers(text: str, header: bool) -> None:
    assert dialect_of(text).header is header


def test_what_a_person_knows_is_not_detected() -> None:
    fields = {"delimiter": ",", "encoding": "latin-1", "decimal": ",", "header": False}
    dialect = detect_dialect(
        b"a;b\n1;2\n", is_all=True, request=DialectRequest.model_validate(fields)
    ).dialect
    assert dialect.model_dump() == fields


@pytest.mark.parametrize("word", ["k.A.", "n/a", "-", "N.A.", "keine Angabe"])
def test_words_for_missing_numbers_change_neither_the_decimal_sign_nor_the_header(word: str) -> None:
    dialect = dialect_of(f"{word};1,5;1\n2,5;{word};2\n3,5;{word};3\n")
    assert (dialect.decimal, dialect.header) == (",", False)
    assert dialect_of(f"size;rate\n{word};2\n2,5;{word}\n").header


def test_a_word_for_a_gap_that_stands_only_in_the_first_row_is_a_name() -> None:
    assert dialect_of("2019;Na\n1;2\n3;4\n").header
    assert not dialect_of("2019;Na\n1;Na\n3;4\n").header


def test_thousands_do_not_outvote_decimal_commas() -> None:
    rows = "".join(f"1.{i:03};{'12,5' if i == 7 else 'k.A.'}\n" for i in range(20))
    assert dialect_of(f"people;size\n{rows}").decimal == ","
    assert dialect_of("a;b\n1.234;2\n3.456;1\n").decimal == "."


def test_decimals_with_a_percent_sign_show_the_decimal_sign() -> None:
    assert dialect_of("a;b\n12,5 %;x\n7,25%;y\n").decimal == ","
