"""Reads the arguments of scripts that use click, typer, absl or fire, and names other libraries."""

from workers.code_reader.modules import Module
from workers.code_reader.script_arguments.absl_flags import declared_by_absl
from workers.code_reader.script_arguments.argparse_arguments import Declared
from workers.code_reader.script_arguments.click_options import declared_by_click
from workers.code_reader.script_arguments.signature_arguments import declared_by_fire, declared_by_typer

READERS = (declared_by_click, declared_by_typer, declared_by_absl, declared_by_fire)
NOT_READ = (
    "hydra", "tyro", "simple_parsing", "jsonargparse", "docopt", "optparse", "tap", "plac", "argh",
    "cyclopts", "transformers.HfArgumentParser", "typer", "click", "absl.flags", "fire",
)  # fmt: skip
"""Libraries that read arguments. The last ones are read where their declarations are constants."""


def declared_by_library(module: Module) -> Declared | None:
    """Return the arguments that a module declares by one of these libraries; None without any."""
    return next((arguments for reader in READERS if (arguments := reader(module)) is not None), None)


def library_of(module: Module) -> str:
    """Return the library that reads a module's arguments in a way that is not known here; else empty."""
    names = module.imported.values()
    for library in NOT_READ:
        if any(name == library or name.startswith(f"{library}.") for name in names):
            return library.partition(".")[0]
    return ""
