#include "render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace quail::cli {
namespace {

using Cell = std::optional<std::string>;
using Row = std::vector<Cell>;

std::uint64_t RenderSeparated(Result& result, char separator, std::ostream& out) {
  const std::string quoted = std::string("\"\r\n") + separator;
  const auto write = [&](std::string_view text) {
    if (!text.empty() && text.find_first_of(quoted) == std::string_view::npos) {
      out << text;
      return;
    }
    out << '"';
    for (const char c : text) {
      if (c == '"') out << '"';
      out << c;
    }
    out << '"';
  };
  auto rows = result.Next();
  for (std::size_t i = 0; i < result.columns().size(); ++i) {
    if (i > 0) out << separator;
    write(result.columns()[i].name);
  }
  out << '\n';
  std::uint64_t count = 0;
  for (; !rows.empty(); rows = result.Next()) {
    for (const Row& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i > 0) out << separator;
        if (row[i]) write(*row[i]);
      }
      out << '\n';
    }
    count += rows.size();
  }
  return count;
}

/// Column names as JSON keys; a repeated name gets _1, _2 ..
std::vector<std::string> Keys(const Result& result) {
  std::vector<std::string> names;
  for (const ColumnInfo& column : result.columns()) {
    std::string name = column.name;
    for (int i = 1; std::ranges::find(names, name) != names.end(); ++i) {
      name = column.name + "_" + std::to_string(i);
    }
    names.push_back(name);
  }
  for (std::string& name : names) {
    name = nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return names;
}

void WriteObject(const std::vector<std::string>& keys, const Row& row, std::ostream& out) {
  out << '{';
  for (std::size_t i = 0; i < row.size(); ++i) {
    out << (i == 0 ? "" : ",") << keys[i] << ':' << row[i].value_or("null");
  }
  out << '}';
}

std::uint64_t RenderJson(Result& result, bool lines, std::ostream& out) {
  const std::vector<std::string> keys = Keys(result);
  std::uint64_t count = 0;
  auto rows = result.Next();
  if (!lines) out << '[';
  for (; !rows.empty(); rows = result.Next()) {
    for (const Row& row : rows) {
      if (!lines) out << (count == 0 ? "\n" : ",\n");
      WriteObject(keys, row, out);
      if (lines) out << '\n';
      ++count;
    }
  }
  if (!lines) out << (count == 0 ? "]\n" : "\n]\n");
  return count;
}

std::uint64_t RenderMarkdown(Result& result, std::ostream& out) {
  const auto write = [&](std::string_view text) {
    out << ' ';
    for (const char c : text) {
      if (c == '|') out << '\\';
      if (c == '\n') {
        out << "<br>";
      } else {
        out << c;
      }
    }
    out << " |";
  };
  auto rows = result.Next();
  out << '|';
  for (const ColumnInfo& column : result.columns()) write(column.name);
  out << "\n|";
  for (std::size_t i = 0; i < result.columns().size(); ++i) out << " --- |";
  out << '\n';
  std::uint64_t count = 0;
  for (; !rows.empty(); rows = result.Next()) {
    for (const Row& row : rows) {
      out << '|';
      for (const Cell& cell : row) write(cell.value_or(""));
      out << '\n';
    }
    count += rows.size();
  }
  return count;
}

std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// A cell on one line, without the characters that would steer a terminal.
std::string Shown(const Cell& cell) {
  if (!cell) return "NULL";
  std::string text;
  for (const char c : *cell) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\t') {
      text += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text;
}

bool IsNumber(std::string_view type) {
  return type.ends_with("INT") || type.ends_with("INTEGER") || type == "DOUBLE" ||
         type == "FLOAT" || type.starts_with("DECIMAL");
}

void WriteLine(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
               const std::vector<bool>& right, std::ostream& out) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - Width(cells[i]), ' ');
    const bool last = i + 1 == cells.size();
    out << (i == 0 ? " " : " | ");
    if (right[i]) out << padding << cells[i];
    if (!right[i]) out << cells[i] << (last ? "" : padding);
  }
  out << '\n';
}

std::uint64_t RenderTable(Result& result, std::ostream& out) {
  std::vector<std::string> names;
  std::vector<bool> right;
  for (const ColumnInfo& column : result.columns()) {
    names.push_back(Shown(column.name));
    right.push_back(IsNumber(column.type));
  }
  std::vector<std::vector<std::string>> lines;
  std::vector<std::size_t> widths;
  for (const std::string& name : names) widths.push_back(Width(name));
  for (auto rows = result.Next(); !rows.empty(); rows = result.Next()) {
    for (const Row& row : rows) {
      auto& line = lines.emplace_back();
      for (std::size_t i = 0; i < row.size(); ++i) {
        line.push_back(Shown(row[i]));
        widths[i] = std::max(widths[i], Width(line.back()));
      }
    }
  }
  WriteLine(names, widths, std::vector<bool>(names.size(), false), out);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    out << (i == 0 ? "" : "+") << std::string(widths[i] + 2, '-');
  }
  out << '\n';
  for (const auto& line : lines) WriteLine(line, widths, right, out);
  out << '(' << lines.size() << (lines.size() == 1 ? " row)\n" : " rows)\n");
  return lines.size();
}

}  // namespace

CellForm FormOf(Format format) {
  const bool json = format == Format::kJson || format == Format::kJsonLines;
  return json ? CellForm::kJson : CellForm::kText;
}

std::uint64_t Render(Result& result, Format format, std::ostream& out) {
  if (result.is_plan()) {
    for (auto rows = result.Next(); !rows.empty(); rows = result.Next()) {
      for (const Row& row : rows) out << row.back().value_or("") << '\n';
    }
    return 0;
  }
  switch (format) {
    case Format::kTable:
      return RenderTable(result, out);
    case Format::kCsv:
      return RenderSeparated(result, ',', out);
    case Format::kTsv:
      return RenderSeparated(result, '\t', out);
    case Format::kJson:
      return RenderJson(result, false, out);
    case Format::kJsonLines:
      return RenderJson(result, true, out);
    case Format::kMarkdown:
      return RenderMarkdown(result, out);
    case Format::kParquet:
    case Format::kArrow:
      break;
  }
  throw Error(ErrorCode::kUsage, "this format is written by the session");
}

}  // namespace quail::cli
