// SPDX-License-Identifier: Apache-2.0
#include "envspec/suggest/solve.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "builder/installer/installer.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/matrix/places.h"
#include "envspec/suggest/candidate.h"

namespace scankit::envspec {
namespace {

constexpr std::size_t kSets = 6;  // in JSON; people see the first three

using Order = std::array<long, 6>;  // smaller is better

long place_of(const TorchRelease& torch) { return &torch - torch_releases().data(); }

// The newest torch that the projects build wheels of all packages for themselves, which is what they test with: of the
// releases that the wishes leave.
long tested_place(const SuggestRequest& request, const SuggestedSet& set) {
  long oldest = 0;
  for (const PackagePlan& plan : set.packages) {
    const auto wish = std::ranges::find(request.packages, plan.name, &PackageWish::name);
    if (plan.row == nullptr || wish == request.packages.end()) continue;
    const auto is_tested = [&](const TorchRelease& torch) {
      return std::ranges::any_of(plan.row->releases, [&](const PackageRelease& release) {
        return has_wheel_for(release, torch.minor) && is_wished(*plan.row, release, *wish);
      });
    };
    const auto newest = std::ranges::find_if(torch_releases(), is_tested);
    if (newest != torch_releases().end()) oldest = std::max(oldest, place_of(*newest));
  }
  return oldest;
}

// Code for the GPU before PTX, and a build that every installer gets before one of PyTorch's archive. Then the
// distance from the newest torch that the projects test with, in releases, where a module that has no wheel counts as
// two: nobody should fall back by years to save a build of seconds. Then newer torch and newer CUDA.
Order order_of(const SuggestRequest& request, const SuggestedSet& set) {
  long made_here = 0, nvcc = 0;
  for (const PackagePlan& plan : set.packages) {
    made_here += plan.how == PackagePlan::How::Own || plan.how == PackagePlan::How::Build ? 1 : 0;
    nvcc += plan.how == PackagePlan::How::Build ? 1 : 0;
  }
  constexpr long kModule = 2;
  const long distance = std::abs(place_of(*set.torch) - tested_place(request, set)) + kModule * made_here;
  return {set.by_ptx ? 1 : 0,   set.build->on_index ? 0 : 1,         distance, nvcc,
          place_of(*set.torch), set.build - set.torch->builds.data()};
}

// Where the wishes leave the Python open: the one in the middle of those that the projects build wheels for.
// Newer ones lack wheels of other packages for months, older ones lose them.
long distance_of_python(const std::string& python) {
  constexpr long kUsual = 12;
  const auto parsed = Version::parse(python);
  const long minor = parsed ? static_cast<long>(parsed->part(1)) : 0;
  return minor > kUsual ? 2 * (minor - kUsual) : kUsual - minor;
}

bool better(const SuggestRequest& request, const SuggestedSet& a, const SuggestedSet& b) {
  const Order left = order_of(request, a), right = order_of(request, b);
  if (left != right) return left < right;
  return distance_of_python(a.python) < distance_of_python(b.python);
}

// One set for each release of torch. The second is the newest torch, where the best is another: whoever needs it
// sees at once what it takes.
std::vector<SuggestedSet> chosen(const SuggestRequest& request, std::vector<SuggestedSet> all) {
  std::ranges::stable_sort(
      all, [&](const SuggestedSet& a, const SuggestedSet& b) { return better(request, a, b); });
  std::vector<SuggestedSet> sets;
  std::set<const TorchRelease*> releases;
  for (SuggestedSet& set : all)
    if (releases.insert(set.torch).second) sets.push_back(std::move(set));
  if (sets.size() > 2) {
    const auto newest = std::ranges::min_element(sets, {}, &SuggestedSet::torch);
    if (newest != sets.begin()) std::rotate(sets.begin() + 1, newest, newest + 1);
  }
  if (sets.size() > kSets) sets.resize(kSets);
  return sets;
}

std::vector<SuggestedSet> fitting(const std::vector<TorchCandidate>& candidates) {
  std::vector<SuggestedSet> sets;
  for (const TorchCandidate& candidate : candidates)
    if (candidate.violations.empty()) sets.push_back(candidate.set);
  return sets;
}

// "2.4", "2.11 to 2.15" or "2.4, 2.7", oldest first, of releases as the table has them (newest first).
std::string releases_text(const std::set<std::size_t>& places) {
  std::string text;
  const auto& table = torch_releases();
  for (auto last = places.rbegin(); last != places.rend();) {
    auto first = last;
    while (std::next(last) != places.rend() && *std::next(last) + 1 == *last) ++last;
    if (!text.empty()) text += ", ";
    text += table[*first].minor;
    if (first != last) text += " " + say("to") + " " + table[*last].minor;
    ++last;
  }
  return text;
}

// Builds that were ruled out for one reason: which releases, by CUDA.
struct Group {
  std::map<std::string, std::set<std::size_t>> places;
  std::vector<Message> chain;
};

// "torch 2.10 to 2.14 with CUDA 13.0, torch 2.12 to 2.15 with CUDA 13.2": builds that exist, no others.
std::string builds_text(const Group& group) {
  std::map<std::set<std::size_t>, std::vector<std::string>> cudas;
  std::vector<std::set<std::size_t>> order;
  for (const auto& [cuda, places] : group.places) {
    if (!cudas.contains(places)) order.push_back(places);
    cudas[places].push_back(cuda);
  }
  std::vector<std::string> parts;
  for (const auto& places : order)
    parts.push_back(say("torch {} with CUDA {}", releases_text(places), join(cudas[places])));
  return join(parts);
}

// The reason of each build that no candidate has: the first thing that is wrong with its best one. A Python that the
// wishes exclude is a reason only where the build has no other one.
std::map<const TorchBuild*, const Violation*> reasons_of(const std::vector<TorchCandidate>& candidates,
                                                         const std::vector<Wish>& wishes) {
  const auto wrong = [&](const TorchCandidate& candidate) {
    const bool python = std::ranges::any_of(candidate.violations, [&](const Violation& one) {
      return one.wish < wishes.size() && wishes[one.wish].kind == Wish::Kind::Python;
    });
    return std::pair(python, candidate.violations.size());
  };
  std::map<const TorchBuild*, const TorchCandidate*> best;
  for (const TorchCandidate& candidate : candidates) {
    const TorchCandidate*& known = best[candidate.set.build];
    if (known == nullptr || candidate.violations.empty() ||
        (!known->violations.empty() && wrong(candidate) < wrong(*known)))
      known = &candidate;
  }
  std::map<const TorchBuild*, const Violation*> reasons;
  for (const auto& [build, candidate] : best)
    if (!candidate->violations.empty()) reasons[build] = &candidate->violations.front();
  return reasons;
}

// Builds that fail for one reason are one entry: the first chain speaks for all of them.
std::vector<RuledOut> ruled_out(const std::vector<TorchCandidate>& candidates,
                                const std::vector<Wish>& wishes, const SuggestedSet* best) {
  const auto reasons = reasons_of(candidates, wishes);
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (std::size_t place = 0; place < torch_releases().size(); ++place)
    for (const TorchBuild& build : torch_releases()[place].builds) {
      const auto reason = reasons.find(&build);
      // What is older than the best set is of no interest, unless nothing fits at all.
      const bool older = best != nullptr && &torch_releases()[place] > best->torch;
      if (reason == reasons.end() || older) continue;
      const std::string& key = reason->second->group;
      if (!groups.contains(key)) order.push_back(key);
      Group& group = groups[key];
      group.places[build.cuda_text].insert(place);
      if (group.chain.empty()) group.chain = reason->second->chain;
    }
  std::vector<RuledOut> entries;
  for (const std::string& key : order) entries.push_back({builds_text(groups[key]), groups[key].chain});
  return entries;
}

bool satisfiable(const std::vector<TorchCandidate>& candidates, const std::set<std::size_t>& wishes) {
  return std::ranges::any_of(candidates, [&](const TorchCandidate& candidate) {
    return std::ranges::none_of(candidate.violations, [&](const Violation& violation) {
      return wishes.contains(violation.wish) && (!violation.also || wishes.contains(*violation.also));
    });
  });
}

// Drops one wish after the other as long as the rest still conflicts: what remains is minimal. The last first: of two
// conflicts the one is told that no other version ends, as that of a GPU.
std::vector<Wish> conflict_of(const std::vector<TorchCandidate>& candidates,
                              const std::vector<Wish>& wishes) {
  std::set<std::size_t> left;
  for (std::size_t i = 0; i < wishes.size(); ++i) left.insert(i);
  for (std::size_t i = wishes.size(); i-- > 0;) {
    left.erase(i);
    if (satisfiable(candidates, left)) left.insert(i);
  }
  std::vector<Wish> conflict;
  for (const std::size_t i : left) conflict.push_back(wishes[i]);
  return conflict;
}

Message change_text(const SuggestRequest& request, const Wish& wish, const TorchCandidate& candidate) {
  switch (wish.kind) {
    case Wish::Kind::Driver:
      return is_for_jetson(request)
                 ? message("a JetPack with a driver of branch {} or newer", candidate.set.needs_driver)
                 : message("a driver of {} or newer", candidate.set.needs_driver);
    case Wish::Kind::Glibc:
      return message("glibc {} or newer", candidate.set.needs_glibc);
    case Wish::Kind::Python:
      return message("Python {}", candidate.set.python);
    case Wish::Kind::Gpu:
      return message("another GPU than {}", wish.text);
    case Wish::Kind::Package:
      break;
  }
  return message("without \"{}\"", wish.text);
}

// How far a candidate is from what is wished: the least driver and glibc, the nearest Python.
long size_of_change(const Wish& wish, const TorchCandidate& candidate, const SuggestRequest& request) {
  const auto number = [](const std::string& version) {
    const auto parsed = Version::parse(version);
    return parsed ? static_cast<long>(parsed->part(0) * 1000 + parsed->part(1)) : 0L;
  };
  if (wish.kind == Wish::Kind::Driver) return number(candidate.set.needs_driver);
  if (wish.kind == Wish::Kind::Glibc) return number(candidate.set.needs_glibc);
  if (wish.kind == Wish::Kind::Python)
    return std::abs(number(candidate.set.python) - number(request.python ? request.python->least() : ""));
  return 0;
}

// For each single wish without which a set exists, the candidate that needs the smallest change of it.
std::vector<SmallestChange> changes_of(const std::vector<TorchCandidate>& candidates,
                                       const std::vector<Wish>& wishes, const SuggestRequest& request) {
  std::vector<SmallestChange> changes;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const TorchCandidate* best = nullptr;
    for (const TorchCandidate& candidate : candidates) {
      if (std::ranges::any_of(candidate.violations,
                              [&](const Violation& one) { return one.wish != i && one.also != i; }))
        continue;
      if (best == nullptr) {
        best = &candidate;
        continue;
      }
      const long here = size_of_change(wishes[i], candidate, request),
                 there = size_of_change(wishes[i], *best, request);
      if (here < there || (here == there && better(request, candidate.set, best->set))) best = &candidate;
    }
    if (best != nullptr)
      changes.push_back({wishes[i].kind, change_text(request, wishes[i], *best), best->set});
  }
  // Software before a driver, a driver before a system, a system before a GPU.
  const auto effort = [](Wish::Kind kind) {
    constexpr std::array<int, 5> kEffort = {5, 3, 4, 2, 1};  // in the order of Wish::Kind
    return kEffort[static_cast<std::size_t>(kind)];
  };
  std::ranges::stable_sort(changes, {}, [&](const SmallestChange& one) { return effort(one.kind); });
  return changes;
}

// The request with what the newest wished release of each package requires: an installer would bring its newest one.
SuggestRequest with_required(SuggestRequest request) {
  const std::vector<PackageWish> wishes = request.packages;
  for (const PackageWish& wish : wishes) {
    const PackageRow* row = package_row(wish.name);
    if (row == nullptr) continue;
    const auto newest = std::ranges::find_if(
        row->releases, [&](const PackageRelease& release) { return is_wished(*row, release, wish); });
    if (newest == row->releases.end()) continue;
    for (const std::string& name : newest->required)
      if (std::ranges::find(request.packages, name, &PackageWish::name) == request.packages.end())
        request.packages.push_back({name, {}, name});
  }
  return request;
}

}  // namespace

Result<PackageWish> parse_package_wish(const std::string& text) {
  const std::string name = installer::required_name(text);
  const auto begin = text.find_first_of("=<>!~");
  const std::string rest = begin == std::string::npos ? "" : text.substr(begin);
  const std::string written(trimmed(text.substr(0, begin)));
  const bool named = !name.empty() && normalized_name(written) == name && written.front() != '-';
  if (!named)
    return Error{Errc::InvalidArgument, message("\"{}\" is not a package with versions", printable(text)),
                 message("write a name and a range, such as mamba-ssm or \"mamba-ssm>=2.3,<3\"")};
  PackageWish wish{name, {}, text};
  if (!rest.empty()) {
    auto range = VersionRange::parse(rest);
    if (!range)
      return Error{Errc::InvalidArgument, message("\"{}\": {}", printable(text), range.error().message),
                   range.error().hint};
    wish.range = *std::move(range);
  }
  return wish;
}

std::string_view how_word(PackagePlan::How how) {
  constexpr std::array<std::string_view, 4> kWords = {"wheel", "fix", "build", "index"};
  return kWords[static_cast<std::size_t>(how)];
}

Suggestion suggest(const SuggestRequest& asked) {
  const SuggestRequest request = with_required(asked);
  Suggestion suggestion;
  for (const unsigned gpu : request.gpus)
    if (!is_known_gpu(gpu)) suggestion.unknown_gpus.push_back(sm(gpu));
  if (!suggestion.unknown_gpus.empty()) return suggestion;
  const std::vector<Wish> wishes = wishes_of(request);
  const std::vector<TorchCandidate> candidates = candidates_of(request, wishes);
  suggestion.sets = chosen(request, fitting(candidates));
  const SuggestedSet* best = suggestion.sets.empty() ? nullptr : &suggestion.sets.front();
  suggestion.ruled_out = ruled_out(candidates, wishes, best);
  if (best == nullptr) {
    suggestion.conflict = conflict_of(candidates, wishes);
    suggestion.changes = changes_of(candidates, wishes, request);
  }
  return suggestion;
}

}  // namespace scankit::envspec
