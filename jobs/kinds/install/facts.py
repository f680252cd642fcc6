from jobs.kinds.base import Facts
from jobs.kinds.install.payload import InstallPayload, InstallTask

INSTALL = Facts(
    name="install",
    title="Installation of packages",
    payload=InstallPayload,
    task=InstallTask,
    engine="workers.engine.tasks.install.run",
    needs_jax=False,
    installs_packages=True,
    usual_starts=1.0,
    details="jobs.queries.code.package_installs.install_of_job",
    details_template="runs/details/install.html",
)
