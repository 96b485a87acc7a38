"""Who reviews and who refines. The same as ``magicore ablate roles DIR``.

python scripts/roles.py DIR [--yes] [--offline] [--out DIR]     every option of `magicore ablate`
"""

from __future__ import annotations

import sys

from magicore.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ablate", "roles"]
    main()
