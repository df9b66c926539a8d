# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The planted faults that no command of this user repairs on this machine. For each: who has to do what, and a pattern of
# the sentence that must say so. Counted apart from the others; strict: a fault of this list for which the report
# prints a command is an error too.
nobody_can() {
  local who='' says=''
  case $1 in
    torch_not_imported_first) who='nothing is broken: the author of the program imports torch first' says='import torch' ;;
    pybind_internals) who='who built the two modules builds them with one pybind11' says='pybind11' ;;
    sources_no_python_headers) who='root installs the headers of this Python' says='install|headers' ;;
    sources_ask_for_a_gpu) who='other hardware: the setup.py of these sources runs where a GPU is' says='where the GPU is' ;;
    sources_of_an_old_torch) who='the author of the sources: they use a torch interface that is gone' says='release of these sources' ;;
    package_of_operators) who='the maker of the package: it has neither sources nor a release here' says='install a release of' ;;
    *) return 0 ;;
  esac
  printf '%s\t%s\n' "$who" "$says"
}
