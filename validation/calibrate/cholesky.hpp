// SPDX-License-Identifier: Apache-2.0
// The little linear algebra that a fit needs: small symmetric matrices, positive definite by a prior. Pure functions.
#pragma once

#include <vector>

namespace rehearse::validation {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

// Lower triangle L with L Lt = m.
[[nodiscard]] Matrix cholesky(const Matrix& m);
// x of L Lt x = b.
[[nodiscard]] Vector solve(const Matrix& l, Vector b);
[[nodiscard]] Matrix inverse(const Matrix& m);

}  // namespace rehearse::validation
