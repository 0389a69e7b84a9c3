// What crate cp_sat's C++ wrapper needs of OR-Tools' header of this name, without OR-Tools: a message is kept as the
// bytes it was parsed from, and solving is left to the function below, which the Rust side defines
// (generator/src/phase2/ortools.rs) and which forwards to libortools when that library is there at run time.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Solves a serialized CpModelProto under serialized SatParameters. The response is serialized into memory from
// malloc, which the caller frees; a null response stands for the empty message (status UNKNOWN).
extern "C" void act_cp_sat_solve(const unsigned char* model, std::size_t model_size, const unsigned char* parameters,
                                 std::size_t parameters_size, unsigned char** response, std::size_t* response_size);

namespace operations_research {
namespace sat {

class SerializedMessage {
 public:
  bool ParseFromArray(const void* data, std::size_t size) {
    bytes_.assign(static_cast<const char*>(data), size);
    return true;
  }
  std::size_t ByteSizeLong() const { return bytes_.size(); }
  bool SerializeToArray(void* data, std::size_t size) const {
    if (size < bytes_.size()) return false;
    std::memcpy(data, bytes_.data(), bytes_.size());
    return true;
  }
  const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(bytes_.data()); }

 private:
  std::string bytes_;
};

class CpModelProto : public SerializedMessage {};
class SatParameters : public SerializedMessage {};
class CpSolverResponse : public SerializedMessage {};

inline CpSolverResponse SolveWithParameters(const CpModelProto& model, const SatParameters& parameters) {
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  act_cp_sat_solve(model.data(), model.ByteSizeLong(), parameters.data(), parameters.ByteSizeLong(), &bytes, &size);
  CpSolverResponse response;
  if (bytes != nullptr) response.ParseFromArray(bytes, size);
  std::free(bytes);
  return response;
}

inline CpSolverResponse Solve(const CpModelProto& model) { return SolveWithParameters(model, SatParameters()); }

// The library exports nothing that could answer these; nothing in this project asks.
inline std::string CpModelStats(const CpModelProto&) { return std::string(); }
inline std::string CpSolverResponseStats(const CpSolverResponse&, bool) { return std::string(); }
inline std::string ValidateCpModel(const CpModelProto&) { return "validation is not available"; }
inline bool SolutionIsFeasible(const CpModelProto&, const std::vector<std::int64_t>&) { return false; }

}  // namespace sat
}  // namespace operations_research
