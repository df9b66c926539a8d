// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/text.h"
#include "envspec/suggest/suggest.h"

namespace scankit::envspec {
namespace {

using Words = std::vector<std::string>;
using How = PackagePlan::How;

void add(Words& argv, const Words& words) { argv.insert(argv.end(), words.begin(), words.end()); }

// A name that programs read as another thing gets "./" in front: "-x" is an option, "~x" a home directory to conda, and
// "3.11" or "pypy" a Python to uv.
std::string as_path(const std::string& directory) {
  return directory.starts_with('/') || directory.starts_with('.') ? directory : "./" + directory;
}

class CommandWriter {
 public:
  CommandWriter(const SuggestedSet& set, const CommandRequest& request)
      : set_(set), request_(request), directory_(as_path(request.directory)) {}

  std::vector<std::string> all() {
    make_environment();
    install_torch();
    install_packages(How::Wheel);
    install_packages(How::Build);
    // Of which nothing is known: one that has to be built most likely asks for torch, which isolation would hide.
    install_packages(How::Index);
    fix();
    Words check = {"doctor", "--python", python()};
    if (!request_.archs.empty()) add(check, {"--gpu", request_.archs});
    lines_.push_back(request_.scankit + " " + shell_line(check));
    return std::move(lines_);
  }

 private:
  bool is_uv() const { return request_.installer.kind == SuggestInstaller::Kind::Uv; }
  std::string python() const { return directory_ + "/bin/python"; }
  std::string torch() const { return "torch==" + set_.torch_version; }
  // A prefix without a slash could be the name of an environment.
  std::string prefix() const {
    return directory_.find('/') == std::string::npos ? "./" + directory_ : directory_;
  }
  void run(const Words& argv) { lines_.push_back(shell_line(argv)); }

  void make_environment() {
    const SuggestInstaller& installer = request_.installer;
    if (is_uv()) return run({installer.program, "venv", "--python", set_.python, directory_});
    if (installer.kind == SuggestInstaller::Kind::Conda)
      // Without --yes, which conda takes as consent to remove what is at the prefix.
      return run({installer.program, "create", "--prefix", prefix(), "python=" + set_.python, "pip"});
    run({installer.program.empty() ? "python" + set_.python : installer.program, "-m", "venv", directory_});
  }

  Words install() const {
    return is_uv() ? Words{request_.installer.program, "pip", "install", "--python", directory_}
                   : Words{python(), "-m", "pip", "install"};
  }

  // pip has no name for PyTorch's archive, and an address would be wrong behind a mirror; uv knows it as a backend.
  void install_torch() {
    Words argv = install();
    if (!set_.build->on_index && !is_uv()) {
      Words uv = argv;
      uv.emplace_back("uv");
      run(uv);
      argv = {directory_ + "/bin/uv", "pip", "install", "--python", directory_};
    }
    if (!set_.build->on_index) argv.push_back("--torch-backend=" + set_.build->backend());
    argv.push_back(torch());
    add(argv, request_.extra);
    add(argv, needed_beside(set_));
    run(argv);
  }

  // torch is named again, so that no dependency moves it.
  void install_packages(How how) {
    Words packages, variables;
    for (const PackagePlan& plan : set_.packages) {
      if (plan.how != how) continue;
      packages.push_back(plan.requirement());
      if (how != How::Build) continue;
      variables.push_back(plan.row->force_build + "=TRUE");
      if (!plan.release->keep_build.empty()) variables.push_back(plan.release->keep_build + "=TRUE");
    }
    if (packages.empty()) return;
    install_tools();
    Words argv = variables.empty() ? Words{} : Words{"env"};
    add(argv, variables);
    add(argv, install());
    argv.emplace_back("--no-build-isolation");
    add(argv, packages);
    argv.push_back(torch());
    add(argv, needed_beside(set_));
    run(argv);
  }

  // What both setup.py import before pip reads their requirements: --no-build-isolation takes it from the
  // environment. torch up to 2.2 imports `packaging` from pkg_resources, which setuptools 70 took out.
  void install_tools() {
    if (tools_) return;
    tools_ = true;
    Words argv = install();
    add(argv, {set_.numpy.empty() ? "setuptools" : "setuptools<70", "wheel", "packaging", "ninja"});
    run(argv);
  }

  void fix() {
    Words argv = {"fix", "--yes", "--python", python()};
    const auto size = argv.size();
    for (const PackagePlan& plan : set_.packages)
      if (plan.how == How::Own) add(argv, {"--package", plan.requirement()});
    if (argv.size() == size) return;
    if (!request_.archs.empty()) add(argv, {"--arch", request_.archs});
    lines_.push_back(request_.scankit + " " + shell_line(argv));
  }

  const SuggestedSet& set_;
  const CommandRequest& request_;
  std::string directory_;
  std::vector<std::string> lines_;
  bool tools_ = false;
};

}  // namespace

std::string_view installer_word(SuggestInstaller::Kind kind) {
  constexpr std::string_view kWords[] = {"uv", "pip", "conda"};
  return kWords[static_cast<std::size_t>(kind)];
}

std::vector<std::string> commands_of(const SuggestedSet& set, const CommandRequest& request) {
  return CommandWriter(set, request).all();
}

}  // namespace scankit::envspec
