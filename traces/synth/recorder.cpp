// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/recorder.hpp"

namespace rehearse::synth {

using traces::OpKind;
using traces::SyncKind;

Recorder::Recorder(const Script& script, const Layout& layout, const CommonNames& names,
                   traces::RankTrace& out)
    : script_(script),
      layout_(layout),
      names_(names),
      out_(out),
      event_of_slot_(script.events, 0),
      open_(script.annotations, 0) {
  out_.lanes = script.lanes;
  // Work on a stream is two operations: the launch and the work itself.
  out_.ops.reserve(script.once.size() + 2 * script.step.size() * names.steps.size());
}

void Recorder::begin_step(uint32_t step, Nanos at) {
  out_.steps.push_back({static_cast<int64_t>(step), at, at});
  step_op_ = out_.ops.add(OpKind::kAnnotation, 0, names_.steps[step], at, 0);
}

void Recorder::end_step(Nanos at) {
  out_.steps.back().end = at;
  out_.ops.duration[step_op_] = at - out_.ops.start[step_op_];
}

void Recorder::memory(const Instruction& i, Nanos at) {
  out_.ops.add_memory(i.lane, i.name, at, {i.value, i.index});
}

void Recorder::launch(const Instruction& i, Nanos start, Nanos duration) {
  uint32_t name = names_.launch;
  if (i.what == Do::kCall) name = names_.launch_nccl;
  if (i.what == Do::kCopy) name = names_.copy;
  if (i.what == Do::kMemset) name = names_.memset;
  out_.ops.add(OpKind::kLaunch, i.lane, name, start, duration, ++correlation_);
}

void Recorder::host(const Instruction& i, Nanos start, Nanos duration) {
  out_.ops.add(OpKind::kHost, i.lane, i.name, start, duration);
}

void Recorder::work(const Instruction& i, Nanos start, Nanos duration) {
  if (i.what == Do::kCopy) {
    out_.ops.add_copy(i.stream, i.name, start, duration, correlation_, script_.copies[i.index]);
    return;
  }
  const OpKind kind = i.what == Do::kMemset ? OpKind::kMemset : OpKind::kKernel;
  out_.ops.add(kind, i.stream, i.name, start, duration, correlation_);
}

void Recorder::event(const Instruction& i, Nanos start, Nanos duration) {
  traces::Sync sync;
  switch (i.what) {
    case Do::kRecord:
      event_of_slot_[i.index] = ++events_;
      sync = {SyncKind::kRecord, i.stream, events_};
      break;
    case Do::kWait:
      sync = {SyncKind::kWaitEvent, i.stream, event_of_slot_[i.index]};
      break;
    case Do::kAwaitEvent:
      sync = {SyncKind::kEvent, -1, event_of_slot_[i.index]};
      break;
    default:
      sync = {SyncKind::kDevice, -1, 0};
      break;
  }
  out_.ops.add_sync(i.lane, i.name, start, duration, ++correlation_, sync);
}

void Recorder::begin(const Instruction& i, Nanos at) {
  open_[i.index] = out_.ops.add(OpKind::kAnnotation, i.lane, i.name, at, 0);
}

void Recorder::end(const Instruction& i, Nanos at) {
  out_.ops.duration[open_[i.index]] = at - out_.ops.start[open_[i.index]];
}

void Recorder::call(const Instruction& i, const Place& place, Nanos start, Nanos duration) {
  const CallSpec& spec = *place.spec;
  const traces::Call call{
      .communicator = static_cast<uint32_t>(layout_.communicator(place.rank, spec.group)),
      .sequence = place.sequence,
      .collective = spec.collective,
      .bytes_in = spec.bytes_in,
      .bytes_out = spec.bytes_out,
      .dtype = spec.dtype,
      .reduction = spec.reduction,
      .peer = spec.peer,
      .group = 0};
  out_.ops.add_call(i.stream, i.name, start, duration, correlation_, call);
}

}  // namespace rehearse::synth
