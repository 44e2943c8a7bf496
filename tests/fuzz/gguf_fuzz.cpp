// A GGUF file from anywhere is refused with quail::Error or gives metadata and tensors that lie in
// the file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "quail/error.h"
#include "spec/gguf_file.h"
#include "spec/model_spec.h"

namespace {

using quail::Error;
using quail::spec::GgufFile;

void CheckTensors(const GgufFile& file) {
  for (const auto& tensor : file.tensors()) {
    const auto block = quail::spec::BlockOf(tensor.type);
    QUAIL_CHECK_EQ(static_cast<std::int64_t>(tensor.data.size()),
                   tensor.rows * (tensor.columns / block.values) * block.bytes);
    QUAIL_CHECK(tensor.data.data() >= file.bytes().data());
    QUAIL_CHECK(tensor.data.data() + tensor.data.size() <=
                file.bytes().data() + file.bytes().size());
  }
}

template <typename Use>
void Allow(Use use) {
  try {
    use();
  } catch (const Error& error) {
    QUAIL_CHECK(error.code() != quail::ErrorCode::kIo);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Allow([&] {
    const auto file = GgufFile::Parse("fuzz", std::as_bytes(std::span(data, size)));
    CheckTensors(*file);
    Allow([&] { quail::spec::ReadModelSpec(*file); });
    Allow([&] { file->Strings("tokenizer.ggml.tokens"); });
    Allow([&] { file->Ints("tokenizer.ggml.token_type"); });
  });
  return 0;
}
