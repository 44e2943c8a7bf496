// Any bytes as an Arrow IPC file or stream: refused with quail::Error, or batches whose every cell
// can be read.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "columnar/arrow_ipc.h"
#include "columnar/batch.h"
#include "columnar/layout.h"
#include "columnar/validate.h"
#include "memory_file.h"
#include "quail/error.h"
#include "read_cell.h"

namespace {

using quail::columnar::Batch;
using quail::columnar::Layout;

struct ReleaseStream {
  void operator()(ArrowArrayStream* stream) const {
    stream->release(stream);
    delete stream;
  }
};
using OwnedStream = std::unique_ptr<ArrowArrayStream, ReleaseStream>;

std::size_t ReadColumn(const Batch& batch, const ArrowSchema& schema, std::size_t column) {
  const ArrowSchema& values = schema.dictionary != nullptr ? *schema.dictionary : schema;
  const Layout layout = quail::columnar::ParseLayout(values.format);
  std::size_t sum = 0;
  try {
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      if (!batch.IsNull(column, row)) sum += quail::fuzz::ReadCell(batch, layout, column, row);
    }
  } catch (const quail::Error& error) {  // a kind that is carried, not read
    if (error.code() == quail::ErrorCode::kCorrupt) std::abort();
  }
  return sum;
}

/// As a table is loaded, without DuckDB.
std::size_t ReadAll(ArrowArrayStream& stream) {
  const std::shared_ptr<ArrowSchema> schema(new ArrowSchema{}, quail::columnar::SchemaDeleter());
  if (stream.get_schema(&stream, schema.get()) != 0) return 0;
  quail::columnar::CheckSchema(*schema);
  quail::columnar::CheckImportable(*schema);
  std::size_t sum = 0;
  for (;;) {
    quail::columnar::OwnedArray array(new ArrowArray{});
    if (stream.get_next(&stream, array.get()) != 0 || array->release == nullptr) return sum;
    quail::columnar::CheckArray(*schema, *array);
    quail::columnar::CheckText(*schema, *array);
    const Batch batch(schema, std::move(array));
    for (std::size_t column = 0; column < batch.columns(); ++column) {
      sum += ReadColumn(batch, *schema->children[column], column);
    }
  }
}

}  // namespace

/// What a file claims to hold may be asked for, and be refused as by a computer that lacks it.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const quail::fuzz::MemoryFile file(data, size);
  volatile std::size_t sink = 0;
  try {
    const OwnedStream stream(new ArrowArrayStream(quail::columnar::OpenIpcFile(file.path())));
    sink = ReadAll(*stream);
  } catch (const quail::Error& error) {
    if (error.code() == quail::ErrorCode::kIo) std::abort();
  }
  static_cast<void>(sink);
  return 0;
}
