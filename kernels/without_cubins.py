# SPDX-License-Identifier: Apache-2.0
"""python without_cubins.py FROM TO: copies a module whose GPUs all seem older than any cubin in it: its driver must translate
PTX, as that of a GPU to come will. (CUDA_FORCE_PTX_JIT=1 does not do that: it is about fatbins, and a module hands the
driver one bare image, which is then loaded as it is.)"""
import struct
import sys

MAGIC, ENTRY, CUBIN, NEVER = b"SKIMAGE1", 128, 2, 9990  # driver_context.h; no such architecture


def main(source, target):
    with open(source, "rb") as file:
        module = bytearray(file.read())
    at = module.find(MAGIC)
    while at >= 0:
        count, size = struct.unpack_from("<II", module, at + 8)
        if size == ENTRY and 0 < count <= 4096:
            break
        at = module.find(MAGIC, at + 1)
    else:
        sys.exit(f"without_cubins.py: {source} has no index of images")
    kinds = []
    for entry in range(at + 16, at + 16 + count * ENTRY, ENTRY):
        kind, = struct.unpack_from("<I", module, entry)
        kinds.append(kind)
        if kind == CUBIN:
            struct.pack_into("<I", module, entry + 4, NEVER)
    cubins = kinds.count(CUBIN)
    if cubins == 0 or cubins == count:
        sys.exit(f"without_cubins.py: {source} holds {cubins} cubins and {count - cubins} PTX; both are wanted")
    with open(target, "wb") as file:
        file.write(module)
    print(f"{cubins} cubins hidden, {count - cubins} PTX left")


if __name__ == "__main__":
    main(*sys.argv[1:])
