"""The command line: one file a command. ``magicore --help`` lists them."""

from magicore.cli.app import main

__all__ = ["main"]
