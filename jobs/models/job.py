from collections.abc import Collection
from typing import Any, Self

from django.db import models

from jobs.errors import Conflict
from jobs.kinds import KINDS, kinds_that, kinds_with_public_name
from jobs.kinds.base import Facts, Payload, Result
from jobs.kinds.chosen_ensemble.facts import CHOSEN_ENSEMBLE
from jobs.kinds.code_data.facts import CODE_DATA
from jobs.kinds.dry_build.facts import DRY_BUILD
from jobs.kinds.external_search.facts import EXTERNAL_SEARCH
from jobs.kinds.gate.facts import GATE
from jobs.kinds.install.facts import INSTALL
from jobs.kinds.profile.facts import PROFILE
from jobs.kinds.register.facts import REGISTER
from jobs.kinds.split_overview.facts import SPLIT_OVERVIEW
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
        """Return the searches: attempts hold trials of them."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.has_trials))

    def trainings(self) -> Self:
        """Return the jobs that train one model."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.trains))

    def evaluating(self) -> Self:
        """Return the jobs that measure a model on test rows."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.evaluates))

    def listed(self) -> Self:
        """Return the jobs that lists show by default."""
        return self.filter(kind__in=kinds_that(lambda facts: facts.listed))

    def called(self, public_name: str) -> Self:
        """Return the jobs of the kinds that have this name in REST and on pages."""
        return self.filter(kind__in=kinds_with_public_name(public_name))

    def external_searches(self) -> Self:
        """Return the searches whose trials scripts outside Trainyard run."""
        return self._of_kind(EXTERNAL_SEARCH)

    def profiling(self, dataset_version: int) -> Self:
        """Return the jobs that read this dataset version."""
        return self._of_kind(PROFILE, dataset_version=dataset_version)

    def comparing_parts(self, dataset_version: int, key: str) -> Self:
        """Return the jobs that compare the parts of the split `key` of this dataset version."""
        return self._of_kind(SPLIT_OVERVIEW, dataset_version=dataset_version, key=key)

    def comparing_parts_of_any(self, dataset_versions: Collection[int]) -> Self:
        """Return the jobs that compare the parts of splits of these dataset versions."""
        return self._of_kind(SPLIT_OVERVIEW, dataset_version__in=dataset_versions)

    def building(self, key: str) -> Self:
        """Return the dry builds of own code with this key."""
        return self._of_kind(DRY_BUILD, key=key)

    def installations(self) -> Self:
        """Return the installations of packages ahead of runs."""
        return self.filter(kind=INSTALL.name)

    def installing(self, requirements: str, **fields: Any) -> Self:
        """Return the installations of packages for requirements with this digest."""
        return self._of_kind(INSTALL, requirements=requirements, **fields)

    def loading_data(self) -> Self:
        """Return the jobs that load data by own code."""
        return self.filter(kind=CODE_DATA.name)

    def loading(self, code: str) -> Self:
        """Return the jobs that load data by this version of code."""
        return self._of_kind(CODE_DATA, code=code)

    def validating(self, version: int) -> Self:
        """Return the jobs that validate this version of a model."""
        return self._of_kind(REGISTER, version=version)

    def ensembles_of(self, search: int) -> Self:
        """Return the ensembles of chosen trials of this search."""
        return self._of_kind(CHOSEN_ENSEMBLE, search=search)

    def profiling_any(self, dataset_versions: Collection[int]) -> Self:
        """Return the jobs that read these dataset versions to describe them."""
        return self._of_kind(PROFILE, dataset_version__in=dataset_versions)

    def reading(self, dataset_versions: Collection[int]) -> Self:
        """Return the jobs that use these dataset versions."""
        return self.filter(payload_json__dataset_version__in=dataset_versions)

    def validations(self) -> Self:
        """Return the jobs that validate a version of a model."""
        return self.filter(kind=REGISTER.name)

    def checking(self, version: int, promotions: Collection[int]) -> Self:
        """Return the validations of a version of a model, and the gates of its promotion requests."""
        return self._of_kind(REGISTER, version=version) | self._of_kind(GATE, promotion__in=promotions)

    def continuing(self, searches: Collection[int]) -> Self:
        """Return the jobs that continue from trials of these searches."""
        warm = self.filter(revision__spec_json__search__warm_start__in=searches)
        return self._of_kind(CHOSEN_ENSEMBLE, search__in=searches) | warm

    def _of_kind(self, facts: Facts, **payload: int | str | Collection[int]) -> Self:
        wanted = {f"payload_json__{name}": value for name, value in payload.items()}
        return self.filter(kind=facts.name, **wanted)


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
    priority = models.PositiveSmallIntegerField(default=50)
    slots = models.PositiveIntegerField(default=1)
    max_restarts = models.PositiveIntegerField(default=5)
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
        """Return the properties that all jobs of its kind share."""
        return KINDS[self.kind]

    @property
    def public_kind(self) -> str:
        """Return the name of its kind in REST and on pages."""
        return self.facts.public_name

    @property
    def label(self) -> str:
        """Return its name on pages: the title, or else the kind."""
        return self.title or self.public_kind

    @property
    def payload(self) -> Payload:
        """Return the typed payload of its kind."""
        # Parsed once for each assignment of `payload_json`; a cached property would keep an old payload.
        read: tuple[Any, Payload] | None = self.__dict__.get("_payload")
        if read is None or read[0] is not self.payload_json:
            read = self.payload_json, self.facts.payload.model_validate(self.payload_json)
            self.__dict__["_payload"] = read
        return read[1]

    def payload_as[P: Payload](self, model: type[P]) -> P:
        """Return the payload of a job of a known kind.

        Raises:
            Conflict: the job is of another kind.
        """
        payload = self.payload
        if not isinstance(payload, model):
            raise Conflict(f"job {self.pk} is of kind {self.public_kind}")
        return payload

    @property
    def results(self) -> Result:
        """Return the typed results of its kind, or those without any field while a kind requires some."""
        model = self.facts.result if self.facts.keeps_result else Result
        # A dry build that has not completed has no model, which its result requires.
        if not self.results_json and any(field.is_required() for field in model.model_fields.values()):
            model = Result
        return model.model_validate(self.results_json)

    @property
    def root_id_or_self(self) -> int:
        """Return the id of the job that numbers this job's events."""
        return self.root_id or self.pk
