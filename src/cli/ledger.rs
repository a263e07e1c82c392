//! `ledger`: prints, follows, verifies and exports the facts. Reads without a lock; a line that is not
//! whole yet is not there yet.

use super::context::Context;
use super::failure::{Failure, Outcome};
use super::output;
use crate::client::{Client, ClientError};
use crate::fsx::watch::{Watch, WatchMask};
use crate::proc::wait_readable;
use clap::{Args, Subcommand};
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often new facts are looked for although no notice came: a network file system gives none.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct LedgerArgs {
    /// Go on with new facts as they become durable
    #[arg(long)]
    follow: bool,
    /// Only facts after this sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    since: u64,
    #[command(subcommand)]
    command: Option<LedgerCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Check every line and the chain of sums
    Verify,
    /// Print the view and all facts as one JSON document
    Export,
}

/// Prints, verifies or exports.
pub(super) fn ledger(context: &Context, args: &LedgerArgs) -> Outcome {
    let state_dir = context.state_dir();
    match &args.command {
        Some(LedgerCommand::Verify) => verify(context, &state_dir),
        Some(LedgerCommand::Export) => export(&state_dir),
        None if args.follow => follow(&state_dir, args.since),
        None => {
            let mut out = output::stdout();
            Reader::new(&state_dir, args.since).copy(&mut out)?;
            Ok(0)
        }
    }
}

/// Follows by the daemon when one runs, so that nothing is shown before it is durable; else by the files.
fn follow(state_dir: &Path, since: u64) -> Outcome {
    let mut out = output::stdout();
    let client = match Client::connect(state_dir) {
        Ok(client) => client,
        Err(ClientError::NoDaemon) => return follow_files(state_dir, since, &mut out),
        Err(error) => return Err(error.into()),
    };
    for fact in client.follow(since)? {
        serde_json::to_writer(&mut out, &fact?)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(0)
}

fn follow_files(state_dir: &Path, since: u64, out: &mut impl Write) -> Outcome {
    let folder = state_dir.join("ledger");
    if !folder.is_dir() {
        return Err(Failure::invalid(
            "there is no ledger yet: `flockd start` makes one",
        ));
    }
    let mut watch = Watch::new()?;
    watch.add(&folder, WatchMask::WRITES)?;
    let mut reader = Reader::new(state_dir, since);
    loop {
        reader.copy(out)?;
        wait_readable(&[watch.as_fd()], Some(LOOK_AGAIN))?;
        watch.read()?;
    }
}

fn verify(context: &Context, state_dir: &Path) -> Outcome {
    let found = crate::ledger::verify(state_dir).map_err(Failure::failed)?;
    let tail = if found.torn_tail {
        "; the last line is unfinished, as it may be while a loop runs or after a crash"
    } else {
        ""
    };
    if context.json {
        output::json(&serde_json::json!({
            "facts": found.facts,
            "segments": found.segments,
            "last_seq": found.last_seq,
            "torn_tail": found.torn_tail,
        }))?;
    } else {
        output::line(&format!(
            "{} facts in {} segments, the chain of checksums is whole{tail}",
            found.facts, found.segments
        ))?;
    }
    Ok(0)
}

/// One JSON document, written as it is read: the size of a ledger has no bound.
fn export(state_dir: &Path) -> Outcome {
    let mut out = output::stdout();
    let view = super::offline::read_view(state_dir);
    out.write_all(b"{\"view\":")?;
    serde_json::to_writer(&mut out, &view)?;
    out.write_all(b",\"facts\":[")?;
    let mut first = true;
    Reader::new(state_dir, 0).each(|line| {
        // A line that is no JSON would spoil the document; `verify` is what reports it.
        let Ok(fact) = serde_json::from_str::<&RawValue>(line) else {
            return Ok(());
        };
        out.write_all(if first { b"\n" } else { b",\n" })?;
        first = false;
        out.write_all(fact.get().as_bytes())
    })?;
    out.write_all(b"\n]}\n")?;
    out.flush()?;
    Ok(0)
}

/// Whole lines of the segments, in order; goes on where it stopped.
struct Reader {
    folder: PathBuf,
    since: u64,
    /// The segment read last and the offset behind its last whole line.
    at: Option<(PathBuf, u64)>,
}

impl Reader {
    fn new(state_dir: &Path, since: u64) -> Self {
        Self {
            folder: state_dir.join("ledger"),
            since,
            at: None,
        }
    }

    fn copy(&mut self, out: &mut impl Write) -> Result<(), Failure> {
        self.each(|line| out.write_all(line.as_bytes()))?;
        out.flush()?;
        Ok(())
    }

    /// Calls with every new whole line, its line end included.
    fn each(
        &mut self,
        mut use_line: impl FnMut(&str) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        for segment in self.segments()? {
            let offset = match &self.at {
                Some((at, offset)) if *at == segment => *offset,
                Some((at, _)) if *at > segment => continue,
                _ => 0,
            };
            let mut reader = BufReader::with_capacity(64 << 10, File::open(&segment)?);
            reader.seek(SeekFrom::Start(offset))?;
            let mut offset = offset;
            let mut line = String::new();
            loop {
                line.clear();
                let count = reader.read_line(&mut line)?;
                if !line.ends_with('\n') {
                    break;
                }
                offset += u64::try_from(count).unwrap_or_default();
                if sequence(&line).is_none_or(|seq| seq > self.since) {
                    use_line(&line)?;
                }
            }
            self.at = Some((segment, offset));
        }
        Ok(())
    }

    /// The segments, without those that end before `since`.
    fn segments(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut segments: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "jsonl")
            })
            .collect();
        segments.sort();
        let starts_late = |path: &PathBuf| first_sequence(path).is_none_or(|seq| seq > self.since);
        let skip = segments
            .partition_point(|path| !starts_late(path))
            .saturating_sub(1);
        Ok(segments.split_off(skip.min(segments.len())))
    }
}

fn first_sequence(segment: &Path) -> Option<u64> {
    let mut line = String::new();
    BufReader::new(File::open(segment).ok()?)
        .read_line(&mut line)
        .ok()?;
    sequence(&line)
}

/// The number of a line `{"seq":N,…`.
fn sequence(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("{\"seq\":")?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "a test's scratch files need no durability"
    )]
    fn segment(state: &Path, name: &str, lines: &str) {
        std::fs::create_dir_all(state.join("ledger")).unwrap();
        std::fs::write(state.join("ledger").join(name), lines).unwrap();
    }

    fn read(reader: &mut Reader) -> String {
        let mut out = Vec::new();
        reader.copy(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn whole_lines_come_once_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path();
        assert_eq!(read(&mut Reader::new(state, 0)), "");
        segment(
            state,
            "00000001.jsonl",
            "{\"seq\":1,\"a\":1}\n{\"seq\":2}\n",
        );
        segment(
            state,
            "00000002.jsonl",
            "{\"seq\":3}\n{\"seq\":4}\n{\"seq\":5,\"to",
        );
        let mut reader = Reader::new(state, 1);
        assert_eq!(read(&mut reader), "{\"seq\":2}\n{\"seq\":3}\n{\"seq\":4}\n");
        assert_eq!(read(&mut reader), "");
        segment(
            state,
            "00000002.jsonl",
            "{\"seq\":3}\n{\"seq\":4}\n{\"seq\":5,\"torn\":0}\n",
        );
        segment(state, "00000003.jsonl", "{\"seq\":6}\n");
        assert_eq!(read(&mut reader), "{\"seq\":5,\"torn\":0}\n{\"seq\":6}\n");
        assert_eq!(read(&mut Reader::new(state, 5)), "{\"seq\":6}\n");
        assert_eq!(Reader::new(state, 5).segments().unwrap().len(), 2);
    }
}
