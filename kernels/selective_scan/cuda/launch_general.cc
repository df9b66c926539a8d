// SPDX-License-Identifier: Apache-2.0
// The plans of the general kernels (general.cuh): a forward is one launch; a backward is a forward that saves
// the states, if it is given none, the scan, and the reduction of its slabs. There is one kernel for each
// direction, number and type, so nothing is chosen but how many runs of channel tiles the backward has.
#include "kernels/selective_scan/cuda/launch_parts.h"
#include "kernels/selective_scan/cuda/layout.h"

namespace scankit::selective_scan {
namespace {

// As make_tiling in launch.cc, for the one layout there is.
Tiling general_tiling(const Common& c) {
  const int channels = c.dim / c.groups, of_block = kGeneralChannels * kGeneralWarps;
  return {channels, (channels + of_block - 1) / of_block};
}
int general_floats(const Common& c, bool backward) {  // of shared memory
  const int parts = parts_of(c), slices = (c.states + kGeneralSlice - 1) / kGeneralSlice;
  const int projections = 2 * kGeneralSlice * parts * kPitch, threads = kGeneralWarps * 32;
  const int rows = kGeneralWarps * kGeneralChannels * kPitch, states = kGeneralPer * parts * threads;
  if (!backward) return projections + 3 * rows + slices * states;
  // States before each quad, half of the sums of four, and two sums a thread.
  return projections + 5 * rows + (8 + 4) * states + 2 * threads;
}

// Shares the channel tiles of each sequence and group out among runs, a block each: enough for four blocks
// a multiprocessor, and no more, since each costs a slab as large as dB and dC. Constant B and C leave no
// such slabs: a tile is a run then.
void set_runs(GeneralBackwardArguments* arguments, const device::DeviceFacts& facts) {
  const Common& c = arguments->backward.common;
  const int tiles = arguments->tiling.tiles_per_group;
  const Index entries = Index{sequences_of(c)} * c.groups;
  const int wanted = static_cast<int>((4 * facts.multiprocessors + entries - 1) / entries);
  const bool no_slabs = c.constant_B.data && c.constant_C.data;
  arguments->tiles_per_run = no_slabs || wanted >= tiles ? 1 : (tiles + wanted - 1) / wanted;
  arguments->runs = (tiles + arguments->tiles_per_run - 1) / arguments->tiles_per_run;
}

// As add_reduce in launch.cc; `empty`: nothing was scanned, all gradients become zero.
bool add_general_reduce(const GeneralBackwardArguments& a, bool empty, device::Plan* plan,
                        device::Message* message) {
  const Backward& b = a.backward;
  const Common& c = b.common;
  const Index rows = Index{c.batch} * c.groups * c.states, sequences = empty ? 0 : sequences_of(c);
  const Index runs = empty ? 0 : a.runs, matrix = Index{c.dim} * numbers_of(c);
  ReduceArguments arguments = {};
  int count = 0;
  const auto add_matrix = [&](Index source, float* out) {
    add_job(&arguments, &count, source, sequences, a.matrix_pitch, 1, matrix, a.matrix_pitch, out);
  };
  const auto add_projection = [&](const Matrix& constant, Index source, float* out, void* rounded) {
    if (constant.data) return add_matrix(source, out);
    add_job(&arguments, &count, source, runs, rows * a.pitch, rows, Index{c.length} * parts_of(c), a.pitch,
            rounded ? rounded : out, rounded ? c.dtype : DType::F32);
  };
  add_projection(c.constant_B, a.dB, b.dB, b.rounded_dB);
  add_projection(c.constant_C, a.dC, b.dC, b.rounded_dC);
  add_matrix(a.dA, b.dA);
  add_job(&arguments, &count, a.dD, sequences, a.dim_pitch, 1, c.dim, a.dim_pitch, b.dD);
  add_job(&arguments, &count, a.dbias, sequences, a.dim_pitch, 1, c.dim, a.dim_pitch, b.ddelta_bias);
  const Index blocks = arguments.first_block[kMaxReduceJobs];
  if (blocks > 0x7fffffff)
    return refuse(message, "dB and dC are too large for one launch", "split the batch");
  if (blocks > 0)
    add_launch(plan, reduce_kernel_index(), blocks, kReduceThreads, 0, arguments, 1, plan->launch_count > 0);
  return true;
}

}  // namespace

bool add_general_forward(const Forward& forward, bool x_in_workspace, device::Plan* plan,
                         device::Message* message) {
  const Common& c = forward.common;
  ForwardArguments arguments = {};
  arguments.forward = forward;
  arguments.tiling = general_tiling(c);
  arguments.x_in_workspace = x_in_workspace;
  const Index blocks = Index{arguments.tiling.tiles_per_group} * c.groups * sequences_of(c);
  if (blocks > 0x7fffffff) return refuse(message, kTooManyBlocks, "split the batch");
  if (blocks > 0)
    add_launch(plan, general_kernel_index(false, c), blocks, kGeneralWarps * 32, 4 * general_floats(c, false),
               arguments);
  return true;
}

bool plan_general_backward(const Backward& backward, const device::DeviceFacts& facts, device::Plan* plan,
                           device::Message* message) {
  const Common& c = backward.common;
  GeneralBackwardArguments a = {};
  a.backward = backward;
  a.tiling = general_tiling(c);
  a.pitch = chunk_count(c.length) * kStateInterval * parts_of(c);
  a.dim_pitch = static_cast<Index>(round_up(static_cast<size_t>(c.dim), 4));
  a.matrix_pitch = (Index{c.dim} * numbers_of(c) + 3) / 4 * 4;
  const Index sequences = sequences_of(c), entries = sequences * c.groups;
  // Without steps the gradient of the initial state is that of the last.
  if (sequences == 0 || c.dim == 0 || (c.length == 0 && !backward.dinitial_state))
    return add_general_reduce(a, true, plan, message);
  set_runs(&a, facts);
  if (entries * a.runs > 0x7fffffff) return refuse(message, kTooManyBlocks, "split the batch");
  if (takes_states(backward)) {
    a.x_in_workspace = true;
    const Index chunks = c.packed.cu_seqlens ? packed_chunks(c.length, sequences) : chunk_count(c.length) + 1;
    reserve(plan, Index{c.batch} * c.dim * chunks * numbers_of(c));
    Forward states = {};
    states.common = c;
    states.common.z = {};
    if (!add_general_forward(states, true, plan, message)) return false;
  }
  const Index matrix = sequences * a.matrix_pitch;
  const Index projection = Index{a.runs} * c.batch * c.groups * c.states * a.pitch;
  a.dB = reserve(plan, c.constant_B.data ? matrix : projection);
  a.dC = reserve(plan, c.constant_C.data ? matrix : projection);
  a.dA = reserve(plan, matrix);
  a.carry = reserve(plan, matrix);
  a.dD = reserve(plan, sequences * a.dim_pitch);
  a.dbias = reserve(plan, sequences * a.dim_pitch);
  add_launch(plan, general_kernel_index(true, c), entries * a.runs, kGeneralWarps * 32,
             4 * general_floats(c, true), a);
  return add_general_reduce(a, false, plan, message);
}

}  // namespace scankit::selective_scan
