"""The database models. All writes to them are in `jobs.actions`."""

from jobs.models.analysis import Analysis
from jobs.models.artifact import Artifact, Checkpoint, JobArtifact
from jobs.models.attempt import Attempt
from jobs.models.audit import AuditEvent, AuditHead, WaitingAuditEvent
from jobs.models.code import CodeFile, CodeVersion
from jobs.models.dataset import Dataset, DatasetVersion, FurtherFile
from jobs.models.deletion import Deletion
from jobs.models.endpoint import Endpoint, ReleaseRecord, Replica
from jobs.models.environment import PackageEnvironment, PackageResolution, PackageSet, RecordedPackages
from jobs.models.event import EventChunk
from jobs.models.experiment import Experiment, Revision
from jobs.models.fetch import Credential, Fetch
from jobs.models.idempotency import IdempotencyKey
from jobs.models.installation import InstallationSettings, Lease, Reachability, RunningTotal
from jobs.models.job import Job
from jobs.models.logins import LoginAttempts, LoginLink
from jobs.models.metric import MetricChunk, MetricSeries
from jobs.models.people import Dismissal, User
from jobs.models.project import Membership, Project, Role, UploadReservation
from jobs.models.promotion import Decision, GateRevision, PromotionRequest
from jobs.models.registry import Alias, ModelVersion, RegisteredModel
from jobs.models.resumable_upload import ResumableUpload
from jobs.models.sessions import Session
from jobs.models.sharing import PoolSettings, Reservation, Share
from jobs.models.token import ApiToken
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
    "CodeFile",
    "CodeVersion",
    "Credential",
    "Dataset",
    "DatasetVersion",
    "Decision",
    "Deletion",
    "Dismissal",
    "Endpoint",
    "EventChunk",
    "Execution",
    "Experiment",
    "Fetch",
    "FurtherFile",
    "GateRevision",
    "IdempotencyKey",
    "InstallationSettings",
    "Job",
    "JobArtifact",
    "Lease",
    "LoginAttempts",
    "LoginLink",
    "Membership",
    "MetricChunk",
    "MetricSeries",
    "ModelVersion",
    "PackageEnvironment",
    "PackageResolution",
    "PackageSet",
    "PoolSettings",
    "Project",
    "PromotionRequest",
    "Reachability",
    "RecordedPackages",
    "RegisteredModel",
    "ReleaseRecord",
    "Replica",
    "Reservation",
    "ResumableUpload",
    "Revision",
    "Role",
    "RunningTotal",
    "Session",
    "Share",
    "TrafficCount",
    "Trial",
    "TrialDecision",
    "UploadReservation",
    "User",
    "WaitingAuditEvent",
    "Worker",
]
