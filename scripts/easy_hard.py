"""Easy and hard: aggregate everything, refine everything, or route. The same as ``magicore ablate easy-hard DIR``.

python scripts/easy_hard.py DIR [--yes] [--offline] [--out DIR]     every option of `magicore ablate`
"""

from __future__ import annotations

import sys

from magicore.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ablate", "easy-hard"]
    main()
