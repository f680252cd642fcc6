"""An overview with many columns, for the look of its pictures."""

from jobs.messages.overview import (
    ColumnGaps,
    Correlations,
    Gaps,
    Information,
    Overview,
    PartRows,
    Repeats,
)
from jobs.spec.sections.data import Split

NAMES = ("price", "size", "rooms", "distance_to_the_nearest_station", "age", "floor", "balcony", "energy")

OVERVIEW = Overview(
    rows=4_000,
    sample_rows=4_000,
    gaps=Gaps(
        block_rows=100,
        columns=(
            ColumnGaps(column=NAMES[3], missing=1_400, percent=(0,) * 26 + (100,) * 14),
            ColumnGaps(column="energy", missing=380, percent=(10, 5, 20, 0) * 10),
            ColumnGaps(column="floor", missing=1, percent=(0,) * 20 + (1,) + (0,) * 19),
        ),
        more=2,
    ),
    information=tuple(
        Information(column=name, bits=2.4 / (place + 1), share=0.8 / (place + 1))
        for place, name in enumerate(NAMES[1:])
    ),
    correlations=Correlations(
        columns=NAMES,
        values=tuple(
            tuple(
                1.0
                if i == j
                else None
                if 7 in (i, j)
                else round((-1) ** (i + j) * 0.98 / max(abs(i - j), 1), 2)
                for j in range(8)
            )
            for i in range(8)
        ),
        considered=8,
        numeric=8,
    ),
    split=Split(),
    classes=("cheap", "fair", "dear"),
    more_classes=4,
    parts=(
        PartRows(part="train", rows=2_400, counts=(1_200, 900, 300)),
        PartRows(part="validation", rows=800, counts=(400, 300, 100)),
        PartRows(part="test", rows=800, counts=(410, 290, 100)),
    ),
    compared_rows=4_000,
    repeats=(
        Repeats(part="validation", exact=12, exact_same_target=11, near=40),
        Repeats(part="test", exact=9, exact_same_target=9, near=31),
    ),
)
