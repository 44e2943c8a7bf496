# The CUDA language and toolkit: an installed one, else the pinned packages in .deps/cuda-toolkit.

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(quail_nvcc nvcc HINTS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin
    "${QUAIL_DEPS_DIR}/cuda-toolkit/bin")
  if(NOT quail_nvcc)
    message(FATAL_ERROR "QUAIL_CUDA is on and there is no nvcc: install CUDA 13, "
      "or run ./dev setup --cuda, which fetches the pinned toolkit packages")
  endif()
  set(CMAKE_CUDA_COMPILER "${quail_nvcc}")
endif()

# -arch=sm_90a would also assemble compute_90 PTX, on which Hopper-only code fails.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90a-real)
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
# CMake 3.25.1 does not know nvcc's C++20 flag, yet asks for the standard of CMAKE_CXX_STANDARD.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
# CUDA 13 has no nvToolsExt, and CMake 3.25's module then fails while it sets a property of it.
if(NOT TARGET CUDA::nvToolsExt)
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(CUDAToolkit 12.9 REQUIRED)

# DeepGEMM's and CUTLASS's headers (group `cuda` of tools/deps.lock).
set(QUAIL_DEEPGEMM_INCLUDE_DIR "${QUAIL_DEPS_DIR}/deepgemm/include")
if(NOT EXISTS "${QUAIL_DEEPGEMM_INCLUDE_DIR}/deep_gemm")
  message(FATAL_ERROR "no DeepGEMM headers in ${QUAIL_DEEPGEMM_INCLUDE_DIR}: "
    "run ./dev setup --cuda, or tools/fetch_deps.py --group cuda")
endif()
