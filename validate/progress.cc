// SPDX-License-Identifier: Apache-2.0
#include "validate/progress.h"

#include <unistd.h>

#include <cstdio>

namespace scankit::validate {

ProgressPrinter::ProgressPrinter() : terminal_(::isatty(2) == 1) {}

ProgressPrinter::~ProgressPrinter() {
  if (terminal_ && drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressPrinter::show(const Progress& progress) {
  const std::size_t total = progress.total > 0 ? progress.total : 1;
  if (terminal_) {
    constexpr std::size_t kWidth = 30;
    const std::size_t filled = progress.done * kWidth / total;
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::fprintf(stderr, "\r\033[K[%s] %zu/%zu  %.60s", bar.c_str(), progress.done, progress.total,
                 progress.what.c_str());
    std::fflush(stderr);
    drawn_ = true;
    return;
  }
  const std::size_t quarter = progress.done * 4 / total;
  const bool phase = progress.done == 0 && progress.what != phase_;
  if (!phase && quarter == quarter_) return;
  quarter_ = quarter;
  phase_ = progress.what;
  std::fprintf(stderr, "validate: %zu of %zu cases%s%s\n", progress.done, progress.total,
               progress.what.empty() ? "" : "; now ", progress.what.c_str());
}

}  // namespace scankit::validate
