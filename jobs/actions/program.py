"""Records which version of the program has prepared the database."""

from jobs import program
from jobs.models import InstallationSettings
from jobs.queries.code.installation import KEY


def record_program() -> None:
    """Record this program's version. Parts of another version refuse the database from then on."""
    version = program.program_version()
    InstallationSettings.objects.get_or_create(pk=KEY)
    InstallationSettings.objects.filter(pk=KEY).exclude(program=version).update(program=version)
