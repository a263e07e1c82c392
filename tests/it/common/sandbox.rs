//! A git repository of its own in a temporary folder, for tests that run the real program.

use super::{fake_agent, flockd, repository};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A repository with one commit, isolated from the user's git and flockd settings.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    /// Makes the repository with `README` committed.
    pub(crate) fn new() -> Self {
        let sandbox = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(sandbox.root()).unwrap();
        fs::create_dir(sandbox.folder.path().join("home")).unwrap();
        fs::create_dir(sandbox.folder.path().join("run")).unwrap();
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox.write("README", "a sandbox\n");
        sandbox.write(".gitignore", "/.flockd/\n");
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-q", "-m", "Begin"]);
        sandbox
    }

    /// The repository's root.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// The state directory that the default configuration means.
    pub(crate) fn state(&self) -> PathBuf {
        self.root().join(".flockd")
    }

    /// Writes a file of the repository, folders included.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file of the repository; empty when it is missing.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_default()
    }

    /// Writes a task file; `header` is TOML.
    pub(crate) fn task(&self, id: &str, header: &str, body: &str) {
        self.write(
            &format!("tasks/{id}.md"),
            &format!("+++\n{header}\n+++\n{body}\n"),
        );
    }

    /// A `flockd.toml` with one stage of one role that runs the fake agent with the prompt's script.
    pub(crate) fn configure_fake_agent(&self, extra: &str) {
        self.write(
            "flockd.toml",
            &format!(
                "{extra}\n[agents.fake]\nkind = \"command\"\ncommand = [{:?}, \"prompt\"]\n\n\
                 [roles.writer]\nagent = \"fake\"\n\n[[stages]]\nname = \"write\"\nroles = [\"writer\"]\n",
                fake_agent()
            ),
        );
    }

    /// Runs git in the repository; panics when it fails.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self
            .command(Path::new("git"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The program with its arguments, not started.
    pub(crate) fn flockd_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(flockd());
        command.args(arguments);
        command
    }

    /// Runs the program to its end.
    pub(crate) fn flockd(&self, arguments: &[&str]) -> Output {
        self.flockd_command(arguments).output().unwrap()
    }

    /// A command in the repository that sees nothing of the user's own settings.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path().join("home"));
        command.env("XDG_RUNTIME_DIR", self.folder.path().join("run"));
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Sandbox");
            command.env(format!("GIT_{who}_EMAIL"), "sandbox@example.org");
        }
        command.stdin(std::process::Stdio::null());
        command
    }
}

/// This repository's files as they are now, committed in a temporary repository.
pub(crate) fn copy_of_repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let copy = "git -C \"$0\" ls-files -z -co --exclude-standard | \
                (cd \"$0\" && xargs -0 tar -cf - --ignore-failed-read) | tar -xf - && git init -q . && \
                git add -A && git -c user.name=A -c user.email=a@example.org commit -qm begin";
    let mut command = Command::new("sh");
    command
        .args(["-euc", copy])
        .arg(repository())
        .current_dir(folder.path());
    assert!(command.status().unwrap().success());
    folder
}
