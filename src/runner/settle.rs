//! The end of a run: report, `exit.json`, and the slots that stay locked until the end is durable.

use super::active::{Active, Mono, Slots};
use super::exit::{ExitReport, outcome_of};
use super::protocol::Message;
use super::run::{Phase, StopReason};
use crate::fsx::{self, FsError};
use crate::proc::children_usage;
use crate::types::{Outcome, format_size};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// How long a connected daemon may take to make the end durable before the runner does it itself.
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Between two tries to write the end on a full disk. The slots stay locked meanwhile.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// An end on its way to being durable.
#[derive(Debug)]
pub(super) struct Settle {
    pub(super) report: ExitReport,
    written: bool,
    alone: bool,
    try_at: Option<Mono>,
    done: bool,
}

impl Settle {
    /// When to try to make it durable ourselves.
    pub(super) fn due(&self) -> Option<Mono> {
        self.try_at.filter(|_| !self.done)
    }

    /// Whether it is durable somewhere and the slots are free.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }
}

impl Active {
    /// Nothing of the run lives: measures, writes `exit.json`, reports. The slots stay locked.
    pub(super) fn finish(&mut self, now: Mono) {
        let report = self.make_report(now);
        let written =
            fsx::replace_cached(&self.dir.join("exit.json"), report.exit_json().as_bytes());
        self.messages.push(Message::Exited {
            report: report.clone(),
        });
        self.outputs = None;
        self.act_at = None;
        self.settle = Some(Settle {
            report,
            written: written.is_ok(),
            alone: false,
            try_at: Some(now + SETTLE_TIME),
            done: false,
        });
    }

    fn make_report(&mut self, now: Mono) -> ExitReport {
        let reason = match self.phase {
            Phase::Ended(reason) => reason,
            _ => None,
        };
        let outcome = outcome_of(reason, self.status);
        let mut report = ExitReport::without_child(
            &self.spec.run_id,
            outcome,
            super::active::wall_now(),
            self.detail_of(outcome, reason),
        );
        if self.child.is_none() {
            return report;
        }
        let used = children_usage();
        let before = self.usage_before;
        report.started_at = self.started.0;
        report.duration_ms = millis(now.saturating_sub(self.started.1));
        report.user_ms = used.user_ms.saturating_sub(before.user_ms);
        report.system_ms = used.system_ms.saturating_sub(before.system_ms);
        // The kernel keeps one maximum for all children ever: exact when this run raised it.
        report.max_rss_kib = if used.max_rss_kib > before.max_rss_kib {
            used.max_rss_kib
        } else {
            self.peak_rss_kib
        };
        match self.status {
            Some(crate::proc::ExitStatus::Code(code)) => report.exit_code = Some(code),
            Some(crate::proc::ExitStatus::Signal(signal)) => report.signal = Some(signal),
            None => {}
        }
        report.stragglers_killed = self.tree_end.stragglers_killed();
        if let Some([stdout, stderr]) = &self.outputs {
            let max = self.spec.limits.output_max;
            let cut = [cut_output(stdout, max), cut_output(stderr, max)];
            let [(stdout_bytes, stdout_cut), (stderr_bytes, stderr_cut)] = cut;
            report.stdout_bytes = stdout_bytes;
            report.stderr_bytes = stderr_bytes;
            report.truncated = stdout_cut || stderr_cut;
        }
        report
    }

    fn detail_of(&self, outcome: Outcome, reason: Option<StopReason>) -> String {
        if !self.detail.is_empty() {
            return self.detail.clone();
        }
        let limits = &self.spec.limits;
        match (reason, outcome) {
            (Some(StopReason::TimedOut), _) => {
                format!("stopped at its deadline of {} ms", limits.deadline_ms)
            }
            (Some(StopReason::Idle), _) => {
                format!(
                    "stopped after {} ms without output and CPU time",
                    limits.idle_ms
                )
            }
            (Some(StopReason::OutputLimit), _) => {
                format!(
                    "stopped because it wrote more than {}",
                    format_size(limits.output_stop)
                )
            }
            _ => String::new(),
        }
    }

    /// The daemon made the end durable, so the slots may go.
    pub(super) fn settled(&mut self) {
        if self.settle.is_some() {
            self.free();
        }
    }

    /// Nobody is there to make the end durable: it is ours to do, now (and again after a failure).
    pub(super) fn settle_alone(&mut self, now: Mono) {
        let Some(settle) = self.settle.as_mut().filter(|settle| !settle.alone) else {
            return;
        };
        settle.alone = true;
        settle.try_at = Some(now);
        self.settle_on_time(now);
    }

    pub(super) fn settle_on_time(&mut self, now: Mono) {
        let Some(settle) = self.settle.as_mut().filter(|settle| !settle.done) else {
            return;
        };
        if settle.try_at.is_none_or(|at| at > now) {
            return;
        }
        match make_durable(&self.dir, settle) {
            Ok(()) => self.free(),
            // The folder was removed by somebody: there is no reader left to write for.
            Err(_) if !self.dir.is_dir() => self.free(),
            Err(error) => {
                tracing::warn!(run = %self.spec.run_id, %error, "the end is not durable yet");
                settle.try_at = Some(now + WRITE_AGAIN);
            }
        }
    }

    fn free(&mut self) {
        match std::mem::replace(&mut self.slots, Slots::None) {
            Slots::Taken(guard) => guard.clear(),
            Slots::Waiting(_) | Slots::None => {}
        }
        self.lease = None;
        if let Some(settle) = &mut self.settle {
            settle.done = true;
        }
    }
}

fn make_durable(dir: &Path, settle: &mut Settle) -> Result<(), FsError> {
    let path = dir.join("exit.json");
    if !settle.written {
        fsx::replace_durable(&path, settle.report.exit_json().as_bytes())?;
        settle.written = true;
    } else {
        fsx::sync_file(&path)?;
        fsx::sync_dir(dir)?;
    }
    // The folder itself was made for this run and may not be on the disk yet.
    dir.parent().map_or(Ok(()), fsx::sync_dir)
}

/// Counts what was written and cuts what is beyond `max`, with one line that says so.
fn cut_output(file: &File, max: u64) -> (u64, bool) {
    let written = file.metadata().map_or(0, |meta| meta.len());
    if written <= max {
        return (written, false);
    }
    // All writers are gone, so nothing is appended between the cut and the marker.
    if fsx::truncate(file, max).is_ok() {
        let mut file = file;
        let marker = format!(
            "\n[flockd: cut at {}, {written} bytes were written]\n",
            format_size(max)
        );
        let _ = file.write_all(marker.as_bytes());
    }
    (written, true)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
