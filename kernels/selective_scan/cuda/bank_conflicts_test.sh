#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bank_conflicts_test.sh PROGRAM PROGRAM32: the second is of kernels whose rows all start in the same bank. That must show, in
# every kernel whose lanes read rows side by side, and no kernel of the first may need a third more than the least.
set -euo pipefail
rows() { "$1" "$2" | tr -d '{}",'; }
bad=0
for kernel in scankit_forward_4x4 scankit_forward_8x2 scankit_backward_8x2; do
  read -r name requests least needed < <(rows "$1" "$kernel")
  read -r _ requests32 least32 needed32 < <(rows "$2" "$kernel")
  echo "$name: $requests requests, $least wavefronts at least, $needed with conflicts, $needed32 with a pitch of 32"
  [ "$requests $least" = "$requests32 $least32" ] || { echo "not the same requests with a pitch of 32"; bad=1; }
  [ "$needed" -ge "$least" ] || { echo "fewer than the least"; bad=1; }
  [ $((3 * needed)) -lt $((4 * least)) ] || { echo "conflicts where none should be"; bad=1; }
  [ "$needed32" -gt $((3 * least / 2)) ] || { echo "a pitch of 32 does not show"; bad=1; }
done
exit $bad
