// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/model/snapshot.h"

// Key order is the order of the fields; absent keys keep the
// field's default, so an older snapshot stays readable.
#define SCANKIT_FIELDS NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT

namespace nlohmann {
template <class T>
struct adl_serializer<std::optional<T>> {
  template <class Json>
  static void to_json(Json& json, const std::optional<T>& value) {
    json = value ? Json(*value) : Json(nullptr);
  }
  template <class Json>
  static void from_json(const Json& json, std::optional<T>& value) {
    if (json.is_null())
      value.reset();
    else
      value = json.template get<T>();
  }
};
}  // namespace nlohmann

namespace scankit {

NLOHMANN_JSON_SERIALIZE_ENUM(ProbeState, {{ProbeState::NotRun, "not-run"},
                                          {ProbeState::Failed, "failed"},
                                          {ProbeState::Absent, "absent"},
                                          {ProbeState::Present, "present"}})

template <class Json, class T>
void to_json(Json& json, const Probed<T>& probed) {
  json = Json{{"state", probed.state}};
  if (!probed.note.empty()) json["note"] = probed.note;
  if (probed.present()) json["value"] = probed.value;
}
template <class Json, class T>
void from_json(const Json& json, Probed<T>& probed) {
  probed.state = json.value("state", ProbeState::NotRun);
  if (json.contains("note")) probed.note = json.at("note").template get<Message>();
  if (json.contains("value")) probed.value = json.at("value").template get<T>();
}

SCANKIT_FIELDS(Os, id, version_id, pretty_name, kernel, machine, wsl, l4t, container)
SCANKIT_FIELDS(LibC, kind, version, path)
SCANKIT_FIELDS(LibStdCxx, path, glibcxx_max, cxxabi_max)
SCANKIT_FIELDS(Cpu, model, logical, features)
SCANKIT_FIELDS(Memory, total, available, cgroup_limit)
SCANKIT_FIELDS(Disk, path, free, writable)
SCANKIT_FIELDS(Driver, version, source, libcuda, libcuda_version, cuda_version, libcuda_kind, libcuda_reached,
               libnvidia_ml, libnvidia_ml_version, compat, compat_version, nvml_error, stubs, mig)
SCANKIT_FIELDS(Gpu, index, name, pci_address, pci_device, sm, sm_source, memory, uuid, details)
SCANKIT_FIELDS(Toolkit, root, nvcc, version)
SCANKIT_FIELDS(Compiler, path, kind, version)
SCANKIT_FIELDS(PathEntry, path, origin, exists)
SCANKIT_FIELDS(Distribution, name, version, path, installer, editable, project, conda_channel)
SCANKIT_FIELDS(DeclaredPackage, distribution, file, modules, variables, least_torch, isolated, problem)
SCANKIT_FIELDS(Python, requested, executable, version, implementation, soabi, extension_suffixes, prefix,
               base_prefix, kind, free_threaded, has_pip, externally_managed, user_site_enabled, sys_path,
               pth_code_lines, editable_finders)
SCANKIT_FIELDS(Library, path, soname, build_id, needed)
SCANKIT_FIELDS(NvidiaWheel, name, version, libraries)
SCANKIT_FIELDS(DeviceImage, kind, sm, specific, isa, compression, size, toolkit, elf_abi)
SCANKIT_FIELDS(BindingMismatch, needed_by, name, version, soname, library, found_by, wheel,
               without_library_path)
SCANKIT_FIELDS(CudaPin, requirement, name, installed, met)
SCANKIT_FIELDS(TorchNeed, soname, version, needed_by, why)
SCANKIT_FIELDS(Torch, version, cuda, git, hip, debug, distribution_version, location, string_abi,
               cxx_standard, libraries, nvidia_wheels, missing_libraries, images, mismatches, cuda_pins)
SCANKIT_FIELDS(MissingSymbol, name, version, demangled, owner, flipped_exported_by, near, exported_by_torch)
SCANKIT_FIELDS(MissingLibrary, soname, needed_by, searched, found_elsewhere, same_library_other_version)
SCANKIT_FIELDS(UnmetVersion, library, version, provided_max, needed_by, symbols)
SCANKIT_FIELDS(BuiltFor, file, together, dated, releases, torch_min, torch_max, between_known_releases,
               stable_abi, string_abi, glibc_min, cuda_major, python_tag, torch_names, unknown_names,
               why_not_narrower, evidence)
SCANKIT_FIELDS(Extension, module, path, real_path, distribution, sys_path_index, selected, shadowed,
               why_not_selected, tag, file_state, file_detail, size, machine, soname, build_id, rpath,
               runpath, needed, has_init, inits, resolved, resolution_note, undefined, provided,
               missing_symbols, missing_libraries, needs_torch_first, unmet_versions, closure, images,
               string_abi, pybind_internals, cuda_major, glibc_min, glibcxx_min, uses_torch, built_for,
               registers_ops, undecided, taken_on_trust, mismatches, executable_stack)
SCANKIT_FIELDS(Importer, package, version, file, line, module, caught, masked, masked_value, in_function,
               before_torch)
SCANKIT_FIELDS(Observation, module, variant, outcome, why_not_run, exception, message, file, signal,
               duration_ms, reads_as, reading, signatures, lacks, missing, raised_at, raised_through)
SCANKIT_FIELDS(Wheel, path, name, version, python_tags, abi_tags, platform_tags, tags_from, members)
SCANKIT_FIELDS(ExportTable, path, soname, global, needed, versions, count, names)
SCANKIT_FIELDS(Exports, libraries)
SCANKIT_FIELDS(UnfinishedRepair, journal, state, module, running)
SCANKIT_FIELDS(MissingRequirement, distribution, version, root, requirement, name, package, guessed, file,
               line)
SCANKIT_FIELDS(PackageFound, name, version, path, current_folder)
SCANKIT_FIELDS(PackageCall, package, version, file, line, callee, arguments)
SCANKIT_FIELDS(PythonFunction, name, file, line, least, most)
SCANKIT_FIELDS(ModuleTexts, module, path, read, arguments, defaults, open_ended, build_trace, installed)
SCANKIT_FIELDS(PackageImport, package, version, file, line, target, name, when, reached, loaded, caught,
               masked_value, tested, called_at, offered, why, target_package, target_version, target_path)
SCANKIT_FIELDS(PackageBuild, package, distribution, version, module, wheel, tags, lists_module, opt_in, file,
               line)
SCANKIT_FIELDS(UnmetRequirement, distribution, version, root, requirement, name, installed)
SCANKIT_FIELDS(SharedPackage, package, file, owners, records, hidden)
SCANKIT_FIELDS(Packages, found, calls, imports, functions, texts, torch_installed, torch_record,
               torch_brought_by, triton_pin, builds, unmet, shared)
SCANKIT_FIELDS(ProjectModule, module, built_by, setup, setup_line, path)
SCANKIT_FIELDS(ProjectImport, module, file, line, caught, masked_value, in_function, program, used_at)
SCANKIT_FIELDS(LayerImport, file, line, name, needs)
SCANKIT_FIELDS(Project, folder, modules, imports, layers, files, whole)
SCANKIT_FIELDS(LogFact, name, value)
SCANKIT_FIELDS(LogHit, rule, cause, role, sure, line, text, meaning, settles, file, module, alternatives,
               facts)
SCANKIT_FIELDS(LogLine, line, text)
SCANKIT_FIELDS(Log, source, alone, bytes, lines, hits, built_for, unexplained)
SCANKIT_FIELDS(CommandInterpreter, path, directory, other_root, modules)
SCANKIT_FIELDS(CommandPlace, file, line, function, source, importing, module)
SCANKIT_FIELDS(RanCommand, words, directory, exit_status, signal, end, duration_ms, output_bytes, output_cut,
               memory_kills, memory_kills_of_machine, crashed_in, examined, programs, interpreters, at)
SCANKIT_FIELDS(AuditedSymbol, name, version, owner, needed_by, flipped_exported_by)
SCANKIT_FIELDS(AuditedLibrary, soname, needed_by)
SCANKIT_FIELDS(AuditedVersion, library, version, needed_by)
SCANKIT_FIELDS(AuditedFile, path, distribution, file_state, file_detail, machine, not_for_this_python,
               uses_torch, resolved, resolution_note, missing_libraries, missing_symbols, unmet_versions,
               settled_by, built_for, executable_stack)
SCANKIT_FIELDS(Audit, files, libraries, folders, packages, unreadable)
SCANKIT_FIELDS(AskedPackage, name, path)
SCANKIT_FIELDS(SourceFact, file, line, value, guards)
SCANKIT_FIELDS(SourceTree, folder, name, asked, build_file, homepage, unpacked_archive, imports_torch,
               wants_ninja, generates, fetches_wheel, renames_wheel, own_helpers, has_pyproject,
               avoids_isolation, build_requires, modules, cuda, has_kernels, sources, missing, standards,
               archs, passes_archs, sets_arch_list, asks_gpu, minimum_cuda, type_dispatch, lost_headers,
               cuda_headers, full_headers, not_read, opt_in, opt_in_name, opted_in)
SCANKIT_FIELDS(CudaHeader, name, path)
SCANKIT_FIELDS(HostCompiler, role, path, kind, version, chosen_by)
SCANKIT_FIELDS(BuildPlace, role, path, free, device)
SCANKIT_FIELDS(BuildTools, cuda_home, cuda_home_from, nvcc, nvcc_version, nvcc_archs, limits_file, gcc_max,
               clang_min, clang_max, limits_waived, torch_gcc_below, torch_clang_below, gcc_min, headers,
               host_compilers, python_include, python_header, ninja, jobs, jobs_from, arch_list, torch_archs,
               named_archs, arch_list_needs_gpu, cpu_index, torch_has_headers, dispatch_takes_type, places)
SCANKIT_FIELDS(BrokenEnvironment, origin, path, reason, repair, command)
SCANKIT_FIELDS(Snapshot, schema, tool_version, target_root, described, named_files, read_from, wheels,
               modules, modules_asked, packages_asked, environment, broken_environment, os, libc, libstdcxx,
               cpu, memory, disk, driver, gpus, toolkits, compilers, python, distributions, declared, torch,
               extensions, built_for, importers, observations, sources, build_tools, log, command, audit,
               reachable, exports, packages, repairs, missing_requirements, package_importers, project)

namespace {
using Json = nlohmann::json;

std::string dump(const Json& json) { return json_document(json); }

Error unreadable_snapshot(const Message& why) {
  return {Errc::Malformed, message("not a readable snapshot: {}", why),
          message("make one with: scankit snapshot --out FILE")};
}

// The part that cannot be read by itself either: the library does not say where it was.
std::string wrong_field(const Json& json) {
  for (const auto& [name, value] : json.items()) try {
      (void)Json{{name, value}}.get<Snapshot>();
    } catch (const Json::exception&) {
      return name;
    }
  return "schema";
}
}  // namespace

std::string snapshot_to_json(const Snapshot& snapshot) { return dump(Json(snapshot)); }

Result<Snapshot> snapshot_from_json(std::string_view text) {
  auto parsed = parse_bounded_json(text);
  if (!parsed) return unreadable_snapshot(parsed.error().message);
  const Json json = *std::move(parsed);
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_number_integer())
    return Error{Errc::Malformed, message("not a scankit snapshot: the field \"schema\" is missing"),
                 message("make one with: scankit snapshot --out FILE")};
  const int schema = json["schema"].get<int>();
  if (schema > kSnapshotSchema)
    return Error{Errc::Unsupported,
                 message("the snapshot has schema {}, this scankit reads up to {}", schema, kSnapshotSchema),
                 message("use the scankit that wrote it, or a newer one")};
  try {
    return json.get<Snapshot>();
  } catch (const Json::exception& problem) {
    return unreadable_snapshot(
        message("its field \"{}\": {}", wrong_field(json), plain_json_problem(problem.what())));
  }
}

Result<std::string> snapshot_fact(const Snapshot& snapshot, const std::string& pointer) {
  try {
    const Json json = Json(snapshot);
    const Json& fact = json.at(Json::json_pointer(pointer));
    return fact.is_string() ? fact.get<std::string>() : dump_json(fact);
  } catch (const Json::exception&) {
    return Error{Errc::NotFound, message("the snapshot contains no fact {}", pointer), ""};
  }
}

}  // namespace scankit
