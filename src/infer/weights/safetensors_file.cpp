#include "infer/weights/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "infer/weights/block_formats.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors are read in place");

// The format's own limit on the head.
constexpr std::uint64_t kMaxHeadBytes = 100'000'000;

struct TypeName {
  std::string_view name;
  std::int64_t bytes;
  std::optional<SafetensorsType> type;
};

constexpr std::array kTypes = {
    TypeName{"F32", 4, SafetensorsType::kF32},
    TypeName{"F16", 2, SafetensorsType::kF16},
    TypeName{"BF16", 2, SafetensorsType::kBf16},
    TypeName{"F8_E4M3", 1, SafetensorsType::kFp8E4m3},
    TypeName{"F64", 8, std::nullopt},
    TypeName{"F8_E5M2", 1, std::nullopt},
    TypeName{"I64", 8, std::nullopt},
    TypeName{"I32", 4, std::nullopt},
    TypeName{"I16", 2, std::nullopt},
    TypeName{"I8", 1, std::nullopt},
    TypeName{"U64", 8, std::nullopt},
    TypeName{"U32", 4, std::nullopt},
    TypeName{"U16", 2, std::nullopt},
    TypeName{"U8", 1, std::nullopt},
    TypeName{"BOOL", 1, std::nullopt},
};

bool IsExtent(const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() > 0;
}

bool IsRange(const json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_number_unsigned() &&
         value[1].is_number_unsigned();
}

/// An entry's place relative to the data section, or what is wrong with it.
struct ParsedEntry {
  SafetensorsEntry entry;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string problem;
};

ParsedEntry ParseEntry(const std::string& name, const json& value, std::uint64_t data_bytes) {
  ParsedEntry parsed;
  parsed.entry.name = name;
  const auto fail = [&](std::string what) {
    parsed.problem = std::move(what);
    return parsed;
  };
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !value["shape"].is_array() || !value.contains("data_offsets") ||
      !IsRange(value["data_offsets"])) {
    return fail("not an entry of dtype, shape and data_offsets");
  }
  parsed.entry.type_name = value["dtype"].get<std::string>();
  const auto type =
      std::ranges::find(kTypes, std::string_view(parsed.entry.type_name), &TypeName::name);
  if (type == kTypes.end())
    return fail(fmt::format("dtype {}", parsed.entry.type_name.substr(0, 40)));
  parsed.entry.type = type->type;
  std::uint64_t values = 1;
  for (const json& extent : value["shape"]) {
    if (!IsExtent(extent)) return fail("a dimension is not a positive integer");
    const auto size = extent.get<std::uint64_t>();
    if (size > data_bytes / values) return fail("the shape is larger than the file");
    values *= size;
    parsed.entry.columns = static_cast<std::int64_t>(size);
  }
  if (value["shape"].empty()) parsed.entry.columns = 1;
  parsed.entry.rows = static_cast<std::int64_t>(values) / parsed.entry.columns;
  parsed.begin = value["data_offsets"][0].get<std::uint64_t>();
  parsed.end = value["data_offsets"][1].get<std::uint64_t>();
  if (parsed.begin > parsed.end || parsed.end > data_bytes) {
    return fail(fmt::format("data [{}, {}) of {} bytes", parsed.begin, parsed.end, data_bytes));
  }
  if (parsed.end - parsed.begin != values * static_cast<std::uint64_t>(type->bytes)) {
    return fail(fmt::format("{} bytes of data for {} values of {}", parsed.end - parsed.begin,
                            values, type->name));
  }
  return parsed;
}

}  // namespace

std::int64_t SizeOf(SafetensorsType type) {
  switch (type) {
    case SafetensorsType::kF32:
      return 4;
    case SafetensorsType::kF16:
    case SafetensorsType::kBf16:
      return 2;
    case SafetensorsType::kFp8E4m3:
      return 1;
  }
  QUAIL_CHECK(false);
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::Open(const std::filesystem::path& path) {
  base::MappedFile file = base::MappedFile::Open(path);
  std::shared_ptr<SafetensorsFile> result(new SafetensorsFile(path.string(), file.bytes()));
  result->file_ = std::move(file);
  result->ReadAll();
  return result;
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::Parse(std::string name,
                                                              std::span<const std::byte> bytes) {
  std::shared_ptr<SafetensorsFile> result(new SafetensorsFile(std::move(name), bytes));
  result->ReadAll();
  return result;
}

SafetensorsFile::SafetensorsFile(std::string name, std::span<const std::byte> bytes)
    : name_(std::move(name)), bytes_(bytes) {}

void SafetensorsFile::Corrupt(std::string_view field, const std::string& what) const {
  throw Error(
      ErrorCode::kCorrupt,
      fmt::format("'{}': {}: {}", name_, base::Escaped(field.substr(0, 80)), base::Escaped(what)));
}

void SafetensorsFile::ReadAll() {
  if (bytes_.size() < sizeof(std::uint64_t)) Corrupt("head length at byte 0", "the file is cut");
  std::uint64_t head_bytes = 0;
  std::memcpy(&head_bytes, bytes_.data(), sizeof(head_bytes));
  const std::uint64_t room = bytes_.size() - sizeof(head_bytes);
  if (head_bytes > room || head_bytes > kMaxHeadBytes) {
    Corrupt("head length at byte 0",
            fmt::format("{} bytes in a file of {}", head_bytes, bytes_.size()));
  }
  const auto* text = reinterpret_cast<const char*>(bytes_.data()) + sizeof(head_bytes);
  const json head = json::parse(text, text + head_bytes, nullptr, false);
  if (!head.is_object()) Corrupt("head at byte 8", "not a JSON object");
  const std::span<const std::byte> data =
      bytes_.subspan(sizeof(head_bytes) + static_cast<std::size_t>(head_bytes));
  for (const auto& [name, value] : head.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) Corrupt(name, "not an object");
      for (const auto& [key, text_value] : value.items()) {
        if (!text_value.is_string()) Corrupt(key, "metadata that is not a string");
        metadata_[key] = text_value.get<std::string>();
      }
      continue;
    }
    ParsedEntry parsed = ParseEntry(name, value, data.size());
    if (!parsed.problem.empty()) Corrupt(name, parsed.problem);
    parsed.entry.data = data.subspan(static_cast<std::size_t>(parsed.begin),
                                     static_cast<std::size_t>(parsed.end - parsed.begin));
    entries_.emplace(name, std::move(parsed.entry));
  }
  CheckOverlaps();
}

void SafetensorsFile::CheckOverlaps() const {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const SafetensorsEntry* entry) { return entry->data.data(); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->data.data() + order[i - 1]->data.size() > order[i]->data.data()) {
      Corrupt(order[i]->name, fmt::format("its data overlaps that of {}", order[i - 1]->name));
    }
  }
}

const SafetensorsEntry* SafetensorsFile::Find(std::string_view tensor) const {
  const auto found = entries_.find(tensor);
  return found == entries_.end() ? nullptr : &found->second;
}

void ReadValues(const SafetensorsEntry& entry, std::int64_t begin, std::int64_t end, float* out) {
  QUAIL_CHECK(entry.type.has_value());
  const std::byte* data = entry.data.data() + begin * SizeOf(*entry.type);
  switch (*entry.type) {
    case SafetensorsType::kF32:
      return Dequantise(spec::GgufType::kF32, data, end - begin, out);
    case SafetensorsType::kF16:
      return Dequantise(spec::GgufType::kF16, data, end - begin, out);
    case SafetensorsType::kBf16:
      return Dequantise(spec::GgufType::kBf16, data, end - begin, out);
    case SafetensorsType::kFp8E4m3:
      for (std::int64_t i = 0; i < end - begin; ++i) {
        out[i] = Fp8ToFloat(static_cast<std::uint8_t>(data[i]));
      }
      return;
  }
}

}  // namespace quail::infer
