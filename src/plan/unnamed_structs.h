#pragma once

#include <string>
#include <string_view>

namespace quail::plan {

/// The engine keeps structs whose members have no names, `(a, b)` and `ROW(a, b)`, in no table and
/// casts nothing to their types. Types are as the engine writes them.

/// Whether a type is or holds such a struct, in other structs, lists, arrays and maps.
bool HasUnnamedStruct(std::string_view type);

/// The type with names v1, v2 .. for members that have none: the engine casts to it by position.
std::string NamedType(std::string_view type);

/// A value of NamedType(type) as one of `type`.
std::string WithoutNames(const std::string& value, std::string_view type);

}  // namespace quail::plan
