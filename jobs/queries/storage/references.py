"""Finds the artifacts that nothing refers to.

References are foreign keys to `Artifact`, which are found by themselves, and digests in JSON columns, which
are listed here. A test refuses a JSON column that is in neither table.
"""

import json
import re
from collections.abc import Collection
from datetime import datetime

from django.db.models import Exists, ForeignObjectRel, Model, OuterRef, QuerySet

from jobs.models import (
    Artifact,
    DatasetVersion,
    Experiment,
    IdempotencyKey,
    Job,
    PromotionRequest,
    ReleaseRecord,
    Replica,
    Revision,
)

_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

REFERRING: tuple[tuple[type[Model], str], ...] = (
    (Revision, "spec_json"),  # the code of a model
    (Experiment, "draft"),
    (Job, "payload_json"),
    (Job, "results_json"),
    (DatasetVersion, "request"),
    (ReleaseRecord, "body"),
    (PromotionRequest, "gates"),
    (Replica, "report"),
    (IdempotencyKey, "response"),  # a client may use a digest from a response of the last day
)
"""JSON columns in which a digest keeps its file."""

NOT_REFERRING: dict[str, str] = {
    "Analysis.result": "numbers",
    "ApiToken.endpoints": "names of models",
    "ApiToken.login_issuers": "ids of people",
    "ApiToken.scopes": "words",
    "Attempt.error": "a message",
    "Attempt.record": "a record that does not need the files",
    "Attempt.sandbox_json": "a level and limits",
    "AuditEvent.detail": "a record that does not need the files",
    "CodeVersion.found_json": "names and messages",
    "CodeVersion.summary_json": "names",
    "DatasetVersion.error": "a message",
    "DatasetVersion.profile_json": "numbers and names of columns",
    "GateRevision.rules_json": "names and limits",
    "Decision.accept": "names of gates",
    "Deletion.lost": "counts",
    "Execution.best": "numbers",
    "Execution.metrics": "numbers",
    "Experiment.tags": "words",
    "Job.error": "a message",
    "Job.labels": "names and values",
    "Job.progress": "numbers",
    "Job.sandbox_json": "a level",
    "Job.warnings": "messages",
    "JobArtifact.meta": "facts about the artifact of the same row",
    "LoginLink.issuers": "ids of people",
    "ModelVersion.class_labels": "words",
    "ModelVersion.error": "a message",
    "ModelVersion.lineage": "names data and jobs, which their own rows keep",
    "ModelVersion.metrics": "numbers",
    "ModelVersion.signature": "names and shapes",
    "PackageEnvironment.error_json": "a message",
    "PackageEnvironment.packages_json": "names and versions of packages",
    "PackageEnvironment.requirements": "names and versions of packages",
    "PackageSet.packages_json": "names and versions of packages, and digests of their files",
    "Reservation.gpus": "names of devices",
    "TrafficCount.counts_json": "numbers",
    "Trial.error": "a message",
    "Trial.rungs": "numbers",
    "Trial.values": "hyperparameters; digests are in the revision",
    "TrialDecision.saw": "numbers",
    "WaitingAuditEvent.detail": "a record that does not need the files",
    "Worker.devices": "devices",
    "Worker.info": "versions",
    "Worker.labels": "names and values",
}
"""Other JSON columns, with the reason why a digest in them keeps nothing."""


def unreferenced_artifacts(*, stored_before: datetime | None = None) -> QuerySet[Artifact]:
    """Return the artifacts without a foreign key to them that were last stored before a time.

    Those whose digest is in a JSON column are among them: see `mentioned_digests`.
    """
    rows = Artifact.objects.all()
    if stored_before is not None:
        rows = rows.filter(stored__lt=stored_before)
    # Hidden relations are those without a name on `Artifact`: they refer to it like the others.
    for relation in Artifact._meta.get_fields(include_hidden=True):
        if isinstance(relation, ForeignObjectRel):
            rows = rows.filter(~Exists(_referring_rows(relation)))
    return rows


def _referring_rows(relation: ForeignObjectRel) -> QuerySet[Model]:
    """Return the rows that refer to the outer query's artifact, deleted ones included."""
    rows: QuerySet[Model] = relation.related_model._base_manager.filter(
        **{relation.field.attname: OuterRef("pk")}
    )
    return rows


def mentioned_digests(digests: Collection[str]) -> set[str]:
    """Return the digests that occur in a JSON column that refers to files."""
    remaining, mentions = set(digests), set[str]()
    if not remaining:
        return mentions
    for model, column in REFERRING:
        rows = model._base_manager.values_list(column, flat=True)
        for value in rows.iterator(chunk_size=500):
            if value:
                mentions |= remaining.intersection(_DIGEST.findall(json.dumps(value)))
    return mentions
