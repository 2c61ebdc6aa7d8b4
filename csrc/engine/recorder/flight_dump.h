// The flight recorder as JSON, for rdmacoll/debug: what is in flight first, then what has ended.
// Floor: engine/recorder. Thread: any, also while the driver stands still.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/engine/recorder/flight_recorder.h"

namespace rdmacoll {

// reason: why it was asked for, or what failed.
std::string flight_dump(const FlightRecorder& recorder, const std::string& reason);

// Writes it to rdmacoll-rank<rank>-pid<pid><suffix>.json in the recorder's folder; the file appears
// whole, for this user alone, and the folder, if it did not exist. Returns its path.
Result<std::string> write_flight_dump(const FlightRecorder& recorder, const std::string& reason,
                                      const std::string& suffix);

}  // namespace rdmacoll
