#!/bin/bash
# One run over the tasks of a SLURM array: every task takes one shard of the problems, a last job puts them together.
#
#     scripts/slurm_shards.sh 8 runs/gsm8k -- --config run.toml --data gsm8k.jsonl --k 16
#     SBATCH_OPTIONS="--gres=gpu:1 --time=4:00:00" scripts/slurm_shards.sh 8 runs/gsm8k -- --config run.toml ...
#
# What stands after -- are options of `magicore run`, but for --shard, --stage and --out. Each shard lives in
# DIR/shard-I, the whole run in DIR/merged. A task that dies is started again with the same command: what it paid for is
# kept. STAGED=0 is for methods without calibration (or with a saved --calibration), whose shards run to their end at once.
set -euo pipefail

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }

run_shard() {  # STAGE [OPTION...]: this task's shard
    local stage=$1; shift
    magicore run "$@" --yes --stage "$stage" --shard "$SLURM_ARRAY_TASK_ID/$SHARDS" \
        --out "$DIRECTORY/shard-$SLURM_ARRAY_TASK_ID"
}

merge_shards() {  # [OPTION...]
    local shards=()
    for ((i = 1; i <= SHARDS; i++)); do shards+=("$DIRECTORY/shard-$i"); done
    magicore merge "${shards[@]}" --out "$DIRECTORY/merged" "$@"
}

case "${1:-}" in
    --task)  # inside a job
        shift
        case "$1" in
            prepare) shift; run_shard prepare "$@" ;;
            calibrate) merge_shards --calibrate ;;
            finish) shift; run_shard finish "$@" --calibration "$DIRECTORY/merged/calibration.json" ;;
            all) shift; run_shard all "$@" ;;
            merge) merge_shards ;;
        esac
        exit
        ;;
esac

[[ $# -ge 3 && $1 =~ ^[1-9][0-9]*$ && $3 == -- ]] || usage
export SHARDS=$1 DIRECTORY=$2
shift 3
mkdir -p "$DIRECTORY"
script=$(readlink -f "$0")
array=(sbatch --parsable --array="1-$SHARDS" --export=ALL --output="$DIRECTORY/slurm-%A-%a.out")
single=(sbatch --parsable --export=ALL --output="$DIRECTORY/slurm-%j.out")
read -r -a more <<< "${SBATCH_OPTIONS:-}"

if [[ ${STAGED:-1} == 1 ]]; then
    prepare=$("${array[@]}" "${more[@]}" "$script" --task prepare "$@")
    calibrate=$("${single[@]}" --kill-on-invalid-dep=yes --dependency="afterok:${prepare%%;*}" "$script" --task calibrate)
    last=$("${array[@]}" "${more[@]}" --kill-on-invalid-dep=yes --dependency="afterok:${calibrate%%;*}" "$script" --task finish "$@")
else
    last=$("${array[@]}" "${more[@]}" "$script" --task all "$@")
fi
merge=$("${single[@]}" --kill-on-invalid-dep=yes --dependency="afterok:${last%%;*}" "$script" --task merge)
echo "the whole run will be in $DIRECTORY/merged when job ${merge%%;*} has ended"
