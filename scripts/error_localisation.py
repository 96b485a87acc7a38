"""Which step scores reviewer and refiner see. The same as ``magicore ablate error-localisation DIR``.

python scripts/error_localisation.py DIR [--yes] [--offline] [--out DIR]     every option of `magicore ablate`
"""

from __future__ import annotations

import sys

from magicore.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ablate", "error-localisation"]
    main()
