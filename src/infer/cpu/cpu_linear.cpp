#include "infer/cpu/cpu_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/hash128.h"
#include "infer/weights/block_formats.h"
#include "quail/error.h"

// Of the OpenMP run time that oneDNN is linked with; its header is not on every compiler's path.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int threads);

namespace quail::infer::cpu {
namespace {

using dnnl::memory;

// Output heads are cut so that panels can be spread over threads; other matrices stay whole.
constexpr std::int64_t kHeadRows = 32768;
constexpr std::int64_t kHeadPanelRows = 8192;
constexpr std::int64_t kRowSizes[] = {1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, kMaxProductRows};

/// kMaxProductRows times the same row, of both signs and many magnitudes: a sum of its products
/// shows in which order it was made.
std::vector<std::byte> EqualRows(std::int64_t columns, ElementType type) {
  std::vector<std::byte> row(static_cast<std::size_t>(columns) * SizeOf(type));
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) {
    state = state * 1664525U + 1013904223U;
    const float value =
        static_cast<float>(static_cast<std::int32_t>(state >> 8) - (1 << 23)) / (1 << 22);
    if (type == ElementType::kF32) {
      std::memcpy(row.data() + i * sizeof(value), &value, sizeof(value));
    } else {
      const std::uint16_t narrow = FloatToBf16(value);
      std::memcpy(row.data() + i * sizeof(narrow), &narrow, sizeof(narrow));
    }
  }
  std::vector<std::byte> rows;
  for (std::int64_t i = 0; i < kMaxProductRows; ++i)
    rows.insert(rows.end(), row.begin(), row.end());
  return rows;
}

}  // namespace

OneThreadScope::OneThreadScope() : previous_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThreadScope::~OneThreadScope() { omp_set_num_threads(previous_); }

LinearEngine::LinearEngine(ElementType type)
    : type_(type),
      data_type_(type == ElementType::kF32 ? memory::data_type::f32 : memory::data_type::bf16),
      engine_(dnnl::engine::kind::cpu, 0),
      row_sizes_(std::begin(kRowSizes), std::end(kRowSizes)) {}

std::int64_t LinearEngine::ProductRows(std::int64_t rows) const {
  QUAIL_CHECK(rows > 0 && rows <= kMaxProductRows);
  return *std::lower_bound(row_sizes_.begin(), row_sizes_.end(), rows);
}

std::size_t LinearEngine::KeyHash::operator()(const Key& key) const {
  const auto& [rows, n, k, accumulate] = key;
  const std::int64_t words[] = {rows, n, k, accumulate ? 1 : 0};
  return base::HashBytes(std::as_bytes(std::span(words))).low;
}

dnnl::matmul::primitive_desc LinearEngine::Describe(const Key& key,
                                                    const memory::desc& weight) const {
  const auto& [rows, n, k, accumulate] = key;
  const memory::desc x({rows, k}, data_type_, memory::format_tag::ab);
  const memory::desc y({rows, n}, memory::data_type::f32, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0F);
    attributes.set_post_ops(post_ops);
  }
  return {dnnl::matmul::desc(x, weight, y), attributes, engine_};
}

const LinearEngine::Compiled& LinearEngine::Find(const Key& key, const memory::desc& weight) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Compiled>& compiled = compiled_[key];
  if (compiled == nullptr) {
    const auto description = Describe(key, weight);
    compiled = std::make_unique<Compiled>(Compiled{description.src_desc(), description.dst_desc(),
                                                   description.scratchpad_desc(),
                                                   dnnl::matmul(description)});
  }
  return *compiled;
}

void LinearEngine::Multiply(const LinearWeight::Panel& panel, std::int64_t columns,
                            const Product& product, std::vector<std::byte>& scratch) {
  try {
    Execute(panel, columns, product, scratch);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw Error(ErrorCode::kDevice,
                fmt::format("oneDNN cannot multiply [{}, {}] by [{}, {}]: {}", product.rows,
                            columns, columns, panel.rows, error.what()));
  }
}

void LinearEngine::Execute(const LinearWeight::Panel& panel, std::int64_t columns,
                           const Product& product, std::vector<std::byte>& scratch) {
  const OneThreadScope one_thread;
  const Key key{product.rows, panel.rows, columns, product.accumulate};
  const Compiled& compiled = Find(key, panel.packed.get_desc());
  scratch.resize(std::max(scratch.size(), compiled.scratch.get_size()));
  dnnl::stream stream(engine_);
  // oneDNN takes sources as void*, but does not write to them.
  void* x = const_cast<std::byte*>(product.x);
  compiled.primitive.execute(
      stream, {{DNNL_ARG_SRC, memory(compiled.x, engine_, x)},
               {DNNL_ARG_WEIGHTS, panel.packed},
               {DNNL_ARG_DST, memory(compiled.y, engine_, product.y)},
               {DNNL_ARG_SCRATCHPAD, memory(compiled.scratch, engine_, scratch.data())}});
  stream.wait();
}

/// One and the same row in all places of calls of every size must give the same bits. Drops the
/// sizes at which it does not.
void LinearEngine::KeepUniformSizes(const LinearWeight::Panel& panel, std::int64_t columns) {
  // Matrices are packed in parallel.
  const std::lock_guard lock(trial_mutex_);
  if (!tried_.emplace(panel.rows, columns).second) return;
  const std::vector<std::byte> x = EqualRows(columns, type_);
  std::vector<float> y(static_cast<std::size_t>(kMaxProductRows * panel.rows));
  std::vector<float> expected;
  std::vector<std::byte> scratch;
  const auto is_uniform = [&](std::int64_t rows) {
    Multiply(panel, columns, {rows, x.data(), y.data(), false}, scratch);
    if (expected.empty()) expected.assign(y.begin(), y.begin() + panel.rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      if (std::memcmp(expected.data(), y.data() + i * panel.rows,
                      static_cast<std::size_t>(panel.rows) * sizeof(float)) != 0) {
        return false;
      }
    }
    return true;
  };
  if (!is_uniform(kMaxProductRows)) {
    throw Error(ErrorCode::kDevice,
                fmt::format("this oneDNN computes equal rows of one product [{}, {}] x [{}, {}] "
                            "differently on this processor ({})",
                            kMaxProductRows, columns, columns, panel.rows,
                            ImplementationOf(panel, columns, kMaxProductRows, false)));
  }
  std::erase_if(row_sizes_, [&](std::int64_t rows) { return !is_uniform(rows); });
}

std::string LinearEngine::ImplementationOf(const LinearWeight::Panel& panel, std::int64_t columns,
                                           std::int64_t rows, bool accumulate) const {
  const OneThreadScope one_thread;
  return Describe({rows, panel.rows, columns, accumulate}, panel.packed.get_desc()).impl_info_str();
}

LinearWeight::Panel LinearEngine::PackPanel(const WeightTensor& part, std::int64_t begin,
                                            std::int64_t end) {
  const std::int64_t n = end - begin;
  const std::int64_t k = part.columns();
  std::vector<float> values(static_cast<std::size_t>(n * k));
  part.ReadRows(begin, end, values.data());
  const memory::desc any({k, n}, data_type_, memory::format_tag::any);
  const Key key{kMaxProductRows, n, k, false};
  LinearWeight::Panel panel;
  panel.rows = n;
  panel.packed = memory(Describe(key, any).weights_desc(), engine_);
  memory plain({{k, n}, memory::data_type::f32, memory::format_tag::ba}, engine_, values.data());
  dnnl::stream stream(engine_);
  dnnl::reorder(plain, panel.packed).execute(stream, plain, panel.packed);
  stream.wait();
  return panel;
}

LinearWeight LinearEngine::Pack(std::span<const std::shared_ptr<const WeightTensor>> parts) {
  const OneThreadScope one_thread;
  LinearWeight weight;
  weight.columns_ = parts.front()->columns();
  for (const auto& part : parts) {
    QUAIL_CHECK_EQ(part->columns(), weight.columns_);
    const std::int64_t step = part->rows() < kHeadRows ? part->rows() : kHeadPanelRows;
    for (std::int64_t begin = 0; begin < part->rows(); begin += step) {
      const std::int64_t end = std::min(begin + step, part->rows());
      try {
        weight.panels_.push_back(PackPanel(*part, begin, end));
      } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::kOutOfMemory, fmt::format("no memory for {} [{}, {}]", part->name(),
                                                         part->rows(), part->columns()));
      } catch (const dnnl::error& error) {
        const bool memory_failed = error.status == dnnl_out_of_memory;
        throw Error(memory_failed ? ErrorCode::kOutOfMemory : ErrorCode::kDevice,
                    fmt::format("oneDNN cannot hold {} [{}, {}]: {}", part->name(), part->rows(),
                                part->columns(), error.what()));
      }
      KeepUniformSizes(weight.panels_.back(), weight.columns_);
      weight.panels_.back().first_row = weight.rows_;
      weight.rows_ += end - begin;
    }
  }
  return weight;
}

}  // namespace quail::infer::cpu
