//! `retry` and `cancel`: through the daemon when one runs, else as facts that the next one takes in.

use super::context::Context;
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
                record(&config.state_dir, &[NewFact::of_task(now(), task, fact())])?;
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

/// Through the daemon when one runs, else through the inbox.
pub(super) fn append(state_dir: &Path, facts: &[NewFact]) -> Result<(), Failure> {
    match Client::connect(state_dir) {
        Ok(mut client) => {
            let lines = facts.iter().map(line_of).collect::<Result<_, _>>()?;
            client.request(&Request::AppendFacts { facts: lines })?;
            Ok(())
        }
        Err(ClientError::NoDaemon) => record(state_dir, facts),
        Err(error) => Err(error.into()),
    }
}

/// A fact as the protocol has it: the ledger's line without `seq` and `sum`.
fn line_of(fact: &NewFact) -> Result<serde_json::Value, Failure> {
    let mut value = serde_json::to_value(&fact.body)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("at".to_owned(), serde_json::to_value(fact.at)?);
        if let Some(task) = &fact.task {
            fields.insert("task".to_owned(), task.as_str().into());
        }
        if let Some(run) = &fact.run {
            fields.insert("run".to_owned(), run.as_str().into());
        }
    }
    Ok(value)
}

/// Into the ledger's inbox, durable.
fn record(_state_dir: &Path, _facts: &[NewFact]) -> Result<(), Failure> {
    Err(Failure::failed("the inbox is not in this build"))
}

/// The wall clock, for a fact's label.
pub(super) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    });
    Timestamp::from_millis(millis)
}
