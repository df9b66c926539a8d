# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # places.sh sets $work and reads what the functions set
# SPDX-License-Identifier: Apache-2.0
