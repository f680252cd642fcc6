"""Declares the manifest of a checkpoint, which its writer leaves in the checkpoint's folder."""

from pydantic import ConfigDict, Field, field_validator

from jobs.spec.base import Frozen

MANIFEST, HISTORY = "manifest.json", "history.jsonl"
MAX_MANIFEST_BYTES = 2**20
MAX_FILES = 1000
"""Trainyard's checkpoints have fewer than ten files; code of users may write others."""


class FilePart(Frozen):
    """The first bytes of a file, which are all that belong to the checkpoint."""

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Manifest(Frozen):
    """A checkpoint's files with their sizes and digests. Its writer adds fields that only it needs."""

    model_config = ConfigDict(extra="ignore")

    files: dict[str, FilePart] = Field(max_length=MAX_FILES)
    history: FilePart | None = None

    @field_validator("files")
    @classmethod
    def _are_plain_names(cls, files: dict[str, FilePart]) -> dict[str, FilePart]:
        for name in files:
            if name in ("", ".", "..", MANIFEST, HISTORY) or "/" in name or "\0" in name or len(name) > 255:
                raise ValueError(f"{name[:100]!r} is not the name of a checkpoint's file")
        return files

    def parts(self) -> dict[str, FilePart]:
        """Return all parts of files by the file's name, without the manifest's own."""
        return self.files if self.history is None else {**self.files, HISTORY: self.history}
