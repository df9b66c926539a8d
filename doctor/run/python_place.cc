// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/python_place.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "doctor/base/text.h"
#include "doctor/run/failing_interpreter.h"

namespace scankit {
namespace {

using Frames = std::vector<PythonPlace>;

// `  File "a.py", line 3, in f` of a traceback, `  File "a.py", line 3 in f` of faulthandler; pip, torchrun
// and others put something in front of it.
std::optional<PythonPlace> frame_in(std::string_view line) {
  const auto start = line.find("File \"");
  if (start == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(start + 6);
  const auto quote = rest.find("\", line ");
  if (quote == std::string_view::npos) return std::nullopt;
  PythonPlace place;
  place.file = rest.substr(0, quote);
  const std::string_view number = rest.substr(quote + 8);
  place.line = static_cast<unsigned>(std::strtoul(std::string(number.substr(0, 12)).c_str(), nullptr, 10));
  if (const auto in = number.find(" in "); in != std::string_view::npos)
    place.function = trimmed(number.substr(in + 4));
  return place;
}

bool is_source(std::string_view line) {
  return !line.empty() && line.find_first_not_of("^~| ") != std::string_view::npos;
}

bool is_of_imports(const PythonPlace& frame) { return frame.file.starts_with("<frozen importlib"); }

bool is_import(std::string_view source) {
  return source.starts_with("import ") || source.starts_with("from ");
}

// "a.b" of `import a.b` and `from a.b import c`; "" where the line names several.
std::string named_by(std::string_view source) {
  const std::string_view rest = trimmed(source.substr(source.find(' ')));
  const bool several = source.starts_with("import ") && rest.find(',') != std::string_view::npos;
  return several ? "" : std::string(rest.substr(0, rest.find_first_of(" ;#")));
}

// Frames from the outermost to the innermost one.
std::optional<PythonPlace> innermost(const Frames& frames) {
  const auto last = std::ranges::find_if_not(frames.rbegin(), frames.rend(), is_of_imports);
  if (last == frames.rend()) return std::nullopt;
  PythonPlace place = *last;
  const bool within = last != frames.rbegin();
  // The code of a file that another file imports. `python -m` and runpy start the first one.
  const bool imported =
      place.function == "<module>" && std::ranges::any_of(last + 1, frames.rend(), is_of_imports);
  place.importing = within || imported || is_import(place.source);
  if (is_import(place.source))
    place.module = named_by(place.source);
  else if (imported && place.file.ends_with(".py"))
    place.module = module_of_file(place.file);
  return place;
}

// The frames of the last traceback or dump, as its lines come.
class Reader {
 public:
  void take(std::string_view line) {
    constexpr std::string_view kDump = "hread 0x";
    if (line.find("Traceback (most recent call last)") != std::string_view::npos) return begin(false);
    // A dump has all threads, and the one that failed is called the current one.
    if (line.find(kDump) != std::string_view::npos) {
      other_thread_ = line.find("Current thread") == std::string_view::npos;
      return other_thread_ ? void() : begin(true);
    }
    if (auto frame = frame_in(line); frame && !other_thread_) {
      if (frames_.size() == kMost && !dump_) frames_.erase(frames_.begin());
      if (frames_.size() < kMost) frames_.push_back(*std::move(frame));
      expects_source_ = !dump_;
      return;
    }
    const std::string_view text = trimmed(line);
    if (expects_source_ && is_source(text)) frames_.back().source = text;
    expects_source_ = false;
    if (text.find("ChildFailedError") != std::string_view::npos) frames_ = before_;
  }
  std::optional<PythonPlace> place() const {
    Frames frames = frames_;
    if (dump_) std::ranges::reverse(frames);
    return innermost(frames);
  }

 private:
  static constexpr std::size_t kMost = 1000;
  void begin(bool dump) {
    if (!frames_.empty()) before_ = std::move(frames_);
    frames_.clear();
    dump_ = dump;
    other_thread_ = false;
  }
  Frames frames_, before_;
  bool dump_ = false, other_thread_ = false, expects_source_ = false;
};

}  // namespace

std::optional<PythonPlace> python_place(std::string_view output, std::uint64_t before) {
  Reader reader;
  std::uint64_t number = 0;
  for (const std::string_view line : lines_of(output)) {
    if (before != 0 && ++number > before) break;
    reader.take(line);
  }
  return reader.place();
}

}  // namespace scankit
