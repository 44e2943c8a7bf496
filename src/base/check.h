#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

/// CHECK is for our own bugs: always on, prints the operands, aborts. What a user can cause is a quail::Error.
namespace quail::base {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& detail);

}  // namespace quail::base

#define QUAIL_CHECK(condition)                                              \
  do {                                                                      \
    if (!(condition)) [[unlikely]]                                          \
      ::quail::base::CheckFailed(__FILE__, __LINE__, #condition, "");       \
  } while (false)

#define QUAIL_CHECK_MSG(condition, ...)                                                         \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::quail::base::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__));   \
  } while (false)

#define QUAIL_CHECK_OP(op, a, b)                                                              \
  do {                                                                                        \
    const auto& quail_a = (a);                                                                \
    const auto& quail_b = (b);                                                                \
    if (!(quail_a op quail_b)) [[unlikely]]                                                   \
      ::quail::base::CheckFailed(__FILE__, __LINE__, #a " " #op " " #b,                       \
                                 ::fmt::format("{} vs {}", quail_a, quail_b));                \
  } while (false)

#define QUAIL_CHECK_EQ(a, b) QUAIL_CHECK_OP(==, a, b)
#define QUAIL_CHECK_NE(a, b) QUAIL_CHECK_OP(!=, a, b)
#define QUAIL_CHECK_LT(a, b) QUAIL_CHECK_OP(<, a, b)
#define QUAIL_CHECK_LE(a, b) QUAIL_CHECK_OP(<=, a, b)
#define QUAIL_CHECK_GE(a, b) QUAIL_CHECK_OP(>=, a, b)
#define QUAIL_CHECK_GT(a, b) QUAIL_CHECK_OP(>, a, b)

#ifdef NDEBUG
#define QUAIL_DCHECK(condition) static_cast<void>(0)
#else
#define QUAIL_DCHECK(condition) QUAIL_CHECK(condition)
#endif
