# SPDX-License-Identifier: Apache-2.0
"""What the device does a second, measured now: bytes copied, multiply-adds and exponentials. The exponentials of a CPU
are those of torch.exp, which a kernel may exceed: a rate to compare with, no bound."""
import ctypes
import os
import threading
import time

import torch

MOST_ROUNDS, SECONDS = 40, 0.25
UNROLLED, REGISTERS = 8, 8
# By the driver's own compiler, so that no toolkit is needed. PTX ISA 6.0, sm_50: every driver that torch runs on takes it.
PTX = """.version 6.0
.target sm_50
.address_size 64
.visible .entry rate(.param .u64 result, .param .u32 count)
{{
.reg .f32 %f<10>;
.reg .b32 %r<4>;
.reg .b64 %d<2>;
.reg .pred %p<3>;
ld.param.u64 %d0, [result];
ld.param.u32 %r0, [count];
mov.u32 %r1, %tid.x;
cvt.rn.f32.u32 %f8, %r1;
mov.f32 %f9, 0f3A83126F;
{start}
LOOP:
{body}
sub.u32 %r0, %r0, 1;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra LOOP;
{end}
setp.eq.f32 %p1, %f0, 0f7F800000;
@%p1 st.global.f32 [%d0], %f0;
ret;
}}
"""
FMA = "fma.rn.f32 %f{0}, %f{0}, 0f3F7FBE77, %f9;"
EX2 = "ex2.approx.ftz.f32 %f{0}, %f{0};"


def ptx(instruction):
    each = range(REGISTERS)
    return PTX.format(start="\n".join("mul.f32 %f{0}, %f8, 0f3{0}83126F;".format(i) for i in each),
                      body="\n".join(instruction.format(i) for _ in range(UNROLLED) for i in each),
                      end="\n".join("add.f32 %f0, %f0, %f{0};".format(i) for i in each if i > 0))


def _check(status, what):
    if status != 0:
        raise RuntimeError("%s: CUDA driver error %d" % (what, status))


class Kernel:
    def __init__(self, instruction):
        self.driver = ctypes.CDLL("libcuda.so.1")
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.text = ptx(instruction).encode("ascii")
        _check(self.driver.cuModuleLoadData(ctypes.byref(module), self.text), "cuModuleLoadData")
        _check(self.driver.cuModuleGetFunction(ctypes.byref(self.function), module, b"rate"), "cuModuleGetFunction")

    def launch(self, blocks, threads, result, count):
        address, number = ctypes.c_uint64(result.data_ptr()), ctypes.c_uint32(count)
        pointers = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(number))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _check(self.driver.cuLaunchKernel(self.function, blocks, 1, 1, threads, 1, 1, 0, stream, pointers, None),
               "cuLaunchKernel")


def gpu_seconds(call):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e-3


def cpu_seconds(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _best(seconds, call):
    call()
    begin, best = time.perf_counter(), float("inf")
    for _ in range(MOST_ROUNDS):
        best = min(best, seconds(call))
        if time.perf_counter() - begin > SECONDS:
            break
    return best


def _gpu(device):
    properties = torch.cuda.get_device_properties(device)
    size = min(1 << 29, properties.total_memory // 16)
    source, target = (torch.zeros(size // 4, device=device) for _ in range(2))
    found = {"copy": 2 * size / _best(gpu_seconds, lambda: target.copy_(source))}
    del source, target
    result = torch.zeros(1, device=device)
    blocks, threads = 8 * properties.multi_processor_count, 256
    for name, instruction, count in (("fma", FMA, 4000), ("exp", EX2, 500)):
        kernel = Kernel(instruction)
        seconds = _best(gpu_seconds, lambda: kernel.launch(blocks, threads, result, count))
        found[name] = blocks * threads * float(count) * UNROLLED * REGISTERS / seconds
    return found


def _cpu_fma():
    """Of all the threads that torch has, each at its best; 0 without the preloaded library or such instructions."""
    try:
        rate = ctypes.CDLL(None).scankit_multiply_adds
    except AttributeError:
        return 0.0
    rate.argtypes, rate.restype, rates = [ctypes.c_double], ctypes.c_double, []
    threads = [threading.Thread(target=lambda: rates.append(rate(SECONDS))) for _ in range(torch.get_num_threads())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def _cache():
    """Bytes of the last-level cache; 32 MiB where nobody says, as in many virtual machines."""
    try:
        return max(os.sysconf("SC_LEVEL3_CACHE_SIZE"), os.sysconf("SC_LEVEL2_CACHE_SIZE"), 0) or 1 << 25
    except (ValueError, OSError):
        return 1 << 25


def _cached_copy():
    """Of one thread, for all: where the machine is busy they would wait for each other, and the limit would be none."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        near, there = (torch.ones(1 << 16) for _ in range(2))
        return threads * 2 * 4 * near.numel() / _best(cpu_seconds, lambda: there.copy_(near))
    finally:
        torch.set_num_threads(threads)


def _cpu():
    source, target = (torch.ones(1 << 24) for _ in range(2))
    matrix = torch.ones(768, 768)
    numbers = torch.linspace(-1, 0, 1 << 18)
    product, powers = torch.empty_like(matrix), torch.empty_like(numbers)
    return {"copy": 2 * 4 * source.numel() / _best(cpu_seconds, lambda: target.copy_(source)),
            "cached_copy": _cached_copy(), "cache": _cache(),
            "fma": max(_cpu_fma(), 768.0 ** 3 / _best(cpu_seconds, lambda: torch.mm(matrix, matrix, out=product))),
            "exp": numbers.numel() / _best(cpu_seconds, lambda: torch.exp(numbers, out=powers))}


def measure(device):
    """{"copy": bytes, "fma": multiply-adds, "exp": exponentials} a second; of a CPU also "cached_copy", what lies in its
    "cache" bytes. A GPU is the current one."""
    return _gpu(device) if device.startswith("cuda") else _cpu()
