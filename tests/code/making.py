"""Source archives, and the code for a small model."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from jobs.messages.code import Reading, ReadRequest, SentFile
from workers.code_reader.reading import read

MODEL = """import keras
import keras_tuner as kt


@keras.saving.register_keras_serializable("shop")
class Doubled(keras.layers.Layer):
    def __init__(self, factor: float = 2.0, **kwargs):
        super().__init__(**kwargs)


class Net(kt.HyperModel):
    def __init__(self, classes: int, *, wide=False):
        self.classes = classes

    def build(self, hp):
        return keras.Sequential([Doubled()])

    def fit(self, hp, model, *args, **kwargs):
        return model.fit(*args, **kwargs)


def build_model(hp):
    return Net(10).build(hp)
"""


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return buffer.getvalue()


def tarred(files: Mapping[str, str | bytes], *more: tarfile.TarInfo, mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, text in files.items():
            body = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
        for entry in more:
            archive.addfile(entry)
    return buffer.getvalue()


def link(name: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, "/etc/passwd"
    return entry


def read_files(folder: Path, files: Mapping[str, str | bytes]) -> Reading:
    """Read files in this process, which is safe for those of a test alone."""
    sent = []
    for number, (path, text) in enumerate(files.items()):
        place = folder / f"sent-{number}"
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        sent.append(SentFile(place=str(place), path=path))
    into = folder / "kept"
    into.mkdir(exist_ok=True)
    return read(ReadRequest(files=sent, into=str(into)))
