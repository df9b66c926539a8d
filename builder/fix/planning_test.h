// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "builder/fix/plan.h"

// Invented reports of one environment, and the plans that are made of them.
namespace scankit::fix {

inline constexpr const char* kModule = "selective_scan_cuda";
inline const InstallTarget kPlace = {"/env", "/env/lib/python3.11/site-packages", ""};

inline Extension copy_at(const std::string& path, int index, bool selected) {
  Extension copy;
  copy.module = kModule;
  copy.path = copy.real_path = path;
  copy.sys_path_index = index;
  copy.selected = selected;
  return copy;
}

inline Report report_of(std::vector<Extension> extensions) {
  Report report;
  Python python{.requested = "/env/bin/python", .prefix = "/env"};
  python.extension_suffixes = {".cpython-311-x86_64-linux-gnu.so", ".abi3.so", ".so"};
  python.sys_path = {
      {"/work/here", "cwd", true}, {"/extra", "pythonpath", true}, {kPlace.site, "site", true}};
  report.snapshot.python = Probed<Python>::of(python);
  report.snapshot.modules = {kModule};
  report.snapshot.extensions = Probed<std::vector<Extension>>::of(std::move(extensions));
  return report;
}

inline void add_error(Report& report, Fix fix, const std::string& module = kModule,
                      Cause cause = Cause::CorruptBinary) {
  report.verdict = Verdict::Broken;
  report.findings.push_back({.cause = cause,
                             .subject = "file",
                             .module = module,
                             .summary = "the file is broken",
                             .fixes = {std::move(fix)}});
}

inline FixPlan plan_of(const Report& report, PlanRequest request = {}) {
  const auto host = make_real_host();
  if (request.place.site.empty()) request.place = kPlace;
  auto plan = plan_fix(*host, report, request);
  EXPECT_TRUE(plan);
  return plan ? *plan : FixPlan{};
}

// A Python with pip, in a folder that is no conda and no uv project.
inline Report with_pip(Report report) {
  report.snapshot.python.value.has_pip = true;
  report.snapshot.python.value.kind = "venv";
  report.snapshot.distributions =
      Probed<std::vector<Distribution>>::of({{.name = "torch", .version = "2.11.0"}});
  return report;
}

}  // namespace scankit::fix
