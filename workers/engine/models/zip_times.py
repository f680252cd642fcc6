"""Sets the times of a zip file's members in place: their contents, which may be large, are not copied."""

import datetime as dt
import struct
import zipfile
from pathlib import Path

_LOCAL, _CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
_LOCAL_TIME, _CENTRAL_TIME = 10, 12
"""Where a header has its time and date, two bytes each."""
_CENTRAL_BYTES = 46
"""The length of an entry of the directory without its name, extra fields and comment."""


def set_member_times(path: Path, time: dt.datetime) -> None:
    """Give all members of a zip file one time, in both of their headers.

    Raises:
        zipfile.BadZipFile: a header is missing at the place that the directory names.
    """
    with zipfile.ZipFile(path) as archive:
        headers = [(info.header_offset, _LOCAL, _LOCAL_TIME) for info in archive.infolist()]
        entry, count = archive.start_dir, len(headers)
    stamp = struct.pack("<HH", *_dos_time(time))
    with path.open("r+b") as file:
        for _ in range(count):
            headers.append((entry, _CENTRAL, _CENTRAL_TIME))
            file.seek(entry + 28)
            entry += _CENTRAL_BYTES + sum(struct.unpack("<HHH", file.read(6)))
        for offset, signature, place in headers:
            file.seek(offset)
            if file.read(4) != signature:
                raise zipfile.BadZipFile(f"no header at byte {offset}")
            file.seek(offset + place)
            file.write(stamp)


def _dos_time(time: dt.datetime) -> tuple[int, int]:
    """Return a time and a date as MS-DOS has them: with even seconds, from 1980 on."""
    clock = time.hour << 11 | time.minute << 5 | time.second // 2
    return clock, (time.year - 1980) << 9 | time.month << 5 | time.day
