-- SPDX-License-Identifier: Apache-2.0
-- Mixed requests for wrk: the page, its parts, catalogues, jobs, previews, and what is refused on purpose.
local preview = '{"scenario": "ddp-16", "edits": [{"fault": "F16:node=1"}]}'
local json = {["Content-Type"] = "application/json"}
local requests = {
  function() return wrk.format("GET", "/") end,
  function() return wrk.format("GET", "/assets/app.js") end,
  function() return wrk.format("GET", "/api/v1") end,
  function() return wrk.format("GET", "/api/v1/faults") end,
  function() return wrk.format("GET", "/api/v1/platforms") end,
  function() return wrk.format("GET", "/api/v1/platforms/dgx-a100?nodes=2") end,
  function() return wrk.format("GET", "/api/v1/jobs?limit=20") end,
  function() return wrk.format("GET", "/api/v1/jobs/1") end,
  function() return wrk.format("GET", "/api/v1/jobs/1/result") end,
  function() return wrk.format("GET", "/metrics") end,
  function() return wrk.format("POST", "/api/v1/preview", json, preview) end,
}
local at = 0
function request()
  at = at % #requests + 1
  return requests[at]()
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests": %d, "connect": %d, "read": %d, "write": %d, "timeout": %d, "status": %d, "p50_us": %d, "p99_us": %d}\n',
    summary.requests, e.connect, e.read, e.write, e.timeout, e.status, latency:percentile(50), latency:percentile(99)))
end
