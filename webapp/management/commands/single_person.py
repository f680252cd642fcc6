from django.core.management.base import CommandError, CommandParser

from jobs.actions.registry import single_person_rule
from jobs.queries.people.projects import find_project
from webapp.management.installation_command import InstallationCommand


class Command(InstallationCommand):
    help = (
        "Switch the single-person rule of a project: people may approve the promotion requests that they "
        "make from then on. On the pages, no one can switch it on for their own requests."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", help="the slug of the project")
        parser.add_argument("rule", choices=["on", "off"])

    def handle(self, *, project: str, rule: str, **options: object) -> None:
        row = find_project(project)
        if row is None:
            raise CommandError(f"There is no project {project!r}.")
        single_person_rule.switch_rule(row, rule == "on", by=None)
        self.stdout.write(f"The single-person rule of {project} is {rule}.")
