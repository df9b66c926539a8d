// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/repairs.h"

#include "doctor/checks/build_view.h"
#include "doctor/checks/view.h"

namespace scankit {

std::vector<Fix> module_or(const Snapshot& snapshot, const std::string& module, Fix otherwise) {
  std::vector<Fix> fixes = module_fixes(snapshot, module, "");
  if (!std::holds_alternative<InstallModule>(fixes.front())) fixes.clear();
  fixes.push_back(std::move(otherwise));
  return fixes;
}

Fix shell_advice(const std::string& words, const std::string& command) {
  return Advice{words + "\n" + command};
}

std::string export_line(const std::string& name, const std::string& value) {
  return join({"export", name + "=" + word_for_shell(value)}, " ");
}

std::string edit_command(const SourceTree& tree, const SourceFact& fact, const std::string& pattern,
                         const std::string& replacement) {
  const std::string line = fact.line == 0 ? "" : std::to_string(fact.line);
  return "sed -i " + word_for_shell(line + "s/" + pattern + "/" + replacement + "/g") + " " +
         word_for_shell(path_join(tree.folder, fact.file));
}

}  // namespace scankit
