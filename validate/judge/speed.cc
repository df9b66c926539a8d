// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "validate/judge/judge.h"

// Statistics over the samples of a timing, and how near a pass comes to what its device can do.
namespace scankit::validate {
namespace {

// NVML's reasons for a clock below the highest (nvml.h, nvmlClocksEventReason...): heat, and what the
// board does to protect itself. A power limit is not among them, since it belongs to how fast the GPU is.
constexpr std::uint64_t kHeldBack = 0x8 | 0x20 | 0x40 | 0x80;

// What an exponential that is good to fp32 costs a CPU, in multiply-adds: a polynomial of degree 5, and
// bringing its argument into range.
constexpr double kExponential = 9;

constexpr double kBusy = 1.5;  // of the cores: the timed calls themselves make a load of one each

double state_of(const Timing& timing, const char* name, double otherwise) {
  const auto found = timing.state.find(name);
  return found == timing.state.end() ? otherwise : found->second;
}

// How many of the n sorted samples to leave out at each end, so that the true median is between the
// remaining ends with 95 %. With k the largest number for which P(Binomial(n, 1/2) < k) <= 0.025, the
// interval starts at the k-th sample. For fewer than six k is 0: no interval has 95 %.
std::size_t left_out(std::size_t n) {
  double term = std::pow(0.5, static_cast<double>(n)), below = 0;
  std::size_t k = 0;
  while (below + term <= 0.025) {  // at n / 2 the sum is a half
    below += term;
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  return k > 0 ? k - 1 : 0;
}

double element_bytes(const std::string& dtype) { return dtype == "fp32" ? 4 : 2; }

}  // namespace

Interval median_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size(), out = left_out(n);
  const double middle = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  return {samples[out], middle, samples[n - 1 - out]};
}

std::string_view pace_word(Pace pace) {
  static constexpr std::string_view kWords[] = {"SAME", "FASTER", "SLOWER", "AMBIGUOUS", "UNKNOWN"};
  return kWords[static_cast<std::size_t>(pace)];
}

// Takes the ratio of each round, since the sides took turns: what disturbs a round disturbs both.
Comparison compare(const Timing& timing, const std::string& other) {
  Comparison result;
  const auto mine = timing.ms.find("module"), theirs = timing.ms.find(other);
  if (mine == timing.ms.end() || theirs == timing.ms.end()) {
    result.why = say("it was not timed");
    return result;
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(mine->second.size(), theirs->second.size()); ++i)
    ratios.push_back(theirs->second[i] / mine->second[i]);
  result.ratio = median_of(ratios);
  result.why = disturbance(timing);
  if (ratios.size() < 6) result.why = say_n(ratios.size(), "only {} round", "only {} rounds", ratios.size());
  if (!result.why.empty()) return result;
  const double low = result.ratio.low, high = result.ratio.high;
  if (low > 1 + kSame) {
    result.pace = Pace::Faster;
  } else if (high < 1 / (1 + kSame)) {
    result.pace = Pace::Slower;
  } else if (low >= 1 / (1 + kSame) && high <= 1 + kSame) {
    result.pace = Pace::Same;
  } else {
    result.pace = Pace::Ambiguous;
  }
  return result;
}

// Only others on the same device make a measurement worthless; the state is what NVML and the kernel said
// right after it.
std::string disturbance(const Timing& timing) {
  if (const double others = state_of(timing, "others", 0); others > 0)
    return say_n(static_cast<std::size_t>(others), "{} other process is using this GPU",
                 "{} other processes are using this GPU", static_cast<std::size_t>(others));
  const double load = state_of(timing, "load", 0), cores = state_of(timing, "cores", 0);
  if (load > kBusy * cores) return say("the CPU is busy: a load of {:.1f} on {:.0f} cores", load, cores);
  const auto reasons = static_cast<std::uint64_t>(state_of(timing, "reasons", 0));
  if ((reasons & kHeldBack) != 0)
    return say("the GPU's clock was throttled to {:.0f} MHz, because of heat or its power supply",
               state_of(timing, "clock", 0));
  return "";
}

std::string clock_changes(const std::vector<Timing>& timings) {
  double low = INFINITY, high = 0;
  for (const Timing& timing : timings) {
    const double clock = state_of(timing, "clock", 0);
    if (clock <= 0 || timing.cache == "host") continue;
    low = std::min(low, clock);
    high = std::max(high, clock);
  }
  if (high <= 1.05 * low) return "";
  return say("the GPU's clock was between {:.0f} and {:.0f} MHz while it was timed", low, high);
}

// The least work of a pass with one group, D, z, delta_bias and softplus, as harness/timing.py calls it.
// Forward, each state and step takes the decay's product, the drive's product, two multiply-adds and one
// exponential. Backward takes those again to rebuild the states, except for y's, and eight operations
// for the gradients.
Work work_of(const Timing& t) {
  const double steps = double{1} * t.batch * t.length, elements = steps * t.dim,
               item = element_bytes(t.dtype);
  const double states = elements * t.states, n = t.states;
  Work work;
  if (t.pass == "fwd") {
    work.bytes = item * (5 * elements + 2 * steps * n) + 4 * t.dim * (n + 2);
    work.flops = 6 * states + 18 * elements;
    work.operations = 4 * states + 13 * elements;
    work.exponentials = states + 4 * elements;
  } else {
    work.bytes = item * (8 * elements + 4 * steps * n) + 8 * t.dim * (n + 2);
    work.flops = 18 * states + 60 * elements;
    work.operations = 11 * states + 43 * elements;
    work.exponentials = states + 6 * elements;
  }
  return work;
}

// The limit that takes longest is the roof. A CPU computes exponentials with multiply-adds; a GPU has a
// unit for them, which works at the same time as the others.
Roof roof_of(const Timing& timing, const Limits& limits) {
  const Work work = work_of(timing);
  if (timing.device == "cpu") {  // has no unit for exponentials
    const double ops = work.operations + kExponential * work.exponentials;
    const bool cached = work.bytes <= limits.cache_bytes;
    const Roof memory{1e3 * work.bytes / (cached ? std::max(limits.cached_copy, limits.copy) : limits.copy),
                      "copy"},
        arithmetic{1e3 * ops / limits.fma, "fma"};
    return memory.ms > arithmetic.ms ? memory : arithmetic;
  }
  const Roof roofs[] = {{1e3 * work.bytes / limits.copy, "copy"},
                        {1e3 * work.operations / limits.fma, "fma"},
                        {1e3 * work.exponentials / limits.exp, "exp"}};
  return *std::max_element(std::begin(roofs), std::end(roofs),
                           [](const Roof& a, const Roof& b) { return a.ms < b.ms; });
}

double times_plain(const Timing& timing) {
  const auto mine = timing.ms.find("module"), plain = timing.ms.find("plain");
  if (mine == timing.ms.end() || plain == timing.ms.end()) return 0;
  return median_of(plain->second).middle / median_of(mine->second).middle;
}

// Medians are added up before they are divided, so that each pass weighs by its time.
HarnessCost harness_cost(const Validation& v, const std::string& device) {
  double samples = 0, in_a_row = 0, wall = 0, calls = 0;
  for (const Timing& t : v.timings) {
    const auto mine = t.ms.find("module");
    if (t.device != device || mine == t.ms.end() || t.wall_ms <= 0) continue;
    wall += t.wall_ms;
    for (const auto& [side, times] : t.ms)
      if (side != "plain") calls = std::accumulate(times.begin(), times.end(), calls);
    if (t.in_a_row_ms <= 0) continue;
    samples += median_of(mine->second).middle;
    in_a_row += t.in_a_row_ms;
  }
  if (calls <= 0 || in_a_row <= 0) return {};
  return {true, samples / in_a_row - 1, wall / calls - 1};
}

Fit fit_of(const KernelUse& kernel, const Validation& v) {
  const auto fact = [&](const char* name) {
    const auto found = v.gpu_facts.find(name);
    return found == v.gpu_facts.end() ? 0.0 : found->second;
  };
  const double per_multiprocessor = kernel.blocks_per_multiprocessor,
               most_threads = fact("threads_per_multiprocessor"), multiprocessors = fact("multiprocessors");
  if (per_multiprocessor == 0 || most_threads == 0 || multiprocessors == 0) return {};
  return {true, per_multiprocessor * kernel.threads / most_threads,
          kernel.blocks / (per_multiprocessor * multiprocessors)};
}

// Compares the timings with the JSON of an earlier run (--baseline). The file is the user's, but may have
// been edited: every access is checked or inside a try block.

namespace {

using Json = nlohmann::json;
// The ratio above which a pass counts as slower; below it two runs of one binary differ by chance.
constexpr double kRegressed = 1.1;

bool same_pass(const Json& row, const Timing& t) {
  const Json& shape = row.at("shape");
  return row.at("device") == t.device && row.at("pass") == t.pass && row.at("dtype") == t.dtype &&
         row.at("cache") == t.cache && shape.at("batch") == t.batch && shape.at("dim") == t.dim &&
         shape.at("length") == t.length && shape.at("states") == t.states;
}

// Why times of the two runs cannot be compared: they were taken on devices of different names. ""
// where they can.
std::string another_device(const Json& json, const Validation& v, const std::string& device) {
  const bool cpu = device == "cpu";
  const std::string then = json_text(json, cpu ? "cpu" : "gpu"), now = cpu ? v.cpu : v.gpu;
  return then == now
             ? ""
             : say("the baseline was taken on {}, and this is {}", then.empty() ? say("no GPU") : then, now);
}

// The ratio's interval divides the ends of the two medians' intervals crosswise, so that it contains
// every ratio that the two allow. Regressed only if all of it is above the limit and nothing
// disturbed the measurement.
void compare_row(Validation& v, std::size_t index, const Json& row) {
  const Timing& timing = v.timings[index];
  const Json& interval = row.at("module_interval");
  const double before_low = interval.at(0), before_high = interval.at(1);
  const Interval now = median_of(timing.ms.at("module"));
  AgainstBaseline compared{index, row.at("module_ms"), now.low / before_high, now.high / before_low, false};
  compared.regressed = compared.low > kRegressed && disturbance(timing).empty();
  v.compared.push_back(compared);
}

}  // namespace

std::string baseline_form_problem(const std::string& text) {
  const Json json = parse_json_or_discard<Json>(text);
  if (json.is_discarded()) return say("this is not JSON");
  constexpr int kNewest = 1;  // "schema" of report_json.cc
  if (const int schema = schema_number(json); schema > kNewest)
    return say(
        "this has schema {}, and this scankit reads up to {}: use the scankit that wrote it, or a newer one",
        schema, kNewest);
  const auto rows = json.is_object() ? json.find("timing") : json.end();
  if (!json.is_object() || rows == json.end() || !rows->is_array())
    return say("this is JSON, but not from scankit validate");
  return rows->empty() ? say("its run timed nothing") : "";
}

std::string baseline_device_problem(const Validation& v, const std::vector<std::string>& devices,
                                    const std::string& text) {
  const Json json = parse_json_or_discard<Json>(text);
  for (const std::string& device : devices) {
    if (!json.is_object() || (device != "cpu" && v.gpu.empty())) continue;
    if (std::string why = another_device(json, v, device); !why.empty()) return why;
  }
  return "";
}

void compare_with_baseline(Validation& v, const std::string& text) {
  try {
    const Json json = parse_json<Json>(text);
    for (std::size_t i = 0; i < v.timings.size(); ++i) {
      const Timing& timing = v.timings[i];
      if (const std::string why = another_device(json, v, timing.device); !why.empty()) {
        v.baseline_problem = why;
        continue;
      }
      for (const Json& row : json.at("timing"))
        if (same_pass(row, timing)) compare_row(v, i, row);
    }
    if (v.compared.empty() && v.baseline_problem.empty())
      v.baseline_problem = v.timings.empty()
                               ? say("nothing was timed that the baseline could be compared with")
                               : say("the baseline contains none of the timed passes");
  } catch (const Json::exception&) {
    v.baseline_problem = say("{} is not JSON from a scankit validate that timed something", v.baseline);
  }
}

}  // namespace scankit::validate
