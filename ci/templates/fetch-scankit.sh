# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# A step of the pipelines that `scankit ci init` writes: $SCANKIT, verified, becomes $SCANKIT_BIN/scankit.
case $SCANKIT in
  http://* | https://*) ;;
  *) [ -f "$SCANKIT" ] || { echo "$SCANKIT not found: commit it, or set SCANKIT to its URL" >&2 && exit 1; } ;;
esac
SCANKIT_BIN=$(mktemp -d)
file=$SCANKIT_BIN/$(basename "${SCANKIT%%[?#]*}")
case $SCANKIT in
  http://* | https://*) curl --fail --silent --show-error --location --retry 3 --output "$file" "$SCANKIT" ;;
  *) cp -- "$SCANKIT" "$file" ;;
esac
echo "$SCANKIT_SHA256  $file" | sha256sum --check --strict
case $file in
  *.whl)
    python3 -m venv "$SCANKIT_BIN/venv"
    "$SCANKIT_BIN/venv/bin/python" -m pip install --no-index --no-deps "$file"
    ln -s venv/bin/scankit "$SCANKIT_BIN/scankit"
    ;;
  *)
    chmod +x "$file"
    [ "$file" = "$SCANKIT_BIN/scankit" ] || ln -s "$file" "$SCANKIT_BIN/scankit"
    ;;
esac
export SCANKIT_BIN
