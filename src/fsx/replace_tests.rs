use super::*;
use std::os::unix::fs::MetadataExt;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn behaviour_001_the_bytes_of_the_file_are_exactly_the_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.json");
    for content in [&b"{}\n"[..], b"", b"no newline", b"\0binary\n\n"] {
        replace_durable(&path, content).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), content);
        replace_cached(&path, content).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}

#[test]
fn behaviour_002_a_failed_rename_surfaces_and_leaves_the_old_bytes_and_no_temp_file() {
    let dir = tempfile::tempdir().unwrap();
    // A folder that is not empty cannot be renamed over.
    let path = dir.path().join("state.json");
    std::fs::create_dir(&path).unwrap();
    std::fs::File::create_new(path.join("old")).unwrap();
    let error = replace_durable(&path, b"new\n").unwrap_err();
    assert!(error.to_string().starts_with("cannot replace"), "{error}");
    assert_eq!(names(dir.path()), ["state.json"]);
    assert_eq!(names(&path), ["old"]);
}

#[test]
fn behaviour_003_success_leaves_no_temp_file() {
    let dir = tempfile::tempdir().unwrap();
    replace_durable(&dir.path().join("a"), b"1").unwrap();
    replace_cached(&dir.path().join("a"), b"2").unwrap();
    create_new_durable(&dir.path().join("b"), b"3").unwrap();
    assert_eq!(names(dir.path()), ["a", "b"]);
}

#[test]
fn behaviour_004_of_16_concurrent_writers_one_wins_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.json");
    let candidates: Vec<Vec<u8>> = (0..16)
        .map(|n| format!("{{\"writer\":{n},\"pad\":\"{}\"}}\n", "x".repeat(50_000)).into_bytes())
        .collect();
    std::thread::scope(|scope| {
        for candidate in &candidates {
            scope.spawn(|| replace_durable(&path, candidate).unwrap());
        }
    });
    let last = std::fs::read(&path).unwrap();
    assert!(candidates.contains(&last));
    serde_json::from_slice::<serde_json::Value>(&last).unwrap();
    assert_eq!(names(dir.path()), ["state.json"]);
}

#[test]
fn the_mode_of_a_target_is_kept_and_a_new_file_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    replace_durable(&path, b"1").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    replace_durable(&path, b"2").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    replace_cached(&path, b"3").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
}

#[test]
fn a_link_is_refused_and_an_existing_file_is_not_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("f"), dir.path().join("l"));
    create_new_durable(&path, b"old").unwrap();
    assert!(
        create_new_durable(&path, b"new")
            .unwrap_err()
            .is_already_there()
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(
        replace_durable(&link, b"new"),
        Err(FsError::Symlink { .. })
    ));
    assert_eq!(names(dir.path()), ["f", "l"]);
}

#[test]
fn only_our_own_temp_files_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        ".state.json.aB3dE6gH.tmp",
        ".gitignore",
        ".swp.tmp",
        "state.json.aB3dE6gH.tmp",
        ".x.tmp",
        ".hidden-aB3dE6gH.tmp",
    ] {
        std::fs::File::create_new(dir.path().join(name)).unwrap();
    }
    assert_eq!(sweep_temps(dir.path()).unwrap(), 1);
    assert_eq!(names(dir.path()).len(), 5);
    let killed = write_temp(&dir.path().join("view"), b"half").unwrap();
    let (_file, kept) = killed.keep().unwrap();
    assert!(kept.exists());
    assert_eq!(sweep_temps(dir.path()).unwrap(), 1);
    assert_eq!(sweep_temps(&dir.path().join("missing")).unwrap(), 0);
}
