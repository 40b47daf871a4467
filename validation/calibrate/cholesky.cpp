// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/cholesky.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::validation {

Matrix cholesky(const Matrix& m) {
  const size_t n = m.size();
  Matrix l(n, Vector(n, 0));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = m[i][j];
      for (size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / l[j][j];
    }
  }
  return l;
}

Vector solve(const Matrix& l, Vector b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= l[i][k] * b[k];
    b[i] /= l[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= l[k][i] * b[k];
    b[i] /= l[i][i];
  }
  return b;
}

Matrix inverse(const Matrix& m) {
  const Matrix l = cholesky(m);
  Matrix out;
  for (size_t i = 0; i < m.size(); ++i) {
    Vector unit(m.size(), 0);
    unit[i] = 1;
    out.push_back(solve(l, unit));
  }
  return out;
}

}  // namespace rehearse::validation
