#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# runs_anywhere.sh ROOT: whether the program below ROOT runs on every Linux that a manylinux_2_17 wheel promises, and the
# modules beside it load there. Prints the machine (x86_64, aarch64); else says what is in the way, status 1.
set -euo pipefail
root=$1
program=$root/bin/scankit
refuse() {
  printf 'runs_anywhere.sh: %s\n' "$*" >&2
  exit 1
}

case $(readelf -hW "$program" | sed -n 's/^ *Machine: *//p') in
  *X86-64) arch=x86_64 ;;
  AArch64) arch=aarch64 ;;
  *) refuse "$program is for a machine that no wheel is made for" ;;
esac

# Static: no interpreter and no shared library, so that the C library of the machine does not matter, be it glibc or musl.
! readelf -lW "$program" | grep -q INTERP || refuse "$program asks for an interpreter: configure with SCANKIT_STATIC=ON"
! readelf -dW "$program" | grep -q NEEDED || refuse "$program needs shared libraries: configure with SCANKIT_STATIC=ON"

# The kernel matters: glibc writes the oldest that it starts on into a note. The systems of glibc 2.17 have Linux 3.10.
kernel=$(readelf -nW "$program" | sed -n 's/.*OS: Linux, ABI: \([0-9.]*\).*/\1/p')
[ -n "$kernel" ] || refuse "$program does not say which kernel it needs"
[ "$(printf '%s\n' "$kernel" 3.10 | sort -V | tail -n 1)" = 3.10 ] || refuse "$program needs Linux $kernel, and 3.10 is to be enough"
# An aarch64 kernel may have pages of 64 KiB (Grace, RHEL 8), and loads nothing that is aligned to less.
if [ $arch = aarch64 ]; then
  for file in "$program" "$root"/share/scankit/modules/*.so; do
    alignments=$(readelf -lW "$file" | sed -n 's/^ *LOAD .* 0x\([0-9a-f]*\)$/\1/p')
    [ -n "$alignments" ] && ! grep -qvE '^[0-9a-f]+0000$' <<<"$alignments" ||
      refuse "$file has a segment aligned to less than 64 KiB"
  done
fi
# And the processor: a build with -march=native would say so here.
! readelf -nW "$program" | grep -qE 'x86 ISA needed:.*v[2-4]' || refuse "$program needs a newer processor than the first of x86-64"

# The modules are loaded by a Python with torch, which is a glibc one.
for module in "$root"/share/scankit/modules/*.so; do
  newest=$(readelf -VW "$module" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -V | tail -n 1)
  [ "$(printf '%s\n' "$newest" 2.17 | sort -V | tail -n 1)" = 2.17 ] || refuse "$module needs glibc $newest"
done
echo $arch
