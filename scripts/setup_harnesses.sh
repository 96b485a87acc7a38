#!/usr/bin/env bash
# Make an environment with lm-evaluation-harness, inspect_ai and this checkout, for the integration tests.
#
#     scripts/setup_harnesses.sh [FOLDER]        (default: $MAGICORE_HARNESS_VENV, else .venv-harness)
#
# It is separate from the project's own environment because inspect_ai wants an older fsspec than the constraints
# have. Neither harness needs torch to ask an endpoint.
set -euo pipefail

venv=${1:-${MAGICORE_HARNESS_VENV:-.venv-harness}}
python=${PYTHON:-python3.11}
root=$(cd "$(dirname "$0")/.." && pwd)
stamp=$venv/.installed

if [ -e "$stamp" ] && [ ! "$root/pyproject.toml" -nt "$stamp" ]; then
    exit 0
fi
echo "Installing lm-eval and inspect_ai into $venv (a minute or two, about 1 GB)"
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -e "$root[inspect,lm-eval]" openai pytest pytest-timeout
touch "$stamp"
