// SPDX-License-Identifier: Apache-2.0
// The plans of packed sequences (packed.cuh), of up to 16 states, a real A and a variable B and C: as those of
// launch.cc, with a block for each sequence in place of each batch entry, and never cut. How long each sequence
// is, only the device knows; the choice takes them to be equal.
#include "kernels/selective_scan/cuda/launch_parts.h"
#include "kernels/selective_scan/cuda/layout.h"

namespace scankit::selective_scan {
namespace {

// Shared memory of a block: the plain kernel's, and the block's own arguments.
template <class Arguments>
int packed_bytes(const Variant& variant, int warps, const Common& c) {
  return shared_bytes(variant, warps, c.states, c.dtype) + static_cast<int>(round_up(sizeof(Arguments), 16));
}

// As the choice sees it: the sequences as batch entries.
Common as_batch(const Common& c) {
  Common each = c;
  each.batch = c.packed.sequences;
  each.length = (c.length + c.packed.sequences - 1) / c.packed.sequences;
  return each;
}

bool are_taken(const Common& c) {
  return c.packed.sequences > 0 && !c.complex && !has_constant(c) && c.states <= 16;
}

bool add_packed_forward(ForwardArguments arguments, const device::DeviceFacts& facts, bool* taken,
                        device::Plan* plan, device::Message* message) {
  const Common& c = arguments.forward.common;
  const Common each = as_batch(c);
  Choice choice;
  *taken = choose_forward(each, facts, &choice) &&
           packed_bytes<ForwardArguments>(kPackedForward, choice.warps, c) <= facts.shared_per_block;
  if (!*taken) return true;
  const Index blocks = block_count(kPackedForward, choice.warps, each);
  if (blocks < 0) return refuse(message, kTooManyBlocks, "split the batch");
  arguments.tiling = make_tiling(kPackedForward, choice.warps, c);
  arguments.aligned = is_aligned(arguments.forward);
  arguments.segments.count = 1;
  if (blocks > 0)
    add_launch(plan, packed_kernel_index(false, c.dtype), blocks, choice.warps * 32,
               packed_bytes<ForwardArguments>(kPackedForward, choice.warps, c), arguments);
  return true;
}

}  // namespace

bool plan_packed_forward(const Forward& forward, const device::DeviceFacts& facts, bool* taken,
                         device::Plan* plan, device::Message* message) {
  *taken = false;
  if (!are_taken(forward.common)) return true;
  ForwardArguments arguments = {};
  arguments.forward = forward;
  return add_packed_forward(arguments, facts, taken, plan, message);
}

bool plan_packed_backward(const Backward& backward, const device::DeviceFacts& facts, bool* taken,
                          device::Plan* plan, device::Message* message) {
  const Common& c = backward.common;
  *taken = false;
  if (!are_taken(c) || c.dim == 0) return true;
  const Common each = as_batch(c);
  Choice choice;
  if (!choose_backward(each, facts, &choice) ||
      packed_bytes<BackwardArguments>(kPackedBackward, choice.warps, c) > facts.shared_per_block)
    return true;
  BackwardArguments arguments = {};
  arguments.backward = backward;
  if (takes_states(backward)) {
    ForwardArguments states = {};
    states.forward.common = c;
    states.forward.common.z = {};
    states.x_in_workspace = arguments.x_in_workspace = true;
    reserve(plan, Index{c.dim} * packed_chunks(c.length, c.packed.sequences) * c.states);
    if (!add_packed_forward(states, facts, taken, plan, message) || !*taken) return !*taken;
  }
  *taken = true;
  const Index blocks = block_count(kPackedBackward, choice.warps, each);
  if (blocks < 0) return refuse(message, kTooManyBlocks, "split the batch");
  arguments.tiling = make_tiling(kPackedBackward, choice.warps, c);
  arguments.aligned = is_aligned(backward);
  arguments.halves = is_aligned(backward, 8);
  set_pitches(&arguments);
  // A slab of dA, dD and the bias for each sequence, as otherwise for each segment.
  arguments.segments.count = c.packed.sequences;
  reserve_slabs(&arguments, false, plan);
  BackwardArguments scan = arguments;
  scan.segments.count = 1;
  add_launch(plan, packed_kernel_index(true, c.dtype), blocks, choice.warps * 32,
             packed_bytes<BackwardArguments>(kPackedBackward, choice.warps, c), scan);
  return add_reduce(arguments, c.length, false, plan, message);
}

}  // namespace scankit::selective_scan
