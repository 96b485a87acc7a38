"""The whole family at matched tokens and matched wall time. The same as ``magicore ablate methods DIR``.

python scripts/methods.py DIR [--yes] [--offline] [--out DIR]     every option of `magicore ablate`
"""

from __future__ import annotations

import sys

from magicore.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ablate", "methods"]
    main()
