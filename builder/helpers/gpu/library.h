// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every verb of scankit-gpu needs: vendor libraries by dlopen, and its exit statuses. This program is
// linked without the C++ run-time library, so that it runs on any glibc from 2.17 on.
namespace scankit_gpu {

// Exit statuses. doctor/host/embedded_program.h repeats kFailed and kAbsent for the parent.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  // the library is there and said no
inline constexpr int kUsage = 2;
inline constexpr int kAbsent = 3;  // the library, or the device it speaks of, is not here

// dlopen and dlsym in glibc's oldest version. Both return null on failure, and load_error() then has the
// loader's text. A library stays loaded until the process ends.
void* load_library(const char* path);
void* find_symbol(void* library, const char* name);
const char* load_error();

// Sets `function` to the function `name` of `library`. False if the library does not export it; the caller
// reports that with load_error().
template <class Function>
bool bind(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(find_symbol(library, name));
  return *function != nullptr;
}

// Prints one line to stderr, with each {} of `english` filled with the next value; three at most. scankit
// recognises the sentence by its English text and translates it as a whole (doctor/text), so the text here
// and the catalogue must agree.
void report_error(const char* english, const char* first = "", const char* second = "",
                  const char* third = "");

// libnvidia-ml.so.1 from the loader's own search, or from where WSL and some containers keep it; null where
// there is none.
void* load_nvml();

// The verbs. `argv` begins after the verb's name; each returns one of the statuses above.
int run_nvml(int argc, char** argv);
int run_nvml_details(int argc, char** argv);
int run_cuda_details(int argc, char** argv);
int run_nvrtc(int argc, char** argv);
int run_nvrtc_info(int argc, char** argv);

}  // namespace scankit_gpu
