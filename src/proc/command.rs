//! Short commands such as git, run to their end: bounded output, a timeout, a group of their own. Blocking.

use super::signal::{Sent, signal_group};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a pipe may stay open after the command has ended: a left-over background process holds it.
const LEAK_TIME: Duration = Duration::from_millis(500);

/// A command to run.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// Looked up in `PATH`.
    pub program: OsString,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Working directory; none: the caller's.
    pub cwd: Option<PathBuf>,
    /// Variables set on top of the caller's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Variables removed from the caller's environment.
    pub env_remove: Vec<OsString>,
    /// Bytes given on standard input; none: `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// After this the group is killed.
    pub timeout: Duration,
    /// Bytes kept per stream; the rest is read and dropped.
    pub output_bytes_max: usize,
}

impl CommandSpec {
    /// A command without input, one minute, 64 MiB per stream.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: Vec::new(),
            env_remove: Vec::new(),
            stdin: None,
            timeout: Duration::from_secs(60),
            output_bytes_max: 64 << 20,
        }
    }
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit code, when it exited.
    pub code: Option<i32>,
    /// Signal, when one ended it.
    pub signal: Option<i32>,
    /// Standard output, bounded.
    pub stdout: Vec<u8>,
    /// Standard error, bounded.
    pub stderr: Vec<u8>,
    /// Whether a bound cut something off.
    pub truncated: bool,
}

impl CommandOutput {
    /// Exit code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

/// Why a command has no output.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It could not be started.
    #[error("cannot run {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ran longer than it may; its group was killed.
    #[error("{program} did not end within {} s and was stopped", timeout.as_secs())]
    Timeout {
        /// The program.
        program: String,
        /// The bound.
        timeout: Duration,
    },
    /// Its end could not be waited for.
    #[error("cannot wait for {program}: {source}")]
    Wait {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
}

#[derive(Debug, Default)]
struct Captured {
    bytes: Vec<u8>,
    truncated: bool,
}

/// Runs a command to its end and answers what it wrote.
///
/// # Errors
/// [`CommandError`]; a non-zero exit code is not one.
pub fn run(spec: &CommandSpec) -> Result<CommandOutput, CommandError> {
    let program = spec.program.to_string_lossy().into_owned();
    let mut child = start(spec).map_err(|source| CommandError::Start {
        program: program.clone(),
        source,
    })?;
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), spec.stdin.clone()) {
        // EPIPE is the command's choice not to read.
        std::thread::spawn(move || drop(pipe.write_all(&bytes)));
    }
    let stdout = drain(child.stdout.take(), spec.output_bytes_max);
    let stderr = drain(child.stderr.take(), spec.output_bytes_max);
    let ended = wait_bounded(&child, spec.timeout);
    if !ended {
        signal_group(child.id(), Sent::Kill);
    }
    let status = child.wait().map_err(|source| CommandError::Wait {
        program: program.clone(),
        source,
    })?;
    if !ended {
        return Err(CommandError::Timeout {
            program,
            timeout: spec.timeout,
        });
    }
    let (stdout, stderr) = (collect(&stdout), collect(&stderr));
    Ok(CommandOutput {
        code: status.code(),
        signal: status.signal(),
        truncated: stdout.truncated || stderr.truncated,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
    })
}

#[expect(clippy::disallowed_methods, reason = "proc is the module that spawns")]
fn start(spec: &CommandSpec) -> std::io::Result<Child> {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .stdin(if spec.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    command.spawn()
}

/// Whether the child ended in time. Without a handle to wait on, it is waited for without a bound.
fn wait_bounded(child: &Child, timeout: Duration) -> bool {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return true;
    };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match super::reap::wait_readable(&[handle.as_fd()], Some(left)) {
            Ok(ready) if ready.first() == Some(&true) => return true,
            Err(_) => return true,
            Ok(_) if left.is_zero() => return false,
            Ok(_) => {}
        }
    }
}

type Drain = (Arc<Mutex<Captured>>, Receiver<()>);

/// Reads a pipe to its end in a thread of its own; over the bound it goes on reading and drops.
fn drain(pipe: Option<impl Read + Send + 'static>, bytes_max: usize) -> Drain {
    let captured = Arc::new(Mutex::new(Captured::default()));
    let (done, finished) = channel();
    let shared = Arc::clone(&captured);
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut buffer = vec![0_u8; 64 << 10];
            while let Ok(count) = pipe.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                let mut captured = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = bytes_max.saturating_sub(captured.bytes.len()).min(count);
                captured.truncated |= room < count;
                captured.bytes.extend(buffer.iter().take(room));
            }
            let _ = done.send(());
        });
    }
    (captured, finished)
}

fn collect((captured, finished): &Drain) -> Captured {
    // Either the end of the pipe, or the thread's end, or a left-over holder that is not waited for.
    let _ = finished.recv_timeout(LEAK_TIME);
    std::mem::take(&mut *captured.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> CommandSpec {
        CommandSpec {
            args: vec!["-c".into(), script.into()],
            ..CommandSpec::new("sh")
        }
    }

    #[test]
    fn both_pipes_are_drained_and_bounded() {
        let spec = CommandSpec {
            output_bytes_max: 1000,
            ..shell("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3")
        };
        let output = run(&spec).unwrap();
        assert_eq!(
            (output.code, output.stdout.len(), output.stderr.len()),
            (Some(3), 1000, 1000)
        );
        assert!(output.truncated);
    }

    #[test]
    fn a_timeout_kills_the_group() {
        let spec = CommandSpec {
            timeout: Duration::from_millis(100),
            ..shell("sleep 300; true")
        };
        assert!(matches!(run(&spec), Err(CommandError::Timeout { .. })));
    }

    #[test]
    fn stdin_is_given_or_empty() {
        let spec = CommandSpec {
            stdin: Some(b"hello".to_vec()),
            ..CommandSpec::new("cat")
        };
        assert_eq!(run(&spec).unwrap().stdout, b"hello");
        assert_eq!(run(&CommandSpec::new("cat")).unwrap().stdout, b"");
        assert!(matches!(
            run(&CommandSpec::new("no-such-program-of-ours")),
            Err(CommandError::Start { .. })
        ));
    }

    #[test]
    fn fault_45_a_background_process_that_keeps_the_pipe_is_not_waited_for() {
        let started = Instant::now();
        let output = run(&shell("sleep 20 & echo hi")).unwrap();
        assert_eq!(output.stdout, b"hi\n");
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
