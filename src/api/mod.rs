//! The control protocol's plain data: requests, replies and reports. Knows nothing of sockets,
//! files or how an answer is found.
//!
//! One JSON object per line, both ways. A client sends one [`Request`] and reads one [`Reply`];
//! after [`Request::Follow`] replies keep coming until either side closes. A connection may carry
//! any number of requests, one after another.

mod line;
mod report;
mod request;

pub use line::{LINE_BYTES_MAX, LineError, decode, encode};
pub use report::{
    DaemonReport, LoopReport, QuotaReport, RunReport, SettingsReport, SlotsReport, StatusReport,
    TaskCounts, TaskRow, TaskStatus, WaitReport, WhyReport,
};
pub use request::{ErrorCode, PROTOCOL_VERSION, Reply, Request};
