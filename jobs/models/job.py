from typing import Any, Self

from django.db import models

from jobs.errors import Conflict
from jobs.kinds import KINDS, kinds_that, kinds_with_public_name
from jobs.kinds.base import Facts, Payload, Result
from jobs.models.choices import choices
from jobs.models.deletion import deletion_key
from jobs.models.experiment import Experiment, Revision
from jobs.models.people import User
from jobs.models.project import Project
from jobs.states import FINAL, Desired, JobState


class JobQuerySet(models.QuerySet["Job"]):
    """Queries for jobs."""

    def roots(self) -> Self:
        """Return the jobs without a parent."""
        return self.filter(parent=None)

    def unfinished(self) -> Self:
        """Return the jobs that are not in a final state."""
        return self.exclude(state__in=FINAL)

    def locked(self) -> Self:
        """Return the jobs, each locked until the transaction ends. Do not add `select_related`."""
        # PostgreSQL may wait for the lock and then returns the changed row, but does not join again. If the
        # revision has changed meanwhile, a joined one would be NULL.
        return self.select_for_update(of=("self",), no_key=True)

    def with_trials(self) -> Self:
        """Return the searches: the jobs whose attempts hold trials."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.has_trials))

    def trainings(self) -> Self:
        """Return the jobs that train one model."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.trains))

    def pooling(self) -> Self:
        """Return the jobs that pool trained models into one."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.pools))

    def evaluating(self) -> Self:
        """Return the jobs that measure a model on test rows."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.evaluates))

    def listed(self) -> Self:
        """Return the jobs that lists show by default."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.listed))

    def called(self, public_name: str) -> Self:
        """Return the jobs whose kinds REST and pages call by this name."""
        return self.filter(kind__in=kinds_with_public_name(public_name))


JobManager = models.Manager.from_queryset(JobQuerySet)


class VisibleJobs(JobManager["Job"]):
    """Finds the jobs that are not deleted."""

    def get_queryset(self) -> JobQuerySet:
        """Return the jobs that are not deleted."""
        return JobQuerySet(self.model, using=self._db).filter(deletion=None)


class Job(models.Model):
    """A unit of queued work. The steps after a search are its children; a root job numbers all events."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="jobs")
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, null=True, related_name="jobs")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="jobs")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    root = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="descendants")
    kind = models.CharField(max_length=20, help_text="a name in jobs.kinds.KINDS")
    ordinal = models.PositiveIntegerField(
        default=1, help_text="number among the jobs of this kind with the same parent"
    )
    title = models.CharField(max_length=300, blank=True)
    state = models.CharField(max_length=10, choices=choices(JobState), default=JobState.QUEUED.value)
    desired = models.CharField(max_length=10, choices=choices(Desired), default=Desired.RUNNING.value)
    payload_json = models.JSONField(
        db_column="payload", default=dict, help_text="input of the job in addition to the revision's spec"
    )
    pool = models.CharField(max_length=63, default="default")
    labels = models.JSONField(default=dict, help_text="{name: value}: of the workers that may run it")
    priority = models.PositiveSmallIntegerField(default=50)
    slots = models.PositiveIntegerField(default=1)
    max_restarts = models.PositiveIntegerField(default=5)
    max_minutes = models.FloatField(
        null=True, help_text="how long it may run, without waiting and pauses; null: no limit"
    )
    restarts = models.PositiveIntegerField(default=0)
    # Increased in the transaction that creates an attempt, so every attempt has a higher number.
    fence = models.PositiveIntegerField(default=0, help_text="number of the newest attempt")
    why_waiting = models.CharField(max_length=500, blank=True)
    progress = models.JSONField(
        default=dict, help_text="done, total, unit and rate reported by the newest attempt"
    )
    results_json = models.JSONField(db_column="results", default=dict)
    warnings = models.JSONField(
        default=list, help_text="[{code, message}], reported by runners, without duplicates"
    )
    error = models.JSONField(null=True)
    sandbox_json = models.JSONField(
        db_column="sandbox",
        null=True,
        help_text="level and network: the weakest sandbox that an attempt had; null: none had one",
    )
    event_seq = models.PositiveBigIntegerField(
        default=0, help_text="the last assigned cursor (root jobs only)"
    )
    event_bytes = models.BigIntegerField(
        default=0, help_text="stored bytes of its events and metric points (root jobs only)"
    )
    suggest_until = models.DateTimeField(
        null=True, help_text="end of the lease of the process that suggests trials"
    )
    # Increased by each claim: an answer under an old claim is dropped.
    suggest_fence = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    queued = models.DateTimeField(null=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)
    deletion = deletion_key()

    objects = VisibleJobs()
    everything = JobQuerySet.as_manager()

    class Meta:
        # Prevents two processes from creating the same step of a root.
        constraints = [
            models.UniqueConstraint(
                fields=["parent", "kind", "ordinal"], name="one_child_of_a_kind_and_ordinal"
            )
        ]
        indexes = [
            models.Index(fields=["state", "pool", "-priority", "queued"]),
            models.Index(fields=["project", "-created"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def facts(self) -> Facts:
        """Return the properties that its kind defines."""
        return KINDS[self.kind]

    @property
    def public_kind(self) -> str:
        """Return its kind's name in REST and in addresses of pages."""
        return self.facts.public_name

    @property
    def kind_title(self) -> str:
        """Return its kind's name on pages."""
        return self.facts.title

    @property
    def label(self) -> str:
        """Return its name on pages: the title, or else the kind."""
        return self.title or self.kind_title

    @property
    def payload(self) -> Payload:
        """Return the payload, typed as its kind defines."""
        # Parsed once for each assignment of `payload_json`; a cached property would keep an old payload.
        parsed: tuple[Any, Payload] | None = self.__dict__.get("_payload")
        if parsed is None or parsed[0] is not self.payload_json:
            parsed = self.payload_json, self.facts.payload.model_validate(self.payload_json)
            self.__dict__["_payload"] = parsed
        return parsed[1]

    def payload_as[P: Payload](self, model: type[P]) -> P:
        """Return the payload as this type.

        Raises:
            Conflict: the job is of another kind.
        """
        payload = self.payload
        if not isinstance(payload, model):
            raise Conflict(f"job {self.pk} is of kind {self.facts.noun}")
        return payload

    @property
    def results(self) -> Result:
        """Return the results, typed as its kind defines; an empty `Result` if they lack required fields."""
        model = self.facts.result if self.facts.keeps_result else Result
        # A dry build that has not completed has no model, which its result requires.
        if not self.results_json and any(field.is_required() for field in model.model_fields.values()):
            model = Result
        return model.model_validate(self.results_json)

    @property
    def root_id_or_self(self) -> int:
        """Return the id of the root job, which numbers this job's events."""
        return self.root_id or self.pk
