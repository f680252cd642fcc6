"""How a task fails by its own fault: each kind has a stable code and a sentence for people."""


class EngineError(Exception):
    """The task cannot go on; `code` is stable, the message is a sentence that says what would do."""

    code = "failed"


class BadData(EngineError):
    """The data cannot be used; the message names the column and row."""

    code = "bad_data"


class BadSpec(EngineError):
    """The spec asks for something that this data or this machine cannot give."""

    code = "bad_spec"


class BadLayout(EngineError):
    """A layout rule does not fit the model's variables."""

    code = "bad_layout"


class BadCheckpoint(EngineError):
    """A checkpoint is whole but belongs to another model."""

    code = "bad_checkpoint"


class NanLoss(EngineError):
    """The loss became NaN or infinite."""

    code = "nan_loss"
