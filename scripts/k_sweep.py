"""Accuracy against the number of chains, from a finished run. The same as ``magicore ablate k-sweep DIR``.

python scripts/k_sweep.py DIR [-o draws=200] [-o ks=1,2,4] [--out DIR]     every option of `magicore ablate`
"""

from __future__ import annotations

import sys

from magicore.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ablate", "k-sweep"]
    main()
