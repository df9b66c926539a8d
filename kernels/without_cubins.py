# SPDX-License-Identifier: Apache-2.0
"""python without_cubins.py FROM TO: copies a module whose GPUs all seem older than any cubin in it: its driver must translate
PTX, as that of a GPU to come will. (CUDA_FORCE_PTX_JIT=1 does not do that: it is about fatbins, and a module hands the
driver one bare image, which is then loaded as it is.)"""
import struct
import sys

MAGIC, ENTRY, CUBIN, NEVER = b"SKIMAGE1", 128, 2, 9990  # driver_context.h; no such architecture


def entries(module):
    """Where each entry of the index of images begins in the bytes of a module (ImageEntry in driver_context.h). Raises
    ValueError where there is none."""
    at = module.find(MAGIC)
    while at >= 0:
        count, size = struct.unpack_from("<II", module, at + 8)
        if size == ENTRY and 0 < count <= 4096:
            return range(at + 16, at + 16 + count * ENTRY, ENTRY)
        at = module.find(MAGIC, at + 1)
    raise ValueError("it has no index of images")


def main(source, target):
    with open(source, "rb") as file:
        module = bytearray(file.read())
    try:
        found = entries(module)
    except ValueError as problem:
        sys.exit(f"without_cubins.py: {source}: {problem}")
    kinds = []
    for entry in found:
        kind, = struct.unpack_from("<I", module, entry)
        kinds.append(kind)
        if kind == CUBIN:
            struct.pack_into("<I", module, entry + 4, NEVER)
    cubins = kinds.count(CUBIN)
    if cubins == 0 or cubins == len(kinds):
        sys.exit(f"without_cubins.py: {source} holds {cubins} cubins and {len(kinds) - cubins} PTX; both are wanted")
    with open(target, "wb") as file:
        file.write(module)
    print(f"{cubins} cubins hidden, {len(kinds) - cubins} PTX left")


if __name__ == "__main__":
    main(*sys.argv[1:])
