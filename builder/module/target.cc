// SPDX-License-Identifier: Apache-2.0
#include "builder/module/target.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "doctor/base/say.h"

namespace scankit::module {
namespace {

Error bad_target(const std::string& word) {
  return {Errc::InvalidArgument, message("--arch: \"{}\" is not an architecture", word),
          message("use native, all, none, or a list such as sm_90,sm_80,compute_75")};
}

// Accepts sm_90, compute_90, 90, 9.0, and 90a or 90f; without a prefix it is a cubin.
Result<Target> parse_target(const std::string& word) {
  Target target;
  std::string digits = word;
  for (const auto& [prefix, ptx] : {std::pair<std::string, bool>{"sm_", false}, {"compute_", true}})
    if (digits.starts_with(prefix)) {
      digits.erase(0, prefix.size());
      target.ptx = ptx;
      break;
    }
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
    target.specific = digits.substr(digits.size() - 1);
    digits.pop_back();
  }
  std::erase(digits, '.');
  if (digits.size() < 2 || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos)
    return bad_target(word);
  target.sm = static_cast<unsigned>(std::stoul(digits));
  return target;
}

std::string sm_list(const std::vector<unsigned>& numbers) {
  std::string text;
  for (unsigned n : numbers) text += (text.empty() ? "sm_" : ", sm_") + std::to_string(n);
  return text;
}

Error cannot_target(const std::string& what, const std::vector<unsigned>& supported) {
  return {Errc::Unsupported,
          message("the selected compiler cannot build code for {}; it targets {}", what, sm_list(supported)),
          ""};
}

// The oldest PTX is what most GPUs can translate. From CUDA 13 on drivers translate nothing below 75 (its
// release notes), so the choice starts there if the compiler allows it.
Target fallback_ptx(const std::vector<unsigned>& supported) {
  const auto from75 = std::find_if(supported.begin(), supported.end(), [](unsigned sm) { return sm >= 75; });
  return {true, from75 != supported.end() ? *from75 : supported.back(), ""};
}

// A cubin runs on GPUs of its own major version from its own minor version on (CUDA C++ Programming Guide,
// Binary Compatibility). Tegra chips are exceptions: their cubins run on that chip alone, and no other cubin
// runs on them.
bool is_tegra_chip(unsigned sm) {
  return sm == 53 || sm == 62 || sm == 72 || sm == 87 || sm == 88 || sm == 101 || sm == 110;
}

std::optional<unsigned> cubin_for(unsigned gpu, const std::vector<unsigned>& supported) {
  std::optional<unsigned> best;
  for (unsigned sm : supported) {
    const bool tegra = is_tegra_chip(sm) || is_tegra_chip(gpu);
    if (sm == gpu || (!tegra && sm / 10 == gpu / 10 && sm < gpu)) best = sm;
  }
  return best;
}

// One target for each GPU: the best cubin, or PTX if the compiler is older than the GPU or if the GPU's
// architecture is unknown. A GPU that the compiler no longer supports is an Error: PTX of a newer
// architecture does not run on it.
Result<void> add_native(const std::vector<Gpu>& gpus, const std::vector<unsigned>& supported,
                        TargetChoice& choice) {
  for (const Gpu& gpu : gpus) {
    if (gpu.sm.empty()) {
      choice.targets.push_back(fallback_ptx(supported));
      choice.notes.push_back(say("the architecture of {} is unknown: PTX for it", gpu.name));
      continue;
    }
    if (gpu.sm.size() > 3 || gpu.sm.find_first_not_of("0123456789") != std::string::npos)
      return Error{Errc::Malformed,
                   message("the architecture of GPU {} is \"{}\", not a number", gpu.name, gpu.sm), ""};
    const auto sm = static_cast<unsigned>(std::stoul(gpu.sm));
    if (const auto cubin = cubin_for(sm, supported)) {
      choice.targets.push_back({false, *cubin, ""});
    } else if (is_tegra_chip(sm) && fallback_ptx(supported).sm <= sm) {
      choice.targets.push_back(fallback_ptx(supported));
      choice.notes.push_back(
          say("the compiler makes no cubin for the Tegra chip sm_{} ({}): PTX for it", gpu.sm, gpu.name));
    } else if (sm > supported.back()) {
      choice.too_old = true;
      choice.targets.push_back(fallback_ptx(supported));
      choice.notes.push_back(say("sm_{} ({}) is newer than the compiler: PTX for it", gpu.sm, gpu.name));
    } else {
      return cannot_target("sm_" + gpu.sm + " (" + gpu.name + ")", supported);
    }
  }
  return {};
}

// Cubins by number, then PTX, each once: the order of the images in a module.
void sort_targets(std::vector<Target>& targets) {
  const auto key = [](const Target& t) { return std::tuple(t.ptx, t.sm, t.specific); };
  std::sort(targets.begin(), targets.end(),
            [&](const Target& a, const Target& b) { return key(a) < key(b); });
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
}

// Without a GPU the module gets PTX alone, and a note that says so: a build host is often not the machine
// that runs the module.
Result<void> add_default(const Probed<std::vector<Gpu>>& gpus, const std::vector<unsigned>& supported,
                         TargetChoice& choice) {
  if (gpus.present() && !gpus.value.empty()) return add_native(gpus.value, supported, choice);
  choice.targets.push_back(fallback_ptx(supported));
  const bool unread = gpus.state == ProbeState::Failed || gpus.state == ProbeState::NotRun;
  const std::string why =
      unread ? say("the GPUs of this machine could not be read ({})", tr(gpus.note)) : say("no GPU found");
  choice.notes.push_back(
      say("{}: PTX only ({}), which the driver compiles at first use; use --arch sm_XX to avoid that", why,
          choice.targets.back().name()));
  return {};
}

}  // namespace

std::string names_of(const std::vector<Target>& targets, const std::string& separator) {
  std::string text;
  for (const Target& target : targets) text += (text.empty() ? "" : separator) + target.name();
  return text;
}

Result<TargetRequest> parse_targets(const std::string& text) {
  TargetRequest request;
  if (text == "native") return TargetRequest{TargetRequest::Kind::Native, {}};
  if (text == "all") return TargetRequest{TargetRequest::Kind::All, {}};
  if (text == "none") return TargetRequest{TargetRequest::Kind::None, {}};
  request.kind = TargetRequest::Kind::List;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    SCANKIT_TRY(auto target, parse_target(text.substr(at, comma - at)));
    request.list.push_back(std::move(target));
    at = comma + 1;
  }
  return request;
}

Result<TargetChoice> choose_targets(const TargetRequest& request, const Probed<std::vector<Gpu>>& gpus,
                                    const std::vector<unsigned>& supported) {
  TargetChoice choice;
  if (request.kind == TargetRequest::Kind::None) {
    if (!request.none_since.empty()) choice.notes.push_back(request.none_since);
    return choice;
  }
  if (supported.empty())
    return Error{Errc::ToolFailed, message("the compiler lists no target architectures"), ""};
  switch (request.kind) {
    case TargetRequest::Kind::Default:
      SCANKIT_CHECK(add_default(gpus, supported, choice));
      break;
    case TargetRequest::Kind::Native:
      if (!gpus.present() || gpus.value.empty())
        return Error{
            Errc::NotFound,
            message("--arch native: {}", gpus.note.empty() ? message("no GPU found") : tr(gpus.note)),
            message("choose the GPU that the module is for: --arch sm_90")};
      SCANKIT_CHECK(add_native(gpus.value, supported, choice));
      break;
    case TargetRequest::Kind::All:
      for (unsigned sm : supported) choice.targets.push_back({false, sm, ""});
      choice.targets.push_back(fallback_ptx(supported));
      break;
    case TargetRequest::Kind::List:
      for (const Target& target : request.list) {
        if (std::find(supported.begin(), supported.end(), target.sm) == supported.end())
          return cannot_target(target.name(), supported);
        choice.targets.push_back(target);
      }
      break;
    case TargetRequest::Kind::None:
      break;
  }
  sort_targets(choice.targets);
  return choice;
}

}  // namespace scankit::module
