// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "doctor/base/message.h"
#include "doctor/base/version.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/knowledge/python_names.h"
#include "doctor/logs/classify.h"
#include "doctor/logs/known_names.h"
#include "doctor/logs/module_names.h"
#include "doctor/logs/name_history.h"

namespace scankit::logs {
namespace {

// The file of the program's own sources lies in the directory that should have the module: those are whole but for
// what a compiler makes.
bool is_next_to(const std::string& file, std::string name) {
  name.resize(name.rfind('.'));
  std::ranges::replace(name, '.', '/');
  const std::string directory = file.substr(0, file.rfind('/'));
  return file.find("-packages/") == std::string::npos && directory.ends_with('/' + name);
}

// torch, or a part of it, that Python did not find.
Judged judge_torch_module(const std::string& name, const Surroundings& around) {
  if (name == "torch" && around.building)
    return verdict("torch_missing_at_build", "certain",
                   message("the setup script imports torch, but the environment in which it runs has none"));
  if (name == "torch" && around.program)
    return verdict("missing_python_dependency", "likely", message("this Python has no torch"),
                   message("which Python ran: sys.executable"), {"torch_missing_at_build"});
  if (name == "torch")
    return verdict("torch_missing_at_build", "possible", message("this Python has no torch"),
                   message("whether it was a build, in which pip hides the installed torch, or a program"));
  // Builds for macOS, Windows and Jetson may leave parts out.
  if (name == "torch._C._distributed_c10d")
    return verdict("", "likely", message("this torch is built without {}", name),
                   message("torch.distributed.is_available()"), {"torch_incomplete"});
  if (name == "torch._C" || name.starts_with("torch._C."))
    return verdict("torch_incomplete", "likely",
                   message("torch's Python files are installed but its compiled part is not"),
                   message("whether the current directory contains a directory named torch"));
  const NameHistory history = history_of(name, "");
  const bool not_yet = history.why == Lacking::NotYet;
  Judged judged = verdict(not_yet ? "torch_too_old_for_sources" : "torch_api_removed_in_source", "likely",
                          lacking_because(history, name, "", message("this torch has no {}", name)),
                          message("the torch release that the program was written for"),
                          {not_yet ? "torch_api_removed_in_source" : "torch_too_old_for_sources"});
  add_history(history, judged);
  return judged;
}

// A variant of selective_scan_cuda is built from the sources of its project; of any other module a file is missing.
Judged judge_compiled_module(const std::string& name) {
  if (name.starts_with("selective_scan_cuda_"))
    return verdict("module_not_built", "likely",
                   message("{} is a variant that the project builds from its own sources; mamba-ssm has no "
                           "module of that name",
                           name),
                   message("which selective_scan_cuda* files are installed"),
                   {"variant_name_mismatch", "project_module_missing"});
  return verdict("module_not_built", "likely",
                 message("this Python has no file of the compiled module {}", name),
                 message("the files of that name on sys.path, and their .cpython-3XY tags"),
                 {"python_abi_tag_mismatch", "variant_name_mismatch"});
}

// Of a package that Python found, or its name would be the missing one: a part of it.
Judged judge_missing_part(const std::string& top, const std::string& name, const Surroundings& around) {
  if (is_next_to(around.caller, name))
    return verdict(
        "module_not_built", "possible",
        message("{} has no {} next to the file that imports it: most often a part that is compiled", top,
                name),
        message("the setup.py of the project, and whether it was run"), {"package_releases_differ"});
  if (is_named_like_a_class(name))
    return verdict("", "certain", message("{} is imported as a module and has the name of a class", name));
  const Message otherwise =
      message("the installed {} has no part {}: the program needs another release", top, name);
  return verdict("package_releases_differ", "likely",
                 lacking_because(history_of(name, ""), name, "", otherwise),
                 message("the release of {}", top), {"fork_needed"});
}

// The program lies in a directory that has the module's name and the ending of a downloaded archive of a branch.
bool is_renamed_checkout(const std::string& module, const std::string& file) {
  return file.find('/' + module + "-master/") != std::string::npos ||
         file.find('/' + module + "-main/") != std::string::npos;
}

}  // namespace

// Decides by the name of a module that Python did not find (ModuleNotFoundError).
Judged judge_module(const Captures& captures, const Surroundings& around) {
  const std::string name = captures.contains("name") ? capture(captures, "name") : capture(captures, "name2");
  const auto top = name.substr(0, name.find('.'));
  Judged judged;
  if (top == "torch")
    judged = judge_torch_module(name, around);
  else if (top == "triton")
    judged = verdict("triton_incompatible", "certain", message("{} is not installed", name));
  else if (top == "transformers")
    judged =
        verdict("transformers_incompatible", "likely",
                lacking_because(history_of(name, ""), name, "", message("this transformers has no {}", name)),
                message("the release of transformers"));
  else if (name == "ninja")
    judged = verdict("ninja_missing", "certain", message("Python has no ninja"));
  else if (name == "causal_conv1d.cpp_functions")
    judged = verdict("silent_none_causal_conv1d", "likely",
                     message("this causal-conv1d is older than the mamba-ssm that calls it"),
                     message("the releases of both packages"));
  else if (name.starts_with("selective_scan_cuda_") || looks_compiled(name) || is_private_module(name))
    judged = judge_compiled_module(name);
  else if (is_of_a_program(top))
    judged = verdict("", "certain",
                     message("the program does not find its own {}: it was started in another directory, or "
                             "its directory is not on sys.path",
                             name),
                     message("the current directory, and PYTHONPATH"));
  else if (is_renamed_checkout(top, around.caller))
    judged = verdict(
        "", "likely",
        message("the program's own directory has another name than {}, under which it is imported", top),
        message("the name of the directory of the checkout"));
  else if (top == name && (knowledge::is_model_package(name) ||
                           (is_extension_package(name) && (around.program || !around.frames) &&
                            !around.building && around.caller.find("/site-packages/") == std::string::npos)))
    judged =
        verdict("package_not_installed", "certain", message("the Python package {} is not installed", name),
                message("which Python ran: sys.executable"));
  else if (is_of_unix(name, ""))
    judged = verdict("windows", "likely", message("{} is a part of Python on Unix only", name),
                     message("the system on which the program runs"));
  else if (knowledge::is_of_python(top) || knowledge::optional_part_of_python(name) || is_of_windows(name))
    judged = judge_part_of_python(name, "", around);
  // A top-level name that nothing above knows is a package that is missing; a dotted one is a part that an
  // installed package does not have.
  else if (top == name || is_in_a_namespace(top, name))
    judged = verdict("missing_python_dependency", "likely",
                     message("the Python package {} is not installed", name),
                     message("which Python ran: sys.executable"));
  else
    judged = judge_missing_part(top, name, around);
  if (top != name) add_history(history_of(name, ""), judged);
  judged.more["module"] = name;
  return judged;
}

namespace {

// torchaudio's set_audio_backend ends like a compiled module's name.
bool is_named_like_a_function(const std::string& name) {
  return starts_with_any(name, {"set_", "get_", "list_", "has_", "is_", "use_", "init_", "register_"});
}

// Of a name without its package, as Python before 3.7 prints it. A program may lack one of its own names; what an
// installed package imports is another's.
Judged judge_name_alone(const std::string& name, const Surroundings& around) {
  if (is_of_a_fork(name))
    return verdict("fork_needed", "likely", message("no installed package has {}", name),
                   message("the directory of mamba in the repository"), {"package_releases_differ"});
  if (name.starts_with("flash_attn_") || is_called_by_a_package(around))
    return verdict("package_releases_differ", "possible",
                   message("an installed package has no {}, which another one imports", name),
                   message("the releases of both packages"));
  return verdict("", "certain", message("a package or file has no {}, which is imported from it", name));
}

// Of Python's os and signal, which have what the system has.
Judged posix_name(const std::string& package, const std::string& name) {
  if (is_of_unix(package, name))
    return verdict("windows", "likely", message("{}.{} is a part of Python on Unix only", package, name),
                   message("the system on which the program runs"));
  return verdict("", "certain", message("Python's {} has no {}", package, name));
}

Judged is_lacking(const std::string& package, const std::string& name, std::string cause, std::string sure,
                  std::vector<std::string> others) {
  const NameHistory history = history_of(package, name);
  Judged judged = verdict(
      std::move(cause), std::move(sure),
      lacking_because(history, package, name,
                      message("the installed {} has no {}, which is used from it", package, name)),
      message("the release of {}, and the one that its caller names", package.substr(0, package.find('.'))),
      std::move(others));
  add_history(history, judged);
  return judged;
}

// Without which torch is not whole, whatever its release.
bool is_a_part_of_torch(const std::string& package, const std::string& name) {
  return (package == "torch._C" && name.starts_with("_cuda_")) ||
         (package == "torch" && (name == "_C" || is_of_every_torch(name)));
}

Judged judge_part_of_torch(const std::string& package, const std::string& name) {
  if (package == "torch._C")
    return verdict("cpu_only_torch", "likely", message("this torch has no CUDA part: {}", name),
                   "torch.version.cuda", {"torch_incomplete"});
  if (name == "_C")
    return verdict("torch_incomplete", "likely",
                   message("torch's Python files were found without its compiled part"),
                   message("whether the current directory contains a directory named torch"));
  return verdict(
      "", "certain", message("what was imported as torch is not torch: it has no {}", name),
      message("torch.__file__, and whether the current directory contains a file or directory named torch"),
      {"torch_incomplete"});
}

// A name that other releases of torch have. An installed package is not sources that could be built for this torch:
// another release of it is needed.
Judged judge_name_of_another_torch(const std::string& package, const std::string& name, Lacking why,
                                   const Surroundings& around) {
  std::string cause = why == Lacking::NotYet ? "torch_too_old_for_sources" : "torch_api_removed_in_source";
  std::string other = "package_releases_differ";
  if (is_called_by_a_package(around)) std::swap(cause, other);
  return is_lacking(package, name, std::move(cause), "likely", {std::move(other)});
}

// The file of the program that Python found in the place of the package, "" if none is known to be one. The directory of
// the script comes first on sys.path: under its name, every import finds the script.
std::string hiding_of(const std::string& package, const std::string& place, const Surroundings& around) {
  if (is_of_a_program(package.substr(0, package.find('.')))) return "";
  if (place.empty() && !package.empty() && around.script == package) return package + ".py";
  return hiding_file(package, place);
}

// Of a package that has causes of its own, whichever of its names is missing.
std::optional<Judged> judge_name_of_known(const std::string& package, const std::string& name) {
  const auto top = package.substr(0, package.find('.'));
  if (top == "transformers") return is_lacking(package, name, "transformers_incompatible", "certain", {});
  if (top == "triton") return is_lacking(package, name, "triton_incompatible", "certain", {});
  if (package == "torch.utils._pytree")
    return verdict("transformers_incompatible", "likely",
                   message("this transformers needs a newer torch: torch has no {}", name),
                   message("the releases of torch and transformers"));
  if (top == "pkg_resources" || top == "setuptools" || top == "distutils" || top == "pkgutil")
    return verdict("setuptools_parts_missing", "certain",
                   message("{} no longer has {}, which the build uses", package, name));
  return std::nullopt;
}

}  // namespace

// Decides by a name that a package does not have, imported from it or asked of it. `place` is where Python found
// the package, "" where the log does not say it.
Judged judge_name(const Captures& captures, const Surroundings& around) {
  const auto either = [&](const std::string& one, const std::string& other) {
    return capture(captures, one).empty() ? capture(captures, other) : capture(captures, one);
  };
  const std::string name = either("name", "name2"), package = either("package", "package2");
  const std::string place = capture(captures, "place");
  const auto top = package.substr(0, package.find('.'));
  const bool installed = place.find("-packages") != std::string::npos;
  const auto lacks = [&](std::string cause, std::string sure, std::vector<std::string> others = {}) {
    return is_lacking(package, name, std::move(cause), std::move(sure), std::move(others));
  };
  const Lacking why = history_of(package, name).why;
  Judged judged;
  const std::string hiding = hiding_of(package, place, around);
  if (!hiding.empty())
    judged = hidden_by(hiding, package);
  else if (is_a_part_of_torch(package, name))
    judged = judge_part_of_torch(package, name);
  // Each project that renders Gaussians has its own changed copy of the rasteriser, under one name.
  else if ((top.starts_with("diff_gaussian_rasterization") && place.ends_with(".so")) ||
           (is_of_a_fork(name) && !package.empty()))
    judged = lacks("fork_needed", "likely", {"package_releases_differ"});
  else if ((looks_compiled(package) || package.ends_with(".backend")) && top != "torch" &&
           is_of_the_gpu(package, name))
    judged =
        verdict("built_without_cuda", "likely",
                message("the compiled part of {} has no {}: it was built without its CUDA code", top, name),
                message("whether nvcc and a GPU were found when it was built"), {"module_not_built"});
  else if ((looks_compiled(name) && why == Lacking::Unknown && !is_named_like_a_function(name)) ||
           (looks_compiled(package) && package != "torch._C"))
    judged = verdict("module_not_built", "likely",
                     message("the compiled part of {} is missing, or was built without {}", top, name),
                     message("the files next to {}/__init__.py", top), {"package_releases_differ"});
  // `import nvdiffrast`, and then nvdiffrast.torch, a part that has to be imported by itself.
  else if (name == "torch" && around.program)
    judged =
        verdict("", "likely", message("{} is a part of {} that the program does not import", name, package));
  else if (auto known = judge_name_of_known(package, name))
    judged = *std::move(known);
  else if (package.empty())
    judged = judge_name_alone(name, around);
  else if (top == "torch" && why != Lacking::Unknown)
    judged = judge_name_of_another_torch(package, name, why, around);
  else if (package == "os" || package == "signal")
    judged = posix_name(package, name);
  else if (knowledge::is_of_python(top))
    judged = judge_part_of_python(package, name, around);
  else if (is_of_a_program(top) && !installed)
    judged = verdict("", "certain", message("the program's own {} has no {}", package, name));
  else
    judged = lacks("package_releases_differ", installed || top == "torch" ? "likely" : "possible",
                   {"transformers_incompatible", "package_overwritten"});
  return judged;
}

// Decides by a class of tokenizer that transformers does not find. The table does not tell a class of every release,
// which needs a package such as sentencepiece, from one of no release, which belongs to a model whose repository contains
// its code.
Judged judge_tokenizer(const Captures& captures) {
  const std::string name = capture(captures, "name");
  const NameHistory history = history_of("transformers", name);
  // Nobody has a transformers that is older than 4: what came before it lacks its package.
  const bool came = !history.first.empty() && meets(history.first, ">=4");
  if (!came && history.gone.empty())
    return verdict(
        "", "likely",
        message("transformers does not find {}: the class comes with the model, and is loaded only with "
                "trust_remote_code=True, or it needs a package such as sentencepiece",
                name),
        message("the files of the model, and pip list of sentencepiece and tiktoken"));
  Judged judged =
      verdict("transformers_incompatible", "likely", lacking_because(history, "transformers", name, {}),
              message("the release of transformers, and pip list of sentencepiece and tiktoken"),
              {"missing_python_dependency"});
  add_history(history, judged);
  return judged;
}

// Decides by a call that Python refused. The arguments are the caller's: if that is an installed package, it was
// written for another release of what it calls. A program that calls wrongly is no fault of the installation.
Judged judge_call(const Captures& captures, const Surroundings& around) {
  const std::string function = capture(captures, "function");
  if (around.caller.find("-packages/") == std::string::npos)
    return verdict("", "certain", message("{} is called with arguments that it does not accept", function));
  return verdict("package_releases_differ", "possible",
                 message("{} calls {} with arguments that the installed release does not accept",
                         around.caller.substr(around.caller.rfind("-packages/") + 10), function),
                 message("the releases of both packages"), {"transformers_incompatible"});
}

}  // namespace scankit::logs
