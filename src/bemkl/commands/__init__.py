"""The command line."""

from bemkl.commands.main import main

__all__ = ["main"]
