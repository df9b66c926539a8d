// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/dating.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/report/json.h"

namespace scankit {
namespace {
using Json = nlohmann::ordered_json;

// `pointer`: where the snapshot holds it.
Json entry_of(const Dating& dating, const std::string& pointer) {
  Json entry{{"file", dating.file},
             {"torch_min", or_null(dating.torch_min)},
             {"torch_max", or_null(dating.torch_max)},
             {"between_known_releases", dating.between_known_releases},
             {"string_abi", or_null(dating.string_abi)},
             {"stable_abi", dating.stable_abi},
             {"glibc_min", or_null(dating.glibc_min)},
             {"cuda_major", or_null(dating.cuda_major)},
             {"python_tag", or_null(dating.python_tag)},
             {"why_not_narrower", or_null(dating.why_not_narrower)},
             {"evidence", Json::array()}};
  for (std::size_t i = 0; i < dating.evidence.size(); ++i)
    entry["evidence"].push_back(
        {{"fact", pointer + "/evidence/" + std::to_string(i)}, {"value", dating.evidence[i]}});
  for (const auto& [field, value] :
       {std::pair{"string_abi", dating.string_abi}, std::pair{"glibc_min", dating.glibc_min},
        std::pair{"cuda_major", dating.cuda_major}, std::pair{"python_tag", dating.python_tag}})
    if (!value.empty()) entry["evidence"].push_back({{"fact", pointer + "/" + field}, {"value", value}});
  return entry;
}

// A snapshot of an older scankit has no dating; what the file says itself is in it all the same.
Json entry_without_dating(const Extension& file, const std::string& pointer) {
  Dating dating;
  dating.file = file.path;
  dating.string_abi = file.string_abi;
  dating.glibc_min = file.glibc_min;
  dating.cuda_major = file.cuda_major;
  dating.why_not_narrower =
      file.uses_torch
          ? say("the snapshot was taken by a scankit that did not look which torch a file was built for")
          : say("the file uses no torch symbol");
  Json entry = entry_of(dating, pointer);
  entry["python_tag"] = or_null(file.tag);
  if (!file.tag.empty()) entry["evidence"].push_back({{"fact", pointer + "/tag"}, {"value", file.tag}});
  if (file.uses_torch) entry["stable_abi"] = nullptr;
  return entry;
}

bool is_examined(const Snapshot& snapshot, const std::string& path) {
  const auto& examined = snapshot.extensions.value;
  return std::ranges::find(examined, path, &Extension::path) != examined.end();
}

}  // namespace

Json dating_json(const Snapshot& snapshot) {
  Json list = Json::array();
  const auto& extensions = snapshot.extensions.value;
  for (std::size_t i = 0; snapshot.extensions.present() && i < extensions.size(); ++i) {
    if (extensions[i].file_state != "elf") continue;
    const std::string pointer = "/extensions/value/" + std::to_string(i);
    list.push_back(extensions[i].dating.file.empty() ? entry_without_dating(extensions[i], pointer)
                                                     : entry_of(extensions[i].dating, pointer + "/dating"));
  }
  for (std::size_t i = 0; i < snapshot.datings.size(); ++i)
    list.push_back(entry_of(snapshot.datings[i], "/datings/" + std::to_string(i)));
  const auto& in_log = snapshot.log.value.datings;
  for (std::size_t i = 0; i < in_log.size(); ++i)
    list.push_back(entry_of(in_log[i], "/log/value/datings/" + std::to_string(i)));
  for (std::size_t i = 0; i < snapshot.audit.value.files.size(); ++i) {
    const Dating& dating = snapshot.audit.value.files[i].dating;
    if (!dating.file.empty() && !is_examined(snapshot, dating.file))
      list.push_back(entry_of(dating, "/audit/value/files/" + std::to_string(i) + "/dating"));
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> dating_rows(const Snapshot& snapshot) {
  std::vector<std::pair<std::string, std::string>> rows;
  const std::string& installed = snapshot.torch.value.version;
  const auto add = [&](const Dating& dating, const std::string& name) {
    if (const std::string sentence = dating_sentence(dating, installed); !sentence.empty())
      rows.emplace_back(name, sentence);
  };
  for (const Extension& file : snapshot.extensions.value) add(file.dating, file.path);
  for (const Dating& more : snapshot.datings)
    if (more.together > 1) add(more, say("{}, {} files together", more.file, more.together));
  for (const Dating& named : snapshot.log.value.datings) add(named, named.file);
  return rows;
}

std::string together_sentence(const Dating& dating, const std::string& installed) {
  return say("{}, {} files together: {}", dating.file, dating.together, dating_sentence(dating, installed));
}

}  // namespace scankit
