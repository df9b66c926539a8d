// SPDX-License-Identifier: Apache-2.0
#include "doctor/host/gpu_helper.h"

#include <algorithm>

#include "doctor/host/embedded_program.h"

extern "C" const char scankit_gpu_helper[];
extern "C" const char scankit_gpu_helper_end[];

namespace scankit {

std::string_view gpu_helper_program() {
  return {scankit_gpu_helper, static_cast<std::size_t>(scankit_gpu_helper_end - scankit_gpu_helper)};
}

Result<ProcessResult> run_gpu_helper(const std::vector<std::string>& args,
                                     std::chrono::milliseconds timeout) {
  static EmbeddedProgram program("scankit-gpu", gpu_helper_program());
  ProcessRequest request;
  request.argv = args;
  request.timeout = timeout;
  return program.run(std::move(request));
}

std::vector<HelperRecord> parse_helper_records(std::string_view output) {
  std::vector<HelperRecord> records;
  while (!output.empty()) {
    std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(output.size(), line.size() + 1));
    HelperRecord record;
    record.kind = std::string(line.substr(0, line.find('\t')));
    line.remove_prefix(record.kind.size());
    while (!line.empty()) {
      line.remove_prefix(1);
      const std::string_view field = line.substr(0, line.find('\t'));
      line.remove_prefix(field.size());
      if (const auto equals = field.find('='); equals != std::string_view::npos)
        record.fields[std::string(field.substr(0, equals))] = std::string(field.substr(equals + 1));
    }
    if (!record.kind.empty()) records.push_back(std::move(record));
  }
  return records;
}

}  // namespace scankit
