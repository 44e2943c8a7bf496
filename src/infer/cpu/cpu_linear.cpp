#include "infer/cpu/cpu_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/hash128.h"
#include "infer/cpu/int8_rows.h"
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

// 255 * 127 times as many fit 31 bits.
constexpr std::int64_t kMaxInt8Columns = 65536;

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

LinearEngine::DataTypes TypesOf(ElementType type, ProductType products) {
  using Type = memory::data_type;
  if (products == ProductType::kInt8) return {Type::u8, Type::s8, Type::s32};
  const Type element = type == ElementType::kF32 ? Type::f32 : Type::bf16;
  return {element, element, Type::f32};
}

}  // namespace

OneThreadScope::OneThreadScope() : previous_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThreadScope::~OneThreadScope() { omp_set_num_threads(previous_); }

LinearEngine::LinearEngine(ElementType type, ProductType products, const CpuKernels& kernels)
    : type_(type),
      products_(products),
      data_types_(TypesOf(type, products)),
      kernels_(kernels),
      engine_(dnnl::engine::kind::cpu, 0),
      row_sizes_(std::begin(kRowSizes), std::end(kRowSizes)) {
  // Two products of bytes in 16 bits saturate unless a weight has one bit less.
  constexpr std::int64_t kTried = 64;
  if (products == ProductType::kInt8 && !SumsAreExact(kTried, kTried, weight_limit_)) {
    weight_limit_ /= 2;
  }
}

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
  const memory::desc x({rows, k}, data_types_.x, memory::format_tag::ab);
  const memory::desc y({rows, n}, data_types_.y, memory::format_tag::ab);
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

LinearEngine::Input LinearEngine::Prepare(const std::byte* x, std::int64_t rows,
                                          std::int64_t columns, ProductScratch& scratch) const {
  if (products_ == ProductType::kElements) return {rows, columns, x, nullptr};
  const auto width = static_cast<std::size_t>(columns);
  scratch.codes.Reserve(static_cast<std::size_t>(kMaxProductRows) * width);
  scratch.row.Reserve(width * sizeof(float));
  scratch.scales.resize(static_cast<std::size_t>(kMaxProductRows));
  const auto n = static_cast<std::int32_t>(columns);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    const std::byte* values = x + i * width * SizeOf(type_);
    const float* row = reinterpret_cast<const float*>(values);
    if (type_ == ElementType::kBf16) {
      kernels_.from_bf16(reinterpret_cast<const std::uint16_t*>(values), n, scratch.row.floats());
      row = scratch.row.floats();
    }
    auto* codes = reinterpret_cast<std::uint8_t*>(scratch.codes.data()) + i * width;
    scratch.scales[i] = kernels_.quantise(row, n, codes);
  }
  return {rows, columns, scratch.codes.data(), scratch.scales.data()};
}

std::size_t LinearEngine::RowBytes(std::int64_t columns) const {
  return static_cast<std::size_t>(columns) * (products_ == ProductType::kInt8 ? 1 : SizeOf(type_));
}

void LinearEngine::Reserve(std::int64_t count, std::int64_t columns, ActivationRows& rows) const {
  const auto n = static_cast<std::size_t>(count);
  rows.values.Reserve(n * RowBytes(columns));
  if (products_ == ProductType::kInt8) rows.codes.resize(std::max(rows.codes.size(), n));
}

void LinearEngine::Store(float* x, std::int64_t columns, std::int64_t row,
                         ActivationRows& rows) const {
  const auto n = static_cast<std::int32_t>(columns);
  std::byte* out = rows.values.data() + static_cast<std::size_t>(row) * RowBytes(columns);
  if (products_ == ProductType::kInt8) {
    auto* codes = reinterpret_cast<std::uint8_t*>(out);
    // What the element type would keep of them is what is given codes.
    rows.codes[static_cast<std::size_t>(row)] = type_ == ElementType::kBf16
                                                    ? kernels_.quantise_as_bf16(x, n, codes)
                                                    : kernels_.quantise(x, n, codes);
  } else if (type_ == ElementType::kBf16) {
    kernels_.to_bf16(x, n, reinterpret_cast<std::uint16_t*>(out));
  } else {
    std::memcpy(out, x, RowBytes(columns));
  }
}

LinearEngine::Input LinearEngine::RowsOf(const ActivationRows& rows, std::int64_t first,
                                         std::int64_t count, std::int64_t columns) const {
  const std::byte* values =
      rows.values.data() + static_cast<std::size_t>(first) * RowBytes(columns);
  return {count, columns, values,
          products_ == ProductType::kInt8 ? rows.codes.data() + first : nullptr};
}

void LinearEngine::Multiply(const LinearWeight::Panel& panel, const Product& product,
                            ProductScratch& scratch) {
  const Unfinished begun = Begin(panel, product, scratch);
  for (std::int64_t i = 0; i < product.x.rows; ++i) Finish(begun, i);
}

/// Sums come where their products go, unless something is there already.
LinearEngine::Unfinished LinearEngine::Begin(const LinearWeight::Panel& panel,
                                             const Product& product, ProductScratch& scratch) {
  const Input& x = product.x;
  const std::int64_t rows = ProductRows(x.rows);
  if (products_ == ProductType::kElements) {
    Execute(panel, {rows, x.columns, x.values, product.y, product.accumulate}, scratch.primitive);
    return {&panel, product, nullptr};
  }
  auto* sums = reinterpret_cast<std::int32_t*>(product.y);
  if (product.accumulate) {
    scratch.sums.Reserve(static_cast<std::size_t>(rows * panel.rows) * sizeof(std::int32_t));
    sums = reinterpret_cast<std::int32_t*>(scratch.sums.data());
  }
  Execute(panel, {rows, x.columns, x.values, sums, false}, scratch.primitive);
  return {&panel, product, sums};
}

void LinearEngine::FinishInt8(const Unfinished& begun, std::int64_t row) const {
  const LinearWeight::Panel& panel = *begun.panel;
  const Product& product = begun.product;
  kernels_.dequantise({product.x.codes[row], begun.sums + row * panel.rows, panel.scales.data(),
                       panel.sums.data(), product.y + row * panel.rows, product.accumulate},
                      static_cast<std::int32_t>(panel.rows));
}

void LinearEngine::Execute(const LinearWeight::Panel& panel, const Call& call,
                           std::vector<std::byte>& scratch) {
  try {
    const OneThreadScope one_thread;
    const Key key{call.rows, panel.rows, call.columns, call.accumulate};
    const Compiled& compiled = Find(key, panel.packed.get_desc());
    scratch.resize(std::max(scratch.size(), compiled.scratch.get_size()));
    dnnl::stream stream(engine_);
    // oneDNN takes sources as void*, but does not write to them.
    void* x = const_cast<std::byte*>(call.x);
    compiled.primitive.execute(
        stream, {{DNNL_ARG_SRC, memory(compiled.x, engine_, x)},
                 {DNNL_ARG_WEIGHTS, panel.packed},
                 {DNNL_ARG_DST, memory(compiled.y, engine_, call.y)},
                 {DNNL_ARG_SCRATCHPAD, memory(compiled.scratch, engine_, scratch.data())}});
    stream.wait();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw Error(ErrorCode::kDevice,
                fmt::format("oneDNN cannot multiply [{}, {}] by [{}, {}]: {}", call.rows,
                            call.columns, call.columns, panel.rows, error.what()));
  }
}

/// Tries a shape that is new.
void LinearEngine::Try(const LinearWeight::Panel& panel, std::int64_t columns) {
  // Matrices are packed in parallel.
  const std::lock_guard lock(trial_mutex_);
  if (!tried_.emplace(panel.rows, columns).second) return;
  if (products_ == ProductType::kElements) return KeepUniformSizes(panel, columns);
  if (SumsAreExact(panel.rows, columns, weight_limit_)) return;
  throw Error(ErrorCode::kDevice,
              fmt::format("this oneDNN computes int8 products [{}, {}] x [{}, {}] wrongly on this "
                          "processor ({})",
                          kMaxProductRows, columns, columns, panel.rows,
                          ImplementationOf(panel, columns, kMaxProductRows, false)));
}

/// Whether the largest sums that codes of weights up to `limit` can make come out right, for calls
/// of all sizes.
bool LinearEngine::SumsAreExact(std::int64_t rows, std::int64_t columns, std::int32_t limit) {
  const OneThreadScope one_thread;
  std::vector<std::int8_t> codes(static_cast<std::size_t>(rows * columns),
                                 static_cast<std::int8_t>(limit));
  LinearWeight::Panel panel;
  panel.rows = rows;
  panel.packed = PackValues(codes.data(), memory::data_type::s8, rows, columns);
  const std::vector<std::byte> x(static_cast<std::size_t>(kMaxProductRows * columns),
                                 std::byte{255});
  std::vector<std::int32_t> y(static_cast<std::size_t>(kMaxProductRows * rows));
  std::vector<std::byte> scratch;
  const std::int64_t exact = 255 * limit * columns;
  return std::ranges::all_of(row_sizes_, [&](std::int64_t count) {
    std::ranges::fill(y, 0);
    Execute(panel, {count, columns, x.data(), y.data(), false}, scratch);
    return std::all_of(y.begin(), y.begin() + count * rows,
                       [exact](std::int32_t sum) { return sum == exact; });
  });
}

/// One and the same row in all places of calls of every size must give the same bits. Drops the
/// sizes at which it does not.
void LinearEngine::KeepUniformSizes(const LinearWeight::Panel& panel, std::int64_t columns) {
  const std::vector<std::byte> x = EqualRows(columns, type_);
  std::vector<float> y(static_cast<std::size_t>(kMaxProductRows * panel.rows));
  std::vector<float> expected;
  std::vector<std::byte> scratch;
  const auto is_uniform = [&](std::int64_t rows) {
    Execute(panel, {rows, columns, x.data(), y.data(), false}, scratch);
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

/// `values` [rows, columns] as oneDNN wants the weight of a product.
memory LinearEngine::PackValues(void* values, memory::data_type type, std::int64_t rows,
                                std::int64_t columns) const {
  const memory::desc any({columns, rows}, data_types_.weight, memory::format_tag::any);
  const Key key{kMaxProductRows, rows, columns, false};
  memory packed(Describe(key, any).weights_desc(), engine_);
  memory plain({{columns, rows}, type, memory::format_tag::ba}, engine_, values);
  dnnl::stream stream(engine_);
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
  return packed;
}

LinearWeight::Panel LinearEngine::PackPanel(const WeightTensor& part, std::int64_t begin,
                                            std::int64_t end) const {
  const std::int64_t n = end - begin;
  const std::int64_t k = part.columns();
  std::vector<float> values(static_cast<std::size_t>(n * k));
  part.ReadRows(begin, end, values.data());
  LinearWeight::Panel panel;
  panel.rows = n;
  if (products_ == ProductType::kElements) {
    panel.packed = PackValues(values.data(), memory::data_type::f32, n, k);
    return panel;
  }
  Int8Matrix rows = QuantiseRows(values, static_cast<std::size_t>(k), weight_limit_);
  panel.packed = PackValues(rows.codes.data(), memory::data_type::s8, n, k);
  panel.scales = std::move(rows.scales);
  panel.sums = std::move(rows.sums);
  return panel;
}

LinearWeight LinearEngine::Pack(std::span<const std::shared_ptr<const WeightTensor>> parts) {
  const OneThreadScope one_thread;
  LinearWeight weight;
  weight.columns_ = parts.front()->columns();
  for (const auto& part : parts) {
    QUAIL_CHECK_EQ(part->columns(), weight.columns_);
    if (products_ == ProductType::kInt8 && part->columns() > kMaxInt8Columns) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("int8 products of {} [{}, {}] can exceed 32 bits", part->name(),
                              part->rows(), part->columns()));
    }
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
      Try(weight.panels_.back(), weight.columns_);
      weight.panels_.back().first_row = weight.rows_;
      weight.rows_ += end - begin;
    }
  }
  return weight;
}

}  // namespace quail::infer::cpu
