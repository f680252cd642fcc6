"""Determines which rows are hidden, restored and purged together with a deleted row."""

from dataclasses import dataclass
from typing import Self

from django.db.models import Model, Q, QuerySet

from jobs.kinds.rows import belonging_to
from jobs.models import (
    Artifact,
    Checkpoint,
    CodeFile,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Deletion,
    Experiment,
    FurtherFile,
    Job,
    JobArtifact,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    Trial,
)
from jobs.models.job import JobQuerySet

Kind = Deletion.Kind
Deletable = Project | Dataset | Experiment | Job | ModelVersion | CodeVersion

DELETION_KINDS: dict[type[Model], Deletion.Kind] = {
    Project: Kind.PROJECT,
    Dataset: Kind.DATASET,
    Experiment: Kind.EXPERIMENT,
    Job: Kind.JOB,
    ModelVersion: Kind.VERSION,
    CodeVersion: Kind.CODE,
}
"""The deletion kind for each model whose rows users can delete."""


@dataclass(frozen=True)
class Scope:
    """The rows that are deleted together. What depends on them, such as trials, is reached through them."""

    projects: QuerySet[Project]
    experiments: QuerySet[Experiment]
    datasets: QuerySet[Dataset]
    models: QuerySet[RegisteredModel]
    versions: QuerySet[ModelVersion]
    jobs: JobQuerySet
    code: QuerySet[CodeVersion]

    @classmethod
    def of_row(cls, row: Deletable) -> Self:
        """Return the visible rows that would be deleted with `row`."""
        empty = cls(
            projects=Project.objects.none(),
            experiments=Experiment.objects.none(),
            datasets=Dataset.objects.none(),
            models=RegisteredModel.objects.none(),
            versions=ModelVersion.objects.none(),
            jobs=Job.objects.filter(pk__in=()),
            code=CodeVersion.objects.none(),
        )
        match row:
            case Project():
                return cls(
                    projects=Project.objects.filter(pk=row.pk),
                    experiments=Experiment.objects.filter(project=row),
                    datasets=Dataset.objects.filter(project=row),
                    models=RegisteredModel.objects.filter(project=row),
                    versions=ModelVersion.objects.filter(model__project=row),
                    jobs=Job.objects.filter(project=row),
                    code=CodeVersion.objects.filter(project=row),
                )
            case Experiment():
                belongs = Q(experiment=row) | Q(root__experiment=row)
                experiments = Experiment.objects.filter(pk=row.pk)
                return empty.changed(experiments=experiments, jobs=Job.objects.filter(belongs))
            case Job():
                return empty.changed(jobs=Job.objects.filter(Q(pk=row.pk) | Q(parent=row) | Q(root=row)))
            case Dataset():
                versions = list(row.versions.values_list("pk", flat=True))
                jobs = Job.objects.filter(belonging_to("dataset_version", versions))
                return empty.changed(datasets=Dataset.objects.filter(pk=row.pk), jobs=jobs)
            case ModelVersion():
                own_versions = ModelVersion.objects.filter(pk=row.pk)
                return empty.changed(versions=own_versions, jobs=_checks_of(row))
            case CodeVersion():
                return empty.changed(code=CodeVersion.objects.filter(pk=row.pk))

    @classmethod
    def of_deletion(cls, deletion: Deletion) -> Self:
        """Return the rows that a deletion hides."""
        return cls(
            projects=Project.everything.filter(deletion=deletion),
            experiments=Experiment.everything.filter(deletion=deletion),
            datasets=Dataset.everything.filter(deletion=deletion),
            models=RegisteredModel.everything.filter(deletion=deletion),
            versions=ModelVersion.everything.filter(deletion=deletion),
            jobs=Job.everything.filter(deletion=deletion),
            code=CodeVersion.everything.filter(deletion=deletion),
        )

    def changed(self, **rows: QuerySet[Model]) -> Self:
        """Return a copy with other rows."""
        return type(self)(**{**vars(self), **rows})

    def querysets(self) -> tuple[QuerySet[Model], ...]:
        """Return the rows by model, in the order in which they can be deleted."""
        return (
            self.jobs,
            self.versions,
            self.models,
            self.experiments,
            self.datasets,
            self.code,
            self.projects,
        )

    @property
    def trials(self) -> QuerySet[Trial]:
        """Return the jobs' trials."""
        return Trial.objects.filter(job__in=self.jobs.values("pk"))

    @property
    def dataset_versions(self) -> QuerySet[DatasetVersion]:
        """Return the data sets' versions."""
        return DatasetVersion.objects.filter(dataset__in=self.datasets.values("pk"))

    @property
    def checkpoints(self) -> QuerySet[Checkpoint]:
        """Return the checkpoints whose files exist."""
        return Checkpoint.objects.kept().filter(job__in=self.jobs.values("pk"))

    @property
    def job_artifacts(self) -> QuerySet[JobArtifact]:
        """Return the jobs' outputs."""
        return JobArtifact.objects.filter(job__in=self.jobs.values("pk"))

    def artifacts(self) -> QuerySet[Artifact]:
        """Return the artifacts that the rows refer to, each once."""
        return Artifact.objects.filter(
            Q(pk__in=self.job_artifacts.values("artifact"))
            | artifacts_of(self.dataset_versions, self.versions, self.code)
        )

    def artifacts_only_here(self) -> QuerySet[Artifact]:
        """Return the artifacts that no other row refers to: their files can be deleted later."""
        others = JobArtifact.objects.exclude(job__in=self.jobs.values("pk")).values("artifact")
        data = DatasetVersion.objects.exclude(dataset__in=self.datasets.values("pk"))
        versions = ModelVersion.everything.exclude(pk__in=self.versions.values("pk"))
        code = CodeVersion.everything.exclude(pk__in=self.code.values("pk"))
        return self.artifacts().exclude(Q(pk__in=others) | artifacts_of(data, versions, code))


def artifacts_of(
    data: QuerySet[DatasetVersion], versions: QuerySet[ModelVersion], code: QuerySet[CodeVersion]
) -> Q:
    """Build a filter for artifacts that belong to dataset versions, model versions and code."""
    # Without the conditions, one NULL would make every `NOT IN` unknown.
    uploads = data.filter(upload__isnull=False).values("upload")
    tables = data.filter(table__isnull=False).values("table")
    further = FurtherFile.objects.filter(version__in=data.values("pk")).values("artifact")
    files = Q(pk__in=uploads) | Q(pk__in=tables) | Q(pk__in=further)
    sources = CodeFile.objects.filter(version__in=code.values("pk")).values("artifact")
    return files | Q(pk__in=versions.values("artifact")) | Q(pk__in=sources)


def _checks_of(version: ModelVersion) -> JobQuerySet:
    """Return a version's validations and gates that are no steps in an experiment's job."""
    requests = list(PromotionRequest.objects.filter(version=version).values_list("pk", flat=True))
    checks = belonging_to("version", [version.pk]) | belonging_to("promotion", requests)
    return Job.objects.roots().filter(checks)
