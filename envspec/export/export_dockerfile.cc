// SPDX-License-Identifier: Apache-2.0
#include "envspec/export/export.h"

namespace scankit {
namespace {

// Checked once more before pip runs: the image says which files it was made of.
std::string copy_wheels(const EnvironmentLock& lock) {
  const auto here = built_here(lock);
  if (here.empty()) return "";
  const std::string folder = kWheelFolder;
  std::string text = "COPY " + folder + "/ " + folder + "/\nRUN printf '%s  %s\\n'";
  for (const LockedDistribution* one : here)
    text += " \\\n      " + one->artifact->sha256 + " " + folder + "/" + one->artifact->file;
  return text + " > " + folder + ".sha256 \\\n && sha256sum -c " + folder + ".sha256\n";
}

}  // namespace

// The driver and its libraries come from the machine that runs the container; everything else is pinned.
Exported export_dockerfile(const EnvironmentLock& lock) {
  Exported exported{"Dockerfile", "", installable(lock).left_out, true};
  std::string& text = exported.text;
  for (const std::string& line : header_lines(lock)) text += "# " + line + "\n";
  for (const std::string& line : exported.left_out) text += "# LEFT OUT " + line + "\n";
  text += "# The base image is yours to choose: this Python, and " + lock.machine.libc + " " +
          lock.machine.libc_version + " or newer.\n";
  text += "ARG PYTHON_IMAGE=python:" + lock.python.version + "-slim\nFROM ${PYTHON_IMAGE}\n";
  text += "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility\n";
  text += "WORKDIR /opt/environment\nCOPY requirements.txt ./\n" + copy_wheels(lock);
  text += "RUN python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements.txt\n";
  return exported;
}

}  // namespace scankit
