//! What the machine does without flockd: a bare spawn loop, one sync per record, CPU time.

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The smallest program that exits with 0: an ELF file for x86-64 of one page, without a C library.
const NO_OP: &[u8] = &[
    0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, // 64-bit, little-endian
    2, 0, 0x3e, 0, 1, 0, 0, 0, 0x78, 0, 0x40, 0, 0, 0, 0,
    0, // executable, x86-64, entry 0x400078
    0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // program header at 64
    0, 0, 0, 0, 0x40, 0, 0x38, 0, 1, 0, 0, 0, 0, 0, 0, 0, // one of 56 bytes
    1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // load, read and execute, from offset 0
    0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, // at 0x400000
    0x81, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0, // 129 bytes
    0, 0x10, 0, 0, 0, 0, 0, 0, // aligned to a page
    0xb8, 0x3c, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05, // exit(0)
];

/// A program that does nothing, in `folder`; `/bin/true` where the small one cannot run.
pub(crate) fn no_op(folder: &Path) -> PathBuf {
    if cfg!(target_arch = "x86_64") {
        let path = folder.join("no-op");
        fs::write(&path, NO_OP).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let works = std::process::Command::new(&path)
            .status()
            .is_ok_and(|status| status.success());
        if works {
            return path;
        }
    }
    PathBuf::from("/bin/true")
}

/// CPU time of this process and of all children it has reaped.
pub(crate) fn cpu_time() -> Duration {
    let used = |who| {
        let usage = getrusage(who).unwrap();
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
    };
    let total = used(UsageWho::RUSAGE_SELF) + used(UsageWho::RUSAGE_CHILDREN);
    Duration::from_micros(u64::try_from(total).unwrap_or(0))
}

/// CPU time and wall time of something.
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Runs it and says what it cost.
pub(crate) fn cost(work: impl FnOnce()) -> Cost {
    let (cpu, wall) = (cpu_time(), Instant::now());
    work();
    Cost {
        cpu: cpu_time().saturating_sub(cpu),
        wall: wall.elapsed(),
    }
}

/// `count` children of `program`, `at_once` of them alive, by bare `posix_spawn` and `waitpid`.
pub(crate) fn spawn_loop(program: &Path, count: usize, at_once: usize) {
    let path = CString::new(program.as_os_str().as_encoded_bytes()).unwrap();
    let (actions, attributes) = (
        PosixSpawnFileActions::init().unwrap(),
        PosixSpawnAttr::init().unwrap(),
    );
    let environment: [CString; 0] = [];
    let spawn = || {
        posix_spawn(
            path.as_c_str(),
            &actions,
            &attributes,
            &[path.as_c_str()],
            &environment,
        )
        .unwrap();
    };
    (0..at_once.min(count)).for_each(|_| spawn());
    for left in (0..count).rev() {
        assert!(matches!(
            waitpid(Pid::from_raw(-1), None),
            Ok(WaitStatus::Exited(..))
        ));
        if left >= at_once {
            spawn();
        }
    }
}

/// Appends `count` records of `bytes` bytes, each with its own `fdatasync`; records a second.
pub(crate) fn synced_appends(file: &Path, count: u32, bytes: usize) -> f64 {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    let record = vec![b'x'; bytes];
    let start = Instant::now();
    for _ in 0..count {
        file.write_all(&record).unwrap();
        file.sync_data().unwrap();
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}
