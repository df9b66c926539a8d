// SPDX-License-Identifier: Apache-2.0
#include "envspec/export/export.h"

// Images: a Dockerfile, an Apptainer definition and a dev container. pip installs the requirements.txt that is
// written next to each of them, so that it checks every hash; what was built here is checked once more before.
// The NVIDIA driver and its libraries come from the machine that runs the container.
namespace scankit::envspec {
namespace {

// The shell lines that compare the wheels that were built here with their hashes, in the current directory.
// By a file and not a pipe: a shell without pipefail would lose the status of a failed printf.
std::string check_wheels(const EnvironmentLock& lock, const std::string& indent) {
  const std::string folder = kWheelFolder;
  std::string text = "printf '%s  %s\\n'";
  for (const LockedDistribution* one : built_here(lock))
    text += " \\\n" + indent + "  " + one->artifact->sha256 + " " + folder + "/" + one->artifact->file;
  return text + " > " + folder + ".sha256 \\\n" + indent + "&& sha256sum -c " + folder + ".sha256\n";
}

std::string image_of(const EnvironmentLock& lock) { return "python:" + lock.python.version + "-slim"; }

std::string about_the_image(const EnvironmentLock& lock) {
  return "# The base image is yours to choose: this Python, and " + lock.machine.libc + " " +
         lock.machine.libc_version + " or newer.\n";
}

constexpr const char* kInstall =
    "python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements.txt\n";

FileNextTo requirements_of(const EnvironmentLock& lock) {
  const Exported exported = export_requirements(lock);
  return {exported.file_name, exported.text};
}

}  // namespace

// The two NVIDIA_ variables ask the container runtime for the driver's libraries.
Exported export_dockerfile(const EnvironmentLock& lock) {
  Exported exported{"Dockerfile", "", installable(lock).left_out, {requirements_of(lock)}};
  std::string& text = exported.text;
  text = comment_header(lock, exported.left_out) + about_the_image(lock);
  text += "ARG PYTHON_IMAGE=" + image_of(lock) + "\nFROM ${PYTHON_IMAGE}\n";
  text += "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility\n";
  text += "WORKDIR /opt/environment\nCOPY requirements.txt ./\n";
  const std::string folder = kWheelFolder;
  if (!built_here(lock).empty())
    text += "COPY " + folder + "/ " + folder + "/\nRUN " + check_wheels(lock, "    ");
  text += std::string("RUN ") + kInstall;
  return exported;
}

// %files copies from the directory that `apptainer build` runs in. A failed command does not end %post by
// itself, hence `set -e`.
Exported export_apptainer(const EnvironmentLock& lock) {
  Exported exported{"apptainer.def", "", installable(lock).left_out, {requirements_of(lock)}};
  std::string& text = exported.text;
  text = comment_header(lock, exported.left_out) + about_the_image(lock);
  text += "# In this directory: apptainer build environment.sif apptainer.def\n";
  text += "# apptainer exec --nv environment.sif python\n";
  text += "Bootstrap: docker\nFrom: " + image_of(lock) + "\n\n%files\n";
  text += "    requirements.txt /opt/environment/requirements.txt\n";
  const std::string folder = kWheelFolder;
  const bool has_wheels = !built_here(lock).empty();
  if (has_wheels) text += "    " + folder + " /opt/environment/" + folder + "\n";
  text += "\n%post\n    set -e\n    cd /opt/environment\n";
  if (has_wheels) text += "    " + check_wheels(lock, "      ");
  text += std::string("    ") + kInstall;
  text += "\n%runscript\n    exec python \"$@\"\n";
  return exported;
}

// JSON with comments, as the dev container specification has it. The editor and the CLI ask for the GPU where
// there is one ("optional").
Exported export_devcontainer(const EnvironmentLock& lock) {
  const Exported dockerfile = export_dockerfile(lock);
  Exported exported{"devcontainer.json", comment_header(lock, dockerfile.left_out, "// "),
                    dockerfile.left_out, dockerfile.next_to};
  exported.next_to.push_back({dockerfile.file_name, dockerfile.text});
  exported.text +=
      "{\n"
      "  \"name\": \"scankit\",\n"
      "  \"build\": {\"dockerfile\": \"Dockerfile\", \"context\": \".\"},\n"
      "  \"hostRequirements\": {\"gpu\": \"optional\"}\n"
      "}\n";
  return exported;
}

}  // namespace scankit::envspec
