#include "columnar/ipc_messages.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "nanoarrow/nanoarrow.h"
#include "nanoarrow/nanoarrow_ipc.h"
#include "quail/error.h"

namespace quail::columnar {
namespace {

[[noreturn]] void FailCorrupt(const std::string& path, std::string_view reason) {
  throw Error(ErrorCode::kCorrupt, fmt::format("cannot read '{}': {}", path, reason));
}

/// What a column tree has in a message of rows, as nanoarrow reads it.
struct PartCounts {
  std::size_t nodes = 0;
  std::size_t buffers = 0;
};

void AddParts(const ArrowArrayView& view, PartCounts& counts) {
  const bool is_union = view.storage_type == NANOARROW_TYPE_SPARSE_UNION ||
                        view.storage_type == NANOARROW_TYPE_DENSE_UNION;
  ++counts.nodes;
  if (is_union) ++counts.buffers;  // of the validity that unions had before Arrow 1.0
  for (const auto type : view.layout.buffer_type) {
    if (type == NANOARROW_BUFFER_TYPE_NONE) break;
    ++counts.buffers;
  }
  for (std::int64_t i = 0; i < view.n_children; ++i) AddParts(*view.children[i], counts);
}

std::optional<PartCounts> PartsOf(const ArrowSchema& schema) {
  ArrowArrayView view{};
  std::optional<PartCounts> counts;
  if (ArrowArrayViewInitFromSchema(&view, &schema, nullptr) == 0) {
    AddParts(view, counts.emplace());
  }
  ArrowArrayViewReset(&view);
  return counts;
}

/// A table of a verified flatbuffer (FlatBuffers, Internals: a signed offset to the vtable, whose
/// 16-bit entries place the fields; references and vectors are 32-bit offsets and counts).
class FlatTable {
 public:
  static FlatTable Root(const char* buffer) {
    return FlatTable(buffer + Read<std::uint32_t>(buffer));
  }

  bool Has(std::size_t field) const { return Place(field) != nullptr; }
  std::optional<FlatTable> Table(std::size_t field) const {
    const char* place = Place(field);
    if (place == nullptr) return std::nullopt;
    return FlatTable(place + Read<std::uint32_t>(place));
  }
  std::uint8_t Byte(std::size_t field) const {
    const char* place = Place(field);
    return place == nullptr ? std::uint8_t{0} : Read<std::uint8_t>(place);
  }
  std::size_t VectorSize(std::size_t field) const {
    const char* place = Place(field);
    return place == nullptr ? 0 : Read<std::uint32_t>(place + Read<std::uint32_t>(place));
  }
  /// Of a vector of pairs of 64-bit numbers. REQUIRES: index < VectorSize(field).
  std::pair<std::int64_t, std::int64_t> Pair(std::size_t field, std::size_t index) const {
    const char* vector = Place(field);
    const char* place = vector + Read<std::uint32_t>(vector) + 4 + 16 * index;
    return {Read<std::int64_t>(place), Read<std::int64_t>(place + 8)};
  }
  /// REQUIRES: a vector of tables, index < VectorSize(field).
  FlatTable Element(std::size_t field, std::size_t index) const {
    const char* vector = Place(field);
    vector += Read<std::uint32_t>(vector);
    const char* place = vector + 4 * (index + 1);
    return FlatTable(place + Read<std::uint32_t>(place));
  }

 private:
  explicit FlatTable(const char* at) : at_(at) {}
  template <typename T>
  static T Read(const char* from) {
    T value{};
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  const char* Place(std::size_t field) const {
    const char* vtable = at_ - Read<std::int32_t>(at_);
    const std::size_t entry = 4 + 2 * field;
    if (entry + 2 > Read<std::uint16_t>(vtable)) return nullptr;
    const auto offset = Read<std::uint16_t>(vtable + entry);
    return offset == 0 ? nullptr : at_ + offset;
  }

  const char* at_;
};

/// The fields of Arrow's tables (Schema.fbs and Message.fbs of its specification), by number.
namespace field {
constexpr std::size_t kMessageHeader = 2;
constexpr std::size_t kSchemaFields = 1;
constexpr std::size_t kTypeKind = 2;
constexpr std::size_t kType = 3;
constexpr std::size_t kDictionary = 4;
constexpr std::size_t kChildren = 5;
constexpr std::size_t kIndexType = 1;
constexpr std::size_t kDictionaryRows = 1;
constexpr std::size_t kNodes = 1;
constexpr std::size_t kBuffers = 2;
constexpr std::size_t kCompression = 3;
}  // namespace field

/// Whether a column and those inside of it have the types that they say they have.
bool HasTypes(const FlatTable& column) {
  if (column.Byte(field::kTypeKind) != 0 && !column.Has(field::kType)) return false;
  const auto dictionary = column.Table(field::kDictionary);
  if (dictionary && !dictionary->Has(field::kIndexType)) return false;
  for (std::size_t i = 0; i < column.VectorSize(field::kChildren); ++i) {
    if (!HasTypes(column.Element(field::kChildren, i))) return false;
  }
  return true;
}

/// Goes over the messages of a file as far as they can be told apart; what is wrong inside of one,
/// its reader tells. Throws Error{kCorrupt} where one claims more bytes than the file has left:
/// nanoarrow would ask for that much memory, and lose what it holds where there is not as much.
class MessageWalk {
 public:
  /// From where the file stands.
  MessageWalk(std::FILE* file, const std::string& path)
      : file_(file), path_(path), begin_(std::ftell(file)) {
    std::fseek(file_, 0, SEEK_END);
    end_ = std::ftell(file_);
    std::fseek(file_, begin_, SEEK_SET);
    ArrowIpcDictionaryEncodingsInit(&encodings_);
    if (ArrowIpcDecoderInit(&decoder_) != 0) throw std::bad_alloc();
  }
  ~MessageWalk() {
    ArrowIpcDecoderReset(&decoder_);
    ArrowIpcDictionaryEncodingsReset(&encodings_);
    if (schema_.release != nullptr) schema_.release(&schema_);
    std::fseek(file_, begin_, SEEK_SET);
  }
  MessageWalk(const MessageWalk&) = delete;
  MessageWalk& operator=(const MessageWalk&) = delete;

  bool Next() {
    if (!ReadHeader()) return false;
    const bool is_schema = decoder_.message_type == NANOARROW_IPC_MESSAGE_TYPE_SCHEMA;
    if (is_schema && (schema_.release != nullptr || !ReadSchema())) return false;
    CheckLeft(decoder_.body_size_bytes);
    if (decoder_.message_type == NANOARROW_IPC_MESSAGE_TYPE_DICTIONARY_BATCH) CheckDictionary();
    if (decoder_.message_type == NANOARROW_IPC_MESSAGE_TYPE_RECORD_BATCH) {
      CheckRows(*Message().Table(field::kMessageHeader));
    }
    return std::fseek(file_, static_cast<long>(decoder_.body_size_bytes), SEEK_CUR) == 0;
  }

 private:
  /// Before the flatbuffer of a message: a mark and its length.
  static constexpr std::size_t kPrefix = 8;
  static constexpr std::int64_t kAlignment = 8;  ///< of buffers, by the format's specification
  /// What the specification recommends as the limit of an array; sizes computed with it stay in
  /// range.
  static constexpr std::int64_t kMostRows = 0x7FFFFFFF;

  void CheckLeft(std::int64_t bytes) const {
    const std::int64_t left = end_ - std::ftell(file_);
    if (bytes >= 0 && bytes <= left) return;
    FailCorrupt(path_, fmt::format("{} bytes of it should follow where it has {}: it was cut or "
                                   "changed",
                                   bytes, left));
  }
  bool Append(std::size_t bytes) {
    const std::size_t before = header_.size();
    header_.resize(before + bytes);
    return std::fread(header_.data() + before, 1, bytes, file_) == bytes;
  }
  /// The length of the header; its prefix as it is now, not as before Arrow 0.15.
  bool ReadPrefix() {
    constexpr std::size_t kOldPrefix = 4;
    header_.clear();
    std::int32_t prefix = 0;
    if (!Append(kPrefix)) return false;
    if (ArrowIpcDecoderPeekHeader(&decoder_, View(), &prefix, nullptr) != 0) return false;
    if (prefix != kOldPrefix) return true;
    header_.insert(header_.begin(), kOldPrefix, '\xFF');
    return ArrowIpcDecoderPeekHeader(&decoder_, View(), &prefix, nullptr) == 0;
  }
  bool ReadHeader() {
    if (!ReadPrefix()) return false;
    const auto have = static_cast<std::int64_t>(header_.size());
    const std::int64_t rest = decoder_.header_size_bytes - have;
    CheckLeft(rest);
    if (!Append(static_cast<std::size_t>(rest))) return false;
    if (ArrowIpcDecoderVerifyHeader(&decoder_, View(), nullptr) != 0) return false;
    if (!Message().Has(field::kMessageHeader)) FailCorrupt(path_, "a message of it says nothing");
    return ArrowIpcDecoderDecodeHeader(&decoder_, View(), nullptr) == 0;
  }
  /// REQUIRES: a verified header.
  FlatTable Message() const { return FlatTable::Root(header_.data() + kPrefix); }
  bool ReadSchema() {
    const auto schema = Message().Table(field::kMessageHeader);
    for (std::size_t i = 0; i < schema->VectorSize(field::kSchemaFields); ++i) {
      if (!HasTypes(schema->Element(field::kSchemaFields, i))) {
        FailCorrupt(path_, "a column of it has no type");
      }
    }
    return ArrowIpcDecoderDecodeSchemaWithDictionaries(&decoder_, &schema_, &encodings_, nullptr) ==
               0 &&
           ArrowIpcDecoderSetSchemaWithDictionaries(&decoder_, &schema_, &encodings_, nullptr) == 0;
  }
  /// Lengths and places of a message's arrays: none negative, none beyond its body.
  void CheckRows(const FlatTable& rows) const {
    for (std::size_t i = 0; i < rows.VectorSize(field::kNodes); ++i) {
      const auto [length, nulls] = rows.Pair(field::kNodes, i);
      if (length < 0 || length > kMostRows || nulls < 0 || nulls > length) {
        FailCorrupt(path_, fmt::format("an array of {} values, {} NULL", length, nulls));
      }
    }
    for (std::size_t i = 0; i < rows.VectorSize(field::kBuffers); ++i) {
      const auto [offset, length] = rows.Pair(field::kBuffers, i);
      if (offset < 0 || offset % kAlignment != 0 || length < 0 ||
          offset > decoder_.body_size_bytes || length > decoder_.body_size_bytes - offset) {
        FailCorrupt(path_, fmt::format("a buffer of {} bytes at {} in a message of {}", length,
                                       offset, decoder_.body_size_bytes));
      }
    }
  }
  /// nanoarrow 0.9.0 neither decompresses a dictionary's values nor counts their parts.
  void CheckDictionary() const {
    const auto batch = Message().Table(field::kMessageHeader);
    const auto rows = batch ? batch->Table(field::kDictionaryRows) : std::nullopt;
    const auto* encoding =
        ArrowIpcDictionaryEncodingsFindById(&encodings_, decoder_.dictionary->id);
    const auto parts = encoding == nullptr ? std::nullopt : PartsOf(*encoding->schema->dictionary);
    if (!rows || !parts || rows->VectorSize(field::kNodes) != parts->nodes ||
        rows->VectorSize(field::kBuffers) != parts->buffers) {
      FailCorrupt(path_, "a dictionary does not fit its column");
    }
    CheckRows(*rows);
    if (!rows->Has(field::kCompression)) return;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("'{}': compressed Arrow files with dictionary columns are not "
                            "supported yet; write it uncompressed, or as Parquet",
                            path_));
  }
  ArrowBufferView View() const {
    ArrowBufferView view{};
    view.data.data = header_.data();
    view.size_bytes = static_cast<std::int64_t>(header_.size());
    return view;
  }

  std::FILE* file_;
  const std::string& path_;
  long begin_;
  long end_ = 0;
  ArrowIpcDecoder decoder_{};
  ArrowSchema schema_{};
  ArrowIpcDictionaryEncodings encodings_{};
  std::vector<char> header_;
};

}  // namespace

void CheckIpcMessages(std::FILE* file, const std::string& path) {
  MessageWalk walk(file, path);
  while (walk.Next()) {
  }
}

}  // namespace quail::columnar
