"""Damages files as broken transfers and attackers do. All chance comes from the given `Random`."""

import io
import json
import pickle
import random
import re
import stat
import struct
import zipfile
from collections.abc import Callable

from tests.mutants.seeds import CELLS, DATE, FORMULAS, Evil, archive, header

HUGE = [
    b"\xff" * 8,
    b"\xff" * 7 + b"\x7f",
    b"\xff\xff\xff\x7f",
    bytes(8),
    b"\x01" + bytes(7),
    b"\x00\x00\x00\x80",
]
NUMBERS = [b"99999999999999999999", b"-1", b"0", b"1e999", b"4294967296", b"NaN", b"9" * 400, b"0x7f"]
TOKENS = [
    *[formula.encode() for formula in FORMULAS],
    b'"', b'""', b"\n", b"\r", b"\x00", b"\x1a", b",,,,", b";", b"\t\t", b"\\", b"{", b"}" * 9, b"[" * 300,
    b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa9", b"\\ud800", "\u202e\u2028".encode(),
    b"../../", b"/etc/passwd", b"null", b"true", b"Infinity", b"1" * 5000, b"PK\x03\x04", b"PAR1", b"ARROW1",
    b"\x93NUMPY", b"(" * 300, b"b'x'", b"None", b"|O", b"'|V0'", b"'<M8[as]'", b"<U99999999",
]  # fmt: skip
MAX_BYTES = 4_000_000
NAMES = [
    "../evil",
    "/evil",
    "a/../../evil",
    "C:\\evil",
    "..\\evil",
    "evil\x00.npy",
    "e" * 3000,
    "",
    ".",
    "dir/",
]
BOMB = bytes(64_000_000)

type Dice = random.Random


def bits(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Change some bits."""
    for _ in range(dice.choice([1, 1, 2, 8, 40])):
        if body:
            body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)
    return body


def cut(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Cut a file, at its start or at its end."""
    at = dice.randrange(len(body) + 1)
    return body[:at] if dice.random() < 0.8 else body[at:]


def overwritten(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Overwrite a part with random bytes, zeros or spaces."""
    start, length = dice.randrange(len(body) + 1), dice.choice([1, 4, 16, 200])
    body[start : start + length] = dice.choice([dice.randbytes(length), bytes(length), b" " * length])
    return body


def repeated(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Repeat a block, once or many times."""
    start, length = dice.randrange(len(body) + 1), dice.choice([1, 8, 64, 1000])
    body[start:start] = body[start : start + length] * dice.choice([1, 2, 50, 2000])
    return body


def removed(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Remove a block."""
    start = dice.randrange(len(body) + 1)
    del body[start : start + dice.choice([1, 2, 8, 100])]
    return body


def spliced(body: bytearray, dice: Dice, other: bytes) -> bytearray:
    """Continue a file with a part of another, or put that part inside it."""
    at, start = dice.randrange(len(body) + 1), dice.randrange(len(other) + 1)
    if dice.random() < 0.5:
        return body[:at] + other[start:]
    body[at:at] = other[start : start + dice.choice([10, 500, 10_000])]
    return body


def lengths(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Change a number in 1 to 8 bytes, as lengths and counts in headers have."""
    # Most of them are near the start or the end of a file.
    span = dice.choice([64, 512, len(body)])
    start = (
        dice.randrange(min(span, len(body)) + 1)
        if dice.random() < 0.5
        else max(len(body) - dice.randrange(1, span + 2), 0)
    )
    new = dice.choice([*HUGE, struct.pack("<I", dice.randrange(2**32)), bytes([dice.randrange(256)])])
    body[start : start + len(new)] = new
    return body


def written_numbers(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Replace a number that is written in digits, as in shapes and in JSON."""
    numbers = list(re.finditer(rb"[0-9]+", body[:20_000]))
    if not numbers:
        return bits(body, dice, b"")
    chosen = dice.choice(numbers)
    body[chosen.start() : chosen.end()] = dice.choice(NUMBERS)
    return body


def tokens(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Insert texts that have a meaning in some format, or in a spreadsheet."""
    for _ in range(dice.choice([1, 1, 3, 20])):
        at = dice.randrange(len(body) + 1)
        body[at:at] = dice.choice(TOKENS)
    return body


def swapped(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Swap two blocks."""
    length = dice.choice([1, 8, 64])
    a, b = sorted((dice.randrange(len(body) + 1), dice.randrange(len(body) + 1)))
    first, second = bytes(body[a : a + length]), bytes(body[b : b + length])
    body[b : b + length] = first
    body[a : a + length] = second
    return body


def cells(body: bytearray, dice: Dice, _other: bytes) -> bytearray:
    """Replace some fields in a text table by values at the limits of their types."""
    for _ in range(dice.choice([1, 3, 30])):
        texts = list(re.finditer(rb"[\w. %-]+", body[: dice.choice([500, 20_000])]))
        if not texts:
            break
        chosen = dice.choice(texts)
        body[chosen.start() : chosen.end()] = dice.choice(CELLS).encode()
    return body


type Mutation = Callable[[bytearray, Dice, bytes], bytearray]
ANYWHERE: list[Mutation] = [
    bits, cut, overwritten, repeated, removed, spliced, lengths, written_numbers, tokens, swapped,
]  # fmt: skip


def damaged(body: bytes, dice: Dice, other: bytes) -> bytes:
    """Return a mutated file; half of all archives by tricks with their members."""
    changed = bytearray(body)
    if body[:1].isalpha() and b"\0" not in body and dice.random() < 0.5:
        return bytes(cells(changed, dice, other))
    if body[:4] == b"PK\x03\x04" and dice.random() < 0.6:
        changed = bytearray(_of_archive(body, dice, other))
    for _ in range(dice.choice([0, 0, 1]) if changed != body else dice.choice([1, 1, 1, 2, 3])):
        changed = dice.choice(ANYWHERE)(changed, dice, other)
    return bytes(changed[:MAX_BYTES])


def _of_archive(body: bytes, dice: Dice, other: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(body)) as opened:
        members = {info.filename: opened.read(info) for info in opened.infolist()}
    name = dice.choice(list(members))
    trick = dice.randrange(11)
    if trick < 4:
        # The checksum of the member is right, so the damage reaches the reader of its content.
        members[name] = bytes(dice.choice(ANYWHERE)(bytearray(members[name]), dice, other))
    elif trick == 4:
        members[name] = dice.choice(_contents(dice))
    elif trick == 5:
        members[dice.choice(NAMES) + dice.choice(["", ".npy"])] = dice.choice([b"", members[name], b"x"])
    elif trick == 6:
        members |= {f"member{i}.npy": b"" for i in range(dice.choice([300, 5000]))}
    elif trick == 7:
        del members[name]
    elif trick == 8:
        return _special(members, name, dice)
    elif trick == 9:
        return archive(
            members | {"inner.npy": body}, method=dice.choice([zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
        )
    else:
        return _wrong_directory(archive(members), dice)
    return archive(members)


def _contents(dice: Dice) -> list[bytes]:
    """Return contents that no archive member should have."""
    shape = dice.choice(["(1000000000000,)", "(-1,)", "(0, 5)", "()", "(40, 99999999)", "(" * 300, "(1,)*9"])
    descr = dice.choice(
        ["'<f8'", "'|O'", "'|V0'", "'<U1000000'", "'<M8[s]'", "'|b1'", "'<c16'", "[('a', '<f8')]"]
    )
    depth = dice.choice([500, 200_000])
    return [
        pickle.dumps(Evil()),
        BOMB,
        b"",
        header(descr, shape, bytes(320)),
        b"[" * depth + b"]" * depth,
        b'{"a":' * depth + b"1" + b"}" * depth,
        json.dumps({"module": "os", "class_name": "system", "config": {}}).encode(),
    ]


def _special(members: dict[str, bytes], name: str, dice: Dice) -> bytes:
    """Return an archive with a link, a device, an encrypted member, or two members with one name."""
    file = io.BytesIO()
    kind = dice.choice([stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR, 0])
    with zipfile.ZipFile(file, "w") as zip_file:
        for member, content in members.items():
            info = zipfile.ZipInfo(member, DATE)
            if member == name:
                info.create_system = 3
                info.external_attr = (kind | 0o777) << 16
            zip_file.writestr(info, b"/etc/passwd" if member == name and kind == stat.S_IFLNK else content)
        if not kind:
            twice = zipfile.ZipInfo("twice.npy", DATE)
            twice.filename = name
            zip_file.writestr(twice, members[name])
    body = bytearray(file.getvalue())
    if dice.random() < 0.3:
        at = body.index(b"PK\x01\x02")
        body[at + 8] |= 1  # encrypted
    return bytes(body)


def _wrong_directory(body: bytes, dice: Dice) -> bytes:
    """Return an archive whose directory has other numbers than its members: sizes, offsets, counts, times."""
    changed = bytearray(body)
    at = changed.index(b"PK\x01\x02") if dice.random() < 0.7 else changed.rindex(b"PK\x05\x06")
    start = at + dice.randrange(4, 46)
    new = dice.choice(
        [b"\xff\xff\xff\xff", b"\xff\xff", bytes(4), b"\x01\x00", struct.pack("<I", dice.randrange(2**31))]
    )
    changed[start : start + len(new)] = new
    return bytes(changed)
