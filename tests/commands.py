"""Run a command inside the test process."""

import functools

import typer.testing

from toprank.cli.app import app

# Typer makes the commands anew for each call, which takes longer than most of them take to run.
typer.testing._get_command = functools.cache(typer.testing._get_command)


def invoke(*arguments, **options):
    """What `toprank` with these arguments prints, and how it ends."""
    return typer.testing.CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
