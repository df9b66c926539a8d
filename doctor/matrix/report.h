// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/matrix/matrix.h"
#include "doctor/report/document.h"

namespace scankit {

// `works`, `fails` and so on are exit statuses of doctor: 0, 1, 4.
int exit_status_of(const Matrix& matrix);

// For a terminal: a table for each group of files, the other axes below it, and why each "no" is one.
std::string matrix_text(const Matrix& matrix, const TextStyle& style);
// doctor/report/schema/matrix-1.json
std::string matrix_json(const Matrix& matrix);
Document matrix_document(const Matrix& matrix);
// `matrix` must outlive the views.
Views matrix_views(const Matrix& matrix);

}  // namespace scankit
