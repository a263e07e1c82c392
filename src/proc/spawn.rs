//! The one place that starts processes: posix_spawn, never fork. Knows nothing of agents or ceilings.

use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{AccessFlags, access};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `POSIX_SPAWN_SETSID` of glibc and musl, which nix does not name.
const SPAWN_SETSID: i32 = 0x80;

/// A program that was just written may still be open for writing in a sibling's spawn for a moment.
const TEXT_BUSY_RETRIES: u32 = 20;
const TEXT_BUSY_PAUSE: Duration = Duration::from_millis(3);

/// Where a child searches its program when its environment names no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// What kind of obstacle a spawn met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnErrorKind {
    /// No such program, or its interpreter is missing.
    NotFound,
    /// The file is there but may not be executed.
    NotExecutable,
    /// Neither a binary of this machine nor a script with `#!`.
    NoExec,
    /// Still open for writing after several tries.
    TextBusy,
    /// The machine has no process or memory to give right now; worth another try.
    Again,
    /// No descriptor left right now; worth another try.
    FdLimit,
    /// The working directory is missing or not a directory.
    CwdMissing,
    /// Arguments or environment do not fit.
    TooBig,
    /// Anything else.
    Other,
}

/// Why a program could not be started.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SpawnError {
    /// What kind of obstacle.
    pub kind: SpawnErrorKind,
    /// One fragment for people; names the file.
    pub message: String,
}

impl SpawnError {
    fn new(kind: SpawnErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Whether the same spawn may succeed a little later without anybody doing anything.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.kind, SpawnErrorKind::Again | SpawnErrorKind::FdLimit)
    }
}

/// Where the child stands among sessions and process groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Leader of a session (and group) of its own, without a controlling terminal.
    OwnSession,
    /// In the caller's group, with the caller's terminal.
    Inherit,
}

/// Which signal dispositions the child starts with. Its mask is always empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispositions {
    /// Default for all.
    Default,
    /// As the caller inherited them (`nohup` goes through); only SIGPIPE is put back to default.
    Inherit,
}

/// The child's three descriptors.
#[derive(Debug)]
pub enum ChildFiles<'a> {
    /// The caller's own.
    Inherit,
    /// These.
    Given {
        /// Standard input.
        stdin: &'a File,
        /// Standard output.
        stdout: &'a File,
        /// Standard error.
        stderr: &'a File,
    },
}

/// A child to start.
#[derive(Debug)]
pub struct ChildSpec<'a> {
    /// Program and arguments; the program is looked up in the environment's `PATH` unless it has a `/`.
    pub argv: &'a [OsString],
    /// The complete environment.
    pub env: &'a [(OsString, OsString)],
    /// Working directory; none: the caller's. The caller changes to it and then to `/`, so only a
    /// single-threaded process may give one.
    pub cwd: Option<&'a Path>,
    /// Its descriptors.
    pub files: ChildFiles<'a>,
    /// Its session.
    pub placement: Placement,
    /// Its signals.
    pub dispositions: Dispositions,
}

/// Starts a child and answers its pid. The caller must wait for it.
///
/// # Errors
/// [`SpawnError`], with the file's name in it. A passing shortage is answered at once: the caller has
/// the timer to try again with.
pub fn spawn_child(spec: &ChildSpec<'_>) -> Result<u32, SpawnError> {
    let Some(cwd) = spec.cwd else {
        return spawn_here(spec);
    };
    if let Err(error) = std::env::set_current_dir(cwd) {
        let message = format!(
            "working directory {} cannot be entered: {error}",
            cwd.display()
        );
        return Err(SpawnError::new(SpawnErrorKind::CwdMissing, message));
    }
    let spawned = spawn_here(spec);
    // A process that keeps a removed directory as its own could not resolve anything any more.
    let _ = std::env::set_current_dir("/");
    spawned
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the place that the ban sends people to"
)]
fn spawn_here(spec: &ChildSpec<'_>) -> Result<u32, SpawnError> {
    let program = spec
        .argv
        .first()
        .filter(|program| !program.is_empty())
        .ok_or_else(|| SpawnError::new(SpawnErrorKind::NotFound, "no program was given"))?;
    let path = find_program(program, spec.env)?;
    let argv = spec
        .argv
        .iter()
        .map(|arg| c_string(arg))
        .collect::<Result<Vec<_>, _>>()?;
    let env = spec
        .env
        .iter()
        .map(|(name, value)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            c_string(&entry)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let attributes = attributes(spec).map_err(|errno| from_errno(errno, &path))?;
    let actions = file_actions(&spec.files).map_err(|errno| from_errno(errno, &path))?;
    let mut tries = 0;
    loop {
        match posix_spawn(path.as_path(), &actions, &attributes, &argv, &env) {
            Ok(pid) => return Ok(pid.as_raw().unsigned_abs()),
            Err(Errno::ETXTBSY) if tries < TEXT_BUSY_RETRIES => {
                tries += 1;
                std::thread::sleep(TEXT_BUSY_PAUSE);
            }
            Err(errno) => return Err(from_errno(errno, &path)),
        }
    }
}

fn c_string(text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| {
        SpawnError::new(
            SpawnErrorKind::Other,
            "an argument or variable contains a NUL byte",
        )
    })
}

fn attributes(spec: &ChildSpec<'_>) -> Result<PosixSpawnAttr, Errno> {
    let mut attributes = PosixSpawnAttr::init()?;
    let mut flags =
        PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF;
    if spec.placement == Placement::OwnSession {
        flags |= PosixSpawnFlags::from_bits_retain(SPAWN_SETSID);
    }
    attributes.set_sigmask(&SigSet::empty())?;
    let mut reset = SigSet::empty();
    match spec.dispositions {
        Dispositions::Default => {
            reset = SigSet::all();
            reset.remove(Signal::SIGKILL);
            reset.remove(Signal::SIGSTOP);
        }
        // Rust's runtime ignores SIGPIPE in this process; a child must not inherit that.
        Dispositions::Inherit => reset.add(Signal::SIGPIPE),
    }
    attributes.set_sigdefault(&reset)?;
    attributes.set_flags(flags)?;
    Ok(attributes)
}

fn file_actions(files: &ChildFiles<'_>) -> Result<PosixSpawnFileActions, Errno> {
    let mut actions = PosixSpawnFileActions::init()?;
    if let ChildFiles::Given {
        stdin,
        stdout,
        stderr,
    } = files
    {
        actions.add_dup2(stdin.as_raw_fd(), 0)?;
        actions.add_dup2(stdout.as_raw_fd(), 1)?;
        actions.add_dup2(stderr.as_raw_fd(), 2)?;
    }
    Ok(actions)
}

/// Finds the program as `execvp` would, so that an error can name the file.
fn find_program(program: &OsStr, env: &[(OsString, OsString)]) -> Result<PathBuf, SpawnError> {
    if program.as_bytes().contains(&b'/') {
        return check_program(PathBuf::from(program));
    }
    let path = env
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map_or(OsStr::new(PATH_DEFAULT), |(_, value)| value.as_os_str());
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        match check_program(folder.join(program)) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind == SpawnErrorKind::NotExecutable => {
                refused.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        let message = format!(
            "program {} is not in PATH: install it, or name it with its path",
            program.to_string_lossy()
        );
        SpawnError::new(SpawnErrorKind::NotFound, message)
    }))
}

fn check_program(path: PathBuf) -> Result<PathBuf, SpawnError> {
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(from_errno(Errno::EACCES, &path))
        }
        Err(_) => Err(from_errno(Errno::ENOENT, &path)),
        Ok(metadata) if !metadata.is_file() => Err(from_errno(Errno::EACCES, &path)),
        Ok(_) if access(&path, AccessFlags::X_OK).is_err() => Err(from_errno(Errno::EACCES, &path)),
        Ok(_) => Ok(path),
    }
}

fn from_errno(errno: Errno, path: &Path) -> SpawnError {
    let name = path.display();
    let (kind, message) = match errno {
        Errno::ENOENT if path.exists() => (
            SpawnErrorKind::NotFound,
            format!("the interpreter that {name} names does not exist"),
        ),
        Errno::ENOENT | Errno::ENOTDIR => (
            SpawnErrorKind::NotFound,
            format!("program {name} does not exist"),
        ),
        Errno::EACCES | Errno::EPERM => (
            SpawnErrorKind::NotExecutable,
            format!("program {name} may not be executed: check its mode"),
        ),
        Errno::ENOEXEC => (
            SpawnErrorKind::NoExec,
            format!("program {name} is neither a binary of this machine nor a script with #!"),
        ),
        Errno::ETXTBSY => (
            SpawnErrorKind::TextBusy,
            format!("program {name} is still being written"),
        ),
        Errno::EAGAIN | Errno::ENOMEM => (
            SpawnErrorKind::Again,
            format!("the machine has no process or memory left for {name}: {errno}"),
        ),
        Errno::EMFILE | Errno::ENFILE => (
            SpawnErrorKind::FdLimit,
            format!("no file descriptor left to start {name}: {errno}"),
        ),
        Errno::E2BIG => (
            SpawnErrorKind::TooBig,
            format!("arguments and environment of {name} are too long: pass the text by a file"),
        ),
        _ => (
            SpawnErrorKind::Other,
            format!("program {name} cannot be started: {errno}"),
        ),
    };
    SpawnError::new(kind, message)
}
