// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <charconv>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/selftest/faults.h"

namespace scankit {
namespace {

unsigned minor_of(const std::string& version) {
  unsigned minor = 0;
  if (version.starts_with("3.")) std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

}  // namespace

// A pyvenv.cfg and a link are all that makes a virtual environment (PEP 405); `python -m venv` would run.
Result<Scratch> make_scratch(const Snapshot& facts, const std::string& folder, bool torch) {
  const Python& python = facts.python.value;
  Scratch scratch;
  scratch.folder = folder;
  scratch.minor = minor_of(python.version);
  scratch.python = folder + "/bin/python";
  scratch.site = say("{}/lib/python3.{}/site-packages", folder, scratch.minor);
  scratch.suffix = "." + python.soabi + ".so";
  SCANKIT_CHECK(make_directories(folder + "/bin"));
  SCANKIT_CHECK(make_directories(scratch.site));
  SCANKIT_CHECK(write_file_atomically(
      folder + "/pyvenv.cfg", "home = " + path_dirname(python.executable) +
                                  "\ninclude-system-site-packages = false\nversion = " + python.version +
                                  "\n"));
  if (::symlink(python.executable.c_str(), scratch.python.c_str()) != 0)
    return Error{Errc::Io, say("cannot make the link {}", scratch.python), ""};
  if (torch) {
    scratch.string_abi = facts.torch.value.string_abi;
    SCANKIT_CHECK(write_file_atomically(scratch.site + "/torch-of-the-user.pth",
                                        path_dirname(facts.torch.value.location) + "\n"));
  }
  return scratch;
}

}  // namespace scankit
