// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/nearest.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/knowledge/faults.h"

namespace scankit {
namespace {

void section(const std::string& name, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  if (!name.empty()) std::cout << "\n" << name << "\n";
  for (const std::string& line : lines) std::cout << "  " << line << "\n";
}

std::vector<std::string> all_said(const std::vector<std::string>& english) {
  std::vector<std::string> texts;
  for (const std::string& text : english) texts.push_back(said(text));
  return texts;
}

// One side of the proof: what is looked at, or why there is nothing to look at.
void side(const std::string& name, const std::vector<std::string>& lines, const std::string& excuse) {
  section(name, lines);
  if (!excuse.empty()) section(lines.empty() ? name : "", {say("Not by the doctor: {}", excuse)});
}

std::string files_excuse(const FaultClass& fault) { return said(fault.no_static); }

void print_list() {
  std::size_t width = 0;
  for (const FaultClass& fault : fault_classes()) width = std::max(width, fault.id.size());
  std::cout << say("Causes, and what shows them: f the files, i an observed import, l an error log.") << "\n";
  for (const FaultClass& fault : fault_classes())
    std::cout << "  " << std::left << std::setw(static_cast<int>(width) + 2) << fault.id
              << (fault.by_files() ? 'f' : '-') << (fault.by_import() ? 'i' : '-')
              << (fault.by_log() ? 'l' : '-') << "  " << said(fault.title) << "\n";
}

std::string nearest(const std::string& wanted) {
  for (const FaultClass& fault : fault_classes())
    if (fault.id.find(wanted) != std::string::npos) return say("did you mean {}?", fault.id);
  std::vector<std::string> known;
  for (const FaultClass& fault : fault_classes()) known.push_back(fault.id);
  if (const std::string near = nearest_word(wanted, known); !near.empty())
    return say("did you mean {}?", near);
  return say("scankit explain --list names them all");
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
    complain({Errc::InvalidArgument, say("no cause is called \"{}\"", cause), nearest(slug)});
    return kExitUsage;
  }
  const auto known = cause_from_slug(slug);
  std::cout << fault->id << ": " << said(known ? info(*known).title : fault->title) << "\n";
  section(say("What users see"), fault->error_lines);
  section(say("Seen beside it"), fault->seen_with);
  section(say("Why"), {said(fault->root_cause)});
  side(say("How it is proven from files"), all_said(fault->proof_static), files_excuse(*fault));
  side(say("How it is proven by running"), all_said(fault->proof_observed), said(fault->no_observed));
  side(say("How a log shows it"),
       fault->by_log() ? std::vector{say("scankit doctor --log FILE knows the lines above.")}
                       : std::vector<std::string>(),
       said(fault->no_log));
  section(say("How it is fixed"), {said(fault->fix)});
  if (known) section(say("What scankit does"), {said(info(*known).next_step)});
  section(say("Seen in"), fault->sources);
  return kExitClean;
}

}  // namespace scankit
