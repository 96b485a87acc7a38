"""``python -m magicore.testing.hostile``."""

from __future__ import annotations

import sys

import typer

from magicore.cli.hostile_endpoint import hostile_endpoint
from magicore.errors import MagicoreError

try:
    typer.run(hostile_endpoint)
except MagicoreError as error:
    sys.stderr.write(f"error: {error}\n")
    sys.exit(1)
