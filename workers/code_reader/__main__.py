"""Answers one request about user code, in its own process.

Reads a `ReaderRequest` as JSON from standard input and writes the answer as JSON to standard output. A
hostile file can end this process, and no other: the caller reports that.
"""

import sys

from jobs.messages.code import (
    REQUEST,
    CompareRequest,
    Comparison,
    Highlighted,
    HighlightRequest,
    ReaderRefusal,
    Reading,
    ReadRequest,
)
from workers.code_reader import limits
from workers.system.archives import BadArchive


def answer(text: str) -> Reading | Highlighted | Comparison | ReaderRefusal:
    """Return the answer to a request in JSON."""
    request = REQUEST.validate_json(text)
    try:
        # Each kind imports its own modules alone: this process lives for a fraction of a second.
        match request:
            case ReadRequest():
                from workers.code_reader.reading import read

                return read(request)
            case HighlightRequest():
                from workers.code_reader.highlighting import highlight

                return highlight(request)
            case CompareRequest():
                from workers.code_reader.comparison import compare

                return compare(request)
    except BadArchive as error:
        return ReaderRefusal(refusal=str(error))


if __name__ == "__main__":
    limits.apply()
    sys.stdout.write(answer(sys.stdin.read()).model_dump_json())
