// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "builder/fix/execute.h"
#include "builder/fix/transaction.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"

extern "C" char** environ;

namespace scankit::fix {

// These programs run in the user's Python (3.8 and newer) and answer on descriptor 3, which they move away
// first so that nothing else writes to it. They end with os._exit: what the interpreter does while shutting
// down is not part of the question. This one has the arguments NAME PATH LINKED; LINKED is "torch" or "".
inline constexpr const char* kLoadProgram = R"(
import os, sys
channel = os.dup(3)
os.close(3)
import importlib.machinery, importlib.util
name, path, linked = sys.argv[1:4]
if linked:
    importlib.import_module(linked)
loader = importlib.machinery.ExtensionFileLoader(name, path)
spec = importlib.util.spec_from_file_location(name, path, loader=loader)
module = importlib.util.module_from_spec(spec)
loader.exec_module(module)
for direction in ('fwd', 'bwd'):
    assert callable(getattr(module, ('causal_conv1d_' if name == 'causal_conv1d_cuda' else '') + direction))
os.write(channel, b'ok')
os._exit(0)
)";

// The argument is the statement. sys.path loses the current directory, which `python -c` puts into it.
inline constexpr const char* kStatementProgram = R"(
import os, sys
channel = os.dup(3)
os.close(3)
statement = sys.argv[1]
sys.argv[:] = ['-c']
sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())]
try:
    exec(statement, {})
    os.write(channel, b'ok')
except BaseException as problem:
    os.write(channel, (type(problem).__name__ + ': ' + str(problem)).encode('utf-8', 'backslashreplace')[:4000])
os._exit(0)
)";

// Arguments: DISTRIBUTION NO_GPU, then MODULE FILE SHA256 for each module. Of the packages of the distribution the one
// with its name is imported; others may be its tests or examples. The answer has the installed version, and the names
// whose import only the missing GPU stopped, with the error that begins as NO_GPU. A compiled module of these is loaded
// from its file alone: what its package has loaded before it failed is still there.
inline constexpr const char* kPackageProgram = R"(
import hashlib, importlib, importlib.machinery, importlib.util, os, re, sys
channel = os.dup(3)
os.close(3)
distribution, no_gpu, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
sys.argv[:] = ['-c']
sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())]
plain = lambda name: re.sub(r'[-_.]+', '-', name).lower()
def end(kind, text=''):
    os.write(channel, (kind + '\n' + text).encode('utf-8', 'backslashreplace')[:4000])
    os._exit(0)
untested = []
def imported(name):
    try:
        return importlib.import_module(name)
    except Exception as problem:
        if not (type(problem).__name__ + ': ' + str(problem)).startswith(no_gpu):
            raise
        untested.append(name)
def file_of(module, file):
    loaded = imported(module) or sys.modules.get(module)
    if loaded is None:
        top = importlib.util.find_spec(module.split('.')[0])
        places = [os.path.join(folder, *file.split('/')[1:]) for folder in top.submodule_search_locations or []]
        path = next(filter(os.path.exists, places), top.origin)
        loader = importlib.machinery.ExtensionFileLoader(module, path)
        loaded = importlib.util.module_from_spec(importlib.util.spec_from_file_location(module, path, loader=loader))
        loader.exec_module(loaded)
    return os.path.abspath(loaded.__file__)
try:
    import torch
    from importlib import metadata
    for module, file, sha256 in zip(wanted[::3], wanted[1::3], wanted[2::3]):
        found = file_of(module, file)
        if not found.startswith(sys.prefix + os.sep) or not found.endswith(os.sep + file):
            end('other file', module + '\n' + found)
        whole = hashlib.sha256()
        with open(found, 'rb') as stream:
            for piece in iter(lambda: stream.read(1 << 20), b''):
                whole.update(piece)
        if whole.hexdigest() != sha256:
            end('other bytes', found)
    files = [str(file) for file in metadata.distribution(distribution).files or []]
    for package in sorted({file.split('/')[0] for file in files if re.fullmatch(r'[^/]+/__init__\.py', file)}):
        if plain(package) == plain(distribution):
            imported(package)
    end('ok', '\n'.join([metadata.version(distribution), *untested]))
except BaseException as problem:
    end('failed', type(problem).__name__ + ': ' + str(problem))
)";

// Arguments: MODULE EXPECTED EXTRA. The expected numbers come from the recurrence or the convolution in plain
// Python floats, not from any build of the module.
inline constexpr const char* kImportAndCallProgram = R"(
import os, sys
channel = os.dup(3)
os.close(3)
module_name, expected, extra = sys.argv[1:4]
sys.argv[:] = ['-c']
sys.path[:] = ([extra] if extra else []) + [p for p in sys.path if p not in ('', os.getcwd())]
def end(kind, text):
    os.write(channel, (kind + '\n' + str(text)).encode('utf-8', 'backslashreplace')[:4000])
    os._exit(0)
try:
    import importlib, math
    import torch
    module = importlib.import_module(module_name)
    found = os.path.realpath(module.__file__)
    if expected and found != os.path.realpath(expected):
        end('other file', found)
    batch, dim, length, states = 2, 3, 37, 4
    def number(*index):
        return math.sin(1.0 + sum((i + 1) * 0.7 ** k for k, i in enumerate(index)) * 1.3)
    def fill(*shape):
        if len(shape) == 1:
            return [number(i, shape[0]) for i in range(shape[0])]
        def build(prefix, rest):
            if not rest:
                return number(*prefix, len(shape))
            return [build(prefix + (i,), rest[1:]) for i in range(rest[0])]
        return build((), shape)
    def scan():
        u, delta = fill(batch, dim, length), fill(batch, dim, length)
        A = [[-abs(a) - 0.1 for a in row] for row in fill(dim, states)]
        B, C, D = fill(batch, 1, states, length), fill(batch, 1, states, length), fill(dim)
        bias = [0.1 * d for d in D]
        want = [[[0.0] * length for _ in range(dim)] for _ in range(batch)]
        for b in range(batch):
            for d in range(dim):
                h = [0.0] * states
                for l in range(length):
                    step = math.log1p(math.exp(delta[b][d][l] + bias[d]))
                    y = D[d] * u[b][d][l]
                    for n in range(states):
                        h[n] = math.exp(step * A[d][n]) * h[n] + step * B[b][0][n][l] * u[b][d][l]
                        y += C[b][0][n][l] * h[n]
                    want[b][d][l] = y
        none = [None] if module_name == 'selective_scan_cuda' else []
        more = {'selective_scan_cuda_core': [1], 'selective_scan_cuda_oflex': [1, True]}.get(module_name, [])
        def call(t):
            return module.fwd(t(u), t(delta), t(A), t(B), t(C), t(D), *none, t(bias), True, *more)[0]
        return want, call
    def convolution():
        width = 4
        x, weight, bias = fill(batch, dim, length), fill(dim, width), fill(dim)
        def value(b, d, l):
            y = bias[d] + sum(weight[d][k] * x[b][d][l + k - width + 1] for k in range(width) if l + k >= width - 1)
            return y / (1.0 + math.exp(-y))
        want = [[[value(b, d, l) for l in range(length)] for d in range(dim)] for b in range(batch)]
        def call(t):
            out = t(x)
            module.causal_conv1d_fwd(t(x), t(weight), t(bias), None, None, out, None, True)
            return out
        return want, call
    want, call = convolution() if module_name == 'causal_conv1d_cuda' else scan()
    info = module.scankit_info()
    if info['images_problem']:
        end('unreadable images', info['images_problem'])
    on_gpu = bool(info['images'])  # not with --arch none
    devices = ['cpu'] + (['cuda'] if on_gpu and os.environ.get('CUDA_VISIBLE_DEVICES') != '' and torch.cuda.is_available() else [])
    for device in devices:
        t = lambda x: torch.tensor(x, dtype=torch.float32, device=device)
        out = call(t)
        worst = (out.double().cpu() - torch.tensor(want, dtype=torch.float64)).abs().max().item()
        if not worst < 1e-4:
            end('wrong numbers', '%s %g' % (device, worst))
    end('ok', ' '.join(devices))
except BaseException as problem:
    end('failed', type(problem).__name__ + ': ' + str(problem))
)";

namespace {

// The user's environment, since PYTHONPATH and the loader's variables are part of the question, without the
// variables that make Python run or print other things.
std::vector<std::string> child_variables() {
  constexpr std::array<std::string_view, 4> kDropped = {
      "PYTHONSTARTUP=", "PYTHONINSPECT=", "PYTHONVERBOSE=", "PYTHONDONTWRITEBYTECODE="};
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool dropped = false;
    for (std::string_view name : kDropped) dropped = dropped || std::string_view(*variable).starts_with(name);
    if (!dropped) kept.emplace_back(*variable);
  }
  kept.emplace_back("PYTHONDONTWRITEBYTECODE=1");
  return kept;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1).substr(0, 400);
}

std::string how_it_ended(const ProcessResult& ran) {
  if (ran.timed_out) return say("it exceeded its time limit of {} s", ran.duration.count() / 1000);
  if (ran.signal != 0) return say("it was killed by signal {}", ran.signal);
  return say("it exited with status {}: {}", ran.exit_code, last_line(ran.err));
}

// Runs in "/", so that no file of the current directory is imported. The answer comes on descriptor 3, since
// torch and other libraries may print to the other two.
Result<ProcessResult> run_python(const std::string& python, const char* program,
                                 std::vector<std::string> arguments, std::chrono::milliseconds timeout) {
  ProcessRequest request;
  request.argv = {python, "-c", program};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  request.environment = child_variables();
  request.working_directory = "/";
  request.timeout = timeout;
  request.capture_channel = true;
  request.stop = [] { return Interruption::signal() != 0; };
  auto ran = run_process(request);
  if (ran && ran->stopped) SCANKIT_CHECK(Interruption::check());
  return ran;
}

}  // namespace

Result<void> verify_loads(const std::string& python, const std::string& module, const std::string& file,
                          bool with_torch) {
  const std::vector<std::string> arguments = {module, file, with_torch ? "torch" : ""};
  const auto timeout = with_torch ? std::chrono::minutes(5) : std::chrono::seconds(30);
  SCANKIT_TRY(const ProcessResult ran, run_python(python, kLoadProgram, arguments, timeout));
  if (ran.channel == "ok") return {};
  return Error{Errc::ToolFailed,
               message("the built module does not load in {}: {}", python, how_it_ended(ran)), ""};
}

Result<void> verify_import(const std::string& python, const std::string& module, const std::string& expected,
                           const std::string& extra_path) {
  SCANKIT_TRY(const ProcessResult ran, run_python(python, kImportAndCallProgram,
                                                  {module, expected, extra_path}, std::chrono::minutes(5)));
  const std::string kind = ran.channel.substr(0, ran.channel.find('\n'));
  const std::string text = kind.size() < ran.channel.size() ? ran.channel.substr(kind.size() + 1) : "";
  if (kind == "ok") return {};
  if (kind == "other file")
    return Error{Errc::Conflict, message("`import {}` imports {}, not {}", module, text, expected),
                 message("that copy comes first on the import path: move it away, or see `scankit doctor`")};
  if (kind == "unreadable images")
    return Error{Errc::ToolFailed,
                 message("`import {}` works, but its device code cannot be checked: {}", module, text),
                 message("please report this")};
  if (kind == "wrong numbers") {
    const auto blank = text.find(' ');
    return Error{Errc::Malformed,
                 message("the forward result on {} differs from its definition by {}", text.substr(0, blank),
                         blank == std::string::npos ? "" : text.substr(blank + 1)),
                 message("please report this")};
  }
  const std::string why = kind == "failed" ? text : how_it_ended(ran);
  return Error{Errc::ToolFailed, message("`import torch; import {}` failed after the fix: {}", module, why),
               message("see `scankit doctor`")};
}

namespace {

// triton/runtime/driver.py: RuntimeError(f"{len(actives)} active drivers ({actives}). There should only be one.")
constexpr std::string_view kNoGpu = "RuntimeError: 0 active drivers ([])";

Error not_of_the_wheel(const Message& what) {
  return {Errc::Conflict, what,
          message("look for a setting that keeps the installer from installing, such as PIP_DRY_RUN")};
}

// "1.0-beta" of the metadata is "1.0_beta" or "1.0b0" of the file name; "1.0+cu118" is not "1.0+cu130".
bool same_version(const std::string& one, const std::string& other) {
  if (normalized_name(one) == normalized_name(other)) return true;
  const auto local = [](const std::string& version) {
    const auto plus = version.find('+');
    return plus == std::string::npos ? "" : normalized_name(version.substr(plus));
  };
  const auto first = Version::parse(one), second = Version::parse(other);
  return first && second && pep440_order(*first, *second) == std::strong_ordering::equal &&
         local(one) == local(other);
}

}  // namespace

Result<std::string> verify_package(const std::string& python, const std::string& distribution,
                                   const std::string& version, const std::vector<WheelModule>& modules) {
  std::vector<std::string> arguments{distribution, std::string(kNoGpu)};
  for (const WheelModule& one : modules)
    arguments.insert(arguments.end(), {one.module, one.file, one.sha256});
  const auto result = run_python(python, kPackageProgram, arguments, std::chrono::minutes(5));
  if (!result) return result.error();
  const std::string kind = result->channel.substr(0, result->channel.find('\n'));
  const std::string text =
      kind.size() < result->channel.size() ? result->channel.substr(kind.size() + 1) : "";
  if (kind == "ok") {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string installed = text.substr(0, end);
    if (!same_version(installed, version))
      return not_of_the_wheel(
          message("{} {} is installed, although the installation of {} ended without an error", distribution,
                  installed, version));
    std::string untested;
    for (const std::string_view name : lines_of(std::string_view(text).substr(end)))
      if (!name.empty()) untested.append(untested.empty() ? "import torch, " : ", ").append(name);
    return untested;
  }
  if (kind == "other bytes")
    return not_of_the_wheel(
        message("{} is not the file of the wheel, although the installation ended without an error", text));
  if (kind == "other file") {
    const auto end = text.find('\n');
    return Error{Errc::Conflict,
                 message("`import {}` imports {}, which is not the file that was installed",
                         text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 1)),
                 message("that copy comes first on the import path: move it away, or see `scankit doctor`")};
  }
  const std::string why = kind == "failed" ? text : how_it_ended(*result);
  return Error{Errc::ToolFailed, message("`{}` failed after the installation: {}", import_of(modules), why),
               message("see `scankit doctor`")};
}

declared::TestRun run_test(const std::string& python, const std::string& file) {
  return declared::run_own_test(
      python, file, std::chrono::minutes(10),
      [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stderr); },
      [] { return Interruption::signal() != 0; });
}

Result<bool> verify_statement(const std::string& python, const std::string& statement) {
  // By reference: of a moved result gcc 12 takes the short
  // string's bytes for uninitialised when it optimises.
  const auto result = run_python(python, kStatementProgram, {statement}, std::chrono::minutes(5));
  if (!result) return result.error();
  const ProcessResult& ran = *result;
  if (ran.channel == "ok") return true;
  if (ran.channel.starts_with(kNoGpu)) return false;
  const std::string why = ran.channel.empty() ? how_it_ended(ran) : ran.channel;
  return Error{Errc::ToolFailed, message("`{}` failed after the fix: {}", statement, why),
               message("see `scankit doctor`")};
}

}  // namespace scankit::fix
