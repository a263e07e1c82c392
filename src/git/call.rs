//! The one way flockd runs git: fixed locale, no prompts, no hooks, no fsmonitor, bounded in time and output.

use super::error::GitError;
use crate::proc::command::{self, CommandOutput, CommandSpec};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// Questions are answered from the object database and, for `status`, from a walk of the tree.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A checkout or the hashing of a large tree; a partial clone may fetch meanwhile.
const WRITE_TIMEOUT: Duration = Duration::from_secs(900);

/// Settings that hold for every call, whatever the user's configuration says.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    // Hooks are for people and agents: a failing or waiting one must not stop flockd's own commands.
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.safecrlf=false",
    // Nothing in the background that outlives the call.
    "gc.auto=0",
    "maintenance.auto=false",
    // A person's git may hold a ref for a moment.
    "core.filesRefLockTimeout=5000",
    "core.packedRefsTimeout=5000",
    // `worktree remove` asks `status`: with "no" here it would delete untracked work.
    "status.showUntrackedFiles=normal",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
    "color.ui=false",
];

/// Variables that would aim git at another repository, index or time: hooks and aliases pass them on.
const REMOVED_VARIABLES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_REFLOG_ACTION",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "GIT_OPTIONAL_LOCKS",
];

/// The git program and what is added to its environment.
#[derive(Debug, Clone)]
pub(super) struct Git {
    program: OsString,
    env: Vec<(OsString, OsString)>,
}

impl Default for Git {
    fn default() -> Self {
        Self::new("git", Vec::new())
    }
}

impl Git {
    /// A git of another name or with more variables; tests isolate themselves this way.
    pub(super) fn new(program: impl Into<OsString>, env: Vec<(OsString, OsString)>) -> Self {
        Self {
            program: program.into(),
            env,
        }
    }

    /// A question: takes no lock, not even to refresh the index.
    pub(super) fn read(&self, cwd: &Path) -> Call {
        self.call(cwd, READ_TIMEOUT)
            .env("GIT_OPTIONAL_LOCKS", OsStr::new("0"))
    }

    /// A change.
    pub(super) fn write(&self, cwd: &Path) -> Call {
        self.call(cwd, WRITE_TIMEOUT)
    }

    fn call(&self, cwd: &Path, timeout: Duration) -> Call {
        let mut spec = CommandSpec::new(self.program.clone());
        spec.cwd = Some(cwd.to_owned());
        spec.timeout = timeout;
        spec.env_remove = REMOVED_VARIABLES.iter().map(Into::into).collect();
        spec.env = self.env.clone();
        for (name, value) in [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")] {
            spec.env.push((name.into(), value.into()));
        }
        let mut call = Call {
            spec,
            shown: String::from("git"),
        };
        for setting in SETTINGS {
            call = call.setting(setting);
        }
        call
    }
}

/// One git command on its way.
#[derive(Debug)]
pub(super) struct Call {
    spec: CommandSpec,
    /// The command as a person would type it, for errors.
    shown: String,
}

impl Call {
    /// A setting for this call only; settings come before arguments.
    pub(super) fn setting(mut self, setting: &str) -> Self {
        self.spec.args.push("-c".into());
        self.spec.args.push(setting.into());
        self
    }

    /// Adds arguments.
    pub(super) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for arg in args {
            self.shown.push(' ');
            self.shown.push_str(&arg.as_ref().to_string_lossy());
            self.spec.args.push(arg.as_ref().to_owned());
        }
        self
    }

    /// Adds one argument that is a path.
    pub(super) fn path(self, path: &Path) -> Self {
        self.args([path])
    }

    /// Adds a variable.
    pub(super) fn env(mut self, name: &str, value: &OsStr) -> Self {
        self.spec.env.push((name.into(), value.to_owned()));
        self
    }

    /// Gives bytes on standard input.
    pub(super) fn stdin(mut self, bytes: &[u8]) -> Self {
        self.spec.stdin = Some(bytes.to_vec());
        self
    }

    /// Keeps at most so many bytes of output.
    pub(super) fn output_max(mut self, bytes: usize) -> Self {
        self.spec.output_bytes_max = bytes;
        self
    }

    fn cwd(&self) -> &Path {
        self.spec.cwd.as_deref().unwrap_or_else(|| Path::new("."))
    }

    /// Runs it; every exit code is an answer.
    pub(super) fn output(&self) -> Result<CommandOutput, GitError> {
        command::run(&self.spec)
            .map_err(|source| GitError::of_command(&self.shown, self.cwd(), source))
    }

    /// The error that an output means.
    pub(super) fn error(&self, output: &CommandOutput) -> GitError {
        GitError::of_output(&self.shown, self.cwd(), output)
    }

    /// The error for output that makes no sense.
    pub(super) fn unreadable(&self, what: impl Into<String>) -> GitError {
        GitError::Unreadable {
            command: self.shown.clone(),
            what: what.into(),
        }
    }

    /// Runs it; answers standard output, whole, of a command that succeeded.
    pub(super) fn run(&self) -> Result<Vec<u8>, GitError> {
        let output = self.output()?;
        if !output.success() {
            return Err(self.error(&output));
        }
        if output.truncated {
            return Err(self.unreadable("it is too long"));
        }
        Ok(output.stdout)
    }

    /// Runs a command that says yes (0) or no (1) with its exit code.
    pub(super) fn ask(&self) -> Result<bool, GitError> {
        let output = self.output()?;
        match output.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(self.error(&output)),
        }
    }
}
