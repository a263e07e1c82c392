//! The clocks a lease needs: the boot it belongs to, time since boot, and a label for people.

use crate::types::Timestamp;
use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a lease's times come from; a test brings its own.
pub trait Clock: Debug + Send + Sync {
    /// Names this boot of the machine.
    fn boot_id(&self) -> String;
    /// Milliseconds since boot, suspended time included; never goes back.
    fn boot_millis(&self) -> u64;
    /// Wall-clock label.
    fn wall(&self) -> Timestamp;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn boot_id(&self) -> String {
        // A process does not outlive its boot.
        static BOOT_ID: OnceLock<String> = OnceLock::new();
        let read =
            || std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        BOOT_ID.get_or_init(|| read().trim().to_owned()).clone()
    }

    fn boot_millis(&self) -> u64 {
        std::fs::read_to_string("/proc/uptime")
            .ok()
            .and_then(|text| parse_uptime(&text))
            .unwrap_or_default()
    }

    fn wall(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// `12345.67 54321.00` is seconds and hundredths since boot, then idle time.
fn parse_uptime(text: &str) -> Option<u64> {
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let hundredths: u64 = hundredths.parse().ok()?;
    Some(seconds * 1000 + hundredths * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_boot_and_its_time_passes() {
        assert_eq!(parse_uptime("12.34 5.00\n"), Some(12_340));
        assert_eq!(parse_uptime("nonsense"), None);
        assert!(SystemClock.boot_id().len() >= 32);
        assert!(SystemClock.boot_millis() > 0);
    }
}
