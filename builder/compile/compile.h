// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/module/target.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/process.h"
#include "doctor/base/result.h"

// Compiling: every unit for every target, from the cache or by child processes (compile.cc), and what is said
// about a compiler that made no image (compile_failure.cc).
namespace scankit::compile {

// Universal: the shipped host module. Torch: one linked with the environment's own libtorch (torch_flavor/).
enum class Flavor { Universal, Torch };

// One piece of device code: one unit (kernels/*/cuda/units.def) for one target.
struct BuiltCode {
  std::string unit;
  module::Target target;
  std::string bytes;   // a bare cubin, or PTX text with its closing NUL, as NVRTC gives it
  std::string sha256;  // of bytes
  bool from_cache = false;
  std::string compiler;  // the CUDA release that made it: "12.9", "13.0.88"
  std::string packed;    // bytes as an LZ4 block, where they come from a finished module; else empty
};

// What write_fatbin() makes: the container's bytes, and where the images are in them, in the order given.
struct Fatbin {
  struct Payload {
    std::uint64_t offset, size;  // in `bytes`
    std::uint64_t full_size;     // of the image, where the payload is an LZ4 block; 0: it is the image
  };
  std::string bytes;
  std::vector<Payload> payloads;
};

// One container with every image, packed with LZ4 if that makes it shorter, for cuobjdump and our doctor. The
// module does not go through it: it picks the payloads by its own index (ARCHITECTURE.md, decision 8) and
// unpacks them itself, so that no driver has to. Errc::Malformed if an image is not what its target says.
Result<Fatbin> write_fatbin(const std::vector<BuiltCode>& images);

inline constexpr std::chrono::seconds kCompileTimeout{600};  // of one image; ours take 4 s on an idle core

// All pointers and views must outlive the call.
struct CompileRequest {
  std::string source_name = "source.cu";  // in the compiler's messages
  std::string_view source;
  std::vector<toolchain::Unit> units;
  std::vector<module::Target> targets;
  const toolchain::DeviceCompiler* compiler = nullptr;
  // One for each of `targets`, in their order. Empty if `compiler` makes all of them.
  std::vector<const toolchain::DeviceCompiler*> compilers;
  const Cache* cache = nullptr;
  unsigned jobs = 1;
  std::chrono::milliseconds timeout = kCompileTimeout;
  // Called once before the first compiler starts, unless all is in the cache. An Error ends the build.
  std::function<Result<void>()> before;
  // Called with lines for the user that say why something is compiled. May be empty.
  std::function<void(const std::string&)> progress;
};

// The compiler that makes the target.
const toolchain::DeviceCompiler& compiler_for(const CompileRequest& request, const module::Target& target);

// What one image depends on. Made once for a request, since it hashes the source as a whole and file by file.
// Keeps a reference to the request.
class KeyMaker {
 public:
  explicit KeyMaker(const CompileRequest& request);
  Key key(const toolchain::Unit& unit, const module::Target& target) const;
  // A name for the image that stays the same when its inputs change (Cache::store).
  std::string slot(const toolchain::Unit& unit, const module::Target& target) const;

 private:
  const CompileRequest& request_;
  Key common_;
};

// Every unit for every target, from the cache or by children that run side by side. The result has each
// target with all its units, in the order of the request. The first failure stops the rest; its Error has the
// compiler's useful lines, the first one in the message and the others in the hint.
Result<std::vector<BuiltCode>> compile_units(const CompileRequest& request);

// As many children as processors that we may use, and no more than memory allows.
unsigned compile_jobs(const Probed<Memory>& memory);

// How many processes the kernel has killed for want of memory, in our control group and on the machine.
// Nothing if the counter cannot be read. Taken before a compiler runs and compared after it was killed.
struct KillCount {
  std::optional<std::uint64_t> group, machine;
};
KillCount count_kills();

// Why the compiler of `job` failed, and what to do. `before`: count_kills() from before its start.
Error compile_failure(const toolchain::DeviceCompiler::Job& job, const ProcessResult& ran,
                      const KillCount& before);
// The compiler reported success, but what it wrote is not an image for the target.
Error no_image(const toolchain::DeviceCompiler::Job& job, const ProcessResult& ran);

// Of a log of any length at most 30 lines: those that name an error, each with the two after it; where none
// does, the last ones.
std::string useful_lines(const std::string& log);

// The label of one file of the device source is this and its path; "source" is the whole text.
inline constexpr const char* kSourcePart = "source ";

// The changes from one list of inputs to another, for people: "flag -DX is new", "source forward.cuh
// changed". Empty if they are equal.
std::vector<std::string> changes_in_words(const Inputs& before, const Inputs& after);

// Why an image is not taken from the cache. NeverBuilt: this slot was never built. Changed: `changes` says
// what. Gone: the same inputs were built before, but the entry was trimmed or removed. Damaged: the entry's
// bytes were not right.
struct Miss {
  std::string unit, target;
  enum class Kind { NeverBuilt, Changed, Gone, Damaged } kind = Kind::NeverBuilt;
  std::vector<std::string> changes;  // Changed
  std::string entry;                 // Damaged: the file
};
// One line for all images of one target with the same reason.
std::vector<std::string> misses_in_words(const std::vector<Miss>& misses);

// One image of the explanation: for which unit and target, and all inputs of its key.
struct ExplainedImage {
  std::string unit, target;
  Inputs inputs;
  std::string key;     // Key::digest() of the inputs
  std::string sha256;  // of the image; "" where nobody said
};

// What a build depends on: `--explain` prints it, and a manifest holds it.
struct Explanation {
  std::string module;
  Inputs inputs;  // of the module beside its images: the host module, scankit itself
  std::vector<ExplainedImage> images;
};

// Labels and values, for programs and for diff: the same in every language.
std::string explanation_text(const Explanation& explanation);

// The fields "module", "inputs", "image_inputs" (those that all images share) and "images" of a manifest and
// of `--explain --json`.
void add_explanation(nlohmann::ordered_json& json, const Explanation& explanation);

// `--explain OTHER`: every difference, label by label, in words. Empty where both depend on the same.
std::vector<std::string> compare_explanations(const std::string& other_name, const Explanation& other,
                                              const Explanation& here);

}  // namespace scankit::compile
