// SPDX-License-Identifier: Apache-2.0
#include "validate/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "doctor/base/say.h"

namespace scankit::validate {

std::string phase_in_words(const std::string& what) {
  if (what.empty()) return say("start");
  if (what == "import torch") return say("import torch");
  if (what == "import module") return say("import module");
  return what == "timing" ? say("timing") : what;
}

ProgressPrinter::ProgressPrinter() : terminal_(::isatty(2) == 1) {}

ProgressPrinter::~ProgressPrinter() {
  if (terminal_ && drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressPrinter::show(const Progress& progress) {
  const std::size_t total = progress.total > 0 ? progress.total : 1;
  if (!progress.warning.empty())
    std::fprintf(stderr, "%s%s\n", terminal_ && drawn_ ? "\r\033[K" : "",
                 say("validate: {}", retold(progress.warning)).c_str());
  if (terminal_) {
    constexpr std::size_t kWidth = 30;
    const std::size_t filled = std::min(progress.done, total) * kWidth / total;
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    const std::string now = progress.what.empty() ? "" : phase_in_words(progress.what.substr(0, 60));
    std::fprintf(stderr, "\r\033[K[%s] %zu/%zu  %s", bar.c_str(), progress.done, progress.total, now.c_str());
    std::fflush(stderr);
    drawn_ = true;
    return;
  }
  const std::size_t quarter = progress.done * 4 / total;
  const bool phase = progress.done == 0 && progress.what != phase_;
  if (!phase && quarter == quarter_) return;
  quarter_ = quarter;
  phase_ = progress.what;
  const std::string line =
      progress.what.empty()
          ? say_n(progress.total, "validate: {} of {} case", "validate: {} of {} cases", progress.done,
                  progress.total)
          : say_n(progress.total, "validate: {} of {} case; now {}", "validate: {} of {} cases; now {}",
                  progress.done, progress.total, phase_in_words(progress.what));
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace scankit::validate
