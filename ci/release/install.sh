#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs scankit below a prefix that you can write; no root. Runs in any POSIX shell, with the tools of busybox too.
set -eu
usage() {
  cat <<'TEXT'
usage: sh install.sh [--from DIR|URL] [--prefix DIR] [--version V] [--signers FILE]
  --from DIR|URL  the directory with the files of a release: SHA256SUMS and scankit-V-linux-ARCH.tar.gz
                  [default: $SCANKIT_RELEASES, then the directory of this script]
  --prefix DIR    install DIR/bin/scankit [default: ~/.local]
  --version V     which version, if the release has several
  --signers FILE  install only if SHA256SUMS is signed by a key of FILE, an allowed signers file of ssh-keygen
The tarball is unpacked only if SHA256SUMS has its checksum. That proves that the download is complete and unchanged,
not who made it: give --signers, or take SHA256SUMS from a place that you trust.
TEXT
}
say() { printf 'install.sh: %s\n' "$*"; }
die() {
  say "$@" >&2
  exit 1
}

# fetch NAME FILE: a file of the release becomes FILE. What a download says is shown if it fails.
fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 2 --connect-timeout 20 --speed-limit 1 --speed-time 60 \
          --output "$2" "$from/$1"
      elif command -v wget >/dev/null 2>&1; then
        # GNU wget would try 20 times; that of busybox tries once and has no such option.
        if wget --version >/dev/null 2>&1; then wget -q --tries=3 --timeout=60 -O "$2" "$from/$1"; else wget -q -O "$2" "$from/$1"; fi
      else
        die "neither curl nor wget is installed. Download SHA256SUMS and the tarball by other means, then give their directory: --from DIR"
      fi || die "$from/$1 could not be downloaded. Check the address and the network, or download the release by other means and give its directory: --from DIR"
      ;;
    *)
      [ -f "$from/$1" ] || die "$from/$1 does not exist. --from is to name the directory with the files of a release"
      cp "$from/$1" "$2" || die "$from/$1 cannot be read"
      ;;
  esac
}

# add_reason: what ssh-keygen says about line $number joins $why, once. That the key of a line is another one is no reason:
# it is true of every other line of a good file.
add_reason() {
  reason=''
  tr -d '\r' <"$work/why" >"$work/reasons" # its lines end in CR LF
  IFS= read -r reason <"$work/reasons" || true
  case $reason in
    '' | 'No principal matched.') return 0 ;;
    "$work/signers:1: "*) reason="line $number: ${reason#"$work/signers:1: "}" ;;
  esac
  case $why in *"$reason"*) ;; *) why=${why:+$why; }$reason ;; esac
}

# verify_signature: SHA256SUMS.sig is of a key that $signers allows, for releases of scankit and nothing else.
verify_signature() {
  command -v ssh-keygen >/dev/null 2>&1 || die "ssh-keygen is not installed, so that the signature cannot be verified. Nothing was installed"
  fetch SHA256SUMS.sig "$work/SHA256SUMS.sig"
  # Line by line: of a key that has several, find-principals names the first alone, whatever that line allows. An ssh-keygen
  # before 8.2 knows no signatures.
  signer='' why='' number=0
  while [ -z "$signer" ] && { IFS= read -r line || [ -n "$line" ]; }; do
    number=$((number + 1))
    case $line in '' | '#'*) continue ;; esac
    printf '%s\n' "$line" >"$work/signers"
    if ssh-keygen -Y find-principals -s "$work/SHA256SUMS.sig" -f "$work/signers" >"$work/names" 2>"$work/why" && IFS= read -r who <"$work/names" &&
      ssh-keygen -Y verify -n scankit-release -f "$work/signers" -I "$who" -s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" >/dev/null 2>"$work/why"; then
      signer=$who
    else
      add_reason
    fi
  done <"$signers"
  [ -n "$signer" ] ||
    die "SHA256SUMS of $from is not signed by a key of $signers, or was changed since (${why:-none of its keys made the signature}). Nothing was installed"
  say "SHA256SUMS is signed by $signer"
}

# choose: sets tarball and sum from SHA256SUMS. A name is taken only if it is one of ours: it becomes part of paths.
choose() {
  [ "$(uname -s)" = Linux ] || die "scankit is a program for Linux, and this is $(uname -s). To examine files of a Linux machine, install it in a container or in WSL"
  arch=$(uname -m)
  case $version in *[!0-9A-Za-z.+-]*) die "--version $version: not a version" ;; esac
  found=$(sed -n "s/^\([0-9a-f]\{64\}\)  \(scankit-[0-9][0-9A-Za-z.+]*-linux-$arch\.tar\.gz\)\$/\1 \2/p" "$work/SHA256SUMS")
  [ -z "$version" ] || found=$(printf '%s\n' "$found" | grep -F " scankit-$version-linux-$arch.tar.gz" || true)
  case $(printf '%s' "$found" | grep -c .) in
    0)
      others=$(sed -n 's/^[0-9a-f]\{64\}  scankit-\([0-9][0-9A-Za-z.+]*\)-linux-\([0-9a-z_]*\)\.tar\.gz$/\1 for \2/p' "$work/SHA256SUMS" | tr '\n' ',')
      die "SHA256SUMS of $from has no checksum of scankit-${version:-VERSION}-linux-$arch.tar.gz${others:+, only of ${others%,}}. Nothing was installed"
      ;;
    1) sum=${found%% *} tarball=${found#* } ;;
    *) die "$from has several versions: choose one with --version. $(printf '%s' "$found" | sed 's/^[^ ]* scankit-//; s/-linux-.*//' | tr '\n' ' ')" ;;
  esac
  version=${tarball#scankit-} version=${version%-linux-"$arch".tar.gz}
}

verify() {
  command -v sha256sum >/dev/null 2>&1 || die "sha256sum is not installed, so that the tarball cannot be verified. Nothing was installed"
  is=$(sha256sum <"$work/$tarball") is=${is%% *}
  [ "$is" = "$sum" ] || die "$tarball is not the file that SHA256SUMS names: its SHA-256 is $is, not $sum. It is incomplete or was changed. Nothing was installed"
}

# may_replace NAME: whether $prefix/NAME does not exist, or is a link that an earlier run of this script made.
may_replace() {
  [ -e "$prefix/$1" ] || [ -L "$prefix/$1" ] || return 0
  case $(readlink "$prefix/$1") in */lib/scankit/*) ;; *) return 1 ;; esac
}

# link NAME: $prefix/NAME becomes a link to that file of this installation, in one step. A file that is not ours stays.
link() {
  may_replace "$1" || return 1
  mkdir -p "$(dirname "$prefix/$1")"
  up=$(printf '%s' "${1%/*}" | sed 's|[^/][^/]*|..|g')
  rm -f "$prefix/$1.new.$$"
  ln -s "$up/lib/scankit/$folder/$1" "$prefix/$1.new.$$" && mv -f "$prefix/$1.new.$$" "$prefix/$1"
}

# At no moment is there no version: the links name the new one in one step each. The one before stays until the next
# installation, for those who have begun to run it.
put_in_place() {
  home=$prefix/lib/scankit before=$(readlink "$prefix/bin/scankit" 2>/dev/null || true)
  folder=$version-$(printf '%.12s' "$sum")
  if [ -e "$home/$folder" ]; then
    # This version is here already. If a file of it was damaged, it is replaced by a complete one of another name.
    diff -r "$home/$folder" "$new" >/dev/null 2>&1 || folder=$folder.$$
  fi
  [ -e "$home/$folder" ] || mv "$new" "$home/$folder"
  link bin/scankit || die "$prefix/bin/scankit could not be written; the program is $home/$folder/bin/scankit"
  for file in $files; do
    link "$file" || say "$prefix/$file was not installed by this script and stays; the new one is $home/$folder/$file"
  done
  before=${before#*/lib/scankit/} before=${before%%/*}
  for version_folder in "$home"/[0-9]*; do
    case ${version_folder##*/} in "$folder" | "$before") ;; *) rm -rf "$version_folder" ;; esac
  done
}

from=${SCANKIT_RELEASES:-} prefix=${HOME:-}/.local version='' signers=''
while [ $# -gt 0 ]; do
  case $1 in
    --from | --prefix | --version | --signers)
      [ $# -ge 2 ] || { usage >&2 && exit 2; }
      case $1 in
        --from) from=$2 ;;
        --prefix) prefix=$2 ;;
        --version) version=$2 ;;
        # An empty variable must not turn the verification off.
        --signers) [ -n "$2" ] || die "--signers needs the name of a file. Nothing was installed"; signers=$2 ;;
      esac
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
if [ -z "$from" ]; then
  # Piped into a shell, $0 is the shell's name, and there is no directory to look in.
  case $0 in *install.sh) from=$(dirname "$0") ;; esac
  [ -n "$from" ] && [ -f "$from/SHA256SUMS" ] ||
    die "where is the release? Give its directory or URL: --from DIR|URL, or set SCANKIT_RELEASES"
fi
from=${from%/}
[ -z "$signers" ] || [ -r "$signers" ] || die "--signers $signers cannot be read. It must have one line for each key: NAME namespaces=\"scankit-release\" KEY"
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
files='share/man/man1/scankit.1 share/bash-completion/completions/scankit share/zsh/site-functions/_scankit
share/fish/vendor_completions.d/scankit.fish'

may_replace bin/scankit ||
  die "$prefix/bin/scankit exists and was not installed by this script. Move it away, or choose another --prefix"

# Aside, but on the file system of the prefix: then moving it in is one step. A failure removes the directories that are new.
created=0
for folder in "$prefix" "$prefix/lib" "$prefix/lib/scankit"; do [ -d "$folder" ] || created=$((created + 1)); done
mkdir -p "$prefix/lib/scankit" || die "$prefix cannot be written. Choose another directory: --prefix DIR"
work=$(mktemp -d "$prefix/lib/scankit/.new.XXXXXX") || die "$prefix/lib/scankit cannot be written. Choose another directory: --prefix DIR"
clean_up() {
  rm -rf "$work"
  folder=$prefix/lib/scankit
  while [ $created -gt 0 ]; do
    rmdir "$folder" 2>/dev/null || break
    folder=$(dirname "$folder") created=$((created - 1))
  done
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fetch SHA256SUMS "$work/SHA256SUMS"
[ -z "$signers" ] || verify_signature
choose
fetch "$tarball" "$work/$tarball"
verify
tar -xzf "$work/$tarball" -C "$work" || die "$tarball could not be unpacked in $work. Is the disk full? Nothing was installed"
new=$work/${tarball%.tar.gz}
says=$("$new/bin/scankit" --version 2>&1) && [ "$says" = "scankit $version" ] ||
  die "scankit $version does not start on this machine: $says. Nothing was installed"
put_in_place
say "$says is installed: $prefix/bin/scankit"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) say "$prefix/bin is not on PATH. Add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
