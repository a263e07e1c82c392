//! Tests of the claim section. Threads with opens of their own exclude each other as processes do;
//! real processes race in `tests/it/lease.rs`.

mod claims;
mod lives;
mod section;

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
