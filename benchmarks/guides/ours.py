"""Takes pasted code through Trainyard's own functions: reading, dry build, checks, a short search, trials."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobs.kinds.code_data.payload import CodeDataResult, CodeDataTask
from jobs.kinds.dry_build.payload import DryBuildTask
from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.code import Reading, ReadRequest, SentFile
from jobs.messages.suggest import SuggestRequest
from jobs.messages.task import DatasetFile, OwnCode, OwnCodeFile
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.spec.checks.dry_build import BuiltModel, complete_spec, problems_of
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from workers.code_reader.reading import read
from workers.engine.search.suggest import suggest
from workers.engine.tasks import code_data, dry_build, profile, trial

Values = dict[str, Any]
BATCH_SIZE = 32


class Report:
    """Collects the scores and the messages of tasks."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = str(folder)
        self.messages: list[str] = []
        self.artifacts: dict[str, str] = {}

    def for_trial(self, number: int) -> "Report":
        """See the engine's `Report`."""
        del number
        return self

    def request(self) -> None:
        """See the engine's `Report`."""

    def curves(self) -> list[Any]:
        """See the engine's `Report`."""
        return []

    def recorded(self) -> list[str]:
        """See the engine's `Report`."""
        return []

    def warning(self, code: str, message: str) -> None:
        """Record a warning."""
        self.messages.append(f"{code}: {message}")

    def artifact(self, role: str, path: str, **_: Any) -> None:
        """Record a file."""
        self.artifacts[role] = path

    def trial_finished(self, error: Any = None, **_: Any) -> None:
        """Record the error of a trial."""
        if error is not None:
            self.messages.append(f"trial: {error}")

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def readings(text: str, name: str, folder: Path) -> tuple[Reading, Reading, str]:
    """Return the findings in pasted code and in its definitions alone, and their text."""
    folder.mkdir(parents=True, exist_ok=True)
    sent = folder / "sent"
    sent.write_text(text, encoding="utf-8")
    found = []
    for only in (False, True):
        into = folder / ("definitions" if only else "kept")
        into.mkdir(exist_ok=True)
        files = [SentFile(place=str(sent), path=name)]
        found.append(read(ReadRequest(files=files, into=str(into), definitions_only=only)))
    return found[0], found[1], (folder / "definitions" / "0").read_text(encoding="utf-8")


def code_in(folder: Path, text: str) -> OwnCode:
    """Return a version with one file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "model.py"
    file.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    place = OwnCodeFile(path=file.name, place=str(file))
    return OwnCode(digest=digest, files=(place,), folder=str(folder), minimum="process", network=False)


def loaded(folder: Path, text: str, task: Any = None) -> DatasetFile:
    """Return the rows that the function `load_data` of a text returns, as a profiled version."""
    report = Report(folder / "loading")
    request = CodeDataTask(
        folder=report.folder, code=code_in(folder / "code", text), entry="load_data", prediction=task
    )
    result = CodeDataResult.model_validate(code_data.run(request, report))
    roles = [ColumnRequest(name=result.part, role="split")] if result.part else []
    into = Report(folder / "profile")
    found = profile.run(
        ProfileTask(
            folder=into.folder,
            source=result.source,
            path=str(Path(report.folder) / report.artifacts["loaded"]),
            target=result.target,
            columns=tuple(roles),
        ),
        into,
    )
    return DatasetFile(
        path=str(Path(into.folder) / found["path"]), digest=found["digest"], profile=found["profile"]
    )


class Trials:
    """An experiment with an entry of pasted code."""

    def __init__(self, folder: Path, text: str, entry: str, file: DatasetFile) -> None:
        self.folder, self.file = folder, file
        self.code = code_in(folder / "code", text)
        self.model = {"kind": "code", "digest": self.code.digest, "entry": entry}
        self.report = Report(folder / "work")
        self.built = self._built()

    def _built(self) -> BuiltModel:
        data = {"dataset": "rows"}
        task = DryBuildTask(
            folder=self.report.folder, code=self.code, model=self.model, shape=None, data=data,
            texts="words", dataset=self.file,
        )  # fmt: skip
        return BuiltModel.model_validate(dry_build.run(task, self.report)["built"])

    def spec(self, epochs: int, values: Values | None = None, search: Any = None) -> ExperimentSpec:
        """Return an experiment: one training with these values, or a search."""
        fit = {"epochs": epochs} | ({} if "batch_size" in self.built.replaced and self.built.own_fit else
                                    {"batch_size": BATCH_SIZE})  # fmt: skip
        body = {
            "version": 1,
            "data": {"dataset": "rows"},
            "model": {**self.model, "hyperparameters": values or {}},
            "fit": fit,
        }
        return ExperimentSpec.model_validate(body if search is None else {**body, "search": search})

    def problems(self, objective: dict[str, str], epochs: int) -> Iterator[str]:
        """Yield the problems of a search; without a space, those of a training."""
        search = {"algorithm": "random", "objective": objective} if self.built.space else None
        yield from (
            f"{each.pointer}: {each.message}"
            for each in problems_of(self.spec(epochs, None, search), self.built)
        )

    def searched(self, objective: dict[str, str], count: int) -> list[float | None]:
        """Return the scores of a short search with one epoch."""
        body = {"algorithm": "random", "objective": objective, "max_trials": count, "seed": 1}
        spec = complete_spec(self.spec(1, None, body), self.built)
        if spec.search is None:
            return []
        answer = suggest(SuggestRequest(search=spec.search, count=count, epochs=1))
        return self._run([dict(each.values) for each in answer.suggestions], objective, 1, (0,))

    def scores(
        self, values: Values, objective: dict[str, str], epochs: int, seeds: Sequence[int]
    ) -> list[float | None]:
        """Return the score of each execution with these values."""
        return self._run([values], objective, epochs, seeds)

    def _run(
        self, configurations: Sequence[Values], objective: dict[str, str], epochs: int, seeds: Sequence[int]
    ) -> list[float | None]:
        executions = tuple(ExecutionPlan(execution=i, seed=seed) for i, seed in enumerate(seeds, 1))
        plans = [
            TrialPlan(number=i, values=values, spec=self.spec(epochs, values), executions=executions)
            for i, values in enumerate(configurations, 1)
        ]
        task = TrialTask(
            folder=self.report.folder, code=self.code, spec=plans[0].spec, objective=objective,
            dataset=self.file, trials=tuple(plans),
        )  # fmt: skip
        results: list[dict[str, Any]] = []
        with suppress(StopIteration):
            results = trial.run(task, self.report)["trials"]
        return [execution["score"] for result in results for execution in result["executions"]]


def shape_of(file: DatasetFile) -> str:
    """Describe the rows."""
    found = Profile.model_validate(file.profile)
    return f"{found.kind} {found.input_shape} {found.task}"
