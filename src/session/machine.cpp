#include "quail/machine.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/text_position.h"
#include "base/thread_pool.h"
#include "relational/connection.h"
#include "session/calibration.h"
#include "session/device_choice.h"
#include "session/known_models.h"
#include "session/model_host.h"
#include "session/user_position.h"
#include "session/version.h"
#include "spec/known_shapes.h"

namespace quail {
namespace {

/// What `look` finds, or why it failed.
template <typename Look>
Finding Find(std::string subject, Look look) {
  Finding finding{std::move(subject), "", true};
  const auto failed = session::Attempt([&] { finding.text = look(); });
  if (failed) {
    finding.text = *failed;
    finding.usable = false;
  }
  return finding;
}

}  // namespace

std::string Version() { return session::kVersion; }

std::vector<NamedModel> NamedModels() {
  std::vector<NamedModel> models;
  for (const session::KnownModel& known : session::KnownModels()) {
    const auto file = session::FindKnownModel(known);
    models.push_back({std::string(known.name), std::string(known.summary),
                      file ? file->string() : std::string()});
  }
  return models;
}

std::vector<std::string> NamedShapes() {
  std::vector<std::string> names;
  for (const spec::KnownShape& shape : spec::KnownShapes()) names.push_back(shape.spec.name);
  return names;
}

std::string DownloadModel(std::string_view name) {
  for (const session::KnownModel& known : session::KnownModels()) {
    if (known.name != name) continue;
    if (const auto file = session::FindKnownModel(known)) return file->string();
    const std::string script = QUAIL_FETCH_SCRIPT;
    std::error_code ignored;
    if (!std::filesystem::exists(script, ignored)) {
      throw Error(ErrorCode::kIo, fmt::format("{} is missing: put {} into "
                                              "~/.cache/quail/models yourself",
                                              script, known.file));
    }
    if (std::system(fmt::format("python3 '{}' --group core >&2", script).c_str()) != 0) {
      throw Error(ErrorCode::kIo, fmt::format("{} could not fetch {}", script, name));
    }
    if (const auto file = session::FindKnownModel(known)) return file->string();
    throw Error(ErrorCode::kIo, fmt::format("{} left no {}", script, known.file));
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("no model is named '{}'; quail models lists them", name));
}

std::vector<Finding> Examine(const Config& config) {
  std::vector<Finding> findings;
  findings.push_back(Find("duckdb", [&] {
    relational::DuckDbOptions options;
    options.library_path = config.duckdb_library;
    return relational::OpenDuckDb(options)->engine_version();
  }));
  base::ThreadPool pool(config.threads);
  std::string processor;
  findings.push_back(Find("model", [&] {
    const session::ModelHost host(config, pool);
    const infer::BackendInfo& device = host.device();
    processor = fmt::format("{}, {} threads, {} GiB, computes in {}", device.device, device.threads,
                            device.memory_bytes >> 30, spec::NameOf(device.compute_type));
    return fmt::format("{} ({}), answers {} / {}", host.spec().name, host.ModelReport().path,
                       host.answers().words.yes, host.answers().words.no);
  }));
  if (!processor.empty()) findings.push_back({"cpu", processor, true});
  findings.push_back(Find("gpu", session::DescribeGpu));
  findings.push_back(Find("cost model", [] {
    const auto device = session::ReadCalibration();
    if (!device) return std::string("not calibrated: run quail calibrate");
    return fmt::format("calibrated: {:.0f} GFLOP/s f32, {:.0f} bf16, {:.0f} int8, {:.1f} GB/s",
                       device->f32_rate / 1e9, device->bf16_rate / 1e9, device->int8_rate / 1e9,
                       device->bandwidth / 1e9);
  }));
  return findings;
}

Calibration Calibrate(unsigned threads) {
  const spec::DeviceSpec device = session::MeasureComputer(threads);
  Calibration rates;
  rates.device = device.name;
  rates.source = device.source;
  rates.f32_flops_per_second = device.f32_rate;
  rates.bf16_flops_per_second = device.bf16_rate;
  rates.int8_flops_per_second = device.int8_rate;
  rates.bytes_per_second = device.bandwidth;
  rates.path = session::CalibrationPath().string();
  return rates;
}

std::string Describe(const Error& error, std::string_view text) {
  return base::Describe(error, text);
}

}  // namespace quail
