// SPDX-License-Identifier: Apache-2.0
// Preloaded into the harness's process (LD_PRELOAD): what torch allocates for CPU tensors lies between two
// bands, and a band that somebody wrote to is damage. torch's allocator asks posix_memalign for 64-byte
// alignment (c10/core/impl/alloc_cpu.cpp); smaller alignments and malloc are left alone. Bands and fresh
// memory hold 0xff: NaN in every dtype, so that a read beyond an input is seen in the result, and so is an
// element that nobody wrote.
//
// Everything that takes such a pointer has to know it: free, realloc, malloc_usable_size.
#include "validate/guard/guard.h"

#include <dlfcn.h>
#include <errno.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

// kAlignment is torch's gAlignment, by which its allocations are recognized. The limits are those of
// a band's bytes.
constexpr std::size_t kAlignment = 64, kLeastBand = 1024, kMostBand = 65536;
constexpr unsigned char kFill = 0xff;
constexpr std::size_t kSlots = 1u << 15;  // a power of two; beyond three quarters memory comes without bands

// An entry of the hash table of all allocations with bands: open addressing with linear probing, keyed by
// `begin`. The table has a fixed size because it is used inside malloc.
struct Block {
  char* begin;  // what the caller has; nullptr: free slot
  char* base;
  std::size_t size, band;
};
Block blocks[kSlots];
std::size_t in_use = 0;
ScankitDamage remembered;  // of a block that was freed meanwhile
bool has_remembered = false, wanted = true;

// The C library's own functions, or those of a library that is preloaded behind this one.
using Align = int(void**, std::size_t, std::size_t);
using Free = void(void*);
using Realloc = void*(void*, std::size_t);
using Size = std::size_t(void*);
struct Next {
  Align* align;
  Free* free;
  Realloc* realloc;
  Size* size;
} next;

template <class Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Finds the next functions on the first call. dlsym() may itself allocate and free, and the loader
// may call free() before any constructor has run: such a call finds `resolving` set, and what it
// frees is leaked.
bool resolved() {
  static bool resolving = false;
  if (next.free) return true;
  if (resolving) return false;
  resolving = true;
  find(next.align, "posix_memalign");
  find(next.realloc, "realloc");
  find(next.size, "malloc_usable_size");
  find(next.free, "free");
  resolving = false;
  return next.free != nullptr;
}

bool held = false;

// Fibonacci hashing: the upper 15 bits of the product, for 2^15 slots. The lowest 6 bits of a
// pointer are 0.
std::size_t slot_of(const void* pointer) {
  return (reinterpret_cast<std::uintptr_t>(pointer) >> 6) * 0x9e3779b97f4a7c15u >> (64 - 15);
}

Block* find_block(const void* pointer) {
  for (std::size_t i = slot_of(pointer), tries = 0; tries < kSlots; i = (i + 1) & (kSlots - 1), ++tries) {
    if (blocks[i].begin == pointer) return &blocks[i];
    if (!blocks[i].begin) return nullptr;
  }
  return nullptr;
}

// False where the table is too full; the allocation then gets no bands.
bool remember(char* begin, char* base, std::size_t size, std::size_t band) {
  if (in_use >= kSlots / 4 * 3) return false;
  std::size_t i = slot_of(begin);
  while (blocks[i].begin) i = (i + 1) & (kSlots - 1);
  blocks[i] = {begin, base, size, band};
  ++in_use;
  return true;
}

// Frees the slot and moves what follows in its run back, so that every search still ends at the first free
// slot. Marks of deleted entries would fill the table in a long run, and then no memory would get bands.
void forget(Block* block) {
  std::size_t hole = static_cast<std::size_t>(block - blocks);
  for (std::size_t i = (hole + 1) & (kSlots - 1); blocks[i].begin; i = (i + 1) & (kSlots - 1)) {
    // An entry may move only to a slot at or behind the one where its search begins, counted round the table.
    const std::size_t from_home = (i - slot_of(blocks[i].begin)) & (kSlots - 1);
    if (from_home < ((i - hole) & (kSlots - 1))) continue;
    blocks[hole] = blocks[i];
    hole = i;
  }
  blocks[hole] = {};
  --in_use;
}

// The first byte of [from, from + count) that is not the filling, else null.
const char* changed(const char* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (static_cast<unsigned char>(from[i]) != kFill) return from + i;
  return nullptr;
}

// Whether a band of this block was written, and where. The bands are filled again, so that the next call
// of the module is not blamed.
bool damaged(const Block& block, ScankitDamage* damage) {
  char* const end = block.begin + block.size;
  const char* const before = changed(block.base, block.band);
  const char* const behind = changed(end, block.band);
  if (!before && !behind) return false;
  // In the band in front, the damaged byte nearest to the block is the most informative one.
  const char* nearest = behind;
  for (const char* at = block.begin; !behind && at-- > before;)
    if (static_cast<unsigned char>(*at) != kFill) {
      nearest = at;
      break;
    }
  *damage = {reinterpret_cast<std::uintptr_t>(block.begin), block.size, nearest - block.begin};
  std::memset(block.base, kFill, block.band);
  std::memset(end, kFill, block.band);
  return true;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int posix_memalign(void** result, std::size_t alignment,
                                                          std::size_t size) {
  if (!resolved()) return ENOMEM;
  if (!wanted || alignment != kAlignment || size == 0 || size > PTRDIFF_MAX / 2)
    return next.align(result, alignment, size);
  std::size_t band = size / 8 < kLeastBand ? kLeastBand : size / 8 > kMostBand ? kMostBand : size / 8;
  band = (band + kAlignment - 1) / kAlignment * kAlignment;
  void* base = nullptr;
  const int status = next.align(&base, alignment, size + 2 * band);
  if (status != 0) return status;
  std::memset(base, kFill, size + 2 * band);
  char* const begin = static_cast<char*>(base) + band;
  bool known = false;
  {
    const Lock lock(held);
    known = remember(begin, static_cast<char*>(base), size, band);
  }
  if (!known) {
    next.free(base);
    return next.align(result, alignment, size);
  }
  *result = begin;
  return 0;
}

__attribute__((visibility("default"))) void free(void* pointer) {
  if (!pointer || !resolved()) return;
  void* base = pointer;
  // Every block with bands is aligned, so that most calls skip the lock.
  if (reinterpret_cast<std::uintptr_t>(pointer) % kAlignment == 0) {
    const Lock lock(held);
    if (Block* const block = find_block(pointer)) {
      ScankitDamage damage;
      if (damaged(*block, &damage) && !has_remembered) {
        remembered = damage;
        has_remembered = true;
      }
      base = block->base;
      forget(block);
    }
  }
  next.free(base);
}

// The size that was asked for: whoever uses the rest of a block would write into its band.
__attribute__((visibility("default"))) std::size_t malloc_usable_size(void* pointer) {
  if (!pointer || !resolved()) return 0;
  {
    const Lock lock(held);
    if (const Block* const block = find_block(pointer)) return block->size;
  }
  return next.size(pointer);
}

// A block with bands moves to one without: the C library cannot resize a pointer that it did not return.
__attribute__((visibility("default"))) void* realloc(void* pointer, std::size_t size) {
  if (!resolved()) return nullptr;
  std::size_t had = 0;
  if (pointer) {
    const Lock lock(held);
    if (const Block* const block = find_block(pointer)) had = block->size;
  }
  if (had == 0) return next.realloc(pointer, size);
  void* moved = next.realloc(nullptr, size);  // no promise of alignment goes with realloc
  if (!moved) return nullptr;
  std::memcpy(moved, pointer, had < size ? had : size);
  free(pointer);
  return moved;
}

__attribute__((visibility("default"))) void scankit_guard_bands(int on) { wanted = on != 0; }

__attribute__((visibility("default"))) int scankit_guard_damaged(ScankitDamage* damage) {
  const Lock lock(held);
  if (has_remembered) {
    *damage = remembered;
    has_remembered = false;
    return 1;
  }
  for (const Block& block : blocks)
    if (block.begin && damaged(block, damage)) return 1;
  return 0;
}

}  // extern "C"
