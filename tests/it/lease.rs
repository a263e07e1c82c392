//! Claims of real processes: they race, they die, and the paths are never claimed twice.

use crate::common::{Sandbox, eventually};
use flockd::lease::{ClaimRequest, Clock, Holder, LeaseManager, SystemClock, read_leases};
use flockd::types::{ClaimSet, TaskId};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const STATE: &str = "FLOCKD_TEST_LEASE_STATE";
const TASK: &str = "FLOCKD_TEST_LEASE_TASK";
const PATHS: &str = "FLOCKD_TEST_LEASE_PATHS";

fn request(task: &str, paths: &str) -> ClaimRequest {
    ClaimRequest {
        task: TaskId::new(task).unwrap(),
        paths: ClaimSet::parse(paths.split(' ')).unwrap(),
        holder: Holder::this_process(
            "host",
            &SystemClock.boot_id(),
            std::process::id(),
            SystemClock.wall(),
        ),
        run_ids: Vec::new(),
        ttl: None,
    }
}

/// What a process of this test does: waits for a line, claims, says how it went, and holds on until
/// its standard input ends.
///
/// Without the variables, which only the other tests set, it does nothing.
#[test]
fn process_that_claims() {
    let Ok(state) = std::env::var(STATE) else {
        return;
    };
    let var = |name| std::env::var(name).unwrap();
    let manager = LeaseManager::open(Path::new(&state)).unwrap();
    let mut stdin = std::io::stdin().lock();
    stdin.read_line(&mut String::new()).unwrap();
    let claimed = manager.claim_disjoint(&request(&var(TASK), &var(PATHS)));
    let word = match &claimed {
        Ok(_) => "won".to_owned(),
        Err(error) if error.is_conflict() => "lost".to_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("{word}");
    stdin.read_to_end(&mut Vec::new()).unwrap();
}

struct Claimer {
    child: Child,
    stdin: Option<ChildStdin>,
    said: BufReader<std::process::ChildStderr>,
}

impl Claimer {
    fn start(state: &Path, task: &str, paths: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "lease::process_that_claims"])
            .env(STATE, state)
            .env(TASK, task)
            .env(PATHS, paths)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            said: BufReader::new(child.stderr.take().unwrap()),
            child,
        }
    }

    fn go(&mut self) {
        self.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn word(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Claimer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn behaviour_093_of_ten_processes_exactly_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let overlapping = [
        "src/lib.rs",
        "src/",
        "src/*.rs",
        "src/**",
        ".",
        "SRC/lib.rs",
    ];
    let mut claimers: Vec<Claimer> = (0..10)
        .map(|n| {
            Claimer::start(
                folder.path(),
                &format!("T-{n}"),
                overlapping[n % overlapping.len()],
            )
        })
        .collect();
    for claimer in &mut claimers {
        claimer.go();
    }
    let words: Vec<String> = claimers.iter_mut().map(Claimer::word).collect();
    assert_eq!(
        words.iter().filter(|word| *word == "won").count(),
        1,
        "{words:?}"
    );
    assert_eq!(
        words.iter().filter(|word| *word == "lost").count(),
        9,
        "{words:?}"
    );
    let winner = words.iter().position(|word| word == "won").unwrap();
    let read = read_leases(folder.path());
    assert_eq!(read.problem, None);
    assert_eq!(read.leases.len(), 1);
    assert_eq!(read.leases[0].task_id.as_str(), format!("T-{winner}"));
}

#[test]
fn fault_19_the_paths_of_a_killed_process_are_free_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let manager = LeaseManager::open(folder.path()).unwrap();
    let mut claimer = Claimer::start(folder.path(), "T-1", "src/");
    claimer.go();
    assert_eq!(claimer.word(), "won");
    let wanted = request("T-2", "src/a.rs");
    assert!(manager.claim_disjoint(&wanted).unwrap_err().is_conflict());
    claimer.child.kill().unwrap();
    claimer.child.wait().unwrap();
    let started = Instant::now();
    let claimed = manager.claim_disjoint(&wanted).unwrap();
    // 50 ms on an idle machine; the bound leaves room for a busy one, and none for a TTL.
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(claimed.reclaimed[0].task_id.as_str(), "T-1");
}

#[test]
fn fault_13_disjoint_claims_of_many_processes_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut claimers: Vec<Claimer> = (0..8)
        .map(|n| {
            Claimer::start(
                folder.path(),
                &format!("T-{n}"),
                &format!("folder-{n}/ file-{n}"),
            )
        })
        .collect();
    for claimer in &mut claimers {
        claimer.go();
    }
    assert!(claimers.iter_mut().all(|claimer| claimer.word() == "won"));
    assert_eq!(read_leases(folder.path()).leases.len(), 8);
}

/// Kills a process at a random point of its claim, many times: the file is always whole, and nothing
/// of the dead is in the way.
#[test]
fn p3_a_claimer_killed_anywhere_leaves_a_whole_file_and_free_paths() {
    let folder = tempfile::tempdir().unwrap();
    let manager = LeaseManager::open(folder.path()).unwrap();
    let standing = manager
        .claim_disjoint(&request("T-standing", "standing/"))
        .unwrap();
    for n in 0_u64..20 {
        let mut claimer = Claimer::start(folder.path(), "T-victim", "src/");
        claimer.go();
        std::thread::sleep(Duration::from_micros(n * 700));
        claimer.child.kill().unwrap();
        claimer.child.wait().unwrap();
        assert_eq!(read_leases(folder.path()).problem, None);
        let claimed = manager
            .claim_disjoint(&request(&format!("T-{n}"), "src/"))
            .unwrap();
        manager
            .release(&claimed.lease.lease_id, claimed.lease.epoch)
            .unwrap();
    }
    manager.reclaim_dead().unwrap();
    let left = manager.list();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].record, standing.lease);
}

#[test]
fn p5_the_command_refuses_overlapping_claims_of_other_tasks() {
    let sandbox = Sandbox::new();
    let exits: Vec<Option<i32>> = {
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let (sandbox, start) = (&sandbox, &start);
                    scope.spawn(move || {
                        start.wait();
                        let task = format!("T-{n}");
                        let output = sandbox.flockd(&[
                            "lease", "claim", "--task", &task, "--ttl", "10m", "src/*.rs",
                        ]);
                        output.status.code()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        })
    };
    assert_eq!(
        exits.iter().filter(|code| **code == Some(0)).count(),
        1,
        "{exits:?}"
    );
    assert_eq!(
        exits.iter().filter(|code| **code == Some(4)).count(),
        3,
        "{exits:?}"
    );
    let read = read_leases(&sandbox.state());
    assert_eq!((read.leases.len(), read.problem), (1, None));
    let id = read.leases[0].lease_id.to_string();
    assert!(sandbox.flockd(&["lease", "release", &id]).status.success());
    assert!(
        sandbox.flockd(&["lease", "release", &id]).status.success(),
        "twice is fine"
    );
    eventually("the list is empty", || {
        read_leases(&sandbox.state())
            .leases
            .is_empty()
            .then_some(())
    });
}
