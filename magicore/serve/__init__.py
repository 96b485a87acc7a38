"""The gateway: an OpenAI-compatible server in front of any model, where the model name picks the method.

::

    from magicore.serve import create_app, run_server

    app = create_app(model="openai:my-model@http://localhost:8000/v1", orm="likelihood", prm="arithmetic")
    run_server(app)

``create_app`` gives a FastAPI application for any ASGI server; ``magicore serve`` is the same on the command line. It
needs the extra ``serve``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magicore.serve.app import create_app
    from magicore.serve.limits import Limits
    from magicore.serve.server import run_server

_HOME = {
    "Limits": "magicore.serve.limits",
    "create_app": "magicore.serve.app",
    "run_server": "magicore.serve.server",
}

__all__ = ["Limits", "create_app", "run_server"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing costs nothing where the extra is missing."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'magicore.serve' has no attribute {name!r}")
