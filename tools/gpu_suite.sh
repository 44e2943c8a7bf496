#!/usr/bin/env bash
# The tests and benchmarks that need a GPU, over a folder of built programs; ./dev gpu-test and ./dev gpu-bench
# build and call it, and it runs as well where the programs were only copied to.
#
#   gpu_suite.sh test BUILD RESULTS [GTEST ARGUMENT ..]  each GPU test program, in parts side by side; what ran, failed
#                                                        and was skipped goes into a JSON file in the folder RESULTS
#   gpu_suite.sh sanitize BUILD                          compute-sanitizer's memcheck, racecheck and initcheck over a
#                                                        short selection
#   gpu_suite.sh bench BUILD RESULTS [ARGUMENT ..]       each GPU benchmark; one JSON file each in the folder RESULTS
#
# Exit status 1 when one failed. QUAIL_COMMIT names the commit where there is no git. The tests of whole checkpoints
# need $QUAIL_CHECKPOINTS (tools/dump_qwen3_checkpoints.py); they are made where python3 has transformers, else skipped.
set -uo pipefail

limit=${QUAIL_GPU_LIMIT:-300} # seconds a program: a kernel that hangs must not hold the machine
parts=${QUAIL_GPU_PARTS:-8}   # processes a test program: most of its time is the reference on one core each
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failed=()

programs() { # FOLDER PATTERN
  local found
  found=$(find "$1" -name "$2" -type f -perm -u+x | sort)
  [[ -n $found ]] || { echo "error: no $2 in $1" >&2; exit 2; }
  printf '%s\n' "$found"
}

# run NAME COMMAND ..
run() {
  local name=$1 code=0
  shift
  echo "== $name"
  timeout --kill-after=10 "$limit" "$@" || code=$?
  ((code == 0)) && return
  echo "== $name: FAILED (exit $code)"
  failed+=("$name")
}

finish() {
  ((${#failed[@]} == 0)) || { echo "failed: ${failed[*]}"; exit 1; }
}

# Hardware, driver, date and commit of a measurement as one line of JSON.
context() {
  local gpu commit=${QUAIL_COMMIT:-}
  gpu=$(nvidia-smi --query-gpu=name,driver_version,power.limit --format=csv,noheader | head -n 1)
  [[ -n $commit ]] || commit=$(git describe --always --dirty 2>/dev/null) || commit=unknown
  printf '{"gpu": "%s", "driver": "%s", "power_limit": "%s", "commit": "%s", "date": "%s"}\n' \
    "$(cut -d, -f1 <<<"$gpu")" "$(cut -d, -f2 <<<"$gpu" | xargs)" "$(cut -d, -f3 <<<"$gpu" | xargs)" \
    "$commit" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
}

# run_parts PROGRAM FOLDER GTEST ARGUMENT ..: leaves NAME.PART.json, .log and .exit in FOLDER.
run_parts() {
  local program=$1 folder=$2 name part
  shift 2
  name=$(basename "$program")
  for ((part = 0; part < parts; ++part)); do
    (
      GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part timeout --kill-after=10 "$limit" "$program" \
        --gtest_brief=1 --gtest_output="json:$folder/$name.$part.json" "$@" >"$folder/$name.$part.log" 2>&1
      echo $? >"$folder/$name.$part.exit"
    ) &
  done
  wait
}

tests() {
  local build=$1 results=$2 folder program file
  shift 2
  mkdir -p "$results"
  folder=$(mktemp -d)
  if [[ -z ${QUAIL_CHECKPOINTS:-} ]] && python3 -c 'import safetensors, transformers' 2>/dev/null; then
    run checkpoints python3 "$tools/dump_qwen3_checkpoints.py" "$folder/checkpoints"
    export QUAIL_CHECKPOINTS=$folder/checkpoints
  fi
  for program in $(programs "$build" 'cuda_*_test'); do
    echo "== $(basename "$program")"
    run_parts "$program" "$folder" "$@"
  done
  file=$results/gpu_tests_$(date -u +%Y%m%dT%H%M%SZ).json
  python3 "$tools/gpu_test_results.py" "$folder" "$(context)" "$file" || failed+=(tests)
  rm -rf "$folder"
  finish
}

# Small cases of every kernel: the checkers make a program ten to a hundred times slower.
selection='CudaVerbs/CudaVerbs.EmbedLooksRowsUpAndNormsThem/fp8:CudaVerbs*.Gather*:CudaVerbs*.AnswerLogits*'
selection+=':CudaProducts.Fp8ProductsAtRaggedRows:*CudaFp8SwiGlu.AtRaggedRows/exact:*CudaAttention*/128x4'
selection+=':*CudaParity.PathsSplitOverArenaAndChunk/*:*CudaParity.LogProbabilities/qwen3_128x4_fp8'
selection+=':*CudaParity.Case32*/qwen3_128x4'

sanitize() {
  local build=$1 program tool
  program=$(programs "$build" cuda_parity_test)
  for tool in memcheck racecheck initcheck; do
    run "$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 "$program" \
      --gtest_brief=1 --gtest_filter="$selection"
  done
  finish
}

benchmarks() {
  local build=$1 results=$2 program name file
  shift 2
  mkdir -p "$results"
  for program in $(programs "$build" 'cuda_*_benchmark'); do
    name=$(basename "$program" _benchmark)
    [[ $name == cuda_requests ]] && continue # needs another engine's requests and checkpoint
    file=$results/${name}_$(date -u +%Y%m%dT%H%M%SZ).jsonl
    context >"$file"
    run "$name" "$program" "$file.part" "$@"
    if [[ -f $file.part ]]; then
      cat "$file.part" >>"$file"
      rm "$file.part"
    fi
    echo "results in $file"
  done
  finish
}

case ${1:-} in
  test) tests "${@:2}" ;;
  sanitize) sanitize "${@:2}" ;;
  bench) benchmarks "${@:2}" ;;
  *)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
