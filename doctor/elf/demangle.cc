// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstddef>

#include "doctor/elf/mangling.h"

// libiberty's demangler behind __cxa_demangle, which libstdc++.so keeps to itself: CMakeLists.txt takes its
// object file out of libstdc++.a. 0 is success (libiberty, cp-demangle.c).
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*callback)(const char*, std::size_t, void*), void* opaque);

namespace scankit {
namespace {

constexpr std::size_t kNameLimit = 16u << 10, kTextLimit = 64u << 10;

struct Sink {
  std::string text;
  std::jmp_buf too_long;
};

// Substitutions let a name of 200 bytes stand for gigabytes of text; only leaving the demangler ends that. It
// is C without anything to clean up, so a jump out of it is sound.
void take(const char* piece, std::size_t length, void* opaque) {
  auto* sink = static_cast<Sink*>(opaque);
  if (sink->text.size() + length > kTextLimit) std::longjmp(sink->too_long, 1);
  sink->text.append(piece, length);
}

bool demangle_bounded(const char* name, Sink& sink) {
  if (setjmp(sink.too_long) != 0) return false;
  return __gcclibcxx_demangle_callback(name, take, &sink) == 0;
}

}  // namespace

std::string demangle(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kNameLimit) return name;
  Sink sink;
  if (!demangle_bounded(name.c_str(), sink) || sink.text.empty()) return name;
  return sink.text;
}

}  // namespace scankit
