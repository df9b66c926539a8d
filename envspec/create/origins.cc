// SPDX-License-Identifier: Apache-2.0
// How the modules of a spec are got: by the resolver, as a wheel or from source, or from scankit itself.
#include <algorithm>
#include <filesystem>

#include "builder/fix/distribution.h"
#include "builder/fix/plan.h"
#include "builder/fix/transaction.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/report/progress.h"
#include "envspec/create/create.h"

namespace scankit::envspec {
namespace {

constexpr const char* kOwn = "scankit";

// As an installer's command line has it: "causal-conv1d>=1.5,<2".
std::string requirement_of(const std::string& package, const VersionRange& range) {
  std::string line = range.empty() ? package : requirement(package, range);
  std::erase(line, ' ');
  return line;
}

std::string path_of_field(const ExtensionSpec& one, const char* field) {
  return fmt::format("extensions.{}.{}", one.module, field);
}

// Which scankit has, and under which name its distribution is. Any other package would be asked of the index.
Result<void> check_own(const Spec& spec, const ExtensionSpec& one) {
  if (!checks::is_bundled_module(one.module))
    return Error{
        Errc::InvalidArgument,
        message("{}: scankit has no module {}", line_name(spec, path_of_field(one, "from")), one.module),
        message("name the package that contains it (`distribution`), without from: scankit")};
  const std::string own = normalized_name(fix::distribution_stem(one.module));
  if (one.distribution.empty() || normalized_name(one.distribution) == own) return {};
  return Error{Errc::InvalidArgument,
               message("{}: scankit's module is of the package {}, and not of {}",
                       line_name(spec, path_of_field(one, "distribution")), own, one.distribution),
               message("write {} as `package`, and leave `distribution` out", one.distribution)};
}

std::vector<std::string> fix_words(const Spec& spec, const ExtensionSpec& one, const std::string& python) {
  std::vector<std::string> words = {"fix", "--python", python, "--yes"};
  if (one.package.empty())
    words.insert(words.end(), {"--module", one.module});
  else
    words.insert(words.end(), {"--package", requirement_of(one.package, one.package_version)});
  if (!spec.gpus.empty()) words.insert(words.end(), {"--arch", join(spec.gpus, ",")});
  return words;
}

// Its setup.py imports torch, which a build in isolation would look for in vain: that of mamba-ssm and causal-conv1d, and
// of whatever is linked with torch.
bool builds_against_torch(const ExtensionSpec& one) {
  const bool linked = !one.torch_abi.empty() && one.torch_abi != "none";
  return one.from == "source" && !one.distribution.empty() &&
         (linked || fix::model_package(one.distribution) != nullptr);
}

// The journal and the backup of a fix name the path where the environment is made, and there is no earlier
// state that anybody had.
Result<void> forget_state(const std::string& environment) {
  std::error_code code;
  std::filesystem::remove_all(fix::StateFolder(environment).root(), code);
  if (!code) return {};
  return Error{Errc::Io,
               message("cannot remove {}: {}", fix::StateFolder(environment).root(), code.message()), ""};
}

}  // namespace

ResolverWish resolver_wish(const Spec& spec) {
  ResolverWish wish;
  const auto add = [&](std::vector<std::string>& list, const std::string& line) {
    if (std::ranges::find(list, line) == list.end()) list.push_back(line);
  };
  const bool ours = std::ranges::any_of(spec.extensions, [](const ExtensionSpec& one) {
    return one.from == kOwn || builds_against_torch(one);
  });
  if (!spec.torch.empty() || !spec.cuda.empty() || !spec.string_abi.empty() || ours)
    add(wish.requirements, requirement_of("torch", spec.torch));
  for (const ExtensionSpec& one : spec.extensions) {
    if (one.from == kOwn || one.distribution.empty()) continue;
    if (builds_against_torch(one)) {
      add(wish.against_torch, requirement_of(one.distribution, one.version));
      for (const std::string& code : one.code.empty() ? spec.gpus : one.code) add(wish.code, code);
      continue;
    }
    add(wish.requirements, requirement_of(one.distribution, one.version));
    if (one.from == "wheel") add(wish.only_wheels, one.distribution);
    if (one.from == "source") add(wish.only_sources, one.distribution);
  }
  return wish;
}

// Asked before gigabytes of torch are installed, after which the comparison with the spec would find the
// module missing.
Result<void> check_origins(const Spec& spec, const std::string& folder) {
  for (const ExtensionSpec& one : spec.extensions) {
    if (one.from == kOwn) {
      SCANKIT_CHECK(check_own(spec, one));
    } else if (!one.package.empty()) {
      return Error{Errc::InvalidArgument,
                   message("{}: it is only for modules with from: scankit",
                           line_name(spec, path_of_field(one, "package"))),
                   message("write it as `distribution`")};
    } else if (one.distribution.empty()) {
      const bool ours = checks::is_bundled_module(one.module);
      return Error{Errc::InvalidArgument,
                   message("{} names no package that contains {}, and nothing was made",
                           line_name(spec, "extensions." + one.module), one.module),
                   ours ? message("write from: scankit for scankit's own module, or add its `distribution`")
                        : message("add its `distribution`; or take it out of the spec, make the environment "
                                  "{}, and install the module in it afterwards",
                                  shell_quoted(folder))};
    }
  }
  return {};
}

Result<void> install_own_modules(const Spec& spec, const std::string& environment, const std::string& folder,
                                 const std::string& cache_dir) {
  const std::string python = path_join(environment, "bin/python");
  for (const ExtensionSpec& one : spec.extensions) {
    if (one.from != kOwn) continue;
    report::Progress progress;
    progress.act(one.package.empty() ? say("installing scankit's {}", one.module)
                                     : say("installing {} with scankit's {}", one.package, one.module));
    std::vector<std::string> words = {"--lang", "en"};
    std::ranges::copy(fix_words(spec, one, python), std::back_inserter(words));
    words.emplace_back("--json");
    if (!cache_dir.empty()) words.insert(words.end(), {"--cache-dir", cache_dir});
    SCANKIT_TRY(const ProcessResult done, run_ourselves(std::move(words)));
    if (!done.ok())
      return Error{Errc::ToolFailed, message("scankit fix cannot install {}: {}", one.module, why_of(done)),
                   message("to see all of its output, make the environment without {} in the spec, then run: "
                           "scankit {}",
                           one.module, shell_line(fix_words(spec, one, path_join(folder, "bin/python"))))};
  }
  return forget_state(environment);
}

}  // namespace scankit::envspec
