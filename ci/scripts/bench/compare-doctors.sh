#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compare-doctors.sh SCANKIT MODULES WORK [FAULT|HEALTHY...]: the same planted and healthy environments through scankit,
# the user's own traceback, env-doctor, cuda-doctor and torch.utils.collect_env; prints a Markdown table. It needs a Python
# with torch (fixtures.sh) and the two doctors from the package index, which it installs beside the environments.
#
# Criteria, fixed before the run. Named: a line of the tool's report matches the pattern of the cause below, and does not
# stand in the same tool's report on the healthy environment too. Alarm: the tool says of a healthy environment that
# something is wrong (its exit status, or its own word for an error).
set -euo pipefail
ROOT_FOLDER=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=doctor/tests/e2e/plant.sh
. "$ROOT_FOLDER/doctor/tests/e2e/plant.sh"
scankit=$(readlink -f "$1") MODULES=$2
mkdir -p "$3"
work=$(cd "$3" && pwd)
shift 3
tools=(traceback scankit env-doctor cuda-doctor collect_env)
faults=(torch_version_mismatch abi_cxx11_mismatch missing_cudart_12 missing_cudnn python_abi_tag_mismatch module_not_built
  module_not_built_masked corrupt_binary_html corrupt_binary_zeros wrong_machine_arch own_symbol_undefined glibc_too_old
  libstdcxx_too_old several_copies_pythonpath torch_incomplete_no_deps no_driver_libcuda variant_name_mismatch windows
  python_of_musl_by_tag torch_sources_in_the_current_folder import_crash)
healthy=(good_module abi3_module masked_optional_import leftovers_of_pip toolkit_on_ld_library_path no_torch)
[ $# -eq 0 ] || { faults=() && healthy=(good_module); }
for wanted in "$@"; do
  if grep -q "^def $wanted(" "$E2E"/faults_*.py; then faults+=("$wanted"); else healthy+=("$wanted"); fi
done

pattern_of() { # CAUSE: what a report says that names it, by any tool's words
  case $1 in
    torch_version_mismatch) echo 'another torch release|(built|compiled) (for|against) (a different|another|an older|a newer) .*torch|undefined symbol: _ZN(3c10|2at|5torch)' ;;
    abi_cxx11_mismatch) echo 'string ABI|cxx11.?abi.*(differ|mismatch)|undefined symbol: .*(Ss|cxx11)' ;;
    missing_cudart) echo 'lib(cudart|cudnn|cublas)\.so\.[0-9]+.*(not here|nowhere|cannot open|missing|not found)' ;;
    python_abi_tag_mismatch) echo '(another|different|wrong) Python|cpython-3(10|12)|linux-musl' ;;
    module_not_built) echo 'compiled module is not|selective_scan_cuda.*(not built|not installed|missing|No module)|No module named .selective_scan_cuda' ;;
    corrupt_binary) echo '(whole|complete) shared library|file too short|invalid ELF|corrupt|truncated' ;;
    wrong_machine_arch) echo '(another|wrong|other) (processor|machine|architecture)|aarch64|ELFCLASS' ;;
    own_symbol_undefined) echo 'function of its own|incomplete build|undefined symbol: _Z[0-9]' ;;
    glibc_too_old) echo 'newer glibc|GLIBC_[0-9.]+.*not found' ;;
    libstdcxx_too_old) echo 'newer libstdc|GLIBCXX_[0-9.]+.*not found' ;;
    several_copies) echo 'several copies|shadow' ;;
    torch_incomplete) echo 'libcusparseLt|libshm|Failed to load PyTorch C extensions|torch/_C' ;;
    no_driver_libcuda) echo 'libcuda\.so\.1' ;;
    variant_name_mismatch) echo 'module of another name|PyInit_' ;;
    windows) echo 'Windows|win_amd64' ;;
    import_crash) echo 'dies while it imports|Segmentation fault|SIGSEGV' ;;
    *) echo "$1" ;;
  esac
}

install_tools() {
  for tool in env-doctor cuda-doctor; do
    [ -e "$work/tools/$tool.ready" ] || {
      fx_pip_of "$(fx_pip_python)" -q install --root-user-action ignore --target "$work/tools/$tool" "$tool" >&2
      touch "$work/tools/$tool.ready"
    }
  done
}

examine() { # TOOL ENV OUTPUT: report in OUTPUT, exit status in OUTPUT.status, seconds and KiB in OUTPUT.used
  local code=0 python=$2/bin/python tool=$1 command
  case $tool in
    traceback) command=("$python" -X faulthandler -c "$IMPORT") ;;
    scankit) command=("$scankit" doctor --python "$python") ;;
    env-doctor) command=(env "PYTHONPATH=$work/tools/env-doctor${SEARCH:+:$SEARCH}" "$python" -c 'import sys; sys.argv = ["env-doctor", "check"]; from env_doctor.cli import main; main()') ;;
    cuda-doctor) command=(env "PYTHONPATH=$work/tools/cuda-doctor${SEARCH:+:$SEARCH}" "$python" -c 'import sys; sys.argv = ["cuda-doctor"]; from cuda_doctor.cli import main; main()') ;;
    collect_env) command=("$python" -m torch.utils.collect_env) ;;
  esac
  # shellcheck disable=SC2086
  (cd "$STARTS_IN" && env $PREPARE COLUMNS=300 timeout 120 /usr/bin/time -q -o "$3.used" -f '%e %M' "${command[@]}") >"$3" 2>&1 || code=$?
  echo "$code" >"$3.status"
}

# Without escapes, and without the folder: its name is the fault's, and a tool that prints the path has named nothing.
plain_report() { sed -e 's/[^[:print:]]//g' -e "s|$work/[a-z0-9_]*|ENV|g" "$1"; }
named() { # REPORT BASELINE PATTERN
  grep -vxFf <(plain_report "$2" | grep .) <(plain_report "$1") | grep -qE "$3"
}
alarmed() { # TOOL REPORT
  case $1 in
    scankit | traceback | collect_env) [ "$(cat "$2.status")" -ne 0 ] ;;
    env-doctor) [ "$(cat "$2.status")" -ne 0 ] || grep -qE '❌|✗|CRITICAL|ERROR' "$2" ;;
    cuda-doctor) grep -qE '✗|[1-9][0-9]* errors?' "$2" ;;
  esac
}

make() { # NAME: sets folder, env, IMPORT, PREPARE, STARTS_IN, ROOT; `healthy:NAME` as plant.sh has it
  folder=$work/${1#healthy:}
  rm -rf "$folder" && mkdir -p "$folder"
  plant "$1" "$folder"
  SEARCH=$(sed -n 's/.*PYTHONPATH=\([^ ]*\).*/\1/p' <<<"$PREPARE")
}

install_tools
declare -A wins alarms seconds memory
for name in "${healthy[@]}"; do
  make "healthy:$name"
  line="| $name (healthy) |"
  for tool in "${tools[@]}"; do
    # shellcheck disable=SC2154  # plant sets it
    examine "$tool" "$env" "$folder/$tool"
    if alarmed "$tool" "$folder/$tool"; then alarms[$tool]=$((${alarms[$tool]:-0} + 1)) line+=" alarm |"; else line+=" silent |"; fi
    read -r s m <"$folder/$tool.used" && seconds[$tool]+="$s " && memory[$tool]+="$m "
  done
  rows+=("$line")
  rm -rf "$env"
  echo "$line" >&2
done
for name in "${faults[@]}"; do
  make "$name"
  cause=${ROOT%%|*}
  line="| $name |"
  for tool in "${tools[@]}"; do
    examine "$tool" "$env" "$folder/$tool"
    if named "$folder/$tool" "$work/good_module/$tool" "$(pattern_of "$cause")"; then
      wins[$tool]=$((${wins[$tool]:-0} + 1)) line+=" yes |"
    else
      line+=" - |"
    fi
    read -r s m <"$folder/$tool.used" && seconds[$tool]+="$s " && memory[$tool]+="$m "
  done
  rows+=("$line")
  rm -rf "$env"
  echo "$line" >&2
done

median() { tr ' ' '\n' <<<"$1" | grep . | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
row() { # TITLE FUNCTION
  local line="| $1 |" tool
  for tool in "${tools[@]}"; do line+=" $("$2" "$tool") |"; done
  echo "$line"
}
count_named() { echo "${wins[$1]:-0} of ${#faults[@]}"; }
count_alarms() { echo "${alarms[$1]:-0} of ${#healthy[@]}"; }
median_time() { echo "$(median "${seconds[$1]}") s"; }
median_memory() { echo "$(($(median "${memory[$1]}") / 1024)) MiB"; }
echo "| environment | ${tools[*]/%/ |}"
echo "|---|$(printf -- '---|%.0s' "${tools[@]}")"
printf '%s\n' "${rows[@]}"
row '**causes named**' count_named
row '**false alarms**' count_alarms
row 'median time' median_time
row 'median memory' median_memory
