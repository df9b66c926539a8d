// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/examined_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/base/columns.h"
#include "doctor/base/say.h"
#include "doctor/model/loader_rules.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/report/doctor_document.h"

namespace scankit::report {
namespace {
using Json = nlohmann::ordered_json;

// One entry of the array. `pointer` is the JSON pointer of `built_for` in the snapshot, for the evidence.
Json entry_of(const BuiltFor& built_for, const std::string& pointer) {
  Json entry{{"file", built_for.file},
             {"torch_min", or_null(built_for.torch_min)},
             {"torch_max", or_null(built_for.torch_max)},
             {"between_known_releases", built_for.between_known_releases},
             {"string_abi", or_null(built_for.string_abi)},
             {"stable_abi", built_for.stable_abi},
             {"glibc_min", or_null(built_for.glibc_min)},
             {"cuda_major", or_null(built_for.cuda_major)},
             {"python_tag", or_null(built_for.python_tag)},
             {"why_not_narrower", or_null(english(built_for.why_not_narrower))},
             {"evidence", Json::array()}};
  for (std::size_t i = 0; i < built_for.evidence.size(); ++i)
    entry["evidence"].push_back(
        {{"fact", pointer + "/evidence/" + std::to_string(i)}, {"value", tr(built_for.evidence[i])}});
  for (const auto& [field, value] :
       {std::pair{"string_abi", built_for.string_abi}, std::pair{"glibc_min", built_for.glibc_min},
        std::pair{"cuda_major", built_for.cuda_major}, std::pair{"python_tag", built_for.python_tag}})
    if (!value.empty()) entry["evidence"].push_back({{"fact", pointer + "/" + field}, {"value", value}});
  return entry;
}

// The entry for a snapshot that an older scankit took: it has no range of torch releases, but it has what
// the file itself says.
Json entry_without_built_for(const Extension& file, const std::string& pointer) {
  BuiltFor built_for;
  built_for.file = file.path;
  built_for.string_abi = file.string_abi;
  built_for.glibc_min = file.glibc_min;
  built_for.cuda_major = file.cuda_major;
  built_for.why_not_narrower =
      file.uses_torch
          ? message(
                "the snapshot was taken by a scankit that did not record which torch a file was built for")
          : message("the file uses no torch symbol");
  Json entry = entry_of(built_for, pointer);
  entry["python_tag"] = or_null(file.tag);
  if (!file.tag.empty()) entry["evidence"].push_back({{"fact", pointer + "/tag"}, {"value", file.tag}});
  // Nobody has looked; false would be an answer.
  if (file.uses_torch) entry["stable_abi"] = nullptr;
  return entry;
}

// An audited file that is also a module under diagnosis has its entry already.
bool is_examined(const Snapshot& snapshot, const std::string& path) {
  const auto& examined = snapshot.extensions.value;
  return std::ranges::find(examined, path, &Extension::path) != examined.end();
}

}  // namespace

// In this order: the examined files, what several files say together, the files of a log, the
// audited files.
Json built_for_json(const Snapshot& snapshot) {
  Json list = Json::array();
  const auto& extensions = snapshot.extensions.value;
  for (std::size_t i = 0; snapshot.extensions.present() && i < extensions.size(); ++i) {
    if (extensions[i].file_state != "elf") continue;
    const std::string pointer = "/extensions/value/" + std::to_string(i);
    list.push_back(extensions[i].built_for.file.empty()
                       ? entry_without_built_for(extensions[i], pointer)
                       : entry_of(extensions[i].built_for, pointer + "/built_for"));
  }
  for (std::size_t i = 0; i < snapshot.built_for.size(); ++i)
    list.push_back(entry_of(snapshot.built_for[i], "/built_for/" + std::to_string(i)));
  const auto& in_log = snapshot.log.value.built_for;
  for (std::size_t i = 0; i < in_log.size(); ++i)
    list.push_back(entry_of(in_log[i], "/log/value/built_for/" + std::to_string(i)));
  for (std::size_t i = 0; i < snapshot.audit.value.files.size(); ++i) {
    const BuiltFor& built_for = snapshot.audit.value.files[i].built_for;
    if (!built_for.file.empty() && !is_examined(snapshot, built_for.file))
      list.push_back(entry_of(built_for, "/audit/value/files/" + std::to_string(i) + "/built_for"));
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> built_for_rows(const Snapshot& snapshot) {
  std::vector<std::pair<std::string, std::string>> rows;
  const std::string& installed = snapshot.torch.value.version;
  const auto add = [&](const BuiltFor& built_for, const std::string& name) {
    if (const std::string sentence = built_for_sentence(built_for, installed); !sentence.empty())
      rows.emplace_back(name, sentence);
  };
  for (const Extension& file : snapshot.extensions.value) add(file.built_for, file.path);
  for (const BuiltFor& more : snapshot.built_for)
    if (more.together > 1) add(more, say("{}, {} files together", more.file, more.together));
  for (const BuiltFor& named : snapshot.log.value.built_for) add(named, named.file);
  return rows;
}

std::string together_sentence(const BuiltFor& built_for, const std::string& installed) {
  return say("{}, {} files together: {}", built_for.file, built_for.together,
             built_for_sentence(built_for, installed));
}

namespace {

constexpr std::size_t kWordWidth = 14, kPackageWidth = 21;

// The path below the site-packages directory of its package, which is how tables name a file.
std::string short_path(const Snapshot& snapshot, const std::string& path) {
  for (const std::string& folder : snapshot.audit.value.folders)
    if (path.starts_with(folder + "/")) return path.substr(folder.size() + 1);
  return path;
}

std::string audit_name(AuditVerdict verdict) {
  if (verdict == AuditVerdict::Loads) return say("loads");
  if (verdict == AuditVerdict::Fails) return say("would fail");
  return verdict == AuditVerdict::Unknown ? say("unknown") : say("other Python");
}

// The order of the table: what fails first, then what nobody can tell.
int rank_of(const AuditLine& line) {
  if (line.verdict == AuditVerdict::Fails) return 0;
  if (line.verdict == AuditVerdict::Unknown) return 1;
  return line.verdict == AuditVerdict::Loads ? 2 : 3;
}

// The subject of the title: all extensions, or those of the packages that were named.
std::string whose(std::size_t all, const std::vector<std::string>& packages) {
  if (packages.empty())
    return say_n(all, "{} compiled extension of all packages", "{} compiled extensions of all packages", all);
  std::string names;
  for (const std::string& name : packages) names += (names.empty() ? "" : ", ") + name;
  return say_n(all, "{} compiled extension of {}", "{} compiled extensions of {}", all, names);
}

std::string title_of(const AuditTable& table, const std::vector<std::string>& packages) {
  const auto all = table.lines.size(), load = table.of(AuditVerdict::Loads);
  const auto fail = table.of(AuditVerdict::Fails), unknown = table.of(AuditVerdict::Unknown),
             other = table.of(AuditVerdict::NotForThisPython);
  if (all == 0) return whose(0, packages);
  return say("{}: {}, {}, {}, {}", whose(all, packages), say_n(load, "{} loads", "{} load", load),
             say_n(fail, "{} would fail", "{} would fail", fail),
             say_n(unknown, "{} unknown", "{} unknown", unknown),
             say_n(other, "{} for another Python", "{} for another Python", other));
}

// Unknown because its libraries and symbols could not be looked up, not because of something in the file.
bool unresolved(const AuditedFile& file, const AuditRow& row) {
  return row.verdict == AuditVerdict::Unknown && !file.resolved;
}

}  // namespace

// "" if the audit was made, and also if nobody asked for one.
std::string audit_note(const Snapshot& snapshot) {
  if (snapshot.audit.state == ProbeState::NotRun || snapshot.audit.present()) return "";
  return say("The compiled extensions could not be read: {}", snapshot.audit.note);
}

std::string loading_words(std::size_t n) { return n == 1 ? say("one extension") : say("{} extensions", n); }

std::optional<AuditTable> audit_table(const Snapshot& snapshot) {
  if (!snapshot.audit.present()) return std::nullopt;
  AuditTable table;
  std::map<std::string, std::size_t> loading;
  const std::string machine = interpreter_machine(snapshot);
  const std::optional<bool> stack_refused = refuses_executable_stacks(snapshot);
  const bool linked = audit_of_linked(snapshot);
  for (const AuditedFile& file : snapshot.audit.value.files) {
    const AuditRow row = judge(file, machine, stack_refused);
    AuditLine line{row.verdict,       audit_name(row.verdict),
                   file.distribution, short_path(snapshot, file.path),
                   file.path,         tr(row.why),
                   row.cause,         built_for_sentence(file.built_for, "")};
    table.any_built_for |= !line.built_for.empty();
    // The default audit lists only the files that would fail and those that could not be resolved.
    if (linked && rank_of(line) > 0 && !unresolved(file, row)) continue;
    // A file that belongs to no distribution goes by the name of its package or module.
    if (line.package.empty()) line.package = line.file.substr(0, line.file.find_first_of("/."));
    ++table.counts[static_cast<std::size_t>(row.verdict)];
    if (row.verdict == AuditVerdict::Loads) ++loading[line.package];
    table.lines.push_back(std::move(line));
  }
  std::ranges::stable_sort(table.lines, {}, rank_of);
  table.loading.assign(loading.begin(), loading.end());
  table.not_read = snapshot.audit.value.unreadable;
  // A default audit without a problem is not mentioned at all.
  if (linked && table.lines.empty()) return std::nullopt;
  table.title = linked ? say_n(table.lines.size(), "{} extension that links PyTorch or CUDA may not load",
                               "{} extensions that link PyTorch or CUDA may not load", table.lines.size())
                       : title_of(table, snapshot.audit.value.packages);
  return table;
}

std::vector<std::string> audit_lines(const Snapshot& snapshot, bool verbose) {
  if (const std::string note = audit_note(snapshot); !note.empty()) return {note};
  const auto table = audit_table(snapshot);
  if (!table) return {};
  std::vector<std::string> lines = {table->title};
  // Without --verbose a file that loads, or is for another Python, is only part of a count.
  for (const AuditLine& line : table->lines) {
    if (!verbose && rank_of(line) > 1) continue;
    std::string text =
        "  " + in_column(line.word, kWordWidth) + in_column(line.package, kPackageWidth) + line.file;
    if (!line.why.empty())
      text = say("{} ({})", text, line.cause.empty() ? line.why : say("{}: {}", line.cause, line.why));
    lines.push_back(std::move(text));
    if (!line.built_for.empty())
      lines.push_back("  " + in_column("", kWordWidth) + in_column("", kPackageWidth) + line.built_for);
  }
  if (!verbose)
    for (const auto& [package, n] : table->loading)
      lines.push_back("  " + in_column(audit_name(AuditVerdict::Loads), kWordWidth) +
                      in_column(package, kPackageWidth) + loading_words(n));
  for (const Message& part : table->not_read) lines.push_back("  " + say("not read: {}", part));
  return lines;
}

nlohmann::ordered_json audit_json(const Snapshot& snapshot) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json list = Json::array();
  const std::string machine = interpreter_machine(snapshot);
  const std::optional<bool> stack_refused = refuses_executable_stacks(snapshot);
  const auto& files = snapshot.audit.value.files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const AuditedFile& file = files[i];
    const AuditRow row = judge(file, machine, stack_refused);
    // The evidence points to the field of the snapshot that decided.
    const Json fact{{"fact", "/audit/value/files/" + std::to_string(i) + "/" + row.field},
                    {"value", row.value}};
    list.push_back({{"file", file.path},
                    {"distribution", or_null(file.distribution)},
                    {"verdict", audit_word(row.verdict)},
                    {"cause", or_null(row.cause)},
                    {"why", or_null(tr(row.why))},
                    {"after_torch", file.uses_torch},
                    {"evidence", Json::array({fact})}});
  }
  return list;
}

}  // namespace scankit::report
