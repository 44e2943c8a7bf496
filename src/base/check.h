#pragma once

#ifndef __CUDACC__  // nvcc cannot evaluate fmt 9's consteval format strings: kernels' files use no
                    // CHECK_MSG
#include <fmt/format.h>
#endif

#include <sstream>
#include <string>

/// CHECK is for our own bugs: always on, prints the operands, aborts. What a user can cause is a
/// quail::Error.
namespace quail::base {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& detail);

template <typename A, typename B>
std::string DescribeOperands(const A& a, const B& b) {
  std::ostringstream text;
  text << a << " vs " << b;
  return text.str();
}

}  // namespace quail::base

#define QUAIL_CHECK(condition)                                        \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::quail::base::CheckFailed(__FILE__, __LINE__, #condition, ""); \
  } while (false)

#define QUAIL_CHECK_MSG(condition, ...)                                                       \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::quail::base::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)

#define QUAIL_CHECK_OP(op, a, b)                                                     \
  do {                                                                               \
    const auto& quail_a = (a);                                                       \
    const auto& quail_b = (b);                                                       \
    if (!(quail_a op quail_b)) [[unlikely]]                                          \
      ::quail::base::CheckFailed(__FILE__, __LINE__, #a " " #op " " #b,              \
                                 ::quail::base::DescribeOperands(quail_a, quail_b)); \
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
