// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/progress.h"

#include <algorithm>

#include "doctor/report/plain.h"

namespace scankit {

void Progress::phase(const std::string& name) {
  constexpr unsigned kWidth = 24;
  if (!bar_) {
    out_ << "scankit: " << plain(name, true) << "\n" << std::flush;
    return;
  }
  phases_ = std::max(phases_, ++done_);  // more phases than announced: the bar never passes its end
  const unsigned full = (done_ - 1) * kWidth / std::max(phases_, 1u);
  out_ << "\r\x1b[K[" << std::string(full, '#') << std::string(kWidth - full, '.') << "] "
       << plain(name, true) << std::flush;
}

void Progress::finish() {
  if (bar_ && done_ > 0) out_ << "\r\x1b[K" << std::flush;
  done_ = 0;
}

}  // namespace scankit
