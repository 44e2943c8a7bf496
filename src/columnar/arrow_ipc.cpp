#include "columnar/arrow_ipc.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "columnar/ipc_messages.h"
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

}  // namespace

ArrowArrayStream OpenIpcFile(const std::string& path) {
  File file = Open(path, "rb", "read");
  SkipHead(file.get(), path);
  CheckIpcMessages(file.get(), path);
  ArrowIpcInputStream input{};
  if (ArrowIpcInputStreamInitFile(&input, file.get(), 1) != 0) throw std::bad_alloc();
  static_cast<void>(file.release());  // closed with the stream
  ArrowArrayStream stream{};
  if (ArrowIpcArrayStreamReaderInit(&stream, &input, nullptr) != 0) {
    input.release(&input);
    throw std::bad_alloc();
  }
  StreamOwner owner(&stream);
  ArrowSchema schema{};
  if (stream.get_schema(&stream, &schema) != 0) FailCorrupt(path, stream.get_last_error(&stream));
  schema.release(&schema);
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
