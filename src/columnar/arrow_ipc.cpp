#include "columnar/arrow_ipc.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "nanoarrow/nanoarrow.h"
#include "nanoarrow/nanoarrow_ipc.h"
#include "quail/error.h"

namespace quail::columnar {
namespace {

/// Both ends of a file; at the beginning two zero bytes follow.
constexpr std::string_view kMagic = "ARROW1";
constexpr std::size_t kHead = 8;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File Open(const std::string& path, const char* mode, const char* verb) {
  errno = 0;
  File file(std::fopen(path.c_str(), mode));
  if (file) return file;
  throw Error(ErrorCode::kIo, fmt::format("cannot {} '{}': {}", verb, path, std::strerror(errno)));
}

[[noreturn]] void FailCorrupt(const std::string& path, std::string_view reason) {
  throw Error(ErrorCode::kCorrupt, fmt::format("cannot read '{}': {}", path, reason));
}

/// Places the file at its first message: behind the head of the file format, at the beginning of
/// the stream format.
void SkipHead(std::FILE* file, const std::string& path) {
  std::array<char, kHead> head{};
  const std::size_t size = std::fread(head.data(), 1, head.size(), file);
  if (size < kHead) FailCorrupt(path, "it is too short to be an Arrow IPC file");
  if (std::string_view(head.data(), kMagic.size()) != kMagic) {
    std::rewind(file);
    return;
  }
  std::array<char, kMagic.size()> tail{};
  const bool ends = std::fseek(file, -static_cast<long>(tail.size()), SEEK_END) == 0 &&
                    std::fread(tail.data(), 1, tail.size(), file) == tail.size() &&
                    std::string_view(tail.data(), tail.size()) == kMagic;
  if (!ends) FailCorrupt(path, "it has no end as an Arrow IPC file has: it was cut");
  std::fseek(file, kHead, SEEK_SET);
}

bool HasDictionary(const ArrowSchema& schema) {
  if (schema.dictionary != nullptr) return true;
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (HasDictionary(*schema.children[i])) return true;
  }
  return false;
}

/// Whether the first batch of rows is compressed; false too where it cannot be told: then the
/// reader has an error to tell. nanoarrow 0.9.0 does not decompress dictionaries.
class CompressionProbe {
 public:
  explicit CompressionProbe(std::FILE* file) : file_(file) {}
  ~CompressionProbe() {
    if (decoder_.private_data != nullptr) ArrowIpcDecoderReset(&decoder_);
    if (schema_.release != nullptr) schema_.release(&schema_);
  }
  CompressionProbe(const CompressionProbe&) = delete;
  CompressionProbe& operator=(const CompressionProbe&) = delete;

  bool Find() {
    if (ArrowIpcDecoderInit(&decoder_) != 0) return false;
    while (ReadHeader()) {
      if (decoder_.message_type == NANOARROW_IPC_MESSAGE_TYPE_RECORD_BATCH) {
        return decoder_.codec != NANOARROW_IPC_COMPRESSION_TYPE_NONE;
      }
      if (decoder_.message_type == NANOARROW_IPC_MESSAGE_TYPE_SCHEMA && !ReadSchema()) return false;
      if (std::fseek(file_, static_cast<long>(decoder_.body_size_bytes), SEEK_CUR) != 0) break;
    }
    return false;
  }

 private:
  bool ReadHeader() {
    constexpr std::size_t kPrefix = 8;
    header_.resize(kPrefix);
    if (std::fread(header_.data(), 1, kPrefix, file_) != kPrefix) return false;
    std::int32_t prefix = 0;
    if (ArrowIpcDecoderPeekHeader(&decoder_, View(), &prefix, nullptr) != 0) return false;
    const auto size = static_cast<std::size_t>(decoder_.header_size_bytes);
    if (size <= kPrefix) return false;
    header_.resize(size);
    return std::fread(header_.data() + kPrefix, 1, size - kPrefix, file_) == size - kPrefix &&
           ArrowIpcDecoderVerifyHeader(&decoder_, View(), nullptr) == 0 &&
           ArrowIpcDecoderDecodeHeader(&decoder_, View(), nullptr) == 0;
  }
  bool ReadSchema() {
    ArrowIpcDictionaryEncodings encodings{};
    if (ArrowIpcDecoderDecodeSchemaWithDictionaries(&decoder_, &schema_, &encodings, nullptr) !=
        0) {
      return false;
    }
    const int fault =
        ArrowIpcDecoderSetSchemaWithDictionaries(&decoder_, &schema_, &encodings, nullptr);
    ArrowIpcDictionaryEncodingsReset(&encodings);
    return fault == 0;
  }
  ArrowBufferView View() const {
    ArrowBufferView view{};
    view.data.data = header_.data();
    view.size_bytes = static_cast<std::int64_t>(header_.size());
    return view;
  }

  std::FILE* file_;
  ArrowIpcDecoder decoder_{};
  ArrowSchema schema_{};
  std::vector<char> header_;
};

/// Releases what a stream still holds.
class StreamOwner {
 public:
  explicit StreamOwner(ArrowArrayStream* stream) : stream_(stream) {}
  ~StreamOwner() {
    if (stream_->release != nullptr) stream_->release(stream_);
  }
  StreamOwner(const StreamOwner&) = delete;
  StreamOwner& operator=(const StreamOwner&) = delete;

 private:
  ArrowArrayStream* stream_;
};

void RefuseCompressed(const std::string& path) {
  const File file = Open(path, "rb", "read");
  SkipHead(file.get(), path);
  if (!CompressionProbe(file.get()).Find()) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("'{}': compressed Arrow files with dictionary columns are not supported "
                          "yet; write it uncompressed, or as Parquet",
                          path));
}

}  // namespace

ArrowArrayStream OpenIpcFile(const std::string& path) {
  File file = Open(path, "rb", "read");
  SkipHead(file.get(), path);
  ArrowIpcInputStream input{};
  if (ArrowIpcInputStreamInitFile(&input, file.get(), 1) != 0) throw std::bad_alloc();
  file.release();  // closed with the stream
  ArrowArrayStream stream{};
  if (ArrowIpcArrayStreamReaderInit(&stream, &input, nullptr) != 0) {
    input.release(&input);
    throw std::bad_alloc();
  }
  StreamOwner owner(&stream);
  ArrowSchema schema{};
  if (stream.get_schema(&stream, &schema) != 0) FailCorrupt(path, stream.get_last_error(&stream));
  const bool dictionary = HasDictionary(schema);
  schema.release(&schema);
  if (dictionary) RefuseCompressed(path);
  return std::exchange(stream, ArrowArrayStream{});
}

struct IpcFileWriter::State {
  explicit State(std::string file_path)
      : path(std::move(file_path)), file(Open(path, "wb", "write")) {}
  ~State() {
    ArrowArrayViewReset(&view);
    if (writer.private_data != nullptr) ArrowIpcWriterReset(&writer);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::string Reason(int fault) const {
    return error.message[0] != '\0' ? error.message : std::strerror(fault);
  }
  void Check(int fault) const {
    if (fault == 0) return;
    throw Error(ErrorCode::kIo, fmt::format("cannot write '{}': {}", path, Reason(fault)));
  }
  void CheckType(int fault) const {
    if (fault == 0) return;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("these rows cannot be written as Arrow IPC: {}", Reason(fault)));
  }

  std::string path;
  File file;
  ArrowIpcWriter writer{};
  ArrowArrayView view{};
  ArrowError error{};
};

IpcFileWriter::IpcFileWriter(const std::string& path, const ArrowSchema& schema)
    : state_(std::make_unique<State>(path)) {
  State& s = *state_;
  ArrowIpcOutputStream out{};
  s.Check(ArrowIpcOutputStreamInitFile(&out, s.file.get(), 0));
  s.Check(ArrowIpcWriterInit(&s.writer, &out));
  s.Check(ArrowIpcWriterStartFile(&s.writer, &s.error));
  s.CheckType(ArrowIpcWriterWriteSchema(&s.writer, &schema, &s.error));
  s.CheckType(ArrowArrayViewInitFromSchema(&s.view, &schema, &s.error));
}

IpcFileWriter::~IpcFileWriter() = default;

void IpcFileWriter::Write(const ArrowArray& rows) {
  State& s = *state_;
  s.Check(ArrowArrayViewSetArray(&s.view, &rows, &s.error));
  s.Check(ArrowIpcWriterWriteArrayView(&s.writer, &s.view, &s.error));
}

void IpcFileWriter::Finish() {
  State& s = *state_;
  s.Check(ArrowIpcWriterWriteArrayView(&s.writer, nullptr, &s.error));
  s.Check(ArrowIpcWriterFinalizeFile(&s.writer, &s.error));
  if (std::fflush(s.file.get()) != 0) s.Check(errno);
}

}  // namespace quail::columnar
