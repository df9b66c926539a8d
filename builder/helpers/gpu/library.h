// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every verb of scankit-gpu needs: vendor libraries by dlopen, and its exit statuses. This program is
// linked without the C++ run-time library, so that it runs on any glibc from 2.17 on.
namespace scankit_gpu {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  // the library is there and said no
inline constexpr int kUsage = 2;
inline constexpr int kAbsent = 3;  // the library, or the device it speaks of, is not here

// dlopen and dlsym of glibc's oldest version; null with the loader's text in `load_error()`.
void* load_library(const char* path);
void* find_symbol(void* library, const char* name);
const char* load_error();

// Fills `function` from `library`; false, with a line on stderr, where the library has no such function.
template <class Function>
bool bind(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(find_symbol(library, name));
  return *function != nullptr;
}

// One line to stderr, each {} of `english` filled with the next value. scankit knows the sentence by its
// English text and says it in the user's language (doctor/text): whole, never glued.
void report_error(const char* english, const char* first = "", const char* second = "",
                  const char* third = "");

int run_nvml(int argc, char** argv);
int run_nvrtc(int argc, char** argv);
int run_nvrtc_info(int argc, char** argv);

}  // namespace scankit_gpu
