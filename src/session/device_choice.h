#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "infer/backend.h"
#include "quail/config.h"

namespace quail::session {

/// The backend that `config.backend` names; `auto` takes a usable GPU, else the CPU. Throws
/// Error{kUsage} for another name, Error{kDevice} with the reason when the named one cannot be
/// used.
std::unique_ptr<infer::Backend> OpenBackend(const Config& config);

/// The GPU that `auto` would take. Throws Error{kDevice} that says why there is none.
std::string DescribeGpu();

/// Positions of KV that a backend gets when the user says nothing; each takes `a_token` bytes.
std::int64_t DefaultKvTokens(const infer::BackendInfo& device, std::int64_t a_token);

}  // namespace quail::session
