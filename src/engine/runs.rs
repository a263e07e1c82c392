//! The life of a call: its permit, its child, its end, its back-off.

use super::core::{CallRef, Core, Out};
use super::event::{Effect, RunEnd, RunPlan, TimerKey};
use super::flight::{Call, CallState, Flight, StopReason, Worker};
use crate::ledger::FactBody;
use crate::types::{Now, Outcome, RunId, TaskId, Verdict, WaitFor};
use std::time::Duration;

/// First back-off after an infrastructure failure (config §1: 10 s doubling to 5 m, with jitter).
const BACKOFF_FIRST: Duration = Duration::from_secs(10);
/// Longest back-off.
const BACKOFF_MAX: Duration = Duration::from_secs(300);
/// A back-off is lengthened by up to this share of itself, so that a herd spreads.
const BACKOFF_JITTER: f64 = 0.2;

/// The pause before the next attempt after `failures` infrastructure failures.
pub(super) fn backoff(failures: u32, jitter: f64) -> Duration {
    let doubled = BACKOFF_FIRST.saturating_mul(1_u32 << failures.saturating_sub(1).min(16));
    let capped = doubled.min(BACKOFF_MAX);
    capped + capped.mul_f64(BACKOFF_JITTER * jitter.clamp(0.0, 1.0))
}

impl Core {
    fn call_mut(&mut self, run: &RunId) -> Option<(&mut Call, CallRef)> {
        let at = self.runs.get(run)?.clone();
        let call = self
            .flights
            .get_mut(&at.task)?
            .worker_mut(at.worker)?
            .calls
            .get_mut(at.call)?;
        Some((call, at))
    }

    /// Queues a pending call for its permits. The permit comes first, then the durable intent, then
    /// the child: a call that waits has no fact and no process.
    pub(super) fn queue_call(&mut self, task: &TaskId, worker: u32, call_ix: usize, out: &mut Out) {
        let run = self.ids.run_id();
        let at = CallRef {
            task: task.clone(),
            worker,
            call: call_ix,
        };
        self.runs.insert(run.clone(), at);
        if let Some((call, _)) = self.call_mut(&run) {
            call.state = CallState::AwaitingSlot { run: run.clone() };
            call.stop = None;
            out.push(Effect::AcquireSlot {
                run,
                slots: call.slots,
            });
        }
    }

    pub(super) fn on_slot_granted(&mut self, now: Now, run: &RunId, out: &mut Out) {
        let may_start = self.may_start();
        let token = self.ids.token();
        let Some((call, at)) = self.call_mut(run) else {
            out.push(Effect::ForgetSlot { run: run.clone() });
            return;
        };
        if !may_start {
            call.state = CallState::Pending;
            self.runs.remove(run);
            out.push(Effect::ForgetSlot { run: run.clone() });
            return;
        }
        call.state = CallState::Launched {
            run: run.clone(),
            slot_busy: false,
        };
        let Some(plan) = self.run_plan(run, &at, token) else {
            out.push(Effect::ForgetSlot { run: run.clone() });
            return;
        };
        if let Some(worker) = self
            .flights
            .get_mut(&at.task)
            .and_then(|f| f.worker_mut(at.worker))
        {
            worker.last_run = Some(run.clone());
        }
        self.record(
            now,
            out,
            Some(&at.task),
            Some(run),
            FactBody::RunIntended {
                worker: at.worker,
                stage: plan.stage.clone(),
                role: plan.role.clone(),
                attempt: plan.attempt,
                slots: plan.slots,
                token: plan.token.clone(),
            },
        );
        out.push(Effect::Launch(Box::new(plan)));
    }

    fn run_plan(&self, run: &RunId, at: &CallRef, token: String) -> Option<RunPlan> {
        let flight: &Flight = self.flights.get(&at.task)?;
        let worker: &Worker = flight.workers.iter().find(|w| w.no == at.worker)?;
        let call = worker.calls.get(at.call)?;
        let (lease_id, lease_epoch) = flight.lease.clone()?;
        Some(RunPlan {
            run: run.clone(),
            task: flight.spec.clone(),
            worker: at.worker,
            stage: flight.stages.get(worker.stage_ix)?.name.clone(),
            role: call.role.clone(),
            command: call.command.clone(),
            attempt: call.attempt,
            slots: call.slots,
            limits: call.limits.clone(),
            lease_id,
            lease_epoch,
            token,
            worktree: worker.worktree.as_ref()?.path.clone(),
        })
    }

    pub(super) fn on_slot_busy(&mut self, run: &RunId) {
        if let Some((call, _)) = self.call_mut(run)
            && let CallState::Launched { slot_busy, .. } = &mut call.state
        {
            *slot_busy = true;
        }
    }

    pub(super) fn on_run_started(
        &mut self,
        now: Now,
        run: &RunId,
        pid: u32,
        start_ticks: u64,
        slots: Vec<u32>,
        out: &mut Out,
    ) {
        let Some((call, at)) = self.call_mut(run) else {
            return;
        };
        if !matches!(call.state, CallState::Launched { .. }) {
            return;
        }
        call.state = CallState::Running {
            run: run.clone(),
            pid,
            since: now.mono,
        };
        let line = format!(
            "{} {} (worker {}) runs as {pid}",
            at.task, call.role, at.worker
        );
        self.record(
            now,
            out,
            Some(&at.task),
            Some(run),
            FactBody::RunStarted {
                pid,
                start_ticks,
                slots,
            },
        );
        out.push(Effect::Say(line));
    }

    pub(super) fn on_run_exited(&mut self, now: Now, run: &RunId, end: &RunEnd, out: &mut Out) {
        let at = self.runs.remove(run);
        if self.book.is_open(run) {
            let task = at
                .as_ref()
                .map(|a| a.task.clone())
                .or_else(|| self.book.task_of_run(run));
            self.record(now, out, task.as_ref(), Some(run), exit_fact(end));
        }
        out.push(Effect::Settle { run: run.clone() });
        let Some(at) = at else { return };
        let jitter = self.ids.jitter();
        let stopping = !self.may_start();
        let Some(call) = self
            .flights
            .get_mut(&at.task)
            .and_then(|f| f.worker_mut(at.worker))
            .and_then(|w| w.calls.get_mut(at.call))
        else {
            return;
        };
        let line = format!(
            "{} {} (worker {}) {}",
            at.task,
            call.role,
            at.worker,
            spoken(end)
        );
        let next = after_exit(call, end, stopping, now.mono, jitter);
        let waits = match &next {
            CallState::Backoff { until } => Some(*until),
            _ => None,
        };
        call.state = next;
        out.push(Effect::Say(line));
        if let Some(until) = waits {
            let (role, attempt) = (call.role.clone(), call.attempt);
            let detail = format!(
                "{role} {}; attempt {attempt} in {} s",
                end.outcome,
                until.saturating_sub(now.mono).as_secs()
            );
            self.record(
                now,
                out,
                Some(&at.task),
                None,
                FactBody::TaskWaiting {
                    wait_for: WaitFor::Backoff,
                    detail,
                },
            );
            out.push(Effect::SetTimer {
                at: until,
                key: TimerKey::Backoff(at.task.clone(), at.worker, at.call),
            });
        }
        if end.systemic {
            self.end_by_fault(now, end.detail.clone(), out);
        }
    }
}

/// How a run ended, for people: a child that ended well may still have said no.
fn spoken(end: &RunEnd) -> String {
    let outcome = end.outcome;
    match &end.verdict {
        Verdict::Pass => outcome.to_string(),
        Verdict::Fail(reason) if *reason == outcome.to_string() => reason.clone(),
        Verdict::Fail(reason) if outcome == Outcome::Succeeded => format!("says fail: {reason}"),
        Verdict::Blocked(reason) if outcome == Outcome::Succeeded => {
            format!("says blocked: {reason}")
        }
        Verdict::Fail(reason) | Verdict::Blocked(reason) => format!("{outcome}: {reason}"),
    }
}

/// What a call becomes when its child has ended.
fn after_exit(
    call: &mut Call,
    end: &RunEnd,
    stopping: bool,
    now: Duration,
    jitter: f64,
) -> CallState {
    let asked = call.stop.take();
    let cut_short = matches!(
        end.outcome,
        Outcome::Cancelled | Outcome::Killed | Outcome::Lost
    );
    if end.systemic {
        return CallState::Pending;
    }
    match asked {
        Some(StopReason::Held) if cut_short => return CallState::Pending,
        Some(StopReason::BatchDecided) if cut_short => return CallState::Skipped,
        Some(StopReason::TaskCancelled | StopReason::TaskWallClock) => {
            return CallState::Done(end.verdict.clone());
        }
        _ => {}
    }
    if end.outcome.is_infrastructure_failure() || end.outcome == Outcome::Cancelled {
        call.infrastructure_failures += 1;
        if call.infrastructure_failures <= call.limits.retries {
            call.attempt += 1;
            if stopping {
                return CallState::Pending;
            }
            return CallState::Backoff {
                until: now + backoff(call.infrastructure_failures, jitter),
            };
        }
    }
    CallState::Done(end.verdict.clone())
}

fn exit_fact(end: &RunEnd) -> FactBody {
    FactBody::RunExited {
        outcome: end.outcome,
        exit_code: end.exit_code,
        signal: end.signal,
        verdict: end.verdict.clone(),
        detail: end.detail.clone(),
        started_at: end.started_at,
        ended_at: end.ended_at,
        duration_ms: end.duration_ms,
        user_ms: end.user_ms,
        system_ms: end.system_ms,
        max_rss_kib: end.max_rss_kib,
        stdout_bytes: end.stdout_bytes,
        stderr_bytes: end.stderr_bytes,
        truncated: end.truncated,
        stragglers_killed: end.stragglers_killed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_five_minutes_with_jitter() {
        let seconds = |n| backoff(n, 0.0).as_secs();
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 60].map(seconds),
            [10, 20, 40, 80, 160, 300, 300]
        );
        assert_eq!(backoff(1, 1.0), Duration::from_secs(12));
    }
}
