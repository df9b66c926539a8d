// SPDX-License-Identifier: Apache-2.0
// "Requires-Dist: nvidia-nccl-cu13==2.28.9; platform_system == 'Linux'" of torch's METADATA, and since
// torch 2.12 "Requires-Dist: cuda-toolkit[cublas,nvjitlink]==13.2.1", whose own METADATA holds the wheels, an
// extra each.
#include <algorithm>
#include <optional>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/packages/requirements.h"

namespace scankit::probes {
namespace {

constexpr std::size_t kMetadataLimit = 1u << 20;

struct PinRequirement {
  std::string name, extras, specifier, marker;  // "nvidia-nvjitlink", "", "<14,>=13.2.86"
};

// Nothing for a requirement without a version: it pins nothing.
std::optional<PinRequirement> parse(const std::string& text) {
  PinRequirement parsed;
  const auto semicolon = std::min(text.find(';'), text.size());
  std::string head = text.substr(0, semicolon);
  if (semicolon < text.size()) parsed.marker = text.substr(semicolon + 1);
  std::erase_if(head, [](char c) { return c == ' ' || c == '(' || c == ')' || c == '\r'; });
  const auto operation = head.find_first_of("=<>!~");
  if (operation == std::string::npos) return std::nullopt;
  parsed.specifier = head.substr(operation);
  parsed.name = head.substr(0, operation);
  if (const auto bracket = parsed.name.find('['); bracket != std::string::npos) {
    parsed.extras = parsed.name.substr(bracket + 1, parsed.name.find(']') - bracket - 1);
    parsed.name.resize(bracket);
  }
  parsed.name = normalized_name(parsed.name);
  return parsed;
}

// The headers end at the first blank line; the description behind it may quote such a field.
std::vector<PinRequirement> requirements_of(const Host& host, const Distribution& distribution) {
  std::vector<PinRequirement> all;
  const auto metadata = host.read_file(path_join(distribution.path, "METADATA"), kMetadataLimit);
  if (!metadata) return all;
  std::istringstream lines(*metadata);
  const std::string field = "Requires-Dist:";
  for (std::string line; std::getline(lines, line) && !trimmed(line).empty();)
    if (line.starts_with(field))
      if (auto parsed = parse(std::string(trimmed(line.substr(field.size())))))
        all.push_back(*std::move(parsed));
  return all;
}

const Distribution* find(const Snapshot& so_far, const std::string& name) {
  const auto& all = so_far.distributions.value;
  const auto found =
      std::ranges::find_if(all, [&](const Distribution& d) { return normalized_name(d.name) == name; });
  return found == all.end() ? nullptr : &*found;
}

// Whether the marker of a requirement mentions one of these extras in quotes: `extra == 'cublas'`. The rest
// of the marker speaks of the platform, which is Linux on both sides.
bool names_extra(const std::string& extras, const std::string& marker) {
  std::istringstream words(extras);
  for (std::string extra; std::getline(words, extra, ',');)
    for (const char* quote : {"'", "\""})
      if (marker.find(quote + extra + quote) != std::string::npos) return true;
  return false;
}

void add_pin(const Snapshot& so_far, const PinRequirement& requirement, std::vector<CudaPin>& pins) {
  if (!requirement.name.starts_with("nvidia-")) return;
  if (std::ranges::find(pins, requirement.name, &CudaPin::name) != pins.end()) return;
  const Distribution* installed = find(so_far, requirement.name);
  CudaPin pin{
      .requirement = requirement.name + requirement.specifier, .name = requirement.name, .installed = {}};
  if (installed != nullptr) {
    pin.installed = installed->version;
    pin.met = meets(installed->version, requirement.specifier);
  }
  pins.push_back(std::move(pin));
}

}  // namespace

std::vector<CudaPin> cuda_pins(const Host& host, const Snapshot& so_far) {
  std::vector<CudaPin> pins;
  const Distribution* torch = find(so_far, "torch");
  if (torch == nullptr) return pins;
  for (const PinRequirement& requirement : requirements_of(host, *torch)) {
    add_pin(so_far, requirement, pins);
    if (requirement.name != "cuda-toolkit") continue;
    if (const Distribution* toolkit = find(so_far, "cuda-toolkit"))
      for (const PinRequirement& part : requirements_of(host, *toolkit))
        if (names_extra(requirement.extras, part.marker)) add_pin(so_far, part, pins);
  }
  return pins;
}

}  // namespace scankit::probes
