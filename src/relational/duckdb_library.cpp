#include "relational/duckdb_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "quail/error.h"

#ifndef QUAIL_BUILD_DUCKDB
#define QUAIL_BUILD_DUCKDB ""
#endif

namespace quail::relational {
namespace {

/// The oldest version whose C API has all that is needed.
constexpr int kOldestMajor = 1;
constexpr int kOldestMinor = 5;

constexpr std::string_view kHowToGetOne =
    "DuckDB 1.5 or later is needed: fetch it with `./dev setup`, install it (`pip install duckdb`, "
    "inside Python), or name the library (setting duckdb_library, option --duckdb-library)";

/// What was tried in vain, for the message.
struct Refusal {
  std::string path;
  std::string reason;
};

/// A Python module leaves Python's symbols undefined: outside Python they come from the libpython
/// of its name.
void LoadPythonFor(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::size_t tag = name.find("cpython-3");
  if (tag == std::string::npos) return;
  const std::size_t digits = tag + std::string_view("cpython-3").size();
  const std::string minor = name.substr(digits, name.find('-', digits) - digits);
  ::dlopen(fmt::format("libpython3.{}.so.1.0", minor).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

void* OpenLibrary(const std::string& path, std::string& reason) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) reason = ::dlerror();
  if (library != nullptr || reason.find("undefined symbol: Py") == std::string::npos) {
    return library;
  }
  LoadPythonFor(path);
  library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    reason = "a Python module, usable only inside Python or beside its libpython";
  }
  return library;
}

/// DuckDB's wheels hold AVX2 instructions, which would end the process on an older CPU.
bool CpuRuns(const std::string& path) {
#if defined(__x86_64__)
  const bool is_wheel = std::filesystem::path(path).filename().string().starts_with("_duckdb");
  return !is_wheel || __builtin_cpu_supports("avx2");
#else
  static_cast<void>(path);
  return true;
#endif
}

/// The name of the first function that the library lacks; empty when all were found.
std::string Resolve(void* library, DuckDbApi& api) {
  std::string missing;
  const auto find = [&](const char* name) {
    void* symbol = ::dlsym(library, name);
    if (symbol == nullptr && missing.empty()) missing = name;
    return symbol;
  };
#define QUAIL_RESOLVE(name, result, parameters) \
  api.name = reinterpret_cast<decltype(api.name)>(find("duckdb_" #name));
  QUAIL_DUCKDB_FUNCTIONS(QUAIL_RESOLVE)
#undef QUAIL_RESOLVE
  return missing;
}

/// Whether "v1.5.5", "1.5", "v2.0.0-dev12" is kOldest or later. Unreadable versions (development
/// builds) pass: what counts then is that all functions are there.
bool RecentEnough(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  int major = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return true;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return true;
  return major > kOldestMajor || (major == kOldestMajor && minor >= kOldestMinor);
}

/// The process's one DuckDB. Never unloaded: its threads may still run when statics are destroyed.
struct Loaded {
  void* library = nullptr;
  std::string path;
  DuckDbApi api;
};

/// Why the library at `path` cannot be used; empty when it was loaded.
std::string TryLoad(const std::string& path, Loaded& loaded) {
  if (!CpuRuns(path)) return "built for CPUs with AVX2, which this one lacks";
  std::string reason;
  void* library = OpenLibrary(path, reason);
  if (library == nullptr) return reason;
  DuckDbApi api;
  const std::string missing = Resolve(library, api);
  if (api.library_version == nullptr) {
    return "no DuckDB with a C API (DuckDB's Python modules have one from 1.5.3 on)";
  }
  const std::string version = api.library_version();
  if (!RecentEnough(version)) return fmt::format("DuckDB {} is too old", version);
  if (!missing.empty()) return fmt::format("DuckDB {} lacks {}", version, missing);
  loaded = {library, path, api};
  return "";
}

/// dl_iterate_phdr callback: the path of a DuckDB that this process has loaded.
int FindLoaded(struct dl_phdr_info* info, std::size_t, void* data) {
  const std::string name = std::filesystem::path(info->dlpi_name).filename().string();
  const bool is_duckdb =
      name.starts_with("_duckdb.") || name == "_duckdb.so" || name.starts_with("libduckdb.so");
  if (!is_duckdb) return 0;
  *static_cast<std::string*>(data) = info->dlpi_name;
  return 1;
}

std::string CachedLibrary() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr) {
    folder = std::filesystem::path(home) / ".cache";
  }
  if (folder.empty()) return "";
  return (folder / "quail" / "duckdb" / "libduckdb.so").string();
}

std::vector<std::string> Candidates() {
  std::vector<std::string> paths;
  std::string loaded;
  ::dl_iterate_phdr(&FindLoaded, &loaded);
  if (!loaded.empty()) paths.push_back(loaded);
  paths.emplace_back("libduckdb.so");
  const std::string files[] = {CachedLibrary(), QUAIL_BUILD_DUCKDB};
  for (const std::string& file : files) {
    std::error_code ignored;
    if (!file.empty() && std::filesystem::exists(file, ignored)) paths.push_back(file);
  }
  return paths;
}

[[noreturn]] void ThrowNoLibrary(const std::vector<Refusal>& refusals) {
  std::string message = "no usable DuckDB library";
  for (const Refusal& refusal : refusals) {
    message += fmt::format("\n  {}: {}", refusal.path, refusal.reason);
  }
  throw Error(ErrorCode::kDevice, fmt::format("{}\n{}", message, kHowToGetOne));
}

Loaded& TheLoaded() {
  static Loaded* loaded = new Loaded;
  return *loaded;
}

void CheckSameLibrary(const Loaded& loaded, const std::string& path) {
  if (path.empty() || path == loaded.path) return;
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) == loaded.library) return;
  throw Error(
      ErrorCode::kDevice,
      fmt::format("this process already uses the DuckDB library '{}'; it cannot change to '{}'",
                  loaded.path, path));
}

}  // namespace

const DuckDbApi& LoadDuckDb(const std::string& explicit_path) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Loaded& loaded = TheLoaded();
  if (loaded.library != nullptr) {
    CheckSameLibrary(loaded, explicit_path);
    return loaded.api;
  }
  std::vector<Refusal> refusals;
  const auto paths = explicit_path.empty() ? Candidates() : std::vector<std::string>{explicit_path};
  for (const std::string& path : paths) {
    std::string reason = TryLoad(path, loaded);
    if (reason.empty()) return loaded.api;
    refusals.push_back({path, std::move(reason)});
  }
  ThrowNoLibrary(refusals);
}

const DuckDbApi& LoadedDuckDb() {
  QUAIL_CHECK(TheLoaded().library != nullptr);
  return TheLoaded().api;
}

}  // namespace quail::relational
