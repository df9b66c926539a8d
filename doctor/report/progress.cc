// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/progress.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/report/plain.h"

namespace scankit {

constexpr unsigned kWidth = 24;

void Progress::draw(unsigned full) {
  drawn_ = full;
  out_ << "\r\x1b[K[" << std::string(full, '#') << std::string(kWidth - full, '.') << "] " << name_
       << std::flush;
}

void Progress::part(std::size_t done, std::size_t of) {
  if (!bar_ || done_ == 0 || of == 0) return;
  const std::size_t whole = phases_ * of;
  const auto full = static_cast<unsigned>(((done_ - 1) * of + std::min(done, of)) * kWidth / whole);
  if (full != drawn_) draw(full);
}

void Progress::phase(const std::string& name) {
  const bool ascii = spoken_language() == nullptr;  // a translation is spoken in UTF-8 locales only
  if (!bar_) {
    out_ << "scankit: " << plain(name, ascii) << "\n" << std::flush;
    return;
  }
  phases_ = std::max(phases_, ++done_);  // more phases than announced: the bar never passes its end
  name_ = plain(name, ascii);
  draw((done_ - 1) * kWidth / phases_);
}

void Progress::finish() {
  if (bar_ && done_ > 0) out_ << "\r\x1b[K" << std::flush;
  done_ = 0;
}

}  // namespace scankit
