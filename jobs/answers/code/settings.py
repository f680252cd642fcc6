"""Declares the answers about the installation's settings, and those of projects about code of users."""

from pydantic import Field

from jobs.answers.base import Answer
from jobs.messages.sandbox import Level


class SettingsOut(Answer):
    """The settings of the installation."""

    sandbox_minimum: Level = Field(description="The weakest sandbox in which code of users may run.")


class ProjectSandboxOut(Answer):
    """How code of users runs in a project."""

    network: bool = Field(description="Whether it may connect to other hosts, at the ports 80 and 443.")
    minimum: Level = Field(description="The weakest sandbox in which it may run, in the whole installation.")
