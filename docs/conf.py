"""Sphinx reads this: MyST pages, and a reference made from the docstrings and from the command line itself."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import typer
import typer.main
from sphinx.application import Sphinx
from typer.cli import get_docs_for_click

from magicore import __version__
from magicore.cli.app import app as command_line

project = "magicore"
author = "The magicore authors"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"magicore {version}"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
# A name that two packages have (CapabilityError) is linked to the first of them.
suppress_warnings = ["ref.python"]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

PACKAGES = ("magicore", "reward_models", "difficulty")
COMMANDS = Path(__file__).parent / "reference" / "commands.md"


def write_commands(_: Sphinx) -> None:
    """The command line's page, from the application; written only when it has changed."""
    group = typer.main.get_command(command_line)
    context = typer.Context(group, info_name="magicore")
    text = get_docs_for_click(obj=group, ctx=context, name="magicore", title="Command line")
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if not COMMANDS.is_file() or COMMANDS.read_text(encoding="utf-8") != text:
        COMMANDS.write_text(text, encoding="utf-8")


def public_reference(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Docstrings name things where they are defined; the reference has them where they are public."""
    name = str(node.get("reftarget", "")).rpartition(".")[2]
    for package in PACKAGES:
        if node.get("refdomain") == "py" and name in importlib.import_module(package).__all__:
            found = env.get_domain("py").resolve_xref(
                env, node["refdoc"], app.builder, "obj", f"{package}.{name}", node, content
            )
            if found is not None:
                return found
    return None


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", write_commands)
    app.connect("missing-reference", public_reference)
