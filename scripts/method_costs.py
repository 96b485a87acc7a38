"""Calls and critical path of every method, on models that give every call the same latency.

python scripts/method_costs.py [--latency SECONDS]     also the wall time over HTTP, in latencies
"""

from __future__ import annotations

import argparse

from rich.console import Console

from magicore.ablations.method_costs import cost_table

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, help="seconds a request takes on a local HTTP server; 0.2 is enough")
    Console(width=160).print(cost_table(parser.parse_args().latency))
