"""Words for true and false, in files and requests, of a column that a person calls boolean."""

_TRUE = "true t yes y on 1 1.0 ja j wahr oui vrai si sí sì sim tak да"
_FALSE = "false f no n off 0 0.0 nein falsch non faux não nao nie нет"
BOOLEAN_WORDS = {**dict.fromkeys(_TRUE.split(), True), **dict.fromkeys(_FALSE.split(), False)}
"""In lower case."""


def boolean_of(text: str) -> bool | None:
    """Return the truth value that a word is, also with blanks around it; None for other words."""
    return BOOLEAN_WORDS.get(text.strip().lower())
