//! The section itself: bytes, lock, damage, epochs.

use super::*;

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
fn behaviour_099_busy_locks_are_fine_and_a_folder_without_locks_is_refused() {
    let state = State::new();
    let _probe = {
        let _manager = state.open();
        Lock::exclusive(&state.path().join("leases/lock.probe")).unwrap()
    };
    assert!(state.open().claim_disjoint(&request("T-1", &["a"])).is_ok());
    let no_folder = State::new();
    std::os::unix::fs::symlink("/dev/shm", no_folder.path().join("leases")).unwrap();
    assert!(LeaseManager::open(no_folder.path()).is_err());
    // A lock that cannot be taken at all is no permission to write.
    let no_lock = State::new();
    let manager = no_lock.open();
    std::fs::create_dir(lock_path(no_lock.path())).unwrap();
    assert!(manager.claim_disjoint(&request("T-1", &["a"])).is_err());
    assert_eq!(no_lock.bytes(), b"");
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
