//! A loop of the real program over a sandbox: started, looked at, ended, and never left behind.

use super::processes::{alive, kill_9, runners, signal};
use super::{Sandbox, eventually};
use flockd::types::RunId;
use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// A running `flockd start`. What is left of it is killed when the test lets go of it.
pub(crate) struct Looping {
    child: Child,
    state: PathBuf,
    log: PathBuf,
    sweeps: bool,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// Standard output, then standard error.
    pub(crate) said: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let said = [output.stdout, output.stderr].concat();
        Self {
            code: output.status.code(),
            said: String::from_utf8_lossy(&said).into_owned(),
        }
    }
}

impl Looping {
    /// Starts the loop with these arguments after `start`.
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.flockd_command(&["start"]);
        command.args(arguments);
        Self::spawn(sandbox, command)
    }

    /// Starts the loop by a command of the caller's.
    pub(crate) fn spawn(sandbox: &Sandbox, mut command: Command) -> Self {
        let log = sandbox.gate(&format!("start-{}.log", sandbox.starts()));
        let file = File::create(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Self {
            child: command.spawn().unwrap(),
            state: sandbox.state(),
            log,
            sweeps: true,
        }
    }

    /// The daemon's process id.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits until this daemon answers clients.
    #[track_caller]
    pub(crate) fn is_up(&self, sandbox: &Sandbox) {
        eventually("the daemon answers", || {
            (sandbox.status()?["daemon"]["pid"] == self.pid()).then_some(())
        });
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, number: nix::sys::signal::Signal) {
        signal(self.pid(), number);
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Ended {
        let status = eventually(&format!("the loop ends; see {:?}", self.log), || {
            let status = self.child.try_wait().unwrap();
            if status.is_none() && std::env::var_os("FLOCKD_TEST_SHOW").is_some() {
                eprintln!("{}", self.said());
            }
            status
        });
        Ended {
            code: status.code(),
            said: self.said(),
        }
    }

    /// Waits for its end and leaves what else runs on its state directory alone.
    #[track_caller]
    pub(crate) fn ended_alone(mut self) -> Ended {
        let ended = self.ended();
        self.sweeps = false;
        ended
    }

    /// `kill -9` of the daemon alone.
    pub(crate) fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Looping {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("{} says:\n{}", self.log.display(), self.said());
        }
        if !self.sweeps {
            return;
        }
        for pid in runners(&self.state) {
            kill_9(pid);
        }
        for pid in alive(&self.state).into_values().flatten() {
            kill_9(pid);
        }
    }
}

impl Sandbox {
    /// A `flockd.toml` with one stage of one role that runs the prompt as a shell script.
    pub(crate) fn configure_shell(&self, extra: &str) {
        self.write(
            "flockd.toml",
            &format!(
                "{extra}\n[agents.shell]\nkind = \"command\"\ncommand = [\"sh\", \"-e\"]\n\n\
                 [roles.writer]\nagent = \"shell\"\n\n[[stages]]\nname = \"write\"\nroles = [\"writer\"]\n"
            ),
        );
    }

    /// How many loops were started here so far.
    fn starts(&self) -> usize {
        (0..)
            .find(|n| !self.gate(&format!("start-{n}.log")).exists())
            .unwrap()
    }

    /// A file outside of the repository, for agents that wait for it.
    pub(crate) fn gate(&self, name: &str) -> PathBuf {
        self.root().parent().unwrap().join(name)
    }

    /// Makes that file.
    pub(crate) fn open_gate(&self, name: &str) {
        fs::write(self.gate(name), "").unwrap();
    }

    /// A shell line that waits until the gate is open.
    pub(crate) fn until_open(&self, name: &str) -> String {
        let (agent, gate) = (super::fake_agent().display(), self.gate(name));
        format!("{agent} hold-until {}", gate.display())
    }

    /// All durable facts, as JSON, oldest first.
    pub(crate) fn facts(&self) -> Vec<Value> {
        let facts = flockd::ledger::read_facts(&self.state(), 0);
        facts.map(|fact| fact.unwrap().to_json()).collect()
    }

    /// The facts of one kind.
    pub(crate) fn facts_of(&self, kind: &str) -> Vec<Value> {
        let mut facts = self.facts();
        facts.retain(|fact| fact["kind"] == kind);
        facts
    }

    /// The tasks that facts of this kind name, sorted, each as often as it is named.
    pub(crate) fn tasks_of(&self, kind: &str) -> Vec<String> {
        let facts = self.facts_of(kind);
        let mut tasks: Vec<String> = facts.iter().map(|fact| text(&fact["task"])).collect();
        tasks.sort();
        tasks
    }

    /// The answer of a command that prints JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.flockd(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.flockd(arguments).into()
    }

    /// Waits until that many runs have a child, and gives the processes' ids by run.
    #[track_caller]
    pub(crate) fn running(&self, count: usize) -> Vec<(RunId, i32)> {
        eventually(&format!("{count} runs are alive"), || {
            let status = self.status()?;
            let runs = status["runs"].as_array()?;
            let pids: Vec<(RunId, i32)> = runs
                .iter()
                .filter(|run| run["state"] == "running")
                .filter_map(|run| {
                    let pid = i32::try_from(run["pid"].as_i64()?).ok()?;
                    Some((RunId::new(run["run_id"].as_str()?).unwrap(), pid))
                })
                .collect();
            (pids.len() == count).then_some(pids)
        })
    }

    fn status(&self) -> Option<Value> {
        let output = self.flockd(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits until `flockd why` says that the task waits for this.
    #[track_caller]
    pub(crate) fn waits_for(&self, task: &str, wait_for: &str) -> Value {
        eventually(&format!("{task} waits for {wait_for}"), || {
            let output = self.flockd(&["why", task, "--json"]);
            let why: Value = serde_json::from_slice(&output.stdout).ok()?;
            (why["waits_for"] == wait_for).then_some(why)
        })
    }

    /// A command of the program in the background, without a terminal; its output is kept for the end.
    pub(crate) fn beside(&self, arguments: &[&str]) -> Child {
        let mut command = self.flockd_command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Every line of the ledger and its chain are whole.
    #[track_caller]
    pub(crate) fn verify(&self) {
        let verified = self.run(&["ledger", "verify"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }

    /// Each run that was intended has one end, and no run has two.
    #[track_caller]
    pub(crate) fn every_run_ended_once(&self) {
        let runs = |kind| {
            let facts = self.facts_of(kind);
            let mut runs: Vec<String> = facts.iter().map(|fact| text(&fact["run"])).collect();
            runs.sort();
            runs
        };
        assert_eq!(runs("run_intended"), runs("run_exited"));
    }
}

/// A JSON text's content.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
