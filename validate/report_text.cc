// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "validate/judge.h"
#include "validate/report.h"

namespace scankit::validate {
namespace {

constexpr std::size_t kFailuresShown = 12;

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

std::string heading(const Validation& v) {
  std::string text = "module   " + v.module + (v.module_file.empty() ? "" : "  " + v.module_file) + "\n";
  text += "python   " + v.python;
  if (!v.python_version.empty()) text += "  (Python " + v.python_version + ", torch " + v.torch_version + ")";
  text += "\n";
  if (!v.gpu.empty()) text += "gpu      " + v.gpu + "\n";
  return text + "seed     " + std::to_string(v.seed) + "  (repeat with --seed)\n";
}

std::string devices(const Validation& v) {
  struct Count {
    std::size_t passed = 0, failed = 0, left = 0;
  };
  std::map<std::string, Count> counts;
  for (const CaseResult& c : v.cases) {
    Count& count = counts[c.device];
    ++(c.state == CaseState::Passed   ? count.passed
       : c.state == CaseState::NotRun ? count.left
                                      : count.failed);
  }
  std::string text;
  for (const auto& [device, n] : counts) {
    text += format("%-8s %zu of %zu cases passed", device.c_str(), n.passed, n.passed + n.failed + n.left);
    if (n.failed > 0) text += format(", %zu failed", n.failed);
    if (n.left > 0) text += format(", %zu not run", n.left);
    text += "\n";
  }
  for (const auto& [device, words] : v.refused)
    text += device + ": not validated, the module takes no such tensors (" + words + ")\n";
  return text;
}

// One line a result and dtype: the case that came nearest to its bound.
std::string nearest(const Validation& v) {
  struct Row {
    const TensorResult* tensor;
    const CaseResult* of;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const CaseResult& c : v.cases) {
    for (const TensorResult& t : c.tensors) {
      const auto [row, fresh] = rows.try_emplace({t.name, t.dtype}, Row{&t, &c});
      if (!fresh && used(t) > used(*row->second.tensor)) row->second = {&t, &c};
    }
  }
  if (rows.empty()) return "";
  std::string text = "\nresult       dtype      error     rounding  bound     of bound  nearest case\n";
  for (const auto& [key, row] : rows) {
    const double share = used(*row.tensor);
    const std::string percent = std::isinf(share) ? "inf"
                                : share >= 100    ? ">9999 %"
                                                  : format("%.1f %%", 100 * share);
    text += format("%-12s %-9s  %-8.2e  %-8.2e  %-8.2e  %-8s  ", key.first.c_str(), key.second.c_str(),
                   row.tensor->error, row.tensor->explained, row.tensor->bound, percent.c_str()) +
            row.of->device + " " + row.of->id + "\n";
  }
  return text;
}

std::string reproducer(const Validation& v, const CaseResult& c) {
  return "scankit validate --python " + v.python + " --module " + v.module + " --seed " +
         std::to_string(v.seed) + (v.mode == "full" ? " --full" : "") + " --device " +
         (c.device == "cpu" ? "cpu" : "cuda") + " --case " + c.id;
}

std::string failures(const Validation& v) {
  std::string text;
  std::map<std::string, std::size_t> same;  // one and the same error in many cases is told once
  std::size_t shown = 0, hidden = 0;
  for (const CaseResult& c : v.cases)
    if (!c.error.empty()) ++same[c.error];
  std::set<std::string> told;
  for (const CaseResult& c : v.cases) {
    if (c.state == CaseState::Passed || c.state == CaseState::NotRun) continue;
    if (!c.error.empty() && !told.insert(c.error).second) continue;
    if (shown == kFailuresShown) {
      ++hidden;
      continue;
    }
    ++shown;
    text += "\nFAILED " + c.device + " " + c.id + "\n";
    for (const std::string& reason : c.reasons) text += "  " + reason + "\n";
    if (!c.error.empty() && same[c.error] > 1)
      text += format("  (the same error in %zu other cases)\n", same[c.error] - 1);
    text += "  again: " + reproducer(v, c) + "\n";
  }
  if (hidden > 0) text += format("\n... and %zu failed cases more; --json lists all.\n", hidden);
  return text;
}

std::string nondeterminism(const Validation& v) {
  std::map<std::string, std::pair<std::size_t, double>> seen;
  for (const CaseResult& c : v.cases) {
    for (const auto& [name, difference] : c.nondeterministic) {
      auto& entry = seen[c.device + " " + name];
      ++entry.first;
      entry.second = std::max(entry.second, difference);
    }
  }
  if (seen.empty()) return "\nEvery call, made twice, gave the same bits.\n";
  std::string text = "\nNot the same bits when called twice:\n";
  for (const auto& [name, entry] : seen)
    text += format("  %s in %zu cases, at most %.2g of its norm\n", name.c_str(), entry.first, entry.second);
  return text;
}

std::string timings(const Validation& v) {
  if (v.timings.empty()) return "";
  std::string text = "\nspeed (reported, not judged)          module      plain PyTorch  ratio\n";
  for (const Timing& t : v.timings)
    text += format("%-7s %s  B%d D%d L%d N%d %s  %8.3f ms  %9.2f ms   %.1fx\n", t.device.c_str(),
                   t.pass.c_str(), t.batch, t.dim, t.length, t.states, t.dtype.c_str(), t.module_ms,
                   t.plain_ms, t.plain_ms / t.module_ms);
  return text;
}

}  // namespace

std::string text_report(const Validation& v) {
  std::string text = heading(v) + devices(v) + nearest(v);
  const bool ran =
      std::any_of(v.cases.begin(), v.cases.end(), [](const auto& c) { return !c.tensors.empty(); });
  if (ran) text += nondeterminism(v);
  text += timings(v) + failures(v);
  if (v.module_problem == ModuleProblem::ImportFailed || v.module_problem == ModuleProblem::LacksFunctions)
    text += "\nFAILED " + v.module_message + "\n";
  for (const std::string& note : v.notes) text += "note: " + note + "\n";
  if (!v.blocked.empty()) text += "not completed: " + v.blocked + "\n";
  const char* verdict = v.verdict == Verdict::Passed   ? "PASSED"
                        : v.verdict == Verdict::Failed ? "FAILED"
                                                       : "INCONCLUSIVE";
  return text + format("\n%s: %s, %s, %.1f s\n", verdict, v.module.c_str(), v.mode.c_str(), v.seconds);
}

}  // namespace scankit::validate
