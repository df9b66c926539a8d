// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

struct Kind {
  std::string_view state, words;
};
constexpr std::array kKinds{Kind{"empty", "is empty"},
                            Kind{"truncated", "is cut short"},
                            Kind{"damaged", "is damaged"},
                            Kind{"html", "is a web page, not a library"},
                            Kind{"git-lfs", "is a git-lfs pointer, not the library that it points to"},
                            Kind{"not-elf", "is no ELF file"},
                            Kind{"windows", "is made for Windows"}};

CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : selected_copies(snapshot)) {
    const auto kind = std::ranges::find(kKinds, copy->file_state, &Kind::state);
    if (kind == kKinds.end()) continue;
    result.findings.push_back(
        {.cause = copy->file_state == "windows" ? Cause::Windows : Cause::CorruptBinary,
         .subject = copy->path,
         .module = copy->module,
         .summary = "the file " + std::string(kind->words) + " (" + std::to_string(copy->size) + " bytes" +
                    (copy->file_detail.empty() ? "" : "; " + copy->file_detail) + ")",
         .evidence = {copy.at("file_state", copy->file_state), copy.at("size", std::to_string(copy->size))},
         .fixes = rebuild_fixes(snapshot, copy, "fetch or build the file again and compare its hash")});
  }
  return result;
}

}  // namespace

extern const Check kFileIsWhole{.id = "file-is-whole",
                                .question = "Is each module's file a whole shared library?",
                                .needs = kExtensions | kContents,
                                .settled_by_import = true,
                                .not_applicable = no_module_installed,
                                .run = run};
}  // namespace scankit
