// SPDX-License-Identifier: Apache-2.0
#include "doctor/tests/growth/measure.h"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <new>

namespace scankit::growth {
namespace {

std::size_t g_live = 0, g_peak = 0;  // the test has one thread

void* counted(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  g_live += ::malloc_usable_size(memory);
  g_peak = std::max(g_peak, g_live);
  return memory;
}

void discount(void* memory) {
  if (memory != nullptr) g_live -= std::min(g_live, ::malloc_usable_size(memory));
  std::free(memory);
}

double cpu_milliseconds() {
  struct timespec now {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

constexpr double kSomeTime = 4, kNoise = 3;  // milliseconds
constexpr std::size_t kNoiseOfMemory = 1u << 20;
constexpr int kRounds = 15;

Cost least(const Cost& a, const Cost& b) {
  return {std::min(a.milliseconds, b.milliseconds), std::min(a.peak, b.peak)};
}

std::string growth_of(const std::array<Cost, 3>& costs) {
  for (std::size_t i = 1; i < costs.size(); ++i) {
    if (costs[i].peak > 3 * costs[i - 1].peak + kNoiseOfMemory) return "memory more than triples";
    if (costs[i].milliseconds > 3 * costs[i - 1].milliseconds + kNoise) return "time more than triples";
  }
  return "";
}

}  // namespace

Cost cost_of(const std::function<void()>& work) {
  const std::size_t before = g_peak = g_live;
  const double start = cpu_milliseconds();
  work();
  return {cpu_milliseconds() - start, g_peak - before};
}

std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

std::string numbered(const std::string& piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i)
    for (const char c : piece) text += c == '#' ? std::to_string(i) : std::string(1, c);
  return text;
}

std::vector<Family> texts(const std::string& reader, const std::vector<std::string>& pieces,
                          std::size_t largest, const std::function<void(const std::string&)>& read,
                          const std::string& head, const std::string& tail) {
  std::vector<Family> families;
  for (const std::string& piece : pieces) {
    std::string shown;
    for (const char c : piece.substr(0, 30)) shown += c == '\n' ? std::string("\\n") : std::string(1, c);
    families.push_back({reader, shown, 64, largest / piece.size(), [=](std::size_t n) {
                          return [text = head + numbered(piece, n) + tail, read] { read(text); };
                        }});
  }
  return families;
}

std::string growth_problem(const Family& family) {
  std::size_t n = family.smallest;
  while (n * 2 <= family.largest && cost_of(family.make(n)).milliseconds < kSomeTime) n *= 2;
  // A shared machine may slow a process for longer than one reading takes, even in time on the CPU. So one
  // size's readings lie apart, and what seems to grow is read again: its least cost only comes closer to the true.
  std::array<Cost, 3> costs;
  for (int round = 0; round < kRounds && (round < 3 || !growth_of(costs).empty()); ++round)
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const Cost cost = cost_of(family.make(n << i));
      costs[i] = round == 0 ? cost : least(costs[i], cost);
    }
  const std::string problem = growth_of(costs);
  std::string line = fmt::format("  {:<14} {:<38} {:>9}", family.reader, family.input, n);
  for (const Cost& cost : costs)
    line +=
        fmt::format("  {:>8.1f} ms {:>7.1f} MiB", cost.milliseconds, static_cast<double>(cost.peak) / 0x1p20);
  fmt::print("{}{}\n", line, problem.empty() ? "" : "  GROWS");
  return problem.empty() ? "" : line + ": " + problem;
}

}  // namespace scankit::growth

void* operator new(std::size_t size) { return scankit::growth::counted(size); }
void* operator new[](std::size_t size) { return scankit::growth::counted(size); }
void operator delete(void* memory) noexcept { scankit::growth::discount(memory); }
void operator delete[](void* memory) noexcept { scankit::growth::discount(memory); }
void operator delete(void* memory, std::size_t) noexcept { scankit::growth::discount(memory); }
void operator delete[](void* memory, std::size_t) noexcept { scankit::growth::discount(memory); }
