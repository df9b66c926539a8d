# SPDX-License-Identifier: Apache-2.0
# nvrtc_cubin.py LIBNVRTC ARCH OUT: a cubin of one small kernel, by that NVRTC, with nothing of CUDA installed but it.
import ctypes
import glob
import os
import sys

library, arch, out = sys.argv[1:]
for builtins in glob.glob(os.path.join(os.path.dirname(library), "libnvrtc-builtins.so.*")):
    ctypes.CDLL(builtins)  # 13.0 does not find its own
nvrtc = ctypes.CDLL(library)


def call(name, *arguments):
    if getattr(nvrtc, name)(*arguments) != 0:
        sys.exit(f"{name} failed")


program, size = ctypes.c_void_p(), ctypes.c_size_t()
source = b'extern "C" __global__ void scale(float* a) { a[0] *= 2; }'
call("nvrtcCreateProgram", ctypes.byref(program), source, b"scale.cu", 0, None, None)
call("nvrtcCompileProgram", program, 1, (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode()))
call("nvrtcGetCUBINSize", program, ctypes.byref(size))
cubin = ctypes.create_string_buffer(size.value)
call("nvrtcGetCUBIN", program, cubin)
with open(out, "wb") as file:
    file.write(cubin.raw)
