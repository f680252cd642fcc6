from jobs.kinds.base import Facts
from jobs.kinds.profile.payload import ProfilePayload, ProfileResult, ProfileTask

PROFILE = Facts(
    name="profile",
    title="Profile",
    payload=ProfilePayload,
    result=ProfileResult,
    task=ProfileTask,
    engine="workers.engine.tasks.profile.run",
    belongs_to="dataset_version",
    needs_jax=False,
    # The dataset version has the profile.
    keeps_result=False,
    listed=False,
)
