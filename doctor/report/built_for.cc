// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/built_for.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/report/json.h"

namespace scankit {
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

}  // namespace scankit
