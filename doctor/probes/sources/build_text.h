// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// For probe_build_tools: what the tools' own files and answers say.
namespace scankit {

// Whether a program is ours to start: an absolute path, not of the folder that is examined, and not another
// user's where we are root.
bool may_ask(const Host& host, const std::string& folder, const std::string& program);
// Its standard output, "" where it was not asked or did not answer.
std::string answer_of(const Host& host, const std::string& folder, const std::string& program,
                      const std::string& question);

std::string release_in(std::string_view nvcc_version);                  // "13.0"
void read_limits(std::string_view host_config, BuildTools& tools);      // nvcc's crt/host_config.h
void read_gcc_floor(std::string_view cxx17_header, BuildTools& tools);  // torch's c10/util/C++17.h
// torch/utils/cpp_extension.py: its own bounds for nvcc's host compiler, its architectures. Of
// tools.nvcc_version.
void read_cpp_extension(std::string_view text, BuildTools& tools);

}  // namespace scankit
