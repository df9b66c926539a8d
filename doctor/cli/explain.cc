// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/cli/commands.h"
#include "doctor/knowledge/faults.h"

namespace scankit {
namespace {

void section(const std::string& name, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  std::cout << "\n" << name << "\n";
  for (const std::string& line : lines) std::cout << "  " << line << "\n";
}

void print_list() {
  std::size_t width = 0;
  for (const FaultClass& fault : fault_classes()) width = std::max(width, fault.id.size());
  std::cout << "Causes; those marked * are found in a log alone (`scankit doctor --log FILE`) so far:\n";
  for (const FaultClass& fault : fault_classes())
    std::cout << "  " << std::left << std::setw(static_cast<int>(width) + 2) << fault.id
              << (fault.explained_only ? "* " : "  ") << fault.title << "\n";
}

std::string nearest(const std::string& wanted) {
  for (const FaultClass& fault : fault_classes())
    if (fault.id.find(wanted) != std::string::npos) return "did you mean " + fault.id + "?";
  return "scankit explain --list names them all";
}

}  // namespace

int run_explain(const std::string& cause, bool list) {
  if (list) {
    print_list();
    return kExitClean;
  }
  std::string slug = cause;
  std::ranges::replace(slug, '-', '_');
  const FaultClass* fault = fault_class(slug);
  if (fault == nullptr) {
    complain({Errc::InvalidArgument, "no cause is called \"" + cause + "\"", nearest(slug)});
    return kExitUsage;
  }
  const auto known = cause_from_slug(slug);
  std::cout << fault->id << ": " << (known ? std::string(info(*known).title) : fault->title) << "\n";
  if (fault->explained_only)
    std::cout << "So far `scankit doctor` finds this cause in a log alone: scankit doctor --log FILE\n";
  section("What users see", fault->error_lines);
  section("Why", {fault->root_cause});
  section("How it is proven from files", fault->proof_static);
  section("How it is proven by running", fault->proof_observed);
  section("How it is fixed", {fault->fix});
  if (known) section("What scankit does", {std::string(info(*known).next_step)});
  section("Seen in", fault->sources);
  return kExitClean;
}

}  // namespace scankit
