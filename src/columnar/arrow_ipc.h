#pragma once

#include <memory>
#include <string>

#include "columnar/arrow_c_data.h"

namespace quail::columnar {

/// Opens an Arrow IPC file, in the file format (also called Feather 2) or the stream format, as a
/// stream of the Arrow C stream interface, for the caller to release; buffers may be compressed
/// with zstd or LZ4. Batches are read as the stream is. What it gives is not checked: import it
/// through columnar/validate.h. Throws Error{kIo} where the file cannot be read, Error{kCorrupt}
/// where it is none or was cut; faults further inside come out of the stream.
ArrowArrayStream OpenIpcFile(const std::string& path);

/// Writes an Arrow IPC file, in the file format, uncompressed.
class IpcFileWriter {
 public:
  /// Throws Error{kIo}, Error{kUnsupported} for a type that the format's writer does not know.
  IpcFileWriter(const std::string& path, const ArrowSchema& schema);
  ~IpcFileWriter();
  IpcFileWriter(const IpcFileWriter&) = delete;
  IpcFileWriter& operator=(const IpcFileWriter&) = delete;

  /// Appends the rows of a struct array of the schema. Throws Error{kIo}.
  void Write(const ArrowArray& rows);
  /// Writes what closes the file; without it the file is cut. Throws Error{kIo}.
  void Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quail::columnar
