#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quail/config.h"
#include "quail/error.h"

/// What this computer has and can do, without a session.
namespace quail {

/// "0.1.0".
std::string Version();

struct NamedModel {
  std::string name;
  std::string summary;
  std::string path;  ///< empty: not on this computer
};
/// The models that have a name, the embedded default first.
std::vector<NamedModel> NamedModels();

/// The models whose shape is known without their files, for made-up weights
/// (Config::random_weights).
std::vector<std::string> NamedShapes();

/// Fetches a named model into the cache. Returns its path. Throws Error.
std::string DownloadModel(std::string_view name);

/// One line of `quail doctor`.
struct Finding {
  std::string subject;
  std::string text;
  bool usable = true;
};
/// Looks at the relational engine, the model, the processor and the GPU as a session with `config`
/// would use them.
std::vector<Finding> Examine(const Config& config);

/// Measured rates of this computer, kept in the user's cache for the cost model.
struct Calibration {
  std::string device;
  std::string source;  ///< how it was measured
  double f32_flops_per_second = 0;
  double bf16_flops_per_second = 0;  ///< 0: not measured, the processor has no fast bf16
  double int8_flops_per_second = 0;
  double bytes_per_second = 0;  ///< reading memory
  std::string path;             ///< where it was written
};
Calibration Calibrate(unsigned threads);

/// "error: MESSAGE" and, where the error has a position, "line L, column C", the source line and a
/// caret under the place. Ends without a newline.
std::string Describe(const Error& error, std::string_view text);

}  // namespace quail
