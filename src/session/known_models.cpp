#include "session/known_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "quail/error.h"
#include "quail/machine.h"
#include "spec/known_shapes.h"

namespace quail::session {
namespace {

constexpr std::array kKnown = {
    KnownModel{"smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf",
               "smollm2-135m-judge/adapter.safetensors",
               "SmolLM2-135M-Instruct, Q4_1, 99 MB, Apache-2.0: the default; shows that it runs"},
};

std::filesystem::path CacheFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "quail" / "models";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "." : home) / ".cache" / "quail" / "models";
}

}  // namespace

std::span<const KnownModel> KnownModels() { return kKnown; }

std::optional<std::filesystem::path> FindKnownModel(const KnownModel& model) {
  for (const std::filesystem::path& folder :
       {CacheFolder(), std::filesystem::path(QUAIL_BUILD_MODELS)}) {
    std::error_code ignored;
    const std::filesystem::path file = folder / model.file;
    if (std::filesystem::exists(file, ignored)) return file;
  }
  return std::nullopt;
}

bool HasOwnAdapter(const std::filesystem::path& path) {
  return std::ranges::any_of(
      kKnown, [&](const KnownModel& known) { return path.filename() == known.file; });
}

std::optional<std::filesystem::path> FindAdapter(const std::filesystem::path& path) {
  for (const KnownModel& known : kKnown) {
    if (path.filename() != known.file) continue;
    for (const std::filesystem::path& folder :
         {CacheFolder(), std::filesystem::path(QUAIL_ADAPTERS)}) {
      std::error_code ignored;
      const std::filesystem::path file = folder / known.adapter;
      if (std::filesystem::exists(file, ignored)) return file;
    }
  }
  return std::nullopt;
}

std::filesystem::path LocateModel(std::string_view model) {
  const std::string_view name = model.empty() ? kKnown.front().name : model;
  std::string names;
  for (const KnownModel& known : kKnown) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    if (known.name != name) continue;
    if (const auto file = FindKnownModel(known)) return *file;
    throw Error(
        ErrorCode::kModel,
        fmt::format("model {} is not on this computer: run `quail download {}`", name, name));
  }
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) return std::filesystem::path(name);
  if (spec::FindShape(name) != nullptr) {
    throw Error(
        ErrorCode::kModel,
        fmt::format("of {} only the shape is known, for --random-weights; name a .gguf file "
                    "or a folder with config.json and safetensors",
                    name));
  }
  throw Error(ErrorCode::kModel,
              fmt::format("no model '{}': it is neither a known name ({}), nor a .gguf file, nor a "
                          "folder with config.json; with --random-weights also {}",
                          name, names, fmt::join(NamedShapes(), ", ")));
}

}  // namespace quail::session
