// SPDX-License-Identifier: Apache-2.0
// scankit_text_tables: the texts of the tables (causes.def, knowledge/*.yaml, the checks' questions) as a
// .pot on standard output, for ci/lint/catalogue.sh. xgettext reads C++, not our tables; this reads them as
// scankit does.
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks/check.h"
#include "doctor/knowledge/faults.h"
#include "doctor/model/finding.h"

namespace scankit {
namespace {

using Texts = std::map<std::string, std::vector<std::string>>;  // text, and where it stands

void add(Texts& texts, std::string_view text, const std::string& where) {
  if (!text.empty()) texts[std::string(text)].push_back(where);
}

Texts texts_of_tables() {
  Texts texts;
  for (const CauseInfo& cause : all_causes()) {
    add(texts, cause.title, "cause " + std::string(cause.slug) + ": title");
    add(texts, cause.next_step, "cause " + std::string(cause.slug) + ": next step");
  }
  for (const checks::Check* check : checks::all_checks())
    add(texts, check->question, "check " + std::string(check->id) + ": question; true means healthy");
  for (const knowledge::FaultClass& fault : knowledge::fault_classes()) {
    const std::string where = "scankit explain " + fault.id + ": ";
    add(texts, fault.title, where + "title");
    add(texts, fault.root_cause, where + "why");
    for (const std::string& line : fault.proof_static) add(texts, line, where + "proof from files");
    for (const std::string& line : fault.proof_observed) add(texts, line, where + "proof by running");
    add(texts, fault.fix, where + "repair");
    for (const std::string& excuse : {fault.no_static, fault.no_observed, fault.no_log})
      add(texts, excuse, where + "why there is no such side, after \"Not by the doctor:\"");
  }
  for (const knowledge::LogRule& rule : knowledge::log_rules()) {
    add(texts, rule.meaning, "log rule " + rule.id + ": meaning");
    add(texts, rule.settles, "log rule " + rule.id + ": \"to be sure, look at ...\"");
    add(texts, rule.repair, "log rule " + rule.id + ": repair");
  }
  for (const knowledge::LogJoin& join : knowledge::log_joins()) {
    add(texts, join.meaning, "log rule for " + join.gives + ": second half, \"meaning of the error; ...\"");
    add(texts, join.settles, "log rule for " + join.gives + ": \"to be sure, look at ...\"");
  }
  return texts;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

void print() {
  std::printf("msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=UTF-8\\n\"\n");
  for (const auto& [text, places] : texts_of_tables()) {
    std::printf("\n");
    for (const std::string& place : places) std::printf("#. %s\n", place.c_str());
    std::printf("msgid %s\nmsgstr \"\"\n", quoted(text).c_str());
  }
}

}  // namespace
}  // namespace scankit

int main() { scankit::print(); }
