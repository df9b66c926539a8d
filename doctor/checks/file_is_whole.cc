// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// What is wrong with a file in this state, in a sentence; "" where it is another check's matter. `size` has
// its unit.
std::string file_state_in_words(const std::string& state, const std::string& size) {
  if (state == "empty") return say("the file is empty ({})", size);
  if (state == "truncated") return say("the file is cut short ({})", size);
  if (state == "damaged") return say("the file is damaged ({})", size);
  if (state == "html") return say("the file is a web page, not a library ({})", size);
  if (state == "git-lfs")
    return say("the file is a git-lfs pointer, not the library that it points to ({})", size);
  if (state == "windows") return say("the file is made for Windows ({})", size);
  return state == "not-elf" ? say("the file is no ELF file ({})", size) : "";
}

std::string size_in_words(const Extension& file) {
  return clauses({say_n(file.size, "{} byte", "{} bytes", file.size), retold(file.file_detail)});
}

CheckResult file_is_whole(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : selected_copies(snapshot)) {
    const std::string summary = file_state_in_words(copy->file_state, size_in_words(*copy));
    if (summary.empty()) continue;
    result.findings.push_back(
        {.cause = copy->file_state == "windows" ? Cause::Windows : Cause::CorruptBinary,
         .subject = copy->path,
         .module = copy->module,
         .summary = summary,
         .evidence = {copy.at("file_state", copy->file_state), copy.at("size", std::to_string(copy->size))},
         .fixes = restore_fixes(snapshot, copy, say("fetch or build the file again and compare its hash"))});
  }
  return result;
}

}  // namespace

extern const Check kFileIsWhole{.id = "file-is-whole",
                                .question = "Is each module's file a whole shared library?",
                                .needs = kExtensions | kContents,
                                .settled_by_import = true,
                                .not_applicable = no_module_installed,
                                .run = file_is_whole};
}  // namespace scankit
