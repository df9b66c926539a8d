// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace scankit {

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
    devices = ['cpu'] + (['cuda'] if os.environ.get('CUDA_VISIBLE_DEVICES') != '' and torch.cuda.is_available() else [])
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

}  // namespace scankit
