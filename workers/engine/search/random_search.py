"""Random search: draws each configuration independently."""

from workers.engine.search.draws import draw_any
from workers.engine.search.proposals import one_by_one

answer = one_by_one(lambda _: draw_any)
