#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A lock by pip's `install --dry-run --report`: an old pip and the newest, an index in JSON and one in HTML, the user's own
# settings, what an index lacks, an index that is away; and all that is done with a lock where there is no network at all:
#   lock_pip.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$(realpath "$1")
newest=$(. "$here/../../ci/fixtures.sh" && fx_packages pip==26.3) || { echo "SKIPPED: no newer pip" && exit 77; }
# shellcheck source=envspec/tests/small_index.sh
. "$here/small_index.sh"
# shellcheck disable=SC2120  # small_index.sh has one with arguments
lock() { status_is "${status:-0}" "$scankit" env lock --python "$python" "$@"; } # no uv on PATH: pip is asked
# pip's alone: sources that leave a mark when they are built
mkdir -p "$work/delta-1.0"
printf 'open(%s, "w")\nfrom setuptools import setup\nsetup(name="delta", version="1.0")\n' "'$work/built'" >"$work/delta-1.0/setup.py"
tar -C "$work" -czf "$work/served/delta-1.0.tar.gz" delta-1.0
kill "$server"

artifact() { part 'next(d["artifact"] and d["artifact"]["sha256"] for d in lock["distributions"] if d["name"] == "'"$1"'")'; }
locked_by_pip() { # locked_by_pip NAME [--html]: the Python of which is $python
  local name=$1
  shift
  serve "$@"
  "$python" -m pip install -q alpha==1.0
  "$python" -m pip install -q --no-index --no-deps "$work"/own/beta-*.whl
  for extra in gamma delta; do "$python" -m pip install -q --no-index --find-links "$work/own" $extra; done
  check "$name: lock" lock
  check "$name: pip is asked" says "asking pip for the files"
  check "$name: the wheel of the index" test "$(artifact alpha)" = "$(sha256sum "$work/served/alpha-1.0-py3-none-any.whl" | cut -d' ' -f1)"
  check "$name: what the index lacks" says "no hash of gamma==3.0: the index has no wheel of this version"
  check "$name: with whose words it were" says "scankit: pip: No matching distribution found for gamma==3.0"
  check "$name: what was built from a source archive of the index is packed" test "$(part 'next((d["source"], d["artifact"]["file"][-4:]) for d in lock["distributions"] if d["name"] == "delta")')" = "('here', '.whl')"
  check "$name: the archive is not built" test ! -e "$work/built"
  check "$name: what was built here" test "$(part 'next(d["source"] for d in lock["distributions"] if d["name"] == "beta")')" = here
  cp scankit.lock first.lock
  check "$name: again" lock
  check "$name: the same bytes" cmp scankit.lock first.lock
  printf '[global]\nquiet = 3\nrequire-virtualenv = true\n' >"$work/quiet.conf"
  PIP_CONFIG_FILE=$work/quiet.conf check "$name: settings that silence pip" lock
  check "$name: change nothing" cmp scankit.lock first.lock
  check "$name: nothing drifted" drift 0
  rm scankit.lock
}
"$base" -m venv "$work/env"
python=$work/env/bin/python
site=$(fx_site "$python")
locked_by_pip "pip $("$python" -m pip --version | cut -d' ' -f2)"
# uv is quicker, and knows the index where it was told of one.
PATH=$tools/bin:$PATH check "with uv on PATH" lock
check "uv is asked" says "asking uv for the files"
check "and has the same" test "$(grep -o '"sha256": "[0-9a-f]*"' scankit.lock)" = "$(grep -o '"sha256": "[0-9a-f]*"' first.lock)"
check "what it lacks is asked of pip" says "asking pip for the files"
check "the archive is not built" test ! -e "$work/built"
rm scankit.lock
unset UV_DEFAULT_INDEX
PATH=$tools/bin:$PATH check "where the index was told to pip alone" lock
check "uv is not asked" sh -c '! grep -q "asking uv" "$1"/err' sh "$work"
# What was changed after it was installed cannot be packed; the archive on the index is still known by its hash.
echo '# mine' >>"$(echo "$site"/delta*.py | cut -d' ' -f1)"
rm scankit.lock
check "one that was changed" lock
check "is locked as its archive" test "$(artifact delta)" = "$(sha256sum "$work/served/delta-1.0.tar.gz" | cut -d' ' -f1)"
check "of the index" test "$(part 'next(d["source"] for d in lock["distributions"] if d["name"] == "delta")')" = index
check "an export has its hash" status_is 0 "$scankit" env export requirements --python "$python" --partial --out source.txt
check "for pip to build it" grep -q "$(sha256sum "$work/served/delta-1.0.tar.gz" | cut -d' ' -f1)" source.txt
"$python" -m pip uninstall -q -y gamma delta
rm scankit.lock
kill "$server"
locked_by_pip "its HTML" --html
kill "$server"
"$python" -m pip install -q --no-index --find-links "$newest" pip==26.3
locked_by_pip "pip 26.3"
"$python" -m pip uninstall -q -y gamma delta
# Their index, with their password, from their pip.conf.
unset PIP_INDEX_URL
mkdir -p "$HOME/.config/pip"
printf '[global]\nindex-url = http://me:hidden@127.0.0.1:%s/simple\n' "$(cat "$work/port")" >"$HOME/.config/pip/pip.conf"
check "an index of pip.conf" lock
check "is the one that is asked" test "$(artifact alpha)" = "$(sha256sum "$work/served/alpha-1.0-py3-none-any.whl" | cut -d' ' -f1)"
check "its password stays there" sh -c '! grep -q hidden scankit.lock'
check "requirements.txt" status_is 0 "$scankit" env export requirements --python "$python" --partial --out requirements.txt
rm -rf scankit-wheels
check "without a wheel of pip, fetch brings the rest" status_is 4 "$scankit" env fetch --out scankit-wheels
"$scankit" env export requirements --python "$python" --partial --out requirements.txt 2>/dev/null

# No network: nothing but what is here. A machine that forbids namespaces of its own has the closed port instead.
kill "$server"
wait "$server" 2>/dev/null || true
away=(unshare --net --map-root-user)
"${away[@]}" true 2>/dev/null || { echo "no namespace without a network here: only the index is away" && away=(env); }
cut_off() { status_is "$1" "${away[@]}" "${@:2}"; }
known() { part '[(d["name"], d["artifact"]) for d in lock["distributions"]], lock["libraries"]'; }
before=$(known)
check "with no network the old lock knows" cut_off 0 "$scankit" env lock --offline --python "$python"
check "the same" test "$(known)" = "$before"
check "also where the index was to be asked" cut_off 0 "$scankit" env lock --python "$python" --timeout 30
check "the same once more" test "$(known)" = "$before"
check "check" cut_off 0 "$scankit" env check --python "$python" --lock scankit.lock
for format in requirements conda dockerfile pylock; do
  check "export $format" cut_off 0 "$scankit" env export "$format" --python "$python" --partial --out "there/$format"
done
"$base" -m venv "$work/rebuilt"
sed '/^pip==/,/hash/d' requirements.txt >rest.txt
check "a rebuild from the fetched wheels" cut_off 0 "$work/rebuilt/bin/python" -m pip install -q --no-index --no-deps --require-hashes -r rest.txt
check "and nothing drifted but pip itself" drift 0 --python "$work/rebuilt/bin/python"
rm scankit.lock
check "no lock and no network: no hash" cut_off 0 "$scankit" env lock --python "$python" --timeout 60
check "with the reason" says "no hash of alpha==1.0: the index could not be reached"
check "libraries are hashed all the same" test "$(part 'lock["libraries"][0]["sha256"]')" = "$(sha256sum "$site/beta/_c.abi3.so" | cut -d' ' -f1)"
end
