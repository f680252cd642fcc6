"""Runs the profile task: reads an upload or a bundled data set, writes it normalized and describes it."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.overview import Overview, Sample
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.images import IMAGE
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import Task
from jobs.upload_formats import Source, format_label
from workers.engine.arrays import Array
from workers.engine.data import statistics
from workers.engine.data.bundled import load_bundled
from workers.engine.data.encode import Encoded, array_types, choose_target, encode, encode_target
from workers.engine.data.findings.writings import merge_target
from workers.engine.data.image_files.image_schema import propose_images, requested_target
from workers.engine.data.image_files.images import BadImages, ImageTable, read_images
from workers.engine.data.overview.overview import of_arrays, of_table
from workers.engine.data.profile_size import stored
from workers.engine.data.reading.archives.unpacking import PlainFile, plain_files
from workers.engine.data.reading.arrow_file import write_columns
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.reading.joined_tables import join
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.reading.several import read_csv_files, read_json_files
from workers.engine.data.schema import Schema, is_tabular, propose
from workers.engine.data.spilled import Spill
from workers.engine.data.split import named_parts
from workers.engine.data.store import file_digest
from workers.engine.data.table import Table, read_array, read_arrow, read_npz, read_parquet
from workers.engine.data.tabular import TableTarget, make_table_profile
from workers.engine.data.target_gaps import with_target, without_rows
from workers.engine.errors import BadData, BadSpec
from workers.engine.report import Report
from workers.engine.tasks.overviews import write_overviews

READERS: dict[str, Callable[[Path, FileLimits], Table]] = {
    "npz": read_npz,
    "npy": read_array,
}
COLUMN_READERS: dict[str, Callable[[Path, FileLimits, Spill], Table]] = {
    "parquet": read_parquet,
    "arrow": read_arrow,
}
IN_PARTS = ("csv", "json_lines", "parquet")
"""Formats whose large files are never in memory as a whole. Those of Arrow may be compressed."""
DATASET = "dataset.arrow"
BAD_ROWS = "bad_rows.csv"
THUMBNAILS = "thumbnails.jpg"
STEPS = 4
SAMPLE = "sample.json"
PROFILE = "profile.json"


def run(task: ProfileTask, report: Report) -> dict[str, Any]:
    """Write `sample.json`, `profile.json`, `overview.json` and `dataset.arrow`, each when it is computed.

    Returns:
        The profile, and the data set's digest, rows and bytes.

    Raises:
        BadData: the upload cannot be used.
        BadSpec: the task does not name a source.
    """
    path = Path(task.folder) / DATASET
    with tempfile.TemporaryDirectory(dir=task.folder, prefix="columns-") as folder:
        table, target, prediction_task = _read(task, Spill(Path(folder), task.threads), report)
        report.progress(1, STEPS, "steps")
        report.phase("working")
        _write_sample(table, task, report)
        prepared = _prepared(table, target, prediction_task, task)
        report.progress(2, STEPS, "steps")
        report.phase("working")
        with ThreadPoolExecutor(task.threads) as pool:
            # It takes one thread, while the others describe columns.
            writing = pool.submit(_write, path, prepared.content)
            profile, overviews = prepared.describe(pool)
            body = stored(profile)
            _write_description(body, table, task, report)
            write_overviews(overviews, report)
            digest = writing.result()
    report.progress(3, STEPS, "steps")
    report.artifact("dataset", DATASET, name=DATASET, meta={"digest": digest})
    report.progress(STEPS, STEPS, "steps")
    return {
        "profile": body,
        "digest": digest,
        "rows": profile.rows,
        "bytes": path.stat().st_size,
        "path": DATASET,
    }


def _write_sample(table: Table, task: ProfileTask, report: Report) -> None:
    """Write the first rows, which are shown until the columns are described."""
    if isinstance(table, ImageTable):
        return  # images are shown as thumbnails
    sample = Sample(rows=table.rows, columns=tuple(table.columns), preview=statistics.preview(table))
    (Path(task.folder) / SAMPLE).write_text(sample.model_dump_json())
    report.artifact("sample", SAMPLE, name=SAMPLE)


def _write_description(body: dict[str, Any], table: Table, task: ProfileTask, report: Report) -> None:
    """Write the profile and the files that it describes."""
    (Path(task.folder) / PROFILE).write_text(json.dumps(body))
    if table.bad_rows:
        report.artifact("bad_rows", BAD_ROWS, name=BAD_ROWS)
    if isinstance(table, ImageTable):
        (Path(task.folder) / THUMBNAILS).write_bytes(table.sheet)
        report.artifact("thumbnails", THUMBNAILS, name=THUMBNAILS)
    report.artifact("profile", PROFILE, name=PROFILE)
    report.phase("working")


def _read(task: ProfileTask, spill: Spill, report: Report) -> tuple[Table, str | None, Task | None]:
    """Return the rows, the target column and the prediction task; `encode` infers those that are None."""
    prediction_task = _prediction_task(task.task)
    if task.source == "bundled":
        table, info = load_bundled(task.bundled or "")
        # The data set's own task belongs to its own target: another column may be of another kind.
        if prediction_task is None and task.target in (None, info.target):
            prediction_task = info.task
        return table, task.target or info.target, prediction_task
    if task.path is None:
        raise BadSpec(f"a profile of a {task.source} upload needs the path of the file")
    table = _read_upload(task, task.source, spill, report)
    renamed = dict(table.renamed)
    return table, renamed.get(task.target or "", task.target), prediction_task


def _read_upload(task: ProfileTask, source: Source, spill: Spill, report: Report) -> Table:
    """Return the rows of an upload's files, with a description of the first."""
    files = []
    for number, path in enumerate([task.path or "", *(file.path for file in task.more)]):
        folder = spill.folder / f"upload-{number}"
        files += plain_files(Path(path), source, task.reading.dialect, task.limits, folder)
    first, *others = files
    if other := next((file for file in others if file.source != first.source), None):
        formats = f"{format_label(other.source)} data, and {first.path.name} has {format_label(first.source)}"
        raise BadData(f"{other.path.name} has {formats} data; the files of a version have one format")
    bad = (
        BadImages(task.reading.max_bad_share)
        if first.source == "images"
        else BadRows(task.reading.max_bad_share)
    )
    try:
        table = (
            _read_files(task, files, bad, spill) if others else _read_file(task, first, bad, spill, report)
        )
    except BadData as error:
        # The reader of text does not know that it is a sheet, and that there are others.
        if first.description.sheet is None:
            raise
        found = " ".join(first.findings)
        message = f"the sheet {first.description.sheet!r} was read: {error}. {found}".rstrip(". ")
        raise type(error)(message) from error
    if bad.rows:
        bad.write(Path(task.folder) / BAD_ROWS)
    findings = [finding for file in files for finding in file.findings]
    return replace(table, file=first.description, findings=(*dict.fromkeys((*findings, *table.findings)),))


def _read_file(task: ProfileTask, file: PlainFile, bad: BadRows, spill: Spill, report: Report) -> Table:
    """Return a file's rows; `bad` gets those that are left out."""
    limits = _limits(task, [file], spill)
    match file.source:
        case "images":
            return read_images(
                file.path,
                Path(task.folder),
                task.reading.images,
                cast("BadImages", bad),
                task.limits,
                target=task.target or requested_target(task.columns),
                progress=lambda done: report.progress(done, STEPS, "steps"),
            )
        case "csv":
            return read_csv(file.path, limits, file.request, bad, spill, _with_rules(task))
        case "json_lines":
            return read_json_lines(file.path, limits, bad, spill)
        case "parquet" | "arrow":
            return COLUMN_READERS[file.source](file.path, limits, spill)
        case _:
            return READERS[file.source](file.path, limits)


def _read_files(task: ProfileTask, files: list[PlainFile], bad: BadRows, spill: Spill) -> Table:
    """Return the rows of several files as one version; `bad` gets those that are left out."""
    limits, paths, source = _limits(task, files, spill), [file.path for file in files], files[0].source
    match source:
        case "csv":
            return read_csv_files(paths, limits, files[0].request, bad, spill, _with_rules(task))
        case "json_lines":
            return read_json_files(paths, limits, bad, spill)
        case "parquet" | "arrow":
            return join(paths, COLUMN_READERS[source], limits, spill)
        case "images":
            raise BadData("an archive of images comes alone: put all images into one zip or tar")
        case _:
            read = READERS[source]
            return join(paths, lambda path, rest, _: read(path, rest), limits, spill)


def _with_rules(task: ProfileTask) -> frozenset[str]:
    """Return the columns for whose texts a person has stated a rule."""
    return frozenset(
        column.name
        for column in task.columns
        if column.number_format is not None or column.gap_words is not None
    )


def _limits(task: ProfileTask, files: Sequence[PlainFile], spill: Spill) -> FileLimits:
    """Return the limits for a version's files: those that are read in parts may be larger."""
    size = sum(file.path.stat().st_size for file in files)
    in_parts = files[0].source in IN_PARTS and spill.for_size(size) is not None
    return task.limits.of_large_tables() if in_parts else task.limits


def _prediction_task(name: str | None) -> Task | None:
    kinds: tuple[Task, ...] = get_args(Task)
    for kind in kinds:
        if kind == name:
            return kind
    if name is not None:
        raise BadSpec(f"no task {name!r}; there are {', '.join(kinds)}")
    return None


class Content(NamedTuple):
    """What `dataset.arrow` contains.

    Attributes:
        arrays: `y`, and `x` for features that are arrays or images. A table is encoded by each
            training, since the pipeline is fitted on its training part.
        columns: the columns with one value for each row, by name. They are needed for splits by group, column
            or time, and to select other targets or features.
    """

    arrays: dict[str, Array]
    columns: Mapping[str, Array]


class Prepared(NamedTuple):
    """A table whose target is encoded.

    Attributes:
        content: goes into `dataset.arrow`.
        describe: returns the profile, and the overview with more and more sections; the pool's threads
            share the work for the profile.
    """

    content: Content
    describe: Callable[[ThreadPoolExecutor], tuple[Profile, Iterator[Overview]]]


def _prepared(table: Table, target: str | None, prediction_task: Task | None, task: ProfileTask) -> Prepared:
    task = _with_new_names(task, dict(table.renamed))
    if isinstance(table, ImageTable):
        proposed = propose_images(table, target=target, features=task.features, requests=task.columns)
    elif is_tabular(table):
        proposed = _proposed(table, target, prediction_task, task)
    else:
        return _prepared_arrays(table, target, prediction_task, task)
    schema, left_out, gaps = with_target(proposed, task.rows_without_target, table)
    if gaps is not None and not isinstance(table, ImageTable):
        # The values of a row without a target, such as the word of a sum, decide nothing about the others.
        kept = _proposed(without_rows(table, gaps), schema.target, prediction_task, task)
        schema = with_target(kept, task.rows_without_target, table).schema
    column = schema.table.columns[schema.target]
    encoded = TableTarget(*encode_target(schema.target, column, prediction_task))
    arrays, columns = {"y": encoded.y}, schema.table.columns
    if isinstance(table, ImageTable):
        arrays, columns = {"x": columns[IMAGE], "y": encoded.y}, _values(schema.table)

    def describe(pool: ThreadPoolExecutor) -> tuple[Profile, Iterator[Overview]]:
        profile = _with_left_out(make_table_profile(schema, encoded, task.limits, pool), left_out)
        if isinstance(table, ImageTable):
            return profile, of_arrays(columns, arrays["x"], encoded.y, profile)
        return profile, of_table(columns, encoded.y, profile)

    return Prepared(Content(arrays, columns), describe)


def _proposed(table: Table, target: str | None, prediction_task: Task | None, task: ProfileTask) -> Schema:
    return propose(table, target=target, features=task.features, requests=task.columns, task=prediction_task)


def _with_new_names(task: ProfileTask, renamed: Mapping[str, str]) -> ProfileTask:
    """Return a task whose columns have the table's names: earlier releases kept all names of the file."""
    columns = tuple(
        column.model_copy(update={"name": renamed.get(column.name, column.name)}) for column in task.columns
    )
    features = task.features and tuple(renamed.get(name, name) for name in task.features)
    return task.model_copy(update={"columns": columns, "features": features})


def _prepared_arrays(
    table: Table, target: str | None, prediction_task: Task | None, task: ProfileTask
) -> Prepared:
    if task.rows_without_target != "refuse":
        raise BadData("rows without a target can be left out of tables, not of arrays")
    by_role = {column.role: column.name for column in task.columns}
    target, split_column = target or by_role.get("target"), by_role.get("split")
    target = choose_target(table, target)
    merging = merge_target(table, target, task.columns)
    table = merging.table
    encoded = encode(
        table,
        target=target,
        features=task.features,
        without=split_column,
        task=prediction_task,
        limits=task.limits,
        types=array_types(table, task.columns),
    )
    scalars = _values(table)

    def describe(_: ThreadPoolExecutor) -> tuple[Profile, Iterator[Overview]]:
        profile = make_profile(table, encoded, split_column)
        profile = profile.model_copy(update={"offers": merging.offers})
        return profile, of_arrays(scalars, encoded.x, encoded.y, profile)

    return Prepared(Content({"x": encoded.x, "y": encoded.y}, scalars), describe)


def _with_left_out(profile: Profile, rows: int) -> Profile:
    """Return a profile that names the rows which were left out because they had no target."""
    if not rows:
        return profile
    many = "One row without a value" if rows == 1 else f"{rows:,} rows without a value"
    sentence = f"{many} of the target {profile.target!r} {'was' if rows == 1 else 'were'} left out."
    if profile.offers or profile.findings:
        sentence += f" The other sentences count rows without {'it' if rows == 1 else 'them'}."
    return profile.model_copy(update={"rows_without_target": rows, "findings": (sentence, *profile.findings)})


def _write(path: Path, content: Content) -> str:
    """Write the file of a version, and return its digest."""
    write_columns(path, content.arrays, content.columns)
    return file_digest(path)


def _values(table: Table) -> dict[str, Array]:
    """Return the columns with one value for each row."""
    return {name: column for name, column in table.columns.items() if column.ndim == 1}


def make_profile(table: Table, encoded: Encoded, split_column: str | None = None) -> Profile:
    """Return the profile for arrays that are used as in `encoded`.

    Args:
        table: the arrays.
        encoded: those that are used.
        split_column: names each row's part.

    Raises:
        BadData: `split_column` names no parts.
    """
    duplicates = statistics.count_duplicates(encoded.x, encoded.y)
    counts = statistics.class_counts(encoded.y, encoded.task, encoded.outputs)
    columns = tuple(statistics.describe_column(name, column) for name, column in table.columns.items())
    if encoded.kind == "sequence":
        columns = tuple(
            column.model_copy(update={"type": "sequence"}) if column.name in encoded.features else column
            for column in columns
        )
    columns = tuple(
        column.model_copy(update={"role": "split"}) if column.name == split_column else column
        for column in columns
    )
    return Profile(
        rows=table.rows,
        part_rows=named_parts(split_column, table.columns),
        kind=encoded.kind,
        task=encoded.task,
        target=encoded.target,
        features=encoded.features,
        inputs=encoded.inputs,
        input_shape=encoded.x.shape[1:],
        outputs=encoded.outputs,
        class_labels=encoded.class_labels,
        class_counts=counts,
        columns=columns,
        preview=statistics.preview(table),
        file=table.file,
        duplicates=duplicates,
        findings=(
            *table.findings,
            *encoded.findings,
            *statistics.find_issues(
                table,
                target=encoded.target,
                features=encoded.features,
                class_labels=encoded.class_labels,
                class_counts=counts,
                duplicates=duplicates,
                distinct={column.name: column.distinct for column in columns},
            ),
        ),
    )
