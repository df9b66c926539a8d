// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/launch_parts.h"

// The slabs that the plain backward's blocks leave, and the launch that adds them up.
namespace scankit::selective_scan {

// Sets the lengths of the slabs' rows, padded for 16-byte accesses. The reduction needs them also where
// nothing was scanned.
void set_pitches(BackwardArguments* arguments) {
  const Common& c = arguments->backward.common;
  arguments->pitch = chunk_count(c.length) * kStateInterval;
  arguments->dim_pitch = static_cast<Index>(round_up(static_cast<size_t>(c.dim), 4));
  arguments->dA_pitch =
      static_cast<Index>(round_up(static_cast<size_t>(c.dim) * static_cast<size_t>(c.states), 4));
}

// Takes the slabs' places in the workspace: dB and dC of every block, the others of every segment and
// batch entry.
void reserve_slabs(BackwardArguments* arguments, bool sliced, device::Plan* plan) {
  const Common& c = arguments->backward.common;
  const Index rows = Index{c.batch} * c.groups * c.states;
  const Index slabs = Index{c.batch} * arguments->segments.count;
  const Index projection = arguments->tiling.tiles_per_group * rows * arguments->pitch;
  if (has_constant(c)) {
    arguments->dB = reserve(plan, c.constant_B.data ? slabs * arguments->dA_pitch : projection);
    arguments->dC = reserve(plan, c.constant_C.data ? slabs * arguments->dA_pitch : projection);
  } else {
    arguments->projections = reserve(plan, 2 * projection);
  }
  arguments->dA = reserve(plan, slabs * arguments->dA_pitch);
  arguments->dD = reserve(plan, slabs * arguments->dim_pitch);
  arguments->dbias = reserve(plan, slabs * arguments->dim_pitch);
  if (sliced) arguments->carry = reserve(plan, Index{c.batch} * c.dim * c.states);
}

// Adds the sums over the slabs: dB, dC, dA, dD, bias gradient, in the order of ReduceArguments' jobs,
// those that are not wanted without blocks. Rows of dB and dC are out_pitch steps apart; `add`: the other
// sums are added to what is there. An empty problem has no slabs, and its sums are zeros.
bool add_reduce(const BackwardArguments& backward, Index out_pitch, bool add, device::Plan* plan,
                device::Message* message) {
  const Backward& b = backward.backward;
  const Common& c = b.common;
  const bool empty = c.batch == 0 || c.length == 0 || c.dim == 0;
  const Index rows = Index{c.batch} * c.groups * c.states;
  const Index batches = empty ? 0 : Index{c.batch} * backward.segments.count;
  const Index half = rows * backward.pitch, tiles = empty ? 0 : backward.tiling.tiles_per_group;
  ReduceArguments arguments = {};
  int count = 0;
  const bool constant = has_constant(c);
  // dC's slabs alternate with dB's, unless one of the two is constant (dB and dC of BackwardArguments).
  const Index second = backward.projections + half * Index{sizeof(float)},
              stride = constant ? half : 2 * half;
  const auto add_matrix = [&](Index source, float* out) {
    add_job(&arguments, &count, source, batches, backward.dA_pitch, 1, Index{c.dim} * c.states,
            backward.dA_pitch, out)
        .add = add;
  };
  const auto add_projection = [&](const Matrix& of, Index own, Index pair, float* out, void* rounded) {
    if (of.data) return add_matrix(own, out);
    add_job(&arguments, &count, constant ? own : pair, tiles, stride, rows, c.length, backward.pitch,
            rounded ? rounded : out, rounded ? c.dtype : DType::F32)
        .out_pitch = out_pitch;
  };
  add_projection(c.constant_B, backward.dB, backward.projections, b.dB, b.rounded_dB);
  add_projection(c.constant_C, backward.dC, second, b.dC, b.rounded_dC);
  add_matrix(backward.dA, b.dA);
  const auto add_row = [&](Index source, float* out) {
    add_job(&arguments, &count, source, batches, backward.dim_pitch, 1, c.dim, backward.dim_pitch, out).add =
        add;
  };
  add_row(backward.dD, b.dD);
  add_row(backward.dbias, b.ddelta_bias);
  const Index blocks = arguments.first_block[kMaxReduceJobs];
  if (blocks > 0x7fffffff)
    return refuse(message, "dB and dC are too large for one launch", "split the batch");
  if (blocks > 0)
    add_launch(plan, reduce_kernel_index(), blocks, kReduceThreads, 0, arguments, 1, plan->launch_count > 0);
  return true;
}

}  // namespace scankit::selective_scan
