"""Selective refinement, error localisation and iteration, alone and together.

The same as ``magicore ablate components DIR``.

python scripts/components.py DIR [--yes] [--offline] [--out DIR]     every option of `magicore ablate`
"""

from __future__ import annotations

import sys

from magicore.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ablate", "components"]
    main()
