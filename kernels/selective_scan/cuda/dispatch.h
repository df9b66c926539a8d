// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/choice.h"

// Choices that were measured (dispatch_table.def, which the tuner writes), and which of them a problem takes.
namespace scankit::selective_scan {

struct Measurement {
  int capability, multiprocessors;  // of the GPU; another count of multiprocessors has other waves
  DType dtype;
  int states, length;
  Index channels;  // batch times dim, in one group
  Choice choice;
};
struct DispatchTable {
  const Measurement* rows;
  int count;
};

extern const DispatchTable kForwardMeasured;
extern const DispatchTable kBackwardMeasured;

struct Found {
  const Measurement* row;  // null: none is near
  bool exact;              // it is of this very problem
};
// The nearest row of this kind of GPU, by the logarithms of length and channels. Float32 has its own rows;
// the two 16-bit types take each other's where there is none of their own as near. Up to 16 states a row
// stands for all counts that take the same slice. No row further off than a factor of 2.4 in length, 1.5 in
// channels, 2 in states above 16 is taken.
Found find_measurement(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts);

// As choose_forward and choose_backward, by a given table, and not remembered. A row that cannot run the
// problem is passed over. A neighbour's choice is taken only where it is not predicted to be much slower here
// than the best prediction: what filled the last wave there may just not fit here.
bool choose_forward_by(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts,
                       Choice* choice);
bool choose_backward_by(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts,
                        Choice* choice);

}  // namespace scankit::selective_scan
