// SPDX-License-Identifier: Apache-2.0
#include "doctor/matrix/matrix.h"

#include "doctor/base/exit_status.h"
#include "doctor/cli/commands.h"
#include "doctor/matrix/places.h"

// `scankit doctor --so ... --torch RANGE`: no environment is looked at, so that --python, --gpu and --driver mean other things.
namespace scankit {
namespace {

// Nothing for an option that was not given.
Result<std::vector<std::string>> axis(std::string_view option, const std::string& text,
                                      const std::vector<std::string>& known) {
  if (text.empty()) return std::vector<std::string>();
  return values_of_axis(option, text, known);
}

Result<MatrixRequest> request_of(const DoctorOptions& options) {
  MatrixRequest request;
  request.files = options.environment.so;
  request.driver = options.target.driver;
  const std::string& python = options.environment.python;
  if (!python.empty() && !is_python_axis(python))
    return Error{
        Errc::InvalidArgument, message("--python {}: with --torch, Python versions are expected", python),
        message(
            "give versions such as 3.9..3.13, or leave out --torch to examine the files for this Python")};
  SCANKIT_TRY(request.torch, axis("--torch", options.axes.torch, known_torch_releases()));
  SCANKIT_TRY(request.pythons, axis("--python", python, known_pythons()));
  SCANKIT_TRY(request.cudas, axis("--cuda", options.axes.cuda, known_cuda_releases()));
  SCANKIT_TRY(request.glibcs, axis("--glibc", options.axes.glibc, known_glibcs()));
  request.gpus = options.target.gpus;
  if (request.gpus == std::vector<std::string>{"none"}) request.gpus.clear();
  return request;
}

}  // namespace

int run_matrix(const DoctorOptions& options) {
  const auto request = request_of(options);
  if (!request) {
    report_error(request.error());
    return kExitUsage;
  }
  const auto matrix = matrix_of(*request);
  if (!matrix) {
    report_error(matrix.error());
    return kExitUsage;
  }
  return first_that_counts({show(matrix_views(*matrix), options.show), exit_status_of(*matrix)});
}

}  // namespace scankit
