#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "columnar/batch.h"

/// Arrow arrays for tests, built part by part, so that any part can be made wrong.
namespace quail::columnar::testing {

using Bytes = std::vector<unsigned char>;

struct Column {
  std::string name;
  std::string format;
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  std::int64_t offset = 0;
  std::vector<std::optional<Bytes>> buffers;  ///< nullopt: a null pointer
  std::vector<Column> children;
  std::shared_ptr<Column> dictionary;
};

/// Arrays and schemas made here and not yet released.
inline std::int64_t& Live() {
  static std::int64_t live = 0;
  return live;
}

template <typename T>
void Put(Bytes& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// Sets validity buffer and count of nulls; no buffer where nothing is null.
template <typename T>
void SetValidity(Column& column, const std::vector<std::optional<T>>& values) {
  Bytes bits((values.size() + 7) / 8);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) bits[i / 8] = static_cast<unsigned char>(bits[i / 8] | (1U << (i % 8)));
    column.null_count += values[i] ? 0 : 1;
  }
  if (column.null_count > 0) column.buffers.at(0) = bits;
}

template <typename T>
Column Numbers(std::string name, std::string format, const std::vector<std::optional<T>>& values) {
  Column column{std::move(name),
                std::move(format),
                static_cast<std::int64_t>(values.size()),
                0,
                0,
                {std::nullopt, Bytes()},
                {},
                nullptr};
  for (const auto& value : values) Put(*column.buffers[1], value.value_or(T{}));
  SetValidity(column, values);
  return column;
}

inline Column Booleans(std::string name, const std::vector<std::optional<bool>>& values) {
  Column column{std::move(name),
                "b",
                static_cast<std::int64_t>(values.size()),
                0,
                0,
                {std::nullopt, Bytes((values.size() + 7) / 8)},
                {},
                nullptr};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].value_or(false)) {
      auto& byte = (*column.buffers[1])[i / 8];
      byte = static_cast<unsigned char>(byte | (1U << (i % 8)));
    }
  }
  SetValidity(column, values);
  return column;
}

/// Offset is int32 for "u" and "z", int64 for "U" and "Z".
template <typename Offset>
Column Texts(std::string name, std::string format,
             const std::vector<std::optional<std::string>>& values) {
  Column column{std::move(name),
                std::move(format),
                static_cast<std::int64_t>(values.size()),
                0,
                0,
                {std::nullopt, Bytes(), Bytes()},
                {},
                nullptr};
  Offset end = 0;
  Put(*column.buffers[1], end);
  for (const auto& value : values) {
    // A null's bytes are garbage on purpose: nothing may read them as text.
    const std::string text = value.value_or("garbage");
    for (const char c : text) column.buffers[2]->push_back(static_cast<unsigned char>(c));
    end = static_cast<Offset>(end + static_cast<Offset>(text.size()));
    Put(*column.buffers[1], end);
  }
  SetValidity(column, values);
  return column;
}

/// Long texts go to two data buffers in turn.
inline Column TextViews(std::string name, const std::vector<std::optional<std::string>>& values) {
  Column column{std::move(name),
                "vu",
                static_cast<std::int64_t>(values.size()),
                0,
                0,
                {std::nullopt, Bytes(), Bytes(), Bytes(), Bytes()},
                {},
                nullptr};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string text = values[i].value_or("");
    Bytes& views = *column.buffers[1];
    Put(views, static_cast<std::int32_t>(text.size()));
    if (text.size() <= 12) {
      std::string padded = text;
      padded.resize(12);
      for (const char c : padded) views.push_back(static_cast<unsigned char>(c));
      continue;
    }
    const std::size_t block = i % 2;
    Bytes& data = *column.buffers[2 + block];
    for (std::size_t k = 0; k < 4; ++k) views.push_back(static_cast<unsigned char>(text[k]));
    Put(views, static_cast<std::int32_t>(block));
    Put(views, static_cast<std::int32_t>(data.size()));
    for (const char c : text) data.push_back(static_cast<unsigned char>(c));
  }
  for (std::size_t block = 0; block < 2; ++block) {
    Put(*column.buffers[4], static_cast<std::int64_t>(column.buffers[2 + block]->size()));
  }
  SetValidity(column, values);
  return column;
}

inline Column Dictionary(Column indices, Column values) {
  indices.dictionary = std::make_shared<Column>(std::move(values));
  return indices;
}

/// Lists of int32 ("+l").
inline Column Lists(std::string name,
                    const std::vector<std::optional<std::vector<std::int32_t>>>& values) {
  Column column{std::move(name),
                "+l",
                static_cast<std::int64_t>(values.size()),
                0,
                0,
                {std::nullopt, Bytes()},
                {},
                nullptr};
  std::vector<std::optional<std::int32_t>> elements;
  Put(*column.buffers[1], std::int32_t{0});
  for (const auto& value : values) {
    if (value) elements.insert(elements.end(), value->begin(), value->end());
    Put(*column.buffers[1], static_cast<std::int32_t>(elements.size()));
  }
  SetValidity(column, values);
  column.children.push_back(Numbers<std::int32_t>("item", "i", elements));
  return column;
}

struct SchemaParts {
  std::string name;
  std::string format;
  std::vector<OwnedSchema> children;
  std::vector<ArrowSchema*> pointers;
  OwnedSchema dictionary;
};

struct ArrayParts {
  std::vector<std::unique_ptr<unsigned char[]>> storage;  ///< exact sizes: sanitizers see overruns
  std::vector<const void*> buffers;
  std::vector<OwnedArray> children;
  std::vector<ArrowArray*> pointers;
  OwnedArray dictionary;
};

inline OwnedSchema MakeSchema(const Column& column) {
  auto parts = std::make_unique<SchemaParts>();
  parts->name = column.name;
  parts->format = column.format;
  for (const Column& child : column.children) {
    parts->children.push_back(MakeSchema(child));
    parts->pointers.push_back(parts->children.back().get());
  }
  if (column.dictionary) parts->dictionary = MakeSchema(*column.dictionary);
  OwnedSchema schema(new ArrowSchema{});
  schema->format = parts->format.c_str();
  schema->name = parts->name.c_str();
  schema->flags = ARROW_FLAG_NULLABLE;
  schema->n_children = static_cast<std::int64_t>(parts->pointers.size());
  schema->children = parts->pointers.data();
  schema->dictionary = parts->dictionary.get();
  schema->private_data = parts.release();
  schema->release = [](ArrowSchema* self) {
    delete static_cast<SchemaParts*>(self->private_data);
    self->release = nullptr;
    --Live();
  };
  ++Live();
  return schema;
}

inline OwnedArray MakeArray(const Column& column) {
  auto parts = std::make_unique<ArrayParts>();
  for (const auto& buffer : column.buffers) {
    if (!buffer) {
      parts->buffers.push_back(nullptr);
      continue;
    }
    auto& copy = parts->storage.emplace_back(new unsigned char[buffer->size()]);
    if (!buffer->empty()) std::memcpy(copy.get(), buffer->data(), buffer->size());
    parts->buffers.push_back(copy.get());
  }
  for (const Column& child : column.children) {
    parts->children.push_back(MakeArray(child));
    parts->pointers.push_back(parts->children.back().get());
  }
  if (column.dictionary) parts->dictionary = MakeArray(*column.dictionary);
  OwnedArray array(new ArrowArray{});
  array->length = column.length;
  array->null_count = column.null_count;
  array->offset = column.offset;
  array->n_buffers = static_cast<std::int64_t>(parts->buffers.size());
  array->n_children = static_cast<std::int64_t>(parts->pointers.size());
  array->buffers = parts->buffers.data();
  array->children = parts->pointers.data();
  array->dictionary = parts->dictionary.get();
  array->private_data = parts.release();
  array->release = [](ArrowArray* self) {
    delete static_cast<ArrayParts*>(self->private_data);
    self->release = nullptr;
    --Live();
  };
  ++Live();
  return array;
}

/// The struct of some columns, as long as the first.
inline Column Table(std::vector<Column> columns) {
  Column table{"", "+s", columns.at(0).length, 0, 0, {std::nullopt}, std::move(columns), nullptr};
  return table;
}

inline Batch MakeBatch(const Column& table) {
  return Batch(std::shared_ptr<const ArrowSchema>(MakeSchema(table)), MakeArray(table));
}

/// A stream of tables of one schema; `failure` is the error code after the last (0: the end).
struct StreamParts {
  std::deque<Column> tables;
  Column schema;
  int failure = 0;
};

inline ArrowArrayStream MakeStream(std::deque<Column> tables, int failure = 0) {
  ArrowArrayStream stream{};
  Column schema = tables.at(0);
  stream.private_data = new StreamParts{std::move(tables), std::move(schema), failure};
  stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    const OwnedSchema schema_copy =
        MakeSchema(static_cast<StreamParts*>(self->private_data)->schema);
    *out = *schema_copy;
    schema_copy->release = nullptr;
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    auto& parts = *static_cast<StreamParts*>(self->private_data);
    out->release = nullptr;
    if (parts.tables.empty()) return parts.failure;
    const OwnedArray array = MakeArray(parts.tables.front());
    parts.tables.pop_front();
    *out = *array;
    array->release = nullptr;
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) { return "the source broke"; };
  stream.release = [](ArrowArrayStream* self) {
    delete static_cast<StreamParts*>(self->private_data);
    self->release = nullptr;
    --Live();
  };
  ++Live();
  return stream;
}

}  // namespace quail::columnar::testing
