"""A small table with two text columns, a category with many values and a number."""

import json
import random
from pathlib import Path

from jobs.messages.task import DatasetFile
from jobs.spec.data.profile import Profile
from tests.engine.helpers import profiled

GOOD = ("good", "great", "fine", "lovely", "quick")
BAD = ("bad", "poor", "slow", "broken", "awful")
OTHERS = ("the", "room", "bed", "view", "service", "was", "very", "and", "not", "breakfast")


def review(rng: random.Random, good: bool) -> dict[str, object]:
    """Return a row: its text's words decide about the target."""
    words = [rng.choice(OTHERS) for _ in range(rng.randint(3, 9))]
    words.insert(rng.randrange(len(words)), rng.choice(GOOD if good else BAD))
    title = " ".join(rng.sample(OTHERS, 3)) if rng.random() < 0.9 else None
    city = f"city{rng.randrange(60)}"
    price, opinion = rng.randrange(300), "good" if good else "bad"
    return {"review": " ".join(words), "title": title, "city": city, "price": price, "opinion": opinion}


def json_lines(rows: int = 400) -> str:
    """Return a file with reviews; the same at each call."""
    rng = random.Random(0)
    return "".join(json.dumps(review(rng, i % 2 == 0)) + "\n" for i in range(rows))


def reviews(folder: Path, rows: int = 400) -> DatasetFile:
    """Return the profiled reviews."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "reviews.jsonl"
    path.write_text(json_lines(rows))
    columns = [{"name": "title", "type": "text"}, {"name": "city", "type": "category"}]
    return profiled(folder / "p", source="json_lines", path=str(path), target="opinion", columns=columns)


def described(task: str = "binary", outputs: int = 10) -> Profile:
    """Return a profile with two texts, a category and a number; there is no such table."""
    columns = [
        {"name": "review", "dtype": "text", "type": "text", "role": "feature", "vocabulary": 20, "length": 6},
        {"name": "age", "dtype": "float64", "type": "number", "role": "feature", "missing": 1},
        {
            "name": "city",
            "dtype": "text",
            "type": "category",
            "role": "feature",
            "distinct": 60,
            "frequent": 9,
        },
        {"name": "title", "dtype": "text", "type": "text", "role": "feature", "ngrams": 7, "length": 3},
        {"name": "y", "dtype": "int64", "type": "integer", "role": "target"},
    ]
    body = {
        "rows": 100, "kind": "vector", "task": task, "target": "y", "outputs": outputs, "columns": columns,
        "features": ["review", "age", "city", "title"], "input_shape": [1], "has_pipeline": True,
        "preview": [],
    }  # fmt: skip
    return Profile.model_validate(body)
