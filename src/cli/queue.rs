//! `retry` and `cancel`: through the daemon when one runs, else as facts that the next one takes in.

use super::context::Context;
use super::facts::append;
use super::failure::{Failure, Outcome};
use super::offline::Snapshot;
use super::output;
use crate::api::{Reply, Request, TaskStatus};
use crate::client::{Client, ClientError};
use crate::config::TaskSpec;
use crate::ledger::{FactBody, NewFact};
use crate::types::{TaskId, Timestamp};
use clap::Args;
use std::path::Path;

#[derive(Debug, Args)]
pub(super) struct QueueArgs {
    /// The task's id
    #[arg(required = true)]
    tasks: Vec<TaskId>,
}

/// Puts tasks back.
pub(super) fn retry(context: &Context, args: &QueueArgs) -> Outcome {
    each(
        context,
        args,
        |task| Request::Retry { task: task.clone() },
        || FactBody::TaskRetried {},
    )
}

/// Takes tasks out.
pub(super) fn cancel(context: &Context, args: &QueueArgs) -> Outcome {
    let reason = || FactBody::TaskCancelled {
        reason: "by command".to_owned(),
    };
    each(
        context,
        args,
        |task| Request::Cancel { task: task.clone() },
        reason,
    )
}

fn each(
    context: &Context,
    args: &QueueArgs,
    request: impl Fn(&TaskId) -> Request,
    fact: impl Fn() -> FactBody,
) -> Outcome {
    let config = context.config()?;
    for task in &args.tasks {
        let message = match Client::connect(&config.state_dir) {
            Ok(mut client) => match client.request(&request(task))? {
                Reply::Done { message } => message,
                other => return Err(Failure::failed(format!("unexpected answer {other:?}"))),
            },
            Err(ClientError::NoDaemon) => {
                let known = Snapshot::read(&config)?.why(task);
                if known.is_none_or(|report| report.state == TaskStatus::Unknown) {
                    return Err(Failure::invalid(format!(
                        "no task {task}: `flockd list` shows all"
                    )));
                }
                append(&config.state_dir, &[NewFact::of_task(now(), task, fact())])?;
                format!("{task}: recorded; the next loop takes it in")
            }
            Err(error) => return Err(error.into()),
        };
        if context.json {
            output::json(&serde_json::json!({"task_id": task, "message": message}))?;
        } else {
            output::line(&message)?;
        }
    }
    Ok(0)
}

/// Tells the ledger of new tasks. The task files are what counts, so a failure is only said.
pub(super) fn record_added<'t>(state_dir: &Path, tasks: impl Iterator<Item = &'t TaskSpec>) {
    let at = now();
    let facts: Vec<NewFact> = tasks
        .map(|task| {
            NewFact::of_task(
                at,
                &task.id,
                FactBody::TaskAdded {
                    title: task.title.clone(),
                },
            )
        })
        .collect();
    if let Err(failure) = append(state_dir, &facts) {
        output::say(format!(
            "warning: the tasks are added, the ledger was not told: {}",
            failure.message
        ));
    }
}

/// The wall clock, for a fact's label.
pub(super) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    });
    Timestamp::from_millis(millis)
}
