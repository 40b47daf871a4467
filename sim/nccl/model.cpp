// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/model.hpp"

namespace rehearse::sim {

Result<NcclModel> make_nccl_model(const CommShape& shape, const Settings& settings,
                                  const NcclVersion& version) {
  if (auto ok = check_shape(shape); !ok) return tl::unexpected(ok.error());
  NcclModel model{shape, settings, constants_for(version), {}};
  model.table = build_tuning_table({model.shape, model.settings, model.version.constants});
  return model;
}

}  // namespace rehearse::sim
