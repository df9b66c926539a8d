// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/extensions/extensions.h"

#include "doctor/base/say.h"
#include "doctor/probes/extensions/extension_files.h"
#include "doctor/probes/extensions/extension_inspect.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/misfits.h"

namespace scankit {
namespace {

std::string machine_of_python(const Host& host, const Snapshot& so_far) {
  auto source = host.open(so_far.python.value.executable);
  if (!source) return "";
  const auto identity = identify_elf(FileBytes(std::shared_ptr<const ByteSource>(*std::move(source))));
  return identity ? machine_name(*identity) : "";
}

}  // namespace

Probed<std::vector<Extension>> probe_extensions(const Host& host, const Snapshot& so_far,
                                                const std::vector<std::string>& modules,
                                                std::vector<std::string>& torch_missing,
                                                std::vector<Misfit>* torch_misfits) {
  using Answer = Probed<std::vector<Extension>>;
  if (!so_far.python.present()) return Answer::failed(say("no Python to look at: {}", so_far.python.note));
  FolderListings listings(host);
  ExtensionResolver resolver(host, so_far);
  torch_missing = resolver.torch_missing();
  if (torch_misfits != nullptr) *torch_misfits = misfits_of_torch(host, so_far, resolver);
  const std::string machine = machine_of_python(host, so_far);

  std::vector<Extension> found;
  for (const std::string& module : modules) {
    for (Extension& copy : find_copies(host, so_far, module, listings)) {
      if (inspect_file(host, copy) != nullptr && (machine.empty() || copy.machine == machine)) {
        resolver.resolve(copy);
        if (copy.resolved && copy.selected)
          copy.misfits = misfits_of_module(host, so_far, resolver, copy.path);
      } else {
        copy.resolution_note = copy.file_state == "elf"
                                   ? say("made for {}, the interpreter for {}", copy.machine, machine)
                                   : say("the file is no whole library: {}", copy.file_state);
      }
      found.push_back(std::move(copy));
    }
  }
  Answer answer = Answer::of(std::move(found));
  for (const std::string& line : listings.unreadable())
    answer.note += (answer.note.empty() ? "" : "; ") + line;
  return answer;
}

}  // namespace scankit
