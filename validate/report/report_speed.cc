// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>

#include "doctor/base/columns.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "validate/judge/judge.h"
#include "validate/report/report.h"

// The part of the text report about speed: the device's measured limits, one row for each pass, the
// kernels, and the comparisons with another module and with a baseline.
namespace scankit::validate {
namespace {

template <class... Args>
std::string speed_format(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

// A multiply-add counts as two operations in FLOP/s.
std::string limits_text(const Validation& v) {
  std::string text;
  for (const auto& [device, limits] : v.limits)
    text += say("{}, measured now: {:.1f} GB/s copied, {:.2f} TFLOP/s, {:.1f} G exponentials/s", device,
                limits.copy * 1e-9, 2 * limits.fma * 1e-12, limits.exp * 1e-9) +
            "\n";
  return text;
}

// What the measuring itself costs; see HarnessCost.
std::string harness_text(const Validation& v) {
  std::string text;
  for (const auto& [device, limits] : v.limits)
    if (const HarnessCost cost = harness_cost(v, device); cost.known)
      text += clauses({cost.added < 0
                           ? say("{}: a call timed alone took {:.1f} % less time than one of many in a row",
                                 device, -100 * cost.added)
                           : say("{}: a call timed alone took {:.1f} % more time than one of many in a row",
                                 device, 100 * cost.added),
                       say("the harness itself used {:.1f} % of the time of all calls", 100 * cost.around)}) +
              "\n";
  return text;
}

std::string limit_name(const std::string& limit) {
  return limit == "copy" ? say("memory") : limit == "fma" ? say("multiply-adds") : say("exponentials");
}

// GB/s, GFLOP/s and Gexp/s come from the least work of a pass (work_of()), not from counters: 1e-6 times a
// count divided by milliseconds is a rate in units of 1e9 per second.
std::string row(const Validation& v, const Timing& t) {
  const Interval ms = median_of(t.ms.at("module"));
  std::string text = in_column(name_of(t), 42) + speed_format("%9.4f ms  ", ms.middle);
  const auto limits = v.limits.find(t.device);
  if (t.cache != "host" && limits != v.limits.end()) {
    const Work work = work_of(t);
    const Roof roof = roof_of(t, limits->second);
    text += speed_format("%8.1f %8.1f %8.1f  %5.1f %%  ", 1e-6 * work.bytes / ms.middle,
                         1e-6 * work.flops / ms.middle, 1e-6 * work.exponentials / ms.middle,
                         100 * roof.ms / ms.middle) +
            in_column(limit_name(roof.limit), 14);
  }
  if (t.peak) text += say("{:.1f} MiB", *t.peak / (1 << 20)) + "  ";
  if (t.ms.contains("plain")) text += say("{:.1f}x plain PyTorch", times_plain(t));
  return text + "\n";
}

std::string against_rows(const Validation& v) {
  std::string text;
  for (const Timing& t : v.timings) {
    if (!t.ms.contains("against")) continue;
    const Comparison c = compare(t, "against");
    text += in_column(name_of(t), 42) +
            speed_format("%6.3fx [%.3f, %.3f]  ", c.ratio.middle, c.ratio.low, c.ratio.high) +
            std::string(pace_word(c.pace)) + (c.why.empty() ? "" : "  " + c.why) + "\n";
  }
  if (text.empty()) return text;
  return "\n" + say("faster than {} by (95 % interval of the median; the two took turns)", v.against) + "\n" +
         text;
}

// The factor is now / before, as an interval.
std::string baseline_rows(const Validation& v) {
  if (v.baseline.empty()) return "";
  std::string text = "\n" + say("time compared with {}", v.baseline) + "\n";
  if (!v.baseline_problem.empty()) text += "  " + v.baseline_problem + "\n";
  for (const AgainstBaseline& c : v.compared)
    text += in_column(name_of(v.timings[c.timing]), 42) +
            speed_format("%9.4f ms  x[%.3f, %.3f]  ", c.before_ms, c.low, c.high) +
            (c.regressed ? say("REGRESSED") : std::string()) + "\n";
  return text;
}

// What each kernel of scankit's module takes on this GPU. "?" where the driver was not asked.
std::string kernel_rows(const Validation& v) {
  if (v.kernels.empty()) return "";
  std::string text = "\n" + in_column(say("kernel"), 34) + in_column(say("registers"), 10) +
                     in_column(say("stack"), 8) + in_column(say("shared"), 10) +
                     in_column(say("threads"), 8) + in_column(say("blocks/SM"), 10) +
                     in_column(say("occupancy"), 10) + in_column(say("waves"), 8) +
                     in_column(say("conflicts"), 10) + say("of") + "\n";
  for (const KernelUse& k : v.kernels) {
    const Fit fit = fit_of(k, v);
    text += in_column(k.unit + " " + k.name.substr(k.name.find('_') + 1), 34) +
            speed_format("%9u %7u %9u %7u ", k.registers, k.stack_bytes,
                         k.static_shared_bytes + k.dynamic_shared_bytes, k.threads) +
            (fit.known ? speed_format("%9u  %8.1f %% %6.2f  ", k.blocks_per_multiprocessor,
                                      100 * fit.occupancy, fit.waves)
                       : speed_format("%9s  %10s %6s  ", "?", "?", "?")) +
            (k.bank_conflicts ? speed_format("%7.1f %%  ", 100 * *k.bank_conflicts)
                              : in_column("        -", 11)) +
            k.of + "\n";
  }
  return text;
}

}  // namespace

std::string speed_text(const Validation& v) {
  if (v.timings.empty()) return baseline_rows(v);
  std::string text = "\n" + limits_text(v) + in_column(say("speed"), 42) + in_column(say("median"), 14) +
                     speed_format("%8s %8s %8s  ", "GB/s", "GFLOP/s", "Gexp/s") +
                     in_column(say("of limit"), 9) + in_column(say("which"), 14) + say("memory") + "\n";
  for (const Timing& t : v.timings)
    if (t.ms.contains("module")) text += row(v, t);
  std::map<std::string, std::size_t> disturbed;
  for (const Timing& t : v.timings)
    if (const std::string why = disturbance(t); !why.empty()) ++disturbed[why];
  for (const auto& [why, passes] : disturbed)
    text +=
        say_n(passes, "{} pass is not reliable: {}", "{} passes are not reliable: {}", passes, why) + "\n";
  return text + harness_text(v) + kernel_rows(v) + against_rows(v) + baseline_rows(v);
}

}  // namespace scankit::validate
