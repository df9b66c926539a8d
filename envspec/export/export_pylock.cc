// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "envspec/export/export.h"

namespace scankit {
namespace {

// A TOML basic string. The values hold no quotation mark and no control byte; a backslash may come in a path.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

bool is_wheel(const LockedDistribution& one) { return one.artifact->file.ends_with(".whl"); }

// 3.11.7 of the lock: any 3.11 runs the same wheels.
std::string minor_of(const std::string& version) {
  const auto first = version.find('.');
  return version.substr(0, first == std::string::npos ? first : version.find('.', first + 1));
}

std::string file_of(const LockedDistribution& one) {
  const LockedArtifact& artifact = *one.artifact;
  std::string table = "{name = " + quoted(artifact.file);
  if (one.source == "here")
    table += ", path = " + quoted(std::string(kWheelFolder) + "/" + artifact.file);
  else
    table += ", url = " + quoted(artifact.url);
  if (artifact.size > 0) table += ", size = " + std::to_string(artifact.size);
  return table + ", hashes = {sha256 = " + quoted(artifact.sha256) + "}}";
}

}  // namespace

// PEP 751, lock-version 1.0.
Exported export_pylock(const EnvironmentLock& lock) {
  Installable all = installable(lock);
  // The standard wants a place for each wheel, and a lock may know the hash alone.
  std::erase_if(all.with_hash, [&](const LockedDistribution* one) {
    const bool nowhere = one->source != "here" && one->artifact->url.empty();
    if (nowhere)
      all.left_out.push_back(one->name + "==" + one->version + ": " + say("no URL of its file is known"));
    return nowhere;
  });
  Exported exported{"pylock.toml", "", all.left_out};
  for (const std::string& line : header_lines(lock)) exported.text += "# " + line + "\n";
  for (const std::string& line : all.left_out) exported.text += "# LEFT OUT " + line + "\n";
  const std::string minor = minor_of(lock.python.version);
  exported.text +=
      "lock-version = \"1.0\"\ncreated-by = \"scankit\"\nrequires-python = " + quoted("==" + minor + ".*") +
      "\n";
  for (const LockedDistribution* one : all.with_hash)
    exported.text +=
        "\n[[packages]]\nname = " + quoted(one->name) + "\nversion = " + quoted(one->version) +
        (is_wheel(*one) ? "\nwheels = [" + file_of(*one) + "]\n" : "\nsdist = " + file_of(*one) + "\n");
  return exported;
}

}  // namespace scankit
