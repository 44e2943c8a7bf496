#include "spec/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/utf8.h"
#include "quail/error.h"

namespace quail::spec {

static_assert(std::endian::native == std::endian::little, "GGUF values are read in place");

enum class GgufFile::ValueType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint32_t kLastValueType = 12;
constexpr std::size_t kDefaultAlignment = 32;
constexpr std::size_t kMaxAlignment = std::size_t{1} << 20;
// The least room that an entry of the metadata and of the tensor directory can take.
constexpr std::size_t kMinEntryBytes = 8 + 4 + 1;
constexpr std::size_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

template <typename T>
T Load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// A name of the file as messages show it: it may be anything.
std::string Shown(std::string_view text) { return base::Escaped(text.substr(0, 80)); }

/// Bytes of a fixed-size metadata value; 0 for strings and arrays.
std::size_t SizeOfValue(std::uint32_t type) {
  constexpr std::array<std::size_t, kLastValueType + 1> kSizes = {1, 1, 2, 2, 4, 4, 4,
                                                                  1, 0, 0, 8, 8, 8};
  return kSizes[type];
}

std::optional<GgufType> KnownType(std::uint32_t type) {
  switch (static_cast<GgufType>(type)) {
    case GgufType::kF32:
    case GgufType::kF16:
    case GgufType::kQ4_0:
    case GgufType::kQ4_1:
    case GgufType::kQ5_0:
    case GgufType::kQ8_0:
    case GgufType::kQ4_K:
    case GgufType::kQ6_K:
    case GgufType::kBf16:
      return static_cast<GgufType>(type);
  }
  return std::nullopt;
}

}  // namespace

GgufBlock BlockOf(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return {1, 4};
    case GgufType::kF16:
    case GgufType::kBf16:
      return {1, 2};
    case GgufType::kQ4_0:
      return {32, 2 + 16};
    case GgufType::kQ4_1:
      return {32, 2 + 2 + 16};
    case GgufType::kQ5_0:
      return {32, 2 + 4 + 16};
    case GgufType::kQ8_0:
      return {32, 2 + 32};
    case GgufType::kQ4_K:
      return {256, 2 + 2 + 12 + 128};
    case GgufType::kQ6_K:
      return {256, 128 + 64 + 16 + 2};
  }
  QUAIL_CHECK(false);
}

std::string_view NameOf(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return "F32";
    case GgufType::kF16:
      return "F16";
    case GgufType::kBf16:
      return "BF16";
    case GgufType::kQ4_0:
      return "Q4_0";
    case GgufType::kQ4_1:
      return "Q4_1";
    case GgufType::kQ5_0:
      return "Q5_0";
    case GgufType::kQ8_0:
      return "Q8_0";
    case GgufType::kQ4_K:
      return "Q4_K";
    case GgufType::kQ6_K:
      return "Q6_K";
  }
  QUAIL_CHECK(false);
}

/// A position in the file; every read is checked against what remains.
class GgufFile::Reader {
 public:
  explicit Reader(const GgufFile& file) : file_(file) {}

  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return file_.bytes_.size() - offset_; }

  void Skip(std::uint64_t bytes, std::string_view field) {
    if (bytes > remaining()) {
      file_.Corrupt(field, offset_,
                    fmt::format("{} bytes needed, {} left in the file", bytes, remaining()));
    }
    offset_ += static_cast<std::size_t>(bytes);
  }

  template <typename T>
  T Read(std::string_view field) {
    const std::size_t at = offset_;
    Skip(sizeof(T), field);
    return Load<T>(file_.bytes_, at);
  }

  std::string_view ReadString(std::string_view field) {
    const auto length = Read<std::uint64_t>(field);
    const std::size_t at = offset_;
    Skip(length, field);
    return {reinterpret_cast<const char*>(file_.bytes_.data()) + at,
            static_cast<std::size_t>(length)};
  }

  /// A count of things that take at least `least_bytes` each.
  std::uint64_t ReadCount(std::string_view field, std::size_t least_bytes) {
    const std::size_t at = offset_;
    const auto count = Read<std::uint64_t>(field);
    if (count > remaining() / least_bytes) {
      file_.Corrupt(field, at, fmt::format("{} do not fit in the file", count));
    }
    return count;
  }

  ValueType ReadType(std::string_view field) {
    const std::size_t at = offset_;
    const auto type = Read<std::uint32_t>(field);
    if (type > kLastValueType) file_.Corrupt(field, at, fmt::format("unknown value type {}", type));
    return static_cast<ValueType>(type);
  }

 private:
  const GgufFile& file_;
  std::size_t offset_ = 0;
};

std::shared_ptr<const GgufFile> GgufFile::Open(const std::filesystem::path& path) {
  base::MappedFile file = base::MappedFile::Open(path);
  std::shared_ptr<GgufFile> result(new GgufFile(path.string(), file.bytes()));
  result->file_ = std::move(file);
  result->ReadAll();
  return result;
}

std::shared_ptr<const GgufFile> GgufFile::Parse(std::string name,
                                                std::span<const std::byte> bytes) {
  std::shared_ptr<GgufFile> result(new GgufFile(std::move(name), bytes));
  result->ReadAll();
  return result;
}

GgufFile::GgufFile(std::string name, std::span<const std::byte> bytes)
    : name_(std::move(name)), bytes_(bytes) {}

void GgufFile::Corrupt(std::string_view field, std::size_t offset, const std::string& what) const {
  throw Error(ErrorCode::kCorrupt,
              fmt::format("'{}': {} at byte {}: {}", name_, Shown(field), offset, what));
}

void GgufFile::ReadAll() {
  Reader reader(*this);
  if (reader.Read<std::uint32_t>("magic") != kMagic) Corrupt("magic", 0, "not a GGUF file");
  const auto version = reader.Read<std::uint32_t>("version");
  if (version != 2 && version != 3) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("'{}': version at byte 4: GGUF version {}, supported are 2 and 3",
                            name_, version));
  }
  const auto tensor_count = reader.ReadCount("tensor count", kMinTensorBytes);
  const auto entry_count = reader.ReadCount("metadata count", kMinEntryBytes);
  for (std::uint64_t i = 0; i < entry_count; ++i) ReadEntry(reader);
  for (std::uint64_t i = 0; i < tensor_count; ++i) ReadTensor(reader);
  PlaceTensors(reader.offset());
  CheckOverlaps();
}

void GgufFile::ReadEntry(Reader& reader) {
  const std::size_t key_offset = reader.offset();
  const std::string_view key = reader.ReadString("metadata key");
  Entry entry;
  entry.type = reader.ReadType(key);
  if (entry.type == ValueType::kArray) {
    entry.element = reader.ReadType(key);
    const std::size_t size = SizeOfValue(static_cast<std::uint32_t>(entry.element));
    if (entry.element == ValueType::kArray) Corrupt(key, reader.offset(), "array of arrays");
    entry.count = reader.ReadCount(key, size == 0 ? sizeof(std::uint64_t) : size);
    entry.offset = reader.offset();
    if (entry.element == ValueType::kString) {
      for (std::uint64_t i = 0; i < entry.count; ++i) reader.ReadString(key);
    } else {
      reader.Skip(entry.count * size, key);
    }
  } else {
    entry.offset = reader.offset();
    if (entry.type == ValueType::kString) {
      reader.ReadString(key);
    } else {
      reader.Skip(SizeOfValue(static_cast<std::uint32_t>(entry.type)), key);
    }
  }
  if (!entries_.emplace(key, entry).second) Corrupt(key, key_offset, "the key appears twice");
}

void GgufFile::ReadTensor(Reader& reader) {
  GgufTensor tensor;
  const std::size_t name_offset = reader.offset();
  tensor.name = reader.ReadString("tensor name");
  const auto dimensions = reader.Read<std::uint32_t>(tensor.name);
  if (dimensions == 0 || dimensions > kMaxDimensions) {
    Corrupt(tensor.name, reader.offset(), fmt::format("{} dimensions", dimensions));
  }
  std::uint64_t values = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto extent = reader.Read<std::uint64_t>(tensor.name);
    // A value takes at least half a byte, so twice the file's size bounds every product.
    if (extent == 0 || extent > 2 * bytes_.size() / values) {
      Corrupt(tensor.name, reader.offset(), fmt::format("dimension {} does not fit", extent));
    }
    values *= extent;
    if (i == 0) tensor.columns = static_cast<std::int64_t>(extent);
  }
  tensor.rows = static_cast<std::int64_t>(values) / tensor.columns;
  const auto type = reader.Read<std::uint32_t>(tensor.name);
  const std::optional<GgufType> known = KnownType(type);
  if (!known) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("'{}': {} at byte {}: tensor type {} is not supported", name_,
                            Shown(tensor.name), reader.offset(), type));
  }
  tensor.type = *known;
  if (tensor.columns % BlockOf(tensor.type).values != 0) {
    Corrupt(tensor.name, reader.offset(),
            fmt::format("rows of {} values in blocks of {}", tensor.columns,
                        BlockOf(tensor.type).values));
  }
  tensor_offsets_.push_back(reader.Read<std::uint64_t>(tensor.name));
  if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
    Corrupt(tensor.name, name_offset, "the tensor appears twice");
  }
  tensors_.push_back(tensor);
}

std::size_t GgufFile::ReadAlignment() const {
  const std::string_view key = "general.alignment";
  const std::uint64_t alignment = FindUint(key).value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    Corrupt(key, entries_.at(key).offset, fmt::format("alignment {}", alignment));
  }
  return static_cast<std::size_t>(alignment);
}

void GgufFile::PlaceTensors(std::size_t directory_end) {
  const std::size_t alignment = ReadAlignment();
  const std::size_t begin = (directory_end + alignment - 1) / alignment * alignment;
  if (!tensors_.empty() && begin > bytes_.size()) {
    Corrupt("tensor data", directory_end, "the file ends before it");
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    GgufTensor& tensor = tensors_[i];
    const GgufBlock block = BlockOf(tensor.type);
    const auto size =
        static_cast<std::size_t>(tensor.rows * (tensor.columns / block.values) * block.bytes);
    const std::size_t room = bytes_.size() - begin;
    const std::uint64_t offset = tensor_offsets_[i];
    if (offset % alignment != 0) {
      Corrupt(tensor.name, begin, fmt::format("data offset {} is not aligned", offset));
    }
    if (offset > room || size > room - static_cast<std::size_t>(offset)) {
      Corrupt(tensor.name, begin,
              fmt::format("{} bytes of data at offset {} pass the end of the file", size, offset));
    }
    tensor.data = bytes_.subspan(begin + static_cast<std::size_t>(offset), size);
  }
}

void GgufFile::CheckOverlaps() const {
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return tensor_offsets_[i]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = tensors_[order[i - 1]];
    const GgufTensor& after = tensors_[order[i]];
    if (before.data.data() + before.data.size() > after.data.data()) {
      Corrupt(after.name, static_cast<std::size_t>(after.data.data() - bytes_.data()),
              fmt::format("its data overlaps that of {}", Shown(before.name)));
    }
  }
}

const GgufFile::Entry& GgufFile::Require(std::string_view key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    throw Error(ErrorCode::kCorrupt, fmt::format("'{}': metadata has no {}", name_, Shown(key)));
  }
  return found->second;
}

const GgufFile::Entry& GgufFile::RequireArray(std::string_view key) const {
  const Entry& entry = Require(key);
  if (entry.type != ValueType::kArray) WrongType(key, entry, "an array");
  return entry;
}

void GgufFile::WrongType(std::string_view key, const Entry& entry, std::string_view wanted) const {
  Corrupt(key, entry.offset,
          fmt::format("value type {}, not {}", static_cast<std::uint32_t>(entry.type), wanted));
}

std::optional<std::int64_t> GgufFile::IntegerAt(ValueType type, std::size_t offset) const {
  switch (type) {
    case ValueType::kUint8:
      return Load<std::uint8_t>(bytes_, offset);
    case ValueType::kInt8:
      return Load<std::int8_t>(bytes_, offset);
    case ValueType::kUint16:
      return Load<std::uint16_t>(bytes_, offset);
    case ValueType::kInt16:
      return Load<std::int16_t>(bytes_, offset);
    case ValueType::kUint32:
      return Load<std::uint32_t>(bytes_, offset);
    case ValueType::kInt32:
      return Load<std::int32_t>(bytes_, offset);
    case ValueType::kUint64: {
      const auto value = Load<std::uint64_t>(bytes_, offset);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return std::nullopt;
      }
      return static_cast<std::int64_t>(value);
    }
    case ValueType::kInt64:
      return Load<std::int64_t>(bytes_, offset);
    case ValueType::kFloat32:
    case ValueType::kBool:
    case ValueType::kString:
    case ValueType::kArray:
    case ValueType::kFloat64:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string_view> GgufFile::FindString(std::string_view key) const {
  if (!Has(key)) return std::nullopt;
  const Entry& entry = Require(key);
  if (entry.type != ValueType::kString) WrongType(key, entry, "a string");
  const auto length = Load<std::uint64_t>(bytes_, entry.offset);
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + entry.offset + 8,
                          static_cast<std::size_t>(length));
}

std::optional<std::uint64_t> GgufFile::FindUint(std::string_view key) const {
  if (!Has(key)) return std::nullopt;
  const Entry& entry = Require(key);
  const std::optional<std::int64_t> value = IntegerAt(entry.type, entry.offset);
  if (!value || *value < 0) WrongType(key, entry, "an integer >= 0");
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> GgufFile::FindNumber(std::string_view key) const {
  if (!Has(key)) return std::nullopt;
  const Entry& entry = Require(key);
  if (entry.type == ValueType::kFloat32) return Load<float>(bytes_, entry.offset);
  if (entry.type == ValueType::kFloat64) return Load<double>(bytes_, entry.offset);
  const std::optional<std::int64_t> value = IntegerAt(entry.type, entry.offset);
  if (!value) WrongType(key, entry, "a number");
  return static_cast<double>(*value);
}

std::string_view GgufFile::String(std::string_view key) const {
  Require(key);
  return *FindString(key);
}

std::uint64_t GgufFile::Uint(std::string_view key) const {
  Require(key);
  return *FindUint(key);
}

double GgufFile::Number(std::string_view key) const {
  Require(key);
  return *FindNumber(key);
}

std::vector<std::string_view> GgufFile::Strings(std::string_view key) const {
  const Entry& entry = RequireArray(key);
  if (entry.element != ValueType::kString) WrongType(key, entry, "an array of strings");
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<std::size_t>(entry.count));
  std::size_t offset = entry.offset;
  for (std::uint64_t i = 0; i < entry.count; ++i) {
    const auto length = static_cast<std::size_t>(Load<std::uint64_t>(bytes_, offset));
    strings.emplace_back(reinterpret_cast<const char*>(bytes_.data()) + offset + 8, length);
    offset += 8 + length;
  }
  return strings;
}

std::vector<std::int32_t> GgufFile::Ints(std::string_view key) const {
  const Entry& entry = RequireArray(key);
  const std::size_t size = SizeOfValue(static_cast<std::uint32_t>(entry.element));
  std::vector<std::int32_t> values;
  values.reserve(size == 0 || size > 4 ? 0 : static_cast<std::size_t>(entry.count));
  for (std::size_t i = 0; i < entry.count; ++i) {
    const std::optional<std::int64_t> value =
        size == 0 || size > 4 ? std::nullopt : IntegerAt(entry.element, entry.offset + i * size);
    if (!value || *value > std::numeric_limits<std::int32_t>::max()) {
      WrongType(key, entry, "an array of 32-bit integers");
    }
    values.push_back(static_cast<std::int32_t>(*value));
  }
  return values;
}

const GgufTensor* GgufFile::FindTensor(std::string_view tensor_name) const {
  const auto found = tensor_index_.find(tensor_name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace quail::spec
