// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <iomanip>
#include <iostream>

#include "doctor/base/column.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/explain_search.h"
#include "doctor/knowledge/faults.h"
#include "doctor/logs/explainer.h"
#include "doctor/report/plain.h"

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

constexpr std::size_t kFewCauses = 5;  // of a search

void print_found(const std::string& query, const std::vector<const FaultClass*>& found) {
  const std::size_t shown = std::min(found.size(), kFewCauses);
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, found[i]->id.size());
  std::cout << say("Causes that mention \"{}\", best match first:", plain(query, false)) << "\n";
  for (std::size_t i = 0; i < shown; ++i)
    std::cout << "  " << in_column(fmt::format("scankit explain {}", found[i]->id), width + 18)
              << said(found[i]->title) << "\n";
  if (const std::size_t n = found.size() - shown; n > 0)
    std::cout << say_n(n, "and {} more cause; add a word to narrow the search",
                       "and {} more causes; add a word to narrow the search", n)
              << "\n";
}

// A pasted error message: what the rules for logs say of it. False where they know no error in it.
bool explain_message(const std::string& text) {
  Log log;
  {
    const Speaking facts_are_english(nullptr);
    log = explain_text(text);
  }
  bool any = false;
  for (const LogHit& hit : log.hits) {
    if (hit.role == "clue") continue;
    any = true;
    const auto cause = cause_from_slug(hit.cause);
    if (cause)
      std::cout << info(*cause).slug << ": " << said(info(*cause).title) << "\n";
    else
      std::cout << say("not a fault of the installation") << "\n";
    std::cout << "  " << plain(retold(hit.meaning), false) << "\n";
    if (!hit.settles.empty())
      std::cout << "  " << plain(say("to be sure, look at {}", retold(hit.settles)), false) << "\n";
    if (cause) std::cout << "  scankit explain " << info(*cause).slug << "\n";
    for (const std::string& other : hit.alternatives)
      std::cout << "  " << say("it may also be {}: scankit explain {}", other, other) << "\n";
  }
  return any;
}

int print_cause(const FaultClass& fault) {
  const auto known = cause_from_slug(fault.id);
  std::cout << fault.id << ": " << said(known ? info(*known).title : fault.title) << "\n";
  section(say("What users see"), fault.error_lines);
  section(say("Seen beside it"), fault.seen_with);
  section(say("Why"), {said(fault.root_cause)});
  side(say("How it is proven from files"), all_said(fault.proof_static), files_excuse(fault));
  side(say("How it is proven by running"), all_said(fault.proof_observed), said(fault.no_observed));
  side(say("How a log shows it"),
       fault.by_log() ? std::vector{say("scankit doctor --log FILE knows the lines above.")}
                      : std::vector<std::string>(),
       said(fault.no_log));
  section(say("How it is fixed"), {said(fault.fix)});
  if (known) section(say("What scankit does"), {said(info(*known).next_step)});
  section(say("Seen in"), fault.sources);
  return kExitClean;
}

}  // namespace

int run_explain(const std::string& asked) {
  if (asked.empty()) {
    print_list();
    return kExitClean;
  }
  std::string slug = asked;
  std::ranges::transform(slug, slug.begin(), [](char c) { return c == '-' || c == ' ' ? '_' : c; });
  if (const FaultClass* fault = fault_class(slug)) return print_cause(*fault);
  if (explain_message(asked)) return kExitClean;
  if (const auto found = search_causes(asked); !found.empty()) {
    print_found(asked, found);
    return kExitClean;
  }
  complain({Errc::InvalidArgument, say("no cause is called \"{}\" or mentions it", asked), cause_hint(slug)});
  return kExitUsage;
}

}  // namespace scankit
