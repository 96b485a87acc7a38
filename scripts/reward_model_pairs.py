"""Outcome x process reward models, step aggregations and vote weights.

The same as ``magicore ablate reward-models DIR``.

python scripts/reward_model_pairs.py DIR [--yes] [--offline] [--out DIR]     every option of `magicore ablate`
"""

from __future__ import annotations

import sys

from magicore.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ablate", "reward-models"]
    main()
