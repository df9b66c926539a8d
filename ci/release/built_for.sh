#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How right and how narrow the inferred torch range is, on extension wheels of the package index whose torch is known.
#   ci/release/built_for.sh BUILD_DIR [WORK_DIR]
# doctor/torch_abi/wheels.txt holds the goals (issue: truth inside >= 99 %, median width <= 2 minors a file and <= 1 a wheel, at
# least 60 wheels); doctor/torch_abi/wheels_unseen.txt is the control: wheels that nobody looked at while a rule was made, held
# to the truth alone. Prints Markdown; exits with 1 where a goal is missed, 3 where a wheel cannot be had. WORK_DIR (default:
# a folder in the cache) keeps the libraries of the wheels, some 12 GB.
set -euo pipefail
cd "$(dirname "$0")/../.."
PLATFORMS=(manylinux1_x86_64 manylinux2010_x86_64 manylinux2014_x86_64 manylinux_2_17_x86_64 manylinux_2_24_x86_64
  manylinux_2_27_x86_64 manylinux_2_28_x86_64 manylinux_2_31_x86_64 manylinux_2_34_x86_64 manylinux_2_35_x86_64 linux_x86_64)
PYTHON=${SCANKIT_PYTHON:-python3}

die() {
  printf 'built_for: %s\n' "$*" >&2
  exit 3
}
[ $# -ge 1 ] || die "usage: ci/release/built_for.sh BUILD_DIR [WORK_DIR]"
build=$1 work=${2:-${SCANKIT_CACHE:-$HOME/.cache/scankit-dev}/built_for}
mkdir -p "$work"
tool=$build/doctor/torch_abi/scankit_date_files
platform_options=()
for platform in "${PLATFORMS[@]}"; do platform_options+=(--platform "$platform"); done

get() { # REQUIREMENT PYTHON
  local folder=$work/$1
  [ ! -e "$folder/.done" ] || return 0
  rm -rf "$folder" "$work/wheel"
  mkdir -p "$folder"
  "$PYTHON" -m pip download -q --no-cache-dir --no-deps --only-binary :all: --python-version "$2" "${platform_options[@]}" \
    -d "$work/wheel" "$1" || die "$1 cannot be downloaded for Python $2"
  unzip -q -o "$work"/wheel/*.whl '*.so' '*.dist-info/METADATA' -d "$folder" || [ $? = 11 ]
  rm -rf "$work/wheel"
  touch "$folder/.done"
}

# The torch of one file: a number from the list; what the pattern of the list ("/...(...)...") finds in the file's path; else
# what METADATA pins. Several Pythons and several torches may share a wheel.
truth_of() { # FOLDER FILE TRUTH
  case $3 in
    /*) sed -nE "s|.*${3#/}.*|\1|p" <<< "$2" ;;
    [0-9]*) echo "$3" ;;
    *) sed -nE 's/^Requires-Dist: torch *\(?== *([0-9]+\.[0-9]+).*/\1/p' "$1"/*.dist-info/METADATA | head -n 1 ;;
  esac
}

# One line a dated file and one a wheel (or part of it that was built for one torch): "file|wheel NAME TRUTH INSIDE WIDTH".
measure() { # LIST
  local requirement python truth folder file minor
  while read -r requirement python truth _; do
    case $requirement in '' | '#'*) continue ;; esac
    get "$requirement" "$python"
    folder=$work/$requirement
    find "$folder/" -name '*.so' | sort | while read -r file; do
      minor=$(truth_of "$folder" "${file#"$folder"}" "$truth")
      [ -z "$minor" ] || printf '%s\t%s\n' "$minor" "$file"
    done > "$work/truths"
    [ -s "$work/truths" ] || die "$requirement: no library in it whose torch is known"
    cut -f 1 "$work/truths" | sort -u > "$work/minors"
    while read -r minor; do
      mapfile -t files < <(awk -F '\t' -v m="$minor" '$1 == m { print $2 }' "$work/truths")
      "$tool" "${files[@]}" | awk -F '\t' -v OFS='\t' -v name="$requirement" -v truth="$minor" '
        $2 == 0 { print "undated", name, truth, 0, 0; next }
        { n = split($3, fits, ","); inside = 0
          for (i = 1; i <= n; ++i) if (fits[i] == truth) inside = 1
          if (!inside) printf "miss: %s is of torch %s, dated %s: %s\n", name, truth, $4, $1 > "/dev/stderr"
          print ($1 == "together" ? "wheel" : "file"), name, truth, inside, n }'
    done < "$work/minors"
  done < "$1"
}

table() { # LIST RESULTS NEEDS_WIDTH
  sort -t $'\t' -k 5,5n "$2" | awk -F '\t' -v list="$1" -v strict="$3" '
    function share(a, b) { return b == 0 ? "-" : sprintf("%.1f %%", 100 * a / b) }
    function median(kind, project,   n, k) {
      k = kind SUBSEP project; n = count[k]
      return n == 0 ? "-" : n % 2 ? width[k, (n + 1) / 2] : (width[k, n / 2] + width[k, n / 2 + 1]) / 2
    }
    function row(project, label) {
      printf "| %s | %d | %d | %d | %s | %s | %s | %s |\n", label, count["wheel", project], count["file", project],
        count["undated", project], share(right["file", project], count["file", project]), median("file", project),
        share(right["wheel", project], count["wheel", project]), median("wheel", project)
    }
    { project = $2; sub(/(-cu[0-9]+-torch[0-9]+)?==.*/, "", project); wheels[$2] = 1
      if (!(project in seen)) { seen[project] = 1; order[++projects] = project }
      for (i = 1; i <= 2; ++i) { p = i == 1 ? project : "all"; ++count[$1, p]; right[$1, p] += $4; width[$1, p, count[$1, p]] = $5 } }
    END {
      printf "\n%s\n\n| project | builds | files | without torch names, not counted | truth inside, file | median width | truth inside, build | median width |\n", list
      print "|---|---|---|---|---|---|---|---|"
      for (i = 2; i <= projects; ++i) for (j = i; j > 1 && order[j] < order[j - 1]; --j) { t = order[j]; order[j] = order[j - 1]; order[j - 1] = t }
      for (i = 1; i <= projects; ++i) row(order[i], order[i])
      row("all", "**all**")
      for (w in wheels) ++n
      printf "\n%d wheels; mean width %.2f a file, %.2f a build.\n", n, mean("file"), mean("wheel")
      ok = right["file", "all"] >= 0.99 * count["file", "all"] && right["wheel", "all"] >= 0.99 * count["wheel", "all"]
      if (strict) ok = ok && n >= 60 && median("file", "all") <= 2 && median("wheel", "all") <= 1
      exit !ok }
    function mean(kind,   i, sum, n) {
      n = count[kind, "all"]; for (i = 1; i <= n; ++i) sum += width[kind, "all", i]
      return n == 0 ? 0 : sum / n }'
}

cmake --build "$build" --target scankit_date_files > /dev/null
status=0
for list in wheels wheels_unseen; do
  measure "doctor/torch_abi/$list.txt" > "$work/$list.results"
  strict=0
  [ "$list" = wheels_unseen ] || strict=1
  table "$list.txt" "$work/$list.results" "$strict" || { status=1 && echo "The goal is missed."; }
done
exit "$status"
