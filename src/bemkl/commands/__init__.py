"""
The command line.

Modules here import click and the standard library on top, and everything else in the functions that need it: help,
version and completion answer without NumPy.
"""

from bemkl.commands.main import main

__all__ = ["main"]
