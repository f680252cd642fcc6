"""Maps each action of the audit log to words. An action of an older release is shown by its parts."""

from jobs.models import Deletion

DELETION_VERBS = {"delete": "deleted", "purge": "deleted for good", "restore": "restored"}
ACTION_WORDS: dict[str, str] = {
    "alias.delete": "Alias removed",
    "alias.set": "Alias set",
    "audit.seal": "New chain begun",
    "audit.upgrade": "Audit log upgraded",
    "code.create": "Code stored",
    "code.dry_build": "Dry build requested",
    "code.install": "Packages installed",
    "code.load_data": "Data loaded by code",
    "code.resolve": "Packages resolved",
    "credential.delete": "Credential removed",
    "credential.save": "Credential saved",
    "dataset.answer": "Reading of columns changed",
    "dataset.fetch": "Data fetched from an address",
    "dataset.fetch_again": "Data fetched again",
    "dataset.fetch_cancel": "Fetch cancelled",
    "dataset.split_overview": "Overview of a split requested",
    "dataset.try_again": "Data read again",
    "dataset.version": "Data version created",
    "demo.kill_runner": "Runner killed in the demo",
    "experiment.archive": "Experiment archived",
    "experiment.change": "Experiment changed",
    "experiment.clone": "Experiment cloned",
    "experiment.create": "Experiment created",
    "experiment.dry_run": "Dry run of a precision requested",
    "experiment.mesh_estimate": "Estimate for a mesh requested",
    "experiment.unarchive": "Experiment unarchived",
    "gates.change": "Gates changed",
    "job.change": "Job changed",
    "job.ensemble": "Ensemble created",
    "job.finish": "Search finished early",
    "job.kill": "Job killed",
    "job.narrow": "Smaller range searched",
    "job.pause": "Job paused",
    "job.repeat": "Best trials trained again",
    "job.resume": "Job resumed",
    "job.retry": "Job retried",
    "job.revise": "Search revised",
    "job.stop": "Job stopped",
    "job.submit": "Job submitted",
    "keys.forget": "Old secret key removed",
    "keys.forget_release_key": "Old release key removed",
    "keys.rotate": "Secret key rotated",
    "keys.rotate_release_key": "Release key rotated",
    "model.create": "Model created",
    "model.describe": "Model described",
    "person.add": "Person added",
    "person.disable": "Person deactivated",
    "person.enable": "Person reactivated",
    "person.end_sessions": "Sessions ended",
    "person.login": "Login",
    "person.login_failed": "Login failed",
    "person.login_link": "Login link made",
    "person.login_link_used": "Login link used",
    "person.login_reset": "Login reset",
    "person.logout": "Logout",
    "person.max_slots": "Slots of a person limited",
    "person.password": "Password changed",
    "person.recovery_code_used": "Recovery code used",
    "person.second_factor_off": "Second factor removed",
    "person.second_factor_on": "Second factor added",
    "person.set_admin": "Admin right changed",
    "pool.preemption": "Preemption of a pool changed",
    "project.change": "Project changed",
    "project.create": "Project created",
    "project.network": "Network of a project changed",
    "project.quotas": "Quotas changed",
    "project.remove_member": "Member removed",
    "project.set_role": "Role changed",
    "project.single_person": "Single-person rule changed",
    "promotion.approve": "Promotion approved",
    "promotion.comment": "Comment on a promotion",
    "promotion.expire": "Promotion expired",
    "promotion.gated": "Gates of a promotion checked",
    "promotion.regate": "Gates of a promotion checked again",
    "promotion.reject": "Promotion rejected",
    "promotion.released": "Promotion released",
    "promotion.request": "Promotion requested",
    "promotion.withdraw": "Promotion withdrawn",
    "release.bring_up": "Endpoint brought up",
    "release.label": "Labels of an endpoint changed",
    "release.promote": "Version released",
    "release.rollback": "Release rolled back",
    "release.stage": "Version staged",
    "release.take_down": "Endpoint taken down",
    "reservation.create": "Reservation created",
    "reservation.delete": "Reservation removed",
    "reservation.end": "Reservation ended",
    "serving_token.revoke": "Serving token revoked",
    "serving_token.rotate": "Serving token rotated",
    "settings.sandbox_minimum": "Weakest sandbox changed",
    "storage.adopt": "Storage adopted",
    "storage.collect": "Files collected",
    "token.create": "Token created",
    "token.hand_over": "Token handed over",
    "token.revoke": "Token revoked",
    "trial.continue": "Training of a trial continued",
    "trial.queue": "Trial queued",
    "trial.retry": "Trial retried",
    "version.card": "Model card changed",
    "version.create": "Model version created",
    "version.describe": "Model version described",
    "version.invalid": "Model version refused",
    "version.make_smaller": "Smaller version requested",
    "version.repeat": "Model version registered again",
    "version.validate": "Model version validated",
    "worker.drain": "Worker drained",
    "worker.enable": "Worker enabled",
    **{
        f"{kind}.{verb}": f"{kind.label.capitalize()} {words}"
        for kind in Deletion.Kind
        for verb, words in DELETION_VERBS.items()
    },
}


def action_words(action: str) -> str:
    """Return an action, or the beginning of one, in words.

    >>> action_words("job.submit"), action_words("dataset.purge"), action_words("old_thing.turn_over")
    ('Job submitted', 'Data set deleted for good', 'Old thing: turn over')
    """
    subject, _, verb = action.partition(".")
    return ACTION_WORDS.get(action) or ": ".join(
        part.replace("_", " ") for part in (subject.capitalize(), verb) if part
    )


def words_by_subject() -> dict[str, dict[str, str]]:
    """Return the words of all actions by subject, after the beginning that its actions have."""
    subjects: dict[str, dict[str, str]] = {}
    for action, words in sorted(ACTION_WORDS.items(), key=lambda pair: (pair[0].partition(".")[0], pair[1])):
        subject = action.partition(".")[0]
        title = action_words(subject)
        subjects.setdefault(title, {f"{subject}.": f"{title}: any"})[action] = words
    return subjects
