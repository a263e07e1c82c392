//! From a plan to a run folder and a request to a runner, and from a runner's report to an event.

use super::clock::wall;
use super::input::Input;
use crate::agent::{
    AgentPlan, RunIdentity, Stdin, child_env, plan_role, plan_shell, render, verdict_of,
};
use crate::config::{Config, LimitsConfig};
use crate::engine::{Event, RunEnd, RunPlan};
use crate::fsx::FsError;
use crate::runner::{ExitReport, Pool, RunInput, RunLimits, RunSpec, StopHow, run_dir};
use crate::types::{Outcome, RunId, Verdict, mask_secrets};
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// How much of the end of stdout is read for the verdict.
const TAIL_BYTES: u64 = 8 << 10;

/// Writes run folders and hands runs to runners.
pub(super) struct Launcher {
    config: Arc<Config>,
    pool: Arc<Pool>,
    inputs: mpsc::UnboundedSender<Input>,
    /// Runs on their way to a runner, and whether they are to stop when they get there.
    on_the_way: Mutex<HashMap<RunId, bool>>,
}

/// Why a run did not reach a runner.
#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error("run folder: {0}")]
    Folder(#[from] FsError),
    #[error("role {0:?} is not configured any more")]
    Role(String),
    #[error("agent {0:?} is not configured")]
    Agent(String),
    #[error("prompt template {path}: {detail}")]
    Prompt { path: String, detail: String },
}

impl LaunchError {
    fn is_systemic(&self) -> bool {
        matches!(self, Self::Folder(error) if error.is_no_space() || error.is_read_only())
    }
}

impl Launcher {
    pub(super) fn new(
        config: Arc<Config>,
        pool: Arc<Pool>,
        inputs: mpsc::UnboundedSender<Input>,
    ) -> Self {
        Self {
            config,
            pool,
            inputs,
            on_the_way: Mutex::default(),
        }
    }

    /// Starts a run whose intent is durable. A failure is the run's end.
    pub(super) fn launch(self: &Arc<Self>, plan: RunPlan) {
        let (this, run) = (Arc::clone(self), plan.run.clone());
        self.way().insert(run.clone(), false);
        tokio::spawn(async move {
            let failed = match this.prepare(plan) {
                Ok(spec) => match this.pool.launch(spec).await {
                    Ok(()) => None,
                    Err(error) => Some(failed_to_start(error.to_string(), false)),
                },
                Err(error) => Some(failed_to_start(error.to_string(), error.is_systemic())),
            };
            let stop = this.way().remove(&run).unwrap_or(false);
            match failed {
                Some(end) => {
                    drop(this.inputs.send(Input::Event(Event::RunExited {
                        run,
                        end: Box::new(end),
                    })));
                }
                None if stop => drop(this.pool.stop(&run, StopHow::Kill)),
                None => {}
            }
        });
    }

    /// Stops a run that no runner has yet, as soon as one has it.
    pub(super) fn cancel(&self, run: &RunId) {
        if let Some(stop) = self.way().get_mut(run) {
            *stop = true;
        }
    }

    fn way(&self) -> MutexGuard<'_, HashMap<RunId, bool>> {
        self.on_the_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn prepare(&self, plan: RunPlan) -> Result<RunSpec, LaunchError> {
        let folder = run_dir(&self.config.state_dir, &plan.run);
        crate::fsx::create_dir_all(&folder)?;
        let agent = self.agent_plan(&plan)?;
        if agent.stdin == Stdin::Prompt {
            let prompt = self.prompt(&plan)?;
            crate::fsx::replace_cached(&folder.join("prompt"), prompt.as_bytes())?;
        }
        let identity = RunIdentity {
            run: &plan.run,
            task: &plan.task,
            stage: &plan.stage,
            role: &plan.role,
            worker: plan.worker,
            attempt: plan.attempt,
            state_dir: &self.config.state_dir,
            token: &plan.token,
        };
        let env = child_env(&identity, &agent.env_names, &|name| {
            std::env::var(name).ok()
        });
        let spec = RunSpec {
            run_id: plan.run.clone(),
            task_id: Some(plan.task.id.clone()),
            worker: plan.worker,
            stage: plan.stage.clone(),
            role: plan.role.clone(),
            attempt: plan.attempt,
            argv: agent.argv,
            cwd: plan.worktree.clone(),
            env,
            input: if agent.stdin == Stdin::Prompt {
                RunInput::Prompt
            } else {
                RunInput::Null
            },
            limits: run_limits(&plan.limits),
            slots: plan.slots,
            ceiling: self.config.loop_.global_concurrency,
            lease_id: Some(plan.lease_id.clone()),
            lease_epoch: Some(plan.lease_epoch),
            token: plan.token.clone(),
            created_at: wall(),
        };
        crate::fsx::replace_cached(&folder.join("spec.json"), spec.spec_json().as_bytes())?;
        Ok(spec)
    }

    fn agent_plan(&self, plan: &RunPlan) -> Result<AgentPlan, LaunchError> {
        if let Some(command) = &plan.command {
            return Ok(plan_shell(command));
        }
        let role = self
            .config
            .roles
            .get(&plan.role)
            .ok_or_else(|| LaunchError::Role(plan.role.clone()))?;
        let name = plan.task.agent.as_ref().unwrap_or(&role.agent);
        let agent = self
            .config
            .agents
            .get(name)
            .ok_or_else(|| LaunchError::Agent(name.clone()))?;
        Ok(plan_role(agent))
    }

    fn prompt(&self, plan: &RunPlan) -> Result<String, LaunchError> {
        let Some(path) = self
            .config
            .roles
            .get(&plan.role)
            .and_then(|r| r.prompt.as_ref())
        else {
            return Ok(plan.task.body.clone());
        };
        let error = |detail: String| LaunchError::Prompt {
            path: path.display().to_string(),
            detail,
        };
        let template = std::fs::read_to_string(path).map_err(|e| error(e.to_string()))?;
        render(&template, &plan.task, &plan.stage, plan.worker).map_err(|e| error(e.to_string()))
    }
}

fn run_limits(limits: &LimitsConfig) -> RunLimits {
    let millis = |d: std::time::Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    RunLimits {
        deadline_ms: millis(limits.deadline),
        idle_ms: millis(limits.idle),
        grace_ms: millis(limits.grace),
        output_max: limits.output_max,
        output_stop: limits.output_stop,
    }
}

/// A run that ended before it had a process.
pub(super) fn failed_to_start(detail: String, systemic: bool) -> RunEnd {
    ended_without_report(Outcome::SpawnFailed, detail, systemic)
}

/// A run whose runner is gone without a report; its tree was swept.
pub(super) fn lost(detail: String) -> RunEnd {
    ended_without_report(Outcome::Lost, detail, false)
}

fn ended_without_report(outcome: Outcome, detail: String, systemic: bool) -> RunEnd {
    RunEnd {
        outcome,
        exit_code: None,
        signal: None,
        verdict: Verdict::Fail(detail.clone()),
        detail,
        started_at: wall(),
        ended_at: wall(),
        duration_ms: 0,
        user_ms: 0,
        system_ms: 0,
        max_rss_kib: 0,
        stdout_bytes: 0,
        stderr_bytes: 0,
        truncated: false,
        stragglers_killed: 0,
        systemic,
    }
}

/// What a runner reported, with the verdict that the role's output gives.
pub(super) fn run_end(state_dir: &Path, report: ExitReport) -> RunEnd {
    let tail =
        read_tail(&run_dir(state_dir, &report.run_id).join("stdout.log")).unwrap_or_default();
    RunEnd {
        verdict: verdict_of(report.outcome, report.exit_code, &report.detail, &tail),
        outcome: report.outcome,
        exit_code: report.exit_code,
        signal: report.signal,
        systemic: report.outcome == Outcome::SpawnFailed && disk_is_full(state_dir),
        detail: mask_secrets(&report.detail),
        started_at: report.started_at,
        ended_at: report.ended_at,
        duration_ms: report.duration_ms,
        user_ms: report.user_ms,
        system_ms: report.system_ms,
        max_rss_kib: report.max_rss_kib,
        stdout_bytes: report.stdout_bytes,
        stderr_bytes: report.stderr_bytes,
        truncated: report.truncated,
        stragglers_killed: report.stragglers_killed,
    }
}

/// A runner that could not open its output files on a full disk is not the task's fault.
fn disk_is_full(state_dir: &Path) -> bool {
    crate::fsx::free_bytes(state_dir).is_ok_and(|free| free == 0)
}

fn read_tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}
