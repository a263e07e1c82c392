//! Tests of the claim section. Threads with opens of their own exclude each other as processes do;
//! real processes race in `tests/it/lease.rs`.

use super::record::{LeasesFile, file_bytes};
use super::section::{leases_path, lock_path, parse};
use super::*;
use crate::fsx::lock::Lock;
use crate::types::{ClaimSet, LeaseId, RunId, TaskId, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

const BOOT: &str = "boot-1";

#[derive(Debug)]
struct FakeClock {
    boot_ms: AtomicU64,
    boot_id: &'static str,
}

impl FakeClock {
    fn new(boot_id: &'static str) -> Arc<Self> {
        Arc::new(Self {
            boot_ms: AtomicU64::new(1_000),
            boot_id,
        })
    }

    fn pass(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap();
        self.boot_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn boot_id(&self) -> String {
        self.boot_id.to_owned()
    }
    fn boot_millis(&self) -> u64 {
        self.boot_ms.load(Ordering::SeqCst)
    }
    fn wall(&self) -> Timestamp {
        let ms = i64::try_from(self.boot_millis()).unwrap();
        Timestamp::from_millis(1_767_225_600_000 + ms)
    }
}

struct State {
    folder: tempfile::TempDir,
    clock: Arc<FakeClock>,
}

impl State {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: FakeClock::new(BOOT),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn open(&self) -> LeaseManager {
        LeaseManager::open_with_clock(self.path(), self.clock.clone()).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(leases_path(self.path())).unwrap_or_default()
    }

    fn live_files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.path().join("leases"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "live"))
            .collect()
    }

    fn put(&self, bytes: &[u8]) {
        crate::fsx::replace_cached(&leases_path(self.path()), bytes).unwrap();
    }
}

fn holder(pid: u32) -> Holder {
    Holder {
        boot_id: BOOT.to_owned(),
        host: "host".to_owned(),
        pid,
        started_at: Timestamp::from_millis(1_767_225_600_000),
    }
}

fn request(task: &str, paths: &[&str]) -> ClaimRequest {
    ClaimRequest {
        task: TaskId::new(task).unwrap(),
        paths: ClaimSet::parse(paths).unwrap(),
        holder: holder(1),
        run_ids: Vec::new(),
        ttl: None,
    }
}

fn with_ttl(task: &str, paths: &[&str], seconds: u64) -> ClaimRequest {
    ClaimRequest {
        ttl: Some(Duration::from_secs(seconds)),
        ..request(task, paths)
    }
}

fn tasks(manager: &LeaseManager) -> Vec<String> {
    let views = manager.list();
    views
        .iter()
        .map(|view| view.record.task_id.to_string())
        .collect()
}

#[test]
fn behaviour_015_a_single_claim_writes_exactly_these_bytes() {
    let state = State::new();
    let claimed = state
        .open()
        .claim_disjoint(&ClaimRequest {
            run_ids: vec![RunId::new("r-1").unwrap()],
            ..with_ttl("T-1", &["src/b.rs", "src/a/"], 60)
        })
        .unwrap();
    let id = &claimed.lease.lease_id;
    let expected = format!(
        r#"{{
  "generated_at": "2026-01-01T00:00:01Z",
  "leases": [
    {{
      "acquired_at": "2026-01-01T00:00:01Z",
      "epoch": 1,
      "expires_at": "2026-01-01T00:01:01Z",
      "expires_boot_ms": 61000,
      "holder": {{
        "boot_id": "boot-1",
        "host": "host",
        "pid": 1,
        "started_at": "2026-01-01T00:00:00Z"
      }},
      "lease_id": "{id}",
      "mode": "write",
      "paths": [
        "src/b.rs",
        "src/a/"
      ],
      "run_ids": [
        "r-1"
      ],
      "status": "active",
      "task_id": "T-1"
    }}
  ],
  "next_epoch": 2,
  "schema_version": 1
}}
"#
    );
    assert_eq!(String::from_utf8(state.bytes()).unwrap(), expected);
    // The same bytes as a plain serialisation with sorted keys.
    let value: serde_json::Value = serde_json::from_str(&expected).unwrap();
    assert_eq!(
        format!("{}\n", serde_json::to_string_pretty(&value).unwrap()),
        expected
    );
    let empty = String::from_utf8(file_bytes(Timestamp::default(), 1, std::iter::empty())).unwrap();
    let value: serde_json::Value = serde_json::from_str(&empty).unwrap();
    assert_eq!(
        format!("{}\n", serde_json::to_string_pretty(&value).unwrap()),
        empty
    );
}

#[test]
fn behaviour_016_the_lock_is_a_stable_sidecar() {
    use std::os::unix::fs::MetadataExt;
    let state = State::new();
    let manager = state.open();
    let inode = |path: PathBuf| std::fs::metadata(path).unwrap().ino();
    let _first = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    let (lock, data) = (
        inode(lock_path(state.path())),
        inode(leases_path(state.path())),
    );
    let keep_open = std::fs::File::open(leases_path(state.path())).unwrap();
    let _second = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    assert_eq!(inode(lock_path(state.path())), lock);
    assert_ne!(
        inode(leases_path(state.path())),
        data,
        "the data file is replaced"
    );
    drop(keep_open);
}

#[test]
fn behaviour_017_concurrent_disjoint_claims_all_land() {
    let state = State::new();
    let start = Barrier::new(16);
    let held: Vec<Claimed> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|n| {
                let (state, start) = (&state, &start);
                scope.spawn(move || {
                    let manager = state.open();
                    start.wait();
                    let paths = [format!("folder-{n}/")];
                    let request = ClaimRequest {
                        paths: ClaimSet::parse(&paths).unwrap(),
                        ..request(&format!("T-{n}"), &[])
                    };
                    manager.claim_disjoint(&request).unwrap()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut epochs: Vec<u64> = held.iter().map(|claimed| claimed.lease.epoch).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, (1..=16).collect::<Vec<u64>>());
    assert_eq!(state.open().list().len(), 16);
    let stray: Vec<_> = std::fs::read_dir(state.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| {
            !["leases", "leases.json", "leases.json.lock"].contains(&name.to_str().unwrap())
        })
        .collect();
    assert_eq!(stray, Vec::<std::ffi::OsString>::new(), "no temp files");
}

#[test]
fn behaviour_018_without_the_lock_an_update_is_lost() {
    let state = State::new();
    // Two writers that both read before either writes: what the section makes impossible.
    let read = || match crate::fsx::read(&leases_path(state.path())).unwrap() {
        Some(bytes) => serde_json::from_slice::<LeasesFile>(&bytes).unwrap().leases,
        None => Vec::new(),
    };
    let (first, second) = (read(), read());
    for (mut leases, task) in [(first, "T-1"), (second, "T-2")] {
        let mut record = sample();
        record.task_id = TaskId::new(task).unwrap();
        leases.push(record);
        let texts: Vec<String> = leases
            .iter()
            .map(|r| super::record::record_text(r).unwrap())
            .collect();
        state.put(&file_bytes(
            Timestamp::default(),
            9,
            texts.iter().map(String::as_str),
        ));
    }
    assert_eq!(
        tasks(&state.open()),
        ["T-2"],
        "the negative control must lose T-1"
    );
}

fn sample() -> LeaseRecord {
    LeaseRecord {
        acquired_at: Timestamp::default(),
        epoch: 1,
        expires_at: None,
        expires_boot_ms: None,
        holder: holder(1),
        lease_id: LeaseId::new("L1").unwrap(),
        mode: LeaseMode::Write,
        paths: ClaimSet::parse(["a"]).unwrap(),
        run_ids: Vec::new(),
        status: LeaseStatus::Active,
        task_id: TaskId::new("T-1").unwrap(),
    }
}

fn put_records(state: &State, records: &[LeaseRecord]) {
    let texts: Vec<String> = records
        .iter()
        .map(|r| super::record::record_text(r).unwrap())
        .collect();
    state.put(&file_bytes(
        Timestamp::default(),
        9,
        texts.iter().map(String::as_str),
    ));
}

#[test]
fn behaviour_019_one_claimer_at_a_time_is_in_the_section() {
    let state = State::new();
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let manager = state.open();
                for _ in 0..10 {
                    manager
                        .mark_recovering(&|_| unreachable!("no lease is there"))
                        .unwrap();
                    let _lock = Lock::exclusive(&lock_path(state.path())).unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
}

#[test]
fn behaviour_020_a_dead_lease_in_the_way_goes_a_living_one_stays() {
    let state = State::new();
    let manager = state.open();
    let dead = manager
        .claim_disjoint(&request("T-1", &["src/a.rs"]))
        .unwrap();
    let alive = manager
        .claim_disjoint(&request("T-2", &["src/b.rs"]))
        .unwrap();
    drop(dead.held);
    let claimed = manager
        .claim_disjoint(&request("T-3", &["src/a.rs"]))
        .unwrap();
    assert_eq!(claimed.reclaimed, [dead.lease]);
    assert!(matches!(
        manager.claim_disjoint(&request("T-4", &["src/"])),
        Err(LeaseError::Conflict { task, .. }) if task == alive.lease.task_id || task == claimed.lease.task_id
    ));
    assert_eq!(tasks(&manager), ["T-2", "T-3"]);
    assert_eq!(state.live_files().len(), 2);
}

#[test]
fn behaviour_021_claims_and_releases_at_once_never_overlap() {
    let state = State::new();
    let holders = AtomicUsize::new(0);
    let won = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (state, holders, won) = (&state, &holders, &won);
            scope.spawn(move || {
                let manager = state.open();
                for _ in 0..50 {
                    assert_eq!(
                        read_leases(state.path()).problem,
                        None,
                        "the file always parses"
                    );
                    let request = ClaimRequest {
                        holder: holder(n),
                        ..request(&format!("T-{n}"), &["shared/file"])
                    };
                    let Ok(claimed) = manager.claim_disjoint(&request) else {
                        continue;
                    };
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    won.fetch_add(1, Ordering::SeqCst);
                    holders.fetch_sub(1, Ordering::SeqCst);
                    let id = claimed.lease.lease_id.clone();
                    assert!(matches!(
                        manager.release(&id, claimed.lease.epoch),
                        Ok(Released::Now(_))
                    ));
                }
            });
        }
    });
    assert!(won.into_inner() >= 4);
    assert_eq!(state.open().list(), []);
    assert_eq!(state.live_files(), Vec::<PathBuf>::new());
}

#[test]
fn behaviour_023_the_loser_changes_no_byte() {
    let state = State::new();
    let manager = state.open();
    let dead = manager.claim_disjoint(&request("T-0", &["docs/"])).unwrap();
    drop(dead.held);
    let _held = manager.claim_disjoint(&request("T-1", &["src/"])).unwrap();
    let before = (state.bytes(), state.live_files().len());
    state.clock.pass(Duration::from_secs(5));
    let error = manager
        .claim_disjoint(&request("T-2", &["docs/", "src/lib.rs"]))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        error.is_conflict() && text.contains("src/lib.rs overlaps src/, which task T-1 holds"),
        "{text}"
    );
    assert_eq!((state.bytes(), state.live_files().len()), before);
}

#[test]
fn behaviour_024_a_claim_beside_others_lands() {
    let state = State::new();
    let manager = state.open();
    let _held = manager.claim_disjoint(&request("T-1", &["src/"])).unwrap();
    let claimed = manager
        .claim_disjoint(&request("T-2", &["tests/"]))
        .unwrap();
    assert_eq!((claimed.replaced, claimed.reclaimed.len()), (None, 0));
    assert_eq!(tasks(&manager), ["T-1", "T-2"]);
}

#[test]
fn behaviour_025_of_two_racing_claims_exactly_one_lands() {
    for _ in 0..20 {
        let state = State::new();
        let start = Barrier::new(2);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = ["T-1", "T-2"]
                .into_iter()
                .map(|task| {
                    let (state, start) = (&state, &start);
                    scope.spawn(move || {
                        let manager = state.open();
                        start.wait();
                        manager.claim_disjoint(&request(task, &["a/*.rs"]))
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert!(
            answers
                .iter()
                .flat_map(|answer| answer.as_ref().err())
                .all(LeaseError::is_conflict)
        );
        assert_eq!(state.open().list().len(), 1);
    }
}

#[test]
fn behaviour_028_a_change_touches_only_its_own_lease() {
    let state = State::new();
    let manager = state.open();
    let first = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    let second = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    let new_owner = holder(77);
    let hold = manager
        .adopt(&second.lease.lease_id, second.lease.epoch, &new_owner)
        .unwrap();
    assert_eq!(hold.lease_id(), &second.lease.lease_id);
    let views = manager.list();
    assert_eq!(views[0].record, first.lease);
    assert_eq!(views[1].record.holder, new_owner);
    manager
        .release(&second.lease.lease_id, second.lease.epoch)
        .unwrap();
    assert_eq!(tasks(&manager), ["T-1"]);
}

#[test]
fn behaviour_031_read_leases_are_never_in_the_way() {
    let state = State::new();
    let manager = state.open();
    let mut record = sample();
    record.mode = LeaseMode::Read;
    record.expires_boot_ms = Some(u64::MAX);
    put_records(&state, &[record]);
    assert!(manager.claim_disjoint(&request("T-2", &["a"])).is_ok());
}

#[test]
fn behaviour_094_claiming_again_replaces_and_keeps_the_start() {
    let state = State::new();
    let manager = state.open();
    let first = manager
        .claim_disjoint(&with_ttl("T-1", &["a"], 60))
        .unwrap();
    drop(first.held);
    state.clock.pass(Duration::from_secs(10));
    let again = ClaimRequest {
        holder: holder(2),
        ..with_ttl("T-1", &["b"], 60)
    };
    let second = manager.claim_disjoint(&again).unwrap();
    assert_eq!(second.replaced, Some(first.lease.lease_id));
    assert_eq!(
        second.lease.acquired_at.seconds(),
        first.lease.acquired_at.seconds()
    );
    assert!(second.lease.epoch > first.lease.epoch);
    assert!(second.lease.expires_boot_ms > first.lease.expires_boot_ms);
    assert!(
        manager.claim_disjoint(&request("T-2", &["a"])).is_ok(),
        "the old path is free"
    );
    assert_eq!(state.live_files().len(), 2);
}

#[test]
fn p5_another_living_process_keeps_its_claim_on_the_same_task() {
    let state = State::new();
    let manager = state.open();
    let first = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    let again = ClaimRequest {
        holder: holder(2),
        ..request("T-1", &["b"])
    };
    assert!(manager.claim_disjoint(&again).unwrap_err().is_conflict());
    // The holder itself may, and so may anybody once it is dead.
    let own = manager.claim_disjoint(&request("T-1", &["c"])).unwrap();
    assert_eq!(own.replaced, Some(first.lease.lease_id));
    drop(own.held);
    let claimed = manager.claim_disjoint(&again).unwrap();
    assert_eq!((claimed.replaced, claimed.reclaimed.len()), (None, 1));
}

#[test]
fn behaviour_095_a_ttl_frees_the_paths_and_release_is_idempotent() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager
        .claim_disjoint(&with_ttl("T-1", &["a"], 60))
        .unwrap();
    drop(claimed.held);
    state.clock.pass(Duration::from_secs(59));
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    state.clock.pass(Duration::from_secs(1));
    assert!(!manager.list()[0].alive);
    let other = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    assert_eq!(
        other.reclaimed.len(),
        1,
        "the next writer prunes, whatever it claims"
    );
    let (id, epoch) = (&other.lease.lease_id, other.lease.epoch);
    assert!(matches!(
        manager.release(id, epoch + 1),
        Err(LeaseError::Stale { .. })
    ));
    assert!(matches!(manager.release(id, epoch), Ok(Released::Now(_))));
    assert!(matches!(manager.release(id, epoch), Ok(Released::Before)));
}

#[test]
fn behaviour_096_a_renewal_extends_but_never_creates_nor_wakes() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager
        .claim_disjoint(&with_ttl("T-1", &["a"], 60))
        .unwrap();
    let (id, epoch) = (claimed.lease.lease_id.clone(), claimed.lease.epoch);
    drop(claimed.held);
    state.clock.pass(Duration::from_secs(50));
    manager.renew(&id, epoch, Duration::from_secs(60)).unwrap();
    state.clock.pass(Duration::from_secs(50));
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    state.clock.pass(Duration::from_secs(10));
    let before = state.bytes();
    assert!(matches!(
        manager.renew(&id, epoch, Duration::from_secs(60)),
        Err(LeaseError::Gone { .. })
    ));
    let unknown = LeaseId::new("L-unknown").unwrap();
    assert!(matches!(
        manager.renew(&unknown, 1, Duration::from_secs(60)),
        Err(LeaseError::Gone { .. })
    ));
    assert_eq!(state.bytes(), before);
}

#[test]
fn fault_17_a_living_holder_outlasts_its_ttl() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager.claim_disjoint(&with_ttl("T-1", &["a"], 1)).unwrap();
    state.clock.pass(Duration::from_secs(5));
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    drop(claimed.held);
    let taken = manager.claim_disjoint(&request("T-2", &["a"])).unwrap();
    assert!(taken.lease.epoch > claimed.lease.epoch);
    assert!(matches!(
        manager.release(&claimed.lease.lease_id, claimed.lease.epoch),
        Ok(Released::Before)
    ));
    assert_eq!(tasks(&manager), ["T-2"], "the stale token touched nothing");
}

#[test]
fn behaviour_097_a_reader_works_while_the_lock_is_held() {
    let state = State::new();
    let manager = state.open();
    let claimed = ClaimRequest {
        holder: holder(std::process::id()),
        ..request("T-1", &["a"])
    };
    let _held = manager.claim_disjoint(&claimed).unwrap();
    let _lock = Lock::exclusive(&lock_path(state.path())).unwrap();
    assert_eq!(read_leases(state.path()).leases.len(), 1);
    let views = manager.list();
    assert!(views.len() == 1 && views[0].alive);
}

#[test]
fn behaviour_100_a_damaged_store_is_refused_by_writers_and_shown_by_readers() {
    let state = State::new();
    let good = super::record::record_text(&sample()).unwrap();
    let whole = file_bytes(Timestamp::default(), 9, std::iter::once(good.as_str()));
    let cut = whole[..whole.len() / 2].to_vec();
    let unknown = String::from_utf8(whole.clone())
        .unwrap()
        .replace("\"mode\"", "\"moods\": 1, \"mode\"");
    for (bytes, readable) in [
        (Vec::new(), 0),
        (b"garbage".to_vec(), 0),
        (b"[]".to_vec(), 0),
        (cut, 0),
        (unknown.into_bytes(), 0),
        (format!("[{good}]").into_bytes(), 1),
    ] {
        let manager = state.open();
        state.put(&bytes);
        let text = manager
            .claim_disjoint(&request("T-2", &["b"]))
            .unwrap_err()
            .to_string();
        assert!(text.contains("leases.json is damaged"), "{text}");
        assert!(manager.release(&LeaseId::new("L1").unwrap(), 1).is_err());
        assert!(manager.reclaim_dead().is_err());
        assert_eq!(state.bytes(), bytes, "left as it is");
        let seen = read_leases(state.path());
        assert_eq!(
            seen.leases.len(),
            readable,
            "{:?}",
            String::from_utf8_lossy(&bytes)
        );
        assert!(seen.problem.is_some());
    }
    state.put(b"{\"schema_version\": 2}");
    assert!(matches!(
        state.open().claim_disjoint(&request("T-2", &["b"])),
        Err(LeaseError::Newer { found: 2, .. })
    ));
}

#[test]
fn behaviour_101_unknown_keys_are_refused() {
    let path = Path::new("leases.json");
    let good = String::from_utf8(file_bytes(
        Timestamp::default(),
        9,
        std::iter::once(super::record::record_text(&sample()).unwrap().as_str()),
    ))
    .unwrap();
    assert!(parse(path, good.as_bytes()).is_ok());
    for (key, with) in [
        ("\"host\"", "\"extra\": 1, \"host\""),
        ("\"epoch\"", "\"extra\": 1, \"epoch\""),
        ("\"next_epoch\"", "\"extra\": 1, \"next_epoch\""),
        ("\"a\"", "\"../a\""),
        ("\"write\"", "\"exclusive\""),
    ] {
        let bad = good.replacen(key, with, 1);
        assert!(
            matches!(parse(path, bad.as_bytes()), Err(LeaseError::Corrupt { .. })),
            "{key}"
        );
    }
}

#[test]
fn p3_a_file_damaged_by_a_power_cut_of_an_earlier_boot_is_set_aside() {
    let state = State::new();
    let _held = state
        .open()
        .claim_disjoint(&request("T-1", &["a"]))
        .unwrap();
    state.put(b"\0\0\0");
    let next = LeaseManager::open_with_clock(state.path(), FakeClock::new("boot-2")).unwrap();
    next.set_epoch_floor(49);
    let mut again = request("T-2", &["a"]);
    again.holder.boot_id = "boot-2".to_owned();
    assert_eq!(next.claim_disjoint(&again).unwrap().lease.epoch, 50);
    let kept = state.path().join("leases.json.damaged");
    assert_eq!(std::fs::read(kept).unwrap(), b"\0\0\0");
}

#[test]
fn leases_of_another_boot_are_dead_although_their_ttl_has_not_passed() {
    let state = State::new();
    let manager = state.open();
    let mut record = sample();
    record.holder.boot_id = "boot-0".to_owned();
    record.expires_boot_ms = Some(u64::MAX);
    put_records(&state, &[record]);
    assert!(!manager.list()[0].alive);
    let claimed = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    assert_eq!(claimed.reclaimed.len(), 1);
}

#[test]
fn epochs_never_go_back() {
    let state = State::new();
    let manager = state.open();
    let first = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    manager.set_epoch_floor(39);
    manager.set_epoch_floor(7);
    let second = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    assert_eq!((first.lease.epoch, second.lease.epoch), (1, 40));
    crate::fsx::remove(&leases_path(state.path())).unwrap();
    assert!(
        manager
            .claim_disjoint(&request("T-3", &["c"]))
            .unwrap()
            .lease
            .epoch
            >= 40
    );
}

#[test]
fn p2_a_runner_keeps_the_lease_of_a_dead_owner() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    let id = claimed.lease.lease_id.clone();
    let runner = hold_shared(state.path(), &id).unwrap();
    drop(claimed.held);
    assert_eq!(manager.reclaim_dead().unwrap(), []);
    let marked = manager.mark_recovering(&|owner| owner.pid != 1).unwrap();
    assert_eq!(marked.len(), 1);
    assert_eq!(manager.list()[0].record.status, LeaseStatus::Recovering);
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    assert!(matches!(
        manager.release_unheld(&id),
        Err(LeaseError::Held { .. })
    ));
    let adopted = manager.adopt(&id, claimed.lease.epoch, &holder(9)).unwrap();
    assert_eq!(manager.list()[0].record.status, LeaseStatus::Active);
    drop((runner, adopted));
    assert_eq!(manager.reclaim_dead().unwrap().len(), 1);
    assert!(matches!(
        hold_shared(state.path(), &id),
        Err(LeaseError::Gone { .. })
    ));
    assert!(matches!(
        manager.adopt(&id, claimed.lease.epoch, &holder(9)),
        Err(LeaseError::Gone { .. })
    ));
    assert_eq!(state.live_files(), Vec::<PathBuf>::new());
}

#[test]
fn live_files_without_an_entry_are_swept() {
    let state = State::new();
    let manager = state.open();
    let _held = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    drop(Lock::shared(&state.path().join("leases/orphan.live")).unwrap());
    manager.reclaim_dead().unwrap();
    assert_eq!(state.live_files().len(), 1);
}

#[test]
fn dead_leases_nobody_wants_go_with_time() {
    let state = State::new();
    let manager = state.open();
    for n in 0..50 {
        let paths = [format!("p{n}")];
        let request = ClaimRequest {
            paths: ClaimSet::parse(&paths).unwrap(),
            ..request(&format!("T-{n}"), &[])
        };
        drop(manager.claim_disjoint(&request).unwrap());
    }
    assert!(manager.list().len() < 30, "{}", manager.list().len());
}

#[test]
fn a_batch_is_decided_in_order_with_one_write() {
    let state = State::new();
    let manager = state.open();
    let answers = manager
        .claim_batch(&[
            request("T-1", &["a/"]),
            request("T-2", &["a/b"]),
            request("T-3", &["c"]),
        ])
        .unwrap();
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert!(
        matches!(&answers[1], Err(LeaseError::Conflict { task, .. }) if task.as_str() == "T-1")
    );
    assert!(matches!(
        manager.claim_disjoint(&request("T-4", &[])),
        Err(LeaseError::Empty)
    ));
}
