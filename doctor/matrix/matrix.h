// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "doctor/report/document.h"

// Where compiled files would import and run: which releases of torch, Pythons, CUDA, glibc and GPUs they fit. Nothing of that is
// at hand: each place is described as a snapshot (places.h), and the checks that judge a user's environment judge it.
namespace scankit::matrix {

struct MatrixRequest {
  std::vector<std::string> files;    // wheels, libraries and folders of them, as the user named them
  std::vector<std::string> torch;    // "2.6"; never empty
  std::vector<std::string> pythons;  // "3.11"; empty: those that any of the files is for
  // Further axes, each judged by itself; empty ones are left out.
  std::vector<std::string> cudas, glibcs, gpus;  // "12.4", "2.28", "sm_90"
  std::string driver;                            // "" for one that is new enough for everything
};

enum class Fit : std::uint8_t {
  Works,
  Fails,
  Unknown,     // the facts of the tables do not decide it
  NotOffered,  // none of the files is for this Python
  NoTorch      // that release of torch has no wheels for this Python
};
std::string_view fit_word(Fit fit);  // "works", "fails", "unknown", "not-offered", "no-torch": for JSON

struct Cell {
  Fit fit = Fit::Unknown;
  std::string cause;  // slug, where it fails
  Message reason;     // one sentence; "" where it works
  std::string file;   // the wheel that was judged; "" for files that are no wheel
};
// torch x Python, or one value of another axis.
struct MatrixCell {
  std::string torch, python;
  Cell cell;
};
struct AxisCell {
  std::string value;
  Cell cell;
};

// Wheels of one distribution and version, or all files that are in no wheel.
struct FileGroup {
  std::string name;                   // "foo 1.2", "files"
  std::vector<std::string> files;     // as they were found
  std::size_t libraries = 0;          // compiled modules, and libraries that use torch
  std::string machine;                // "x86_64"
  std::string glibc_min, cuda_major;  // what they need; "" where they do not say
  // What they need that neither they nor torch, CUDA or glibc bring: "libsox.so". Taken to be there.
  std::vector<std::string> system_libraries;
  // Of their files, those that request an executable stack: glibc 2.41 and newer refuse it.
  std::vector<std::string> executable_stack;
  std::vector<std::string> device_code;  // "sm_80", "compute_90" (PTX), in that order, each once
  std::vector<MatrixCell> cells;
  std::vector<AxisCell> cudas, glibcs, gpus;
};

struct Matrix {
  std::vector<FileGroup> groups;
  std::vector<Message> notes;  // what is wrong with a scankit.module.yaml of theirs
};

// An Error where a file that was named cannot be examined, or where none of them holds a compiled module.
Result<Matrix> matrix_of(const MatrixRequest& request);

// Works where every cell that torch has wheels for works, and there is one; otherwise Fails, or Unknown where nothing fails.
Fit overall(const Matrix& matrix);

// `works`, `fails` and so on are exit statuses of doctor: 0, 1, 4.
int exit_status_of(const Matrix& matrix);

// For a terminal: a table for each group of files, the other axes below it, and why each "no" is one.
std::string matrix_text(const Matrix& matrix, const report::TextStyle& style);
// doctor/report/schema/matrix-1.json
std::string matrix_json(const Matrix& matrix);
report::Document matrix_document(const Matrix& matrix);
// `matrix` must outlive the views.
report::Views matrix_views(const Matrix& matrix);

}  // namespace scankit::matrix
