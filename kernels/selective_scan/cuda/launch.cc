// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/launch.h"

#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/kept_states.h"
#include "kernels/selective_scan/cuda/launch_parts.h"
#include "kernels/selective_scan/cuda/layout.h"

// The plans of the plain kernels, and which calls the general ones take. A forward is one launch, with
// another before it (ends.cuh) where the length is cut. A backward is, in this order: a forward that saves
// the states, if it is given none; the ends, where its length is cut; the scan; the reduction of its slabs.
// Or several scans and reductions (kept_states.h). A problem with nothing to scan still gets its gradients,
// zeros, from the reduction. Nothing here asks the driver or looks at a tensor's contents.
namespace scankit::selective_scan {

namespace {

// What the kernels cannot do, in words for the user. The binding has checked the rest.
template <class Parameters>
bool is_known(const Parameters& p, device::Message* message) {
  if (p.states < 1 || p.states > kMaxStates) {
    snprintf(message->text, sizeof message->text,
             "selective_scan: %d states; the CUDA kernels take 1 to %d: split the state dimension", p.states,
             kMaxStates);
    return false;
  }
  if (p.groups < 1 || p.dim % p.groups != 0) {
    snprintf(message->text, sizeof message->text,
             "selective_scan: %d channels do not divide into %d groups: B and C need a group count that does",
             p.dim, p.groups);
    return false;
  }
  return true;
}

constexpr const char* kShortRows = "this CUDA variant takes 16-bit rows";

// Cuts the length as chosen, and adds the launch that finds the ends of the pieces which the segments
// start from: of all but the last segment's, in the backward of all but the first one's. dout: null in
// the forward.
bool add_segments(const Variant& variant, const Choice& choice, const Common& c, Index blocks,
                  const Sequence* dout, Segments* segments, device::Plan* plan, device::Message* message) {
  *segments = cut(variant, choice, c);
  if (segments->count == 1 || blocks == 0) return true;
  EndsArguments arguments = {};
  arguments.common = c;
  if (dout) arguments.dout = *dout;
  arguments.aligned = is_aligned(c) && (!dout || is_aligned(*dout, c));
  arguments.tiling = ends_tiling(c);
  const Index channels = Index{c.batch} * c.dim, per_segment = segments->tiles / segments->tiles_per_piece;
  segments->ends = reserve(plan, segments->pieces * channels * c.states);
  segments->sums = reserve(plan, segments->pieces * channels);
  arguments.segments = *segments;
  arguments.first = dout ? static_cast<int>(per_segment) : 0;
  const Index pieces = dout ? segments->pieces - per_segment : (segments->count - 1) * per_segment;
  const Index ends_blocks = arguments.tiling.tiles_per_group * Index{c.groups} * c.batch;
  if (ends_blocks > 0x7fffffff) return refuse(message, kTooManyBlocks, "split the batch");
  constexpr int kFloats = EndsMemory<Layout<kEndsLanes, kEndsPer, 1>>::kBlock +
                          kEndsWarps * EndsMemory<Layout<kEndsLanes, kEndsPer, 1>>::kWarp;
  const bool constant = (dout ? c.constant_C : c.constant_B).data != nullptr;
  const int kernel = constant ? constant_kernel_index(dout != nullptr, true, c.dtype)
                              : ends_kernel_index(dout != nullptr, c.dtype);
  add_launch(plan, kernel, ends_blocks, kEndsWarps * 32, 4 * kFloats, arguments, pieces);
  return true;
}

// Adds a forward and what it needs. `arguments` come with forward, where states are saved, and
// `end`; the rest is filled in here.
bool add_forward(ForwardArguments arguments, const Choice& choice, device::Plan* plan,
                 device::Message* message) {
  const Common& common = arguments.forward.common;
  const Variant& variant = forward_variant(choice, common);
  if (variant.odd && common.dtype == DType::F32) return refuse(message, kShortRows, "choose another");
  const Index blocks = block_count(variant, choice.warps, common);
  if (blocks < 0) return refuse(message, kTooManyBlocks, "split the batch");
  if (blocks == 0) return true;
  arguments.tiling = make_tiling(variant, choice.warps, common);
  arguments.aligned = is_aligned(arguments.forward);
  if (!add_segments(variant, choice, common, blocks, nullptr, &arguments.segments, plan, message))
    return false;
  const int kernel = has_constant(common) ? constant_kernel_index(false, false, common.dtype)
                                          : forward_kernel_index(choice.variant, common.dtype);
  add_launch(plan, kernel, blocks, choice.warps * 32,
             shared_bytes(variant, choice.warps, common.states, common.dtype), arguments,
             arguments.segments.count, arguments.segments.count > 1);
  return true;
}

// Adds a forward that saves the states which the backward is not given: in du (kept_states.h) or in the
// workspace, at its start, since nothing is reserved yet. It writes nothing else, and skips the last
// tile, whose end nobody reads.
bool add_states(const Choice& choice, const Choice& states_choice, BackwardArguments* arguments,
                device::Plan* plan, device::Message* message) {
  Backward& b = arguments->backward;
  const Common& c = b.common;
  const Variant &variant = backward_variant(choice, c), &of_states = forward_variant(states_choice, c);
  ForwardArguments states = {};
  states.forward.common = c;
  states.forward.common.z = {};
  states.end = static_cast<int>((chunk_count(c.length) - 1) * kStateInterval);
  const KeptStates kept =
      variant.sliced || of_states.sliced ? KeptStates{} : states_in_du(b, cut(variant, choice, c).count > 1);
  if (kept.x.data) {
    b.x = states.forward.x = kept.x;
    arguments->x_odd_rows = states.x_odd_rows = kept.odd_rows;
  } else {
    arguments->x_in_workspace = states.x_in_workspace = true;
    reserve(plan, Index{c.batch} * c.dim * (chunk_count(c.length) + 1) * c.states);
  }
  return add_forward(states, states_choice, plan, message);
}

// Where one block has all channels of a group, and there is one batch entry and one segment, there
// is one slab of each: the kernel then writes the gradients themselves, and needs no workspace and
// no reduction. False: not so.
bool set_direct(BackwardArguments* arguments, bool sliced) {
  const Backward& b = arguments->backward;
  const Common& c = b.common;
  const bool rounded = c.dtype != DType::F32;
  const bool has_places =
      b.dA && (rounded ? b.rounded_dB && b.rounded_dC : b.dB && b.dC && !b.rounded_dB && !b.rounded_dC);
  if (sliced || !has_places || has_constant(c) || c.batch != 1 || arguments->tiling.tiles_per_group != 1 ||
      arguments->segments.count != 1)
    return false;
  arguments->direct = true;
  arguments->dA = reinterpret_cast<Index>(b.dA);
  arguments->dD = reinterpret_cast<Index>(b.dD);
  arguments->dbias = reinterpret_cast<Index>(b.ddelta_bias);
  return true;
}

// The backward's own launch.
void add_scan(const BackwardArguments& arguments, const Variant& variant, const Choice& choice, Index blocks,
              device::Plan* plan) {
  const Common& c = arguments.backward.common;
  const int kernel = has_constant(c) ? constant_kernel_index(true, false, c.dtype)
                                     : backward_kernel_index(choice.variant, c.dtype);
  add_launch(plan, kernel, blocks, choice.warps * 32, shared_bytes(variant, choice.warps, c.states, c.dtype),
             arguments, arguments.segments.count, arguments.segments.count > 1);
}

// How many rounds (kept_states.h), from the choice or by the size of the slabs, at most one a tile. 1 where a
// pointer cannot say where a round's first state is: states in the workspace, or in rows at odd places,
// whose strides are half numbers.
int count_rounds(const BackwardArguments& a, bool finds_states, const Variant& variant,
                 const Choice& choice) {
  const Common& c = a.backward.common;
  if (!finds_states || a.x_in_workspace || a.x_odd_rows || a.segments.count > 1 || variant.sliced ||
      has_constant(c))
    return 1;
  const Index slabs =
      2 * a.tiling.tiles_per_group * c.batch * c.groups * c.states * a.pitch * Index{sizeof(float)};
  const Index wanted = choice.rounds > 0 ? choice.rounds : slabs > kSlabsInOneRound ? kRounds : 1;
  const Index most = chunk_count(c.length) < kRounds ? chunk_count(c.length) : kRounds;
  return static_cast<int>(wanted < most ? wanted : most);
}

// A pointer of the last launch's argument, `pointer`, is to point into the workspace, at `offset`.
void add_place(device::Plan* plan, const BackwardArguments& argument, const void* pointer, Index offset) {
  const auto at = static_cast<const char*>(pointer) - reinterpret_cast<const char*>(&argument);
  plan->places[plan->place_count++] = {plan->launch_count - 1, static_cast<unsigned>(at),
                                       static_cast<size_t>(offset)};
}

// Launches: a forward and what finds its pieces' ends, then two a round. Places: one for the end of a
// round and one for the begin of the next.
static_assert(device::kMaxLaunches >= 2 + 2 * kRounds && device::kMaxPlaces >= 2 * (kRounds - 1));

// Adds a scan and its reduction for each round, the last tiles first. All rounds use the same
// slabs, in turn, and the same place for the gradient that one hands to the next: they run one
// behind the other on one stream.
bool add_rounds(const BackwardArguments& whole, int rounds, const Variant& variant, const Choice& choice,
                Index blocks, device::Plan* plan, device::Message* message) {
  const Common& c = whole.backward.common;
  const Index tiles = chunk_count(c.length), each = (tiles + rounds - 1) / rounds;
  const Index last = (tiles - 1) / each * each, carry = reserve(plan, Index{c.batch} * c.dim * c.states);
  BackwardArguments part = whole;
  part.pitch = each * kStateInterval;
  reserve_slabs(&part, false, plan);
  for (Index tile = last; tile >= 0; tile -= each) {
    const Index first = tile * kStateInterval, left = c.length - first, most = each * kStateInterval;
    part.backward = part_of(whole.backward, first, left < most ? left : most);
    if (tile < last) part.backward.dlast_state = {nullptr, Index{c.dim} * c.states, c.states};
    part.aligned = is_aligned(part.backward);
    part.halves = is_aligned(part.backward, 8);
    set_pitches(&part);
    add_scan(part, variant, choice, blocks, plan);
    if (tile < last) add_place(plan, part, &part.backward.dlast_state.data, carry);
    if (tile > 0) add_place(plan, part, &part.backward.dinitial_state, carry);
    if (!add_reduce(part, c.length, tile < last, plan, message)) return false;
  }
  return true;
}

bool takes_general(const Common& c) {
  return c.complex || c.packed.cu_seqlens || (has_constant(c) && c.states > 16);
}
// Also a backward of no steps that has to hand the last state's gradient on: the plain kernel is not
// launched then.
bool takes_general(const Backward& b) {
  return takes_general(b.common) || (b.common.length == 0 && b.dinitial_state);
}

}  // namespace

bool plan_forward_as(const Forward& forward, const Choice& choice, device::Plan* plan,
                     device::Message* message) {
  clear(plan);
  if (!is_known(forward.common, message)) return false;
  ForwardArguments arguments = {};
  arguments.forward = forward;
  arguments.end = forward.common.length;
  return add_forward(arguments, choice, plan, message);
}

bool plan_backward_as(const Backward& backward, const Choice& choice, const Choice& states_choice,
                      device::Plan* plan, device::Message* message) {
  clear(plan);
  const Common& c = backward.common;
  if (!is_known(c, message)) return false;
  BackwardArguments arguments = {};
  arguments.backward = backward;
  const Variant& variant = backward_variant(choice, c);
  const Index blocks = block_count(variant, choice.warps, c);
  if (blocks < 0) return refuse(message, kTooManyBlocks, "split the batch");
  arguments.tiling = make_tiling(variant, choice.warps, c);
  arguments.aligned = is_aligned(backward);
  arguments.halves = is_aligned(backward, 8);
  if (variant.halves && !arguments.halves)
    return refuse(message, "this CUDA variant takes rows of whole quads at their places", "choose another");
  if (variant.odd && c.dtype == DType::F32) return refuse(message, kShortRows, "choose another");
  set_pitches(&arguments);
  if (blocks > 0 && c.length > 0) {
    if (takes_states(backward) && !add_states(choice, states_choice, &arguments, plan, message)) return false;
    if (!add_segments(variant, choice, c, blocks, &backward.dout, &arguments.segments, plan, message))
      return false;
    const int rounds = count_rounds(arguments, takes_states(backward), variant, choice);
    if (rounds > 1) return add_rounds(arguments, rounds, variant, choice, blocks, plan, message);
    // Directly only without any workspace: the kernel takes offsets for addresses by the workspace's
    // being null.
    if (plan->workspace_bytes != 0 || !set_direct(&arguments, variant.sliced))
      reserve_slabs(&arguments, variant.sliced, plan);
    add_scan(arguments, variant, choice, blocks, plan);
  }
  return arguments.direct || add_reduce(arguments, c.length, false, plan, message);
}

bool plan_forward(const Forward& forward, const device::DeviceFacts& facts, device::Plan* plan,
                  device::Message* message) {
  if (!is_known(forward.common, message)) return false;
  clear(plan);
  if (forward.common.packed.cu_seqlens) {
    bool taken = false;
    if (!plan_packed_forward(forward, facts, &taken, plan, message)) return false;
    if (taken) return true;
    clear(plan);
  }
  if (takes_general(forward.common)) return add_general_forward(forward, false, plan, message);
  Choice choice;
  if (!choose_forward(forward.common, facts, &choice, is_aligned(forward, 8)))
    return refuse(message, "no CUDA variant fits this GPU's shared memory", "use fewer states");
  return plan_forward_as(forward, choice, plan, message);
}

bool plan_backward(const Backward& backward, const device::DeviceFacts& facts, device::Plan* plan,
                   device::Message* message) {
  if (!is_known(backward.common, message)) return false;
  clear(plan);
  if (backward.common.packed.cu_seqlens) {
    bool taken = false;
    if (!plan_packed_backward(backward, facts, &taken, plan, message)) return false;
    if (taken) return true;
    clear(plan);
  }
  if (takes_general(backward)) return plan_general_backward(backward, facts, plan, message);
  Choice choice, states = {};
  if (!choose_backward(backward.common, facts, &choice, is_aligned(backward, 8)) ||
      (takes_states(backward) &&
       !choose_forward(backward.common, facts, &states, is_aligned(backward.common, 8))))
    return refuse(message, "no CUDA variant fits this GPU's shared memory", "use fewer states");
  return plan_backward_as(backward, choice, states, plan, message);
}

bool plan_update(const Update& update, const device::DeviceFacts&, device::Plan* plan,
                 device::Message* message) {
  clear(plan);
  if (!is_known(update, message)) return false;
  UpdateArguments arguments = {};
  arguments.update = update;
  arguments.channels_per_group = update.dim / update.groups;
  // Eight states a lane (update.cuh), in a power of two of lanes.
  arguments.lanes = 1;
  while (arguments.lanes * 8 < update.states) arguments.lanes *= 2;
  const int channels = kUpdateThreads / arguments.lanes;  // of a block
  const Index blocks = (Index{update.dim} + channels - 1) / channels;
  arguments.blocks = static_cast<int>(blocks);
  if (blocks * update.batch > 0x7fffffff) return refuse(message, kTooManyBlocks, "split the batch");
  if (blocks * update.batch > 0)
    add_launch(plan, update_kernel_index(update.dtype), blocks * update.batch, kUpdateThreads, 0, arguments);
  return true;
}

}  // namespace scankit::selective_scan
