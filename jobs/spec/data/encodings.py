"""Names the encodings of text files, and detects a file's encoding from its bytes."""

import codecs
import re
from collections.abc import Mapping
from typing import Literal, get_args

Encoding = Literal[
    "utf-8",
    "utf-16",
    "latin-1",
    "windows-1250",
    "windows-1251",
    "windows-1253",
    "windows-1254",
    "koi8-r",
    "mac-roman",
    "shift-jis",
    "euc-jp",
    "gbk",
    "big5",
    "euc-kr",
]
CODECS: dict[Encoding, str] = {
    "utf-8": "utf-8-sig",
    "utf-16": "utf-16",
    # What spreadsheets write as Latin-1 is Windows-1252, which has the euro sign.
    "latin-1": "cp1252",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1253": "cp1253",
    "windows-1254": "cp1254",
    "koi8-r": "koi8_r",
    "mac-roman": "mac_roman",
    # These are what programs write under the names of the standards, with more characters.
    "shift-jis": "cp932",
    "euc-jp": "euc_jp",
    "gbk": "gb18030",
    "big5": "big5",
    "euc-kr": "cp949",
}
"""Python's codecs. The one for UTF-8 skips a byte order mark."""
ENCODING_LABELS: dict[Encoding, str] = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "latin-1": "Latin-1 (Windows-1252)",
    "windows-1250": "Windows-1250 (Central Europe)",
    "windows-1251": "Windows-1251 (Cyrillic)",
    "windows-1253": "Windows-1253 (Greek)",
    "windows-1254": "Windows-1254 (Turkish)",
    "koi8-r": "KOI8-R (Cyrillic)",
    "mac-roman": "Mac Roman",
    "shift-jis": "Shift JIS (Japanese)",
    "euc-jp": "EUC-JP (Japanese)",
    "gbk": "GBK (simplified Chinese)",
    "big5": "Big5 (traditional Chinese)",
    "euc-kr": "EUC-KR (Korean)",
}
PLAIN: frozenset[Encoding] = frozenset({"utf-8", "utf-16", "latin-1"})
"""Encodings that are read as they are. Text in another one is first copied as UTF-8."""
MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
DECIDING_BYTES = 64 << 10
"""Bytes from which an encoding other than UTF-8 is detected."""
_WESTERN: tuple[Encoding, ...] = ("latin-1", "mac-roman", "windows-1254", "windows-1250")
"""Encodings whose texts have mainly Latin letters. Of equally likely ones the first is taken."""
_ALPHABETS: dict[str, str] = {
    "French": "àâçéèêëîïôùûüÿœæ",
    "German": "äöüß",
    "Spanish": "áéíñóúü¿¡ªº",
    "Portuguese": "ãáàâçéêíóôõúªº",
    "Italian": "àèéìíîòóùú",
    "Nordic": "åäöæøé",
    "Icelandic": "áæéíðóöþúý",
    "Dutch": "éëïóöüè",
    "Czech and Slovak": "áčďéěíňóřšťúůýžäĺľôŕ",
    "Polish": "ąćęłńóśźż",
    "Hungarian": "áéíóöőúüű",
    "Romanian": "ăâîşţ",
    "South Slavic": "čćđšž",
    "Estonian": "äöüõšž",
    "Turkish": "çğıöşüi̇âîû",
}
_OWN_ALPHABETS: tuple[tuple[Encoding, str], ...] = (
    ("windows-1251", "[А-яЁёІіЇїЄєҐґ«»–—№]"),
    ("koi8-r", "[А-яЁё]"),
    ("windows-1253", "[Ά-ώ]"),
)
_UNLIKELY = re.compile(r"[^\W\d_]þ|õ(?![eE])")
"""Icelandic words begin with þ, which is ş in Turkish; Portuguese õ precedes e, and is ő in Hungarian."""
_SLIGHTLY = 0.01
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
"""Bytes that are no character in Windows-1252."""
_CLEAR = 0.9
"""Share of the special characters from which an encoding is taken without a comparison with others."""
_CONTROL = re.compile(rb"[\x02-\x08\x0e-\x19\x1b-\x1e]")
"""Control characters that no text has. Programs divide fields by 1 or 31, fill them with 0, end with 26."""
_FEW, _MANY = 0.01, 0.3
_CLEAR_HANGUL = 0.95
_SIGNS = "€£¥§°±²³µ·«»“”„‘’‚–—…©®™×÷½¼¾•‰†\xa0"
"""Signs that texts in every language may have."""


def encoding_of(start: bytes, *, is_all: bool) -> Encoding:
    """Detect a text's encoding: by its byte order mark or the places of its zero bytes, else UTF-8 if it is
    valid, else the one whose characters make the most likely words.

    Args:
        start: the file's first bytes.
        is_all: whether these are all bytes of the file.
    """
    for mark, encoding in MARKS:
        if start.startswith(mark):
            return encoding
    if wide_codec(start) is not None:
        return "utf-16"
    try:
        # Incremental, since the last character of a part may be incomplete.
        codecs.getincrementaldecoder("utf-8")().decode(start, final=is_all)
    except UnicodeDecodeError:
        return encoding_of_lines(start)
    return "utf-8"


def wide_codec(start: bytes) -> str | None:
    """Return the codec of UTF-16 without a byte order mark: most of its characters have one zero byte."""
    pairs = len(start) // 2
    if pairs < 4:
        return None
    even, odd = (start[first : 2 * pairs : 2].count(0) for first in (0, 1))
    if odd > 0.6 * pairs and even < 0.1 * pairs:
        return "utf-16-le"
    return "utf-16-be" if even > 0.6 * pairs and odd < 0.1 * pairs else None


def is_text(start: bytes) -> bool:
    """Return whether a file with these first bytes is text: it has few control characters."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or wide_codec(start) is not None:
        return True
    return len(_CONTROL.findall(start)) <= _FEW * len(start) and start.count(0) <= _MANY * len(start)


def codec_of(encoding: Encoding, start: bytes) -> str:
    """Return the codec with which a file is decoded that begins with these bytes."""
    if encoding != "utf-16" or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return CODECS[encoding]
    # Without a mark, Python's own decoder raises an error. Who chose it by mistake sees wrong characters.
    return wide_codec(start) or "utf-16-le"


def encoding_of_lines(lines: bytes) -> Encoding:
    """Detect the encoding of lines that are not UTF-8."""
    found = [line for line in re.split(rb"[\r\n]+", lines) if not line.isascii()]
    if found and sum(map(_is_utf8, found)) > _CLEAR * len(found):
        # A few damaged characters do not make it another encoding, in which all others would be wrong.
        return "utf-8"
    # Each line once: many equal ones would mislead.
    body = b"\n".join(dict.fromkeys(found))
    western, share = _western(body)
    if share > _CLEAR and _is_accented(body):
        return western
    # The bytes of small letters in these are those of rare characters in Chinese and Korean.
    if (own := _with_own_alphabet(body)) is not None and own != "koi8-r":
        return own
    candidates = _candidates(body)
    best = candidates[0] if candidates else western
    if best == "euc-kr" and _share_of_hangul(body) < _CLEAR_HANGUL:
        # Its bytes are also Chinese ones, and Korean texts have few Chinese characters.
        return "gbk"
    if best not in _WESTERN:
        return best
    return western if _is_accented(body) else own or western


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _candidates(body: bytes) -> list[Encoding]:
    """Return the encodings that fit some lines, the most likely one first."""
    from charset_normalizer import from_bytes

    names: Mapping[str, Encoding] = {
        codec: name for name, codec in CODECS.items() if name not in ("utf-8", "utf-16")
    }
    matches = from_bytes(body, cp_isolation=[*names], preemptive_behaviour=False)
    return [names[match.encoding] for match in matches if match.encoding in names]


def _is_accented(body: bytes) -> bool:
    """Return whether most special characters are single ones in words of ASCII letters, as accents are."""
    runs = [(match.group(), match.span()) for match in re.finditer(rb"[\x80-\xff]+", body)]
    if len({byte for run, _ in runs for byte in run}) == 1:
        return True
    beside = sum(
        len(run) <= 2 and (body[max(begin - 1, 0) : begin].isalpha() or body[end : end + 1].isalpha())
        for run, (begin, end) in runs
    )
    return beside > len(runs) / 2


def _share_of_hangul(body: bytes) -> float:
    special = [character for character in body.decode(CODECS["euc-kr"], "replace") if not character.isascii()]
    return sum("가" <= character <= "힣" for character in special) / max(len(special), 1)


def _with_own_alphabet(body: bytes) -> Encoding | None:
    """Return the encoding in which all special characters are letters of one alphabet, in natural case."""
    for encoding, alphabet in _OWN_ALPHABETS:
        text = body.decode(CODECS[encoding], errors="replace")
        words = re.findall(r"[^\W\d_]+", text)
        special = [character for character in text if not character.isascii()]
        is_own = all(re.fullmatch(alphabet, character) for character in special)
        small = sum(character.islower() for character in special)
        is_natural = all(word.islower() or word.isupper() or word.istitle() for word in words)
        # Words of one alphabet have no letters of the other.
        is_natural &= not any(re.search("[A-Za-z]", word) for word in words if not word.isascii())
        if is_own and is_natural and small > len(special) / 2:
            return encoding
    return None


def _western(body: bytes) -> tuple[Encoding, float]:
    """Return the encoding of Latin letters in which most special characters are letters of one language, and
    their share.
    """
    shares = {encoding: _share_of_one_language(body, CODECS[encoding]) for encoding in _WESTERN}
    best = max(_WESTERN, key=lambda encoding: shares[encoding])
    # Words of many languages are the most usual one's, in which some bytes do not exist.
    is_usual = shares[best] <= 1 / 2 and not _UNDEFINED.search(body)
    return (_WESTERN[0] if is_usual else best), shares[best]


def _share_of_one_language(body: bytes, codec: str) -> float:
    text = body.decode(codec, errors="replace")
    special = [character for character in text if not character.isascii()]
    if not special:
        return 0.0
    signs = sum(character in _SIGNS for character in special)
    # A sign between letters, as in "Plze³", is a wrongly decoded letter.
    inside = len(re.findall(rf"[^\W\d_][{re.escape(_SIGNS)}][^\W\d_]", text.replace("’", "'")))
    # So are a closing quotation mark and a dash at the begin of a word.
    inside += len(re.findall(r"(?<!\w)[»”–][^\W\d_]", text))
    # So is a capital letter after a small one.
    inside += len(re.findall(r"[a-zß-öø-ÿ][À-ÖØ-Þ]", text))
    letters = max(
        sum(character.lower() in alphabet for character in special) for alphabet in _ALPHABETS.values()
    )
    # Of two encodings that are equally likely, these places of letters of the first decide.
    unlikely = _SLIGHTLY * bool(_UNLIKELY.search(text))
    return (letters + signs - 2 * inside) / len(special) - unlikely


ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
