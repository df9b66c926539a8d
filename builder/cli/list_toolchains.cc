// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "builder/cli/commands.h"
#include "builder/compile/cache.h"
#include "builder/toolchain/choose_toolchain.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

void print_below(const std::string& line) { print_line("    " + line); }

std::string names(const std::vector<unsigned>& archs) {
  std::string text;
  for (const unsigned sm : archs) text += (text.empty() ? "sm_" : " sm_") + std::to_string(sm);
  return text;
}

std::string host_compiler(const Host& host, const Candidate& candidate) {
  if (candidate.kind == Candidate::Kind::Nvrtc) return say("none needed");
  if (candidate.kind == Candidate::Kind::Wheel && !candidate.wheel->nvcc) return say("none needed");
  if (candidate.kind == Candidate::Kind::Wheel)
    return shown(host_compiler_range(host, {}, candidate.wheel->version));
  if (candidate.nvcc.host.path.empty()) return shown(candidate.nvcc.takes);
  return say("{}; takes {} {} ({})", shown(candidate.nvcc.takes), candidate.nvcc.host.kind,
             candidate.nvcc.host.version, candidate.nvcc.host.path);
}

bool same(const Candidate& a, const Candidate& b) {
  return a.kind == b.kind && a.nvrtc.path == b.nvrtc.path && a.nvcc.path == b.nvcc.path && a.wheel == b.wheel;
}

// What a build makes with it, "" where it is not taken.
std::string taken_for(const Toolchain& toolchain, const Candidate& candidate) {
  std::vector<Target> targets;
  for (std::size_t i = 0; i < toolchain.made_by.size(); ++i)
    if (same(toolchain.compilers[toolchain.made_by[i]], candidate))
      targets.push_back(toolchain.choice.targets[i]);
  return names_of(targets, " ");
}

std::string verdict(const Candidate& candidate, const Result<TargetChoice>& choice,
                    const std::string& makes) {
  if (!makes.empty()) return say("chosen: makes {}", makes);
  if (!choice) return say("not chosen: {}", retold(choice.error().message));
  if (candidate.kind == Candidate::Kind::Wheel)
    return say("not chosen: it is not here; --allow-download fetches it ({} MB) where nothing else will do",
               candidate.wheel->download() / 1000000);
  if (choice->too_old) return say("not chosen: {}", retold(choice->notes.front()));
  if (candidate.kind == Candidate::Kind::Nvcc)
    return say("not chosen: NVRTC makes the same device code without a host compiler");
  return say("not chosen: one above it is taken, and this one would do as well");
}

void print_candidate(const Host& host, const Candidate& candidate, const Result<TargetChoice>& choice,
                     const std::string& makes) {
  print_line(candidate.title());
  if (candidate.kind == Candidate::Kind::Nvrtc) print_below(say("from: {}", candidate.nvrtc.origin));
  if (candidate.kind == Candidate::Kind::Nvcc) print_below(say("from: {}", candidate.nvcc.origin));
  if (!candidate.archs().empty()) print_below(say("makes: {}", names(candidate.archs())));
  print_below(say("host compiler: {}", host_compiler(host, candidate)));
  print_below(verdict(candidate, choice, makes));
  if (!choice && makes.empty() && !choice.error().hint.empty())
    print_below(say("to use it: {}", retold(choice.error().hint)));
}

}  // namespace

int list_toolchains(const Host& host, const Snapshot& snapshot, const BuildRequest& request) {
  const Cache cache(request.cache_folder);
  auto found = find_candidates(host, snapshot, request.toolchain, cache);
  if (!found) return complain("build", found.error(), kExitBuildFailed);
  const auto chosen = choose_toolchain(host, snapshot, request.targets, cache, request.toolchain);
  for (Candidate& candidate : *found) {
    const auto choice = judge(host, snapshot, request.targets, cache, candidate);
    print_candidate(host, candidate, choice, chosen ? taken_for(*chosen, candidate) : "");
  }
  return chosen ? kExitClean : complain("build", chosen.error(), kExitBuildFailed);
}

}  // namespace scankit
