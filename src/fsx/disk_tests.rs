use super::*;
use std::sync::Arc;

const KILLED: Survival = Survival {
    names: NamesKept::All,
    data: DataKept::All,
};
const POWER_LOST: Survival = Survival {
    names: NamesKept::Synced,
    data: DataKept::Synced,
};

fn root() -> &'static Path {
    Path::new("/state")
}

#[test]
fn a_name_without_a_folder_sync_is_lost() {
    let disk = CrashDisk::new(root());
    let path = root().join("a");
    let mut file = disk.create_new(&path).unwrap();
    file.append(b"one").unwrap();
    file.sync_data().unwrap();
    assert_eq!(disk.restart(POWER_LOST).read(&path).unwrap(), None);
    assert_eq!(disk.restart(KILLED).read(&path).unwrap().unwrap(), b"one");
    disk.sync_dir(root()).unwrap();
    file.append(b"two").unwrap();
    let left = |data| {
        disk.restart(Survival {
            names: NamesKept::Synced,
            data,
        })
        .read(&path)
        .unwrap()
        .unwrap()
    };
    assert_eq!(left(DataKept::Synced), b"one");
    assert_eq!(left(DataKept::Torn(2)), b"onetw");
    assert_eq!(left(DataKept::Zeroed), b"one\0\0\0");
    assert_eq!(left(DataKept::All), b"onetwo");
}

#[test]
fn a_rename_is_durable_after_the_folder_sync_and_its_content_after_the_file_sync() {
    let disk = CrashDisk::new(root());
    let path = root().join("view");
    disk.replace_cached(&path, b"old").unwrap();
    let names_only = Survival {
        names: NamesKept::All,
        data: DataKept::Synced,
    };
    assert_eq!(
        disk.restart(names_only).read(&path).unwrap().unwrap(),
        b"",
        "the rename can overtake the content"
    );
    disk.sync_dir(root()).unwrap();
    disk.remove(&path).unwrap();
    assert!(disk.restart(POWER_LOST).read(&path).unwrap().is_some());
}

#[test]
fn a_folder_that_is_lost_takes_its_files_with_it() {
    let disk = CrashDisk::new(root());
    let dir = root().join("ledger");
    disk.create_dir(&dir).unwrap();
    disk.create_new(&dir.join("1")).unwrap();
    disk.sync_dir(&dir).unwrap();
    assert_eq!(disk.restart(POWER_LOST).list(&dir).unwrap(), [""; 0]);
    disk.sync_dir(root()).unwrap();
    assert_eq!(disk.restart(POWER_LOST).list(&dir).unwrap(), ["1"]);
}

#[test]
fn nothing_happens_after_the_cut_but_a_torn_append() {
    let disk = CrashDisk::new(root());
    let path = root().join("a");
    let mut file = disk.create_new(&path).unwrap();
    disk.cut(Cut { at: 2, torn: 2 });
    file.append(b"one").unwrap_err();
    file.append(b"two").unwrap_err();
    disk.sync_dir(root()).unwrap_err();
    assert!(disk.is_off());
    assert_eq!(disk.ops(), [DiskOp::Create, DiskOp::Append]);
    assert_eq!(disk.restart(KILLED).read(&path).unwrap().unwrap(), b"on");
}

#[test]
fn a_locked_file_is_taken_until_its_handle_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let disks: [(Arc<dyn Disk>, &Path); 2] = [
        (Arc::new(RealDisk), dir.path()),
        (Arc::new(CrashDisk::new(root())), root()),
    ];
    for (disk, dir) in disks {
        let path = dir.join("x.jsonl");
        let mut file = disk.create_locked(&path).unwrap();
        file.append(b"1").unwrap();
        file.sync_data().unwrap();
        assert!(disk.try_lock(&path).unwrap().is_none());
        drop(file);
        let taken = disk.try_lock(&path).unwrap().unwrap();
        assert!(disk.try_lock(&path).unwrap().is_none());
        drop(taken);
        assert_eq!(disk.read(&path).unwrap().unwrap(), b"1");
    }
}

#[test]
fn a_fault_comes_at_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultDisk::new(Arc::new(RealDisk));
    let mut file = disk.create_new(&dir.path().join("a")).unwrap();
    disk.plan(Some(Fault {
        op: Some(DiskOp::SyncData),
        nth: 2,
        errno: 28,
        for_good: false,
    }));
    file.append(b"1").unwrap();
    file.sync_data().unwrap();
    assert!(file.sync_data().unwrap_err().is_no_space());
    file.sync_data().unwrap();
    assert_eq!(disk.count(DiskOp::SyncData), 3);
    assert_eq!(disk.bytes(), 1);
}
