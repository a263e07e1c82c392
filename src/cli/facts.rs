//! Facts of commands: through the daemon when one runs, else into the ledger's inbox. Durable either way.

use super::failure::Failure;
use crate::api::{ErrorCode, Reply, Request};
use crate::client::{Client, ClientError};
use crate::ledger::{Inbox, NewFact};
use std::path::{Path, PathBuf};

/// Where a command's facts go. A daemon that leaves while the command runs is replaced by the inbox.
pub(super) enum Sink {
    Daemon(Client, PathBuf),
    Inbox(Inbox),
}

impl Sink {
    pub(super) fn open(state_dir: &Path) -> Result<Self, Failure> {
        match Client::connect(state_dir) {
            Ok(client) => Ok(Self::Daemon(client, state_dir.to_owned())),
            Err(ClientError::NoDaemon) => Ok(Self::Inbox(
                Inbox::create(state_dir).map_err(Failure::failed)?,
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns once the facts are durable.
    pub(super) fn append(&mut self, facts: &[NewFact]) -> Result<(), Failure> {
        if let Self::Daemon(client, state_dir) = self {
            let lines = facts.iter().map(line_of).collect::<Result<_, _>>()?;
            match client.request(&Request::AppendFacts { facts: lines }) {
                Ok(Reply::Appended { .. }) => return Ok(()),
                Ok(other) => {
                    return Err(Failure::failed(format!(
                        "the daemon did not take the facts: {other:?}"
                    )));
                }
                // A daemon that is going down has closed its ledger: the facts are not in it.
                Err(ClientError::Refused { code, message }) if code != ErrorCode::Unavailable => {
                    return Err(ClientError::Refused { code, message }.into());
                }
                Err(_) => *self = Self::Inbox(Inbox::create(state_dir).map_err(Failure::failed)?),
            }
        }
        match self {
            Self::Inbox(inbox) => inbox.append(facts).map_err(Failure::failed),
            Self::Daemon(..) => Ok(()),
        }
    }
}

/// Appends a few facts and forgets where they went.
pub(super) fn append(state_dir: &Path, facts: &[NewFact]) -> Result<(), Failure> {
    Sink::open(state_dir)?.append(facts)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::encode;
    use crate::ledger::FactBody;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's scratch files need no durability"
    )]
    fn p3_facts_that_a_closing_daemon_refuses_go_into_the_inbox() {
        let dir = tempfile::tempdir().unwrap();
        let address = dir.path().join("control.sock");
        let listener = UnixListener::bind(&address).unwrap();
        std::fs::write(dir.path().join("socket"), address.display().to_string()).unwrap();
        let daemon = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            reader.read_line(&mut String::new()).unwrap();
            let reply = Reply::error(ErrorCode::Unavailable, "the ledger is closed");
            reader
                .get_mut()
                .write_all(&encode(&reply).unwrap())
                .unwrap();
        });
        let text = "kept".to_owned();
        let fact = NewFact {
            at: super::super::queue::now(),
            task: None,
            run: None,
            body: FactBody::Warning { text },
        };
        append(dir.path(), &[fact]).unwrap();
        daemon.join().unwrap();
        let inbox = std::fs::read_dir(dir.path().join("ledger/inbox")).unwrap();
        let kept: Vec<String> = inbox
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        assert_eq!(kept.len(), 1);
        assert!(kept[0].contains("kept"), "{kept:?}");
    }
}
