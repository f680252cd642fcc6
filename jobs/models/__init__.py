"""The database models. All writes to them are in `jobs.actions`."""

from jobs.models.analysis import Analysis
from jobs.models.artifact import Artifact, Checkpoint, JobArtifact
from jobs.models.attempt import Attempt, Lease
from jobs.models.audit import AuditEvent, AuditHead, IdempotencyKey
from jobs.models.data import Dataset, DatasetVersion
from jobs.models.deletion import Deletion
from jobs.models.experiment import Experiment, Revision
from jobs.models.job import Job
from jobs.models.logins import LoginAttempts
from jobs.models.metric import EventChunk, MetricChunk, MetricSeries
from jobs.models.people import ApiToken, LoginLink, Membership, Project, Role, UploadReservation, User
from jobs.models.registry import (
    Alias,
    Decision,
    Endpoint,
    GateRevision,
    ModelVersion,
    PromotionRequest,
    RegisteredModel,
    ReleaseRecord,
    Replica,
)
from jobs.models.sessions import Session
from jobs.models.traffic import TrafficCount
from jobs.models.trial import Execution, Trial, TrialDecision
from jobs.models.worker import Worker

__all__ = [
    "Alias",
    "Analysis",
    "ApiToken",
    "Artifact",
    "Attempt",
    "AuditEvent",
    "AuditHead",
    "Checkpoint",
    "Dataset",
    "DatasetVersion",
    "Decision",
    "Deletion",
    "Endpoint",
    "EventChunk",
    "Execution",
    "Experiment",
    "GateRevision",
    "IdempotencyKey",
    "Job",
    "JobArtifact",
    "Lease",
    "LoginAttempts",
    "LoginLink",
    "Membership",
    "MetricChunk",
    "MetricSeries",
    "ModelVersion",
    "Project",
    "PromotionRequest",
    "RegisteredModel",
    "ReleaseRecord",
    "Replica",
    "Revision",
    "Role",
    "Session",
    "TrafficCount",
    "Trial",
    "TrialDecision",
    "UploadReservation",
    "User",
    "Worker",
]
