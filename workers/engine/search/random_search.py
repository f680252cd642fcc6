"""Random search: draws each configuration independently."""

from workers.engine.search.draws import drawn
from workers.engine.search.proposals import one_by_one

answer = one_by_one(lambda _: drawn)
