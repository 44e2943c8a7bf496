#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace quail::session {

/// A model with a name of its own.
struct KnownModel {
  std::string_view name;
  std::string_view file;     ///< in a folder of models
  std::string_view adapter;  ///< made for it, in a folder of adapters
  std::string_view summary;
};

/// All known names, the embedded default first.
std::span<const KnownModel> KnownModels();

/// Where the file of a known model lies: in ${XDG_CACHE_HOME:-~/.cache}/quail/models, else where
/// the build fetched it.
std::optional<std::filesystem::path> FindKnownModel(const KnownModel& model);

/// The adapter that was made for the model in `path`, where that is a known model's file and the
/// adapter is there: in
/// ${XDG_CACHE_HOME:-~/.cache}/quail/models, else beside the sources.
std::optional<std::filesystem::path> FindAdapter(const std::filesystem::path& path);
/// Whether `path` is the file of a model whose adapter FindAdapter looks for.
bool HasOwnAdapter(const std::filesystem::path& path);

/// The file or folder that `model` names: a known name (empty: the default), a path. Throws
/// Error{kModel} where there is none, saying what is known and how to get it.
std::filesystem::path LocateModel(std::string_view model);

}  // namespace quail::session
