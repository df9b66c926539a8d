// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// How the text looks; it does not change what is said, apart from `verbose` and `quiet`.
struct TextStyle {
  bool color = false;
  bool ascii = true;     // where the locale is not UTF-8
  bool verbose = false;  // every symbol, every piece of evidence, every passed check
  bool quiet = false;    // the verdict and the command alone
};

// Looks up a variable; unit tests pass their own.
using Environment = std::function<std::optional<std::string>(std::string_view)>;
bool locale_is_utf8(const Environment& variables);
// Whether to use colour. `choice` is "auto", "always" or "never"; with "auto", NO_COLOR (no-color.org)
// and a dumb terminal switch it off.
bool wants_color(std::string_view choice, bool is_terminal, const Environment& variables);

// The report for people: what was looked at, the findings with the root first, what was not checked, the
// verdict, and as the last line the command that repairs it, if there is one.
// Same report, same bytes.
std::string doctor_text(const Report& report, const TextStyle& style);

// What `doctor -v` shows of a GPU: what deviceQuery and nvidia-smi -q tell, as far as its driver told it.

struct GpuRow {
  std::string label, value;  // in the reader's language: "L2 cache", "50 MiB"
};
// In the order of gpu_details.def; nothing where the driver was not asked or told nothing.
std::vector<GpuRow> gpu_rows(const Gpu& gpu);

// One sentence for each setting or state that slows programs down or stops them: "PCIe runs with 1 of 16
// lanes: copies between host and GPU are slow". Empty for a GPU as it should be.
std::vector<std::string> unusual_of(const Gpu& gpu);

}  // namespace scankit
