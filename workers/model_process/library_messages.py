"""Makes plain sentences from the exceptions of Keras and JAX.

Their messages have several paragraphs with colours, the whole config of an object, the arguments of a call
and advice for someone who has the program open. People who read a report need the cause.
"""

import re

from workers.model_process.errors import plain_text

LIMIT = 500
_CAUSE = re.compile(r"(?:Exception encountered|Error encountered during deserialization): ")
"""Keras repeats the config of each object around the one that failed, and then writes the cause."""
_APPENDIX = re.compile(
    r"\s*(Full object config:|Arguments received by |Call arguments received by |Example:\s|-{20}"
    r"|List of objects that could not be loaded:|For simplicity, JAX has removed"
    r"|Make sure custom classes and functions are decorated).*",
    re.DOTALL,
)
_CONFIG = re.compile(r"\s*(?:using|with)?\s*\bconfig\s*=\s*\{.*\}\.?", re.DOTALL)
_LAMBDA = re.compile(r"\{'value': [\[(].*?[\])]\}", re.DOTALL)
"""Keras writes a lambda as its bytes."""
_OBJECT = re.compile(r"<class '(?:[\w.]+\.)?(\w+)'>|<(\w+) name=([\w/.-]+), built=\w+>")
_ADVICE = re.compile(
    r" Please ensure that components that are Python object instances.*?`from_config\(\)` method\.", re.DOTALL
)


def plain_message(error: BaseException, *, limit: int = LIMIT) -> str:
    """Return an exception's message as one line; its class if it has none.

    Args:
        error: raised by Keras, JAX, or code that they have called.
        limit: the most characters.
    """
    text = _CAUSE.split(str(error))[-1]
    for noise in (_ADVICE, _APPENDIX, _CONFIG):
        text = noise.sub("", text)
    text = _LAMBDA.sub("a lambda", text)
    text = plain_text(_OBJECT.sub(_named, text), limit=limit)
    return text or f"{type(error).__name__} without a message"


def _named(found: re.Match[str]) -> str:
    kind, layer, name = found.groups()
    return kind or f"{layer} {name!r}"
