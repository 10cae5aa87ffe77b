//! A limit of the memory of the process, above which no new run starts.

use std::sync::Arc;

/// Measures the memory that the process uses, in bytes; `None` if that is unknown.
type Gauge = dyn Fn() -> Option<u64> + Send + Sync;

/// A limit of the memory of the process, above which no new run starts. Runs under way go on, and a resume is always
/// allowed.
///
/// ```
/// use archon::ProcessMemoryLimit;
///
/// // 512 MiB, compared with what the program measures itself, in bytes.
/// let limit = ProcessMemoryLimit::new(512 << 20).with_gauge(|| Some(100 << 20));
/// ```
#[derive(Clone)]
pub struct ProcessMemoryLimit {
    pub(crate) max: u64,
    pub(crate) gauge: Arc<Gauge>,
}

impl ProcessMemoryLimit {
    /// Creates a limit in bytes for the resident memory of the process. This memory is measured on Linux only; on
    /// other systems no run is refused, unless [`with_gauge`](Self::with_gauge) measures it.
    pub fn new(max_bytes: u64) -> Self {
        Self { max: max_bytes, gauge: Arc::new(resident_bytes) }
    }

    /// Sets a function that returns the used memory in bytes, for instance that of a container. If the function
    /// returns `None`, no run is refused.
    pub fn with_gauge(mut self, gauge: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        self.gauge = Arc::new(gauge);
        self
    }
}

archon_types::debug_fields!(ProcessMemoryLimit: max);

/// Returns the memory of this process in bytes: `VmRSS` of `/proc/self/status`, which counts units of 1,024
/// bytes; see proc_pid_status(5).
#[cfg(target_os = "linux")]
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(not(target_os = "linux"))]
fn resident_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_knows_its_size() {
        let used = super::resident_bytes().expect("Linux says it");
        assert!((1 << 20..1 << 36).contains(&used), "{used}");
    }
}
