// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/elf/mangling.h"
#include "doctor/logs/classify.h"
#include "doctor/torch_abi/infer_release.h"

// Which releases of torch export the names that a log shows, and so for which of them a file was built.
namespace scankit::logs {
namespace {

// Limits on what one log may make us remember: files, and different names of one file.
constexpr std::size_t kFiles = 64, kNames = 256;

// The releases as the index writes them ("2.4 to 2.6"), as a phrase; "" if there are none.
Message of_torch(const std::string& releases) {
  if (releases.empty()) return {};
  return releases == torch_abi::kEveryRelease ? message("every known release of torch")
                                              : message("torch {}", releases);
}

// Adds to `meaning` which releases export the name. `as_named` are those that export exactly this name,
// `other_strings` those that export the name that differs from it only in the string ABI.
Message sentence(const Message& meaning, const Message& as_named, const Message& other_strings) {
  if (as_named.empty() && other_strings.empty())
    return message("{}; no known release of torch exports it", meaning);
  if (other_strings.empty()) return message("{}; {} exports it", meaning, as_named);
  if (as_named.empty())
    return message("{}; {} exports it, with the other string ABI only", meaning, other_strings);
  return message("{}; {} exports it, {} with the other string ABI", meaning, as_named, other_strings);
}

// The string ABI of a file, by the spelling of the names that it misses: "new", "old", or "neutral" if no
// name shows it. One name is enough, because a file is compiled with one string ABI.
std::string strings_of(const std::vector<std::string>& names) {
  bool any_old = false;
  for (const std::string& name : names) {
    if (name.find("cxx11") != std::string::npos) return "new";
    any_old = any_old || elf::string_abi_in(elf::demangle(name)) == elf::StringAbi::Old;
  }
  return any_old ? "old" : "neutral";
}

// The tag in the file's name: "cpython-311-x86_64-linux-gnu"; "" if there is none.
std::string tag_of(const std::string& file) {
  const std::string base = path_basename(file);
  const auto first = base.find('.'), last = base.rfind('.');
  return last > first && base.ends_with(".so") ? base.substr(first + 1, last - first - 1) : "";
}

}  // namespace

bool is_of_one_spelling(const std::string& symbol) {
  const torch_abi::Exporters found = torch_abi::exporters(torch_abi::SymbolIndex::built_in(), symbol);
  return !found.as_named.empty() && found.other_strings.empty();
}

bool is_of_no_known_release(const std::string& symbol) {
  const torch_abi::Exporters found = torch_abi::exporters(torch_abi::SymbolIndex::built_in(), symbol);
  return found.as_named.empty() && found.other_strings.empty();
}

void add_exporters(const std::string& symbol, Judged& judged) {
  const torch_abi::Exporters found = torch_abi::exporters(torch_abi::SymbolIndex::built_in(), symbol);
  const Message as_named = of_torch(found.as_named), other_strings = of_torch(found.other_strings);
  judged.meaning = sentence(judged.meaning, as_named, other_strings);
  if (!as_named.empty()) judged.more["exported_by"] = as_named.english();
  if (!other_strings.empty()) judged.more["exported_with_other_string_abi_by"] = other_strings.english();
}

void NamesOfLog::take(const std::string& file, const std::string& symbol) {
  // A file beyond the limit is ignored; a known file still takes names.
  if (file.empty() || (by_file_.size() >= kFiles && !by_file_.contains(file))) return;
  auto& names = by_file_[file];
  if (names.size() < kNames && std::ranges::find(names, symbol) == names.end()) names.push_back(symbol);
}

std::vector<BuiltFor> NamesOfLog::built_for() const {
  std::vector<BuiltFor> answers;
  for (const auto& [file, names] : by_file_) {
    torch_abi::BuiltForInput input;
    input.file = file;
    for (const std::string& name : names) input.undefined.push_back({.name = name});
    input.string_abi = strings_of(names);
    input.tag = tag_of(file);
    BuiltFor built_for = torch_abi::date_file(torch_abi::SymbolIndex::built_in(), input);
    // Unlike with a file that was read, a loader's log names one missing symbol and not all of them,
    // which makes the range of releases wider than it would have to be.
    if (!built_for.why_not_narrower.empty())
      built_for.why_not_narrower =
          message("only the symbols in the log are known, not all that the file needs: {}",
                  built_for.why_not_narrower);
    answers.push_back(std::move(built_for));
  }
  return answers;
}

}  // namespace scankit::logs
