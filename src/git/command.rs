//! The one builder of git commands: locale, configuration and environment are pinned here.

use super::error::GitError;
use crate::proc::command::{CommandOutput, CommandSpec, run};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// For questions and small changes.
const SHORT: Duration = Duration::from_secs(120);

/// For commands that write or read a whole tree.
pub(super) const LONG: Duration = Duration::from_secs(30 * 60);

/// A patch beyond this is not kept as a file; the commit has it.
pub(super) const OUTPUT_BYTES_MAX: usize = 256 << 20;

/// Settings of the user's that would change what is parsed, run a program, or work in the background.
const PINNED: [&str; 9] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "submodule.recurse=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
    "core.safecrlf=false",
];

/// Variables of a hook or a shell that would send a command to another repository.
const REMOVED: [&str; 12] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_LITERAL_PATHSPECS",
];

/// A git command in a folder.
#[derive(Debug)]
pub(super) struct Git {
    spec: CommandSpec,
    words: Vec<String>,
}

impl Git {
    /// A command that only looks: it takes no optional lock.
    pub(super) fn read(dir: &Path, args: &[&str]) -> Self {
        let mut git = Self::new(dir, args);
        git.spec.env.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
        git
    }

    /// A command that changes something.
    pub(super) fn write(dir: &Path, args: &[&str]) -> Self {
        Self::new(dir, args)
    }

    fn new(dir: &Path, args: &[&str]) -> Self {
        let mut spec = CommandSpec {
            cwd: Some(dir.to_owned()),
            timeout: SHORT,
            output_bytes_max: OUTPUT_BYTES_MAX,
            env_remove: REMOVED.iter().map(OsString::from).collect(),
            ..CommandSpec::new("git")
        };
        for (name, value) in [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_EDITOR", "true"),
        ] {
            spec.env.push((name.into(), value.into()));
        }
        for setting in PINNED {
            spec.args.extend(["-c".into(), setting.into()]);
        }
        let git = Self {
            spec,
            words: Vec::new(),
        };
        args.iter().fold(git, |git, arg| git.arg(arg))
    }

    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().to_string_lossy().into_owned());
        self.spec.args.push(arg.as_ref().to_owned());
        self
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.spec.env.push((name.into(), value.into()));
        self
    }

    pub(super) fn stdin(mut self, text: &str) -> Self {
        self.spec.stdin = Some(text.as_bytes().to_vec());
        self
    }

    pub(super) fn long(mut self) -> Self {
        self.spec.timeout = LONG;
        self
    }

    /// Runs it; any exit code is an answer.
    pub(super) fn answer(&self) -> Result<CommandOutput, GitError> {
        let output = run(&self.spec)?;
        if !output.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            if stderr.contains("No space left on device") || stderr.contains("Disk quota exceeded")
            {
                return Err(GitError::NoSpace {
                    command: self.words.join(" "),
                });
            }
        }
        Ok(output)
    }

    /// Runs it; a non-zero exit code is an error.
    pub(super) fn output(&self) -> Result<CommandOutput, GitError> {
        let output = self.answer()?;
        if output.success() {
            return Ok(output);
        }
        Err(self.failed(&output))
    }

    /// The answer's one line.
    pub(super) fn line(&self) -> Result<String, GitError> {
        Ok(one_line(&self.output()?.stdout))
    }

    /// The answer's one line, or none when git says no.
    pub(super) fn line_if(&self) -> Result<Option<String>, GitError> {
        let output = self.answer()?;
        Ok(output.success().then(|| one_line(&output.stdout)))
    }

    /// Exit code 0 is yes, 1 is no, all else is an error.
    pub(super) fn yes(&self) -> Result<bool, GitError> {
        let output = self.answer()?;
        match output.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(self.failed(&output)),
        }
    }

    pub(super) fn failed(&self, output: &CommandOutput) -> GitError {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        GitError::Failed {
            command: self.words.join(" "),
            stderr: if stderr.is_empty() {
                format!("exit code {:?}, signal {:?}", output.code, output.signal)
            } else {
                stderr
            },
        }
    }
}

fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}
