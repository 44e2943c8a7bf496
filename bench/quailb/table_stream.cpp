#include "quailb/table_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

namespace quail::quailb {
namespace {

constexpr std::uint64_t kBatchRows = 2048;

/// The memory of one array or schema and of its children, which are released with it.
template <typename Node>
struct Owned {
  std::vector<std::uint8_t> bitmap;
  std::vector<std::int64_t> offsets;
  std::vector<std::byte> values;
  std::array<const void*, 3> buffers{};
  std::vector<std::unique_ptr<Node>> children;
  std::vector<Node*> child_pointers;
  std::string name;

  static void Release(Node* node) {
    auto* owned = static_cast<Owned*>(node->private_data);
    for (const auto& child : owned->children) {
      if (child->release != nullptr) child->release(child.get());
    }
    node->release = nullptr;
    delete owned;
  }

  Node* AddChild() {
    children.push_back(std::make_unique<Node>());
    return children.back().get();
  }
};

template <typename Node>
void Attach(std::unique_ptr<Owned<Node>> owned, Node* node) {
  for (const auto& child : owned->children) owned->child_pointers.push_back(child.get());
  node->n_children = static_cast<std::int64_t>(owned->children.size());
  node->children = owned->child_pointers.data();
  node->release = &Owned<Node>::Release;
  node->private_data = owned.release();
}

// --- schema
// ---------------------------------------------------------------------------------------

void FillSchema(const char* format, std::string name, std::unique_ptr<Owned<ArrowSchema>> owned,
                ArrowSchema* out) {
  owned->name = std::move(name);
  *out = ArrowSchema{};
  out->format = format;
  out->name = owned->name.c_str();
  out->flags = ARROW_FLAG_NULLABLE;
  Attach(std::move(owned), out);
}

void FillColumnSchema(const Column& column, ArrowSchema* out) {
  static constexpr std::array<const char*, 4> kFormats = {"l", "g", "U", "+L"};
  auto owned = std::make_unique<Owned<ArrowSchema>>();
  if (std::holds_alternative<Column::Tokens>(column.value)) {
    FillSchema("i", "item", std::make_unique<Owned<ArrowSchema>>(), owned->AddChild());
  }
  FillSchema(kFormats[column.value.index()], column.name, std::move(owned), out);
}

void FillTableSchema(const TableSource& source, ArrowSchema* out) {
  auto owned = std::make_unique<Owned<ArrowSchema>>();
  for (const Column& column : source.columns) FillColumnSchema(column, owned->AddChild());
  FillSchema("+s", "", std::move(owned), out);
}

// --- arrays
// ---------------------------------------------------------------------------------------

using OwnedArray = Owned<ArrowArray>;

void FillArray(std::int64_t length, std::int64_t buffers, std::unique_ptr<OwnedArray> owned,
               ArrowArray* out) {
  *out = ArrowArray{};
  out->length = length;
  out->n_buffers = buffers;
  out->buffers = owned->buffers.data();
  Attach(std::move(owned), out);
}

/// Rows [begin, end) of a table's columns.
struct RowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::int64_t length() const { return static_cast<std::int64_t>(end - begin); }
};

template <typename Value>
void Append(std::vector<std::byte>& bytes, const Value* values, std::size_t count) {
  const auto* begin = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), begin, begin + count * sizeof(Value));
}

void FillColumn(const Column::Integer& value, RowRange rows, ArrowArray* out) {
  auto owned = std::make_unique<OwnedArray>();
  owned->bitmap.resize((rows.end - rows.begin + 7) / 8);
  std::int64_t nulls = 0;
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const std::optional<std::int64_t> number = value(row);
    const std::uint64_t place = row - rows.begin;
    if (number) {
      auto& bits = owned->bitmap[place / 8];
      bits = static_cast<std::uint8_t>(bits | (1U << (place % 8)));
    }
    nulls += number ? 0 : 1;
    const std::int64_t stored = number.value_or(0);
    Append(owned->values, &stored, 1);
  }
  owned->buffers = {owned->bitmap.data(), owned->values.data(), nullptr};
  FillArray(rows.length(), 2, std::move(owned), out);
  out->null_count = nulls;
}

void FillColumn(const Column::Real& value, RowRange rows, ArrowArray* out) {
  auto owned = std::make_unique<OwnedArray>();
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const double number = value(row);
    Append(owned->values, &number, 1);
  }
  owned->buffers = {nullptr, owned->values.data(), nullptr};
  FillArray(rows.length(), 2, std::move(owned), out);
}

void FillColumn(const Column::Text& value, RowRange rows, ArrowArray* out) {
  auto owned = std::make_unique<OwnedArray>();
  owned->offsets.push_back(0);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const std::string text = value(row);
    Append(owned->values, text.data(), text.size());
    owned->offsets.push_back(static_cast<std::int64_t>(owned->values.size()));
  }
  owned->values.resize(std::max<std::size_t>(owned->values.size(), 1));
  owned->buffers = {nullptr, owned->offsets.data(), owned->values.data()};
  FillArray(rows.length(), 3, std::move(owned), out);
}

void FillColumn(const Column::Tokens& value, RowRange rows, ArrowArray* out) {
  auto owned = std::make_unique<OwnedArray>();
  auto items = std::make_unique<OwnedArray>();
  owned->offsets.push_back(0);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const std::vector<std::int32_t> ids = value(row);
    Append(items->values, ids.data(), ids.size());
    owned->offsets.push_back(owned->offsets.back() + static_cast<std::int64_t>(ids.size()));
  }
  const std::int64_t count = owned->offsets.back();
  items->buffers = {nullptr, items->values.data(), nullptr};
  FillArray(count, 2, std::move(items), owned->AddChild());
  owned->buffers = {nullptr, owned->offsets.data(), nullptr};
  FillArray(rows.length(), 2, std::move(owned), out);
}

void FillBatch(const TableSource& source, RowRange rows, ArrowArray* out) {
  auto owned = std::make_unique<OwnedArray>();
  for (const Column& column : source.columns) {
    ArrowArray* child = owned->AddChild();
    std::visit([&](const auto& value) { FillColumn(value, rows, child); }, column.value);
  }
  FillArray(rows.length(), 1, std::move(owned), out);
}

// --- stream
// ---------------------------------------------------------------------------------------

struct StreamState {
  TableSource source;
  std::uint64_t next = 0;
};

StreamState& StateOf(ArrowArrayStream* stream) {
  return *static_cast<StreamState*>(stream->private_data);
}

/// The Arrow stream interface is C: a failure crosses it as a number.
template <typename Fill>
int Guarded(Fill fill) {
  try {
    fill();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  return Guarded([&] { FillTableSchema(StateOf(stream).source, out); });
}

int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  return Guarded([&] {
    StreamState& state = StateOf(stream);
    *out = ArrowArray{};
    const TableSource& source = state.source;
    if (state.next == source.rows || (source.ends_early && source.ends_early())) return;
    const RowRange rows{state.next, std::min(state.next + kBatchRows, source.rows)};
    FillBatch(source, rows, out);
    state.next = rows.end;
  });
}

const char* GetLastError(ArrowArrayStream*) { return "out of memory"; }

void ReleaseStream(ArrowArrayStream* stream) {
  delete &StateOf(stream);
  stream->release = nullptr;
}

}  // namespace

void ExportStream(TableSource source, ArrowArrayStream* out) {
  *out = {&GetSchema, &GetNext, &GetLastError, &ReleaseStream,
          new StreamState{std::move(source), 0}};
}

}  // namespace quail::quailb
